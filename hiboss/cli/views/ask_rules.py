"""What rules look like."""

from __future__ import annotations

import sys
from typing import Any

from .. import output
from .times import moment


def rules(result: dict[str, Any]) -> None:
    """Print a page of rules, as a table on a terminal, then the cursor of the next page."""
    if output.Mode.json:
        output.document(result)
        return
    zone, found = result["timezone"], result["rules"]
    if found and output.on_terminal(sys.stdout):
        _table(found)
    else:
        local = ({**one, "created_at": moment(one["created_at"], zone)} for one in found)
        output.records(local, empty="no-rules", sentence="No rules: the boss is asked each time.")
    if result["next"]:
        output.line()
        output.record({"next-cursor": result["next"]})


def _table(found: list[dict[str, Any]]) -> None:
    from ..table_layout import Column

    headed = [
        Column(title="rule", least=4),
        Column(title="agent", least=6, most=24),
        Column(title="tool", least=6, most=24),
        Column(title="answer", least=6, most=24),
        Column(title="holds", least=7, leaves=1),
        Column(title="about", least=10),
    ]
    rows = [
        [
            str(one["number"]),
            one["agent"],
            one["tool"],
            one["answer"],
            "always" if one["session"] is None else "session",
            " ".join(one["subject"].split()),
        ]
        for one in found
    ]
    output.table(headed, rows)
