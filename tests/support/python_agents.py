"""Agents for tests of turns: each has a small Python program, written by the test. Also: wait until all are idle.

    team = Team(daemon, directory)
    kai = team.hire('print("hello")')
    boss.say(kai, "are you there?")
    wait_until_idle(daemon)

In a program, TURN is what it got on standard input, TEXTS are the texts of its envelopes, `call` calls
an operation, `send` sends, `wait_for` waits for a file, `note` writes something down for the test.
"""

from __future__ import annotations

import itertools
import json
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from hiboss.testing.running_daemon import RunningDaemon
from tests.support.in_process_daemon import InProcessDaemon
from tests.support.parties import Envelope, Party
from tests.support.waits import wait_until

Run = dict[str, Any]
QUIET = 'print("NO_REPLY")'

_numbers = itertools.count(1)

# Imported are only modules that take no time: the tests start thousands of these programs, and `json`, `re`, `socket`
# and `subprocess` double what a start costs. Whoever uses one of them pays for it.
PRELUDE = """
import os, sys, time
from _json import encode_basestring_ascii as quoted


class Late:
    def __init__(self, name):
        self.name = name

    def __getattr__(self, word):
        return getattr(__import__(self.name), word)


json, re, socket, subprocess = map(Late, ("json", "re", "socket", "subprocess"))
HERE = os.path.dirname(os.path.abspath(__file__))
TURN = sys.stdin.read()
TEXTS = []
for shown in ("\\n" + TURN).split("\\ntext:\\n")[1:]:
    lines = shown.split("\\n")
    end = next((number for number, one in enumerate(lines) if one[:1] != ">"), len(lines))
    TEXTS.append("\\n".join(one[2:] for one in lines[:end]).strip())
with open(__file__ + ".turns", "a") as file:
    file.write(quoted(TURN) + "\\n")


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
        time.sleep(0.005)


def note(what):
    with open(__file__ + ".notes", "a") as file:
        file.write((quoted(what) if type(what) is str else json.dumps(what)) + "\\n")


"""


class Program:
    """A Python program in a directory, the turns it got, and what it wrote down."""

    def __init__(self, directory: Path, name: str, body: str, socket: str = "") -> None:
        self.path = directory / f"{name}.py"
        self.write(body, socket)

    def write(self, body: str, socket: str = "") -> None:
        """Replace the program; it is used from the next turn on."""
        self.path.write_text(PRELUDE.replace("SOCKET)", f"{socket!r})") + body + "\n")

    @property
    def command(self) -> str:
        return f"{sys.executable} -I -S {self.path}"  # it needs no packages, and starts faster

    def turns(self) -> list[str]:
        """Return what it got on standard input, one text for each turn."""
        return _lines(self.path.with_name(self.path.name + ".turns"))

    def notes(self) -> list[Any]:
        return _lines(self.path.with_name(self.path.name + ".notes"))


def _lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


class Waiting(Party):
    """Somebody who can wait until all agents are idle."""

    def call_and_wait(self, method: str, **params: Any) -> Any:
        result = self.call(method, **params)
        wait_until_idle(self.daemon)
        return result


class PythonAgent(Waiting):
    """An agent with a Python program. The test can also call as this agent, with its token."""

    def __init__(self, daemon: RunningDaemon, address: str, token: str, program: Program) -> None:
        super().__init__(daemon, address, token)
        self.program = program

    def turns(self) -> list[str]:
        return self.program.turns()

    def runs(self, **params: Any) -> list[Run]:
        """Return its runs, oldest first."""
        return list(reversed(self.call("run.list", page_size=100, **params)["runs"]))


class Team:
    """Registers agents with programs in one daemon."""

    def __init__(self, daemon: RunningDaemon, directory: Path) -> None:
        self.daemon = daemon
        self.directory = directory

    def hire(self, body: str, name: str | None = None, **fields: Any) -> PythonAgent:
        name = name or f"agent-with-program-{next(_numbers)}"
        program = Program(self.directory, name, body, self.daemon.home.socket)
        answer = self.daemon.call(
            "agent.register",
            token=self.daemon.token("boss"),
            name=name,
            provider="command",
            settings={"command": program.command},
            **fields,
        )
        return PythonAgent(self.daemon, f"agent:{name}", answer["token"], program)

    def let_go(self, name: str) -> None:
        """Make a file that a program waits for; wait until all agents are idle."""
        self.place(name).touch()
        wait_until_idle(self.daemon)

    def place(self, name: str) -> Path:
        """Return the path of a file that a program waits for (`wait_for`)."""
        return self.directory / name


