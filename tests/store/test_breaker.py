"""The breaker in the store: one row, pulled with the notes on all runs, and what it holds in one transaction."""

from __future__ import annotations

import json

import pytest

from hiboss.core.address import Address
from hiboss.core.contracts.failures import Failure
from hiboss.core.contracts.provider import Answer
from hiboss.core.envelope import Draft, Kind, Lane
from hiboss.core.events import AgentChanged, BreakerPulled, BreakerReleased
from hiboss.store import (
    breaker,
    breaker_holds,
    deleted_envelopes,
    envelopes,
    lanes,
    messages,
    overdue,
    run_cancels,
    run_settlement,
    run_start,
    schedules,
)
from hiboss.store.connection import Row
from hiboss.store.run_limits import Bounds
from hiboss.store.run_start import Start, Turn
from tests.store.chat_scene import BOSS_ID, HIS, HOUR, KAI, NEX, PRIVATE, Scene


def pull(scene: Scene, reason: str | None = "enough") -> bool:
    return scene.write(lambda tx: breaker.pull(tx, BOSS_ID, reason, scene.now, breaker.new_pull()))


def release(scene: Scene, number: str | None = None) -> bool:
    return scene.write(lambda tx: breaker.release(tx, BOSS_ID, scene.now, number))


def pulled(scene: Scene) -> Row:
    row = breaker.get(scene.connection)
    assert row is not None
    return row


def asked(scene: Scene, text: str = "hello") -> None:
    scene.comes_in(**{**PRIVATE, "text": text})


def run(scene: Scene, turn: Turn) -> dict[str, object]:
    [row] = scene.execute("SELECT status, error_kind, error, ends_as FROM run WHERE id = ?", turn.run)
    return row


def sends(scene: Scene, sender: Address, to: str, text: str) -> int:
    """Send something to a place; return the envelope."""
    entry = scene.write(lambda tx: tx.cache.live_address(sender))
    assert entry is not None
    where = Address("channel", f"folder:{to}")
    draft = Draft(sender=sender, caller=entry.id, to=(where,), text=text, kind=Kind.TEXT, sees_all=True)
    return scene.write(lambda tx: messages.insert(tx, draft, scene.now)).envelopes[0]


def place(scene: Scene, chat: str) -> Lane:
    [row] = scene.execute("SELECT id FROM address WHERE kind = 'channel' AND name = ?", f"folder:{chat}")
    return Lane(row["id"], scene.binding)


def claimed(scene: Scene, chat: str) -> str | None:
    """Claim the next post for a chat, and say what it is."""
    lane = place(scene, chat)
    found = scene.write(lambda tx: lanes.claim(tx, lane, scene.now, 1))
    if found is None:
        return None
    scene.write(lambda tx: lanes.done(tx, lane, found["id"], scene.now))
    return str(found["text"])


# --- pulling and releasing ------------------------------------------------------------


def test_pulling_and_releasing_are_told_once_with_the_state_of_every_agent(scene: Scene) -> None:
    scene.facts()
    pull(scene)
    pull(scene)
    expected = [BreakerPulled(scene.now, BOSS_ID), *[AgentChanged(scene.now, one) for one in (NEX, KAI)]]
    assert scene.facts() == expected
    release(scene)
    release(scene)
    expected = [BreakerReleased(scene.now, BOSS_ID), *[AgentChanged(scene.now, one) for one in (NEX, KAI)]]
    assert scene.facts() == expected


def test_a_run_under_way_ends_as_stopped_and_its_envelopes_wait_without_having_failed(scene: Scene) -> None:
    asked(scene)
    turn = scene.begin()
    pull(scene)
    scene.write(lambda tx: run_settlement.fail(tx, turn, Failure("exited", "it died"), (1_000,), scene.now))
    assert run(scene, turn) == {
        "status": "interrupted",
        "error_kind": "stopped",
        "error": 'the breaker was pulled: "enough"',
        "ends_as": "stopped",
    }
    [row] = scene.execute(
        "SELECT status, held_by, attempts, waits FROM envelope WHERE id = ?", turn.envelopes[0]
    )
    assert row == {"status": 0, "held_by": None, "attempts": 0, "waits": None}
    assert scene.execute("SELECT * FROM interrupted_run") == []  # it is no restart


