"""Tokens that end: at once, for everybody who holds one, whatever is already on its way."""

from __future__ import annotations

import os
import socket
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from hiboss.cli.daemon_process import call_once
from hiboss.core.errors import DaemonUnreachable
from hiboss.core.paths import Home
from hiboss.testing.running_daemon import Answered, RunningDaemon
from tests.support.daemons import answers, ask, code, line, set_up
from tests.support.parties import Party, agent, at_once, boss, stored
from tests.support.raising import raised
from tests.support.waits import wait_until

Ending = Callable[[Party, Party], Any]
ENDINGS: dict[str, Ending] = {
    "rotate": lambda chief, one: chief.call("agent.token.rotate", name=one.name),
    "revoke": lambda chief, one: chief.call("agent.token.revoke", name=one.name),
    "delete": lambda chief, one: chief.call("agent.delete", name=one.name),
}
METHODS = {"rotate": "agent.token.rotate", "revoke": "agent.token.revoke", "delete": "agent.delete"}


@pytest.fixture(autouse=True)
def declared_again(daemon: RunningDaemon) -> Iterator[None]:
    yield
    boss(daemon).call("permission.policy.set", policy={})
    left = [name for name in os.listdir(daemon.home.tokens) if "." in name]
    assert left == []  # nothing waits beside its place


@contextmanager
def logged_in(daemon: RunningDaemon, token: str) -> Iterator[socket.socket]:
    with daemon.connect() as connection:
        assert code(ask(connection, "auth.login", token=token)) == "ok"
        yield connection


def kept(daemon: RunningDaemon, name: str) -> str | None:
    return daemon.token(name) if daemon.home.has_profile(name) else None


def works(daemon: RunningDaemon, token: str) -> bool:
    try:
        daemon.call("agent.self", token=token)
    except Answered as error:
        assert error.stable_code == "bad_token"
        return False
    return True


# --- at once -------------------------------------------------------------------------


@pytest.mark.parametrize("way", sorted(ENDINGS))
def test_a_token_ends_at_once_on_every_connection(daemon: RunningDaemon, way: str) -> None:
    one, other = agent(daemon), agent(daemon)
    with logged_in(daemon, one.token) as mine, logged_in(daemon, other.token) as theirs:
        assert code(ask(mine, "envelope.send", to=other.address, text="before")) == "ok"
        answer = ENDINGS[way](boss(daemon), one)
        assert answer.get("revoked", 1) == 1
        for method, params in (
            ("agent.self", {}),
            ("envelope.list", {}),
            ("envelope.send", {"to": other.address, "text": "after"}),
        ):
            assert code(ask(mine, method, **params)) == one.refusal(method, **params) == "bad_token"
        assert code(ask(theirs, "agent.self")) == "ok"
        if way == "rotate":  # who was given the new one goes on with it, on the same connection
            assert code(ask(mine, "auth.login", token=answer["token"])) == "ok"
            assert code(ask(mine, "agent.self")) == "ok"
    assert [mail["text"] for mail in other.list()] == ["before"]


def test_an_ended_token_stays_ended_over_a_restart(daemon: RunningDaemon) -> None:
    one, other = agent(daemon), agent(daemon)
    fresh = boss(daemon).call("agent.token.rotate", name=one.name)["token"]
    boss(daemon).call("agent.token.revoke", name=other.name)
    daemon.stop()
    daemon.start()
    assert [works(daemon, token) for token in (one.token, other.token, fresh)] == [False, False, True]


def test_a_revoked_agent_keeps_its_mail_and_comes_back_with_a_new_token(daemon: RunningDaemon) -> None:
    one, other = agent(daemon), agent(daemon)
    boss(daemon).call("agent.token.revoke", name=one.name)
    number = other.tell(one)
    assert boss(daemon).call("agent.token.revoke", name=one.name)["revoked"] == 0
    answer = boss(daemon).call("agent.token.rotate", name=one.name)
    assert answer["revoked"] == 0
    assert Party(daemon, one.address, answer["token"]).ids() == [number]


def test_an_agent_rotates_and_revokes_its_own_when_the_policy_lets_it(daemon: RunningDaemon) -> None:
    one = agent(daemon)
    assert one.refusal("agent.token.rotate", name=one.name) == "forbidden"
    names = ("agent.token.rotate", "agent.token.revoke")
    boss(daemon).call("permission.policy.set", policy=dict.fromkeys(names, "standard"))
    with logged_in(daemon, one.token) as connection:
        token = ask(connection, "agent.token.rotate", name=one.name)["result"]["token"]
        assert code(ask(connection, "agent.self")) == "bad_token"
    assert [works(daemon, one.token), works(daemon, token)] == [False, True]
    again = Party(daemon, one.address, token)
    assert again.call("agent.token.revoke", name=one.name) == {"name": one.name, "revoked": 1}
    assert not works(daemon, token)


# --- what is already on its way ------------------------------------------------------


@contextmanager
def locked(daemon: RunningDaemon) -> Iterator[None]:
    """Another program writes: whatever the daemon has to write must wait."""
    database = sqlite3.connect(daemon.home.database, isolation_level=None)
    try:
        database.execute("BEGIN IMMEDIATE")
        yield
        database.execute("ROLLBACK")
    finally:
        database.close()


