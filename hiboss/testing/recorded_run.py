"""A turn and a run for tests of a provider, without a daemon: the run keeps what the provider reports.

run = RecordedRun(choices=["allow"])
answer = await run.give(provider, sample_turn("hello"))
assert run.sessions == ["abc"]
"""

from __future__ import annotations

import asyncio
import os
import tempfile
import uuid
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from ..agents.provider_reports import check_pid, check_progress, check_session
from ..agents.run_outcome import of_answer
from ..core import clock
from ..core.contracts.failures import TurnError
from ..core.contracts.provider import ASK, SESSION, Answer, Choice, Progress, Provider, Question, TurnInput


class RecordedRun:
    """A LiveRun that keeps everything, and checks it as the daemon does.

    Questions are answered with `choices`; without any left they wait.
    """

    def __init__(self, choices: Iterable[str] = ()) -> None:
        self.heard: list[Progress] = []
        self.pids: list[int] = []
        self.sessions: list[str] = []
        self.questions: list[Question] = []
        self.notes: list[str] = []  # what was left out or replaced
        self._choices = list(choices)
        self._provider: Provider | None = None

    async def give(self, provider: Provider, turn: TurnInput) -> Answer:
        """Give a provider its turn, and return its answer as the daemon would store it.

        What the daemon would not take is raised as a TurnError, as the daemon counts it. In this run the
        provider can do only what it declares.
        """
        self._provider = provider
        outcome = of_answer(await provider.take_turn(turn, self), turn.answer_bytes, self.notes)
        if outcome.answer is None:
            assert outcome.failure is not None
            raise TurnError(outcome.failure.kind, outcome.failure.text)
        return self._with_usage(outcome.answer)

    def _with_usage(self, answer: Answer) -> Answer:
        """Return the answer with the usage that was reported last, where it has none itself."""
        reported = [one.usage for one in self.heard if one.usage is not None]
        last = reported[-1]._asdict() if reported else {}
        last.pop("exact", None)
        return replace(answer, **{key: one for key, one in last.items() if getattr(answer, key) is None})

    def progress(self, part: Progress) -> None:
        part, note = check_progress(part)
        self._note(note)
        self.heard.append(part)

    async def started(self, pid: int) -> None:
        check_pid(pid)
        self.pids.append(pid)

    async def session(self, session: str) -> None:
        self._need(SESSION)
        note = check_session(session)
        self._note(note)
        if not note:
            self.sessions.append(session)

    async def ask(self, question: Question) -> Choice:
        self._need(ASK)
        if mistake := question.mistake():
            raise ValueError(mistake)
        self.questions.append(question)
        if not self._choices:
            await asyncio.get_running_loop().create_future()
        return Choice(self._choices.pop(0), by="user:boss")

    def _need(self, capability: str) -> None:
        if self._provider is not None and capability not in self._provider.capabilities:
            raise TypeError(f"the provider does not declare the capability {capability}")

    def _note(self, note: str) -> None:
        if note and note not in self.notes:
            self.notes.append(note)

    @property
    def shown(self) -> str:
        """The pieces of the answer that a person saw while it was made."""
        return "".join(one.text for one in self.heard if one.kind == "delta")


def sample_turn(text: str, **facts: Any) -> TurnInput:
    """Return a turn in which the boss says this to agent nex; `facts` replace fields of the TurnInput."""
    now = clock.now()
    envelope = {
        "id": "e81",
        "message": "m57",
        "conversation": "c4",
        "seq": 1,
        "from": "user:boss",
        "from_boss": True,
        "from_name": "Ada",
        "channel": None,
        "to": "agent:nex",
        "subject": None,
        "text": text,
        "attachments": [],
        "auto": False,
        "created_at": clock.iso(now),
    }
    known: dict[str, Any] = {
        "run": "r9",
        "delivery": uuid.uuid4().hex,
        "agent": "nex",
        "text": f"agent: nex\n\nfrom: user:boss\n\n> {text}",
        "envelopes": [envelope],
        "due": 1,
        "now": now,
        "timezone": "UTC",
        "workspace": tempfile.gettempdir(),
        "environment": {"PATH": os.environ.get("PATH", os.defpath)},
        "answer_bytes": 1024 * 1024,
        "output_bytes": 256 * 1024 * 1024,
    }
    return TurnInput(**{**known, **facts})
