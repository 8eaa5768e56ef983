"""`message.get` and `message.restore`: one message in full, and a deletion that is undone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hiboss.testing.running_daemon import Answered, RunningDaemon
from tests.support.followers import following
from tests.support.parties import Party, agent, agents, boss


def message(party: Party, given: str) -> dict[str, Any]:
    found: dict[str, Any] = party.call("message.get", message_id=given)["message"]
    return found


def test_a_message_is_shown_in_full_as_the_seed_nests_it(two: tuple[Party, Party], tmp_path: Path) -> None:
    ada, bob = two
    file = tmp_path / "plan.txt"
    file.write_text("1. read")
    facts = {
        "subject": "the plan",
        "scopes": [{"type": "module", "value": "auth"}],
        "refs": [{"type": "issue", "value": "42"}],
        "metadata": {"own": [1]},
        "session": "desk",
        "attachments": [str(file)],
    }
    sent = ada.send(bob, text=f"for @{bob.name}", **facts)
    one = message(bob, sent["message"])
    assert one["author"] == {"agent_id": ada.name, "session_id": "desk", "kind": "agent"}
    assert one["body"] == {"format": "text", "content": f"for @{bob.name}", "structured": ""}
    assert one["scopes"] == [{"type": "module", "value": "auth"}]
    assert {"type": "issue", "value": "42"} in one["refs"]
    assert {"type": "mention", "value": bob.name} in one["refs"]
    assert one["metadata"] == {"deleted_at": "", "delete_reason": ""} and one["meta"] == {"own": [1]}
    assert (one["updated_at"], one["deleted"], one["subject"]) == ("", False, "the plan")
    assert [file["name"] for file in one["attachments"]] == ["plan.txt"]
    assert one == bob.call("message.list")["messages"][0]


def test_a_message_is_found_by_its_id_and_by_that_of_an_envelope(two: tuple[Party, Party]) -> None:
    ada, bob = two
    sent = ada.send(bob)
    assert message(bob, sent["ids"][0]) == message(bob, sent["message"])
    assert message(bob, int(sent["message"][1:])) == message(bob, sent["message"])  # type: ignore[arg-type]


def test_what_was_edited_shows_its_latest_wording_and_when(two: tuple[Party, Party]) -> None:
    ada, bob = two
    sent = ada.send(bob, text="old")
    ada.call("message.edit", id=sent["message"], text="new")
    one = message(bob, sent["message"])
    assert one["body"]["content"] == "new" and one["updated_at"] >= one["created_at"]


def test_a_foreign_message_is_not_told_from_one_that_never_was(daemon: RunningDaemon) -> None:
    ada, bob, eve = agents(daemon, 3)
    sent = ada.send(bob)
    deferred = ada.send(bob, deliver_at="+2h")
    for party, given in ((eve, sent["message"]), (eve, sent["ids"][0]), (bob, deferred["message"])):
        with pytest.raises(Answered) as caught:
            message(party, given)
        with pytest.raises(Answered) as unknown:
            message(party, f"{given[0]}999999")
        assert str(caught.value).replace(given, "") == str(unknown.value).replace(f"{given[0]}999999", "")
    assert message(boss(daemon), sent["message"])["is_read"] is True
    assert message(ada, deferred["message"])["seq"] is None


@pytest.mark.parametrize("wrong", ["", "x", "t1", "c1", 0, -1, 2**64], ids=repr)
def test_what_is_no_id_is_refused(two: tuple[Party, Party], wrong: Any) -> None:
    assert two[0].refusal("message.get", message_id=wrong) in ("bad_id", "invalid_params")


def test_what_one_sent_oneself_counts_as_read(two: tuple[Party, Party]) -> None:
    ada, bob = two
    sent = ada.send(bob)
    assert message(ada, sent["message"])["is_read"] is True
    assert message(bob, sent["message"])["is_read"] is False


# --- restoring -----------------------------------------------------------------------


def test_what_its_author_deleted_he_can_restore_and_everybody_sees_it_again(two: tuple[Party, Party]) -> None:
    ada, bob = two
    sent = ada.send(bob, text="precious", subject="s", metadata={"a": 1})
    before = message(bob, sent["message"])
    ada.call("message.delete", id=sent["message"], reason="a mistake")
    assert message(bob, sent["message"])["deleted"]
    with following(ada.daemon) as follower:
        follower.subscribe(bob.token, topics=["message.restored"])
        restored = ada.call("message.restore", id=sent["ids"][0])
        told = [follower.next()]
    assert restored == {"message": sent["message"], "changed": True, "posts": 0}
    assert [(one["topic"], one["message"]) for one in told] == [("message.restored", sent["message"])]
    # The envelope that was cancelled with it need not be read any more.
    assert message(bob, sent["message"]) == {**before, "is_read": True}
    assert ada.call("message.restore", id=sent["message"])["changed"] is False


def test_what_was_cancelled_with_a_deletion_stays_so_and_can_be_retried(two: tuple[Party, Party]) -> None:
    ada, bob = two
    sent = ada.send(bob)
    ada.call("message.delete", id=sent["message"])
    ada.call("message.restore", id=sent["message"])
    assert bob.get(sent["ids"][0])["status"] == "cancelled"
    ada.call("envelope.retry", ids=sent["ids"])
    assert bob.get(sent["ids"][0])["status"] == "pending"


def test_only_its_author_or_the_boss_restores_a_message(daemon: RunningDaemon) -> None:
    ada, bob, eve = agents(daemon, 3)
    sent = ada.send(bob)
    ada.call("message.delete", id=sent["message"])
    assert bob.refusal("message.restore", id=sent["message"]) == "not_author"
    assert eve.refusal("message.restore", id=sent["message"]) == "not_found"
    assert boss(daemon).call("message.restore", id=sent["message"])["changed"] is True
    assert bob.refusal("message.restore", id=sent["message"]) == "not_author"


def test_what_the_boss_deleted_only_the_boss_restores(two: tuple[Party, Party]) -> None:
    ada, bob = two
    sent = ada.send(bob)
    boss(ada.daemon).call("message.delete", id=sent["message"])
    assert ada.refusal("message.restore", id=sent["message"]) == "not_author"
    assert boss(ada.daemon).call("message.restore", id=sent["message"])["changed"] is True
    assert message(ada, sent["message"])["deleted"] is False


def test_a_restored_message_is_edited_and_answered_as_ever(daemon: RunningDaemon) -> None:
    ada, bob = agent(daemon), agent(daemon)
    sent = ada.send(bob, text="one")
    for _ in range(2):
        ada.call("message.delete", id=sent["message"])
        ada.call("message.restore", id=sent["message"])
    ada.call("message.edit", id=sent["message"], text="two")
    answer = bob.send(reply_to=sent["message"])
    assert message(bob, sent["message"])["body"]["content"] == "two"
    assert message(ada, answer["message"])["reply_to"] == sent["message"]
