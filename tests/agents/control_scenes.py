"""Scenes for the table of controls: an agent of each provider, in each state that it can be in.

A scene is built with a real daemon. What changes nothing leaves it as it is, so the next cell uses it again.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hiboss.testing.running_daemon import RunningDaemon
from tests.support.daemons import wait_until
from tests.support.parties import Party, agent
from tests.support.shell_agents import Boss, Program, rows

# Programs of the provider `command`.
LIVELY = 'while [ ! -e "$D/go" ]; do echo alive >&2; sleep 0.05; done\necho done'
STUBBORN = "trap '' INT TERM\nwhile :; do sleep 0.05; done"
ASKS = """#!/bin/sh
read turn
echo $$ >> "$(dirname "$0")/turns"
echo '{"hiboss":"ask","id":1,"text":"May I?"}'
exec sleep 1000
"""


class Scene:
    """One agent in one state, and what a control can be about there."""

    def __init__(self, world: World, provider: str) -> None:
        self.world, self.daemon, self.provider = world, world.daemon, provider
        fresh = agent(self.daemon, provider="demo")
        self.agent = Party(self.daemon, fresh.address, fresh.token)
        self.workspace = world.directory / self.agent.name
        self.program = Program(self.workspace)
        self.program.does(LIVELY)
        self.set(provider=provider, workspace=str(self.workspace), settings=self._settings())
        self.envelope = ""

    def _settings(self) -> dict[str, Any]:
        return {
            "command": {"command": self.program.command},
            "webhook": {"url": self.world.hole.url},
        }.get(self.provider, {})

    def set(self, **fields: Any) -> None:
        self.world.boss.call("agent.set", name=self.agent.name, **fields)

    # --- what it is about --------------------------------------------------------------

    def runs(self) -> list[dict[str, Any]]:
        """Its runs, oldest first."""
        found = self.world.boss.call("run.list", agent=self.agent.name, page_size=100)["runs"]
        return list(reversed(found))

    @property
    def run(self) -> str:
        return str(self.runs()[-1]["id"])

    @property
    def conversation(self) -> str:
        if not self.envelope:  # nobody has told it anything; so what it says itself begins one
            return str(self.agent.send("user:boss", text="I am here")["conversation"])
        return str(self.world.boss.get(self.envelope)["conversation"])

    def target(self, kind: str) -> str:
        return {
            "agent": lambda: self.agent.name,
            "run": lambda: self.run,
            "conversation": lambda: self.conversation,
            "envelope": lambda: self.envelope,
        }[kind]()

    def tell(self, text: str) -> None:
        self.envelope = self.world.boss.tell(self.agent, text=text)

    def status(self) -> str:
        return str(self.world.boss.get(self.envelope)["status"])

    def lane(self) -> dict[str, Any]:
        found = rows(
            self.daemon,
            "SELECT state, paused_run FROM lane WHERE address = (SELECT address FROM agent a JOIN address d"
            " ON d.id = a.address WHERE d.name = ?)",
            self.agent.name,
        )
        return dict(found[0]) if found else {"state": "open", "paused_run": None}

    def control(self, event: str, kind: str, **more: Any) -> dict[str, Any]:
        params = {kind: self.target(kind), **more}
        answer: dict[str, Any] = self.world.boss.call("control.send", event=f"stream.{event}", **params)
        return answer

    def wait_until_running(self) -> None:
        """Until a run is under way, with its process if there is one."""
        has_program = self.provider in ("command", "programmed")

        def under_way() -> bool:
            found = self.runs()
            last = found[-1] if found else None
            return bool(last and last["status"] == "running" and (last["pid"] or not has_program))

        wait_until(under_way)

    def end(self) -> None:
        """Leave nothing behind."""
        self.world.boss.call("agent.delete", name=self.agent.name)


class World:
    """The daemon, the boss, and a web server that never answers."""

    def __init__(self, daemon: RunningDaemon, directory: Path) -> None:
        self.daemon, self.directory = daemon, directory
        self.boss = Boss(daemon)
        self.hole = Hole()
        self.other = agent(daemon)  # it fetches its mail, so it never works
        self._scenes: dict[tuple[str, str], Scene] = {}

    def scene(self, state: str, provider: str) -> Scene:
        """The scene of a state and a provider: the one of before, if nothing has changed it."""
        if (state, provider) not in self._scenes:
            self._scenes[state, provider] = built = Scene(self, provider)
            STATES[state](built)
        return self._scenes[state, provider]

    def spoil(self, state: str, provider: str) -> None:
        """Something was applied: the next cell needs a new scene."""
        self._scenes.pop((state, provider)).end()

    def close(self) -> None:
        for state, provider in list(self._scenes):
            self.spoil(state, provider)
        self.hole.close()


class Hole:
    """A web server that takes requests and never answers."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._open: list[socket.socket] = []
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}/turns"
        threading.Thread(target=self._take, daemon=True).start()

    def _take(self) -> None:
        while True:
            try:
                self._open.append(self._listener.accept()[0])
            except OSError:
                return

    def close(self) -> None:
        self._listener.close()
        for one in self._open:
            one.close()


