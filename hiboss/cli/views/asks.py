"""What asks look like."""

from __future__ import annotations

import sys
from typing import Any

from ...core.escaping import exposed_lines, mark_lines, shell_word
from .. import output
from .times import moment, short_moment

FACTS = ("id", "kind", "state", "asker", "asked", "run", "message", "conversation", "tool", "subject")
OUTCOME = ("answer", "comment", "scope", "answered_by")
END_YOUR_TURN = "end your turn; the answer will arrive"


def created(result: dict[str, Any]) -> None:
    """Print the id of a new ask; of one that was asked before, also what came of it."""
    ask = result["ask"]
    known = {"duplicate": True, "state": ask["state"], **_outcome(ask)} if result["duplicate"] else {}
    output.answer(result, {"ask-id": ask["id"], **known})


def _outcome(ask: dict[str, Any]) -> dict[str, Any]:
    return {
        "answer": ask["answer"],
        "default": ask["defaulted"] or None,
        "comment": ask["comment"],
        "answered-by": ask["answered_by"],
    }


def waited(result: dict[str, Any], *, inside: bool) -> None:
    """Print what came of an ask. `inside`: it was a run that waited."""
    ask = result["ask"]
    state = None if ask["state"] == "answered" else ask["state"]
    advice = {"advice": END_YOUR_TURN} if inside and result["timed_out"] else {}
    output.answer(result | advice, {"state": state, **_outcome(ask), **advice})


def settled(result: dict[str, Any]) -> None:
    """Print an ask that was answered or cancelled just now."""
    ask = result["ask"]
    facts = {name: ask[name] for name in ("id", "state", "answer", "comment", "scope")}
    output.answer(result, facts | {"asker": ask["asker"]})


def asks(result: dict[str, Any]) -> None:
    """Print a page of asks, then the cursor of the next page."""
    if output.Mode.json:
        output.document(result)
        return
    zone, found = result["timezone"], result["asks"]
    if found and output.on_terminal(sys.stdout):
        _table(found, zone)
    else:
        output.records((_listed(one, zone) for one in found), empty="no-asks", sentence="Nothing is asked.")
    if result["next"]:
        output.line()
        output.record({"next-cursor": result["next"]})


def _table(found: list[dict[str, Any]], zone: str) -> None:
    from ..table_layout import Column

    headed = [
        Column(title="id", least=2),
        Column(title="from", least=6, most=24),
        Column(title="to", least=6, most=24, leaves=2),
        Column(title="state", least=5),
        Column(title="asked", least=11, leaves=1),
        Column(title="answer or options", least=8),
        Column(title="question", least=8),
    ]
    rows = [
        [
            one["id"],
            one["asker"],
            one["asked"],
            one["state"],
            short_moment(one["created_at"], zone),
            one["answer"] or ", ".join(one["options"]),
            " ".join(one["question"].split()),
        ]
        for one in found
    ]
    output.table(headed, rows)


def _listed(one: dict[str, Any], zone: str) -> dict[str, Any]:
    return _facts(one, zone) | {"question": one["question"], "options": one["options"]}


def _facts(one: dict[str, Any], zone: str) -> dict[str, Any]:
    times = {name: moment(one[name], zone) for name in ("created_at", "expires_at", "answered_at")}
    found = {name: one[name] for name in FACTS} | times | {"default": one["default"]}
    return found | {name: one[name] for name in OUTCOME} | {"defaulted": one["defaulted"] or None}


def ask(result: dict[str, Any]) -> None:
    """Print one ask in full, and how to answer it."""
    if output.Mode.json:
        output.document(result)
        return
    one = result["ask"]
    output.record(_facts(one, result["timezone"]) | {"options": one["options"]})
    if one["state"] == "open":
        option = shell_word(one["options"][0], "1")
        output.record({"answer-with": f"hiboss ask answer {one['id']} --choice {option}"})
    output.line("question:")
    # Of a permission nothing is hidden: who reads it decides by what he sees.
    output.rendered(mark_lines(exposed_lines(one["question"]) if one["tool"] else one["question"]))
