"""One-time tickets for downloads: a link in a page cannot send the header that proves who asks.

A ticket is good once, for one file, for a minute, and for whoever asked for it. They are in memory only.
"""

from __future__ import annotations

import hashlib
import secrets
from collections import Counter
from typing import NamedTuple

from ..core import clock
from ..core.errors import BadToken

LIVES_MS = 60_000
MOST = 1_000  # then the oldest ends, of the caller who has most of them


class Ticket(NamedTuple):
    token: str  # of who asked for it: the right is checked again when it is used
    path: str  # the file that it is for
    expires_at: int


class Tickets:
    def __init__(self) -> None:
        self._tickets: dict[bytes, Ticket] = {}  # by the hash, oldest first

    def create(self, token: str, path: str) -> str:
        now = clock.now()
        self._tickets = {key: one for key, one in self._tickets.items() if one.expires_at > now}
        while len(self._tickets) >= MOST:
            (fullest, _), *_ = Counter(one.token for one in self._tickets.values()).most_common(1)
            del self._tickets[next(key for key, one in self._tickets.items() if one.token == fullest)]
        given = secrets.token_urlsafe(32)
        self._tickets[_digest(given)] = Ticket(token, path, now + LIVES_MS)
        return given

    def take(self, given: str, path: str) -> str:
        """Return the token of who asked for a ticket; it is used up with that. Raises if it is not good."""
        found = self._tickets.pop(_digest(given), None)
        if found is None or found.path != path or found.expires_at <= clock.now():
            raise BadToken()
        return found.token


def _digest(given: str) -> bytes:
    return hashlib.sha256(given.encode("utf-8", "surrogatepass")).digest()
