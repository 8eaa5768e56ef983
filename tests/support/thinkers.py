"""Agents for tests of turns: small programs that think what a test tells them to, and when all is at rest.

    team = Team(daemon, directory)
    kai = team.hire('print("hello")')
    boss.say(kai, "are you there?")
    rest(daemon)

A program finds in TURN what it got, in TEXTS what the envelopes said, and has `call` and `send`.
"""

from __future__ import annotations

import itertools
import json
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

from hiboss.testing.running_daemon import RunningDaemon
from tests.support.clockwork import Office
from tests.support.daemons import wait_until
from tests.support.office import Envelope, Party

Run = dict[str, Any]
QUIET = 'print("NO_REPLY")'

_numbers = itertools.count(1)

PRELUDE = """
import json, os, re, socket, subprocess, sys, time

HERE = os.path.dirname(os.path.abspath(__file__))
TURN = sys.stdin.read()
TEXTS = [one.strip() for one in re.findall(r"(?ms)^text:\\n(.*?)(?=^envelope-id: |^already-sent:|\\Z)", TURN)]
with open(__file__ + ".turns", "a") as file:
    file.write(json.dumps(TURN) + "\\n")


def call(method, **params):
    params.setdefault("token", os.environ["HIBOSS_TOKEN"])
    if "from_" in params:
        params["from"] = params.pop("from_")
    with socket.socket(socket.AF_UNIX) as line:
        line.connect(SOCKET)
        line.sendall(json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode() + b"\\n")
        answer = json.loads(line.makefile("rb").readline())
    return answer["result"] if "result" in answer else answer["error"]["data"]


def send(to, text, **params):
    return call("envelope.send", to=to, text=text, **params)


def wait_for(name):
    while not os.path.exists(os.path.join(HERE, name)):
        time.sleep(0.002)


def note(what):
    with open(__file__ + ".notes", "a") as file:
        file.write(json.dumps(what) + "\\n")


"""


class Program:
    """A program in a directory, what it was given, and what it noted."""

    def __init__(self, directory: Path, name: str, body: str, socket: str = "") -> None:
        self.path = directory / f"{name}.py"
        self.write(body, socket)

    def write(self, body: str, socket: str = "") -> None:
        """Let it think something else from now on."""
        self.path.write_text(PRELUDE.replace("SOCKET)", f"{socket!r})") + body + "\n")

    @property
    def command(self) -> str:
        return f"{sys.executable} -I -S {self.path}"  # nothing of ours is needed, and it starts quicker

    def turns(self) -> list[str]:
        """What it got on standard input, one text for each turn."""
        return _lines(self.path.with_name(self.path.name + ".turns"))

    def notes(self) -> list[Any]:
        return _lines(self.path.with_name(self.path.name + ".notes"))


def _lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


class Thinker(Party):
    """An agent with a program, who also calls over the socket with a token of its own."""

    def __init__(self, daemon: RunningDaemon, address: str, token: str, program: Program) -> None:
        super().__init__(daemon, address, token)
        self.program = program

    def turns(self) -> list[str]:
        return self.program.turns()

    def runs(self, **params: Any) -> list[Run]:
        """Its runs, oldest first."""
        return list(reversed(self.call("run.list", page_size=100, **params)["runs"]))


class Team:
    """Hires agents into one daemon."""

    def __init__(self, daemon: RunningDaemon, directory: Path) -> None:
        self.daemon = daemon
        self.directory = directory

    def hire(self, body: str, name: str | None = None, **fields: Any) -> Thinker:
        name = name or f"thinker-{next(_numbers)}"
        program = Program(self.directory, name, body, self.daemon.home.socket)
        answer = self.daemon.call(
            "agent.register",
            token=self.daemon.token("boss"),
            name=name,
            provider="command",
            command=program.command,
            **fields,
        )
        return Thinker(self.daemon, f"agent:{name}", answer["token"], program)

    def place(self, name: str) -> Path:
        """Where programs look for what they wait for."""
        return self.directory / name


class Chief(Party):
    """The boss, who speaks as user:boss."""

    def __init__(self, daemon: RunningDaemon) -> None:
        super().__init__(daemon, "user:boss", daemon.token("boss"))

    def say(self, *to: Party, text: str = "hello", **params: Any) -> Any:
        return self.send(*to, text=text, **{"from": "user:boss"}, **params)

    def heard(self, other: Party) -> list[Envelope]:
        """What the other one said in the conversation of the two, in the order it was said."""
        said = self.call("conversation.messages", **{"with": other.address}, page_size=100)["envelopes"]
        return [one for one in said if one["from"] == other.address]

    def told(self) -> list[str]:
        """What agent:system told the boss."""
        found = self.list(page_size=100, oldest_first=True)
        return [one["text"] for one in found if one["from"] == "agent:system"]

    def told_of(self, other: Party) -> list[str]:
        return [text for text in self.told() if f"{other.address} " in text]

    def status(self, other: Party) -> Any:
        return self.call("agent.status", name=other.name)["agent"]


# What would still be done without anybody doing anything: all of it by one look at one moment.
_RESTLESS = """
SELECT (SELECT count(*) FROM run WHERE status = 'running') + (
    SELECT count(*) FROM envelope e JOIN message m ON m.id = e.message
    JOIN address s ON s.id = m.sender JOIN address r ON r.id = e.recipient
    JOIN agent g ON g.address = CASE r.fold WHEN 'agent:background' THEN s.id ELSE r.id END
    LEFT JOIN lane l ON l.address = g.address
    WHERE e.status = 0 AND e.arrived IS NOT NULL AND e.waits IS NULL AND s.fold <> 'agent:system'
      AND g.provider IS NOT NULL AND (g.mode = 'run' OR r.fold = 'agent:background')
      AND g.paused_at IS NULL AND g.deleted_at IS NULL AND ifnull(l.state, 'open') = 'open')
"""


def at_rest(connection: sqlite3.Connection) -> bool:
    return bool(connection.execute(_RESTLESS).fetchone()[0] == 0)


def rest(daemon: RunningDaemon) -> None:
    """Return when no run is under way and none will begin by itself."""
    with daemon.database() as connection:
        wait_until(lambda: at_rest(connection), 60)


def texts(envelopes: list[Envelope]) -> list[str]:
    return [one["text"] for one in envelopes]


# --- under a clock that stands still -----------------------------------------------------------


async def hire(office: Office, name: str, body: str, **fields: Any) -> Program:
    """An agent with a program in an office whose clock the test moves; no door is open to it there."""
    program = Program(Path(office.home.path).parent, name, body)
    command = fields.pop("command", program.command)
    await office.ask("agent.register", name=name, profile=True, provider="command", command=command, **fields)
    return program


async def calm(office: Office, **later: float) -> None:
    """Let so much time pass, and return when all is at rest."""
    if later:
        await office.move(**later)
    with closing(sqlite3.connect(office.home.database)) as connection:
        await office.until(lambda: at_rest(connection))


async def runs_of(office: Office, name: str, **params: Any) -> list[Run]:
    """An agent's runs, oldest first."""
    found = await office.ask("run.list", agent=name, page_size=100, **params)
    return list(reversed(found["runs"]))


async def standing(office: Office, name: str) -> Any:
    return (await office.ask("agent.status", name=name))["agent"]


async def notices(office: Office, who: str = "boss") -> list[str]:
    """What agent:system told somebody."""
    page = await office.ask("envelope.list", who, oldest_first=True, page_size=100)
    return [one["text"] for one in page["envelopes"] if one["from"] == "agent:system"]
