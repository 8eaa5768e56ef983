"""Notes in chats about turns that fail: which people are told, in which chats, and how often."""

from __future__ import annotations

from typing import Any

import pytest

from hiboss.core.contracts.failures import Failure
from hiboss.store import chat_notes, lanes, run_settlement
from hiboss.store.run_start import Turn
from tests.store.chat_scene import HIS, HOUR, NEX, PRIVATE, Scene

LIMIT = Failure("usage_limit", "the limit is reached")


def waits(scene: Scene, turn: Turn, seconds: int = 30, *, told: bool = False) -> None:
    """Settle a run by a failure that every turn would have."""
    until = scene.now + seconds * 1_000
    scene.write(lambda tx: run_settlement.wait(tx, turn, LIMIT, until, scene.now, told=told))


def opens(scene: Scene) -> None:
    """Let the time come at which the lane is tried again."""
    scene.execute("UPDATE lane SET state = 'open', wake_at = NULL, not_before = NULL")


def posts(scene: Scene) -> list[tuple[str, str]]:
    """Return what is posted in the name of hiboss: where, and what."""
    rows = scene.execute(
        """
        SELECT a.name, m.text FROM envelope e JOIN message m ON m.id = e.message
        JOIN address s ON s.id = m.sender AND s.name = 'system' JOIN address a ON a.id = e.recipient
        WHERE e.binding IS NOT NULL AND m.text LIKE '⚠️%' ORDER BY e.id
        """
    )
    return [(row["name"].partition(":")[2], row["text"]) for row in rows]


def says(scene: Scene, facts: dict[str, Any], text: str, number: int) -> None:
    scene.comes_in(**{**facts, "text": text, "message": str(number)})


OTHERS = "⚠️ nex could not answer yet; it will be tried again."


def test_while_no_turn_can_work_each_chat_with_waiting_mail_is_told_once(scene: Scene) -> None:
    says(scene, PRIVATE, "one", 1)
    scene.asks("two", message="2")
    waits(scene, scene.begin())
    assert posts(scene) == [("7", OTHERS), ("-9", OTHERS)]  # one of them is in the turn, both wait
    opens(scene)
    says(scene, PRIVATE, "three", 3)
    scene.comes_in(**{**PRIVATE, "chat": "8", "text": "four", "message": "4"})
    waits(scene, scene.begin())
    assert posts(scene)[2:] == [("8", OTHERS)]
    opens(scene)
    waits(scene, scene.begin())
    assert len(posts(scene)) == 3


def test_after_it_worked_again_the_next_failure_is_told_again(scene: Scene) -> None:
    says(scene, PRIVATE, "one", 1)
    waits(scene, scene.begin())
    opens(scene)
    scene.complete(scene.begin())
    says(scene, PRIVATE, "two", 2)
    waits(scene, scene.begin())
    assert posts(scene) == [("7", OTHERS)] * 2


def test_who_writes_while_nothing_may_be_tried_is_told_when_it_comes_in(scene: Scene) -> None:
    says(scene, PRIVATE, "one", 1)
    waits(scene, scene.begin(), 5 * HOUR // 1_000, told=True)
    assert len(posts(scene)) == 1
    says(scene, PRIVATE, "two", 2)  # they know
    scene.comes_in(**{**PRIVATE, "chat": "8", "text": "three", "message": "3"})
    scene.comes_in(**{**PRIVATE, "chat": "8", "text": "four", "message": "4"})
    assert posts(scene)[1:] == [("8", OTHERS)]


def test_the_boss_is_told_the_reason_and_when_it_is_tried_again(scene: Scene) -> None:
    scene.execute("UPDATE contact SET state = 'boss' WHERE platform_id = '777'")
    says(scene, HIS, "one", 1)
    turn = scene.begin()
    waits(scene, turn, 5 * HOUR // 1_000, told=True)
    ((place, text),) = posts(scene)
    assert place == "777"
    assert text.startswith('⚠️ nex failed: "the limit is reached"; tried again at 20')
    assert text.endswith(f" (r{turn.run}).")


@pytest.mark.parametrize(
    ("seconds", "words"), [(5, "in 5 s"), (119, "in 119 s"), (600, "in 10 min"), (7_199, "in 120 min")]
)
def test_the_time_is_short(scene: Scene, seconds: int, words: str) -> None:
    scene.execute("UPDATE contact SET state = 'boss' WHERE platform_id = '777'")
    says(scene, HIS, "one", 1)
    waits(scene, scene.begin(), seconds)
    assert f"; tried again {words} (r" in posts(scene)[0][1]


def test_a_chat_that_may_not_be_written_to_is_told_nothing(scene: Scene) -> None:
    says(scene, PRIVATE, "one", 1)
    turn = scene.begin()
    scene.execute("UPDATE contact SET state = 'blocked' WHERE platform_id = '7'")
    scene.fail(turn)
    assert posts(scene) == []


def test_a_note_is_no_mail_for_anybody(scene: Scene) -> None:
    says(scene, PRIVATE, "one", 1)
    scene.fail(scene.begin())
    recipients = scene.execute(
        """
        SELECT DISTINCT a.kind FROM message m JOIN envelope e ON e.message = m.id
        JOIN address a ON a.id = e.recipient JOIN address s ON s.id = m.sender WHERE s.name = 'system'
        """
    )
    assert recipients == [{"kind": "channel"}]
    scene.write(lambda tx: chat_notes.tell_of_restart(tx, scene.now))  # nothing was interrupted
    assert len(posts(scene)) == 1


def test_a_note_that_cannot_be_posted_causes_no_notice(scene: Scene) -> None:
    says(scene, PRIVATE, "one", 1)
    scene.fail(scene.begin())
    (note,) = scene.execute("SELECT id FROM envelope WHERE binding IS NOT NULL")
    before = scene.execute("SELECT count(*) AS number FROM message")
    scene.write(lambda tx: lanes.fail(tx, [note["id"]], Failure("forbidden", "blocked"), scene.now))
    assert scene.execute("SELECT count(*) AS number FROM message") == before and scene.due(NEX) == [1]
