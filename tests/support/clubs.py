"""Groups and people in the tests of operations, and who of them got a text."""

from __future__ import annotations

from typing import Any

from tests.support.parties import Envelope, Party


def club(owner: Party, *members: Party | str, name: str | None = None, **fields: Any) -> str:
    """Create a group with a name of its own; return its address."""
    name = name or f"club-of-{owner.name}"
    given = [one if isinstance(one, str) else one.address for one in members]
    owner.call("conversation.create", name=name, participants=given, **fields)
    return f"group:{name}"


def got(who: Party, text: str) -> list[Envelope]:
    return [one for one in who.list(page_size=100) if one["text"] == text]


def hears(text: str, *parties: Party) -> list[str]:
    """Return who of these got a text, by name."""
    return [one.name for one in parties if got(one, text)]
