"""What controls look like."""

from __future__ import annotations

from typing import Any

from .. import output
from .times import moment


def controls(result: dict[str, Any]) -> None:
    """Print a page of controls, a block each, then where the next page begins."""
    if output.Mode.json:
        output.document(result)
        return
    zone = result["timezone"]
    blocks = (one | {"at": moment(one["at"], zone)} for one in result["controls"])
    output.records(blocks, empty="no-controls", sentence="No controls found.")
    if result["next"]:
        output.line()
        output.record({"next": result["next"]})
