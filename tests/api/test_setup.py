"""Set-up: once, completely or not at all, and no token readable anywhere but in its profile."""

from __future__ import annotations

import getpass
import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from hiboss.cli.daemon_process import call_once
from hiboss.core.crashpoint import SETUP_PROFILES
from hiboss.core.errors import DaemonUnreachable
from hiboss.core.paths import Home
from hiboss.testing.running_daemon import Answered, RunningDaemon, running_daemon
from tests.support.parties import Party, at_once
from tests.support.waits import wait_until


@pytest.fixture
def bare(tmp_path: Path) -> Iterator[RunningDaemon]:
    """A daemon whose home is not set up."""
    with running_daemon(tmp_path, set_up=False) as running:
        yield running
        running.check()


def mode(path: str | Path) -> int:
    return stat.S_IMODE(os.stat(path).st_mode)


def whoami(daemon: RunningDaemon, token: str) -> str:
    return str(daemon.call("agent.self", token=token)["address"])


def test_setup_over_the_socket_of_a_daemon_that_is_not_set_up(bare: RunningDaemon) -> None:
    before = bare.call("setup.check")
    assert (before["set_up"], before["boss_name"], before["timezone"], before["agents"]) == (
        False,
        None,
        None,
        [],
    )
    assert (before["default_agent_name"], before["home"]) == ("nex", str(bare.home))
    done = bare.call("setup.execute", boss_name=" Ada ", timezone="Europe/Berlin", agent_name="Helper")
    assert (done["changed"], done["boss_name"], done["timezone"]) == (True, "Ada", "Europe/Berlin")
    assert done["agent_name"] == "Helper"
    assert done["boss_token"].startswith("hbb_") and done["agent_token"].startswith("hba_")
    assert (
        whoami(bare, done["boss_token"]) == "user:boss"
        and whoami(bare, done["agent_token"]) == "agent:Helper"
    )
    assert done["profiles"] == [bare.home.profile("boss"), bare.home.profile("helper")]
    assert [bare.token("boss"), bare.token("helper")] == [done["boss_token"], done["agent_token"]]
    after = bare.call("setup.check")
    assert (after["set_up"], after["boss_name"], after["timezone"]) == (True, "Ada", "Europe/Berlin")
    assert after["agents"] == ["Helper"]


def test_setup_again_changes_nothing_and_says_so(bare: RunningDaemon) -> None:
    first = bare.call("setup.execute", boss_name="Ada", timezone="UTC", agent_name="nex")
    assert bare.call("setup.execute", boss_name="Eve", timezone="Asia/Tokyo", agent_name="mallory") == {
        "changed": False,
        "boss_name": "Ada",
        "timezone": "UTC",
        "agent_name": "nex",
        "boss_token": None,
        "agent_token": None,
        "profiles": [],
    }
    assert bare.home.profiles() == ["boss", "nex"]
    assert [bare.token("boss"), bare.token("nex")] == [first["boss_token"], first["agent_token"]]
    assert whoami(bare, first["boss_token"]) == "user:boss"


def test_without_words_setup_takes_its_defaults(bare: RunningDaemon) -> None:
    defaults = bare.call("setup.check")
    done = bare.call("setup.execute", boss_name="  ")
    assert done["boss_name"] == defaults["default_boss_name"] == getpass.getuser()
    assert done["timezone"] == defaults["default_timezone"] and done["agent_name"] == "nex"


def test_the_first_agent_can_be_given_a_provider_and_then_answers(bare: RunningDaemon) -> None:
    bare.call("setup.execute", timezone="UTC", agent_name="nex", provider="demo")
    chief = Party(bare, "user:boss", bare.token("boss"))
    (nex,) = chief.call("agent.list")["agents"]
    assert (nex["provider"], nex["mode"], nex["reply"], nex["busy"]) == ("demo", "run", "auto", "collect")
    chief.send("agent:nex", from_="user:boss", text="hello")
    wait_until(lambda: chief.list(**{"from": "agent:nex"}))


@pytest.mark.parametrize("word", [None, "", "none"])
def test_without_a_provider_the_first_agent_fetches_its_mail(bare: RunningDaemon, word: str | None) -> None:
    bare.call("setup.execute", timezone="UTC", **({} if word is None else {"provider": word}))
    (nex,) = bare.call("agent.list", token=bare.token("boss"))["agents"]
    assert (nex["provider"], nex["mode"]) == (None, "pull")