# --- the states ------------------------------------------------------------------------


def _idle(scene: Scene) -> None:
    """It has never worked."""


def _ended(scene: Scene) -> None:
    """Its only run is completed."""
    scene.set(provider="demo")
    scene.tell("hello")
    wait_until(lambda: scene.runs() and scene.runs()[-1]["status"] == "completed")


def _running(scene: Scene) -> None:
    if scene.provider == "programmed":
        (scene.workspace / "start").touch()
    scene.tell("slow " * 500 if scene.provider == "demo" else "hang")
    scene.wait_until_running()


def _starting(scene: Scene) -> None:
    """It runs, and no process of it is known yet."""
    scene.tell("slow " * 500 if scene.provider == "demo" else "hang")
    wait_until(lambda: scene.runs() and scene.runs()[-1]["status"] == "running")
    assert scene.runs()[-1]["pid"] is None


def _paused(scene: Scene) -> None:
    _running(scene)
    assert scene.control("pause", "run")["outcome"] == "applied"


def _asking(scene: Scene) -> None:
    if scene.provider == "command":
        scene.program.becomes(ASKS)
        scene.set(settings={"input": "open"})
    scene.tell("ask")
    wait_until(
        lambda: scene.world.boss.call("agent.status", name=scene.agent.name)["agent"]["state"] == "asks"
    )


def _ending(scene: Scene) -> None:
    """It was cancelled, and takes its time to end."""
    scene.program.does(STUBBORN)
    scene.tell("stubborn")
    scene.wait_until_running()
    if scene.provider == "command":
        scene.program.begins()
    assert scene.control("cancel", "run")["outcome"] == "applied"


def _background(scene: Scene) -> None:
    """It works on a task beside its turns."""
    if scene.provider == "programmed":
        (scene.workspace / "start").touch()
    task = "slow " * 500 if scene.provider == "demo" else "hang"
    given = scene.world.boss.call("agent.background", agent=scene.agent.name, task=task)
    scene.envelope = given["ids"][0] if "ids" in given else given["id"]
    scene.wait_until_running()
    assert scene.runs()[-1]["kind"] == "background"


def _lane_waiting(scene: Scene) -> None:
    """Its last turn failed in a way that every turn would, and its lane waits."""
    if scene.provider == "command":
        scene.program.goes_away()
    if scene.provider == "webhook":
        scene.set(settings={"url": "http://127.0.0.1:9/turns"})
    scene.tell("fail")
    wait_until(lambda: scene.lane()["state"] == "waiting")


def _agent_paused(scene: Scene) -> None:
    """It works on what it had, and gets no more turns."""
    _running(scene)
    scene.world.boss.call("agent.pause", name=scene.agent.name)


STATES: dict[str, Callable[[Scene], None]] = {
    "idle": _idle,
    "ended": _ended,
    "running": _running,
    "starting": _starting,
    "paused": _paused,
    "asking": _asking,
    "ending": _ending,
    "background": _background,
    "lane waiting": _lane_waiting,
    "agent paused": _agent_paused,
    "breaker": _idle,  # in a daemon whose breaker is pulled
}
