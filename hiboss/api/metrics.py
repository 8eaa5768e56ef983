"""The metrics of the daemon (`daemon.metrics`): what it counted, and what the store and the parts show now.

The table of names is core/metrics.py. What is read from the store costs the same whatever number of messages
and conversations it has, so that a program can ask every few seconds. How much `media/` holds is not told:
only a walk through it would show it.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Annotated, Any

from pydantic import Field
from typing_extensions import TypedDict

from .. import __version__
from ..core import clock
from ..core.metrics import CONVERSATION_SIZES, METRICS, TABLE, Histogram, Kind, Sample
from ..routing.measurements import Measurements
from ..store import breaker, counters, due_envelopes, metric_counts
from ..store.connection import Connection
from .auth import Caller, check_level
from .context import Context
from .operation import Level, Nothing, operation

OBSERVE = "observe"  # the right
ADAPTER_STATES = ("starting", "running", "failed")
MEMORY_FILE = "/proc/self/statm"  # Linux only


class SampleJson(TypedDict):
    name: Annotated[str, Field(description="that of the metric, or with _bucket, _sum or _count after it")]
    labels: Annotated[dict[str, str], Field(description="what distinguishes it from the other samples")]
    value: Annotated[float, Field(description="in the base unit that the name ends with, like seconds")]


class FamilyJson(TypedDict):
    name: Annotated[str, Field(description="begins with hiboss_")]
    type: Annotated[Kind, Field(description="as Prometheus has it")]
    help: Annotated[str, Field(description="what it means")]
    samples: Annotated[list[SampleJson], Field(description="empty: nothing of it was seen yet")]


class Families(TypedDict):
    families: Annotated[list[FamilyJson], Field(description="all metrics, in a fixed order")]


@operation("daemon.metrics", level=Level.RESTRICTED, effect="read", result=Families)
async def metrics(context: Context, caller: Caller, params: Nothing) -> Families:
    """Show the metrics of the daemon, for monitoring. It needs the right observe."""
    check_level(replace(caller, right=OBSERVE), context.policy.needs(OBSERVE))
    found = [*_counted(context.measurements), *_of_parts(context), *_of_process(context)]
    now = clock.now()
    found += await context.store.read_in_thread(lambda connection: list(_stored(context, connection, now)))
    return {"families": _families(found)}


def _families(samples: Iterable[Sample]) -> list[FamilyJson]:
    """Put the samples below their metrics, in the order of the table."""
    made: dict[str, FamilyJson] = {
        one.name: {"name": one.name, "type": one.kind, "help": one.help, "samples": []} for one in TABLE
    }
    for name, labels, value in samples:
        whole = name if name in METRICS else name.rpartition("_")[0]
        made[whole]["samples"].append({"name": name, "labels": labels, "value": value})
    return list(made.values())


# --- what was counted since the start ------------------------------------------------


def _counted(seen: Measurements) -> Iterator[Sample]:
    yield Sample("hiboss_envelopes_arrived_total", {}, seen.arrived)
    yield Sample("hiboss_delivery_failures_total", {}, seen.retried)
    yield from _labelled("hiboss_envelopes_settled_total", seen.settled)
    yield from _labelled("hiboss_runs_ended_total", seen.runs)
    yield from _labelled("hiboss_control_events_total", seen.controls)
    yield from _labelled("hiboss_requests_total", seen.requests)
    yield from _labelled("hiboss_request_errors_total", seen.errors)
    yield from _measured("hiboss_delivery_latency_seconds", seen.delivery_seconds)
    yield from _measured("hiboss_run_duration_seconds", seen.run_seconds)
    yield from _measured("hiboss_webhook_latency_seconds", seen.webhook_seconds)


def _labelled(name: str, values: Mapping[Any, float]) -> Iterator[Sample]:
    """Return a sample for each value, whose key is a label or several."""
    for key, value in values.items():
        yield Sample(name, _labels(name, key), value)


def _measured(name: str, values: Mapping[Any, Histogram]) -> Iterator[Sample]:
    for key, histogram in values.items():
        yield from histogram.samples(name, _labels(name, key))


def _labels(name: str, values: str | tuple[str, ...]) -> dict[str, str]:
    given = (values,) if isinstance(values, str) else values
    return dict(zip(METRICS[name].labels, given, strict=True))


# --- what the parts show now ---------------------------------------------------------


def _of_parts(context: Context) -> Iterator[Sample]:
    yield from _labelled("hiboss_runs", context.runner.load)
    yield Sample("hiboss_runs_limit", {}, context.settings.parallel_runs)
    yield Sample("hiboss_connections", {}, context.connections())
    yield Sample("hiboss_web_connections", {}, context.gateway.connections())
    yield Sample("hiboss_subscriptions", {}, context.facts.followers)
    yield Sample("hiboss_facts_total", {}, context.facts.number)
    yield Sample("hiboss_waiting_calls", {}, context.waiters.number)
    yield Sample("hiboss_writes_waiting", {}, context.store.waiting)
    yield Sample("hiboss_count_limit", {}, context.settings.count_exact_to)
    for number, slot in context.supervisor.slots.items():
        for state in ADAPTER_STATES:
            whose = (f"b{number}", slot.type, slot.account, state)
            yield Sample(
                "hiboss_adapter_state", _labels("hiboss_adapter_state", whose), int(slot.state == state)
            )


def _of_process(context: Context) -> Iterator[Sample]:
    used = os.times()
    yield Sample("hiboss_process_cpu_seconds_total", {}, used.user + used.system)
    if (memory := _resident_memory()) is not None:
        yield Sample("hiboss_process_resident_memory_bytes", {}, memory)
    yield Sample("hiboss_start_time_seconds", {}, context.started_at / 1000)
    versions = {"version": __version__, "python": platform.python_version()}
    yield Sample("hiboss_build_info", versions, 1)
    yield Sample("hiboss_database_bytes", {}, _size(context.home.database))
    yield Sample("hiboss_wal_bytes", {}, _size(f"{context.home.database}-wal"))


def _resident_memory() -> int | None:
    try:
        with open(MEMORY_FILE, encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return None


def _size(path: str) -> int:
    try:
        return os.path.getsize(path)
    except OSError:  # there is no log before the first write
        return 0


# --- what the store knows ------------------------------------------------------------


def _stored(context: Context, connection: Connection, now: int) -> Iterator[Sample]:
    made = metric_counts.rows_made(connection)
    yield Sample("hiboss_messages_accepted_total", {}, made.get("message", 0))
    yield Sample("hiboss_conversations_begun_total", {}, made.get("conversation", 0))
    most = context.settings.count_exact_to
    counts = counters.counts(connection, most)
    numbers = {word: most if isinstance(count, str) else count for word, count in counts.items()}
    yield Sample("hiboss_agents", {}, numbers.pop("agents"))
    yield from _labelled("hiboss_envelopes", numbers)
    oldest = due_envelopes.oldest(connection)
    age = 0 if oldest is None else max(0, now - oldest)
    yield Sample("hiboss_oldest_due_age_seconds", {}, age / 1000)
    yield from _labelled("hiboss_lanes", metric_counts.troubled_lanes(connection))
    yield Sample("hiboss_breaker_pulled", {}, int(breaker.get(connection) is not None))
    sizes = metric_counts.recent_sizes(connection, CONVERSATION_SIZES)
    words = [*map(str, CONVERSATION_SIZES), "more"]
    yield from _labelled("hiboss_recent_conversations", dict(zip(words, sizes.numbers, strict=True)))
    yield Sample("hiboss_recent_conversation_messages_max", {}, sizes.largest)