def behind(daemon: RunningDaemon, first: bytes, *then: bytes) -> list[str]:
    """One change, and others behind it in the writer's queue; how each was answered."""
    with daemon.connect() as connection:
        with locked(daemon):
            connection.sendall(first)
            connection.sendall(b"".join(then))
            for _ in range(3):  # what came before these is read before these
                daemon.call("daemon.ping")
        return [code(answer) for answer in answers(connection, 1 + len(then))]


@pytest.mark.parametrize("way", sorted(METHODS))
def test_a_change_queued_behind_the_end_of_its_token_is_not_made(daemon: RunningDaemon, way: str) -> None:
    one, other = agent(daemon), agent(daemon)
    names = ("agent.set", "agent.register")
    boss(daemon).call("permission.policy.set", policy=dict.fromkeys(names, "standard"))
    number, mine = other.tell(one), one.tell(other, deliver_at="+2h")
    before = stored(daemon)
    found = behind(
        daemon,
        line(METHODS[way], 0, token=daemon.token("boss"), name=one.name),
        line("envelope.send", 1, token=one.token, to=other.address, text="late"),
        line("envelope.read", 2, token=one.token, ids=[number]),
        line("envelope.ack", 3, token=one.token, all=True),
        line("envelope.cancel", 4, token=one.token, ids=[mine]),
        line("agent.set", 5, token=one.token, name=one.name, role="late"),
        line("agent.register", 6, token=one.token, name="late", profile=True),
        line("envelope.ack", 7, token=other.token, all=True),
    )
    assert found == ["ok", *["bad_token"] * 6, "ok"]
    assert stored(daemon) == before and kept(daemon, "late") is None
    envelope = boss(daemon).get(number)
    assert (envelope["read_at"], envelope["status"]) == (None, "failed" if way == "delete" else "pending")
    assert boss(daemon).get(mine)["status"] == "pending"


def test_what_the_boss_asked_behind_the_end_of_the_token_is_not_done(daemon: RunningDaemon) -> None:
    old = daemon.token("boss")
    one = agent(daemon)
    found = behind(
        daemon,
        line("boss.token.rotate", 0, token=old),
        line("agent.register", 1, token=old, name="too-late", profile=True),
        line("permission.policy.set", 2, token=old, policy={"agent.list": "boss"}),
        line("boss.set", 3, token=old, name="Eve"),
        line("agent.permission.set", 4, token=old, name=one.name, level="privileged"),
        line("agent.delete", 5, token=old, name=one.name),
    )
    assert found == ["ok", *["bad_token"] * 5]
    assert daemon.token("boss") != old and kept(daemon, "too-late") is None
    assert boss(daemon).call("boss.get")["name"] == "Ada"
    assert boss(daemon).call("permission.policy.get")["changed"] == []
    assert one.call("agent.self")["level"] == "standard"


def test_a_change_queued_behind_a_lower_level_or_a_stricter_policy_is_not_made(daemon: RunningDaemon) -> None:
    one, other, token = agent(daemon), agent(daemon), daemon.token("boss")
    before = stored(daemon)
    found = behind(
        daemon,
        line("agent.permission.set", 0, token=token, name=one.name, level="restricted"),
        line("envelope.send", 1, token=one.token, to=other.address, text="late"),
        line("envelope.ack", 2, token=one.token, all=True),
        line("permission.policy.set", 3, token=token, policy={"envelope.send": "privileged"}),
        line("envelope.send", 4, token=other.token, to=one.address, text="late"),
        line("envelope.send", 5, token=token, from_="user:boss", to=["user:boss"], text="in time"),
    )
    assert found == ["ok", "forbidden", "ok", "ok", "forbidden", "ok"]
    assert one.list() == other.list() == []
    assert stored(daemon)[0] == before[0] + 1


def test_a_send_whose_files_are_still_being_copied_when_its_token_ends_is_not_stored(
    daemon: RunningDaemon, tmp_path: Path
) -> None:
    one, other = agent(daemon), agent(daemon)
    files = [str(tmp_path / f"{number}.bin") for number in range(12)]
    for number, file in enumerate(files):
        with open(file, "wb") as content:
            content.truncate(4 * 1024 * 1024 + number)
    before = stored(daemon)
    media = Path(daemon.home.media)
    with daemon.connect() as connection:
        connection.sendall(line("envelope.send", token=one.token, to=other.address, attachments=files))
        wait_until(lambda: any(media.iterdir()))
        boss(daemon).call("agent.token.revoke", name=one.name)
        assert code(answers(connection, 1)[0]) == "bad_token"
    assert stored(daemon) == before and other.list() == []


# --- profiles ------------------------------------------------------------------------


