"""Every bad input: for each operation what is wrong with a request, and the stable code it is answered with.

A row is sent over the socket and, where it has words for it, by the command line. `%name` stands
for a fact of the scene (`bad_input_scene.py`). What can be wrong with any parameter whatever it
means (its type, its absence, its spelling, who asks) is made from the declarations by
`mechanical`; what a parameter means is written out in the tables of a few nouns each
(`bad_input_agents.py` and its neighbours); what is taken at a limit and refused one over it, here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.api import (
    bad_input_agents,
    bad_input_asks,
    bad_input_channels,
    bad_input_envelopes,
    bad_input_facts,
    bad_input_groups,
    bad_input_mailboxes,
    bad_input_messages,
    bad_input_people,
    bad_input_runs,
    bad_input_schedules,
)
from tests.api.bad_input_row import MARKS, RIGHT, SEND, TAG, Row, row

WRITTEN = [
    *bad_input_envelopes.ROWS,
    *bad_input_agents.ROWS,
    *bad_input_people.ROWS,
    *bad_input_runs.ROWS,
    *bad_input_asks.ROWS,
    *bad_input_channels.ROWS,
    *bad_input_facts.ROWS,
    *bad_input_messages.ROWS,
    *bad_input_schedules.ROWS,
    *bad_input_groups.ROWS,
    *bad_input_mailboxes.ROWS,
]


def written() -> list[Row]:
    """What is wrong because of what a parameter means."""
    return WRITTEN


@dataclass(frozen=True, kw_only=True, slots=True)
class Limit:
    operation: str
    most: dict[str, Any]
    over: Row

    def __str__(self) -> str:
        return f"{self.operation}-{'-'.join(self.over.params)}-{self.over.code}"


def _limit(operation: str, name: str, most: Any, over: Any, code: str, says: str = "", **more: Any) -> Limit:
    base: dict[str, Any] = more.pop("base", RIGHT.get(operation, {}))
    refused = row(operation, {**base, name: over}, code, f"{name}|{says}" if says else "", **more)
    return Limit(operation=operation, most={**base, name: most}, over=refused)


SEVERAL = {"envelope.release": "%claimed", "envelope.retry": "%failed", "envelope.cancel": "%sent"}


def _deep(levels: int) -> dict[str, Any]:
    value: Any = 1
    for _ in range(levels):
        value = {"a": value}
    return dict(value)


def limits() -> list[Limit]:
    send, boss = "envelope.send", {**SEND, "from": "user:boss"}
    mib = 1024 * 1024
    return [
        _limit(send, "text", "ü" * (mib // 2), "ü" * (mib // 2) + "x", "too_large", "1048577 bytes|1048576"),
        _limit(send, "subject", "s" * 1024, "s" * 1025, "too_large", "1025 bytes|1024"),
        _limit(send, "trace_id", "t" * 256, "t" * 257, "too_large", "257 bytes|256"),
        _limit(send, "key", "k" * 256, "l" * 257, "too_large", "257 bytes|256"),
        _limit(send, "from_name", "n" * 256, "n" * 257, "too_large", "257 bytes", base=boss, by="boss"),
        _limit(send, "metadata", {"a": "m" * 16_375}, {"a": "m" * 16_376}, "too_large", "16385 bytes|16384"),
        _limit(send, "metadata", _deep(32), _deep(33), "invalid_params", "32 levels"),
        _limit(send, "to", ["agent:ada"] * 100, ["agent:ada"] * 101, "too_large"),
        _limit(send, "attachments", ["%file"] * 20, ["%file"] * 21, "too_large"),
        _limit(send, "attachments", ["%full"], ["%over"], "too_large"),
        _limit(send, "deliver_at", "+100Y", "+101Y", "too_far"),
        _limit(send, "ack_by", "9600h", "9600h1s", "bad_duration"),
        _limit(send, "scopes", [TAG] * 20, [TAG] * 21, "invalid_params", "20"),
        _limit(send, "refs", [{**TAG, "value": "v" * 200}], [{**TAG, "value": "v" * 201}], "invalid_params"),
        _limit("envelope.snooze", "until", "+100Y", "+101Y", "too_far"),
        _limit("message.edit", "text", "x" * mib, "x" * (mib + 1), "too_large", "1048577 bytes|1048576"),
        _limit("chat.post", "content", "x" * mib, "x" * (mib + 1), "too_large", "1048577 bytes|1048576"),
        _limit("ask.create", "question", "x" * mib, "x" * (mib + 1), "too_large", "1048577 bytes|1048576"),
        _limit("ask.create", "options", [*map(str, range(20))], [*map(str, range(21))], "bad_options"),
        _limit("ask.create", "options", ["ü" * 200], ["ü" * 201], "bad_options"),
        _limit("ask.create", "timeout", "8784h", "8784h1s", "bad_duration"),
        _limit("ask.list", "page_size", 100, 101, "invalid_params", "1 to 100"),
        _limit("envelope.list", "page_size", 100, 101, "invalid_params", "1 to 100"),
        _limit("envelope.list", "page_size", 1, 0, "invalid_params", "1 to 100"),
        *[
            _limit(f"envelope.{verb}", "ids", ["%own"] * 100, ["%own"] * 101, "invalid_params", "100")
            for verb in MARKS
        ],
        _limit("message.markRead", "message_ids", ["%own"] * 100, ["%own"] * 101, "invalid_params", "100"),
        *[
            _limit(name, "ids", [own] * 100, [own] * 101, "invalid_params", "100")
            for name, own in SEVERAL.items()
        ],
        _limit("envelope.claim", "limit", 100, 101, "invalid_params", "1 to 100"),
        _limit("envelope.claim", "limit", 1, 0, "invalid_params", "1 to 100"),
        _limit("envelope.claim", "lease", "24h", "24h0.001s", "bad_duration"),
        _limit("cron.create", "every", "8784h", "8784h1s", "bad_duration", base=SEND),
        _limit("cron.create", "at", "+100Y", "+101Y", "too_far", base=SEND),
        _limit("cron.create", "name", "n" * 256, "n" * 257, "too_large", "257 bytes|256"),
        _limit("cron.explain", "count", 100, 101, "invalid_params", "1 to 100"),
        _limit("cron.explain", "count", 1, 0, "invalid_params", "1 to 100"),
        _limit("envelope.poll", "session", "s" * 256, "s" * 257, "too_large", "257 bytes|256"),
        _limit("agent.register", "name", "n" * 64, "n" * 65, "bad_name"),
        _limit("agent.set", "daily_tokens", 10**12, 10**12 + 1, "invalid_params"),
        _limit("agent.set", "daily_cost", 10.0**9, 10.0**9 + 1, "invalid_params"),
        _limit("agent.pause", "reason", "r" * 256, "r" * 257, "too_large", "257 bytes|256"),
        _limit("run.list", "page_size", 100, 101, "invalid_params", "1 to 100"),
        _limit("run.list", "page_size", 1, 0, "invalid_params", "1 to 100"),
        _limit("run.list", "trace", "t" * 256, "t" * 257, "too_large", "257 bytes|256"),
        _limit("user.register", "name", "u" * 64, "u" * 65, "bad_name"),
        _limit("conversation.messages", "page_size", 100, 101, "invalid_params", "1 to 100"),
        _limit("conversation.messages", "before", 2**63 - 1, 2**63, "invalid_params"),
        _limit("agent.set", "role", "ü" * 512, "ü" * 512 + "x", "too_large", "1025 bytes|1024"),
        _limit("boss.set", "name", "ü" * 128, "ü" * 128 + "x", "too_large", "257 bytes|256"),
        _limit("setup.execute", "boss_name", "n" * 256, "n" * 257, "too_large", "257 bytes|256"),
    ]
