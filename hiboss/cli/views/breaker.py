"""What the breaker looks like: whether it is pulled, what it ended, and what waits."""

from __future__ import annotations

from typing import Any

from .. import output
from .times import moment


def pulled(breaker: dict[str, Any] | None, zone: str) -> str | None:
    """Return in words that the breaker is pulled; None if it is not."""
    if breaker is None:
        return None
    by = f" by {breaker['pulled_by']}" if breaker["pulled_by"] else ""
    reason = f": {breaker['reason']}" if breaker["reason"] else ""
    return f"pulled at {moment(breaker['pulled_at'], zone)}{by}{reason} (hiboss go)"


def stopped(result: dict[str, Any], daemon: str | None) -> None:
    """Print what was ended and what waits. `daemon`: why the daemon had no part in it."""
    if output.Mode.json:
        output.document(result | {"daemon": daemon})
        return
    ended = [_run(one) for one in result["runs"] if one["ended"]]
    left = [_run(one) for one in result["runs"] if not one["ended"]]
    state = pulled(result.get("breaker"), result["timezone"]) or "pulled (hiboss go)"
    if result.get("not_durable"):
        state = "not stored"
    facts = {"breaker": state, "ended": ended or "nothing was running", "still-ending": left or None}
    if left and not ended:
        facts["ended"] = None
    why = result.get("not_durable")
    output.record(facts | {"daemon": daemon, "not-durable": why} | waits(result["waits"]))
    if why:
        output.note(
            "The runs were ended, but this is not on the disk. Mend that, then again: hiboss stop --all"
        )
    else:
        output.note("Nobody gets a turn now. To let everybody work again: hiboss go")


def _run(one: dict[str, Any]) -> str:
    return f"{one['id']} of {one['agent']}"


def released(result: dict[str, Any]) -> None:
    """Print what goes on now."""
    if output.Mode.json:
        output.document(result)
        return
    output.record({"breaker": "released" if result["changed"] else "not pulled"} | waits(result["waits"]))


def waits(held: dict[str, Any]) -> dict[str, Any]:
    """Return what waits; what does not is left out."""
    return {
        "mail": [f"{one['agent']} {one['due']}" for one in held["mail"]] or None,
        "tasks": held["tasks"] or None,
        "posts": held["posts"] or None,
        "schedules": held["schedules"] or None,
    }
