"""What contacts look like."""

from __future__ import annotations

import sys
from typing import Any

from .. import output
from .times import moment, short_moment

NARROW = 90  # columns; there is room for the year from here on


def contacts(result: dict[str, Any]) -> None:
    """Print the contacts, as a table on a terminal."""
    if output.Mode.json:
        output.document(result)
        return
    zone, found = result["timezone"], result["contacts"]
    if not found or not output.on_terminal(sys.stdout):
        output.records((_local(one, zone) for one in found), empty="no-contacts", sentence="No contacts.")
        return
    from ..table_layout import Column

    headed = [
        Column(title="address", least=max(len(one["address"]) for one in found)),  # it is copied
        Column(title="name", least=8, most=24),
        Column(title="state", least=7),
        Column(title="code", least=8, leaves=1),
        Column(title="held", least=4, leaves=2),
        Column(title="account", least=8, leaves=3),
        Column(title="met", least=11, leaves=4),
    ]
    rows = [
        [
            one["address"],
            one["name"] or "",
            one["state"],
            one["code"] or "",
            str(one["held"] or ""),
            one["account"],
            short_moment(one["created_at"], zone, NARROW),
        ]
        for one in found
    ]
    output.table(headed, rows)


def _local(one: dict[str, Any], zone: str) -> dict[str, Any]:
    times = ("created_at", "decided_at", "code_until")
    return {key: moment(value, zone) if key in times and value else value for key, value in one.items()}
