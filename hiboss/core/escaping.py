"""What a sender wrote must not pass for what we say: lines of a text, and names, made harmless.

The full patterns take 20 ms to compile, which a command that shows plain mail need not pay:
so each is made at first need, behind a cheap one that lets nothing through that it would find.
"""

from __future__ import annotations

import re
from functools import cache

# What every reader takes for a new line, and what nobody sees before, in or after a word.
_BREAKS = "\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"
_UNSEEN = (
    "\x00-\t\x0e-\x1b\x1f \x7f-\x84\x86-\xa0\xad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2"
    "\u115f\u1160\u1680\u17b4\u17b5\u180b-\u180f\u2000-\u200f\u202a-\u202f\u205f-\u206f\u2800\u3000\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb"
    "\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_KEYS = ("envelope-id:", "attachments:", "already-sent:")
_MOMENT = "at0000-00-00T00:00:00+00:00:"


def escape_body(text: str) -> str:
    """A text, with a `>` before each line that would look like one of ours."""
    if ":" not in text or not _suspicion().search(_unseen().sub("", text)):
        return text
    return _ours().sub(r"\1>", text)


def escape_name(name: str) -> str:
    """A name that can begin a line of ours: it must not begin like another, or like a line of a text.

    And the platform vouches for what stands after an @ in brackets, so no name brings its own.
    """
    if name.isascii() and name.isprintable() and not set(name) & set(":(>"):
        return name
    without = _key().sub(lambda found: found[1].replace(":", ""), name, count=1)
    return _handle().sub("(at ", without)


@cache
def _unseen() -> re.Pattern[str]:
    return re.compile(f"[{_UNSEEN}]+")


@cache
def _suspicion() -> re.Pattern[str]:
    """What `_ours` finds, in a text without anything unseen; and a little more."""
    keys, moment = "|".join(_KEYS), _spelt(_MOMENT, "")
    return re.compile(rf"(?:^|[{_BREAKS}])>*(?:{keys})|{moment}(?:$|[{_BREAKS}])", re.IGNORECASE)


@cache
def _ours() -> re.Pattern[str]:
    """The beginning of a line that reads like one of ours.

    It looks ahead and takes nothing, and no two of its repetitions can share a character: a
    million blanks must not cost their square.
    """
    gap = f"[{_UNSEEN}]*"
    keys = "|".join(gap.join(key) for key in _KEYS)
    moment = _spelt(_MOMENT, gap)
    return re.compile(
        rf"(^|[{_BREAKS}])"
        rf"(?=[{_UNSEEN}>]*+(?:{keys})|[^{_BREAKS}]*[{_UNSEEN}]{moment}{gap}(?:$|[{_BREAKS}]))",
        re.IGNORECASE,
    )


def _spelt(moment: str, gap: str) -> str:
    signs = {"0": r"\d", "+": "[+-]"}
    return gap.join(signs.get(sign, f"[{sign}]") for sign in moment)


@cache
def _key() -> re.Pattern[str]:
    return re.compile(rf"[{_UNSEEN}{_BREAKS}>]*([{_UNSEEN}{_BREAKS}>a-z:-]*)", re.IGNORECASE)


@cache
def _handle() -> re.Pattern[str]:
    return re.compile(rf"\([{_UNSEEN}]*@")
