"""`daemon.metrics`: what is counted, what the store and the parts show, who may see it; and `health`."""

from __future__ import annotations

import re
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

import hiboss
from hiboss.api.health import health
from hiboss.core.errors import Forbidden
from hiboss.core.metrics import TABLE, Histogram
from hiboss.testing.running_daemon import RunningDaemon
from hiboss.web.metrics import CONTENT_TYPE, exposition
from tests.support.daemons import ask
from tests.support.followers import following
from tests.support.in_process_daemon import InProcessDaemon, frozen
from tests.support.parties import Party, agents, boss
from tests.support.scripted_channels import (
    OK,
    Place,
    envelope_error,
    lane_error,
)
from tests.support.shell_agents import Worker
from tests.support.waits import wait_until

SECRET_TEXT = "the launch code is 4711"


class Metrics:
    """The samples of one moment."""

    def __init__(self, families: list[dict[str, Any]]) -> None:
        self.samples = [sample for family in families for sample in family["samples"]]

    def __call__(self, name: str, **labels: str) -> float:
        """Return a value; the sum of all samples that have these labels, and others."""
        return sum(
            one["value"]
            for one in self.samples
            if one["name"] == name and labels.items() <= one["labels"].items()
        )


def shown(daemon: RunningDaemon) -> Metrics:
    return Metrics(boss(daemon).call("daemon.metrics")["families"])


def grown(before: Metrics, after: Metrics, name: str, **labels: str) -> float:
    return after(name, **labels) - before(name, **labels)


# --- what is counted -----------------------------------------------------------------


def test_a_send_is_counted_once_as_a_message_and_once_for_each_recipient(
    daemon: RunningDaemon, ada: Party, bob: Party, eve: Party
) -> None:
    before = shown(daemon)
    ada.send(bob, eve)
    ada.send(bob, deliver_at="+2h")
    after = shown(daemon)
    assert grown(before, after, "hiboss_messages_accepted_total") == 2
    assert grown(before, after, "hiboss_envelopes_arrived_total") == 2
    assert grown(before, after, "hiboss_envelopes", state="due") == 2
    assert grown(before, after, "hiboss_envelopes", state="deferred") == 1
    assert grown(before, after, "hiboss_conversations_begun_total") == 2
    assert after("hiboss_oldest_due_age_seconds") >= 0


def test_envelopes_are_counted_by_how_they_ended(daemon: RunningDaemon, ada: Party, bob: Party) -> None:
    numbers = [ada.tell(bob) for _ in range(3)]
    before = shown(daemon)
    bob.call("envelope.ack", ids=numbers[:1])
    ada.call("envelope.cancel", ids=numbers[1:2])
    boss(daemon).call("agent.delete", name=bob.name)
    after = shown(daemon)
    done = {
        word: grown(before, after, "hiboss_envelopes_settled_total", outcome=word)
        for word in ("failed", "cancelled")
    }
    assert done == {"failed": 1, "cancelled": 1}
    assert grown(before, after, "hiboss_envelopes", state="failed") == 1


def test_a_delivery_is_measured_when_the_platform_confirms_it_and_its_failures_are_counted(
    daemon: RunningDaemon, tmp_path: Path
) -> None:
    place = Place(tmp_path).bound(daemon)
    before = shown(daemon)
    place.script(OK, envelope_error(), lane_error(retry_after=3600))
    place.send("first")
    place.wait_for("first")
    place.wait_for_status(place.send("second"), "failed")
    place.send("third")
    wait_until(lambda: place.lane().get("state") == "waiting")
    after = shown(daemon)
    assert grown(before, after, "hiboss_delivery_latency_seconds_count", adapter="scripted") == 1
    assert grown(before, after, "hiboss_delivery_latency_seconds_bucket", adapter="scripted", le="+Inf") == 1
    assert grown(before, after, "hiboss_delivery_failures_total") == 1
    assert grown(before, after, "hiboss_envelopes_settled_total", outcome="done") == 1
    assert grown(before, after, "hiboss_envelopes_settled_total", outcome="failed") == 1
    assert grown(before, after, "hiboss_lanes", scope="lane", state="waiting") == 1
    assert after("hiboss_adapter_state", account=place.name, state="running", adapter="scripted") == 1
    assert after("hiboss_adapter_state", account=place.name) == 1  # it is in one state


