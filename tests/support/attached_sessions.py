"""Open sessions for tests, as their hooks report them: a process, a directory, and calls of the daemon.

    session = Session(daemon, "nex")
    ada.say(session, text="are you there?")
    session.takes()              # it is woken, and gets the mail
    session.stop("Yes.")         # the answer

The operations are called by the test itself: tests/support/open_harness.py has the real hooks.
"""

from __future__ import annotations

import itertools
import json
import os
import select
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from hiboss.cli.hook import events
from hiboss.cli.hook.daemon_calls import NoAnswer
from hiboss.cli.hook.harness import stat_of
from hiboss.testing.running_daemon import RunningDaemon
from tests.support.daemons import line
from tests.support.parties import Party, agent
from tests.support.python_agents import Boss, texts
from tests.support.waits import wait_until

_numbers = itertools.count(1)


class Waiter:
    """What waits to wake a session: a call that is answered when there is mail."""

    def __init__(self, daemon: RunningDaemon, token: str) -> None:
        self._connection = socket.socket(socket.AF_UNIX)
        self._connection.settimeout(30)
        self._connection.connect(daemon.home.socket)
        self._connection.sendall(line("attached.wait", token=token))

    def answer(self) -> dict[str, Any]:
        """Wait for its answer, with `result` or `error`; nothing when the daemon ended."""
        with self._connection, self._connection.makefile("rb") as stream:
            said = stream.readline()
        return dict(json.loads(said)) if said else {}

    def has_answer(self) -> bool:
        """True when `answer` would return at once: there was mail already."""
        return bool(select.select([self._connection], [], [], 0)[0])

    def nudge(self) -> str | None:
        return self.answer()["result"]["nudge"]

    def close(self) -> None:
        self._connection.close()


