"""`hiboss chat`"""

from __future__ import annotations

import os
import sys
import time
import uuid
from typing import Annotated, Any

import typer

from ...core import clock
from ...core.errors import EXIT_REFUSED, EXIT_TIMEOUT, HibossError, InvalidParams
from ...core.paths import Home
from .. import output
from ..chat.conversation import Envelope, Line, is_away
from ..chat.formatting import fetches, files, state
from ..client import Answered
from ..session import As, Json, Token, find_person, flag, notice_other_version, read_file
from .envelope import absolute

app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False)
PATIENCE = "60s"
BOSS = "user:boss"
LONGEST = 24 * 3_600_000
SLICE = 5.0  # seconds: how often one looks whether the message failed
AGAIN = 1.0  # seconds between two tries to reach a daemon that is away


@app.command()
def chat(
    agent: Annotated[
        str | None, typer.Argument(metavar="[AGENT]", help="With whom: nex, or agent:nex.")
    ] = None,
    once: Annotated[
        str | None, flag("--once", "TEXT", "Say this, print the answer, and end; - for standard input.")
    ] = None,
    timeout: Annotated[
        str | None, flag("--timeout", "TIME", "With --once: how long to wait, like 10m; by default 60s.")
    ] = None,
    attachment: Annotated[
        list[str] | None, flag("--attachment", "FILE", "With --once: a file to send along; may be repeated.")
    ] = None,
    token: Token = None,
    as_: As = None,
    json_: Json = False,
) -> None:
    """Talk with an agent, here in the terminal; /help there says how.

    Without --as, --token and HIBOSS_TOKEN you speak as the boss. With --once, or when standard
    input is no terminal, it ends with 0 when the answer came and 4 when it did not come in time.
    """
    talks = once is None and output.on_terminal(sys.stdin)
    if talks:
        _check_talk(timeout, attachment)
    elif token == "-" and once in (None, "-"):
        raise InvalidParams(detail="standard input can be the token or the text, not both; use --token @FILE")
    home = Home()
    patience = clock.duration(timeout or PATIENCE, most=LONGEST) / 1000
    line = Line(home, find_person(home, token, as_))
    notice_other_version(home)
    text = "" if talks else _text(once)
    if line.open(agent):
        output.note(f"note: talking with {line.other.name}; for another one: hiboss chat NAME")
    if talks:
        from ..chat.screen import talk

        talk(line)
        return
    line.history(1)
    if line.other.fetches:
        output.note(f"note: {fetches(line)}")
    _once(line, text, [absolute(path) for path in attachment or []], patience)


def _check_talk(timeout: str | None, attachment: list[str] | None) -> None:
    """What goes with one question only, and where no conversation can be shown."""
    given = [
        name
        for name, value in (
            ("--timeout", timeout),
            ("--attachment", attachment),
            ("--json", output.Mode.json),
        )
        if value
    ]
    if given:
        raise InvalidParams(
            detail=f'{given[0]} goes with --once: hiboss chat nex --once "hello" {given[0]} …'
        )
    if not output.on_terminal(sys.stdout) or os.environ.get("TERM", "dumb") == "dumb":
        detail = 'a conversation needs a terminal, also for its output, that can move its cursor; else: hiboss chat nex --once "hello"'
        raise InvalidParams(detail=detail)


def _text(once: str | None) -> str:
    return read_file("-").rstrip("\n") if once is None or once == "-" else once


# --- one question --------------------------------------------------------------------


