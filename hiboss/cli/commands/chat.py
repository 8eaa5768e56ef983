"""`hiboss chat`"""

from __future__ import annotations

import os
import sys
import time
import uuid
from typing import Annotated, Any

import typer

from ...core import clock, rendering
from ...core.address import BOSS
from ...core.errors import EXIT_REFUSED, EXIT_TIMEOUT, HibossError, InvalidParams
from ...core.paths import Home
from .. import output
from ..call import notice_other_version
from ..chat import ask_lines
from ..chat.asks import Ask, Asks
from ..chat.commands import Commands
from ..chat.conversation import ConversationClient, Envelope
from ..chat.formatting import asks, fetches, indented, state, tried_again
from ..client import Answered, is_away
from ..credentials import find_token
from ..options import As, Json, Text, Texts, Token, argument, flag, single_command
from ..text_input import attachments, read_file, refuse_input_twice

app = single_command()
TIMEOUT = "60s"
LONGEST = 24 * 3_600_000  # milliseconds
SLICE = 5.0  # seconds between two checks whether the message failed
RETRY = 1.0  # seconds between two tries to reach a daemon that is away


@app.command()
def chat(
    agent: Annotated[
        Text, argument("[AGENT]", "A name or an address: nex, user:ann; by default your first agent.")
    ] = None,
    once: Annotated[
        Text, flag("--once", "TEXT", "Send this, print the answer, and end; - reads standard input.")
    ] = None,
    timeout: Annotated[
        Text, flag("--timeout", "TIME", "With --once: how long to wait, like 10m; by default 60s.")
    ] = None,
    attachment: Annotated[
        Texts, flag("--attachment", "FILE", "With --once: a file to send with it; may be repeated.")
    ] = None,
    token: Token = None,
    as_: As = None,
    json_: Json = False,
) -> None:
    """Talk with an agent in the terminal; /help there shows the commands.

    With --once, or when standard input is no terminal: send one message, print the answer, and
    end. Exit status: 0 the answer came, 4 no answer in time.
    """
    talks = once is None and output.on_terminal(sys.stdin)
    if talks:
        _check_talk(timeout, attachment)
    else:
        refuse_input_twice(token, once or "-")
    home = Home()
    seconds = clock.duration(timeout or TIMEOUT, most=LONGEST) / 1000
    client = ConversationClient(home, find_token(home, token, as_))
    notice_other_version(home)
    text = "" if talks else _text(once)
    if client.open(agent):
        output.note(f"note: talking with {client.other.name}; for another agent: hiboss chat NAME")
    if talks:
        from ..chat.screen import talk

        talk(client)
        return
    client.history(1)
    if client.other.fetches:
        output.note(f"note: {fetches(client)}")
    if not _commands(client, text):
        _once(client, text, attachments(attachment), seconds)


def _commands(client: ConversationClient, text: str) -> bool:
    """Carry out /stop all, /go and /new, as in a conversation: no model may get them. Return whether it was one."""
    words = text.lower().split()
    of_agent = words == ["/new"] and client.other.is_agent
    if words not in (["/stop", "all"], ["/go"]) and not of_agent:
        return False
    commands = Commands(client, Asks(client), output.line, lambda block: output.lines(block()))
    commands.job(words[0][1:], "")()
    return True


def _check_talk(timeout: str | None, attachment: list[str] | None) -> None:
    """Refuse options that need --once, and a terminal that cannot show a conversation."""
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
        raise InvalidParams(detail=f'{given[0]} needs --once: hiboss chat nex --once "hello" {given[0]} …')
    if not output.on_terminal(sys.stdout) or os.environ.get("TERM", "dumb") == "dumb":
        detail = 'a conversation needs a terminal that can move its cursor; without one: hiboss chat nex --once "hello"'
        raise InvalidParams(detail=detail)


def _text(once: str | None) -> str:
    return read_file("-").rstrip("\n") if once is None or once == "-" else once


# --- one message --------------------------------------------------------------------


