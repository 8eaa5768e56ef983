"""Reactions of agents, users and the boss: stored, seen by who wrote the message, and shown in its chat."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hiboss.testing.running_daemon import Answered, RunningDaemon
from tests.support.live_places import LivePlace
from tests.support.parties import Party, agent, boss
from tests.support.python_agents import Boss, Team
from tests.support.scripted_channels import envelope_error, lane_error, notices
from tests.support.waits import wait_until

REACTS = ("react", "threads")


def bound(daemon: RunningDaemon, directory: Path, *capabilities: str, **settings: Any) -> LivePlace:
    return LivePlace(directory, *(capabilities or REACTS), **settings).bound(daemon)


def on(party: Party, number: str) -> list[tuple[str, str | None, bool]]:
    return [(one["emoji"], one["address"], one["from_boss"]) for one in party.get(number)["reactions"]]


def left(daemon: RunningDaemon) -> int:
    with daemon.database() as database:
        return int(database.execute("SELECT count(*) FROM reaction_change").fetchone()[0])


def received(place: LivePlace, update: str = "1", **facts: Any) -> str:
    """Let a message come in; return the id of its envelope."""
    place.comes_in(update, **{"text": "hello", "message": f"p{update}", **facts})
    return str(place.owner.list()[0]["id"])


# --- stored here -------------------------------------------------------------------------


def test_each_has_one_reaction_on_a_message_and_a_new_one_replaces_it(
    daemon: RunningDaemon, ada: Party, bob: Party
) -> None:
    number = ada.tell(bob)
    message = bob.get(number)["message"]
    answer = bob.call("reaction.set", id=number, emoji="👍")
    assert answer == {"message": message, "emoji": "👍", "changed": True, "shown_in": []}
    assert not bob.call("reaction.set", id=message, emoji="👍")["changed"]
    bob.call("reaction.set", id=message, emoji="🎉")
    ada.call("reaction.set", id=number, emoji="👀")
    boss(daemon).call("reaction.set", id=number, emoji="🎉")
    found = [("🎉", bob.address, False), ("👀", ada.address, False), ("🎉", "user:boss", True)]
    assert sorted(on(ada, number)) == sorted(found)
    assert bob.call("reaction.remove", id=number)["changed"]
    assert not bob.call("reaction.remove", id=number)["changed"]
    assert sorted(on(ada, number)) == sorted(found[1:])


def test_who_cannot_see_a_message_cannot_react_to_it(daemon: RunningDaemon) -> None:
    ada, bob, other = agent(daemon), agent(daemon), agent(daemon)
    number = ada.tell(bob)
    later = ada.tell(bob, deliver_at="+2h")
    assert other.refusal("reaction.set", id=number, emoji="👍") == "not_found"
    assert bob.refusal("reaction.set", id=later, emoji="👍") == "not_found"
    assert ada.call("reaction.set", id=later, emoji="👍")["changed"]


def test_a_name_that_is_given_to_another_agent_has_no_reaction(
    daemon: RunningDaemon, ada: Party, bob: Party
) -> None:
    number = ada.tell(bob, text="hello")
    bob.call("reaction.set", id=number, emoji="👍")
    boss(daemon).call("agent.delete", name=bob.name)
    assert agent(daemon, bob.name).refusal("reaction.remove", id=ada.get(number)["message"]) == "not_found"
    assert on(ada, number) == [("👍", bob.address, False)]


def test_the_agent_that_wrote_a_message_sees_it_in_its_next_turn_once(
    daemon: RunningDaemon, tmp_path: Path
) -> None:
    team, chief = Team(daemon, tmp_path), Boss(daemon)
    worker = team.hire('print("the build is green")')
    chief.say_and_wait(worker, text="well?")
    [answer] = chief.heard(worker)
    chief.call("reaction.set", id=answer["id"], emoji="👍")
    worker.call("reaction.set", id=answer["message"], emoji="🎉")  # its own: it knows of it
    for _ in range(2):
        chief.say_and_wait(worker, text="and now?")
    _, second, third = worker.program.turns()
    assert f'reactions:\n- {answer["message"]} 👍 Ada [boss]: "the build is green"\n' in second
    assert "🎉" not in second and "reactions:" not in third


# --- shown in the chat -------------------------------------------------------------------


def test_the_account_of_an_agent_shows_its_reaction_and_takes_it_back(
    daemon: RunningDaemon, tmp_path: Path
) -> None:
    place = bound(daemon, tmp_path)
    number = received(place)
    assert place.owner.call("reaction.set", id=number, emoji="👍")["shown_in"] == [place.address]
    wait_until(lambda: len(place.signs("react")) == 1)
    place.owner.call("reaction.remove", id=number)
    wait_until(lambda: len(place.signs("react")) == 2)
    assert [(one["place"], one["id"], one["emoji"]) for one in place.signs("react")] == [
        (place.name, "p1", "👍"),
        (place.name, "p1", None),
    ]
    wait_until(lambda: not left(daemon))


def test_what_people_set_by_command_is_not_shown_by_the_account(
    daemon: RunningDaemon, tmp_path: Path
) -> None:
    place = bound(daemon, tmp_path)
    number = received(place)
    assert boss(daemon).call("reaction.set", id=number, emoji="👍")["shown_in"] == []
    place.owner.call("reaction.set", id=number, emoji="🎉")
    wait_until(lambda: bool(place.signs("react")))
    assert [one["emoji"] for one in place.signs("react")] == ["🎉"]


def test_of_two_agents_of_an_account_the_last_reaction_is_shown_and_then_the_other_one(
    daemon: RunningDaemon, tmp_path: Path
) -> None:
    place = bound(daemon, tmp_path)
    first, second = place.owner, agent(daemon)
    number = first.tell(second, text="look", reply_to=received(place))
    message = place.owner.list()[0]["message"]
    place.bind(second)
    with daemon.database() as database:  # as if both had received it: an account hands a message to one
        sql = "INSERT INTO envelope (message, recipient, status, arrived, done_at) VALUES (?, ?, 1, ?, 1)"
        parts = "INSERT OR IGNORE INTO participant (conversation, address) VALUES (?, ?)"
        [arrived] = database.execute("SELECT max(arrived) FROM envelope").fetchone()
        [address] = database.execute("SELECT id FROM address WHERE name = ?", (second.name,)).fetchone()
        sender = database.execute("SELECT * FROM message WHERE id = ?", (int(message[1:]),)).fetchone()
        database.execute(parts, (sender["conversation"], address))
        database.execute("UPDATE conversation SET kind = 'adhoc' WHERE id = ?", (sender["conversation"],))
        database.execute(sql, (sender["id"], address, -arrived))
        database.commit()
    assert number
    for party, emoji in ((first, "👍"), (second, "🎉")):
        party.call("reaction.set", id=message, emoji=emoji)
        wait_until(lambda: not left(daemon))
    second.call("reaction.remove", id=message)
    wait_until(lambda: not left(daemon))
    assert [one["emoji"] for one in place.signs("react")] == ["👍", "🎉", "👍"]


def test_a_post_of_another_account_in_a_group_gets_the_reaction_and_an_own_one_does_not(
    daemon: RunningDaemon, tmp_path: Path
) -> None:
    mine, theirs = (bound(daemon, tmp_path, places=["shared"]) for _ in range(2))
    with daemon.database() as database:
        database.execute("UPDATE contact SET kind = 'group' WHERE platform_id = 'shared'")
        database.commit()
    to = "channel:scripted:shared"
    sent = theirs.owner.send(to, mine.owner, text="for both")
    own = mine.owner.send(to, theirs.owner, text="mine")
    wait_until(lambda: "for both" in theirs.texts() and "mine" in mine.texts())
    theirs.wait_for_status(sent["ids"][0], "done")
    assert mine.owner.call("reaction.set", id=sent["message"], emoji="👍")["shown_in"] == [to]
    assert mine.owner.call("reaction.set", id=own["message"], emoji="🎉")["shown_in"] == []
    wait_until(lambda: bool(mine.signs("react")))
    wait_until(lambda: not left(daemon))
    [shown] = mine.signs("react")
    assert (shown["place"], shown["id"]) == ("shared", f"{sent['ids'][0]}.0") and not theirs.signs("react")


def test_a_platform_without_reactions_keeps_it_here(daemon: RunningDaemon, tmp_path: Path) -> None:
    place = bound(daemon, tmp_path, "threads", emojis=["👍"])
    number = received(place)
    assert place.owner.call("reaction.set", id=number, emoji="🎉")["shown_in"] == []
    wait_until(lambda: not left(daemon))
    assert on(place.owner, number) == [("🎉", place.owner.address, False)] and not notices(place.owner)


def test_an_emoji_that_the_platform_does_not_take_is_refused_and_nothing_is_stored(
    daemon: RunningDaemon, tmp_path: Path
) -> None:
    place = bound(daemon, tmp_path, emojis=["👍", "❤"])
    number = received(place)
    with pytest.raises(Answered) as refused:
        place.owner.call("reaction.set", id=number, emoji="🎉")
    assert refused.value.stable_code == "emoji_refused"
    assert "scripted shows no 🎉" in str(refused.value) and "👍 ❤" in str(refused.value)
    assert on(place.owner, number) == [] and not left(daemon)
    assert boss(daemon).call("reaction.set", id=number, emoji="🎉")["changed"]  # it is not shown there
    place.owner.call("reaction.set", id=number, emoji="❤️")
    wait_until(lambda: [one["emoji"] for one in place.signs("react")] == ["❤"])


def test_what_fails_for_now_is_shown_later_and_only_the_last_one(
    daemon: RunningDaemon, tmp_path: Path
) -> None:
    place = bound(daemon, tmp_path)
    number = received(place)
    place.steer("pause")
    for emoji in ("👍", "🎉", "👀"):
        place.owner.call("reaction.set", id=number, emoji=emoji)
    assert left(daemon) == 1
    place.script_for("react", lane_error(retry_after=0.05))
    place.steer("resume")
    wait_until(lambda: not left(daemon))
    assert [one["emoji"] for one in place.signs("react")] == ["👀"]


def test_what_the_platform_refuses_is_told_to_the_agent_and_stays_here(
    daemon: RunningDaemon, tmp_path: Path
) -> None:
    place = bound(daemon, tmp_path)
    number = received(place)
    place.script_for("react", envelope_error(text="the message is too old"))
    place.owner.call("reaction.set", id=number, emoji="👍")
    wait_until(lambda: not left(daemon))
    [told] = notices(place.owner)
    message = place.owner.get(number)["message"]
    assert told["text"] == (
        f'Your 👍 on {message} is not shown in {place.address}. Reason: "the message is too old"'
    )
    assert on(place.owner, number) == [("👍", place.owner.address, False)]


def test_an_account_that_is_unbound_or_whose_chat_is_blocked_shows_nothing_more(
    daemon: RunningDaemon, tmp_path: Path
) -> None:
    place = bound(daemon, tmp_path)
    number = received(place)
    place.steer("pause")
    place.owner.call("reaction.set", id=number, emoji="👍")
    place.unbind()
    assert place.owner.call("reaction.set", id=number, emoji="🎉")["shown_in"] == []
    place.bound(daemon, place.owner)
    assert place.owner.call("reaction.set", id=number, emoji="👀")["shown_in"] == [place.address]
    wait_until(lambda: bool(place.signs("react")))
    boss(daemon).call("contact.block", contact=place.address, binding=f"b{place.binding}")
    assert place.owner.call("reaction.set", id=number, emoji="🔥")["shown_in"] == []
    assert [one["emoji"] for one in place.signs("react")] == ["👀"]
