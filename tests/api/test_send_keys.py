"""Sending with a key: however often a request is repeated, it happens once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hiboss.testing.running_daemon import Answered, RunningDaemon
from tests.support.parties import Party, agent, agents, at_once, boss, stored


def but_for_duplicate(answer: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in answer.items() if name != "duplicate"}


def test_the_same_key_gives_the_first_answer_again(two: tuple[Party, Party]) -> None:
    ada, bob = two
    first = ada.send(bob, ada, text="once", key="k1")
    before = stored(ada.daemon)
    again = ada.send(bob, ada, text="once", key="k1")
    assert first["duplicate"] is False and again["duplicate"] is True
    assert but_for_duplicate(again) == but_for_duplicate(first)
    assert stored(ada.daemon) == before
    assert len(bob.list()) == 1


def test_a_repeated_reply_gives_the_first_answer_with_its_thread(two: tuple[Party, Party]) -> None:
    ada, bob = two
    asked = ada.send(bob)
    first = bob.send(reply_to=asked["ids"][0], key="k")
    again = bob.send(reply_to=asked["ids"][0], key="k")
    assert again["duplicate"] is True and again["thread"] == asked["thread"]
    assert but_for_duplicate(again) == but_for_duplicate(first)


def test_a_relative_time_asked_again_later_is_the_same_request(two: tuple[Party, Party]) -> None:
    ada, bob = two
    first = ada.send(bob, key="k", deliver_at="+2h")
    again = ada.send(bob, key="k", deliver_at="+2h")
    assert again["duplicate"] is True and again["deliver_at"] == first["deliver_at"]
    assert but_for_duplicate(again) == but_for_duplicate(first)


def test_a_repeat_needs_no_attachment_any_more(two: tuple[Party, Party], tmp_path: Path) -> None:
    ada, bob = two
    file = tmp_path / "gone.txt"
    file.write_text("soon gone")
    first = ada.send(bob, key="k", attachments=[str(file)])
    file.unlink()
    again = ada.send(bob, key="k", attachments=[str(file)])
    assert again["duplicate"] is True and again["ids"] == first["ids"]
    (got,) = bob.list()
    assert Path(got["attachments"][0]["path"]).read_text() == "soon gone"


def test_a_repeat_is_answered_after_the_recipient_has_gone(two: tuple[Party, Party]) -> None:
    ada, bob = two
    first = ada.send(bob, key="k")
    boss(ada.daemon).call("agent.delete", name=bob.name)
    namesake = agent(ada.daemon, bob.name)
    assert ada.send(bob, key="k")["ids"] == first["ids"]
    assert namesake.list() == []


def test_a_repeat_is_answered_after_the_envelope_was_cancelled(two: tuple[Party, Party]) -> None:
    ada, bob = two
    first = ada.send(bob, key="k")
    ada.call("envelope.cancel", ids=first["ids"])
    assert ada.send(bob, key="k")["ids"] == first["ids"]
    assert [one["status"] for one in bob.list()] == ["cancelled"]


@pytest.mark.parametrize(
    "other",
    [
        {"text": "other"},
        {"subject": "s"},
        {"priority": "high"},
        {"type": "markdown"},
        {"deliver_at": "+2h"},
        {"metadata": {"a": 1}},
        {"trace_id": "t"},
        {"interruptible": False},
        {"attachments": ["/etc/hostname"]},
    ],
    ids=lambda one: next(iter(one)),
)
def test_the_same_key_with_other_content_is_refused(two: tuple[Party, Party], other: dict[str, Any]) -> None:
    ada, bob = two
    first = ada.send(bob, key="k")
    before = stored(ada.daemon)
    with pytest.raises(Answered) as caught:
        ada.send(bob, key="k", **other)
    assert caught.value.stable_code == "key_reused" and caught.value.facts["id"] == first["ids"][0]
    assert stored(ada.daemon) == before


def test_the_same_key_to_somebody_else_is_refused(daemon: RunningDaemon) -> None:
    ada, bob, eve = agents(daemon, 3)
    ada.send(bob, key="k")
    assert ada.refusal("envelope.send", to=[eve.address], text="hello", key="k") == "key_reused"
    assert eve.list() == []


def test_keys_are_told_apart_to_the_letter(two: tuple[Party, Party]) -> None:
    ada, bob = two
    ids = {ada.tell(bob, key=key) for key in ("k", "K", " k", "k ", "ќ")}
    assert len(ids) == 5


def test_without_a_key_the_same_words_are_sent_twice(two: tuple[Party, Party]) -> None:
    ada, bob = two
    assert ada.tell(bob) != ada.tell(bob)
    assert len(bob.list()) == 2


@pytest.mark.parametrize("text", ["a secret", "something else"])
def test_another_caller_may_use_the_same_key_and_learns_nothing(daemon: RunningDaemon, text: str) -> None:
    ada, bob, eve = agents(daemon, 3)
    first = ada.send(bob, text="a secret", key="k")
    theirs = eve.send(bob, text=text, key="k")
    assert theirs["duplicate"] is False and theirs["ids"] != first["ids"]
    assert theirs["conversation"] != first["conversation"]
    assert eve.send(bob, text=text, key="k")["ids"] == theirs["ids"]
    assert ada.send(bob, text="a secret", key="k")["ids"] == first["ids"]


def test_a_namesake_does_not_inherit_keys(two: tuple[Party, Party]) -> None:
    ada, bob = two
    first = ada.send(bob, key="k")
    boss(ada.daemon).call("agent.delete", name=ada.name)
    namesake = agent(ada.daemon, ada.name)
    theirs = namesake.send(bob, key="k", text="something else")
    assert theirs["duplicate"] is False and theirs["ids"] != first["ids"]


def test_a_refused_send_does_not_use_its_key_up(two: tuple[Party, Party]) -> None:
    ada, bob = two
    assert (
        ada.refusal("envelope.send", to=[bob.address, "agent:nobody-here"], text="x", key="k")
        == "unknown_recipient"
    )
    assert ada.send(bob, text="y", key="k")["duplicate"] is False


@pytest.mark.parametrize("with_file", [False, True])
def test_of_32_at_once_with_one_key_one_is_stored(
    two: tuple[Party, Party], with_file: bool, tmp_path: Path
) -> None:
    ada, bob = two
    (tmp_path / "f.txt").write_text("f")
    files = [str(tmp_path / "f.txt")] if with_file else []
    results = at_once([lambda: ada.send(bob, key="k", attachments=files)] * 32)
    assert len({tuple(one["ids"]) for one in results}) == 1
    assert [one["duplicate"] for one in results].count(False) == 1
    assert len(bob.list()) == 1