@pytest.mark.parametrize("had", [True, False])
@pytest.mark.parametrize("wanted", [None, True, False])
def test_a_profile_is_kept_as_asked_or_if_there_was_one(
    daemon: RunningDaemon, had: bool, wanted: bool | None
) -> None:
    one = agent(daemon, profile=had)
    more = {} if wanted is None else {"profile": wanted}
    answer = boss(daemon).call("agent.token.rotate", name=one.name.upper(), **more)
    keeps = had if wanted is None else wanted
    assert answer["name"] == one.name
    assert answer["profile"] == (daemon.home.profile(one.name) if keeps else None)
    assert kept(daemon, one.name) == (answer["token"] if keeps else None) and works(daemon, answer["token"])


@pytest.mark.parametrize("way", ["revoke", "delete"])
def test_a_profile_whose_token_ended_is_taken_away(daemon: RunningDaemon, way: str) -> None:
    one = agent(daemon, profile=True)
    assert kept(daemon, one.name) == one.token
    ENDINGS[way](boss(daemon), Party(daemon, one.address.upper(), one.token))
    assert kept(daemon, one.name) is None


def test_rotations_at_once_leave_one_token_and_the_profile_has_it(daemon: RunningDaemon) -> None:
    one, chief = agent(daemon, profile=True), boss(daemon)
    found = at_once([lambda: chief.call("agent.token.rotate", name=one.name)] * 6)
    tokens = [one.token, *(answer["token"] for answer in found)]
    assert [token for token in tokens if works(daemon, token)] == [kept(daemon, one.name)]
    assert sorted(answer["revoked"] for answer in found) == [1] * 6


def test_of_two_boss_tokens_asked_for_with_the_old_one_at_once_only_one_is_given(
    daemon: RunningDaemon, chief: Party
) -> None:
    found = at_once([lambda: chief.call("boss.token.rotate")] * 4)
    given = [answer for answer in found if not isinstance(answer, Answered)]
    assert {one.stable_code for one in found if isinstance(one, Answered)} == {"bad_token"}
    assert [answer["token"] for answer in given] == [daemon.token("boss")]
    assert not works(daemon, chief.token)


def test_a_rotation_and_a_revocation_at_once_end_as_one_of_them(daemon: RunningDaemon) -> None:
    one, chief = agent(daemon, profile=True), boss(daemon)
    rotated, _ = at_once([lambda: ENDINGS["rotate"](chief, one), lambda: ENDINGS["revoke"](chief, one)])
    profile = kept(daemon, one.name)
    assert not works(daemon, one.token)
    if works(daemon, rotated["token"]):
        assert profile in (rotated["token"], None)  # revoked first: there was no profile left to keep
    else:
        assert profile is None


def test_a_token_that_could_not_be_kept_was_not_given(daemon: RunningDaemon, chief: Party) -> None:
    one = agent(daemon, profile=True)
    aside = f"{daemon.home.tokens}-aside"
    os.rename(daemon.home.tokens, aside)
    try:
        for method, params in (
            ("agent.token.rotate", {"name": one.name, "profile": True}),
            ("boss.token.rotate", {}),
            ("agent.register", {"name": "unkept", "profile": True}),
        ):
            assert chief.refusal(method, **params) == "home_unusable"
    finally:
        os.rename(aside, daemon.home.tokens)
    assert works(daemon, one.token) and works(daemon, chief.token)
    assert "unkept" not in [found["name"] for found in chief.call("agent.list")["agents"]]


# --- without a daemon ----------------------------------------------------------------


def test_while_a_daemon_runs_nobody_rotates_beside_it(daemon: RunningDaemon) -> None:
    before = daemon.token("boss")
    assert raised(Answered, call_once, daemon.home, "boss.token.rotate", {}).stable_code == "daemon_running"
    assert daemon.token("boss") == before and works(daemon, before)


def test_the_owner_of_the_home_gets_a_new_boss_token_while_no_daemon_runs(tmp_path: Path) -> None:
    daemon = RunningDaemon(set_up(tmp_path))
    old = daemon.token("boss")
    answer = call_once(daemon.home, "boss.token.rotate", {})
    assert (answer["revoked"], answer["profile"]) == (1, daemon.home.profile("boss"))
    error = raised(Answered, call_once, daemon.home, "agent.register", {"name": "kai"})
    assert error.stable_code == DaemonUnreachable.code and "agent.register" in error.message
    daemon.start()
    try:
        assert [works(daemon, token) for token in (old, answer["token"])] == [False, True]
        assert daemon.token("boss") == answer["token"] and works(daemon, daemon.token("nex"))
    finally:
        daemon.stop()


def test_a_home_that_is_not_set_up_has_no_token_to_rotate(tmp_path: Path) -> None:
    home = Home(str(tmp_path / "home"))
    assert raised(Answered, call_once, home, "boss.token.rotate", {}).stable_code == "not_set_up"
    assert os.listdir(home.tokens) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
def test_a_home_of_another_user_is_no_place_for_us(tmp_path: Path) -> None:
    home = set_up(tmp_path)
    before = Path(home.profile("boss")).read_text()
    os.chown(home.path, 12345, 12345)
    error = raised(Answered, call_once, home, "boss.token.rotate", {})
    assert error.stable_code == "home_unusable" and "another user" in error.message
    assert Path(home.profile("boss")).read_text() == before