class Boss(Waiting):
    """The boss, who sends as user:boss."""

    def __init__(self, daemon: RunningDaemon) -> None:
        super().__init__(daemon, "user:boss", daemon.token("boss"))

    def say(self, *to: Party, text: str = "hello", **params: Any) -> Any:
        return self.send(*to, text=text, **{"from": "user:boss"}, **params)

    def say_and_wait(self, *to: Party, text: str = "hello", **params: Any) -> Any:
        sent = self.say(*to, text=text, **params)
        wait_until_idle(self.daemon)
        return sent

    def wait_until_idle_and(self, condition: Callable[[], Any]) -> None:
        """Wait until a condition is true, and then until all agents are idle."""
        wait_until(condition)
        wait_until_idle(self.daemon)

    def heard(self, other: Party) -> list[Envelope]:
        """Return what the other one sent in the conversation of the two, oldest first."""
        said = self.call("conversation.messages", **{"with": other.address}, page_size=100)["envelopes"]
        return [one for one in said if one["from"] == other.address]

    def told(self) -> list[str]:
        """Return the notices of agent:system to the boss, oldest first."""
        found = self.list(page_size=100, oldest_first=True)
        return [one["text"] for one in found if one["from"] == "agent:system"]

    def told_of(self, other: Party) -> list[str]:
        """Return the notices about an agent, and what it asked because it had reached a limit."""
        asks = self.call("ask.list", state="all", page_size=100)["asks"]
        asked = [one["question"] for one in asks if (one["kind"], one["asker"]) == ("limit", other.address)]
        return [*(text for text in self.told() if f"{other.address} " in text), *reversed(asked)]

    def status(self, other: Party) -> Any:
        return self.call("agent.status", name=other.name)["agent"]


# Counts runs under way and envelopes that will start one, in one statement: one snapshot.
_WORK_LEFT = """
SELECT (SELECT count(*) FROM run WHERE status = 'running') + (
    SELECT count(*) FROM envelope e JOIN message m ON m.id = e.message
    JOIN address s ON s.id = m.sender JOIN address r ON r.id = e.recipient
    JOIN agent g ON g.address = CASE r.fold WHEN 'agent:background' THEN s.id ELSE r.id END
    LEFT JOIN lane l ON l.address = g.address
    WHERE e.status = 0 AND e.arrived IS NOT NULL AND e.waits IS NULL AND e.priority <> 4
      AND g.provider IS NOT NULL AND (g.mode = 'run' OR r.fold = 'agent:background')
      AND g.paused_at IS NULL AND g.deleted_at IS NULL AND ifnull(l.state, 'open') = 'open')
"""


def is_idle(connection: sqlite3.Connection) -> bool:
    return bool(connection.execute(_WORK_LEFT).fetchone()[0] == 0)


def wait_until_idle(daemon: RunningDaemon) -> None:
    """Return when no run is under way and none will begin by itself."""
    with daemon.database() as connection:
        wait_until(lambda: is_idle(connection), 60)


def texts(envelopes: list[Envelope]) -> list[str]:
    return [one["text"] for one in envelopes]


# --- in a daemon whose clock the test moves ------------------------------------------------------


async def hire(daemon: InProcessDaemon, name: str, body: str, **fields: Any) -> Program:
    """Register an agent with a program in an in-process daemon. The program cannot call it: no door is open."""
    program = Program(Path(daemon.home.path).parent, name, body)
    command = fields.pop("command", program.command)
    await daemon.ask(
        "agent.register", name=name, profile=True, provider="command", settings={"command": command}, **fields
    )
    return program


async def idle_after(daemon: InProcessDaemon, **later: float) -> None:
    """Move the clock, and return when all agents are idle."""
    if later:
        await daemon.move(**later)
    with closing(sqlite3.connect(daemon.home.database)) as connection:
        await daemon.until(lambda: is_idle(connection))


async def idle_after_ask(daemon: InProcessDaemon, method: str, who: str = "boss", **params: Any) -> Any:
    """Call an operation, and return its result when all agents are idle."""
    result = await daemon.ask(method, who, **params)
    await idle_after(daemon)
    return result


async def idle_after_send(daemon: InProcessDaemon, *to: str, **params: Any) -> list[str]:
    numbers = await daemon.send(*to, **params)
    await idle_after(daemon)
    return numbers


async def idle_after_until(daemon: InProcessDaemon, condition: Callable[[], Any]) -> None:
    await daemon.until(condition)
    await idle_after(daemon)


async def idle_after_restart(daemon: InProcessDaemon, **later: float) -> None:
    await daemon.restart(**later)
    await idle_after(daemon)


async def runs_of(daemon: InProcessDaemon, name: str, **params: Any) -> list[Run]:
    """Return an agent's runs, oldest first."""
    return list(reversed((await daemon.ask("run.list", agent=name, page_size=100, **params))["runs"]))


async def status_of(daemon: InProcessDaemon, name: str) -> Any:
    return (await daemon.ask("agent.status", name=name))["agent"]


async def notices(daemon: InProcessDaemon, who: str = "boss") -> list[str]:
    """Return the notices of agent:system to somebody, oldest first."""
    page = await daemon.ask("envelope.list", who, oldest_first=True, page_size=100)
    return [one["text"] for one in page["envelopes"] if one["from"] == "agent:system"]