def test_runs_are_counted_by_provider_and_outcome_and_measured(daemon: RunningDaemon, tmp_path: Path) -> None:
    worker = Worker(daemon, tmp_path)
    before = shown(daemon)
    worker.program.waits()
    boss(daemon).tell(worker)
    run = worker.under_way()
    assert grown(before, shown(daemon), "hiboss_runs", state="active") == 1
    assert boss(daemon).call("control.send", event="stream.pause", run=run["id"])["outcome"] == "applied"
    assert grown(before, shown(daemon), "hiboss_runs", state="still") == 1
    boss(daemon).call("control.send", event="stream.resume", run=run["id"])
    worker.program.let_go()
    worker.settled()
    worker.program.hangs()
    boss(daemon).tell(worker)
    boss(daemon).call("run.cancel", id=worker.under_way(2)["id"])
    worker.settled(2)
    after = shown(daemon)
    assert {
        grown(before, after, "hiboss_runs_ended_total", provider="command", outcome=outcome)
        for outcome in ("completed", "cancelled")
    } == {1}
    assert grown(before, after, "hiboss_run_duration_seconds_count", provider="command") == 2
    assert grown(before, after, "hiboss_run_duration_seconds_sum", provider="command") > 0
    assert grown(before, after, "hiboss_runs") == 0
    for event in ("pause", "resume", "cancel"):
        applied = {"event": f"stream.{event}", "outcome": "applied"}
        assert grown(before, after, "hiboss_control_events_total", **applied) == 1


def test_requests_and_their_errors_are_counted(daemon: RunningDaemon, nex: Party) -> None:
    before = shown(daemon)
    with daemon.connect() as connection:
        ask(connection, "daemon.ping")
        ask(connection, "no.such")
        ask(connection, "daemon.ping", token="hba_wrong")
    assert nex.refusal("envelope.send", to="agent:nobody-here", text="x") == "unknown_recipient"
    after = shown(daemon)
    assert grown(before, after, "hiboss_requests_total", door="socket") == 5  # with the look at the metrics
    for code in ("method_not_found", "bad_token", "unknown_recipient"):
        assert grown(before, after, "hiboss_request_errors_total", door="socket", code=code) == 1
    assert grown(before, after, "hiboss_request_errors_total") == 3


def test_the_parts_show_who_is_connected_follows_and_is_stopped(daemon: RunningDaemon) -> None:
    before = shown(daemon)
    with following(daemon) as follower:
        follower.subscribe(daemon.token("boss"))
        during = shown(daemon)
        assert grown(before, during, "hiboss_connections") == 1
        assert grown(before, during, "hiboss_subscriptions") == 1
    boss(daemon).call("breaker.pull")
    assert shown(daemon)("hiboss_breaker_pulled") == 1
    boss(daemon).call("breaker.release")
    assert shown(daemon)("hiboss_breaker_pulled") == 0


def test_the_process_and_its_files_are_measured(daemon: RunningDaemon) -> None:
    found, status = shown(daemon), daemon.call("daemon.status")
    assert found("hiboss_build_info", version=hiboss.__version__) == 1
    assert found("hiboss_database_bytes") == status["database_bytes"]
    assert found("hiboss_wal_bytes") > 0
    assert found("hiboss_process_cpu_seconds_total") > 0
    assert found("hiboss_process_resident_memory_bytes") > 1024 * 1024
    assert found("hiboss_start_time_seconds") > 1_600_000_000
    assert found("hiboss_runs_limit") == 4


def test_conversations_are_shown_by_their_size(daemon: RunningDaemon, ada: Party, bob: Party) -> None:
    ada.flood(bob, 11)
    found = shown(daemon)
    assert found("hiboss_recent_conversations", messages="100") >= 1
    assert found("hiboss_recent_conversation_messages_max") >= 11


def test_a_count_stops_at_the_limit_of_exact_counts(daemon: RunningDaemon, ada: Party, bob: Party) -> None:
    ada.flood(bob, 1_001)
    found = shown(daemon)
    assert found("hiboss_envelopes", state="due") == found("hiboss_count_limit") == 1_000
    bob.call("envelope.ack", all=True)


