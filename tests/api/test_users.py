"""People with a box of their own, and conversations: read from the end, and what is new in them."""

from __future__ import annotations

from typing import Any

from tests.support.parties import Party, agent
from tests.support.python_agents import QUIET, Boss, Team, texts, wait_until_idle

# --- people --------------------------------------------------------------------------------------


def person(ada: Boss, name: str, **fields: Any) -> Party:
    answer = ada.call("user.register", name=name, **fields)
    assert answer["token"].startswith("hbu_")
    return Party(ada.daemon, f"user:{name}", answer["token"])


def test_a_person_converses_with_an_agent(team: Team, ada: Boss) -> None:
    carol = person(ada, "carol", display="Carol C.")
    kai = team.hire('print("Hello " + re.search("from-name: (.*)", TURN)[1])')
    sent = carol.send(kai, text="good morning")
    wait_until_idle(ada.daemon)
    [reply] = carol.list()
    assert (reply["text"], reply["from"], reply["reply_to"]) == (
        "Hello Carol C.",
        kai.address,
        sent["message"],
    )
    assert reply["status"] == "done" and "from-boss" not in kai.turns()[0]
    said = carol.call("conversation.messages", **{"with": kai.address})
    assert texts(said["envelopes"]) == ["good morning", "Hello Carol C."] and not said["more"]
    assert carol.get(reply["id"])["read_at"] is None  # looking marks nothing
    assert ada.heard(kai) == []  # the boss's conversation is another


def test_people_are_listed_and_told_apart_from_agents(team: Team, ada: Boss) -> None:
    dan = person(ada, "dan")
    users = {one["name"]: one for one in dan.call("user.list")["users"]}
    assert users["dan"] == users["dan"] | {"address": "user:dan", "display": "dan", "boss": False}
    assert users["boss"]["boss"] and next(iter(users)) == "boss"
    kai = team.hire(QUIET)
    for taken in ("Dan", kai.name, kai.name.upper()):
        assert ada.refusal("user.register", name=taken) == "name_taken"
    assert ada.refusal("agent.register", name="DAN") == "name_taken"
    for bad in ("", "a b", "boss", "system", "x" * 65):
        assert ada.refusal("user.register", name=bad) == "bad_name"


def test_a_person_may_not_do_what_the_boss_may(team: Team, ada: Boss) -> None:
    erin, kai = person(ada, "erin"), team.hire(QUIET)
    ada.say(kai)
    wait_until_idle(ada.daemon)
    [run] = kai.runs()
    for method, params in (
        ("user.register", {"name": "frank"}),
        ("user.delete", {"name": "carol"}),
        ("user.token.rotate", {"name": "erin"}),
        ("agent.pause", {"name": kai.name}),
        ("agent.set", {"name": kai.name, "reply": "explicit"}),
        ("control.send", {"event": "stream.pause", "agent": kai.name}),
    ):
        assert erin.refusal(method, **params) in ("forbidden", "boss_only"), method
    assert {erin.refusal(f"run.{verb}", id=run["id"]) for verb in ("cancel", "pause")} == {"not_found"}
    assert erin.refusal("run.get", id=run["id"]) == "not_found" and erin.call("run.list")["runs"] == []
    assert erin.refusal("run.list", agent=kai.name) == "boss_only"
    assert erin.refusal("conversation.messages", **{"with": kai.address}, address="user:boss") == "boss_only"
    assert erin.call("agent.status", name=kai.name)["agent"]["last_run"] is None


def test_a_new_token_ends_the_one_before(ada: Boss) -> None:
    gina = person(ada, "gina")
    answer = ada.call("user.token.rotate", name="gina")
    assert answer["revoked"] == 1 and gina.refusal("agent.self") == "bad_token"
    gina.token = answer["token"]
    assert gina.call("agent.self")["address"] == "user:gina"
    assert ada.refusal("user.token.rotate", name="boss") == "unknown_user"


def test_a_person_who_left_has_no_token_and_is_nobodys_correspondent(team: Team, ada: Boss) -> None:
    hugo, kai = person(ada, "hugo"), team.hire(QUIET)
    hugo.send(kai, text="goodbye")
    wait_until_idle(ada.daemon)
    assert ada.call("user.delete", name="hugo") == {"name": "hugo", "deleted": True}
    assert hugo.refusal("agent.self") == "bad_token"
    assert kai.refusal("envelope.send", to="user:hugo", text="?") == "unknown_recipient"
    assert "hugo" not in [one["name"] for one in ada.call("user.list")["users"]]
    assert (
        ada.refusal("user.delete", name="hugo") == ada.refusal("user.delete", name="boss") == "unknown_user"
    )
    again = person(ada, "hugo")
    assert (
        again.list() == [] and again.call("conversation.messages", **{"with": kai.address})["envelopes"] == []
    )


# --- conversations -------------------------------------------------------------------------------


def test_what_was_said_is_read_from_the_end_in_pages(two: tuple[Party, Party]) -> None:
    kai, zoe = two
    said = [
        one.send(other, text=str(number)) and str(number)
        for number, (one, other) in enumerate([two, two[::-1]] * 3)
    ]
    page = kai.call("conversation.messages", **{"with": zoe.address}, page_size=4)
    assert (texts(page["envelopes"]), page["more"], page["last"]) == (said[2:], True, 6)
    first = page["envelopes"][0]["seq"]
    page = kai.call("conversation.messages", **{"with": zoe.address}, page_size=4, before=first)
    assert (texts(page["envelopes"]), page["more"]) == (said[:2], False)
    assert zoe.call("conversation.messages", **{"with": kai.address})["conversation"] == page["conversation"]


def test_nothing_was_said_yet(two: tuple[Party, Party]) -> None:
    kai, zoe = two
    empty = kai.call("conversation.messages", **{"with": zoe.address})
    assert (empty["conversation"], empty["envelopes"], empty["last"], empty["more"]) == (None, [], 0, False)
    assert kai.refusal("conversation.messages", **{"with": "agent:nobody-here"}) == "unknown_address"
    assert kai.refusal("conversation.messages", **{"with": "nobody-here"}) == "unknown_address"
    assert kai.refusal("conversation.messages", **{"with": "robot:zoe"}) == "bad_address"
    news = kai.call("conversation.news", **{"with": zoe.address}, after=0)
    assert (news["conversation"], news["envelopes"], news["run"]) == (None, [], None)


def test_nobody_follows_what_others_say(team: Team, ada: Boss) -> None:
    kai, zoe = team.hire(QUIET), agent(ada.daemon)
    ada.say(kai, text="between us")
    wait_until_idle(ada.daemon)
    found = zoe.call("conversation.news", **{"with": kai.address}, after=0)
    assert found["envelopes"] == [] and found["run"] is None
    assert (
        zoe.refusal("conversation.news", **{"with": kai.address}, after=0, address="user:boss") == "boss_only"
    )
    assert texts(
        ada.call("conversation.messages", **{"with": "user:boss"}, address=kai.address)["envelopes"]
    ) == ["between us"]
