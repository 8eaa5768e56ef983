"""Following the output of a run until it ends, behind `hiboss run tail`."""

from __future__ import annotations

import time
from contextlib import closing
from typing import TYPE_CHECKING, Any

from ..core.errors import HibossError
from ..core.paths import Home
from . import output
from .call import call_as
from .client import FactStream, is_away
from .views import runs as views

if TYPE_CHECKING:
    from .client import Fact

TOPICS = ("run.progress", "run.ended")
FOLLOW = 60.0  # seconds without news after which the run is read again
PATIENCE = 10.0  # seconds for which a daemon may be away, as for a restart
THINKING, THOUGHT = "thinking", 200  # a kind of part, and how long a line of it gets
RETRY = 1.0  # seconds between two tries to reach it


class RunTail:
    """One run, and how much of its output was printed."""

    def __init__(self, home: Home, token: str | None, id_: str) -> None:
        self._home = home
        self._token = token
        self._id = id_
        self._next = 0
        self._text_shown = False
        self._thought = ""  # the beginning of a line of it
        self._missed = False  # the daemon no longer had all of it
        self._told_end = False  # and everything before it
        self._away: tuple[float, HibossError] | None = None  # since when, and why

    def follow(self) -> None:
        """Print its output as it comes, then how it ended."""
        try:
            result = call_as(self._home, "run.get", {"id": self._id}, self._token)
            if result["run"]["status"] == "running":
                self._id = result["run"]["id"]
                wanted = {"topics": TOPICS, "addresses": [f"agent:{result['run']['agent']}"]}
                proof = {} if self._token is None else {"token": self._token}
                with closing(FactStream(self._home, wanted | proof)) as facts:
                    result = self._until_it_ended(facts)
        finally:
            views.parts({"parts": self._rest_of_thought()})
            output.fresh_line()
        complete = self._told_end and not self._missed
        views.ended_run(result, text_shown=self._text_shown and complete)

    def _until_it_ended(self, facts: FactStream) -> dict[str, Any]:
        stale = True  # opened again, the stream continues where it was, or tells of a gap
        while True:
            try:
                if not facts.is_open:
                    facts.open()
                if stale:
                    result = self._read()
                    if result["run"]["status"] != "running":
                        return result
                self._away = None
                with output.ProgressBar("waiting for the daemon") as waiting:
                    news = facts.wait(FOLLOW, waiting)
                stale = not news or any([self._note(one) for one in news])
            except HibossError as error:
                if not is_away(error):
                    raise
                facts.close()  # the daemon that it belongs to may be gone
                self._wait_for_daemon(error)

    def _read(self) -> dict[str, Any]:
        """Read the run, and print its output so far."""
        place = {"id": self._id, "after": self._next}
        result: dict[str, Any] = call_as(self._home, "run.tail", place, self._token)
        self._print(result["parts"])
        self._missed = self._missed or result["next"] - len(result["parts"]) > self._next
        self._next = result["next"]
        return result

    def _note(self, fact: Fact) -> bool:
        """Print what a fact tells of; returns whether the run must be read."""
        if fact["topic"] == "gap":
            return True
        if fact["run"] != self._id:
            return False
        if fact["topic"] == "run.ended":
            self._told_end = True
            return True
        if fact["part"] > self._next + 1:
            return True
        if fact["part"] > self._next:
            self._next = fact["part"]
            self._print([{"kind": fact["kind"], "text": fact["text"]}])
        return False

    def _print(self, parts: list[dict[str, Any]]) -> None:
        views.parts({"parts": parts if output.Mode.json else self._in_lines(parts)})
        self._text_shown = self._text_shown or any(part["kind"] == "delta" for part in parts)

    def _in_lines(self, parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return the parts, with what the agent thinks in lines: it comes a word at a time."""
        found: list[dict[str, Any]] = []
        for part in parts:
            if part["kind"] == THINKING:
                *lines, self._thought = (self._thought + part["text"]).split("\n")
                if len(self._thought) > THOUGHT:
                    line, _, self._thought = self._thought.rpartition(" ")
                    lines.append(line)
                found += [{"kind": THINKING, "text": line} for line in lines if line.strip()]
            else:
                found += [*self._rest_of_thought(), part]
        return found

    def _rest_of_thought(self) -> list[dict[str, Any]]:
        rest, self._thought = self._thought, ""
        return [{"kind": THINKING, "text": rest}] if rest.strip() else []

    def _wait_for_daemon(self, error: HibossError) -> None:
        """Wait a moment for a daemon that is away; raises its first error when it stays away."""
        if self._away is None:
            output.fresh_line()
            output.note(
                "note: the daemon is away; hiboss tries again every second (to start it: hiboss daemon start)"
            )
        since, first = self._away = self._away or (time.monotonic(), error)
        if time.monotonic() - since > PATIENCE:
            raise first
        time.sleep(RETRY)
