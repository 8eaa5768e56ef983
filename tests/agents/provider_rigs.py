"""Rigs: they bring each provider into the situations that the contract test needs.

A new provider needs a rig here, listed in RIGS."""

from __future__ import annotations

import json
import os
import uuid
from pathlib import Path
from typing import Any, Protocol

import psutil

from hiboss.agents.providers.command import Command
from hiboss.agents.providers.demo import Demo
from hiboss.agents.providers.webhook import PREFIX, Webhook, new_secret
from hiboss.core.contracts.provider import Provider, TurnInput
from tests.agents.webhook_receiver import Receiver, response
from tests.core.letters import letter

TOKEN = "hbr_a-token-that-nobody-may-read-anywhere"
QUERY = "key=a-word-that-is-nobody-elses"
SYSTEM = letter(2, auto=True, text="a notice", **{"from": "agent:system"})


class Rig(Protocol):
    """One provider and its surroundings, set up by `async with rig`. A new provider is made for each turn."""

    secrets: tuple[str, ...]  # no error may contain this

    def __init__(self, directory: Path) -> None:
        """Only remember the directory."""

    async def __aenter__(self) -> Rig: ...
    async def __aexit__(self, *_: object) -> None: ...

    def good(self) -> dict[str, Any]:
        """Return valid settings, as the boss gives them."""

    def bad(self) -> list[dict[str, Any]]:
        """Return settings that must be refused."""

    def make(self) -> Provider:
        """Return a new provider, as it is made for every turn."""

    def task(self, **facts: Any) -> TurnInput:
        """Return a turn; it is answered as the rig was told last."""

    def answers(self, text: str) -> None: ...
    def says_nothing(self) -> None: ...

    def hangs(self) -> None:
        """From now on it never answers."""

    def under_way(self) -> bool:
        """Return whether the turn has reached it."""

    def left_behind(self) -> list[Any]:
        """Return what is left after a turn: processes, connections."""


class FallibleRig(Rig, Protocol):
    """A rig for a provider that calls something outside, which can fail."""

    def turns(self) -> int:
        """Return how many turns reached it."""

    def given(self) -> str:
        """Return the text of the last turn that reached it."""

    def answers_bytes(self, answer: bytes) -> None: ...
    def answers_for(self, text: str, **usage: Any) -> None:
        """Let it answer with these numbers of tokens and cost."""

    def floods(self) -> None:
        """Let it answer without end."""

    def refuses_this_one(self) -> None:
        """Let this turn fail, and only this one (TurnError)."""

    def is_away(self) -> None:
        """Let every turn fail (LaneError)."""


def plain_task(directory: Path, **facts: Any) -> TurnInput:
    known: dict[str, Any] = {
        "run": "r9",
        "delivery": uuid.uuid4().hex,
        "agent": "nex",
        "text": "agent: nex\n\nwhat is new, ä€😀?",
        "envelopes": [letter(text="what is new?")],
        "due": 1,
        "now": 1_769_602_125_120,
        "timezone": "Asia/Shanghai",
        "workspace": str(directory),
        "environment": {"PATH": os.environ["PATH"], "HIBOSS_TOKEN": TOKEN},
        "output_bytes": 100_000,
    }
    return TurnInput(**{**known, **facts})


class DemoRig:
    secrets = ()

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._envelopes = [letter(text="")]

    async def __aenter__(self) -> DemoRig:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    def good(self) -> dict[str, Any]:
        return {}

    def bad(self) -> list[dict[str, Any]]:
        return []

    def make(self) -> Provider:
        return Demo(Demo.configure(self.good()))

    def task(self, **facts: Any) -> TurnInput:
        return plain_task(self._directory, **{"envelopes": self._envelopes, **facts})

    def answers(self, text: str) -> None:
        """The demo provider, which can only answer "You said: …"."""
        self._envelopes = [letter(text=text.removeprefix("You said: "))]

    def says_nothing(self) -> None:
        self._envelopes = [SYSTEM]

    def hangs(self) -> None:
        self.answers("slow " * 100)  # the answer comes in pieces

    def under_way(self) -> bool:
        return True

    def left_behind(self) -> list[Any]:
        return []


