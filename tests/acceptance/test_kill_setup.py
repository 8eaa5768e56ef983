"""kill -9 of a daemon under load, in its set-up, and while it changes a token: what was answered is there, and a token works."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hiboss.api import agents as agent_operations
from hiboss.api import tokens
from hiboss.cli.daemon_process import call_once
from hiboss.core.crashpoint import AFTER_COMMIT, BEFORE_WRITE, IN_GROUP, SETUP_PROFILES
from hiboss.core.errors import DaemonUnreachable
from hiboss.core.paths import Home
from hiboss.routing.router import Router
from hiboss.testing.running_daemon import Answered, RunningDaemon, running_daemon
from tests.acceptance.soak import House
from tests.support.crash_groups import Submits, groups_of
from tests.support.daemons import set_up
from tests.support.failures import seeded
from tests.support.forked_daemons import spawn
from tests.support.mortals import Mortal

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


# --- tokens ---------------------------------------------------------------------------


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


# --- a daemon under load --------------------------------------------------------------


SEED = 21


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    with running_daemon(tmp_path_factory.mktemp("d")) as daemon:
        yield House(daemon, seed=SEED)


@pytest.mark.parametrize("passes", [15, 30])
@pytest.mark.parametrize("point", [BEFORE_WRITE, IN_GROUP, AFTER_COMMIT])
def test_what_was_answered_survives_death_at_a_crash_point(house: House, point: str, passes: int) -> None:
    before = house.counts.asked
    house.round(f"{point}:{passes}")
    assert house.counts.asked > before


def test_what_was_answered_survives_death_at_random_moments(house: House) -> None:
    house.chance = seeded(SEED)
    before = house.counts.answered
    for _ in range(2):
        house.round()
    assert house.counts.answered > before


@pytest.mark.parametrize(
    ("point", "stored"), [(BEFORE_WRITE, False), (IN_GROUP, False), (AFTER_COMMIT, True)]
)
def test_the_crash_points_lie_where_they_say(tmp_path: Path, point: str, stored: bool) -> None:
    """With one client, one request at a time: the one that was not answered is stored after COMMIT only."""
    set_up(tmp_path)
    crash = {"HIBOSS_CRASH_AT": f"{point}:5", **groups_of(Router.plan)}
    with running_daemon(tmp_path, set_up=False, **crash) as daemon:
        send = {"token": daemon.token("nex"), "to": "agent:nex"}
        answered = 0
        with pytest.raises(DaemonUnreachable):
            while answered < 5:
                daemon.call("envelope.send", text=f"{answered}", key=f"{answered}", **send)
                answered += 1
        assert daemon.wait_for_death() == -9
        assert answered == 4
        daemon.start()
        daemon.check()
        texts = [f"{number}" for number in range(answered + 1)]
        again = [daemon.call("envelope.send", text=text, key=text, **send) for text in texts]
        assert [one["duplicate"] for one in again] == [*[True] * answered, stored]
        found = daemon.call("envelope.list", token=send["token"], oldest_first=True, page_size=100)[
            "envelopes"
        ]
        assert [(one["text"], one["seq"]) for one in found] == list(zip(texts, range(1, 99), strict=False))


def test_a_death_while_starting_does_not_hinder_the_next_start(tmp_path: Path) -> None:
    home = set_up(tmp_path)
    with running_daemon(tmp_path, set_up=False) as daemon:
        sent = daemon.call("envelope.send", token=daemon.token("nex"), to="agent:nex", text="before")
        daemon.kill()
        for point in (BEFORE_WRITE, IN_GROUP, AFTER_COMMIT):
            with pytest.raises(DaemonUnreachable):
                spawn(home, {"HIBOSS_CRASH_AT": f"{point}:1"})
        daemon.start()
        got = daemon.call("envelope.get", token=daemon.token("nex"), id=sent["ids"][0])
        assert got["envelope"]["text"] == "before"
        daemon.check()
