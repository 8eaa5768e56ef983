"""Delimit what senders wrote, so that nobody can take it for text of hiboss.

Agents and people read envelopes as plain text: lines of hiboss like `envelope-id: e81`, and
between them texts and names that others chose. There is no list of dangerous texts here,
because nobody can complete it. Instead, every text of a sender stands in one of two forms,
whatever it says:

- `mark_lines`: a text of several lines, each of which begins with `>`;
- `quote`: a JSON string in double quotes, on one line. `name` leaves out the quotes of a name that has
  nothing in it but letters, digits, spaces, dots, dashes and apostrophes, and `emoji` those of an emoji:
  they can contain no sign of ours.

So no line begins with what a sender wrote, and both forms give back exactly what was written.
"""

from __future__ import annotations

import json
import re
import unicodedata

MARK = ">"
# Everything that some reader takes for the end of a line. `str.splitlines` splits at these.
BREAKS = "\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"
_NO_CONTENT = frozenset(["", "\r\n", *BREAKS])
# The patterns are texts: `re` compiles and keeps each when it is first needed, since a command needs none or
# few of them, and to compile all takes 3 ms.
# What would end a line, control a terminal, change the writing direction, or cannot be encoded.
_UNFIT = "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufff9-\ufffb]"
_RIGHT_TO_LEFT = "[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff\U00010800-\U00010fff\U0001e800-\U0001efff]"
# What shows nothing, or looks like a space. With what is above, nobody sees that it is there.
_HIDDEN = (
    "[\u00a0\u00ad\u034f\u115f\u1160\u1680\u17b4\u17b5\u180b-\u180f\u2000-\u200d\u202f\u205f-\u2065\u206a-\u206f"
    "\u2800\u3000\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_PLAIN = r"[A-Za-z0-9.'-]+(?: [A-Za-z0-9.'-]+)*"
# Pictures, and no dingbats that look like quotes, brackets or letters.
_PICTURE = "[\u2600-\u26ff\u2702-\u2716\u2728\u2744\u274c\u2753-\u2757\u2763\u2764\u2b50\u2b55"
_PICTURE += "\U0001f191-\U0001f19a\U0001f300-\U0001f64f\U0001f680-\U0001f6ff"
_PICTURE += "\U0001f900-\U0001f9ff\U0001fa70-\U0001faff]"
_EMOJI = rf"(?:{_PICTURE}[\ufe0f\U0001f3fb-\U0001f3ff]?(?:\u200d(?=.))?){{1,8}}|[\U0001f1e6-\U0001f1ff]{{2}}"
_WORD = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,59}"
_ISOLATE, _RELEASE = "\u2068", "\u2069"
_UNIT = r"\\u[0-9a-f]{4}|\\?."  # one character of a JSON string


def mark_lines(text: str) -> str:
    """Return the text with `> ` before each of its lines; before an empty one, only `>`.

    Every kind of line break begins a marked line, and stays as it is. To get the text back,
    split it at the breaks and remove the first two characters of each line.
    """
    lines = text.splitlines(keepends=True)
    if not lines or lines[-1][-1] in BREAKS:
        lines.append("")
    return "".join(f"{MARK}{line}" if line in _NO_CONTENT else f"{MARK} {line}" for line in lines)


def quote(text: str, limit: int | None = None) -> str:
    """Return the text as a JSON string on one line; it ends with `…` if it has more characters than `limit`.

    If it contains right-to-left letters, the marks U+2068 and U+2069 around it keep the rest of
    the line in order. Inside the string they are escaped.
    """
    inside = visible(json.dumps(text if limit is None else text[: limit + 1], ensure_ascii=False)[1:-1])
    if limit is not None and len(inside) > limit:
        inside = _cut(inside, limit)
    quoted = f'"{inside}"'
    is_mixed = not quoted.isascii() and re.search(_RIGHT_TO_LEFT, quoted)
    return f"{_ISOLATE}{quoted}{_RELEASE}" if is_mixed else quoted


def name(text: str, limit: int | None = None) -> str:
    """Return the name of a person as it is if nothing in it could be misread, else as a JSON string."""
    if limit is not None and len(text) > limit:
        return quote(text, limit)
    # Like an ASCII letter is every letter of a script that has capitals, which looks like no other sign.
    signs = "".join("a" if unicodedata.category(one) in ("Lu", "Ll") else one for one in text)
    plain = re.fullmatch(_PLAIN, signs) and unicodedata.is_normalized("NFKC", text)
    return text if plain and "a" in signs and not re.search(_RIGHT_TO_LEFT, text) else quote(text)


def emoji(text: str, limit: int | None = None) -> str:
    """Return an emoji as it is; anything else as a JSON string."""
    return text if re.fullmatch(_EMOJI, text) else quote(text, limit)


def plain(text: str) -> str:
    """Return a text with `_` in place of control characters and the like, for the name of a file."""
    return re.sub(_UNFIT, "_", text)


def visible(text: str) -> str:
    """Return the text on one line, with control characters and the like written as `\\u200f`."""
    if text.isascii() and text.isprintable():
        return text
    return re.sub(_UNFIT, lambda found: f"\\u{ord(found[0]):04x}", text)


def visible_lines(text: str) -> str:
    """Return the text as `visible` does, with its line breaks and tabs."""
    return re.sub(_UNFIT, _escape_in_lines, text.replace("\r\n", "\n"))


def exposed_lines(text: str) -> str:
    """Return the text with its line breaks, and with all that nobody sees in it written as `\\u200b`."""
    return re.sub(_HIDDEN, _escape, visible_lines(text))


def exposed(text: str) -> str:
    """Return a text on one line that looks like no other one: as it is, or as a JSON string with escapes.

    Escaped is what nobody sees, and what changes the order of the letters.
    """
    unseen = (_UNFIT, _HIDDEN, _RIGHT_TO_LEFT)
    if not any(re.search(one, text) for one in unseen) and text == text.strip():
        return text
    inside = visible(json.dumps(text, ensure_ascii=False)[1:-1])
    for one in unseen:
        inside = re.sub(one, _escape, inside)
    return f'"{inside}"'


def shows(text: str) -> bool:
    """Tell whether there is anything to see of a text."""
    return bool(re.sub(_HIDDEN, "", re.sub(_UNFIT, "", text)).strip())


def _escape(found: re.Match[str]) -> str:
    number = ord(found[0])
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def _escape_in_lines(found: re.Match[str]) -> str:
    return found[0] if found[0] in "\n\t" else _escape(found)


def shell_word(text: str, instead: str) -> str:
    """Return a text for a command that people copy; `instead` if a shell could read it as something else."""
    return text if re.fullmatch(_WORD, text) else instead


def _cut(inside: str, limit: int) -> str:
    """Return the beginning of a JSON string; no escape in it is cut in two."""
    kept, size = [], 0
    for unit in re.findall(_UNIT, inside):
        size += len(unit)
        if size > limit - 1:
            break
        kept.append(unit)
    return "".join(kept) + "…"