class CommandRig:
    secrets = (TOKEN,)

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.mark = uuid.uuid4().hex
        self._command = "sh agent.sh 'a word'"

    async def __aenter__(self) -> CommandRig:
        self.says_nothing()
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    def good(self) -> dict[str, Any]:
        return {"command": self._command}

    def bad(self) -> list[dict[str, Any]]:
        commands = ["", "   ", "echo 'open", "x" * 5000, "nul\x00"]
        return [{}, {"command": None}, *({"command": one} for one in commands)]

    def make(self) -> Provider:
        return Command(Command.configure(self.good()))

    def task(self, **facts: Any) -> TurnInput:
        plain = plain_task(self.directory)
        environment = {**plain.environment, "RIG": self.mark, "HIBOSS_RUN": self.mark}
        return plain_task(self.directory, **{"environment": environment, **facts})

    def program(self, script: str) -> None:
        """Set what the program does after it has read its turn."""
        first = "cat > given\necho once >> turns\n"
        (self.directory / "agent.sh").write_text(first + script)

    def answers(self, text: str) -> None:
        self.answers_bytes(text.encode() + b"\n")

    def answers_bytes(self, answer: bytes) -> None:
        (self.directory / "answer").write_bytes(answer)
        self.program("cat answer\n")

    def answers_for(self, text: str, **usage: Any) -> None:
        lines = [{"hiboss": "usage", **usage}, {"hiboss": "final", "text": text}]
        self.answers_bytes("".join(f"{json.dumps(line)}\n" for line in lines).encode())

    def says_nothing(self) -> None:
        self.program("exit 0\n")

    def hangs(self) -> None:
        self.program("sleep 1000 & sleep 1000 & wait\n")

    def floods(self) -> None:
        self.program("yes 'something to say'\n")

    def refuses_this_one(self) -> None:
        self.program("echo cannot do this one >&2\nexit 1\n")

    def is_away(self) -> None:
        self._command = "./nothing-there --now"

    def under_way(self) -> bool:
        return len(self.left_behind()) >= 3

    def left_behind(self) -> list[Any]:
        return [one.pid for one in psutil.process_iter() if self._is_ours(one)]

    def _is_ours(self, process: psutil.Process) -> bool:
        try:
            ours = process.environ().get("RIG") == self.mark
            return ours and process.status() != psutil.STATUS_ZOMBIE
        except psutil.Error:
            return False

    def turns(self) -> int:
        file = self.directory / "turns"
        return len(file.read_text().splitlines()) if file.exists() else 0

    def given(self) -> str:
        return (self.directory / "given").read_text()


class WebhookRig:
    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.server = Receiver()
        self.secret = new_secret()
        self.secrets = (self.secret.removeprefix(PREFIX), TOKEN, QUERY)
        self._port: int | None = None

    async def __aenter__(self) -> WebhookRig:
        await self.server.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.server.__aexit__()

    def good(self) -> dict[str, Any]:
        port = self._port or self.server.port or 9
        return {"url": f"http://127.0.0.1:{port}/turns?{QUERY}"}

    def bad(self) -> list[dict[str, Any]]:
        addresses = [
            "",
            " ",
            "x",
            "ftp://example.org",
            "http://example.org",
            f"https://u:{TOKEN}@example.org",
        ]
        return [{}, {"url": None}, {"url": 5}, *({"url": one} for one in addresses)]

    def make(self) -> Provider:
        return Webhook({**Webhook.configure(self.good()), "secret": self.secret})

    def task(self, **facts: Any) -> TurnInput:
        return plain_task(self.directory, **facts)

    def answers(self, text: str) -> None:
        self.answers_bytes(text.encode())

    def answers_bytes(self, answer: bytes) -> None:
        self.server.answer = response(200, answer)

    def answers_for(self, text: str, **usage: Any) -> None:
        body = json.dumps({"text": text, "usage": usage}).encode()
        self.server.answer = response(200, body, kind="application/json")

    def says_nothing(self) -> None:
        self.server.answer = response(204)

    def hangs(self) -> None:
        self.server.answer = None

    def floods(self) -> None:
        self.server.answer = b"HTTP/1.1 200 x\r\ncontent-type: text/plain\r\n\r\n"  # for ever
        self.server.endless = b"something to say\n" * 1000

    def refuses_this_one(self) -> None:
        self.server.answer = response(422, f"{self.secret} {QUERY}".encode())

    def is_away(self) -> None:
        self._port = 9  # nobody listens on this port

    def under_way(self) -> bool:
        return self.turns() > 0

    def left_behind(self) -> list[Any]:
        return ["a connection"] * self.server.open

    def turns(self) -> int:
        return len(self.server.requests)

    def given(self) -> str:
        return str(json.loads(self.server.requests[-1].body)["text"])


RIGS: list[type[Rig]] = [DemoRig, CommandRig, WebhookRig]
FALLIBLE: list[type[FallibleRig]] = [CommandRig, WebhookRig]