def test_an_answer_that_comes_after_the_pull_is_not_sent(scene: Scene) -> None:
    asked(scene)
    turn = scene.begin()
    pull(scene)
    assert scene.write(lambda tx: run_settlement.complete(tx, turn, Answer(text="late"), scene.now)) == []
    assert run(scene, turn)["status"] == "interrupted"


def test_a_run_that_somebody_cancelled_before_stays_cancelled(scene: Scene) -> None:
    asked(scene)
    turn = scene.begin()
    scene.write(lambda tx: run_cancels.note(tx, turn.run, "by me", BOSS_ID))
    pull(scene)
    assert run(scene, turn)["ends_as"] == "cancelled"
    row = pulled(scene)
    # It is shown until it has ended and after that; what it works on does not wait.
    for status in ("running", "cancelled"):
        found = breaker.stopped_runs(scene.connection, row["pulled_at"])
        assert [(one["id"], one["status"]) for one in found] == [(turn.run, status)]
        assert breaker_holds.waiting(scene.connection, scene.now, 10).mail == []
        if status == "running":
            scene.write(lambda tx: run_settlement.cancel(tx, turn, "interrupted", "x", scene.now))


@pytest.mark.parametrize("ends_as", [run_cancels.PREEMPTED, run_cancels.PAUSED, run_cancels.REQUEUED])
def test_a_run_that_was_ending_for_something_else_is_shown_too_and_its_mail_waits(
    scene: Scene, ends_as: str
) -> None:
    asked(scene)
    turn = scene.begin()
    scene.write(lambda tx: run_cancels.note(tx, turn.run, "by me", BOSS_ID, ends_as))
    pull(scene)
    assert [one["id"] for one in breaker.stopped_runs(scene.connection, scene.now)] == [turn.run]
    assert breaker_holds.waiting(scene.connection, scene.now, 10).mail == [("agent:nex", 1)]


def test_the_runs_of_a_pull_are_shown_and_not_those_of_an_earlier_one(scene: Scene) -> None:
    asked(scene)
    first = scene.begin()
    pull(scene)
    scene.write(lambda tx: run_settlement.cancel(tx, first, "interrupted", "x", scene.now))
    release(scene)
    scene.now += HOUR
    second = scene.begin()
    pull(scene)
    found = breaker.stopped_runs(scene.connection, pulled(scene)["pulled_at"])
    assert [(one["id"], one["name"], one["status"]) for one in found] == [(second.run, "nex", "running")]
    assert [one["id"] for one in breaker.recorded_runs(scene.connection)] == [second.run]


# --- what it holds --------------------------------------------------------------------


def test_no_task_in_the_background_starts_and_none_is_looked_for(scene: Scene) -> None:
    background = scene.write(lambda tx: tx.cache.add_address(Address("agent", "background")))
    nex = Address("agent", "nex")
    draft = Draft(sender=nex, caller=NEX, to=(background.address,), text="do it", kind=Kind.TEXT)
    [number] = scene.write(lambda tx: messages.insert(tx, draft, scene.now)).envelopes
    start = Start("hbr_x", scene.now, 1, Bounds(16, 50, scene.now - HOUR, scene.now + HOUR))
    pull(scene)
    assert scene.write(lambda tx: run_start.begin_background(tx, number, start)) is None
    assert run_start.tasks_due(scene.connection, background.id, 10) == ([], False)
    assert breaker_holds.waiting(scene.connection, scene.now, 10).tasks == 1
    release(scene)
    assert run_start.tasks_due(scene.connection, background.id, 10) == ([number], False)
    assert scene.write(lambda tx: run_start.begin_background(tx, number, start)) is not None


def test_schedules_hold_and_the_timer_is_not_set_for_them(scene: Scene) -> None:
    message = {"from": "agent:nex", "to": ["agent:kai"], "text": "hourly", "subject": None, "type": "text"}
    rest = {"priority": "normal", "attachments": [], "from_boss": False, "from_name": None, "addresses": {}}
    columns = {"every_ms": HOUR, "draft": json.dumps(message | rest)}
    number = scene.write(lambda tx: schedules.insert(tx, NEX, columns, scene.now))
    due = scene.now + HOUR
    assert overdue.next_times(scene.connection).slot == due
    pull(scene)
    assert overdue.next_times(scene.connection).slot is None
    scene.now = due
    assert scene.write(lambda tx: overdue.fire(tx, scene.now, lambda tx, owner: None)).envelopes == []
    assert breaker_holds.waiting(scene.connection, scene.now, 10).schedules == 1
    release(scene)
    assert overdue.next_times(scene.connection).slot == due
    assert len(scene.write(lambda tx: overdue.fire(tx, scene.now, lambda tx, owner: None)).envelopes) == 1
    assert schedules.get(scene.connection, number, None)["next_at"] > due


