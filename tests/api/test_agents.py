"""Agents: names, words said of them, and what is left when one is deleted."""

from __future__ import annotations

import json
import os
import stat
from typing import Any

import pytest

from hiboss.testing.running_daemon import Answered, RunningDaemon
from tests.support.daemons import ask, code
from tests.support.parties import Party, agent, at_once, boss
from tests.support.sweeps import sweep


def names(party: Party, **params: Any) -> list[str]:
    return [one["name"] for one in party.call("agent.list", **params)["agents"]]


# --- registering ---------------------------------------------------------------------


def test_a_registered_agent_has_an_address_and_a_token_that_works(daemon: RunningDaemon) -> None:
    answer = boss(daemon).call("agent.register", name="Fresh-1")
    assert answer["token"].startswith("hba_") and len(answer["token"]) >= 4 + 43 and answer["profile"] is None
    fresh = Party(daemon, "agent:Fresh-1", answer["token"])
    said = answer["agent"]
    found = fresh.call("agent.self")
    assert said["last_seen_at"] is None and found["agent"]["last_seen_at"] is not None  # it is here now
    assert found == {
        "kind": "agent",
        "address": "agent:Fresh-1",
        "level": "standard",
        "agent": {**said, "last_seen_at": found["agent"]["last_seen_at"]},
        "timezone": "UTC",
    }
    assert (said["kind"], said["mode"], said["level"]) == ("agent", "pull", "standard")
    assert "Fresh-1" in names(fresh)


def test_everything_said_of_an_agent_is_kept(daemon: RunningDaemon) -> None:
    words = {
        "kind": "service",
        "mode": "pull",
        "description": "reviews ünïcode",
        "role": "reviewer",
        "module": "core",
        "display": "The Reviewer",
        "workspace": "/srv/work",
    }
    answer = boss(daemon).call("agent.register", name="worded", **words)
    assert {name: answer["agent"][name] for name in words} == words
    (listed,) = [one for one in boss(daemon).call("agent.list")["agents"] if one["name"] == "worded"]
    # The same, as other programs call it.
    named = {"agent_id": "worded", "registered_at": listed["created_at"]}
    assert listed == {**answer["agent"], **named}


def test_a_profile_is_written_for_its_owner_alone(daemon: RunningDaemon) -> None:
    answer = boss(daemon).call("agent.register", name="Profiled", profile=True)
    path = answer["profile"]
    assert path == daemon.home.profile("profiled")
    with open(path) as file:
        assert file.read() == answer["token"] + "\n"
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    boss(daemon).call("agent.delete", name="PROFILED")
    assert not os.path.exists(path)


def test_a_name_of_letters_digits_and_single_dashes_is_taken(daemon: RunningDaemon) -> None:
    with sweep() as row:
        for name in (
            "a",
            "7",
            "A-1-b",
            "x" * 64,
        ):
            with row(name):
                assert agent(daemon, name).call("agent.self")["agent"]["name"] == name


def test_a_name_is_unique_whatever_the_case_and_keeps_its_profile(daemon: RunningDaemon) -> None:
    token = daemon.register("unique")
    for name in ("unique", "Unique", "UNIQUE"):
        assert boss(daemon).refusal("agent.register", name=name, profile=True) == "name_taken"
        with pytest.raises(Answered, match=f"hiboss agent set {name} … changes an agent"):
            boss(daemon).call("agent.register", name=name)
    assert daemon.token("unique") == token
    agent(daemon).send("agent:UNIQUE")
    assert len(Party(daemon, "agent:unique", token).list()) == 1


def test_of_many_who_want_one_name_at_once_one_gets_it(daemon: RunningDaemon) -> None:
    results = at_once([lambda: agent(daemon, "wanted")] * 8)
    assert [one.stable_code for one in results if isinstance(one, Answered)] == ["name_taken"] * 7
    (winner,) = [one for one in results if isinstance(one, Party)]
    assert winner.call("agent.self")["address"] == "agent:wanted"


# --- how it thinks -------------------------------------------------------------------


