"""kill -9 in the midst of giving a token: afterwards the old one or the new one works, and --as finds it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hiboss.api import agents as agent_operations
from hiboss.api import tokens
from hiboss.cli.daemon_process import call_once
from hiboss.core.crashpoint import AFTER_COMMIT, BEFORE_WRITE, IN_GROUP
from hiboss.core.errors import DaemonUnreachable
from hiboss.testing.running_daemon import Answered, RunningDaemon
from tests.support.crash_groups import Submits
from tests.support.daemons import set_up
from tests.support.mortals import Mortal

pytestmark = pytest.mark.slow

POINTS = (BEFORE_WRITE, IN_GROUP, AFTER_COMMIT)
WRITES: dict[str, Submits] = {
    "agent.token.rotate": tokens.give_new_token,
    "boss.token.rotate": tokens.give_new_token,
    "agent.register": agent_operations.register,
    "agent.token.revoke": tokens.revoke,
}


def who(daemon: RunningDaemon, token: str) -> str | None:
    """The address a token stands for; None when it is not in force."""
    try:
        found: str = daemon.call("agent.self", token=token)["address"]
    except Answered as error:
        assert error.stable_code == "bad_token"
        return None
    return found


def profile(daemon: RunningDaemon, name: str) -> str | None:
    return daemon.token(name) if daemon.home.has_profile(name) else None


def agents(daemon: RunningDaemon) -> list[str]:
    return [one["name"] for one in daemon.call("agent.list", token=daemon.token("boss"))["agents"]]


class Killed:
    """One operation asked of a daemon that dies at one place while it does it."""

    def __init__(self, daemon: Mortal, method: str, point: str, **params: Any) -> None:
        self.daemon = daemon
        self.what = f"{method} at {point}"
        self.done = point == AFTER_COMMIT
        self.name = params.get("name", "boss")
        self.before = profile(daemon, self.name)
        armed = daemon.dies_at(point, of=WRITES[method])
        daemon.dies_of(armed, lambda: daemon.call(method, token=daemon.token("boss"), **params))
        assert profile(daemon, self.name) == self.before, self.what  # nothing is put in its place too early

    def settled(self) -> str | None:
        """What is kept for --as after the next start, with nothing left beside it."""
        assert [one for one in os.listdir(self.daemon.home.tokens) if "." in one] == [], self.what
        self.daemon.check()
        return profile(self.daemon, self.name)


def rotated(killed: Killed) -> None:
    now = killed.settled()
    assert now is not None and killed.before is not None
    assert (now != killed.before) == killed.done, killed.what
    assert who(killed.daemon, now) is not None, killed.what
    assert (who(killed.daemon, killed.before) is None) == killed.done, killed.what


def registered(killed: Killed) -> None:
    now = killed.settled()
    assert (killed.name in agents(killed.daemon)) == (now is not None) == killed.done, killed.what
    if now is not None:
        assert who(killed.daemon, now) == f"agent:{killed.name}"


def ended(killed: Killed) -> None:
    """Whatever is still kept: the token works, or it is as dead as everybody was told."""
    killed.settled()
    assert killed.before is not None
    assert (who(killed.daemon, killed.before) is None) == killed.done, killed.what


Case = tuple[str, str, dict[str, Any], Callable[[Killed], None]]
CASES: list[Case] = [
    *[("agent.token.rotate", point, {"name": "nex"}, rotated) for point in POINTS],
    *[("boss.token.rotate", point, {}, rotated) for point in POINTS],
    *[
        ("agent.register", point, {"name": f"new-{number}", "profile": True}, registered)
        for number, point in enumerate(POINTS)
    ],
    *[("agent.token.revoke", point, {"name": "nex"}, ended) for point in (IN_GROUP, AFTER_COMMIT)],
]


def test_whenever_the_daemon_dies_the_old_token_or_the_new_one_works(daemon: Mortal) -> None:
    for method, point, params, check in CASES:
        killed = Killed(daemon, method, point, **params)
        daemon.start()
        check(killed)
    answer = daemon.call("agent.token.rotate", token=daemon.token("boss"), name="nex", profile=True)
    assert who(daemon, daemon.token("nex")) == "agent:nex" and daemon.token("nex") == answer["token"]


def test_without_a_daemon_too_the_old_boss_token_or_the_new_one_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    daemon = RunningDaemon(set_up(tmp_path))
    for point in POINTS:
        before = daemon.token("boss")
        with monkeypatch.context() as environment, pytest.raises(DaemonUnreachable):
            environment.setenv("HIBOSS_CRASH_AT", f"{point}:2")
            call_once(daemon.home, "boss.token.rotate", {})
        assert daemon.token("boss") == before
        daemon.start()
        try:
            assert sorted(os.listdir(daemon.home.tokens)) == ["boss", "nex"]
            assert who(daemon, daemon.token("boss")) == "user:boss"
            assert (who(daemon, before) is None) == (point == AFTER_COMMIT)
            daemon.check()
        finally:
            daemon.stop()
