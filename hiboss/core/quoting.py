"""Quote user input in messages: without secrets, without control characters, with a near match."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

LONGEST_WORD = 100  # characters for which a near match is looked for
_TOKEN = re.compile(r"(hb[abur]_)[A-Za-z0-9_-]{8,}|(whsec_)[A-Za-z0-9+/=_-]{8,}")


def redact(text: str) -> str:
    """Return the text with every token in it cut to its prefix (`hba_…`)."""
    return _TOKEN.sub(lambda found: (found[1] or found[2]) + "…", text)


def storable(given: object, limit: int) -> str:
    """Return the beginning of what a plugin gave as a text, whatever it is, in a form that can be stored.

    That is without NUL, halves of surrogate pairs, and tokens.
    """
    try:
        text = str(given)[:limit]
    except Exception:  # noqa: BLE001 - it is an object of somebody else's class
        return "it has no text"
    return redact(encodable(text).replace("\x00", "\ufffd"))


def encodable(text: str) -> str:
    """Return the text without halves of surrogate pairs, which no answer can be written with."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


# The facts of errors that quote user input.
_USER_INPUT = {"value", "name", "address", "path", "key", "method", "id", "detail", "account"}


def printable(name: str, fact: Any) -> Any:
    """Return a fact as a message shows it: '' for an empty text, and escapes for unprintable characters."""
    if name not in _USER_INPUT or not isinstance(fact, str):
        return fact
    if fact.isprintable():
        return fact or "''"
    return "".join(one if one.isprintable() else repr(one)[1:-1] for one in fact)


def nearest(word: str, known: Iterator[str] | list[str], *, before: str = "") -> str:
    """Return ' (did you mean …?)' with the nearest known word, or '' when none is near."""
    from difflib import get_close_matches  # the import takes 3 ms; only errors need it

    if len(word) > LONGEST_WORD:  # no typing error, and comparing megabytes would block the event loop
        return ""
    folded = {k.lower(): k for k in known}
    matches = get_close_matches(word.lower(), list(folded), n=1, cutoff=0.6)
    return f" (did you mean {before}{folded[matches[0]]}?)" if matches else ""
