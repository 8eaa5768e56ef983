"""Rigs of our own providers (hiboss/testing/provider_rig.py)."""

from __future__ import annotations

import json
import os
import sys
import uuid
from pathlib import Path
from typing import Any

import psutil
from pydantic import SecretStr

from hiboss.agents.providers.command import Command, CommandSettings
from hiboss.agents.providers.demo import Demo
from hiboss.agents.providers.webhook import Webhook, WebhookSettings
from hiboss.agents.questions import AskStore
from hiboss.agents.run_execution import Reports
from hiboss.core.contracts.provider import Provider, Question, TurnInput
from hiboss.core.option_models import Options
from hiboss.core.webhook_signatures import PREFIX, new_secret
from hiboss.store.run_asks import Asked
from hiboss.testing.provider_rig import ProviderRig
from tests.agents.webhook_receiver import Receiver, response
from tests.core.letters import letter

TOKEN = "hbr_a-token-that-nobody-may-read-anywhere"
QUERY = "key=a-word-that-is-nobody-elses"
SYSTEM = letter(2, auto=True, text="a notice", **{"from": "agent:system"})


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
        "answer_bytes": 100_000,
        "output_bytes": 10_000_000,
    }
    return TurnInput(**{**known, **facts})


def no_reports() -> Reports:
    """Reports of an execution that starts no process and has no session."""

    async def never(value: object, *more: object) -> None:
        raise AssertionError(f"it reported {value}")

    async def never_asks(question: Question, until: int) -> Asked:
        raise AssertionError(f"it asked {question.text}")

    return Reports(
        store_pid=never,
        store_session=never,
        session_lost=never,
        on_output=lambda part, position: None,
        on_standstill=lambda still: None,
        asks=AskStore(add=never_asks, reply=never, withdraw=never),
        on_question=lambda: None,
    )


class DemoRig(ProviderRig):
    secrets = ()

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self._envelopes = [letter(text="")]

    def good(self) -> dict[str, Any]:
        return {}

    def bad(self) -> list[dict[str, Any]]:
        return []

    def make(self) -> Provider:
        return Demo(Options())

    def task(self, **facts: Any) -> TurnInput:
        return plain_task(self.directory, **{"envelopes": self._envelopes, **facts})

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


class CommandRig(ProviderRig):
    secrets = (TOKEN,)

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.mark = uuid.uuid4().hex
        self._command = "sh agent.sh 'a word'"

    async def __aenter__(self) -> CommandRig:
        self.says_nothing()
        return self

    def good(self) -> dict[str, Any]:
        return {"command": self._command}

    def bad(self) -> list[dict[str, Any]]:
        commands = ["", "   ", "echo 'open", "x" * 5000, "nul\x00"]
        return [{}, {"command": None}, *({"command": one} for one in commands)]

    def make(self) -> Provider:
        return Command(CommandSettings(**self.good()))

    def task(self, **facts: Any) -> TurnInput:
        plain = plain_task(self.directory)
        environment = {**plain.environment, "RIG": self.mark, "HIBOSS_RUN": uuid.uuid4().hex}
        return plain_task(self.directory, **{"environment": environment, **facts})

    def program(self, script: str) -> None:
        """Set what the program does after it has read its turn."""
        first = 'cat > given\necho once >> turns\nprintf %s "$HIBOSS_RESUME" > session\n'
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

    def answers_in(self, session: str) -> None:
        lines = [{"hiboss": "session", "id": session}, {"hiboss": "final", "text": "You said: well"}]
        self.answers_bytes("".join(f"{json.dumps(line)}\n" for line in lines).encode())

    def given_session(self) -> str | None:
        return (self.directory / "session").read_text() or None

    def loses_session(self) -> None:
        """Let it say that it cannot resume its session."""
        error = {"hiboss": "error", "kind": "session_lost", "text": "no such session"}
        self.answers_bytes(json.dumps(error).encode() + b"\n")


class OpenCommandRig(CommandRig):
    """A program whose standard input stays open. What it does is written in Python."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self._command = f"{sys.executable} -I -S agent.py"

    def good(self) -> dict[str, Any]:
        return {"command": self._command, "input": "open"}

    def bad(self) -> list[dict[str, Any]]:
        return [*super().bad(), {"command": "x", "input": "shut"}]

    def program(self, script: str) -> None:
        """Set what the program does after it has read its turn: a shell script, or Python after `# python`."""
        body = (
            script
            if script.startswith("# python")
            else f"import os\nos.execvp('sh', ['sh', '-c', {script!r}])"
        )
        (self.directory / "agent.py").write_text(OPEN_PROGRAM + body)

    def waits_for_words(self) -> None:
        self.program("# python\nsay('tool', text='waiting')\nsay('final', text=hear()['text'])\n")

    def waits_for_interrupt(self) -> None:
        self.program("# python\nsay('tool', text='waiting')\nassert hear()['hiboss'] == 'interrupt'\n")

    def asks(self, *questions: str) -> None:
        self.program(
            f"# python\nfor text in {questions!r}:\n"
            "    say('ask', id=text, text=text, options=['yes', 'no'])\n"
            f"found = [hear() for _ in {questions!r}]\n"
            "say('final', text=' '.join(f\"{one['id']}={one['option']}\" for one in found))\n"
        )

    def asks_for_tool(self, tool: str, detail: str, subject: str) -> None:
        self.program(
            f"# python\nsay('ask', text='May I?', tool={tool!r}, detail={detail!r}, subject={subject!r})\n"
            "say('final', text=hear()['option'])\n"
        )


OPEN_PROGRAM = """
import json, sys


def say(kind, **more):
    print(json.dumps({"hiboss": kind, **more}), flush=True)


def hear():
    return json.loads(sys.stdin.readline())


turn = hear()
assert turn["hiboss"] == "turn"
open("given", "w").write(turn["text"])
open("turns", "a").write("once\\n")
open("session", "w").write(turn["session"] or "")
"""


class WebhookRig(ProviderRig):
    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
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
        return Webhook(WebhookSettings(**self.good(), secret=SecretStr(self.secret)))

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

    def answers_in(self, session: str) -> None:
        body = json.dumps({"text": "You said: well", "session": session}).encode()
        self.server.answer = response(200, body, kind="application/json")

    def given_session(self) -> str | None:
        return json.loads(self.server.requests[-1].body)["session"]
