"""The policy: which level each operation needs, and what no policy allows."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from hiboss.api import dispatch  # noqa: F401 - it declares the operations
from hiboss.api.operation import REGISTRY, Level
from hiboss.api.policy import RIGHTS, Policy
from hiboss.core.settings import DEFAULTS
from hiboss.store.store import Store
from hiboss.testing.running_daemon import Answered, RunningDaemon
from tests.support.daemons import answers, code, line, set_up
from tests.support.parties import Party, agent, at_once, boss
from tests.support.sweeps import sweep

WORDS = ("restricted", "standard", "privileged", "boss")
DECLARED = {name: one.level.word for name, one in REGISTRY.items() if not one.fixed} | {
    name: level.word for name, level in RIGHTS.items()
}
FIXED = {name: one.level.word for name, one in REGISTRY.items() if one.fixed}
Doors = dict[tuple[str, str], str]


@pytest.fixture(autouse=True)
def declared_again(daemon: RunningDaemon) -> Iterator[None]:
    yield
    decide(daemon, {})


@pytest.fixture(scope="module")
def callers(daemon: RunningDaemon) -> dict[str, str | None]:
    """A token for each level, and none for nobody."""
    tokens: dict[str, str | None] = {"nobody": None, "boss": daemon.token("boss")}
    for word in WORDS[:3]:
        one = agent(daemon, f"{word}-one")
        boss(daemon).call("agent.permission.set", name=one.name, level=word)
        tokens[word] = one.token
    return tokens


def decide(daemon: RunningDaemon, policy: dict[str, str]) -> Any:
    return boss(daemon).call("permission.policy.set", policy=policy)


def levels(daemon: RunningDaemon) -> dict[str, str]:
    found: dict[str, str] = boss(daemon).call("permission.policy.get")["policy"]
    return found


def try_all(daemon: RunningDaemon, callers: dict[str, str | None]) -> Doors:
    """Ask everything in everybody's name, with a parameter nobody takes: who is let in hears of that."""
    found = {}
    for who, token in callers.items():
        proof = {} if token is None else {"token": token}
        with daemon.connect() as connection:  # each their own: auth.login is tried too
            requests = [line(name, nothing=1, **proof) for name in sorted(REGISTRY)]
            connection.sendall(b"".join(requests))
            for name, answer in zip(sorted(REGISTRY), answers(connection, len(requests)), strict=True):
                found[name, who] = code(answer)
    return found


def expected(callers: dict[str, str | None], policy: dict[str, str]) -> Doors:
    needed = DECLARED | FIXED | policy
    rank = {"nobody": 0, **{word: number for number, word in enumerate(WORDS, 1)}}
    doors = {}
    for name in REGISTRY:
        for who in callers:
            let_in = rank[who] >= (0 if needed[name] == "open" else rank[needed[name]])
            refused = "no_token" if who == "nobody" else "forbidden"
            doors[name, who] = "invalid_params" if let_in else refused
    return doors


# --- the levels ----------------------------------------------------------------------


def test_what_is_declared_holds_for_every_operation_and_every_level(
    daemon: RunningDaemon, callers: dict[str, str | None]
) -> None:
    assert levels(daemon) == DECLARED
    found = try_all(daemon, callers)
    assert found == expected(callers, {})
    assert set(found.values()) == {"invalid_params", "no_token", "forbidden"}


@pytest.mark.parametrize("word", WORDS)
def test_a_policy_raises_and_lowers_every_operation_at_once_and_over_a_restart(
    daemon: RunningDaemon, callers: dict[str, str | None], word: str
) -> None:
    policy = dict.fromkeys(DECLARED, word)
    answer = decide(daemon, policy)
    assert answer["policy"] == policy == levels(daemon)
    assert answer["changed"] == sorted(name for name in DECLARED if DECLARED[name] != word)
    assert try_all(daemon, callers) == expected(callers, policy)
    if word == "standard":
        daemon.stop()
        daemon.start()
        assert levels(daemon) == policy and try_all(daemon, callers) == expected(callers, policy)


