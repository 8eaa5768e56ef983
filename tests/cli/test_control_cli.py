"""`hiboss control`: what it prints, its exit status, and what the other commands show of a control."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.cli import Done, Office, open_office
from tests.support.waits import wait_until


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Office]:
    """Agent slow works until it is ended; agent idle has nothing to do."""
    with open_office(tmp_path_factory.mktemp("d")) as running:
        running.daemon.register("slow", provider="command", settings={"command": "sleep 600"})
        running.daemon.register("idle", provider="demo")
        yield running
        for name in ("slow", "idle"):
            running.daemon.call("agent.delete", token=running.token("boss"), name=name)


def busy(office: Office) -> tuple[str, str]:
    """Let slow work on something; return the envelope and the run."""
    number = office("send", "slow", "take your time").record["id"]

    def run() -> str | None:
        found = office("run", "list", "--agent", "slow", "--status", "running", "--json").json["runs"]
        return str(found[0]["id"]) if found and found[0]["pid"] else None

    return number, str(wait_until(run))


def outcome(done: Done) -> tuple[int, str, str | None]:
    assert done.stderr == ""
    return done.rc, done.record["outcome"], done.record.get("why")


def test_a_control_prints_its_outcome_and_the_reason_if_it_was_not_applied(office: Office) -> None:
    number, run = busy(office)
    paused = office("control", "pause", "--run", run, "--reason", "a look", "--meta", "ticket=7")
    assert outcome(paused) == (0, "applied", None) and paused.stdout.startswith("outcome: applied\n")
    assert outcome(office("control", "pause", "--run", run)) == (1, "refused", f"{run} is paused already")
    assert outcome(office("control", "resume", "--run", run)) == (0, "applied", None)
    assert outcome(office("control", "cancel", "--envelope", number)) == (0, "applied", None)
    wait_until(lambda: office.envelope(number)["status"] == "cancelled")
    late = office("control", "cancel", "--run", run)
    assert outcome(late) == (1, "too-late", f"{run} has ended (cancelled)")
    record = office("envelope", "list", "--as", "slow", "--json").json["envelopes"]
    [first] = [one for one in record if one["message"] == paused.record["message"]]
    assert (first["type"], first["metadata"]["ticket"]) == ("event", 7)


def test_an_agent_is_paused_and_resumed_and_what_is_wrong_is_said_at_once(office: Office) -> None:
    assert outcome(office("control", "resume", "--agent", "idle")) == (
        1,
        "refused",
        "agent:idle is not paused",
    )
    assert outcome(office("control", "pause", "--agent", "idle", "--reason", "lunch")) == (0, "applied", None)
    assert office("agent", "status", "idle", "--json").json["agent"]["state"] == "paused"
    assert outcome(office("control", "resume", "--agent", "idle"))[1] == "applied"
    for words, says in (
        (("pause",), "exactly one of"),
        (("cancel", "--agent", "idle", "--run", "r1"), "exactly one of"),
        (("priority", "--envelope", "e1"), "needs level"),
        (("route", "--envelope", "e1"), "needs to"),
    ):
        done = office("control", *words)
        assert (done.rc, done.stdout, says in done.stderr) == (2, "", True), done
    assert office("control", "pause", "--run", "r99").rc == office("run", "get", "r99").rc


def test_what_was_cancelled_begins_anew_if_that_is_wanted_or_is_retried(office: Office) -> None:
    number, run = busy(office)
    assert office("run", "cancel", run, "--requeue").record == {"id": run, "changed": "true"}

    def again() -> str | None:
        found = office("run", "list", "--agent", "slow", "--status", "running", "--json").json["runs"]
        return str(found[0]["id"]) if found and found[0]["id"] != run else None

    second = str(wait_until(again))
    assert office.envelope(number)["status"] == "pending"
    assert office("run", "cancel", second).rc == 0
    wait_until(lambda: office.envelope(number)["status"] == "cancelled")
    assert office("envelope", "retry", number).rc == 0
    third = str(wait_until(again))
    assert outcome(office("control", "cancel", "--agent", "slow"))[1] == "applied"
    wait_until(lambda: office("run", "get", third, "--json").json["run"]["status"] == "cancelled")


def test_controls_are_listed_newest_first_by_agent_conversation_and_actor(office: Office) -> None:
    office("control", "cancel", "--agent", "idle")
    office("control", "pause", "--agent", "idle", "--reason", "first")
    office("control", "resume", "--agent", "idle")
    second, first, more = office("control", "list", "--agent", "idle", "-n", "2").blocks
    assert (second["event"], first["event"], first["reason"]) == ("stream.resume", "stream.pause", "first")
    assert (first["actor"], first["agent"], first["outcome"]) == ("user:boss", "agent:idle", "applied")
    assert list(more) == ["next"]
    rest = office("control", "list", "--agent", "idle", "--after", more["next"], "--json").json["controls"]
    assert rest and first["message"] not in [one["message"] for one in rest]
    by_place = office("control", "list", "--conversation", first["conversation"], "--json").json["controls"]
    assert by_place[0]["event"] == "stream.resume"
    nobody = office("control", "list", "--actor", "agent:slow")
    assert (nobody.rc, nobody.stdout) == (0, "no-controls: true\n")


def test_the_mail_of_an_agent_shows_a_control_as_one_line(office: Office) -> None:
    office("control", "pause", "--agent", "idle", "--reason", "a\nbreak")
    office("control", "resume", "--agent", "idle")
    said = office("envelope", "list", "--as", "idle", "-n", "2", "--json").json["envelopes"]
    assert [one["text"] for one in said] == [
        "resume agent:idle: applied",
        'pause agent:idle: applied. Reason: "a\\nbreak"',
    ]