class Question:
    """One message that is sent and waits for its answer."""

    def __init__(self, client: ConversationClient) -> None:
        self.client = client
        self.sent: dict[str, Any] = {}
        self.trace: str | None = None
        self._told: set[str] = set()
        self._asks = Asks(client)

    def send(self, text: str, paths: list[str], end: float) -> None:
        """Send it. A daemon that ended before it answered is asked again: with one key it is stored once."""
        key = uuid.uuid4().hex
        while not self.sent:
            try:
                self.sent = self.client.send(text, paths, key)
            except HibossError as error:
                if not is_away(error) or (left := end - time.monotonic()) <= 0:
                    raise
                self.wait_for_daemon(left)

    def wait_for_daemon(self, seconds: float) -> None:
        """Tell that the daemon is away, and let some time pass."""
        self.tell("the daemon is away; hiboss tries again every second (to start it: hiboss daemon start)")
        time.sleep(min(seconds, RETRY))

    def answer_in(self, messages: list[Envelope]) -> Envelope | None:
        for one in messages:
            if one["message"] == self.sent["message"]:
                self.trace = one["trace"]
            elif (ask := self._asks.of(one)) is not None:
                self._tell_ask(ask)
            elif one["sender"] == self.client.other.address and self._answers(one):
                return one
        return None

    def _tell_ask(self, ask: Ask) -> None:
        """Tell what the other side asks us; its answer comes later."""
        if ask["state"] == "open" and ask["asked"] == self.client.own:
            self.tell(ask_lines.in_one_line(ask, self.client, "hiboss ask answer {} --choice {}"))

    def _answers(self, one: Envelope) -> bool:
        if one["deliver_at"] is not None or one["type"] == "event":
            return False  # a reminder that was scheduled before, or a control
        if one["run"] is None or one["trace"] == self.trace or one["thread"] == self.sent["thread"]:
            return True
        try:  # a turn can have several messages, and its answer belongs to the trace of one
            run = self.client.call("run.get", id=one["run"])["run"]
        except Answered:  # only the boss may see runs
            return False
        return self.sent["ids"][0] in run["envelopes"]

    def _tell_no_answer(self, number: str) -> None:
        """Tell that a run ended without an answer; one can still come, if the agent asked others first."""
        try:
            runs = self.client.call("run.list", trace=self.trace)["runs"] if self.trace else []
        except Answered:  # only the boss may see runs
            return
        for run in runs:
            if number in run["envelopes"] and run["status"] == "completed" and run["answer"] is None:
                self.tell(f"{self.client.other.name} finished {run['id']} without an answer; {run['note']}")

    def tell(self, text: str) -> None:
        """Print a note, each only once."""
        if text and text not in self._told:
            self._told.add(text)
            output.note(f"note: {output.shown(output.word(text), sys.stderr)}")

    def failure(self) -> str | None:
        """Why there will be no answer; None while one can still come. Notes tell what happened so far."""
        own = self.client.envelope(self.sent["ids"][0])
        error = own["last_error"]
        why = output.word(error["text"] or error["kind"]) if error else own["status"]
        if own["status"] in ("failed", "cancelled"):
            return f"{self.client.other.name} did not answer: {why} (to retry: hiboss envelope retry {own['id']})"
        if own["status"] == "done":
            self._tell_no_answer(own["id"])
        if error and own["attempts"]:
            self.tell(f"{self.client.other.name} failed: {tried_again(why)}")
        return None


def _once(client: ConversationClient, text: str, paths: list[str], seconds: float) -> None:
    end = time.monotonic() + seconds
    question = Question(client)
    question.send(text, paths, end)
    with output.ProgressBar(f"waiting for {client.other.name}") as waiting:
        answer = failure = None
        while answer is None and failure is None and (left := end - time.monotonic()) > 0:
            answer, failure = _listen(question, min(left, SLICE), waiting)
    result = {"sent": question.sent, "answer": answer, "timed_out": answer is None and failure is None}
    if failure is not None:
        output.error_message(failure)
        raise typer.Exit(output.ended(failure, EXIT_REFUSED))
    if answer is not None:
        client.mark_read([answer])
        result["answer"] = _as_marked(client, answer)
    _print(result)
    if answer is None:
        question.tell(f"no answer within {seconds:g} s; a later one comes into your inbox (hiboss inbox)")
        raise typer.Exit(EXIT_TIMEOUT)


def _as_marked(client: ConversationClient, answer: Envelope) -> Envelope:
    """The answer as it is stored now; as it came, if the daemon has gone since."""
    try:
        return client.envelope(answer["id"])
    except HibossError as error:
        if not is_away(error):
            raise
        return answer


def _listen(question: Question, seconds: float, waiting: Any) -> tuple[Envelope | None, str | None]:
    """The answer, or why there will be none, or neither yet."""
    client = question.client
    try:
        answer = question.answer_in(client.follow(seconds, waiting))
        for text in client.new_questions():
            if client.own != str(BOSS):  # he is asked by a message
                question.tell(asks(text, client))
        if answer is not None or client.live is not None:
            return answer, None
        failure = question.failure()
    except HibossError as error:
        if not is_away(error):
            raise
        question.wait_for_daemon(seconds)
        return None, None
    question.tell(state(client))
    return None, failure


def _print(result: dict[str, Any]) -> None:
    if output.Mode.json:
        output.document(result)
        return
    answer = result["answer"]
    if answer is None:
        return
    if answer["text"] or not answer["attachments"]:
        _print_text(answer["text"])
    for line in rendering.attachments(answer["attachments"]):  # not among the lines that the agent wrote
        output.note(output.shown(line, sys.stderr))


def _print_text(text: str) -> None:
    """Print the answer alone, as it was written; on a terminal, where our notes are too, it is indented."""
    if output.on_terminal(sys.stdout):
        output.lines(indented(text, output.columns(sys.stdout)))
    else:
        output.line(text)