def test_what_a_policy_does_not_name_is_as_declared_again(
    daemon: RunningDaemon, callers: dict[str, str | None]
) -> None:
    decide(daemon, {"envelope.send": "boss", "agent.register": "standard"})
    assert decide(daemon, {"envelope.list": "boss"})["changed"] == ["envelope.list"]
    assert levels(daemon) == DECLARED | {"envelope.list": "boss"}
    assert try_all(daemon, callers) == expected(callers, {"envelope.list": "boss"})


def test_the_rights_that_are_no_operation_are_in_the_policy(daemon: RunningDaemon) -> None:
    assert {"control.interrupt", "control.route", "observe"} <= set(levels(daemon))
    decide(daemon, {"observe": "standard"})
    nex = Party(daemon, "agent:nex", daemon.token("nex"))
    may = nex.call("agent.permission.get", name="nex")["may"]
    assert "observe" in may and "control.route" not in may
    assert nex.refusal("observe") == "method_not_found"


def test_an_agent_is_told_what_it_may_do_and_may_do_that(
    daemon: RunningDaemon, callers: dict[str, str | None]
) -> None:
    decide(daemon, {"agent.register": "privileged", "envelope.cancel": "boss"})
    doors = try_all(daemon, callers)
    for word in WORDS[:3]:
        found = boss(daemon).call("agent.permission.get", name=f"{word}-one")
        assert found["level"] == word
        let_in = {name for (name, who), one in doors.items() if who == word and one == "invalid_params"}
        needs_no_token = {name for name, operation in REGISTRY.items() if operation.level is Level.OPEN}
        assert set(found["may"]) - set(RIGHTS) == let_in - needs_no_token


def test_another_level_is_in_force_at_once_on_open_connections_too(
    daemon: RunningDaemon, ada: Party, chief: Party
) -> None:
    with daemon.connect() as connection:
        connection.sendall(line("auth.login", token=ada.token))
        assert code(answers(connection, 1)[0]) == "ok"
        for level, expected_ in (
            ("restricted", "forbidden"),
            ("standard", "ok"),
            ("restricted", "forbidden"),
        ):
            chief.call("agent.permission.set", name=ada.name.upper(), level=level)
            connection.sendall(line("envelope.send", to=ada.address, text="x"))
            assert code(answers(connection, 1)[0]) == expected_
    assert ada.call("agent.self")["level"] == "restricted"


def test_a_refusal_says_what_is_needed_and_what_one_has(daemon: RunningDaemon) -> None:
    with pytest.raises(Answered) as caught:
        daemon.call("agent.register", token=daemon.token("nex"), name="x")
    assert caught.value.stable_code == "forbidden"
    for word in ("agent.register", "boss", "agent:nex", "standard"):
        assert word in caught.value.message


# --- what cannot be decided ----------------------------------------------------------


def test_a_fixed_level_is_refused_unless_it_is_the_one_it_has(daemon: RunningDaemon) -> None:
    with sweep() as row:
        for name in sorted(FIXED):
            with row(name):
                for word in {"restricted", "boss"} - {FIXED[name]}:
                    with pytest.raises(Answered) as caught:
                        decide(daemon, {"agent.list": "boss", name: word})
                    assert caught.value.stable_code == "fixed_level"
                    assert name in caught.value.message and FIXED[name] in caught.value.message
                assert levels(daemon) == DECLARED
                assert decide(daemon, {name: FIXED[name]})["changed"] == []


def test_what_decides_about_rights_is_fixed() -> None:
    assert {"permission.policy.set", "agent.permission.set", "boss.set", "boss.token.rotate"} <= set(FIXED)
    assert {name for name, word in FIXED.items() if word not in ("open", "boss")} == set()


def test_two_policies_at_once_leave_one_of_them_whole(daemon: RunningDaemon) -> None:
    policies = [dict.fromkeys(("agent.list", "envelope.send", "observe"), word) for word in WORDS[:3]] * 4
    at_once([partial(decide, daemon, policy) for policy in policies])
    found = levels(daemon)
    assert {name: found[name] for name in policies[0]} in policies
    assert {name: stored(daemon).get(name, DECLARED[name]) for name in DECLARED} == found


# --- agents are confined to their own ------------------------------------------------


