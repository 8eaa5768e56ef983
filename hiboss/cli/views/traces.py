"""What receipts look like, and the trace of a message: steps with local times, below what they are about."""

from __future__ import annotations

from ...core.escaping import name, quote, visible
from .. import output
from .times import moment

TYPE_CHECKING = False  # importing typing would cost every command 3 ms
if TYPE_CHECKING:
    from typing import Any

NO_TIME = "-" * 25  # as wide as a time
STEP_TEXT = 300  # characters of what is said about a step
PREVIEW = 60
SESSION = 60  # characters of the name of a session


def receipt(result: dict[str, Any]) -> None:
    """Print who has seen an envelope and how far it got, below the envelope itself."""
    zone, one = result["timezone"], result["receipt"]
    output.line()
    read_by = [_reader(seen, zone) for seen in result["envelope"]["read_by"]]
    output.record({"read_by": read_by or None, "receipt": state(one), "run": one["run"]})
    output.lines(steps(one, zone, "step: "))


def _reader(seen: dict[str, Any], zone: str) -> str:
    shown = None if seen["read"] else "only shown"
    parts = [visible(seen["address"]), _session(seen), moment(seen["at"], zone), shown]
    return " ".join(filter(None, parts))


def _session(seen: dict[str, Any]) -> str | None:
    return None if seen["session"] is None else f"({name(seen['session'], SESSION)})"


def state(one: dict[str, Any]) -> str:
    """How far it got, in words."""
    return str(one["state"]).replace("_", " ") + (", overdue" if one["overdue"] else "")


def steps(one: dict[str, Any], timezone: str, begin: str = "  ") -> list[str]:
    """One line for each step: its time, what it was, and more about it."""
    return [begin + _step(step, timezone) for step in one["steps"]]


def _step(step: dict[str, Any], timezone: str) -> str:
    parts = [moment(step["at"], timezone) or NO_TIME, step["step"].replace("_", " ")]
    if step["until"] is not None:
        parts.append(f"until {moment(step['until'], timezone)}")
    if step["text"] is not None:
        parts.append(f"({_short(step['text'])})")
    return " ".join(parts)


def _short(text: str) -> str:
    shown = visible(text)
    return shown if len(shown) <= STEP_TEXT else shown[: STEP_TEXT - 1] + "…"


def trace(result: dict[str, Any]) -> None:
    """Print what became of a message: its envelopes, the runs that had it, what came of it."""
    if output.Mode.json:
        output.document(result)
        return
    zone, one = result["timezone"], result["message"]
    output.record(
        {
            "message": one["id"],
            "from": visible(one["sender"]),
            "to": one["to"],
            "thread": one["thread"],
            "in_reply_to": one["reply_to"],
            "sent_by": one["run"],
            "trace": visible(one["trace"]),
            "created_at": moment(one["created_at"], zone),
            "says": _said(one),
        }
    )
    for envelope in result["envelopes"]:
        head = f"{envelope['id']} to {visible(envelope['to'])}: {state(envelope['receipt'])}"
        output.lines(["", head, *steps(envelope["receipt"], zone)])
    _more(result["more_envelopes"], "envelopes")
    _under("runs:", [_run(run, zone) for run in result["runs"]])
    _more(result["more_runs"], "runs")
    _under("what came of it:", [_followed(message, zone) for message in result["messages"]])
    _more(result["more"], "messages")


def _under(title: str, rows: list[str]) -> None:
    if rows:
        output.lines(["", title, *(f"  {row}" for row in rows)])


def _more(more: bool, what: str) -> None:
    if more:
        output.lines([f"  … and more {what}"])


def _run(run: dict[str, Any], zone: str) -> str:
    parts = [f"{run['id']} of agent:{run['agent']}: {run['status']}, {moment(run['started_at'], zone)}"]
    if run["ended_at"] is not None:
        parts.append(f"to {moment(run['ended_at'], zone)}")
    if said := run["error"] or run["error_kind"]:
        parts.append(f"({_short(said)})")
    return " ".join(parts)


def _followed(message: dict[str, Any], zone: str) -> str:
    to = ", ".join(map(visible, message["to"])) or "nobody"
    by = f" ({message['run']})" if message["run"] else ""
    when = moment(message["created_at"], zone)
    return f"{when} {message['id']} {visible(message['sender'])}{by} to {to}: {_said(message)}"


def _said(message: dict[str, Any]) -> str:
    return "(deleted)" if message["deleted"] else quote(message["preview"], PREVIEW)