# --- their form ----------------------------------------------------------------------


def test_the_metrics_are_those_of_the_table_with_its_labels(daemon: RunningDaemon) -> None:
    found = boss(daemon).call("daemon.metrics")["families"]
    assert [(one["name"], one["type"], one["help"]) for one in found] == [one[:3] for one in TABLE]
    for metric, family in zip(TABLE, found, strict=True):
        assert metric.name.endswith("_total") == (metric.kind == "counter"), metric.name
        assert re.fullmatch(r"hiboss_[a-z]+(_[a-z]+)*", metric.name)
        for sample in family["samples"]:
            assert sample["name"].removeprefix(metric.name) in ("", "_bucket", "_sum", "_count")
            assert [label for label in sample["labels"] if label != "le"] == list(metric.labels), metric.name
    names = [(one["name"], tuple(one["labels"].items())) for one in Metrics(found).samples]
    assert len(set(names)) == len(names), "one sample for each value of the labels"


def test_nothing_that_somebody_wrote_is_in_a_metric(daemon: RunningDaemon, tmp_path: Path) -> None:
    place = Place(tmp_path).bound(daemon)
    place.script(lane_error(text=SECRET_TEXT))
    place.send(SECRET_TEXT, subject=SECRET_TEXT, metadata={"a": SECRET_TEXT})
    wait_until(lambda: place.lane().get("state") == "waiting")
    boss(daemon).refusal("envelope.send", to=f"agent:{'x' * 20}", text=SECRET_TEXT)
    boss(daemon).refusal(f"no.{'y' * 20}")
    text = str(boss(daemon).call("daemon.metrics"))
    assert not [word for word in (SECRET_TEXT, "x" * 20, "y" * 20, "hbb_", "hba_") if word in text]


# --- who may see them ----------------------------------------------------------------


def test_the_right_observe_decides_who_may_see_them(daemon: RunningDaemon) -> None:
    low, high = agents(daemon, 2)
    boss(daemon).call("agent.permission.set", name=high.name, level="privileged")
    assert low.refusal("daemon.metrics") == "forbidden"
    assert high.call("daemon.metrics")["families"]
    boss(daemon).call("permission.policy.set", policy={"observe": "standard"})
    try:
        assert low.call("daemon.metrics")["families"]
        boss(daemon).call("permission.policy.set", policy={"observe": "boss"})
        assert high.refusal("daemon.metrics") == "forbidden"
    finally:
        boss(daemon).call("permission.policy.set", policy={})
    assert Party(daemon, "user:nobody", "hbu_wrong").refusal("daemon.metrics") == "bad_token"


@frozen()
async def test_another_door_shows_them_and_counts_its_own_requests(daemon: InProcessDaemon) -> None:
    dispatcher = daemon.daemon.dispatcher
    found = await dispatcher.call("daemon.metrics", {}, daemon.token("boss"), door="web")
    with pytest.raises(Forbidden):
        await dispatcher.call("daemon.metrics", {}, daemon.token("nex"), door="web")
    dispatcher.refused("web", Forbidden(operation="x", needed="boss", caller="nobody", level="none"))
    found = await dispatcher.call("daemon.metrics", {}, daemon.token("boss"), door="web")
    seen = Metrics(found["families"])
    assert seen("hiboss_requests_total", door="web") == 3
    assert seen("hiboss_request_errors_total", door="web", code="forbidden") == 2


@frozen()
async def test_webhooks_are_measured_by_direction_and_outcome(daemon: InProcessDaemon) -> None:
    measurements = daemon.daemon.wiring.measurements
    measurements.observe_webhook("in", 0.02, "accepted")
    measurements.observe_webhook("in", 70.0, "accepted")
    measurements.observe_webhook("out", 0.2, "anything that a server says")
    seen = Metrics((await daemon.ask("daemon.metrics"))["families"])
    name = "hiboss_webhook_latency_seconds"
    inbound = {"direction": "in", "outcome": "accepted"}
    assert [seen(f"{name}_bucket", **inbound, le=end) for end in ("0.01", "0.025", "10.0", "+Inf")] == [
        0,
        1,
        1,
        2,
    ]
    assert (seen(f"{name}_sum", **inbound), seen(f"{name}_count", **inbound)) == (70.02, 2)
    assert seen(f"{name}_count", direction="out", outcome="other") == 1


