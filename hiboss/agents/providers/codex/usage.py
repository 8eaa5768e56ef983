"""The tokens of one turn. Codex announces the sums of a whole thread: what was there before is taken off.

`total` is repeated, also when no model call was made: so sums are compared, and never added up. The sums of
threads of sub-agents are counted too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ....core.contracts.provider import Usage


class Sums(NamedTuple):
    """Tokens that were read (with those of the cache) and written."""

    read: int = 0
    written: int = 0

    def minus(self, other: Sums) -> Sums:
        # After a context that was too full the sums begin anew.
        read = self.read - other.read if self.read >= other.read else self.read
        return Sums(read, self.written - other.written if self.written >= other.written else self.written)


class TokenCount:
    """Counts one turn of one thread."""

    def __init__(self, thread: str, *, is_new: bool) -> None:
        self._thread = thread
        self._before: dict[str, Sums] = {thread: Sums()} if is_new else {}
        self._now: dict[str, Sums] = {}
        self.context: int | None = None

    def take(self, thread: str, usage: Mapping[str, Any], *, before: bool, called: bool) -> bool:
        """Take what was announced. Return whether it is about this turn.

        `before`: it is about an earlier turn of the thread, as announced when it is resumed. `called`: the
        model has answered in this turn.
        """
        total, last = _sums(usage.get("total")), _sums(usage.get("last"))
        if before:
            self._before[thread] = total
            return False
        if thread not in self._before:  # a fork: its sums are not announced before
            self._before[thread] = total.minus(last) if called or thread != self._thread else total
        self._now[thread] = total
        if thread == self._thread:
            # After the conversation was summarized there is only an estimate of all.
            self.context = last.read or _number(usage.get("last"), "totalTokens")
        return True

    def usage(self, *, exact: bool = False) -> Usage | None:
        """Return the tokens of the turn so far; None if nothing was announced."""
        if not self._now:
            return None
        spent = [now.minus(self._before[thread]) for thread, now in self._now.items()]
        read, written = sum(one.read for one in spent), sum(one.written for one in spent)
        return Usage(tokens_in=read, tokens_out=written, context=self.context, exact=exact)


def _sums(given: Any) -> Sums:
    return Sums(_number(given, "inputTokens"), _number(given, "outputTokens"))


def _number(given: Any, name: str) -> int:
    found = given.get(name) if isinstance(given, dict) else None
    return found if isinstance(found, int) and found > 0 else 0
