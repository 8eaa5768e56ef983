"""Its questions to people: whether a command may run or a file be changed, and questions of its own."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from ....core.contracts.provider import Choice, Question
from ....core.quoting import shortened
from ..option_labels import distinct
from . import items
from .messages import Line, fields, objects, text

ALLOW, DENY = "allow", "deny"
OWN_WORDS, NO_ANSWER = "see my text", "no answer"
# What makes a difference to a command, beside its text.
CIRCUMSTANCES = ("cwd", "environmentId", "additionalPermissions", "networkApprovalContext")


class Asked(NamedTuple):
    """What is asked, how the choices are told to the program, and what else the model should hear."""

    questions: tuple[Question, ...]
    result: Callable[[Sequence[Choice]], Line]
    about: str = ""  # what a denial is about; empty: the result says all


def read(method: str, params: Line, begun: Mapping[str, Line]) -> Asked | None:
    """Return the questions of a request; None if it is none that people can answer.

    `begun`: the items of the turn that are under way, by id.
    """
    reader = READERS.get(method)
    return None if reader is None else reader(params, begun.get(text(params.get("itemId")), {}))


def denial(asked: Asked, choices: Sequence[Choice]) -> str:
    """Return what the model is told about a denial; empty: nothing. A decision has no place for a reason."""
    said = [one.text.strip() for one in choices if one.option == DENY and one.text.strip()]
    return f"{asked.about} was denied: {said[0]}" if asked.about and said else ""


def _command(params: Line, item: Line) -> Asked:
    command = text(params.get("command")) or text(item.get("command"))
    host = text(fields(params.get("networkApprovalContext")).get("host"))
    what = "use the network" if host else "run this command outside its sandbox"
    if params.get("kind") == "writeStdin":
        what = "type into a running command"
    facts = {name: params[name] for name in CIRCUMSTANCES if params.get(name) is not None}
    once = params.get("kind", "command") != "command"  # what it types into may be in another state
    question = Question(
        _reasoned(f"May it {what}?", params.get("reason")),
        (ALLOW, DENY),
        DENY,
        tool="exec_command",
        detail=items.command_line(command) + (f"\nhost: {host}" if host else ""),
        subject="" if once or not command else _canonical({"command": command, **facts}),
    )
    return Asked((question,), _decision, f"The command `{shortened(items.command_line(command), 200)}`")


def _edit(params: Line, item: Line) -> Asked:
    changes, root = item.get("changes"), text(params.get("grantRoot"))
    what = f"May it write below {root} from now on?" if root else "May it change these files?"
    detail = items.patch(changes)
    question = Question(
        _reasoned(what, params.get("reason")),
        (ALLOW, DENY),
        DENY,
        tool="apply_patch",
        detail=detail,
        subject=_canonical({"changes": changes, "root": root}) if detail else "",
    )
    return Asked((question,), _decision, "The change of files")


def _decision(choices: Sequence[Choice]) -> Line:
    return {"decision": "accept" if choices[0].option == ALLOW else "decline"}


def _permissions(params: Line, _: Line) -> Asked:
    wanted = params.get("permissions")
    detail = json.dumps(wanted, indent=1, ensure_ascii=False)
    question = Question(
        _reasoned("May it have these rights for this turn?", params.get("reason")),
        (ALLOW, DENY),
        DENY,
        tool="request_permissions",
        detail=detail,
        subject=_canonical({"permissions": wanted, "cwd": params.get("cwd")}),
    )

    def result(choices: Sequence[Choice]) -> Line:
        return {"permissions": wanted if choices[0].option == ALLOW else {}, "scope": "turn"}

    return Asked((question,), result, "The request for rights")


def _elicitation(params: Line, _: Line) -> Asked | None:
    """Read a question of an MCP server: whether it may go on. A form with fields has no answer here."""
    if fields(params.get("requestedSchema")).get("properties"):
        return None
    url = text(params.get("url"))
    said = text(params.get("message")).strip() or "An MCP server asks whether to go on."
    question = Question(said, (ALLOW, DENY), DENY, tool=shortened(_server(params), 200), detail=url)

    def result(choices: Sequence[Choice]) -> Line:
        allowed = choices[0].option == ALLOW
        return {"action": "accept", "content": {}} if allowed else {"action": "decline"}

    return Asked((question,), result, "The question of an MCP server")


def _server(params: Line) -> str:
    name = text(params.get("serverName"))
    return f"mcp {name}" if name.isprintable() and name else "mcp"


def _user_input(params: Line, _: Line) -> Asked | None:
    """Read questions of the model with options of their own. A secret is asked nowhere."""
    found = objects(params.get("questions"))
    asked = [one for one in found if one.get("isSecret") is not True]
    labels = [distinct((text(own.get("label")), own) for own in objects(one.get("options"))) for one in asked]
    questions = tuple(_question(one, options) for one, options in zip(asked, labels, strict=True))
    if not questions or any(one.mistake() for one in questions):
        return None

    def result(choices: Sequence[Choice]) -> Line:
        said = {
            text(one.get("id")): _answers(choice, own)
            for one, own, choice in zip(asked, labels, choices, strict=True)
        }
        names = [text(one.get("id")) for one in found]
        return {"answers": {name: {"answers": said.get(name, [])} for name in names}}

    return Asked(questions, result)


def _question(given: Line, labels: Mapping[str, Line]) -> Question:
    lines = [text(given.get("question")).strip() or text(given.get("header"))]
    meanings = {shown: text(one.get("description")).strip() for shown, one in labels.items()}
    lines += [f"- {shown}: {meaning}" for shown, meaning in meanings.items() if meaning]
    options = tuple(labels) or (OWN_WORDS, NO_ANSWER)
    return Question("\n".join(lines), options, NO_ANSWER if NO_ANSWER in options else options[0])


def _answers(choice: Choice, labels: Mapping[str, Line]) -> list[str]:
    """Return the answer with the label as the model wrote it; none to a question without options."""
    said = [text(labels[choice.option].get("label"))] if choice.option in labels else []
    return [*said, f"user_note: {choice.text.strip()}"] if choice.text.strip() else said


def _reasoned(question: str, reason: Any) -> str:
    return f"{question}\n{text(reason).strip()}" if text(reason).strip() else question


def _canonical(facts: Mapping[str, Any]) -> str:
    return json.dumps(facts, sort_keys=True, ensure_ascii=False)


READERS: dict[str, Callable[[Line, Line], Asked | None]] = {
    "item/commandExecution/requestApproval": _command,
    "item/fileChange/requestApproval": _edit,
    "item/permissions/requestApproval": _permissions,
    "item/tool/requestUserInput": _user_input,
    "mcpServer/elicitation/request": _elicitation,
}