@frozen()
async def test_a_start_begins_at_0_and_what_the_store_knows_goes_on(daemon: InProcessDaemon) -> None:
    await daemon.send("user:boss")
    before = Metrics((await daemon.ask("daemon.metrics"))["families"])
    await daemon.restart(hours=1)
    after = Metrics((await daemon.ask("daemon.metrics"))["families"])
    assert (before("hiboss_envelopes_arrived_total"), after("hiboss_envelopes_arrived_total")) == (1, 0)
    assert after("hiboss_messages_accepted_total") == before("hiboss_messages_accepted_total") == 1


# --- health --------------------------------------------------------------------------


@frozen(quiet=False)
async def test_health_is_ok_while_the_store_can_be_read_and_says_nothing_else(
    daemon: InProcessDaemon,
) -> None:
    context = daemon.daemon.dispatcher._context
    assert health(context) == {"status": "ok", "version": hiboss.__version__}
    with closing(sqlite3.connect(daemon.home.database)) as other:
        other.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # so that what is read next comes from the file
    whole = Path(daemon.home.database).read_bytes()
    Path(daemon.home.database).write_bytes(b"Dear diary,\n" * 100_000)
    try:
        assert health(context) == {"status": "failing", "version": hiboss.__version__}
    finally:
        Path(daemon.home.database).write_bytes(whole)


# --- as text ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def families(daemon: RunningDaemon) -> Iterator[list[Any]]:
    ada, bob = agents(daemon, 2)
    ada.tell(bob)
    ada.refusal("envelope.get", id="e99")
    yield boss(daemon).call("daemon.metrics")["families"]


def read(text: bytes) -> dict[str, Any]:
    return {one.name: one for one in text_string_to_metric_families(text.decode())}


def test_a_reader_finds_every_family_and_every_sample(families: list[Any]) -> None:
    found = read(exposition(families))
    for family in families:
        one = found[family["name"].removesuffix("_total")]  # the reader takes the ending of a counter away
        assert (one.type, one.documentation) == (family["type"], family["help"])
        wanted = [(sample["name"], sample["labels"], sample["value"]) for sample in family["samples"]]
        assert [(sample.name, sample.labels, sample.value) for sample in one.samples] == wanted
    assert len(found) == len(families)


def test_the_text_is_of_the_version_that_the_content_type_says(families: list[Any]) -> None:
    assert CONTENT_TYPE == "text/plain; version=0.0.4; charset=utf-8"
    text = exposition(families).decode()
    assert text.endswith("\n") and "# EOF" not in text and '\nhiboss_requests_total{door="socket"} ' in text


def test_a_histogram_counts_the_smaller_values_too_and_keeps_its_labels() -> None:
    histogram = Histogram((0.1, 1.0))
    for seconds in (0.1, 0.5, 3.0, -1.0):
        histogram.observe(seconds)
    samples = [one._asdict() for one in histogram.samples("hiboss_x_seconds", {"adapter": 'a"b\\c\nd'})]
    found = read(
        exposition([{"name": "hiboss_x_seconds", "type": "histogram", "help": "x", "samples": samples}])
    )  # type: ignore[typeddict-item]
    assert [(one.name, one.labels.get("le"), one.value) for one in found["hiboss_x_seconds"].samples] == [
        ("hiboss_x_seconds_bucket", "0.1", 2),
        ("hiboss_x_seconds_bucket", "1.0", 3),
        ("hiboss_x_seconds_bucket", "+Inf", 4),
        ("hiboss_x_seconds_sum", None, 3.6),
        ("hiboss_x_seconds_count", None, 4),
    ]
    assert found["hiboss_x_seconds"].samples[0].labels["adapter"] == 'a"b\\c\nd'


def test_the_library_is_imported_by_the_first_scrape_only() -> None:
    code = (
        "import sys, hiboss.web.metrics, hiboss.daemon.lifecycle; print('prometheus_client' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
