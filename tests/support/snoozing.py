"""Snoozing in a daemon whose clock the test moves: what somebody does with mail, and what it sees then."""

from __future__ import annotations

from typing import Any

from hiboss.core import clock
from hiboss.testing.frozen_clock import NOON
from tests.support.in_process_daemon import Envelope, InProcessDaemon

START = clock.to_ms(NOON)
MINUTE = 60_000
HIDDEN = {"box": "snoozed", "waits": "snooze"}
BACK = {"box": "inbox", "waits": None, "snoozed_until": None}


async def snooze(
    daemon: InProcessDaemon, *ids: str, until: str = "+1h", who: str = "nex", **more: Any
) -> int:
    return int((await daemon.ask("envelope.snooze", who, ids=list(ids), until=until, **more))["changed"])


async def unsnooze(daemon: InProcessDaemon, *ids: str, who: str = "nex", **more: Any) -> int:
    return int((await daemon.ask("envelope.unsnooze", who, ids=list(ids), **more))["changed"])


async def mark(daemon: InProcessDaemon, verb: str, *ids: str, who: str = "nex", **more: Any) -> int:
    return int((await daemon.ask(f"envelope.{verb}", who, ids=list(ids), **more))["changed"])


async def sent(daemon: InProcessDaemon, text: str = "hello", to: str = "agent:nex", **more: Any) -> str:
    (number,) = await daemon.send(to, text=text, who="boss", **more)
    return number


async def snoozed(daemon: InProcessDaemon, text: str = "hello", **more: Any) -> str:
    """Return an envelope of nex that is snoozed for an hour."""
    number = await sent(daemon, text, **more)
    assert await snooze(daemon, number) == 1
    return number


async def claimed(daemon: InProcessDaemon, who: str = "nex", **more: Any) -> list[str]:
    return [one["text"] for one in (await daemon.ask("envelope.claim", who, **more))["envelopes"]]


async def polled(daemon: InProcessDaemon, who: str = "nex") -> list[str]:
    return [one["text"] for one in (await daemon.ask("envelope.poll", who))["envelopes"]]


async def waited(daemon: InProcessDaemon, who: str = "nex", timeout: str = "0.01s") -> list[str]:
    return [one["text"] for one in (await daemon.ask("envelope.wait", who, timeout=timeout))["envelopes"]]


async def unread(daemon: InProcessDaemon, who: str = "nex") -> tuple[int, int]:
    """Return how much is unread, by the list and by the table that counts it."""
    listed = await daemon.ask("envelope.list", who, unread=True, count=True)
    own = f"{'user' if who == 'boss' else 'agent'}:{who}"
    (row,) = daemon.rows(
        """
        SELECT ifnull(sum(u.number), 0) FROM unread u JOIN address a ON a.id = u.address
        WHERE a.fold = ? AND a.retired_at IS NULL
        """,
        own,
    )
    return listed["total"], row[0]


def has(envelope: Envelope, wanted: dict[str, Any]) -> bool:
    return {key: envelope[key] for key in wanted} == wanted


async def control(daemon: InProcessDaemon, event: str, **target: Any) -> None:
    answer = await daemon.ask("control.send", event=f"stream.{event}", **target)
    assert answer["outcome"] == "applied", answer
