"""`hiboss control …`"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import typer

from ...core.errors import EXIT_REFUSED
from .. import output
from ..call import call
from ..key_values import key_values
from ..options import As, Json, Number, Text, Texts, Token, flag, noun
from ..views import controls as views

app = noun("Pause, resume, cancel, reorder and hand over what agents do.")

Agent = Annotated[Text, flag("--agent", "NAME", "Everything of this agent.")]
Run = Annotated[Text, flag("--run", "ID", "This run, like r9.")]
Conversation = Annotated[Text, flag("--conversation", "ID", "What works for this conversation, like c4.")]
Envelope = Annotated[Text, flag("--envelope", "ID", "This envelope, like e81, or the run that works on it.")]
Reason = Annotated[Text, flag("--reason", "TEXT", "Why, for the record.")]
Meta = Annotated[Texts, flag("--meta", "KEY=VALUE", "Your own data, for the record. May be repeated.")]
LEVEL = Literal["critical", "high", "normal", "low"]


@app.command()
def pause(
    agent: Agent = None,
    run: Run = None,
    conversation: Conversation = None,
    envelope: Envelope = None,
    reason: Reason = None,
    meta: Meta = None,
    token: Token = None,
    as_: As = None,
    json_: Json = False,
) -> None:
    """Stop the processes of runs where they are.

    Their agent gets no other turn. After 10 minutes (runs.paused_seconds) a paused run is ended; it comes again when it is resumed.

    Example: hiboss control pause --run r9
    """
    _send("pause", _target(agent, run, conversation, envelope), reason, meta, token, as_)


@app.command()
def resume(
    agent: Agent = None,
    run: Run = None,
    conversation: Conversation = None,
    envelope: Envelope = None,
    reason: Reason = None,
    meta: Meta = None,
    token: Token = None,
    as_: As = None,
    json_: Json = False,
) -> None:
    """Let what is paused go on. With --agent: the agent, its lane and its runs.

    Example: hiboss control resume --agent nex
    """
    _send("resume", _target(agent, run, conversation, envelope), reason, meta, token, as_)


@app.command()
def cancel(
    agent: Agent = None,
    run: Run = None,
    conversation: Conversation = None,
    envelope: Envelope = None,
    requeue: Annotated[bool, flag("--requeue", None, "Keep its envelopes: they begin anew.")] = False,
    reason: Reason = None,
    meta: Meta = None,
    token: Token = None,
    as_: As = None,
    json_: Json = False,
) -> None:
    """End runs, and cancel what they work on.

    hiboss envelope retry brings it back.

    Example: hiboss control cancel --run r9 --reason "wrong branch"
    """
    target = _target(agent, run, conversation, envelope)
    _send("cancel", target | {"requeue": requeue or None}, reason, meta, token, as_)


@app.command()
def preempt(
    envelope: Annotated[Text, flag("--envelope", "ID", "The envelope that cannot wait, like e81.")] = None,
    agent: Annotated[Text, flag("--agent", "NAME", "The agent whose run is set aside.")] = None,
    run: Annotated[Text, flag("--run", "ID", "The run that is set aside, like r9.")] = None,
    conversation: Annotated[
        Text, flag("--conversation", "ID", "The conversation whose run is set aside, like c4.")
    ] = None,
    reason: Reason = None,
    meta: Meta = None,
    token: Token = None,
    as_: As = None,
    json_: Json = False,
) -> None:
    """Set the run of an agent aside for an envelope.

    What it worked on comes back afterwards.

    Example: hiboss control preempt --envelope e81
    """
    _send("preempt", _target(agent, run, conversation, envelope), reason, meta, token, as_)


@app.command()
def priority(
    envelope: Annotated[Text, flag("--envelope", "ID", "The envelope, like e81.")] = None,
    level: Annotated[LEVEL | None, flag("--level", None, "Its new priority.")] = None,
    reason: Reason = None,
    meta: Meta = None,
    token: Token = None,
    as_: As = None,
    json_: Json = False,
) -> None:
    """Give one delivery that waits another priority.

    Example: hiboss control priority --envelope e81 --level critical
    """
    _send("priority", {"envelope": envelope, "level": level}, reason, meta, token, as_)


@app.command()
def route(
    to: Annotated[Text, flag("--to", "ADDRESS", "Who gets it, like kai.")] = None,
    envelope: Annotated[Text, flag("--envelope", "ID", "This envelope, like e81.")] = None,
    conversation: Annotated[
        Text, flag("--conversation", "ID", "What waits in this conversation, and later mail there.")
    ] = None,
    agent: Annotated[Text, flag("--agent", "NAME", "All mail that waits for this agent.")] = None,
    reason: Reason = None,
    meta: Meta = None,
    token: Token = None,
    as_: As = None,
    json_: Json = False,
) -> None:
    """Give mail that waits to another agent. Routed to the first agent again, it is undone.

    Example: hiboss control route --conversation c4 --to kai
    """
    _send("route", _target(agent, None, conversation, envelope) | {"to": to}, reason, meta, token, as_)


@app.command()
def handoff(
    to: Annotated[Text, flag("--to", "ADDRESS", "Who takes it over, like user:ann or kai.")] = None,
    conversation: Annotated[Text, flag("--conversation", "ID", "The conversation, like c4.")] = None,
    reason: Reason = None,
    meta: Meta = None,
    token: Token = None,
    as_: As = None,
    json_: Json = False,
) -> None:
    """Hand a conversation over to another agent or a person.

    The agent reads along.

    Example: hiboss control handoff --conversation c4 --to user:ann
    """
    _send("handoff", {"conversation": conversation, "to": to}, reason, meta, token, as_)


@app.command("list")
def list_(
    agent: Annotated[Text, flag("--agent", "NAME", "Only those about this agent.")] = None,
    conversation: Annotated[Text, flag("--conversation", "ID", "Only those in this conversation.")] = None,
    actor: Annotated[Text, flag("--actor", "ADDRESS", "Only those that this address sent.")] = None,
    number: Number = None,
    after: Annotated[int | None, flag("--after", "N", "Continue after the page with this next.")] = None,
    token: Token = None,
    as_: As = None,
    json_: Json = False,
) -> None:
    """List controls, newest first, each with its outcome."""
    params = {"agent": agent, "conversation": conversation, "actor": actor}
    page = {"page_size": number, "after": after}
    views.controls(call("control.list", params | page, token=token, profile=as_))


def _target(agent: Text, run: Text, conversation: Text, envelope: Text) -> dict[str, Any]:
    return {"agent": agent, "run": run, "conversation": conversation, "envelope": envelope}


def _send(event: str, what: dict[str, Any], reason: Text, meta: Texts, token: Text, profile: Text) -> None:
    """Send a control and print its outcome. Exit status: 0 applied, 1 too late or refused."""
    params = {"event": f"stream.{event}", **what, "reason": reason, "meta": key_values(meta) or None}
    sent = call("control.send", params, token=token, profile=profile)
    output.answer(sent)
    if sent["outcome"] != "applied":
        raise typer.Exit(EXIT_REFUSED)
