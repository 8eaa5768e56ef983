"""Who was seen when: by any call, over a restart, and without a write for each."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from hiboss.testing.running_daemon import RunningDaemon
from tests.support.clockwork import Office, frozen
from tests.support.daemons import started
from tests.support.office import Party, agent, boss

NOON = "2030-06-01T12:0"


def listed(daemon: RunningDaemon, name: str) -> dict[str, Any]:
    """An agent as the list has it, asked by the boss: the look is not its own sign of life."""
    (found,) = [one for one in boss(daemon).call("agent.list")["agents"] if one["name"] == name]
    return dict(found)


async def seen(office: Office, name: str = "nex") -> str | None:
    agents = (await office.ask("agent.list"))["agents"]
    (found,) = [one["last_seen_at"] for one in agents if one["name"] == name]
    return None if found is None else str(found)


# --- by any action -------------------------------------------------------------------


def test_one_who_never_called_was_never_seen(daemon: RunningDaemon) -> None:
    bob = agent(daemon, role="tester", module="post")
    found = listed(daemon, bob.name)
    assert (found["last_seen_at"], found["role"], found["module"]) == (None, "tester", "post")


def test_a_heartbeat_says_who_and_when(daemon: RunningDaemon) -> None:
    bob = agent(daemon)
    beat = bob.call("agent.heartbeat")
    assert beat["address"] == bob.address
    found = listed(daemon, bob.name)["last_seen_at"]
    assert datetime.fromisoformat(beat["at"]) >= datetime.fromisoformat(found)
    assert boss(daemon).call("agent.heartbeat")["address"] == "user:boss"
    assert bob.refusal("agent.heartbeat", name="other") == "invalid_params"


@pytest.mark.parametrize(
    "method, params",
    [
        ("agent.self", {}),
        ("agent.list", {}),
        ("envelope.list", {}),
        ("envelope.send", {"to": "user:boss", "text": "here I am"}),
        ("envelope.wait", {"timeout": "0.001s"}),
        ("envelope.poll", {}),
        ("envelope.watch", {"timeout": "0.001s"}),
    ],
)
def test_every_call_is_a_sign_of_life(daemon: RunningDaemon, method: str, params: dict[str, Any]) -> None:
    bob = agent(daemon)
    bob.call(method, **params)
    assert listed(daemon, bob.name)["last_seen_at"] is not None


def test_a_call_that_is_refused_for_its_content_is_one_too_and_a_wrong_token_is_none(
    daemon: RunningDaemon,
) -> None:
    bob, eve = agent(daemon), agent(daemon)
    assert bob.refusal("envelope.get", id="e999999") == "not_found"
    assert listed(daemon, bob.name)["last_seen_at"] is not None
    assert Party(daemon, eve.address, eve.token + "x").refusal("agent.heartbeat") == "bad_token"
    bob.send(eve)  # mail for somebody is no sign of life of theirs
    boss(daemon).call("envelope.list", address=eve.address)
    assert listed(daemon, eve.name)["last_seen_at"] is None


# --- when ----------------------------------------------------------------------------


@frozen()
async def test_the_last_sign_of_life_counts(office: Office) -> None:
    assert await seen(office) is None
    await office.ask("agent.heartbeat", "nex")
    assert (await seen(office) or "").startswith(f"{NOON}0:00")
    await office.move(minutes=5)
    assert (await seen(office) or "").startswith(f"{NOON}0:00")
    await office.ask("envelope.list", "nex")
    assert (await seen(office) or "").startswith(f"{NOON}5:00")


@frozen()
async def test_it_outlives_a_clean_restart(office: Office) -> None:
    await office.ask("agent.heartbeat", "nex")
    await office.ask("agent.heartbeat", "boss")
    await office.restart(minutes=5)
    assert (await seen(office) or "").startswith(f"{NOON}0:00")
    (row,) = office.rows("SELECT last_seen_at FROM user WHERE boss = 1")
    assert row["last_seen_at"] is not None  # the boss too


def test_it_outlives_a_clean_restart_of_a_real_daemon(tmp_path: Path) -> None:
    with started(tmp_path) as daemon:
        daemon.call("agent.heartbeat", token=daemon.token("nex"))
        before = listed(daemon, "nex")
        assert before["last_seen_at"] is not None
        assert daemon.stop() == 0
        daemon.start()
        assert listed(daemon, "nex") == before


# --- without a write for each --------------------------------------------------------


@frozen()
async def test_polling_writes_nothing_but_the_beat_s_one_note(office: Office) -> None:
    await office.send("agent:nex", who="boss", from_="user:boss")
    await office.ask("envelope.poll", "nex")
    await office.settle()
    await office.daemon.wiring.presence.flush()
    connection = office._connect()
    try:
        version = connection.execute("PRAGMA data_version").fetchone()[0]
        for _ in range(200):
            office.tick(milliseconds=5)
            assert (await office.ask("envelope.poll", "nex"))["timed_out"]
            await office.ask("agent.heartbeat", "nex")
            await office.ask("envelope.wait", "boss", timeout="0.001s", address="user:boss")
        assert connection.execute("PRAGMA data_version").fetchone()[0] == version
        await office.daemon.wiring.presence.flush()  # what every beat of the daemon does
        assert connection.execute("PRAGMA data_version").fetchone()[0] != version
    finally:
        connection.close()
    (row,) = office.rows(
        "SELECT a.last_seen_at FROM agent a JOIN address d ON d.id = a.address WHERE d.name = 'nex'"
    )
    assert row["last_seen_at"] == int(datetime.fromisoformat(f"{NOON}0:01+00:00").timestamp() * 1000)
