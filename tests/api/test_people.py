"""The boss and other people: names, zones, tokens, and what they may do."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest

from hiboss.testing.running_daemon import Answered, RunningDaemon
from tests.support.daemons import ask, code, line
from tests.support.parties import Party, agent, boss, person
from tests.support.python_agents import QUIET, Boss, Team, texts, wait_until_idle
from tests.support.raising import raised

TOKYO = timedelta(hours=9)
ADA: dict[str, Any] = {"name": "Ada", "address": "user:boss", "timezone": "UTC"}
NOWHERE = {"reach": None, "reach_binding": None, "forward": "all", "ids": {}}  # is the boss reached
HIDDEN = {"reach": None, "reach_binding": None, "forward": None, "ids": {}}  # of those who ask, but the boss


@pytest.fixture(autouse=True)
def as_before(daemon: RunningDaemon) -> Iterator[None]:
    yield
    boss(daemon).call("boss.set", name="Ada", timezone="UTC")


def offset(text: str) -> timedelta | None:
    return datetime.fromisoformat(text).utcoffset()


def test_everybody_with_a_token_may_know_who_the_boss_is(daemon: RunningDaemon) -> None:
    assert agent(daemon).call("boss.get") == {**ADA, **HIDDEN}  # where is not theirs to know
    assert boss(daemon).call("boss.get") == {**ADA, **NOWHERE}
    assert raised(Answered, daemon.call, "boss.get").stable_code == "no_token"


def test_the_boss_alone_changes_the_boss(daemon: RunningDaemon) -> None:
    one = agent(daemon)
    boss(daemon).call("agent.permission.set", name=one.name, level="privileged")
    assert one.refusal("boss.set", name="Eve") == one.refusal("boss.token.rotate") == "forbidden"
    assert boss(daemon).call("boss.get")["name"] == "Ada"


@pytest.mark.parametrize(
    ("given", "changed"),
    [
        ({"name": "Grace"}, {"name": "Grace"}),
        ({"name": "  Grace Hopper \n"}, {"name": "Grace Hopper"}),
        ({"name": "Åda 🦉 עדה"}, {"name": "Åda 🦉 עדה"}),
        ({"name": "n" * 256}, {"name": "n" * 256}),
        ({"timezone": "Asia/Tokyo"}, {"timezone": "Asia/Tokyo"}),
        ({"name": "G", "timezone": "Europe/Berlin"}, {"name": "G", "timezone": "Europe/Berlin"}),
    ],
)
def test_what_is_given_changes_and_the_rest_stays(
    daemon: RunningDaemon, given: dict[str, Any], changed: dict[str, Any]
) -> None:
    expected = {**ADA, **NOWHERE, **changed}
    assert boss(daemon).call("boss.set", **given) == boss(daemon).call("boss.get") == expected
    check = daemon.call("setup.check")
    assert (check["boss_name"], check["timezone"]) == (expected["name"], expected["timezone"])


def test_a_name_that_is_no_text_at_all_changes_nothing(daemon: RunningDaemon) -> None:
    raw = line("boss.set", token=daemon.token("boss"), name="NAME").replace(b"NAME", b"\\ud800")
    (answer,) = daemon.exchange(raw.rstrip(b"\n"), answers=1)
    assert code(answer) in ("parse_error", "bad_text")
    assert boss(daemon).call("boss.get")["name"] == "Ada"


def test_every_time_that_is_shown_or_read_follows_the_new_zone_at_once(
    daemon: RunningDaemon, ada: Party
) -> None:
    number = ada.tell(ada)
    with daemon.connect() as connection:
        assert code(ask(connection, "auth.login", token=ada.token)) == "ok"
        boss(daemon).call("boss.set", timezone="Asia/Tokyo")
        assert ask(connection, "daemon.time")["result"]["timezone"] == "Asia/Tokyo"
        preview = ask(connection, "turn.preview")["result"]
    assert offset(daemon.call("daemon.time")["local"]) == TOKYO
    for method, params in (
        ("envelope.list", {}),
        ("envelope.get", {"id": number}),
        ("envelope.read", {"ids": [number]}),
        ("agent.list", {}),
        ("agent.self", {}),
        ("turn.preview", {}),
        ("daemon.status", {}),
    ):
        assert ada.call(method, **params)["timezone"] == "Asia/Tokyo", method
    shown = [text for text in preview["text"].splitlines() if text.startswith(("now: ", "created-at: "))]
    assert len(shown) == 2 and {offset(text.partition(": ")[2]) for text in shown} == {TOKYO}
    # A time without a zone is meant in the boss's.
    sent = ada.send(ada, deliver_at="2090-01-27 16:30")
    assert (sent["deliver_at"], sent["timezone"]) == ("2090-01-27T07:30:00.000Z", "Asia/Tokyo")


def test_the_new_name_and_zone_are_there_after_a_restart(daemon: RunningDaemon) -> None:
    boss(daemon).call("boss.set", name="Grace", timezone="Asia/Tokyo")
    daemon.stop()
    daemon.start()
    assert boss(daemon).call("boss.get") == {**ADA, **NOWHERE, "name": "Grace", "timezone": "Asia/Tokyo"}
    assert daemon.call("daemon.time")["timezone"] == "Asia/Tokyo"


def test_mail_of_the_boss_carries_the_name_of_now(ada: Party, chief: Party) -> None:
    chief.call("boss.set", name="Grace")
    chief.send(ada, from_="user:boss")
    assert [(one["from"], one["from_boss"], one["from_name"]) for one in ada.list()] == [
        ("user:boss", True, "Grace")
    ]


def test_the_boss_gets_a_new_token_from_the_daemon(daemon: RunningDaemon) -> None:
    old = boss(daemon)
    with daemon.connect() as connection:
        assert code(ask(connection, "auth.login", token=old.token)) == "ok"
        answer = ask(connection, "boss.token.rotate")["result"]
        assert code(ask(connection, "boss.get")) == "bad_token"
    assert answer["revoked"] == 1 and answer["token"].startswith("hbb_")
    assert answer["profile"] == daemon.home.profile("boss") and daemon.token("boss") == answer["token"]
    assert old.refusal("boss.get") == "bad_token"
    assert boss(daemon).call("boss.get")["name"] == "Ada"
    assert Party(daemon, "agent:nex", daemon.token("nex")).call("agent.self")["address"] == "agent:nex"


# --- other people ------------------------------------------------------------------


# --- people --------------------------------------------------------------------------------------


def test_a_person_converses_with_an_agent(team: Team, chief: Boss) -> None:
    carol = person(chief.daemon, "carol", display="Carol C.")
    kai = team.hire('print("Hello " + re.search("from-name: (.*)", TURN)[1])')
    sent = carol.send(kai, text="good morning")
    wait_until_idle(chief.daemon)
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
    assert chief.heard(kai) == []  # the boss's conversation is another


def test_people_are_listed_and_told_apart_from_agents(team: Team, chief: Boss) -> None:
    users = {one["name"]: one for one in person(chief.daemon, "dan").call("user.list")["users"]}
    assert users["dan"] == users["dan"] | {"address": "user:dan", "display": "dan", "boss": False}
    assert users["boss"]["boss"] and next(iter(users)) == "boss"
    kai = team.hire(QUIET)
    for taken in ("Dan", kai.name, kai.name.upper()):
        assert chief.refusal("user.register", name=taken) == "name_taken"
    assert chief.refusal("agent.register", name="DAN") == "name_taken"
    for bad in ("", "a b", "boss", "system", "x" * 65):
        assert chief.refusal("user.register", name=bad) == "bad_name"


def test_a_person_may_not_do_what_the_boss_may(team: Team, chief: Boss) -> None:
    erin, kai = person(chief.daemon, "erin"), team.hire(QUIET)
    chief.say_and_wait(kai)
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


def test_a_new_token_ends_the_one_before(chief: Boss) -> None:
    gina = person(chief.daemon, "gina")
    answer = chief.call("user.token.rotate", name="gina")
    assert answer["revoked"] == 1 and gina.refusal("agent.self") == "bad_token"
    gina.token = answer["token"]
    assert gina.call("agent.self")["address"] == "user:gina"
    assert chief.refusal("user.token.rotate", name="boss") == "unknown_user"


def test_a_person_who_left_has_no_token_and_is_nobodys_correspondent(team: Team, chief: Boss) -> None:
    hugo, kai = person(chief.daemon, "hugo"), team.hire(QUIET)
    hugo.send(kai, text="goodbye")
    wait_until_idle(chief.daemon)
    assert chief.call("user.delete", name="hugo") == {"name": "hugo", "deleted": True}
    assert hugo.refusal("agent.self") == "bad_token"
    assert kai.refusal("envelope.send", to="user:hugo", text="?") == "unknown_recipient"
    assert "hugo" not in [one["name"] for one in chief.call("user.list")["users"]]
    assert (
        chief.refusal("user.delete", name="hugo")
        == chief.refusal("user.delete", name="boss")
        == "unknown_user"
    )
    again = person(chief.daemon, "hugo")
    assert (
        again.list() == [] and again.call("conversation.messages", **{"with": kai.address})["envelopes"] == []
    )


# --- conversations -------------------------------------------------------------------------------


def test_nothing_was_said_yet(two: tuple[Party, Party]) -> None:
    kai, zoe = two
    empty = kai.call("conversation.messages", **{"with": zoe.address})
    assert (empty["conversation"], empty["envelopes"], empty["last"], empty["more"]) == (None, [], 0, False)
    assert kai.refusal("conversation.messages", **{"with": "agent:nobody-here"}) == "unknown_address"
    assert kai.refusal("conversation.messages", **{"with": "nobody-here"}) == "unknown_address"
    assert kai.refusal("conversation.messages", **{"with": "robot:zoe"}) == "bad_address"
    news = kai.call("conversation.news", **{"with": zoe.address}, after=0)
    assert (news["conversation"], news["envelopes"], news["run"]) == (None, [], None)


def test_nobody_follows_what_others_say(team: Team, chief: Boss) -> None:
    kai, zoe = team.hire(QUIET), agent(chief.daemon)
    chief.say_and_wait(kai, text="between us")
    found = zoe.call("conversation.news", **{"with": kai.address}, after=0)
    assert found["envelopes"] == [] and found["run"] is None
    assert (
        zoe.refusal("conversation.news", **{"with": kai.address}, after=0, address="user:boss") == "boss_only"
    )
    assert texts(
        chief.call("conversation.messages", **{"with": "user:boss"}, address=kai.address)["envelopes"]
    ) == ["between us"]
