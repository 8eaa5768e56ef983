"""Quote user input in messages: without secrets, without control characters, with a near match."""

from __future__ import annotations

import re

TYPE_CHECKING = False  # importing typing would cost every command 3 ms
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

LONGEST_WORD = 100  # characters for which a near match is looked for
SHORTEST_SECRET = 6  # characters: a shorter one would be found in many harmless texts
SHORTEST_LINE = 20  # characters of a line of a secret with several lines, like a key
LONGEST_SECRET = 10_000  # characters; a text that is cut keeps no beginning of one
_TOKEN_PREFIXES = ("hba_", "hbb_", "hbu_", "hbr_", "whsec_")
_TOKEN = r"(hb[aburw]_)[A-Za-z0-9_.-]{8,}|(whsec_)[A-Za-z0-9+/=_-]{8,}"
_BEGUN_TOKEN = r"(?:hb[aburw]_|whsec_)[A-Za-z0-9+/=_-]*\Z"
_hidden: list[str] = []  # the secrets of plugins that this process has had in its hands, the longest first


def hide(secrets: Iterable[str]) -> None:
    """Let `redact` hide these from now on, also as URLs write them: libraries quote URLs in their errors.

    They are not forgotten: an error can come long after its binding has ended.
    """
    from urllib.parse import quote, quote_plus

    found = set(_hidden)
    for secret in secrets:
        lines = [line for line in secret.splitlines() if len(line) >= SHORTEST_LINE]
        for one in (secret, secret.strip(), *lines):
            if len(one) >= SHORTEST_SECRET:
                found.update((one, quote(one, safe=""), quote(one), quote_plus(one), repr(one)[1:-1]))
    if len(found) > len(_hidden):
        _hidden[:] = sorted(found, key=len, reverse=True)


def redact(text: str) -> str:
    """Return the text with every token in it cut to its prefix (`hba_…`), and without hidden secrets."""
    return re.sub(_TOKEN, lambda found: (found[1] or found[2]) + "…", _without_hidden(text))


def _without_hidden(text: str) -> str:
    for one in _hidden:
        if one in text:
            text = text.replace(one, "…")
    return text


def beginning(text: str, limit: int) -> str:
    """Return the first characters of a text without secrets: redacted first, then cut."""
    size = limit + LONGEST_SECRET
    while True:
        shown = redact(text[:size])
        # What was cut here in the middle of a secret is not among the first characters.
        if size >= len(text) or len(shown) >= limit + LONGEST_SECRET:
            return shown[:limit]
        size *= 2


def shortened(text: str, limit: int) -> str:
    """Return at most so many characters of a text, without secrets; the last is `…` if some are missing."""
    shown = beginning(text, limit + 1)
    return shown if len(shown) <= limit else f"{shown[: limit - 1]}…"


class Pieces:
    """Redacts a text that comes in pieces: the beginning of a secret is held back until the rest is there."""

    def __init__(self) -> None:
        self._held = ""

    def take(self, piece: str) -> str:
        """Take a piece; return what can be shown now, which may be nothing."""
        text = _without_hidden(self._held + piece)
        begun = re.search(_BEGUN_TOKEN, text)
        at = min(_begun_at(text, (*_hidden, *_TOKEN_PREFIXES)), begun.start() if begun else len(text))
        if len(text) - at > LONGEST_SECRET:
            at = len(text)
        self._held = text[at:]
        return redact(text[:at])

    def rest(self) -> str:
        """Return what was held back, when nothing follows: as it is only if it is too short for a secret."""
        held, self._held = self._held, ""
        return held if len(held) < SHORTEST_SECRET else "…"


def _begun_at(text: str, secrets: Iterable[str]) -> int:
    """Return where the end of a text begins that one of these begins with; the length of the text if none."""
    first = len(text)
    for one in secrets:
        at = text.find(one[0], max(0, len(text) - len(one) + 1), first)
        while at >= 0:
            if one.startswith(text[at:]):
                first = at
                break
            at = text.find(one[0], at + 1, first)
    return first


def redact_all(given: Any) -> Any:
    """Return values as JSON has them with every text in them redacted, also the names."""
    if isinstance(given, str):
        return redact(given)
    if isinstance(given, dict):
        return {redact_all(name): redact_all(value) for name, value in given.items()}
    return [redact_all(one) for one in given] if isinstance(given, list) else given


def storable(given: object, limit: int) -> str:
    """Return the beginning of what a plugin gave as a text, whatever it is, in a form that can be stored.

    That is without NUL, halves of surrogate pairs, tokens, and secrets of plugins.
    """
    try:
        text = str(given)
    except Exception:  # noqa: BLE001 - it is an object of somebody else's class
        return "it has no text"
    return beginning(encodable(text).replace("\x00", "\ufffd"), limit)


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
    found = near(word, known)
    return f" (did you mean {before}{found}?)" if found else ""


def near(word: str, known: Iterator[str] | list[str]) -> str:
    """Return the nearest known word, or '' when none is near."""
    from difflib import get_close_matches  # the import takes 3 ms; only errors need it

    if len(word) > LONGEST_WORD:  # no typing error, and comparing megabytes would block the event loop
        return ""
    folded = {k.lower(): k for k in known}
    matches = get_close_matches(word.lower(), list(folded), n=1, cutoff=0.6)
    return folded[matches[0]] if matches else ""
