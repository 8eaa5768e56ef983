"""kill -9 in the midst of set-up: it can be done again, and gives tokens that work."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hiboss.cli.daemon_process import call_once
from hiboss.core.crashpoint import AFTER_COMMIT, BEFORE_WRITE, IN_GROUP, SETUP_PROFILES
from hiboss.core.errors import DaemonUnreachable
from hiboss.core.paths import Home
from hiboss.testing.running_daemon import RunningDaemon

pytestmark = pytest.mark.slow

ANSWERS = {"boss_name": "Ada", "timezone": "UTC", "agent_name": "nex"}


def die_in_setup(home: Home, crash_at: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as environment:
        environment.setenv("HIBOSS_CRASH_AT", crash_at)
        with pytest.raises(DaemonUnreachable):
            call_once(home, "setup.execute", ANSWERS)


def tokens_work(home: Home) -> None:
    daemon = RunningDaemon(home)
    daemon.start()
    try:
        assert daemon.call("agent.self", token=daemon.token("nex"))["address"] == "agent:nex"
        assert daemon.call("agent.self", token=daemon.token("boss"))["address"] == "user:boss"
        assert daemon.call("envelope.send", token=daemon.token("nex"), to="user:boss", text="hello")["ids"]
        assert sorted(os.listdir(home.tokens)) == ["boss", "nex"]
        daemon.check()
    finally:
        daemon.stop()


# The first group written is the daemon's own at its start, the second is the set-up.
EARLY = [f"{BEFORE_WRITE}:1", f"{IN_GROUP}:1", f"{AFTER_COMMIT}:1"]
NOBODY: set[str] = set()


@pytest.mark.parametrize("crash_at", [*EARLY, SETUP_PROFILES, f"{BEFORE_WRITE}:2", f"{IN_GROUP}:2"])
def test_a_setup_killed_before_it_was_done_is_done_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, crash_at: str
) -> None:
    home = Home(str(tmp_path / "home"))
    die_in_setup(home, crash_at, monkeypatch)
    # What the dead one had written down is worth nothing: no profile yet, and none of it stays.
    assert home.profiles() == []
    waiting = {name: Path(home.tokens, name).read_text() for name in os.listdir(home.tokens)}
    assert {name.partition(".")[0] for name in waiting} == (NOBODY if crash_at in EARLY else {"boss", "nex"})
    done = call_once(home, "setup.execute", ANSWERS)
    assert done["changed"] is True
    for name, token in (("boss", done["boss_token"]), ("nex", done["agent_token"])):
        assert Path(home.profile(name)).read_text().strip() == token
        assert f"{token}\n" not in waiting.values()
    tokens_work(home)


def test_a_setup_killed_after_it_was_done_has_left_tokens_that_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Home(str(tmp_path / "home"))
    die_in_setup(home, f"{AFTER_COMMIT}:2", monkeypatch)
    assert home.profiles() == []  # they wait beside their places for the next start
    assert call_once(home, "setup.execute", ANSWERS)["changed"] is False
    tokens_work(home)
