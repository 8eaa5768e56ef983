"""How runs look, and how agents stand: a table for a person at a terminal, else records."""

from __future__ import annotations

import json
import sys
from typing import Any

from . import output

WIDE = 100  # columns; below, a time leaves its year out
RUN = ("id", "agent", "kind", "status", "provider", "conversation", "envelopes", "trace", "hops")
OUTCOME = ("tokens_in", "tokens_out", "cost", "answer", "note", "error")


def runs(result: dict[str, Any]) -> None:
    """A page of runs, then where to go on."""
    if output.Mode.json:
        output.document(result)
        return
    zone, found = result["timezone"], result["runs"]
    if found and output.on_terminal(sys.stdout):
        _run_table(found, zone)
    else:
        output.records((_facts(one, zone) for one in found), empty="no-runs")
    if result["next"]:
        output.line()
        output.record({"next-cursor": result["next"]})


def _run_table(found: list[dict[str, Any]], zone: str) -> None:
    from .table_layout import Column

    headed = [
        Column(title="id", least=2),
        Column(title="agent", least=6, most=24),
        Column(title="status", least=9),
        Column(title="started", least=11),
        Column(title="took", least=4, leaves=2),
        Column(title="trace", least=3, leaves=1),
        Column(title="answer or error", least=8),
    ]
    output.table(headed, [_row(one, zone) for one in found])


def _row(one: dict[str, Any], zone: str) -> list[str]:
    start = 5 if output.columns(sys.stdout) < WIDE else 0
    said = one["error"] or one["text"] or one["note"] or ""
    return [
        one["id"],
        one["agent"] + (" (task)" if one["kind"] == "background" else ""),
        "paused" if one["paused"] else one["status"],
        str(output.moment(one["started_at"], zone))[start:16].replace("T", " "),
        took(one),
        one["trace"] or "",
        " ".join(said.split()),
    ]


def took(one: dict[str, Any]) -> str:
    """How long it lasted, for a glance."""
    if one["ended_at"] is None:
        return "…"
    from datetime import datetime

    lasted = datetime.fromisoformat(one["ended_at"]) - datetime.fromisoformat(one["started_at"])
    seconds = lasted.total_seconds()
    return f"{seconds:.1f}s" if seconds < 60 else f"{seconds / 60:.0f}m"


def _facts(one: dict[str, Any], zone: str) -> dict[str, Any]:
    times = {name: output.moment(one[name], zone) for name in ("started_at", "ended_at")}
    known = {name: one[name] for name in RUN} | times | {"paused": one["paused"] or None}
    return known | {name: one[name] for name in OUTCOME} | {"pid": one["pid"]}


def run(result: dict[str, Any]) -> None:
    """One run, with what it answered."""
    if output.Mode.json:
        output.document(result)
        return
    output.record(_facts(result["run"], result["timezone"]))
    if result["run"]["text"]:
        output.line("text:")
        output.lines(result["run"]["text"].splitlines())


def parts(result: dict[str, Any]) -> None:
    """Pieces of what a run says, as they come."""
    for part in result["parts"]:
        if output.Mode.json:
            output.lines([json.dumps(part, ensure_ascii=False)])
        elif part["kind"] == "delta":
            output.piece(part["text"])
        else:
            output.fresh_line()
            output.note(f"[{part['kind']}] {output.shown(output.word(part['text']), sys.stderr)}")


def ended_run(result: dict[str, Any], *, said: bool) -> None:
    """How it ended; its text, if it was not heard live."""
    if output.Mode.json:
        output.lines([json.dumps(result["run"], ensure_ascii=False)])
        return
    if said:
        output.fresh_line()
        output.line()
        output.record(_facts(result["run"], result["timezone"]))
    else:
        run(result)


# --- agents --------------------------------------------------------------------------


def standing(result: dict[str, Any]) -> None:
    if output.Mode.json:
        output.document(result)
    else:
        output.record(_standing(result["agent"], result["timezone"]))


def team(result: dict[str, Any]) -> None:
    if output.Mode.json:
        output.document(result)
        return
    zone, found = result["timezone"], result["team"]
    if not found or not output.on_terminal(sys.stdout):
        output.records((_standing(one, zone) for one in found), empty="no-agents")
        return
    from .table_layout import Column

    headed = [
        Column(title="agent", least=6, most=24),
        Column(title="state", least=7),
        Column(title="due", least=3),
        Column(title="oldest unanswered", least=11, leaves=2),
        Column(title="last run", least=8, leaves=1),
        Column(title="why", least=8, most=60, leaves=3),
    ]
    output.table(headed, [_member(one, zone) for one in found])


def _member(one: dict[str, Any], zone: str) -> list[str]:
    start = 5 if output.columns(sys.stdout) < WIDE else 0
    oldest = output.moment(one["oldest_unanswered_at"], zone) or ""
    return [
        one["name"],
        one["state"],
        str(one["due"]),
        oldest[start:16].replace("T", " "),
        _last(one["last_run"]) or "",
        one["why"] or "",
    ]


def _last(one: dict[str, Any] | None) -> str | None:
    return None if one is None else f"{one['id']} {one['status']}"


def _standing(one: dict[str, Any], zone: str) -> dict[str, Any]:
    known = {name: one[name] for name in ("name", "address", "mode", "provider", "state", "why")}
    known_times = ("until", "oldest_unanswered_at", "last_seen_at", "counted_since")
    times = {name: output.moment(one[name], zone) for name in known_times}
    last = one["last_run"]
    return (
        known
        | {"until": times["until"], "due": one["due"], "oldest_unanswered_at": times["oldest_unanswered_at"]}
        | {"running": [run["id"] for run in one["running"]] or None, "last_run": _last(last)}
        | {"last_error": last["error"] if last else None}
        | {"tokens_today": one["tokens_today"] or None, "daily_tokens": one["daily_tokens"]}
        | {"cost_today": one["cost_today"] or None, "daily_cost": one["daily_cost"]}
        | {"counted_since": times["counted_since"], "last_seen_at": times["last_seen_at"]}
    )
