"""`hiboss ask rules`, `hiboss ask rule-remove`: mounted by ask.py."""

from __future__ import annotations

from typing import Annotated

from .. import output
from ..call import call
from ..options import As, Json, Number, Text, Token, argument, flag
from ..views import ask_rules as views


def rules(
    agent: Annotated[Text, flag("--agent", "NAME", "Only rules of this agent.")] = None,
    number: Number = None,
    after: Annotated[
        int | None, flag("--after", "CURSOR", "Continue after the next-cursor of a page.")
    ] = None,
    token: Token = None,
    as_: As = None,
    json_: Json = False,
) -> None:
    """List the answers to permissions that hold for more than once."""
    params = {"agent": agent, "page_size": number, "after": after}
    views.rules(call("ask.rules", params, token=token, profile=as_))


def rule_remove(
    number: Annotated[int, argument("NUMBER", "The rule; hiboss ask rules shows them.")],
    token: Token = None,
    as_: As = None,
    json_: Json = False,
) -> None:
    """Take a rule back: from now on you are asked again.

    Example: hiboss ask rule-remove 3
    """
    result = call("ask.rule.remove", {"number": number}, token=token, profile=as_)
    shown = {key: result["rule"][key] for key in ("number", "agent", "tool", "subject", "answer")}
    output.answer(result, {**shown, "changed": result["changed"]})