def said_of_agents(daemon: RunningDaemon) -> list[dict[str, Any]]:
    """All but when each was last seen: whoever asks was, also when it is refused."""
    return [{**one, "last_seen_at": None} for one in boss(daemon).call("agent.list")["agents"]]


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("agent.set", {"role": "r"}),
        ("agent.delete", {}),
        ("agent.token.rotate", {}),
        ("agent.token.revoke", {}),
    ],
)
def test_whatever_the_policy_an_agent_changes_nobody_but_itself(
    daemon: RunningDaemon, method: str, params: dict[str, Any]
) -> None:
    decide(daemon, dict.fromkeys(DECLARED, "restricted"))
    ada, bob = agent(daemon), agent(daemon)
    boss(daemon).call("agent.permission.set", name=ada.name, level="privileged")
    before = said_of_agents(daemon)
    assert {
        ada.refusal(method, name=name, **params)
        for name in (bob.name, bob.name.upper(), "nobody-here", "boss", "nex")
    } == {"boss_only"}
    assert said_of_agents(daemon) == before
    assert bob.call("agent.self")["address"] == bob.address
    assert ada.call(method, name=ada.name.upper(), **params)["name"] == ada.name


def test_whatever_the_policy_mail_of_others_stays_theirs(
    daemon: RunningDaemon, ada: Party, bob: Party, eve: Party
) -> None:
    number = ada.tell(bob)
    decide(daemon, dict.fromkeys(DECLARED, "restricted"))
    assert eve.refusal("envelope.get", id=number) == "not_found"
    assert {
        eve.refusal(f"envelope.{verb}", ids=[number])
        for verb in ("read", "ack", "archive", "trash", "cancel")
    } == {"not_found"}
    for method in ("envelope.list", "turn.preview"):
        assert eve.refusal(method, address=bob.address) == "boss_only"
    assert eve.refusal("envelope.send", from_=ada.address, to=bob.address, text="x") == "boss_only"
    assert eve.list() == [] and eve.ids(box="outbox") == []
    assert [one["id"] for one in boss(daemon).list(address=bob.address)] == [number]


# --- other versions ------------------------------------------------------------------


def put(daemon: RunningDaemon, policy: dict[str, str]) -> None:
    """Store a policy as another version would, while no daemon runs."""
    daemon.stop()
    with daemon.database() as database, database:
        row = ("policy", json.dumps(policy))
        database.execute("INSERT OR REPLACE INTO config (key, value) VALUES (?, ?)", row)
    daemon.start()


def stored(daemon: RunningDaemon) -> Any:
    with daemon.database() as database:
        return json.loads(database.execute("SELECT value FROM config WHERE key = 'policy'").fetchone()[0])


def test_what_a_newer_version_decided_is_ignored_and_not_lost(
    daemon: RunningDaemon, callers: dict[str, str | None]
) -> None:
    newer = {"group.create": "privileged", "boss.set": "restricted", "daemon.ping": "boss"}
    put(daemon, {**newer, "envelope.send": "privileged", "envelope.list": "omnipotent"})
    in_force = {"envelope.send": "privileged", "envelope.list": "boss"}  # a level unknown here: the boss
    assert levels(daemon) == DECLARED | in_force and try_all(daemon, callers) == expected(callers, in_force)
    assert stored(daemon)["envelope.list"] == "omnipotent"
    decide(daemon, levels(daemon))
    assert stored(daemon) == {**newer, **in_force}
    decide(daemon, {})
    assert stored(daemon) == newer


def test_an_operation_nobody_knows_needs_the_boss(tmp_path: Path) -> None:
    async def look() -> Level:
        store = await Store.open(set_up(tmp_path), DEFAULTS)
        try:
            return Policy(store).needs("group.create")
        finally:
            await store.close()

    assert asyncio.run(look()) is Level.BOSS


# --- changing others ---------------------------------------------------------------


