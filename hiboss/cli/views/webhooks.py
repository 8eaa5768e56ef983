"""What webhooks look like."""

from __future__ import annotations

from typing import Any

from .. import output
from .times import moment


def webhooks(result: dict[str, Any]) -> None:
    """Print webhooks, a block each."""
    if output.Mode.json:
        output.document(result)
        return
    blocks = (_facts(one, result["timezone"]) for one in result["webhooks"])
    output.records(blocks, empty="no-webhooks", sentence="No webhooks found.")


def webhook(result: dict[str, Any]) -> None:
    """Print one webhook; a new one with its secret."""
    facts = _facts(result["webhook"], result["timezone"])
    output.answer(result, facts | {"secret": result.get("secret")})
    if "secret" in result:
        output.note("hiboss made this secret; it is shown only now. The other side needs it.")


def _facts(one: dict[str, Any], zone: str) -> dict[str, Any]:
    times = ("created_at", "failing_since", "next_try_at")
    shown = {name: moment(value, zone) if name in times else value for name, value in one.items()}
    return shown | {"refused": one["refused"] or None, "addresses": one["addresses"] or None}
