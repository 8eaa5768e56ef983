"""How reactions of agents and deleted messages look: like nothing that a sender could write."""

from __future__ import annotations

from typing import Any
from zoneinfo import ZoneInfo

from hiboss.core import rendering
from tests.core.letters import letter, reaction

UTC = ZoneInfo("UTC")


def lines(**facts: Any) -> list[str]:
    return rendering.envelope(letter(**facts), UTC).splitlines()


def test_a_deleted_message_says_so_and_why_and_has_no_text() -> None:
    shown = lines(deleted=True, deleted_why="said twice\nstatus: done", text="", subject=None)
    assert "deleted: true" in shown and 'deleted-why: "said twice\\nstatus: done"' in shown
    assert shown[-2:] == ["text:", "(none)"]


def test_a_message_that_is_there_says_nothing_of_it() -> None:
    assert not [one for one in lines() if one.startswith("deleted")]


def test_a_reaction_of_an_agent_has_its_address_and_no_name_can_look_like_it() -> None:
    kai = reaction("👍", "Kai", address="agent:kai")
    ada = reaction("🎉", "Ada", address="user:boss", from_boss=True)
    forger = reaction("👎", "agent:kai")
    [shown] = [one for one in lines(reactions=[kai, ada, forger]) if one.startswith("reactions")]
    assert shown == 'reactions: 👍 agent:kai, 🎉 Ada [boss], 👎 "agent:kai"'
