"""`hiboss contact …`"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from .. import output
from ..call import call, call_for_all
from ..options import As, Json, Text, Token, argument, flag, noun
from ..views import contacts as views

app = noun("List, approve and block the people and groups that write to your accounts.")

Contact = Annotated[str, argument("CONTACT", "The code, or an address, like channel:telegram:777.")]
Binding = Annotated[Text, flag("--binding", "ID", "The account, like b1, if several know the chat.")]


@app.command("list")
def list_(
    state: Annotated[
        Literal["asking", "allowed", "blocked", "boss"] | None,
        flag("--state", None, "Only those in this state; asking: you have not decided."),
    ] = None,
    token: Token = None,
    as_: As = None,
    json_: Json = False,
) -> None:
    """List who has written to your accounts, and what you decided."""
    views.contacts(call_for_all("contact.list", {"state": state}, "contacts", token=token, profile=as_))


@app.command()
def approve(
    contact: Contact, binding: Binding = None, token: Token = None, as_: As = None, json_: Json = False
) -> None:
    """Let somebody write to the agents of an account. What was held comes in now.

    Example: hiboss contact approve K7QM2XPA
    """
    _decide("contact.approve", {"contact": contact, "binding": binding}, token, as_)


@app.command()
def block(
    contact: Contact, binding: Binding = None, token: Token = None, as_: As = None, json_: Json = False
) -> None:
    """Let nothing come in from somebody, and nothing go there. What was held is dropped."""
    _decide("contact.block", {"contact": contact, "binding": binding}, token, as_)


@app.command()
def route(
    contact: Annotated[
        str, argument("CONTACT", "The address of a chat or a topic, like channel:telegram:-100/7.")
    ],
    agent: Annotated[str, flag("--agent", "NAME", "Who gets it; '' for the agent that leads the account.")],
    binding: Binding = None,
    token: Token = None,
    as_: As = None,
    json_: Json = False,
) -> None:
    """Let what is written in a chat or a topic go to one agent.

    Example: hiboss contact route channel:telegram:-100/7 --agent kai
    """
    _decide("contact.route", {"contact": contact, "agent": agent, "binding": binding}, token, as_)


def _decide(method: str, params: dict[str, Any], token: str | None, as_: str | None) -> None:
    result = call(method, params, token=token, profile=as_)
    shown = {key: result["contact"][key] for key in ("address", "name", "state", "agent")}
    output.answer(result, {**shown, "changed": result["changed"]})
