"""The tokens and the cost of one turn, from what the program prints.

While a model call runs, its stream says what it reads and writes. Each result then has the sums of all calls
since the result before it, also of those that are not streamed (subagents, titles).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ....core.contracts.provider import Usage

READ = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
READ_BY_MODEL = ("inputTokens", "cacheCreationInputTokens", "cacheReadInputTokens")


class Meter:
    """Counts over all results of one process."""

    def __init__(self) -> None:
        self.context: int | None = None
        self._exact = True  # no result so far was cut short, and no call broke off
        self._open: set[str] = set()  # the calls that have not said yet what they wrote
        self._done = [0, 0]  # tokens read and written, up to the last result
        self._cost: float | None = None
        self._begun = [0, 0]  # of the calls since then
        self._written: dict[str, int] = {}  # by message, since then
        self._results = 0

    def call_began(self, message: str, usage: Mapping[str, Any], *, of_main: bool) -> None:
        """Note a model call: what it reads."""
        read = _sum(usage, READ)
        self._begun[0] += read
        self._written[message] = _count(usage.get("output_tokens"))
        if of_main:
            self._open.add(message)
            self.context = read or self.context

    def call_wrote(self, message: str, usage: Mapping[str, Any]) -> None:
        """Note what a model call has written so far."""
        self._written[message] = max(self._written.get(message, 0), _count(usage.get("output_tokens")))
        self._open.discard(message)

    def call_broke(self) -> None:
        """Note that a model call broke off: its tokens are not all known."""
        self._exact = False

    def result(self, line: Mapping[str, Any], *, cut_short: bool) -> None:
        """Take the sums of a result. One that was cut short has not all of them."""
        models = line.get("model_usage_since_last_result")
        by_model = (
            [one for one in models.values() if isinstance(one, dict)] if isinstance(models, dict) else []
        )
        usage = line.get("usage")
        sums: Mapping[str, Any] = usage if isinstance(usage, dict) else {}
        read, written = _sum(sums, READ), _count(sums.get("output_tokens"))
        read = max(read, sum(_sum(one, READ_BY_MODEL) for one in by_model))
        written = max(written, sum(_count(one.get("outputTokens")) for one in by_model))
        if cut_short or not read:
            read, written = max(read, self._begun[0]), max(written, sum(self._written.values()))
        self._exact = self._exact and not self._open and not (cut_short and any(self._begun))
        self._open.clear()
        self._done = [self._done[0] + read, self._done[1] + written]
        self._begun, self._written = [0, 0], {}
        self._results += 1
        self._add_cost(line, [one.get("costUSD") for one in by_model] if isinstance(models, dict) else None)

    def _add_cost(self, line: Mapping[str, Any], costs: list[Any] | None) -> None:
        """Add the cost since the last result. `total_cost_usd` is the whole session's, in newer versions."""
        if costs is not None:
            self._cost = (self._cost or 0.0) + sum(one for one in costs if _is_number(one))
        elif _is_number(line.get("total_cost_usd")):
            self._cost = float(line["total_cost_usd"])

    def now(self) -> Usage:
        """Return the totals so far."""
        read, written = self._done[0] + self._begun[0], self._done[1] + sum(self._written.values())
        exact = bool(self._results) and self._exact and not any(self._begun) and not self._written
        return Usage(read, written, self._cost, self.context, exact)


def _sum(usage: Mapping[str, Any], names: tuple[str, ...]) -> int:
    return sum(_count(usage.get(name)) for name in names)


def _count(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value >= 0
