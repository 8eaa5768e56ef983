"""What runs look like."""

from __future__ import annotations

import json
import sys

from ...core.escaping import mark_lines, shell_word
from ...core.shortening import shorten
from .. import output
from .times import lasted, moment, short_moment

TYPE_CHECKING = False  # importing typing would cost every command 3 ms
if TYPE_CHECKING:
    from typing import Any

RESULT = 300  # characters of what came of a tool
RUN = ("id", "agent", "kind", "status", "provider", "model", "session", "conversation", "envelopes", "trace")
OUTCOME = ("answer", "note", "error")


def runs(result: dict[str, Any]) -> None:
    """Print a page of runs, then the cursor of the next page."""
    if output.Mode.json:
        output.document(result)
        return
    zone, found = result["timezone"], result["runs"]
    if found and output.on_terminal(sys.stdout):
        _table(found, zone)
    else:
        output.records((_facts(one, zone) for one in found), empty="no-runs", sentence="No runs found.")
    if result["next"]:
        output.line()
        output.record({"next-cursor": result["next"]})


def _table(found: list[dict[str, Any]], zone: str) -> None:
    from ..table_layout import Column

    headed = [
        Column(title="id", least=2),
        Column(title="agent", least=6, most=24),
        Column(title="status", least=9),
        Column(title="started", least=11),
        Column(title="took", least=4, leaves=2),
        Column(title="tokens", least=4, leaves=3),
        Column(title="cost", least=5, leaves=4),
        Column(title="trace", least=3, leaves=1),
        Column(title="answer or error", least=8),
    ]
    output.table(headed, [_row(one, zone) for one in found])


def _row(one: dict[str, Any], zone: str) -> list[str]:
    text = one["error"] or one["text"] or one["note"] or ""
    return [
        one["id"],
        one["agent"] + (" (task)" if one["kind"] == "background" else ""),
        "paused" if one["paused"] else one["status"],
        short_moment(one["started_at"], zone),
        lasted(one["started_at"], one["ended_at"]),
        _tokens(one),
        _cost(one),
        one["trace"] or "",
        " ".join(text.split()),
    ]


def _tokens(one: dict[str, Any]) -> str:
    """Return the tokens that a run read and wrote, in short; `~` before them if they are estimated."""
    known = [one[name] for name in ("tokens_in", "tokens_out") if one[name] is not None]
    return _estimated(one) + _in_short(sum(known)) if known else ""


def _in_short(number: int) -> str:
    for size, unit in ((1_000_000, "M"), (1_000, "k")):
        if number >= size:
            return f"{number / size:.1f}{unit}" if number < 100 * size else f"{number // size}{unit}"
    return str(number)


def _cost(one: dict[str, Any]) -> str:
    return "" if one["cost"] is None else f"{_estimated(one)}${one['cost']:.2f}"


def _estimated(one: dict[str, Any]) -> str:
    return "~" if one["usage_estimated"] else ""


def _facts(one: dict[str, Any], zone: str) -> dict[str, Any]:
    times = {name: moment(one[name], zone) for name in ("started_at", "ended_at")}
    known = {name: one[name] for name in (*RUN, "hops")} | times | {"paused": one["paused"] or None}
    return known | _used(one) | {name: one[name] for name in OUTCOME} | {"pid": one["pid"]}


def _used(one: dict[str, Any]) -> dict[str, Any]:
    """Return tokens and cost, each marked if it is estimated."""
    mark = " (estimated)" if one["usage_estimated"] else ""
    used = {name: one[name] for name in ("tokens_in", "tokens_out", "cost")}
    marked = {name: None if value is None else f"{value}{mark}" for name, value in used.items()}
    return marked | {"context": one["context"]}


def run(result: dict[str, Any]) -> None:
    """Print one run, with its answer."""
    if output.Mode.json:
        output.document(result)
        return
    output.record(_facts(result["run"], result["timezone"]))
    for one in result.get("questions", []):
        output.line()
        options = ", ".join(one["options"])
        output.record({"ask": one["id"], "tool": one["tool"], "options": options} | _asked(one, result))
        output.line("asks:")
        output.rendered(mark_lines(one["text"]))
    if result["run"]["text"]:
        output.line("text:")
        output.rendered(mark_lines(result["run"]["text"]))


def turn(result: dict[str, Any]) -> None:
    """Print the text of the turn of a run, exactly as its provider got it."""
    if output.Mode.json:
        output.document(result)
    elif result["turn"] is None:
        output.note(
            "note: the text of this turn is not there: not yet, or not any more (the latest 1000 are kept)"
        )
    else:
        output.rendered(result["turn"])
        if result["turn_left_out"]:
            output.note(f"note: {result['turn_left_out']:,} characters are left out; see its envelopes")


def _asked(one: dict[str, Any], result: dict[str, Any]) -> dict[str, Any]:
    option = shell_word(one["options"][0], "1")
    answer = f"hiboss ask answer {one['id']} --choice {option}"
    return {"asked-at": moment(one["asked_at"], result["timezone"]), "answer-with": answer}


def parts(result: dict[str, Any]) -> None:
    """Print the parts of a run's live output as they come."""
    for part in result["parts"]:
        if output.Mode.json:
            output.lines([json.dumps(part, ensure_ascii=False)])
        elif part["kind"] == "delta":
            output.piece(part["text"])
        else:
            output.fresh_line()
            text = (
                shorten(part["text"], RESULT) if part["kind"] == "tool_result" else output.word(part["text"])
            )
            output.note(f"[{part['kind']}] {output.shown(text, sys.stderr)}")


def ended_run(result: dict[str, Any], *, text_shown: bool) -> None:
    """Print how a run ended, and its text unless that was shown live."""
    if output.Mode.json:
        output.lines([json.dumps(result["run"], ensure_ascii=False)])
    elif text_shown:
        output.fresh_line()
        output.line()
        output.record(_facts(result["run"], result["timezone"]))
    else:
        run(result)