class Question:
    """One message sent, until its answer comes."""

    def __init__(self, line: Line, sent: dict[str, Any]) -> None:
        self.line = line
        self.sent = sent
        self.trace: str | None = None
        self._told: set[str] = set()

    def answer_in(self, said: list[Envelope]) -> Envelope | None:
        for one in said:
            if one["message"] == self.sent["message"]:
                self.trace = one["trace"]
            elif one["from"] == self.line.other.address and self._answers(one):
                return one
        return None

    def _answers(self, one: Envelope) -> bool:
        if one["deliver_at"] is not None:  # a reminder, whenever it was asked for
            return False
        if one["run"] is None or one["trace"] == self.trace or one["thread"] == self.sent["thread"]:
            return True
        try:  # a turn may deal with several messages, and its answer belongs to the errand of one
            run = self.line.call("run.get", id=one["run"])["run"]
        except Answered:  # only the boss may look
            return False
        return self.sent["ids"][0] in run["envelopes"]

    def _tell_of_silence(self, number: str) -> None:
        """It was dealt with, and nothing was said: others may be asked first, so it can still come."""
        try:
            runs = self.line.call("run.list", trace=self.trace)["runs"] if self.trace else []
        except Answered:  # only the boss may look
            return
        for run in runs:
            if number in run["envelopes"] and run["status"] == "completed" and run["answer"] is None:
                self.tell(f"{self.line.other.name} has dealt with it in {run['id']}; {run['note']}")

    def tell(self, text: str) -> None:
        """A word beside the output, once."""
        if text and text not in self._told:
            self._told.add(text)
            output.note(f"note: {output.shown(output.word(text), sys.stderr)}")

    def failure(self) -> str | None:
        """Why it will not be answered, if it is so; what happened to it meanwhile is told."""
        own = self.line.envelope(self.sent["ids"][0])
        error = own["last_error"]
        why = output.word(error["text"] or error["kind"]) if error else own["status"]
        if own["status"] in ("failed", "cancelled"):
            speaker = " --as boss" if self.line.own == BOSS else ""
            again = f"hiboss envelope retry{speaker} --id {own['id']}"
            return f"{self.line.other.name} did not deal with it: {why} (again: {again})"
        if own["status"] == "done":
            self._tell_of_silence(own["id"])
        if error and own["attempts"]:
            self.tell(f"{self.line.other.name} did not manage: {why}; it is tried again")
        return None


def _once(line: Line, text: str, paths: list[str], patience: float) -> None:
    end = time.monotonic() + patience
    question = Question(line, line.send(text, paths, uuid.uuid4().hex))
    with output.Progress(f"waiting for {line.other.name}") as waiting:
        answer = failure = None
        while answer is None and failure is None and (left := end - time.monotonic()) > 0:
            answer, failure = _listen(question, min(left, SLICE), waiting)
    result = {"sent": question.sent, "answer": answer, "timed_out": answer is None and failure is None}
    if failure is not None:
        output.note(f"error: {output.shown(failure, sys.stderr)}")
        raise typer.Exit(output.ended(failure, EXIT_REFUSED))
    if answer is not None:
        line.mark_read([answer])
        result["answer"] = line.envelope(answer["id"])
    _print(result)
    if answer is None:
        question.tell(f"no answer within {patience:g} s; what still comes lies in the inbox (hiboss inbox)")
        raise typer.Exit(EXIT_TIMEOUT)


def _listen(question: Question, seconds: float, waiting: Any) -> tuple[Envelope | None, str | None]:
    """The answer, or why there will be none, or neither yet."""
    line = question.line
    try:
        answer = question.answer_in(line.follow(seconds, waiting))
        if answer is not None or line.live is not None:
            return answer, None
        failure = question.failure()
    except HibossError as error:
        if not is_away(error):
            raise
        question.tell("the daemon is away; trying again every second (hiboss daemon start)")
        time.sleep(min(seconds, AGAIN))
        return None, None
    question.tell(state(line))
    return None, failure


def _print(result: dict[str, Any]) -> None:
    if output.Mode.json:
        output.document(result)
        return
    answer = result["answer"]
    if answer is None:
        return
    lines = [answer["text"]] if answer["text"] or not answer["attachments"] else []
    output.line(output.shown("\n".join([*lines, *files(answer)])))