def test_a_provider_brings_its_mode_along_and_is_taken_away_with_all_that_belongs_to_it(
    chief: Party, ada: Party
) -> None:
    set_ = {
        "provider": "command",
        "settings": {"command": "python agent.py", "input": "turn"},
        "busy": "followup",
        "reply": "explicit",
    }
    shown = chief.call("agent.set", name=ada.name, **set_, daily_tokens=500, daily_cost=2.5)
    assert {word: shown[word] for word in set_} == set_
    assert (shown["mode"], shown["daily_tokens"], shown["daily_cost"]) == ("run", 500, 2.5)
    shown = chief.call(
        "agent.set", name=ada.name, settings={"command": "python other.py"}
    )  # of the same provider
    assert (shown["provider"], shown["settings"]["command"]) == ("command", "python other.py")
    shown = chief.call("agent.set", name=ada.name, mode="pull")  # for a while
    assert (shown["mode"], shown["settings"]["command"]) == ("pull", "python other.py")
    shown = chief.call("agent.set", name=ada.name, provider="none", daily_tokens=0, daily_cost=0)
    assert (shown["mode"], shown["provider"], shown["settings"]) == ("pull", None, {})
    assert (shown["daily_tokens"], shown["daily_cost"], shown["busy"]) == (None, None, "followup")


def test_the_secret_of_a_webhook_is_shown_once_and_goes_with_it(daemon: RunningDaemon) -> None:
    chief, secrets = boss(daemon), daemon.home.secrets
    hook = {"provider": "webhook", "settings": {"url": "http://127.0.0.1:1/"}}
    first = chief.call("agent.register", name="hooked", **hook)["secrets"]["secret"]
    assert first.startswith("whsec_")
    same = chief.call("agent.set", name="hooked", settings={"url": "http://127.0.0.1:2/"})
    assert "secrets" not in same and same["settings"]["url"] == "http://127.0.0.1:2/"
    (kept,) = os.listdir(secrets)
    assert daemon.home.secrets_of(kept) == {"secret": first}
    chief.call("agent.set", name="hooked", provider="webhook", settings={"url": "http://127.0.0.1:3/"})
    again = chief.call("agent.set", name="hooked", provider="webhook")  # keeps all but the secret
    second = again["secrets"]["secret"]
    assert again["settings"]["url"] == "http://127.0.0.1:3/"
    assert second != first and [daemon.home.secrets_of(one) for one in os.listdir(secrets)] == [
        {"secret": second}
    ]
    assert "whsec" not in json.dumps([chief.call("agent.list"), chief.call("agent.status", name="hooked")])
    chief.call("agent.delete", name="hooked")
    assert os.listdir(secrets) == []


# --- who may -------------------------------------------------------------------------


def test_the_boss_is_himself(daemon: RunningDaemon) -> None:
    said = boss(daemon).call("agent.self")
    assert said == {"kind": "boss", "address": "user:boss", "level": "boss", "agent": None, "timezone": "UTC"}


# --- listing and changing ------------------------------------------------------------


def test_agents_are_listed_by_name_and_filtered_by_role_and_module(daemon: RunningDaemon) -> None:
    for name, role, module in (("zoe", "dev", "ui"), ("Ann", "dev", "core"), ("max", "ops", "core")):
        agent(daemon, name, role=role, module=module)
    everybody = names(boss(daemon))
    assert everybody == sorted(everybody, key=str.lower) and {"zoe", "Ann", "max"} <= set(everybody)
    assert names(boss(daemon), role="dev") == ["Ann", "zoe"]
    assert "Ann" in names(boss(daemon), module="core") and "zoe" not in names(boss(daemon), module="core")
    assert names(boss(daemon), role="dev", module="core") == ["Ann"]
    assert names(boss(daemon), role="nothing") == []


def test_what_is_said_of_an_agent_can_be_changed_and_taken_away(daemon: RunningDaemon) -> None:
    ada = agent(daemon, role="dev", description="d")
    changed = boss(daemon).call("agent.set", name=ada.name.upper(), role="", display="Ada", kind="bot")
    assert (changed["name"], changed["role"], changed["display"]) == (ada.name, None, "Ada")
    assert (changed["description"], changed["kind"]) == ("d", "bot")
    assert {**ada.call("agent.self")["agent"], "last_seen_at": None} == changed


