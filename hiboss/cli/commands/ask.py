"""`hiboss ask …`"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import Annotated, Any, Literal

import typer

from ...core.errors import EXIT_REFUSED, EXIT_TIMEOUT, HibossError
from ...core.paths import Home
from .. import output
from ..call import call, call_as, timeout_for
from ..credentials import RUN_VARIABLE, find_token
from ..options import As, Json, Number, Reason, Text, Texts, Timeout, Token, argument, flag, noun
from ..text_input import refuse_input_twice, text_or_input
from ..views import asks as views
from . import ask_rules

app = noun("Ask a question with options, answer one, list and cancel them.")

Id = Annotated[str, argument("ID", "The ask, like q2; hiboss ask list shows them.")]
IN_A_RUN = "50s"  # harnesses kill commands that take a minute
AT_ONCE = "1h"  # one call; repeated until there is an answer
STATE = Literal["open", "answered", "expired", "cancelled", "all"]


@app.command()
def create(
    question: Annotated[str, argument("QUESTION", "What you ask; - reads standard input.")],
    option: Annotated[
        Texts, flag("--option", "TEXT", "A possible answer; repeat it for each. By default yes and no.")
    ] = None,
    to: Annotated[Text, flag("--to", "ADDRESS", "Who is asked; by default user:boss.")] = None,
    timeout: Annotated[
        Text, flag("--timeout", "TIME", "How long to wait for an answer, like 1h; by default always.")
    ] = None,
    default: Annotated[
        Text, flag("--default", "TEXT", "The option that counts when the time is over.")
    ] = None,
    wait: Annotated[
        bool, flag("--wait", None, "Wait for the answer; inside a run at most 50 seconds.")
    ] = False,
    token: Token = None,
    as_: As = None,
    json_: Json = False,
) -> None:
    """Ask a question with options. The answer comes as a message.

    With --wait it is printed. Exit status: 0 there is an answer (also the default), 1 it was cancelled, 4
    no answer in time.

    Example: hiboss ask create "Deploy?" --option yes --option no --timeout 1h --default no --wait
    """
    refuse_input_twice(token, question)
    home = Home()
    found = find_token(home, token, as_)
    params = {
        "question": text_or_input(question),
        "options": option or None,
        "to": to,
        "timeout": timeout,
        "default": default,
    }
    result = call_as(home, "ask.create", params, found)
    if not wait:
        views.created(result)
        _has_it(home, found, result)
        return
    if not output.Mode.json:
        output.lines([f"ask-id: {result['ask']['id']}"])  # at once: whoever ends this can still use it
    _wait(home, found, result)


@app.command()
def wait(
    id_: Id, timeout: Timeout = AT_ONCE, token: Token = None, as_: As = None, json_: Json = False
) -> None:
    """Wait for the answer to an ask and print it.

    Inside a run it waits at most 50 seconds.

    Exit status: 0 there is an answer (also the default), 1 it was cancelled, 4 no answer in time.
    """
    home = Home()
    found = find_token(home, token, as_)
    _end(home, found, _wait_once(home, found, id_, timeout))


def _wait(home: Home, token: str | None, result: dict[str, Any]) -> None:
    """Wait for the answer, and print it."""
    inside = bool(os.environ.get(RUN_VARIABLE))
    result = _wait_once(home, token, result["ask"]["id"], IN_A_RUN if inside else AT_ONCE)
    while result["timed_out"] and not inside:
        result = _wait_once(home, token, result["ask"]["id"], AT_ONCE)
    _end(home, token, result)


def _wait_once(home: Home, token: str | None, id_: str, timeout: str) -> dict[str, Any]:
    params = {"id": id_, "timeout": timeout}
    found: dict[str, Any] = call_as(home, "ask.wait", params, token, timeout_for(timeout))
    return found


def _has_it(home: Home, token: str | None, result: dict[str, Any]) -> None:
    """Say that the answer is printed: until then it comes as a message too."""
    if result["ask"]["state"] != "open":
        sys.stdout.flush()
        with suppress(HibossError):  # then it comes twice
            call_as(home, "ask.wait", {"id": result["ask"]["id"], "received": True}, token)


def _end(home: Home, token: str | None, result: dict[str, Any]) -> None:
    """Print how a wait ended, and end with the status that says so."""
    views.waited(result, inside=bool(os.environ.get(RUN_VARIABLE)))
    _has_it(home, token, result)
    if result["timed_out"] or (result["ask"]["state"] == "expired" and result["ask"]["answer"] is None):
        raise typer.Exit(EXIT_TIMEOUT)
    if result["ask"]["state"] == "cancelled":
        raise typer.Exit(EXIT_REFUSED)


@app.command()
def answer(
    id_: Id,
    choice: Annotated[
        str, flag("--choice", "OPTION", "One of the options, upper or lower case, or its number.")
    ],
    comment: Annotated[Text, flag("--comment", "TEXT", "What to tell the asker with it.")] = None,
    scope: Annotated[
        Literal["once", "session", "rule"] | None,
        flag("--scope", None, "Of a permission: for how long the answer holds; by default once."),
    ] = None,
    token: Token = None,
    as_: As = None,
    json_: Json = False,
) -> None:
    """Answer an ask. The first answer counts.

    Example: hiboss ask answer q2 --choice yes --comment "but not on Friday"
    """
    params = {"id": id_, "choice": choice, "comment": comment, "scope": scope}
    views.settled(call("ask.answer", params, token=token, profile=as_))


@app.command("list")
def list_(
    state: Annotated[STATE, flag("--state", None, "Only those in this state.")] = "open",
    number: Number = None,
    after: Annotated[
        int | None, flag("--after", "CURSOR", "Continue after the next-cursor of a page.")
    ] = None,
    token: Token = None,
    as_: As = None,
    json_: Json = False,
) -> None:
    """List what you ask and are asked, newest first.

    The boss sees all.
    """
    params = {"state": state, "page_size": number, "after": after}
    views.asks(call("ask.list", params, token=token, profile=as_))


@app.command()
def get(id_: Id, token: Token = None, as_: As = None, json_: Json = False) -> None:
    """Show one ask in full."""
    views.ask(call("ask.get", {"id": id_}, token=token, profile=as_))


@app.command()
def cancel(id_: Id, reason: Reason = None, token: Token = None, as_: As = None, json_: Json = False) -> None:
    """Take an ask back: nobody can answer it any more."""
    views.settled(call("ask.cancel", {"id": id_, "reason": reason}, token=token, profile=as_))


app.command()(ask_rules.rules)
app.command("rule-remove")(ask_rules.rule_remove)
