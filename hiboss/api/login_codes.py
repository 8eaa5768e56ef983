"""The codes of one-time links, by which people log in with a browser. They are in memory only.

A code is good once, for five minutes, and has 256 random bits: nobody finds one by trying. So failed logins
are limited, but a good code is always taken. Else whoever can connect could keep everybody out.
"""

from __future__ import annotations

import secrets
from collections import deque
from typing import NamedTuple

from ..core import clock
from ..core.errors import LoginRefused, TooManyAttempts
from ..store import tokens

LIVES_MS = 5 * 60_000
MOST = 100  # codes; then the oldest ends
FAILURES = 10  # within WINDOW_MS
WINDOW_MS = 60_000


class _Code(NamedTuple):
    holder: int  # the address id of a person
    expires_at: int


class LoginCodes:
    """Use it on the event loop's thread only."""

    def __init__(self) -> None:
        self._codes: dict[bytes, _Code] = {}  # by the hash, oldest first
        self._failures: deque[int] = deque()  # their times

    def create(self, holder: int) -> tuple[str, int]:
        """Return a new code for a person, and until when it is good."""
        now = clock.now()
        self._drop_old(now)
        while len(self._codes) >= MOST:
            del self._codes[next(iter(self._codes))]
        code = secrets.token_urlsafe(32)
        self._codes[tokens.digest(code)] = _Code(holder, now + LIVES_MS)
        return code, now + LIVES_MS

    def take(self, code: str) -> int:
        """Return whose code this is; it is used up with that. Raises when it is not good."""
        now = clock.now()
        self._drop_old(now)
        found = self._codes.pop(tokens.digest(code), None)
        if found is None:
            self._note_failure(now)
            raise LoginRefused()
        return found.holder

    def _note_failure(self, now: int) -> None:
        """Count a failed login; raise when there were too many."""
        while self._failures and self._failures[0] <= now - WINDOW_MS:
            self._failures.popleft()
        if len(self._failures) >= FAILURES:
            wait = self._failures[0] + WINDOW_MS - now
            raise TooManyAttempts(seconds=max(1, -(-wait // 1000)))
        self._failures.append(now)

    def forget(self, holder: int) -> None:
        """End the codes of a person."""
        self._codes = {key: one for key, one in self._codes.items() if one.holder != holder}

    def _drop_old(self, now: int) -> None:
        self._codes = {key: one for key, one in self._codes.items() if one.expires_at > now}
