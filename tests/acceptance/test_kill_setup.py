"""kill -9 in the midst of set-up: it can be done again, and gives tokens that work."""

from __future__ import annotations

from pathlib import Path

import pytest

from hiboss.cli.spawn import call_once
from hiboss.crashpoint import AFTER_COMMIT, IN_GROUP, SETUP_PROFILES
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
@pytest.mark.parametrize("crash_at", [f"{IN_GROUP}:1", SETUP_PROFILES, f"{IN_GROUP}:2"])
def test_a_setup_killed_before_it_was_done_is_done_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, crash_at: str
) -> None:
    home = Home(str(tmp_path / "home"))
    die_in_setup(home, crash_at, monkeypatch)
    left = {name: Path(home.profile(name)).read_text() for name in home.profiles()}
    assert set(left) == (set() if crash_at.endswith(":1") else {"boss", "nex"})
    done = call_once(home, "setup.execute", ANSWERS)
    assert done["changed"] is True
    assert home.profiles() == ["boss", "nex"]
    # What the dead one had written down is worth nothing, and is replaced.
    for name, token in (("boss", done["boss_token"]), ("nex", done["agent_token"])):
        assert Path(home.profile(name)).read_text().strip() == token != left.get(name, "").strip()
    tokens_work(home)


def test_a_setup_killed_after_it_was_done_has_left_tokens_that_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Home(str(tmp_path / "home"))
    die_in_setup(home, f"{AFTER_COMMIT}:2", monkeypatch)
    assert call_once(home, "setup.execute", ANSWERS)["changed"] is False
    tokens_work(home)
