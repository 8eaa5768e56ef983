"""kill -9 in the midst of set-up: it can be done again, and gives tokens that work."""

from __future__ import annotations

from pathlib import Path

import pytest

from hiboss.cli.spawn import call_once
from hiboss.crashpoint import AFTER_COMMIT, BEFORE_WRITE, IN_GROUP, SETUP_PROFILES
from hiboss.errors import DaemonUnreachable
from hiboss.paths import Home
from hiboss.testing import RunningDaemon

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
        daemon.check()
    finally:
        daemon.stop()


# The first group written is the daemon's own at its start, the second is the set-up.
@pytest.mark.parametrize(
    "crash_at", [f"{BEFORE_WRITE}:1", f"{IN_GROUP}:1", SETUP_PROFILES, f"{BEFORE_WRITE}:2", f"{IN_GROUP}:2"]
)
def test_a_setup_killed_before_it_was_done_is_done_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, crash_at: str
) -> None:
    home = Home(str(tmp_path / "home"))
    die_in_setup(home, crash_at, monkeypatch)
    assert call_once(home, "setup.check", {})["set_up"] is False
    done = call_once(home, "setup.execute", ANSWERS)
    assert done["changed"] is True
    assert Path(home.profile("boss")).read_text().strip() == done["boss_token"]
    assert Path(home.profile("nex")).read_text().strip() == done["agent_token"]
    tokens_work(home)


def test_a_setup_killed_after_it_was_done_has_left_tokens_that_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Home(str(tmp_path / "home"))
    die_in_setup(home, f"{AFTER_COMMIT}:2", monkeypatch)
    assert call_once(home, "setup.execute", ANSWERS)["changed"] is False
    tokens_work(home)


def test_profiles_left_by_a_killed_setup_are_worth_nothing_and_are_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Home(str(tmp_path / "home"))
    die_in_setup(home, SETUP_PROFILES, monkeypatch)
    left = Path(home.profile("boss")).read_text()
    call_once(home, "setup.execute", ANSWERS)
    assert Path(home.profile("boss")).read_text() != left
    assert home.profiles() == ["boss", "nex"]
