"""What the tests of the intake look at: the updates of a place as they are stored, and what became of them."""

from __future__ import annotations

import json
from typing import Any

from tests.support.scripted_channels import Place


def rows(place: Place, sql: str, *values: object) -> list[dict[str, Any]]:
    with place.daemon.database() as database:
        return [dict(row) for row in database.execute(sql, values)]


def updates(place: Place) -> list[dict[str, Any]]:
    """Return the updates of a place as they are stored, oldest first."""
    return rows(place, "SELECT * FROM platform_update WHERE binding = ? ORDER BY id", place.binding)


def outcomes(place: Place) -> dict[str, str | None]:
    return {one["update_id"]: one["outcome"] for one in updates(place)}


def digests(place: Place, *steps: dict[str, Any]) -> None:
    """Say what happens to the next digestions."""
    (place.root / "digest.jsonl").write_text("".join(json.dumps(step) + "\n" for step in steps))


def received(place: Place) -> list[dict[str, Any]]:
    """Return what the agent got, oldest first, without notices."""
    found = place.owner.list(oldest_first=True, page_size=100)
    return [one for one in found if one["from"] != "agent:system"]
