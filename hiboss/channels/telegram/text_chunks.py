"""Splits a text into posts: at paragraphs, lines or words, and never inside a character as people see it.

Telegram counts UTF-16 units. A chunk for a file is told apart by its first character, which no text keeps.
"""

from __future__ import annotations

import unicodedata

MOST_UNITS = 4096  # of one post
_FILE = "\x1ffile:"  # a separator that nobody types; Telegram shows it as nothing
_JOINERS = (
    "\u200d\ufe0e\ufe0f\u20e3"  # these belong to the character before them, as does what has a modifier
)
_BREAKS = ("\n\n", "\n", " ")  # the best first


def split(text: str) -> list[str]:
    """Return the chunks of a text; none if there is nothing to see in it."""
    rest = text.replace("\x1f", " ")
    found = []
    while (fits := _fitting(rest)) < len(rest):
        end = _break(rest, fits)
        found.append(rest[:end].rstrip())
        rest = rest[end:].lstrip("\n")
    found.append(rest)
    return [one for one in found if one.strip()]


def units(text: str) -> int:
    """Return the length of a text as Telegram counts it."""
    return len(text) + sum(one > "\uffff" for one in text)


def file_chunk(number: int) -> str:
    """Return the chunk that stands for a file of a letter."""
    return f"{_FILE}{number}"


def file_number(chunk: str) -> int | None:
    """Return which file of its letter a chunk stands for; None: it is a text."""
    return int(chunk.removeprefix(_FILE)) if chunk.startswith(_FILE) else None


def _fitting(text: str) -> int:
    """Return how many characters fit into one post."""
    left = MOST_UNITS
    for number, one in enumerate(text[: MOST_UNITS + 1]):
        left -= 2 if one > "\uffff" else 1
        if left < 0:
            return number
    return len(text)


def _break(text: str, fits: int) -> int:
    """Return where to end a chunk: it has text before it and at most `fits` characters."""
    for mark in _BREAKS:
        at = text.rfind(mark, fits // 2, fits + 1)
        if at > 0 and text[:at].strip():
            return at + (1 if mark == " " else 0)
    end = fits
    while end > fits - 64 and _is_inside(text, end):
        end -= 1
    return fits if _is_inside(text, end) else end


def _is_inside(text: str, at: int) -> bool:
    """Tell whether a split there would separate what people see as one character."""
    before, after = text[at - 1], text[at]
    if after in _JOINERS or before == "\u200d" or unicodedata.combining(after) or _is_tone(after):
        return True
    if before == "\r" and after == "\n":
        return True
    if not (_is_flag_half(before) and _is_flag_half(after)):
        return False
    start = at
    while start > 0 and _is_flag_half(text[start - 1]):
        start -= 1
    return (at - start) % 2 == 1


def _is_tone(character: str) -> bool:
    return "\U0001f3fb" <= character <= "\U0001f3ff" or "\U000e0020" <= character <= "\U000e007f"


def _is_flag_half(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"
