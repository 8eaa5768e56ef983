"""Text for a terminal: made harmless, measured in cells, cut, and broken into lines.

Imported only when a terminal is written to. Nothing here prints.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

LONGEST = 500  # characters of a text that a row can show
INDENT = "  "

# What could control a terminal or change the order of its letters: control characters (C0, C1,
# DEL), the line and paragraph separators, bidi embeddings, overrides and isolates, halves of
# surrogate pairs, and the interlinear marks. The caller deals with tab and newline.
_CONTROLS = "\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufff9-\ufffb"
# An isolate that is closed on its own line, as rendering puts it around a right-to-left name,
# moves nothing outside it.
_CONTROLLING = re.compile(f"(\u2068[^\n{_CONTROLS}]*\u2069)|[{_CONTROLS}]")
_NARROW = frozenset("–—‘’“”„…•→")
# A word that may stay longer than a row: a path or a link. The terminal breaks it, so it has no colon and
# no `>`, with which a row could look like a line of ours, and no letter that can look like a blank.
_MAY_STAY_WHOLE = re.compile(r"""["'(]?(?:[a-z]+://)?[!-9;-=?-~]*""")


def tame(text: str) -> str:
    """The text with everything that could control a terminal written out, as `\\x1b`."""
    if text.isascii() and text.isprintable():
        return text
    return _CONTROLLING.sub(lambda found: found[1] or _written_out(ord(found[0])), text)


def _written_out(number: int) -> str:
    return f"\\x{number:02x}" if number < 256 else f"\\u{number:04x}"


def flat(text: str) -> str:
    """The beginning of a text as one line."""
    return tame(" ".join(text[:LONGEST].split()))


def width(text: str) -> int:
    """How many cells of a terminal a tamed text takes, also on one that does not join emoji."""
    if text.isascii() or all(letter < "\u0300" or letter in _NARROW for letter in text):
        return len(text)
    from wcwidth import wcswidth, wcwidth

    joined: int = wcswidth(text)
    apart: int = sum(max(wcwidth(letter), 0) for letter in text)
    return max(apart, joined if joined >= 0 else len(text))


def cut(text: str, cells: int) -> str:
    """The text, or as much of its beginning as fits with a `…` behind it."""
    if width(text) <= cells:
        return text
    kept, used = "", 0
    for letter in _letters(text):
        size = width(letter)
        if used + size > cells - 1:
            break
        kept, used = kept + letter, used + size
    return kept.rstrip() + "…" if cells > 0 else ""


def _letters(text: str) -> Iterable[str]:
    """What a person sees as one letter: an emoji of several code points is not cut in two."""
    if text.isascii():
        return text
    from wcwidth import iter_graphemes

    found: Iterable[str] = iter_graphemes(text)
    return found


def wrapped(text: str, cells: int, *, whole_words: bool = False) -> list[str]:
    """The text in lines that fit, broken between words where possible.

    `whole_words`: a word that is too long for a line stays whole if it can, so that a path can be copied.
    """
    lines: list[str] = []
    for whole in tame(text.expandtabs(4)).splitlines():
        lines += _broken(whole, max(cells, 2), whole_words)
    return lines


def hanging(text: str, cells: int) -> list[str]:
    """A line of ours in rows that fit; all but the first are indented.

    A row that begins with what somebody else wrote must not look like a line of ours.
    """
    first, *rest = wrapped(text, cells - len(INDENT), whole_words=True) or [""]
    return [first, *(INDENT + row for row in rest)]


def _broken(text: str, cells: int, whole_words: bool) -> list[str]:
    lines = [""]
    for word in re.findall(
        r"\s*\S+", text.rstrip()
    ):  # else it would try each blank at the end, again and again
        if width(lines[-1] + word) <= cells:
            lines[-1] += word
        else:
            whole = whole_words and may_stay_whole(word.lstrip())
            lines += [word.lstrip()] if whole else _pieces(word.lstrip(), cells)
    return [line for line in lines if line] or [""]


def may_stay_whole(word: str) -> bool:
    """Whether a word may be longer than a row, because no row of it can look like a line of ours."""
    return _MAY_STAY_WHOLE.fullmatch(word) is not None


def _pieces(word: str, cells: int) -> list[str]:
    """A word in pieces that fit."""
    pieces, used = [""], 0
    for letter in word:
        size = width(letter)
        if used + size > cells:
            pieces.append("")
            used = 0
        pieces[-1] += letter
        used += size
    return pieces