CHANGING = {name: operation for name, operation in REGISTRY.items() if operation.changes is not None}
LANES = ("lane.pause", "lane.resume", "lane.retry")
# What each takes beside the name; nothing of it happens when it is refused.
MORE: dict[str, dict[str, Any]] = {
    "agent.bind": {"adapter_type": "folder", "settings": {"path": "/nowhere/at-all"}},
    "agent.unbind": {"adapter_type": "folder"},
    "agent.set": {"role": "thief"},
}
# They take a name and change nobody who exists; or, the last one, no policy can give them to an agent.
NOT_CHANGING = {
    "agent.register",
    "user.register",
    "agent.status",
    "agent.briefing",
    "agent.instructions",
    "agent.sessions",
    "agent.check",
    "agent.notify",
    "agent.notify.remove",
    "agent.permission.get",
    "agent.permission.set",
}


@pytest.fixture
def lowered(daemon: RunningDaemon) -> Iterator[None]:
    """Every operation that a policy may decide is open to agents of the lowest level."""
    chief = boss(daemon)
    names = [name for name in (*CHANGING, *LANES) if not REGISTRY[name].fixed]
    chief.call("permission.policy.set", policy=dict.fromkeys(names, "restricted"))
    yield
    chief.call("permission.policy.set", policy={})


def named(operation: str, other: Party, person: str) -> dict[str, Any]:
    return {
        "name": person if CHANGING[operation].changes == "user" else other.name,
        **MORE.get(operation, {}),
    }


def test_every_operation_that_takes_a_name_says_whether_it_changes_whom_it_names() -> None:
    takes_a_name = {name for name, one in REGISTRY.items() if "name" in one.params.model_fields}
    about = {name for name in takes_a_name if name.startswith(("agent.", "user."))}
    assert about == set(CHANGING) | NOT_CHANGING


def test_an_agent_changes_no_agent_and_no_person_but_itself_whatever_the_policy_says(
    daemon: RunningDaemon, ada: Party, bob: Party, lowered: None
) -> None:
    with sweep() as row:
        for operation in sorted(CHANGING):
            with row(operation):
                person = f"ann-{operation.replace('.', '-')}"
                token = boss(daemon).call("user.register", name=person)["token"]
                before = boss(daemon).call("agent.list"), boss(daemon).call("user.list")
                params = named(operation, bob, person)
                for form in (
                    params["name"],
                    params["name"].upper(),
                    f"{CHANGING[operation].changes}:{params['name']}",
                ):
                    assert ada.refusal(operation, **{**params, "name": form}) == "boss_only"
                for left, right in zip(
                    before, (boss(daemon).call("agent.list"), boss(daemon).call("user.list")), strict=True
                ):
                    for one, other in zip(left.popitem()[1], right.popitem()[1], strict=False):
                        if isinstance(one, dict):
                            assert one | {"last_seen_at": None} == other | {"last_seen_at": None}
                daemon.call("agent.self", token=bob.token)  # and their tokens still work
                daemon.call("agent.self", token=token)


def test_an_agent_steers_no_lane_of_another_agent(ada: Party, bob: Party, lowered: None) -> None:
    with sweep() as row:
        for operation in LANES:
            with row(operation):
                assert ada.refusal(operation, address=bob.address) == "boss_only"
                assert ada.call(operation, address=ada.name)["changed"] in (0, 1)


@pytest.mark.parametrize("operation", LANES)
def test_an_agent_steers_no_lane_of_a_channel_that_it_is_not_bound_to(
    daemon: RunningDaemon, ada: Party, bob: Party, lowered: None, operation: str, tmp_path: Path
) -> None:
    folder = boss(daemon).call(
        "agent.bind", name=bob.name, adapter_type="folder", settings={"path": str(tmp_path)}
    )
    assert ada.refusal(operation, address=folder["address"]) == "unknown_address"  # as if it were not there
    assert bob.call(operation, address=folder["address"])["changed"] in (0, 1)
    boss(daemon).call("agent.unbind", name=bob.name, adapter_type="folder")


def test_an_agent_that_may_changes_itself(ada: Party, lowered: None) -> None:
    assert ada.call("agent.set", name=ada.address.upper().replace("AGENT", "agent"), role="x")["role"] == "x"
    assert ada.call("agent.pause", name=ada.name)["changed"] is True
    assert ada.call("agent.resume", name=ada.name)["changed"] is True
