"""The metrics of a daemon: the table of their names, and the shape of their values.

The table is the only place that names them: `daemon.metrics` fills it, and docs/metrics.md is made from it.
Names, units and endings are those of Prometheus. The values of a label are few, and none of them is
something that somebody wrote: no text of a message, no token, no chat.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

Kind = Literal["counter", "gauge", "histogram"]


class Metric(NamedTuple):
    """What a metric is called and means."""

    name: str
    kind: Kind
    help: str
    labels: Sequence[str] = ()


class Sample(NamedTuple):
    """One value: of a metric, or of a bucket, the sum or the count of a histogram."""

    name: str
    labels: dict[str, str]
    value: float


# Upper ends of buckets, in seconds. A post takes milliseconds to seconds, or hours after an outage.
DELIVERY_SECONDS = (0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0, 120.0, 600.0, 3_600.0, 86_400.0)
RUN_SECONDS = (0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3_600.0)
WEBHOOK_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
# Upper ends of the sizes of conversations, in messages.
CONVERSATION_SIZES = (10, 100, 1_000, 10_000)

TABLE = (
    # --- mail ---
    Metric(
        "hiboss_messages_accepted_total",
        "counter",
        "Messages that were stored, since the store was made: sent, received, or made by hiboss itself.",
    ),
    Metric("hiboss_envelopes_arrived_total", "counter", "Envelopes that arrived, since the start."),
    Metric(
        "hiboss_envelopes_settled_total",
        "counter",
        "Envelopes that were delivered, given up or cancelled, since the start. Mail for a person is done "
        "when it arrives, and not counted here.",
        ("outcome",),
    ),
    Metric(
        "hiboss_delivery_failures_total",
        "counter",
        "Attempts to deliver an envelope that failed and are repeated later, since the start.",
    ),
    Metric(
        "hiboss_delivery_latency_seconds",
        "histogram",
        "From the arrival of an envelope for a channel until the platform confirmed it, with all retries.",
        ("adapter",),
    ),
    Metric(
        "hiboss_envelopes",
        "gauge",
        "Envelopes that are due, deferred, or failed and kept. Not more than hiboss_count_limit are counted.",
        ("state",),
    ),
    Metric(
        "hiboss_count_limit",
        "gauge",
        "The setting limits.count_exact_to: a count that reaches it may be larger.",
    ),
    Metric(
        "hiboss_oldest_due_age_seconds", "gauge", "How long the oldest due envelope waits; 0: none is due."
    ),
    Metric(
        "hiboss_lanes",
        "gauge",
        "Lanes of one address, and whole accounts, that wait after a failure or are paused.",
        ("scope", "state"),
    ),
    # --- conversations ---
    Metric(
        "hiboss_conversations_begun_total", "counter", "Conversations that began, since the store was made."
    ),
    Metric(
        "hiboss_recent_conversations",
        "gauge",
        "Conversations of the last 1,000 messages, by their size: up to 10 messages, more and up to 100, …",
        ("messages",),
    ),
    Metric(
        "hiboss_recent_conversation_messages_max",
        "gauge",
        "How many messages the largest conversation of the last 1,000 messages has.",
    ),
    # --- agents ---
    Metric("hiboss_agents", "gauge", "Registered agents. Not more than hiboss_count_limit are counted."),
    Metric(
        "hiboss_runs",
        "gauge",
        "Runs that work (active), and that are paused or wait for a person (still); agents and tasks that "
        "wait for a free place (waiting).",
        ("state",),
    ),
    Metric("hiboss_runs_limit", "gauge", "The setting runs.parallel_runs: how many runs work at once."),
    Metric(
        "hiboss_runs_ended_total",
        "counter",
        "Runs that ended, since the start. The provider attached is an open session, and unknown a run that "
        "began before the start.",
        ("provider", "outcome"),
    ),
    Metric(
        "hiboss_run_duration_seconds",
        "histogram",
        "From the beginning of a run until its outcome was stored.",
        ("provider",),
    ),
    Metric(
        "hiboss_control_events_total",
        "counter",
        "Controls that were sent, by their outcome, since the start.",
        ("event", "outcome"),
    ),
    Metric("hiboss_breaker_pulled", "gauge", "1 while the breaker is pulled: nobody gets a turn."),
    # --- doors ---
    Metric(
        "hiboss_requests_total", "counter", "Requests that came in by a door, since the start.", ("door",)
    ),
    Metric(
        "hiboss_request_errors_total",
        "counter",
        "Those of them that were answered with an error, by its code.",
        ("door", "code"),
    ),
    Metric("hiboss_connections", "gauge", "Clients that are connected to the unix socket."),
    Metric(
        "hiboss_web_connections",
        "gauge",
        "Clients that are connected over HTTP, with WebSockets and streams.",
    ),
    Metric("hiboss_subscriptions", "gauge", "Subscriptions to facts, by all doors."),
    Metric("hiboss_waiting_calls", "gauge", "Calls that wait for mail."),
    Metric(
        "hiboss_facts_total", "counter", "Facts that were published for those who follow, since the start."
    ),
    Metric(
        "hiboss_webhook_latency_seconds",
        "histogram",
        "How long a webhook took: in, from the request to its answer; out, from the call to its answer.",
        ("direction", "outcome"),
    ),
    # --- channels ---
    Metric(
        "hiboss_adapter_state",
        "gauge",
        "1 for the state that the adapter of a binding is in, 0 for the others.",
        ("binding", "adapter", "account", "state"),
    ),
    # --- the store ---
    Metric("hiboss_database_bytes", "gauge", "The size of the database file."),
    Metric("hiboss_wal_bytes", "gauge", "The size of its write-ahead log."),
    Metric("hiboss_writes_waiting", "gauge", "Changes in the queue of the store's writer."),
    # --- the process ---
    Metric("hiboss_process_cpu_seconds_total", "counter", "Processor time of the daemon, user and system."),
    Metric(
        "hiboss_process_resident_memory_bytes", "gauge", "Memory of the daemon; only where /proc tells it."
    ),
    Metric("hiboss_start_time_seconds", "gauge", "When the daemon started, in seconds since 1970."),
    Metric("hiboss_build_info", "gauge", "Always 1; the labels tell the versions.", ("version", "python")),
)
METRICS = {metric.name: metric for metric in TABLE}
CUMULATIVE_END = "+Inf"


class Histogram:
    """How often a value was at most so large, and the sum of all values."""

    __slots__ = ("counts", "ends", "total")

    def __init__(self, ends: Sequence[float]) -> None:
        self.ends = ends
        self.counts = [0] * (len(ends) + 1)  # the last one: above all ends
        self.total = 0.0

    def observe(self, value: float) -> None:
        """Count a value. A negative one, which only a clock that was set can give, counts as 0."""
        value = max(0.0, value)
        self.counts[bisect_left(self.ends, value)] += 1
        self.total += value

    def samples(self, name: str, labels: dict[str, str]) -> Iterator[Sample]:
        """Return its samples as Prometheus wants them: each bucket counts the smaller ones too."""
        count = 0
        for end, number in zip([*map(_shown, self.ends), CUMULATIVE_END], self.counts, strict=True):
            count += number
            yield Sample(f"{name}_bucket", {**labels, "le": end}, count)
        yield Sample(f"{name}_sum", labels, self.total)
        yield Sample(f"{name}_count", labels, count)


def _shown(end: float) -> str:
    return str(float(end))
