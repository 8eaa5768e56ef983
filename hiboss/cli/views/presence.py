"""What presence looks like, and what somebody will be told of."""

from __future__ import annotations

import sys
from typing import Any

from .. import output
from .times import moment, short_moment


def everybody(result: dict[str, Any]) -> None:
    """Print who is here."""
    if output.Mode.json:
        output.document(result)
        return
    zone, found = result["timezone"], result["presence"]
    if not output.on_terminal(sys.stdout):
        output.records((_record(one, zone) for one in found), empty="nobody", sentence="Nobody is here.")
        return
    from ..table_layout import Column

    headed = [
        Column(title="address", least=8, most=40),
        Column(title="presence", least=8),
        Column(title="last seen", least=11, leaves=1),
    ]
    rows = [[one["address"], one["presence"], short_moment(one["last_seen_at"], zone)] for one in found]
    output.table(headed, rows)


def one(result: dict[str, Any]) -> None:
    """Print whether one is here."""
    if output.Mode.json:
        output.document(result)
    else:
        output.record(_record(result, result["timezone"]))


def _record(one: dict[str, Any], zone: str) -> dict[str, Any]:
    return {
        "address": one["address"],
        "presence": one["presence"],
        "state": one["state"],
        "last_seen_at": moment(one["last_seen_at"], zone),
    }


def watches(result: dict[str, Any]) -> None:
    """Print what somebody will be told of."""
    if output.Mode.json:
        output.document(result)
        return
    zone = result["timezone"]
    output.records(
        (one | {"created_at": moment(one["created_at"], zone)} for one in result["watches"]),
        empty="no-watches",
        sentence="Nothing: you will be told of no agent.",
    )