# --- deleting ------------------------------------------------------------------------


def test_deleting_ends_the_token_at_once_also_on_an_open_connection(
    daemon: RunningDaemon, ada: Party
) -> None:
    with daemon.connect() as connection:
        assert code(ask(connection, "auth.login", token=ada.token)) == "ok"
        assert code(ask(connection, "envelope.list")) == "ok"
        boss(daemon).call("agent.delete", name=ada.name)
        assert {
            code(ask(connection, method)) for method in ("envelope.list", "agent.self", "envelope.send")
        } == {"bad_token"}
    assert ada.refusal("agent.self") == "bad_token"
    agent(daemon, ada.name)
    assert ada.refusal("agent.self") == "bad_token"


def test_mail_waiting_for_a_deleted_agent_has_failed_and_says_why(
    daemon: RunningDaemon, ada: Party, bob: Party
) -> None:
    due, deferred, done, taken_back = (
        ada.tell(bob, **({"deliver_at": "+2h"} if n == 1 else {})) for n in range(4)
    )
    bob.call("envelope.ack", ids=[done])
    ada.call("envelope.cancel", ids=[taken_back])
    answer = boss(daemon).call("agent.delete", name=bob.name)
    assert answer == {"name": bob.name, "deleted": True, "failed_envelopes": 2}
    assert [ada.get(one)["status"] for one in (due, deferred, done, taken_back)] == [
        "failed",
        "failed",
        "done",
        "cancelled",
    ]
    for number in (due, deferred):
        got = ada.get(number)
        assert got["last_error"]["kind"] == "recipient_deleted" and got["last_error"]["at"] == got["done_at"]
        assert got["waits"] is None
    assert ada.ids(box="outbox", status="failed") == [deferred, due]
    assert ada.refusal("envelope.send", to=bob.address, text="x") == "unknown_recipient"


def test_a_namesake_inherits_no_mail(daemon: RunningDaemon, ada: Party, bob: Party) -> None:
    received, written = ada.tell(bob), bob.tell(ada)
    bob.tell(bob, deliver_at="+2h")
    old = ada.send(bob)["conversation"]
    boss(daemon).call("agent.delete", name=bob.name)
    namesake = agent(daemon, bob.name.upper())
    for box in ("inbox", "outbox", "archived", "trash"):
        assert namesake.list(box=box) == []
    for number in (received, written):
        assert namesake.refusal("envelope.get", id=number) == "not_found"
        assert namesake.refusal("envelope.cancel", ids=[number]) == "not_found"
        assert namesake.refusal("envelope.send", text="x", reply_to=number) == "not_found"
    sent = ada.send(bob)
    assert sent["conversation"] != old and ada.get(sent["ids"][0])["seq"] == 1
    assert namesake.ids() == sent["ids"]


def test_a_deleted_agent_is_gone_from_the_lists_and_cannot_be_deleted_again(
    daemon: RunningDaemon, ada: Party
) -> None:
    boss(daemon).call("agent.delete", name=ada.name)
    assert ada.name not in names(boss(daemon))
    for method, params in (("agent.delete", {}), ("agent.set", {"role": "x"})):
        assert boss(daemon).refusal(method, name=ada.name, **params) == "unknown_agent"


def test_deleting_says_the_name_as_it_was_registered(daemon: RunningDaemon) -> None:
    agent(daemon, "Some-Case")
    assert boss(daemon).call("agent.delete", name="some-case")["name"] == "Some-Case"


def test_sends_to_an_agent_being_deleted_are_refused_or_fail_but_never_wait(
    daemon: RunningDaemon, ada: Party, bob: Party
) -> None:
    works = [lambda: ada.send(bob)] * 12
    works.insert(6, lambda: boss(daemon).call("agent.delete", name=bob.name))
    results = at_once(works)
    for one in (*results[:6], *results[7:]):
        if isinstance(one, Answered):
            assert one.stable_code == "unknown_recipient"
        else:
            assert ada.get(one["ids"][0])["status"] == "failed"