def test_what_agents_post_to_a_chat_of_the_boss_passes(scene: Scene) -> None:
    scene.comes_in(**{**HIS, "text": "it is me"})
    scene.execute("UPDATE contact SET state = 'boss' WHERE platform_id = '777'")
    sends(scene, Address("agent", "nex"), "777", "to him")
    pull(scene)
    assert claimed(scene, "777") == "to him"
    assert breaker_holds.waiting(scene.connection, scene.now, 10).posts == 0


def test_the_rest_of_a_post_holds_and_others_pass_it(scene: Scene) -> None:
    lane = place(scene, "7")
    number = sends(scene, Address("agent", "nex"), "7", "long")
    assert scene.write(lambda tx: lanes.claim(tx, lane, scene.now, 1)) is not None
    scene.write(lambda tx: lanes.note_partly_posted(tx, lane, number))
    assert scene.write(lambda tx: lanes.may_go_on(tx, lane, number, scene.now))
    pull(scene)
    assert not scene.write(lambda tx: lanes.may_go_on(tx, lane, number, scene.now))
    scene.execute("UPDATE envelope SET held_by = NULL WHERE id = ?", number)
    assert claimed(scene, "7") is None
    sends(scene, Address("user", "boss"), "7", "from the boss")
    assert claimed(scene, "7") == "from the boss"
    release(scene)
    assert claimed(scene, "7") == "long"


def begun(scene: Scene, number: int) -> None:
    """Post the first chunk of an envelope, and put it back."""
    lane = place(scene, "7")
    held = scene.write(lambda tx: lanes.claim(tx, lane, scene.now, 1))
    assert held is not None and held["id"] == number
    scene.write(lambda tx: lanes.note_partly_posted(tx, lane, number))
    scene.execute("UPDATE envelope SET held_by = NULL WHERE id = ?", number)


@pytest.mark.parametrize("passing", ["short", "in parts"])
def test_what_was_begun_before_the_breaker_was_pulled_goes_on_before_all_others_when_it_is_released(
    scene: Scene, passing: str
) -> None:
    begun(scene, sends(scene, Address("agent", "nex"), "7", "long"))
    pull(scene)
    number = sends(scene, Address("user", "boss"), "7", "from the boss")
    if passing == "in parts":
        begun(scene, number)
    assert claimed(scene, "7") == "from the boss"
    other = sends(scene, Address("agent", "nex"), "7", "urgent")
    scene.execute("UPDATE envelope SET priority = 0 WHERE id = ?", other)
    release(scene)
    assert [claimed(scene, "7"), claimed(scene, "7")] == ["long", "urgent"]
    assert scene.execute("SELECT id FROM lane WHERE partly_posted IS NOT NULL") == []


@pytest.mark.parametrize("ending", ["cancelled", "deleted", "failed"])
def test_what_was_begun_and_is_settled_otherwise_does_not_stay_in_its_lane(scene: Scene, ending: str) -> None:
    number = sends(scene, Address("agent", "nex"), "7", "long")
    begun(scene, number)
    pull(scene)
    status = {"cancelled": 3, "deleted": 3, "failed": 2}[ending]
    if ending == "deleted":
        scene.write(lambda tx: deleted_envelopes.end(tx, number, scene.now))
    elif ending == "failed":
        scene.write(lambda tx: lanes.fail(tx, [number], Failure("too_old", "for a day"), scene.now))
    else:
        scene.write(lambda tx: envelopes.cancel(tx, [number], None, scene.now))
    assert scene.execute("SELECT status FROM envelope WHERE id = ?", number) == [{"status": status}]
    sends(scene, Address("user", "boss"), "7", "from the boss")
    assert claimed(scene, "7") == "from the boss"
    assert scene.execute("SELECT id FROM lane WHERE partly_posted IS NOT NULL") == []


def test_what_waits_is_counted_with_what_an_ending_run_holds(scene: Scene) -> None:
    asked(scene, "one")
    scene.begin()
    asked(scene, "two")
    pull(scene)
    assert breaker_holds.waiting(scene.connection, scene.now, 10).mail == [("agent:nex", 2)]
    assert breaker_holds.waiting(scene.connection, scene.now, 1).mail == [("agent:nex", "1+")]
