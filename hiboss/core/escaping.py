"""Escape texts and names of senders, so that nobody can forge a header of an envelope.

An agent reads envelopes as plain text: header lines like `envelope-id: e81`, then the text.
A text whose own line looks like such a header could pass for a second envelope, for example
one from the boss. So `escape_body` puts a `>` before each such line, and `escape_name` takes
the marks out of a name that would begin a header line.

The full patterns take 20 ms to compile. So each is compiled on first use, after a cheap
check that finds at least everything the full pattern would find.
"""

from __future__ import annotations

import re
from functools import cache

# Characters that start a new line for some reader, and characters that nobody sees.
_BREAKS = "\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"
_UNSEEN = (
    "\x00-\t\x0e-\x1b\x1f \x7f-\x84\x86-\xa0\xad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2"
    "\u115f\u1160\u1680\u17b4\u17b5\u180b-\u180f\u2000-\u200f\u202a-\u202f\u205f-\u206f\u2800\u3000\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb"
    "\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_KEYS = ("envelope-id:", "attachments:", "already-sent:")
_MOMENT = "at0000-00-00T00:00:00+00:00:"


def escape_body(text: str) -> str:
    """Return a text with a `>` before each line that looks like a header line of hiboss."""
    if ":" not in text or not _maybe_header().search(_unseen().sub("", text)):
        return text
    return _header_line().sub(r"\1>", text)


def escape_name(name: str) -> str:
    """Return a name that is safe at the start of a header line.

    It cannot look like a key (`envelope-id:`) or like an escaped line (`>`). It also has no
    `(@…)`: that is where hiboss shows the user name which the platform has checked.
    """
    if name.isascii() and name.isprintable() and not set(name) & set(":(>"):
        return name
    without = _key().sub(lambda found: found[1].replace(":", ""), name, count=1)
    return _handle().sub("(at ", without)


@cache
def _unseen() -> re.Pattern[str]:
    return re.compile(f"[{_UNSEEN}]+")


@cache
def _maybe_header() -> re.Pattern[str]:
    """The cheap check, for a text without unseen characters. It finds what `_header_line` finds, and more."""
    keys, moment = "|".join(_KEYS), _pattern_of(_MOMENT, "")
    return re.compile(rf"(?:^|[{_BREAKS}])>*(?:{keys})|{moment}(?:$|[{_BREAKS}])", re.IGNORECASE)


@cache
def _header_line() -> re.Pattern[str]:
    """The start of a line that looks like a header line, also with unseen characters in it.

    It only looks ahead, and no two of its repetitions can match the same character: the time
    must not grow with the square of the length (think of a million blanks).
    """
    gap = f"[{_UNSEEN}]*"
    keys = "|".join(gap.join(key) for key in _KEYS)
    moment = _pattern_of(_MOMENT, gap)
    return re.compile(
        rf"(^|[{_BREAKS}])"
        rf"(?=[{_UNSEEN}>]*+(?:{keys})|[^{_BREAKS}]*[{_UNSEEN}]{moment}{gap}(?:$|[{_BREAKS}]))",
        re.IGNORECASE,
    )


def _pattern_of(moment: str, gap: str) -> str:
    """Return a pattern for a time like this, with `gap` between all characters."""
    signs = {"0": r"\d", "+": "[+-]"}
    return gap.join(signs.get(sign, f"[{sign}]") for sign in moment)


@cache
def _key() -> re.Pattern[str]:
    return re.compile(rf"[{_UNSEEN}{_BREAKS}>]*([{_UNSEEN}{_BREAKS}>a-z:-]*)", re.IGNORECASE)


@cache
def _handle() -> re.Pattern[str]:
    return re.compile(rf"\([{_UNSEEN}]*@")