@pytest.mark.parametrize(
    "agent_names", [["nex"] * 6, ["one", "two", "three", "four"]], ids=["same", "different"]
)
def test_of_several_setups_at_once_one_changes_and_its_profiles_are_kept(
    bare: RunningDaemon, agent_names: list[str]
) -> None:
    requests = [
        {"jsonrpc": "2.0", "id": n, "method": "setup.execute", "params": {"agent_name": name}}
        for n, name in enumerate(agent_names)
    ]
    (answers,) = bare.exchange(requests, answers=1)
    (winner,) = [one["result"] for one in answers if one["result"]["changed"]]
    assert bare.home.profiles() == sorted(["boss", winner["agent_name"]])
    assert [bare.token("boss"), bare.token(winner["agent_name"])] == [
        winner["boss_token"],
        winner["agent_token"],
    ]
    assert bare.call("setup.check")["agents"] == [winner["agent_name"]]


def test_of_setups_by_several_clients_at_once_one_changes(bare: RunningDaemon) -> None:
    results = at_once([lambda: bare.call("setup.execute", timezone="UTC")] * 6)
    assert [one["changed"] for one in results].count(True) == 1
    assert whoami(bare, bare.token("boss")) == "user:boss" and whoami(bare, bare.token("nex")) == "agent:nex"


@pytest.mark.slow
def test_a_crash_after_the_profiles_leaves_setup_to_be_done_again(tmp_path: Path) -> None:
    with running_daemon(tmp_path, set_up=False, HIBOSS_CRASH_AT=SETUP_PROFILES) as daemon:
        with pytest.raises(DaemonUnreachable):
            daemon.call("setup.execute", timezone="UTC")
        daemon.wait_for_death()
        daemon.start()
        assert daemon.call("setup.check")["set_up"] is False
        done = daemon.call("setup.execute", timezone="UTC")
        assert done["changed"] is True and daemon.token("boss") == done["boss_token"]
        assert whoami(daemon, daemon.token("boss")) == "user:boss"


def test_setup_without_a_daemon_is_the_same_setup(tmp_path: Path) -> None:
    home = Home(str(tmp_path / "home"))
    done = call_once(home, "setup.execute", {"boss_name": "Ada", "timezone": "UTC", "agent_name": "nex"})
    assert (done["changed"], call_once(home, "setup.execute", {})["changed"]) == (True, False)
    with running_daemon(tmp_path, set_up=False) as daemon:
        assert whoami(daemon, done["boss_token"]) == "user:boss"
        assert daemon.call("setup.check")["boss_name"] == "Ada"


def test_no_token_is_readable_anywhere_but_in_its_profile(bare: RunningDaemon) -> None:
    done = bare.call("setup.execute", timezone="UTC")
    new = Party(bare, "user:boss", done["boss_token"]).call("agent.register", name="fresh")["token"]
    tokens = [done["boss_token"], done["agent_token"], new]
    for token in tokens:
        whoami(bare, token)
        # also where it does not belong, and where something goes wrong
        for method, params in (
            ("no.such", {"token": token}),
            ("envelope.list", {"tokn": token}),
            (token, {}),
        ):
            with pytest.raises(Answered) as caught:
                bare.call(method, **params)
            if method != token:
                assert token not in json.dumps([caught.value.message, caught.value.facts])
    bare.exchange('{"token": "' + new, answers=1)
    files = [path for path in Path(bare.home.path).rglob("*") if path.is_file()]
    assert {"hiboss.db", "hiboss.db-wal", "daemon.log"} <= {path.name for path in files}
    for path in files:
        if path.parent != Path(bare.home.tokens):
            content = path.read_bytes()
            for token in tokens:
                assert token.encode() not in content and token[4:].encode() not in content, path


def test_everything_in_the_home_is_for_its_owner_alone(bare: RunningDaemon, tmp_path: Path) -> None:
    bare.call("setup.execute", timezone="UTC")
    nex = Party(bare, "agent:nex", bare.token("nex"))
    (tmp_path / "f.txt").write_text("x")
    nex.send(nex, attachments=[str(tmp_path / "f.txt")])
    assert mode(bare.home.path) == 0o700
    for path in Path(bare.home.path).rglob("*"):
        assert mode(path) == (0o700 if path.is_dir() else 0o600), path