class Session(Party):
    """An open session. Its token is the one that its hooks have."""

    def __init__(
        self,
        daemon: RunningDaemon,
        named: str | None = None,
        *,
        directory: str | None = None,
        client: str = "claude",
        session: str | None = None,
        pid: int | None = None,
        **details: Any,
    ) -> None:
        number = next(_numbers)
        self.client, self.session = client, session or f"session-{number}"
        self.directory = directory or f"/work/desk-{number}"
        self.details = details
        self.named = named
        self.process: subprocess.Popen[bytes] | None = None
        if pid is None:
            self.process = subprocess.Popen(["sleep", "1000"])
            pid = self.process.pid
        self.pid = pid
        self.waiter: Waiter | None = None
        self.daemon = daemon
        super().__init__(daemon, f"agent:{self.start()['agent']}", self.stored_token)

    # --- what its hooks report -------------------------------------------------------

    def start(self, **more: Any) -> Any:
        """Attach it, as at each start, resume, /clear and compaction; with `again=True` as by another hook."""
        stat = stat_of(self.pid)
        assert stat is not None
        named = {} if self.named is None else {"agent": self.named}
        result = self.daemon.call(
            "attached.start",
            client=self.client,
            session=self.session,
            pid=self.pid,
            pid_started=stat.started,
            directory=self.directory,
            details=self.details,
            **named,
            **more,
        )
        self.token = self.stored_token
        return result

    @property
    def stored_token(self) -> str:
        """The token in the file that its hooks read; empty if there is none."""
        return str(self.daemon.home.known_session(self.client, self.session).get("token") or "")

    def prompt(self, text: str = "do something", event: str | None = None) -> str:
        """A prompt goes to the model; return what is added to it."""
        return str(self.call("attached.prompt", event=event or new_event(), prompt=text)["context"])

    def step(self, tool: str = "Bash") -> str:
        """A tool was used; return what the model is told."""
        return str(self.call("attached.step", tool=tool)["context"])

    def stop(self, text: str = "", *, active: bool = False, event: str | None = None) -> str:
        """It stops; return why it must not, or nothing."""
        return str(self.call("attached.stop", event=event or new_event(), text=text, active=active)["block"])

    def break_off(self) -> None:
        self.call("attached.break", event=new_event())

    def end(self) -> None:
        self.call("attached.end", event=new_event())

    def hook(self, name: str, **fields: Any) -> dict[str, Any]:
        """Let the code of the real hook report an event; return what the harness reads. It fails silently."""
        event = {"session_id": self.session, "cwd": self.directory, "hook_event_name": name, **fields}
        call = events.Hook(self.daemon.home, self.client, self.named, event, os.urandom(12).hex())
        with mock.patch.dict(os.environ, {"CLAUDE_PID": str(self.pid)}):
            try:
                return events.answer(call)
            except NoAnswer:
                return {}
            finally:
                self.token = self.stored_token

    def hooked_prompt(self, text: str) -> str:
        found = self.hook("UserPromptSubmit", prompt=text).get("hookSpecificOutput", {})
        return str(found.get("additionalContext", ""))

    def hooked_stop(self, text: str, *, active: bool = False) -> str:
        return str(self.hook("Stop", last_assistant_message=text, stop_hook_active=active).get("reason", ""))

    # --- what a harness does with them -----------------------------------------------

    def arm(self) -> Waiter:
        """Let something wait to wake it. Return when the daemon knows."""
        waiter = self.waiter = Waiter(self.daemon, self.token)
        wait_until(lambda: self.listed()["waiter"] or waiter.has_answer())
        return waiter

    def woken(self) -> str:
        """Wait until it is woken; return the nudge."""
        found = (self.waiter or self.arm()).nudge()
        self.waiter = None
        assert found is not None
        return found

    def takes(self) -> str:
        """Wait until it is woken, and take the mail; return its text."""
        return self.prompt(self.woken())

    def listed(self) -> dict[str, Any]:
        """How the daemon shows it."""
        found: list[dict[str, Any]] = self.call("attached.list")["sessions"]
        (mine,) = [one for one in found if one["session"] == self.session]
        return mine

    def runs(self) -> list[dict[str, Any]]:
        """Return the runs of its agent, oldest first."""
        found = self.daemon.call("run.list", token=self.daemon.token("boss"), agent=self.name, page_size=100)
        return list(reversed(found["runs"]))

    def kill(self) -> None:
        """End its process, as by a closed terminal."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def close(self) -> None:
        if self.waiter is not None:
            self.waiter.close()
        self.kill()


class Room:
    """Opens sessions in one daemon, each as an agent of its own unless one is named, and closes them."""

    def __init__(self, daemon: RunningDaemon) -> None:
        self.daemon = daemon
        self._open: list[Session] = []

    def __call__(self, named: str | None = None, *, fields: Any = None, **more: Any) -> Session:
        """Open one. `fields`: of its agent."""
        name = named or agent(self.daemon, **{"mode": "pull", **(fields or {})}).name
        return self._opened(Session(self.daemon, name, **more))

    def unnamed(self, **more: Any) -> Session:
        """Open one for which nobody names an agent."""
        return self._opened(Session(self.daemon, **more))

    def _opened(self, session: Session) -> Session:
        self._open.append(session)
        return session

    def close(self) -> None:
        for one in self._open:
            one.close()


@contextmanager
def room(daemon: RunningDaemon) -> Iterator[Room]:
    """Open sessions until the end of the block."""
    made = Room(daemon)
    try:
        yield made
    finally:
        made.close()


def taken(boss: Boss, session: Session, text: str = "how is the build?", **params: Any) -> str:
    """Ask a session, which is woken and takes the mail; return the envelope."""
    envelope = asked(boss, session, text, **params)
    session.takes()
    return envelope


def woken(boss: Boss, session: Session, text: str = "how is the build?", **params: Any) -> tuple[str, str]:
    """Ask a session, which is woken; return the envelope and the nudge."""
    return asked(boss, session, text, **params), session.woken()


def asked(boss: Boss, session: Party, text: str = "how is the build?", **params: Any) -> str:
    """Let the boss ask something; return the envelope."""
    return str(boss.say(session, text=text, **params)["ids"][0])


def answered(boss: Boss, session: Session, active: bool = False) -> list[str]:
    """Let a session end its turn with an answer; return all that the boss heard of it."""
    session.stop("All is green.", active=active)
    return texts(boss.heard(session))


def new_event() -> str:
    return f"event-{next(_numbers)}"


def receipt(boss: Party, envelope: str) -> str:
    """Return how far an envelope got, in one word."""
    return str(boss.call("envelope.get", id=envelope)["receipt"]["state"])
