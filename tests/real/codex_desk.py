"""A person's desk: the real Codex is open in a terminal as an agent, and Ada's phone writes to that agent."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hiboss.testing.model_server import ModelServer, Say, UseTool
from tests.real.attached_desk import SECONDS, Phone, open_office
from tests.real.open_codex import OpenCodex
from tests.real.programs import Programs
from tests.support.cli import HIBOSS
from tests.support.telegram_bots import TelegramDaemon
from tests.support.waits import wait_until

WAYS = [(), ("--no-daemon",)]
NAMES = ["daemon", "queue"]
# Tools may speak to sockets: else no command of hiboss reaches its daemon.
CONFIG = "sandbox_workspace_write.network_access = true"
SOON = {
    "agents.attached.handing_over.SOON": 1.0,
    "agents.attached.hook_reports.SOON": 1.0,
    "agents.attached.handing_over.REFUSED_SECONDS": 1.0,
}
AGAIN = ("agents.attached.open_session.AGAIN_SECONDS", "agents.attached.handing_over.AGAIN_SECONDS")
QUEUE_SECONDS = 15.0  # the Codex without a daemon looks into its queue every ten seconds


class CodexDesk(Phone):
    """Codex with the hooks of hiboss, which its person has trusted."""

    def __init__(
        self,
        office: TelegramDaemon,
        directory: Path,
        programs: Programs,
        server: ModelServer,
        *,
        way: tuple[str, ...] = (),
        agent: str | None = "nex",
        asks: bool = False,
        config: str = "",
    ) -> None:
        super().__init__(office, server, agent or "workspace")  # named after the directory
        self.way = way
        directory.mkdir()
        env = {"HIBOSS_HOME": office.daemon.home.path}
        self.codex = OpenCodex(directory, programs, server, config=f"{config}\n{CONFIG}", env=env)
        named = () if agent is None else ("--agent", agent)
        self.hiboss("hooks", "install", "--client", "codex", *named, *(["--asks"] if asks else []))

    # --- the person at the desk --------------------------------------------------------

    def hiboss(self, *words: str) -> str:
        """Run a command as the boss."""
        done = subprocess.run([HIBOSS, *words], env=self.codex.env, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def open(self, *arguments: str, hello: str = "hello") -> None:
        """Open Codex, and say something: it is attached with its first prompt."""
        self.codex.start(*self.way, *arguments)
        self.says(hello, f"Codex hears {hello}.")
        self.wait_for_state("idle")

    def says(self, text: str, answer: str) -> None:
        """Let the person say something in the terminal, and wait for the answer."""
        self.server.script(Say(answer))
        self.codex.enter(text)
        self.codex.wait_for(answer)

    def wait_for_state(self, state: str, count: int = 1) -> None:
        """Wait until so many sessions are attached, and all of them are in a state."""
        wait_until(lambda: [one["state"] for one in self.attached()] == [state] * count, SECONDS)

    # --- the phone ---------------------------------------------------------------------

    def answers(self) -> list[str]:
        """Return what the bot posted, but what it said about the pairing."""
        said = [text for text in self.posts() if "This chat is yours now" not in text]
        return [text.removeprefix(f"{self.agent}:\n") for text in said]

    # --- the model ---------------------------------------------------------------------

    def prompts(self) -> list[str]:
        """Return each text that was given to the model as the person's, in order, once for each time."""
        turns = [
            one for one in self.server.requests if one.is_main and "format" not in one.body.get("text", {})
        ]
        return turns[-1].texts if turns else []

    def nudges(self) -> list[str]:
        """Return what woke the thread."""
        return [one for one in self.prompts() if one.startswith("[hiboss r")]


def shell(command: str) -> UseTool:
    """Let the model run a command."""
    return UseTool("exec_command", {"cmd": command, "yield_time_ms": 20_000})


def risky(command: str) -> UseTool:
    """Let the model run a command that needs a permission."""
    more = {"sandbox_permissions": "require_escalated", "justification": "It needs it."}
    return UseTool("exec_command", {"cmd": command, **more})


@contextmanager
def office_of(
    directory: Path, way: tuple[str, ...] = (), more: Mapping[str, float] | None = None
) -> Iterator[TelegramDaemon]:
    """Start a daemon that tells idle sessions again soon; `more`: other constants that are shortened."""
    again = dict.fromkeys(AGAIN, QUEUE_SECONDS if way else 2.0)
    with open_office(directory, {**SOON, **again, **(more or {})}) as made:
        yield made


@contextmanager
def open_desk(
    directory: Path,
    programs: Programs,
    server: ModelServer,
    way: tuple[str, ...] = (),
    more: Mapping[str, float] | None = None,
    **facts: Any,
) -> Iterator[CodexDesk]:
    """Open Codex as nex, in trust, and let Ada have a chat with nex. `facts` are those of the desk."""
    with office_of(directory, way, more) as office:
        made = CodexDesk(office, directory / "desk", programs, server, way=way, **facts)
        made.codex.trust_all()
        made.pair()
        with made.codex:
            made.open()
            yield made
