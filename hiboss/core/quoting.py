"""How messages repeat what somebody wrote: without secrets, without tricks, with a near match."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

LONGEST_WORD = 100  # characters for which a near match is looked for
_TOKEN = re.compile(r"(hb[abur]_)[A-Za-z0-9_-]{8,}|(whsec_)[A-Za-z0-9+/=_-]{8,}")


def redact(text: str) -> str:
    """The text, with all but the kind of every token in it left out."""
    return _TOKEN.sub(lambda found: (found[1] or found[2]) + "…", text)


# Facts that say again what somebody wrote.
_WRITTEN = {"value", "name", "address", "path", "key", "method", "id", "detail", "account"}


def shown(name: str, fact: Any) -> Any:
    """A fact as a message shows it: nothing is seen as nothing, and no character in it does anything."""
    if name not in _WRITTEN or not isinstance(fact, str):
        return fact
    if fact.isprintable():
        return fact or "''"
    return "".join(one if one.isprintable() else repr(one)[1:-1] for one in fact)


def nearest(word: str, known: Iterator[str] | list[str], *, before: str = "") -> str:
    """A trailing ' (did you mean …?)', or nothing when no known word is near."""
    from difflib import get_close_matches  # 3 ms that a command without an error need not pay

    if len(word) > LONGEST_WORD:  # nobody mistyped that, and comparing megabytes holds everybody up
        return ""
    folded = {k.lower(): k for k in known}
    matches = get_close_matches(word.lower(), list(folded), n=1, cutoff=0.6)
    return f" (did you mean {before}{folded[matches[0]]}?)" if matches else ""
