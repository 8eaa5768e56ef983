"""Agents that fetch: claim with a lease, acknowledge or release; and taking up again what has failed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hiboss.testing.running_daemon import Answered, RunningDaemon
from tests.support.cli import Shell
from tests.support.parties import Party, agent, at_once, boss
from tests.support.scripted_channels import SCRIPTED, Place, envelope_error, row
from tests.support.sweeps import sweep
from tests.support.waits import wait_until

Two = tuple[Party, Party]


def claim(party: Party, **params: Any) -> list[str]:
    return [one["id"] for one in party.call("envelope.claim", **params)["envelopes"]]


# --- claiming ------------------------------------------------------------------------


def test_a_claim_gives_the_next_due_in_their_order_and_each_once(ada: Party, bob: Party) -> None:
    low = ada.tell(bob, priority="low")
    first, second = ada.tell(bob), ada.tell(bob)
    urgent = ada.tell(bob, priority="critical")
    assert claim(bob, limit=2) == [urgent, first]
    assert claim(bob) == [second, low]
    assert claim(bob) == []


def test_what_is_claimed_says_so_and_until_when(ada: Party, bob: Party) -> None:
    number = ada.tell(bob)
    answer = bob.call("envelope.claim", lease="1h30m")
    (found,) = answer["envelopes"]
    assert (found["status"], found["waits"]) == ("pending", "lease")
    kept = row(bob.daemon, number)
    assert answer["until"].startswith("20")
    assert kept["wake_at"] is not None
    assert bob.get(number)["waits"] == "lease"


def test_what_is_claimed_and_acknowledged_is_done(ada: Party, bob: Party) -> None:
    number = ada.tell(bob)
    claim(bob)
    assert bob.call("envelope.ack", ids=[number]) == {"changed": 1} and bob.get(number)["status"] == "done"
    assert row(bob.daemon, number)["claim"] is None
    assert bob.refusal("envelope.release", ids=[number]) == "too_late"


def test_what_is_released_is_due_again_in_its_old_place(ada: Party, bob: Party) -> None:
    first, second = ada.tell(bob), ada.tell(bob)
    assert claim(bob, limit=1) == [first]
    assert bob.call("envelope.release", ids=[first]) == {"changed": 1}
    assert claim(bob) == [first, second] and bob.get(first)["redelivered"] is True
    assert bob.get(second)["redelivered"] is False and bob.get(first)["attempts"] == 0


def test_a_lease_outlives_a_restart_and_ends_after_it(ada: Party, bob: Party) -> None:
    kept, free = ada.tell(bob), ada.tell(bob)
    assert claim(bob, limit=1, lease="1h") == [kept]
    assert claim(bob, limit=1, lease="1h") == [free]
    bob.daemon.stop()
    with bob.daemon.database() as database:  # its time passes while no daemon runs
        database.execute("UPDATE envelope SET wait_until = 1 WHERE id = ?", (int(free[1:]),))
        database.commit()
    bob.daemon.start(**SCRIPTED)
    wait_until(lambda: bob.get(free)["waits"] is None)
    assert bob.get(kept)["waits"] == "lease"
    assert claim(bob) == [free]


def test_two_sessions_of_one_agent_never_get_the_same_envelope(ada: Party, bob: Party) -> None:
    numbers = ada.flood(bob, 200)
    taken = at_once([lambda: [claim(bob, limit=7) for _ in range(5)] for _ in range(8)])
    found = [number for session in taken for some in session for number in some]
    assert len(found) == len(set(found))
    assert set(found) == set(numbers)


def test_a_claim_takes_nothing_that_is_not_due(ada: Party, bob: Party) -> None:
    deferred = ada.tell(bob, deliver_at="+1h")
    bob.call("envelope.ack", ids=[ada.tell(bob)])
    ada.call("envelope.cancel", ids=[ada.tell(bob)])
    assert claim(bob) == []
    assert ada.get(deferred)["waits"] == "deferred"


def test_acknowledging_everything_leaves_what_somebody_has_claimed(ada: Party, bob: Party) -> None:
    claimed, rest = ada.tell(bob), ada.tell(bob)
    assert claim(bob, limit=1) == [claimed]
    assert bob.call("envelope.ack", all=True)["changed"] == 1 and bob.get(claimed)["status"] == "pending"
    assert bob.get(rest)["status"] == "done"


def test_the_boss_may_claim_and_release_for_an_agent_and_an_agent_only_for_itself(
    daemon: RunningDaemon, ada: Party, bob: Party
) -> None:
    number = ada.tell(bob)
    assert ada.refusal("envelope.claim", address=bob.address) == "boss_only"
    assert claim(boss(daemon), address=bob.address) == [number]
    assert ada.refusal("envelope.release", ids=[number]) == "not_found"
    assert boss(daemon).call("envelope.release", ids=[number], address=bob.address) == {"changed": 1}


def test_a_release_is_all_or_nothing(ada: Party, bob: Party) -> None:
    claimed, free = ada.tell(bob), ada.tell(bob)
    claim(bob, limit=1)
    assert bob.refusal("envelope.release", ids=[claimed, free]) == "too_late"
    assert bob.get(claimed)["waits"] == "lease"
    assert bob.refusal("envelope.release", ids=[claimed, "e999999"]) == "not_found"
    assert bob.get(claimed)["waits"] == "lease"


def test_leases_can_be_said_in_hours_minutes_and_seconds(ada: Party, bob: Party) -> None:
    with sweep() as row:
        for lease in (
            "24h",
            "90s",
            "1h30m",
            "0.5s",
            "1m0.25s",
        ):
            with row(lease):
                number = ada.tell(bob)
                assert claim(bob, lease=lease) == [number]


def test_the_command_line_claims_releases_and_retries(daemon: RunningDaemon) -> None:
    name = f"cli-{daemon.pid}"
    daemon.register(name)
    (number,) = agent(daemon).send(f"agent:{name}", text="take me")["ids"]
    shell = Shell(daemon.home.path)
    claimed = shell("envelope", "claim", "--as", name, "-n", "1", "--lease", "5m")
    assert claimed.rc == 0 and "take me" in claimed.stdout and "claimed-until: " in claimed.stdout
    (own,) = [
        line.removeprefix("claim: ") for line in claimed.stdout.splitlines() if line.startswith("claim: ")
    ]
    assert shell("envelope", "release", "--as", name, number, "--claim", "k999999").rc != 0
    assert shell("envelope", "release", "--as", name, "--id", number, "--claim", own).record == {
        "changed": "1"
    }
    again = shell("envelope", "claim", "--as", name, "--json").json["claim"]
    assert shell("envelope", "ack", "--as", name, number, "--claim", own).rc != 0
    assert shell("envelope", "release", "--as", name, number, "--claim", again).rc == 0
    assert shell("envelope", "retry", "--as", "boss", "--id", number, "--json").error["code"] == "too_late"
    assert (
        shell("envelope", "claim", "--as", name, "--lease", "soon", "--json").error["code"] == "bad_duration"
    )


# --- two sessions of one agent -------------------------------------------------------


def claim_again(ada: Party, bob: Party) -> tuple[str, str, str]:
    """Let a claim end and another session claim the same envelope; return envelope, old claim, new claim."""
    number = ada.tell(bob)
    stale = bob.call("envelope.claim", lease="0.05s")["claim"]
    wait_until(lambda: bob.get(number)["waits"] is None)
    fresh = bob.call("envelope.claim")["claim"]
    assert stale != fresh
    return number, stale, fresh


def test_a_stale_holder_does_not_release_another_session_s_lease(ada: Party, bob: Party) -> None:
    number, stale, fresh = claim_again(ada, bob)
    assert bob.refusal("envelope.release", ids=[number], claim=stale) == "too_late"
    assert bob.refusal("envelope.release", ids=[number]) == "too_late"  # whose claim, nobody knows
    assert bob.get(number)["waits"] == "lease"
    assert bob.call("envelope.release", ids=[number], claim=fresh) == {"changed": 1}
    assert claim(bob) == [number]


def test_a_stale_holder_is_told_that_another_session_works_on_what_it_acknowledges(
    ada: Party, bob: Party
) -> None:
    number, stale, fresh = claim_again(ada, bob)
    with pytest.raises(Answered, match="claimed again by another session"):
        bob.call("envelope.ack", ids=[number], claim=stale)
    assert bob.get(number)["status"] == "pending"
    assert bob.call("envelope.ack", ids=[number], claim=fresh) == {"changed": 1}
    assert bob.call("envelope.ack", ids=[number], claim=stale) == {"changed": 0}


def test_work_that_took_longer_than_its_lease_can_be_acknowledged_while_nobody_else_has_it(
    ada: Party, bob: Party
) -> None:
    number = ada.tell(bob)
    stale = bob.call("envelope.claim", lease="0.05s")["claim"]
    wait_until(lambda: bob.get(number)["waits"] is None)
    assert bob.refusal("envelope.release", ids=[number], claim=stale) == "too_late"
    assert bob.call("envelope.ack", ids=[number], claim=stale) == {"changed": 1}


def test_the_boss_may_release_whatever_claim_has_it(ada: Party, bob: Party, chief: Party) -> None:
    number, stale, _ = claim_again(ada, bob)
    assert chief.refusal("envelope.release", ids=[number], address=bob.address, claim=stale) == "too_late"
    assert chief.call("envelope.release", ids=[number], address=bob.address) == {"changed": 1}


def test_a_claim_has_an_id_and_one_of_nothing_has_none(ada: Party, bob: Party) -> None:
    ada.tell(bob)
    assert bob.call("envelope.claim", limit=1)["claim"].startswith("k")
    assert bob.call("envelope.claim")["claim"] is None


# --- too late to cancel --------------------------------------------------------------


def test_what_is_claimed_cannot_be_cancelled_and_what_is_released_can(ada: Party, bob: Party) -> None:
    number = ada.tell(bob)
    claim(bob)
    assert ada.refusal("envelope.cancel", ids=[number]) == "too_late"
    bob.call("envelope.release", ids=[number])
    assert ada.call("envelope.cancel", ids=[number])["changed"] == 1
    assert claim(bob) == []


def test_what_is_being_posted_cannot_be_cancelled(daemon: RunningDaemon, tmp_path: Path) -> None:
    place = Place(tmp_path).bound(daemon)
    place.script(place.gated())
    held, behind = place.send("in hand"), place.send("behind")
    wait_until(lambda: row(daemon, held)["held_by"] is not None)
    assert place.owner.refusal("envelope.cancel", ids=[held]) == "too_late"
    assert place.owner.call("envelope.cancel", ids=[behind])["changed"] == 1
    place.open_gate()
    place.wait_for_status(held, "done")
    assert place.texts() == ["in hand"] and place.owner.refusal("envelope.cancel", ids=[held]) == "too_late"


def test_what_is_being_posted_cannot_be_acknowledged_or_put_away(
    daemon: RunningDaemon, tmp_path: Path
) -> None:
    place = Place(tmp_path).bound(daemon)
    place.script(place.gated())
    held = place.send("in hand")
    wait_until(lambda: row(daemon, held)["held_by"] is not None)
    assert {
        boss(daemon).refusal(f"envelope.{verb}", ids=[held], address=place.address)
        for verb in ("ack", "archive", "trash")
    } == {"too_late"}
    daemon.check()
    place.open_gate()
    place.wait_for_status(held, "done")


# --- retry ---------------------------------------------------------------------------


def test_only_what_has_failed_is_tried_again_and_only_by_its_sender(
    daemon: RunningDaemon, tmp_path: Path, ada: Party, bob: Party
) -> None:
    pending = ada.tell(bob)
    assert ada.refusal("envelope.retry", ids=[pending]) == "too_late"
    assert bob.refusal("envelope.retry", ids=[pending]) == "not_found"
    place = Place(tmp_path).bound(daemon)
    place.script(envelope_error())
    failed = place.send("x")
    place.wait_for_status(failed, "failed")
    assert ada.refusal("envelope.retry", ids=[failed]) == "not_found"
    assert place.owner.refusal("envelope.retry", ids=[failed, "e999999"]) == "not_found"
    assert boss(daemon).get(failed)["status"] == "failed"
    assert boss(daemon).call("envelope.retry", ids=[failed]) == {"changed": 1}
    place.wait_for("x")
    place.wait_for_status(failed, "done")
    assert place.owner.refusal("envelope.retry", ids=[failed]) == "too_late"


def test_a_retry_keeps_its_place_before_what_came_later(daemon: RunningDaemon, tmp_path: Path) -> None:
    place = Place(tmp_path).bound(daemon)
    place.script(envelope_error())
    first = place.send("first")
    place.wait_for_status(first, "failed")
    place.steer("pause")
    place.send("second")
    place.owner.call("envelope.retry", ids=[first])
    place.goes_on("resume", "first", "second")


def test_what_failed_with_an_unbinding_is_tried_again_when_the_account_is_bound_again(
    daemon: RunningDaemon, tmp_path: Path
) -> None:
    place = Place(tmp_path).bound(daemon)
    place.steer("pause")
    number = place.send("too late")
    later = place.send("much later", deliver_at="+2h")
    assert place.unbind()["failed_envelopes"] == 2
    assert place.owner.get(number)["last_error"]["kind"] == "unbound"
    with pytest.raises(Answered, match="the account that was to post it is not bound any more"):
        place.owner.call("envelope.retry", ids=[number])
    assert place.owner.refusal("envelope.retry", ids=[number]) == "too_late"
    place.bound(daemon, place.owner)
    assert place.owner.call("envelope.retry", ids=[number, later]) == {"changed": 2}
    place.wait_for("too late")
    assert place.wait_for_status(number, "done") and place.owner.get(later)["status"] == "pending"
    assert {row(daemon, one)["binding"] for one in (number, later)} == {place.binding}


def test_an_account_that_was_bound_again_posts_nothing_that_a_new_message_may_not(
    daemon: RunningDaemon, tmp_path: Path
) -> None:
    place = Place(tmp_path).bound(daemon)
    place.steer("pause")
    first, number = place.owner, place.send("mine")
    (of_boss,) = boss(daemon).send(place.address, text="his")["ids"]
    place.unbind()
    place.bound(daemon)  # to another agent
    with pytest.raises(Answered, match=f"where {first.address} may not post by scripted:{place.name}"):
        first.call("envelope.retry", ids=[number])
    boss(daemon).call("envelope.retry", ids=[of_boss])
    place.wait_for("his")
    place.bind(first)
    boss(daemon).call("contact.block", contact=place.address)
    assert first.refusal("envelope.retry", ids=[number]) == "too_late"


def test_what_waited_for_a_deleted_agent_is_not_tried_again(
    daemon: RunningDaemon, ada: Party, bob: Party
) -> None:
    number = ada.tell(bob)
    boss(daemon).call("agent.delete", name=bob.name)
    assert ada.get(number)["status"] == "failed" and ada.refusal("envelope.retry", ids=[number]) == "too_late"
