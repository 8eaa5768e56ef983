"""Emojis that are put on messages: what is one, and how a platform writes it."""

from __future__ import annotations

import re
from collections.abc import Collection

_PICTURE_MARK = "\ufe0f"  # asks for the picture of a sign that also is a letter; platforms often leave it out
_PICTURE = "[\u00a9\u00ae\u203c\u2049\u2122\u2139\u2194-\u21aa\u231a-\u23ff\u24c2\u25aa-\u25fe\u2600-\u27bf"
_PICTURE += "\u2934\u2935\u2b05-\u2b55\u3030\u303d\u3297\u3299\U0001f004\U0001f0cf\U0001f170\U0001f171"
_PICTURE += "\U0001f17e\U0001f17f\U0001f18e\U0001f191-\U0001f19a\U0001f201-\U0001f251\U0001f300-\U0001faff]"
_ONE = rf"{_PICTURE}[{_PICTURE_MARK}\U0001f3fb-\U0001f3ff]?(?:[\U000e0020-\U000e007e]+\U000e007f)?"
_EMOJI = re.compile(
    rf"{_ONE}(?:\u200d{_ONE}){{0,7}}|[\U0001f1e6-\U0001f1ff]{{2}}|[0-9#*]{_PICTURE_MARK}?\u20e3"
)
NAMED = 8  # of those that a platform takes, in an error


def is_emoji(text: str) -> bool:
    """Tell whether a text is one emoji, also one of several signs like a flag or a family."""
    return _EMOJI.fullmatch(text) is not None


def taken_as(text: str, taken: Collection[str] | None) -> str | None:
    """Return an emoji as a platform writes it; None if it is not among those that are taken there.

    `taken`: None, if it takes any.
    """
    if taken is None or text in taken:
        return text
    bare = text.replace(_PICTURE_MARK, "")
    return next((one for one in sorted(taken) if one.replace(_PICTURE_MARK, "") == bare), None)


def some_of(taken: Collection[str]) -> str:
    """Return some of the emojis that a platform takes, the best known first."""
    known = [one for one in ("👍", "👎", "❤", "🔥", "🎉", "👏", "🤔", "👀") if one in taken]
    return " ".join((known or sorted(taken))[:NAMED])
