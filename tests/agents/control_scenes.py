"""Scenes for the tables of controls: an agent of each provider, in each state that it can be in.

A scene is built with a real daemon. What changes nothing leaves it as it is, so the next cell uses it again.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hiboss.testing.running_daemon import RunningDaemon
from tests.agents.test_steering import HEAD
from tests.support.daemons import daemon_with
from tests.support.parties import Party, agent
from tests.support.shell_agents import SLEEP, Boss, Program, rows
from tests.support.waits import wait_until

HOUR_MS = 3_600_000
MOST_TRIES = 50
# A program of the provider `command`: it asks, and waits.
ASKS = f"""#!/bin/sh
read turn
echo $$ >> "$(dirname "$0")/turns"
echo '{{"hiboss":"ask","id":1,"text":"May I?"}}'
exec {SLEEP}
"""
# A program that takes orders (`open`): it ends when it is asked to, unless its message says `stubborn`.
ORDERLY = """
said = turn["envelopes"][-1]["text"].split()[0]
if said == "ask":
    say("ask", id=1, text="May I?")
while order := hear():
    if order["hiboss"] == "interrupt" and said != "stubborn":
        open(D + "/obeyed", "w")
        break
"""


class Scene:
    """One agent in one state, and what a control can be about there. `open` is a command that takes orders."""

    def __init__(self, world: World, provider: str) -> None:
        self.world, self.daemon, self.provider = world, world.daemon, provider
        fresh = agent(self.daemon, provider="demo")
        self.agent = Party(self.daemon, fresh.address, fresh.token)
        self.workspace = world.directory / self.agent.name
        self.program = Program(self.workspace)
        self.program.hangs()
        command = {"command": self.program.command}
        settings = {"command": command, "webhook": {"url": world.url(world.silent)}}
        if provider == "open":
            self.program.becomes(HEAD + ORDERLY)
            settings["open"] = {**command, "input": "open"}
        kind = {"open": "command", "demo": "held-demo"}.get(provider, provider)
        self.set(provider=kind, workspace=str(self.workspace), settings=settings.get(provider, {}))
        self.envelope = ""

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

    def tell(self, text: str, **params: Any) -> None:
        self.envelope = self.world.boss.tell(self.agent, text=text, **params)

    def told(self, text: str = "hang", **params: Any) -> None:
        """Let it work on a message of the boss."""
        self.tell(text, **params)
        self.wait_until_running()

    def waiting(self, **params: Any) -> str:
        """Tell it something more, which does not belong to what it works on; return the envelope."""
        return self.world.other.tell(self.agent, text="more", **params)

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
        return self.world.boss.call("control.send", event=f"stream.{event}", **params)

    def wait_until_running(self) -> None:
        """Until a run is under way, with its process if there is one; before, that takes no orders."""
        has_program = self.provider in ("command", "open", "programmed")

        def under_way() -> bool:
            found = self.runs()
            last = found[-1] if found else None
            return bool(last and last["status"] == "running" and (last["pid"] or not has_program))

        wait_until(under_way)
        if self.provider in ("command", "open"):
            self.program.begins()

    def is_over(self) -> bool:
        """Tell whether what it worked on has ended: it is not in its state any more."""
        return any(one["status"] != "running" for one in self.runs())

    def obeyed(self) -> bool:
        return (self.workspace / "obeyed").exists()

    def end(self) -> None:
        """Leave nothing behind."""
        self.world.boss.call("agent.delete", name=self.agent.name)


class World:
    """The daemon, the boss, and two ports: one takes requests and never answers, one refuses them."""

    def __init__(self, daemon: RunningDaemon, directory: Path) -> None:
        self.daemon, self.directory = daemon, directory
        self.boss = Boss(daemon)
        self.silent = socket.create_server(("127.0.0.1", 0), backlog=500)
        self.closed = socket.socket()
        self.closed.bind(("127.0.0.1", 0))  # bound and not listening: nobody else can listen there
        self.other = agent(daemon)  # it fetches its mail, so it never works
        self._scenes: dict[tuple[str, str], Scene] = {}

    def url(self, port: socket.socket) -> str:
        return f"http://127.0.0.1:{port.getsockname()[1]}/turns"

    def _scene(self, state: str, provider: str) -> Scene:
        """The scene of a state and a provider: the one of before, if nothing has changed it."""
        if (state, provider) not in self._scenes:
            self._scenes[state, provider] = built = Scene(self, provider)
            STATES[state](built)
        return self._scenes[state, provider]

    @contextmanager
    def order(
        self, state: str, provider: str, give: Callable[[Scene], Any], applies: bool
    ) -> Iterator[tuple[Scene, Any]]:
        """Give an order in a scene, and look at what became of it. An order that applies changes the scene.

        A run that ends does so in a few seconds: if it was over before the order came, there is another one.
        """
        for _ in range(MOST_TRIES):
            scene = self._scene(state, provider)
            answer = give(scene)
            if state != "ending" or not scene.is_over():
                break
            self.spoil(state, provider)
        try:
            yield scene, answer
        except BaseException:
            applies = True
            raise
        finally:
            if applies or state == "ending":
                self.spoil(state, provider)

    def spoil(self, state: str, provider: str) -> None:
        """The next cell needs a new scene."""
        if scene := self._scenes.pop((state, provider), None):
            scene.end()

    def close(self) -> None:
        for state, provider in list(self._scenes):
            self.spoil(state, provider)
        self.silent.close()
        self.closed.close()


@contextmanager
def world(directory: Path) -> Iterator[World]:
    settings = {"provider_modules": "tests.support.control_providers", "parallel_runs": 50}
    with daemon_with(directory, finish_seconds=0.1, **settings) as daemon:
        made = World(daemon, directory)
        yield made
        made.close()
        wait_until(lambda: not made.boss.call("run.list", status="running")["runs"])
        daemon.check()


# --- the states ------------------------------------------------------------------------


def _idle(scene: Scene) -> None:
    """It has never worked."""


def _ended(scene: Scene) -> None:
    """Its only run is completed."""
    scene.set(provider="demo")
    scene.tell("hello")
    wait_until(lambda: scene.runs() and scene.runs()[-1]["status"] == "completed")


def _running(scene: Scene) -> None:
    (scene.workspace / "start").touch()  # for `programmed`
    scene.told()


def _starting(scene: Scene) -> None:
    """It runs, and no process of it is known yet."""
    scene.tell("hang")
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


def stubborn(scene: Scene) -> None:
    """It works, and takes its time to end when it is told to."""
    if scene.provider == "command":
        scene.program.ignores_signals()
    scene.told("stubborn")


def _ending(scene: Scene) -> None:
    """It was cancelled, and takes its time to end."""
    stubborn(scene)
    assert scene.control("cancel", "run")["outcome"] == "applied"


def _background(scene: Scene) -> None:
    """It works on a task beside its turns."""
    given = scene.world.boss.call("agent.background", agent=scene.agent.name, task="hang")
    scene.envelope = given["ids"][0] if "ids" in given else given["id"]
    scene.wait_until_running()
    assert scene.runs()[-1]["kind"] == "background"


def _lane_waiting(scene: Scene) -> None:
    """Its last turn failed in a way that every turn would, and its lane waits for an hour."""
    if scene.provider in ("command", "open"):
        scene.program.goes_away()
    if scene.provider == "webhook":
        scene.set(settings={"url": scene.world.url(scene.world.closed)})
    scene.tell("fail")
    wait_until(lambda: scene.lane()["state"] == "waiting")
    with scene.daemon.database() as database:
        database.execute("UPDATE lane SET wake_at = wake_at + ? WHERE state = 'waiting'", (HOUR_MS,))
        database.commit()


def _critical(scene: Scene) -> None:
    scene.told(priority="critical")


def _kept(scene: Scene) -> None:
    """Who wrote what it works on wants no interruption."""
    scene.told(interruptible=False)


def _lane_paused(scene: Scene) -> None:
    scene.told()
    scene.world.boss.call("lane.pause", address=scene.agent.address)


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
    "critical": _critical,
    "kept": _kept,
    "lane paused": _lane_paused,
}
OF_ENVELOPES = {"critical", "kept", "lane paused"}  # states that matter for preempt and priority
