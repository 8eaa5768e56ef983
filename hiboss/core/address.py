"""Addresses: to whom and where envelopes go, and the rules for names.

`agent:nex`, `user:boss`, `channel:telegram:<chat>[/<topic>]`, `group:core-team`.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from .errors import BadAddress, BadName

RESERVED = frozenset({"background", "boss", "system", "all"})
NAME_LIMIT = 64
_NAME = re.compile(r"[A-Za-z0-9]+(?:-[A-Za-z0-9]+)*")
PLUGIN_NAME = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*")  # of an adapter, and of a provider
_PLACE = re.compile(r"[^\s/:\x00-\x1f\x7f]{1,128}(?:/[^\s/:\x00-\x1f\x7f]{1,128})?")


class Address(NamedTuple):
    """One address with a valid form. Only the store knows whether it exists."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"

    @property
    def fold(self) -> str:
        """The form to compare by: names ignore the case, channels do not."""
        return str(self) if self.kind == "channel" else str(self).lower()

    @property
    def adapter(self) -> str:
        """`telegram` of `channel:telegram:12345`."""
        return self.name.partition(":")[0]


BOSS = Address("user", "boss")
SYSTEM = Address("agent", "system")  # the sender of notices; nobody can write to it
BACKGROUND = Address("agent", "background")  # does one task for an agent, with that agent's settings


def is_name(text: str) -> bool:
    """Tell whether an agent, a person or a group could have this name."""
    return len(text) <= NAME_LIMIT and _NAME.fullmatch(text) is not None


@lru_cache(maxsize=4096)
def parse_address(text: str) -> Address:
    """Return the address that a text means; raise BadAddress for a wrong form."""
    kind, colon, name = text.partition(":")
    if not colon:
        why = "the kind before the colon is missing"
        if is_name(text):
            why += f" (agent:{text}?)"
        raise BadAddress(value=text[:100], why=why)
    if kind in ("agent", "user", "group"):
        if not is_name(name):
            raise BadAddress(value=text[:100], why=f"{name[:80] or 'an empty text'} cannot be a name")
    elif kind == "channel":
        adapter, _, place = name.partition(":")
        if len(adapter) > NAME_LIMIT or not PLUGIN_NAME.fullmatch(adapter) or not _PLACE.fullmatch(place):
            raise BadAddress(value=text[:100], why="a channel is channel:<adapter>:<chat>[/<topic>]")
    else:
        raise BadAddress(value=text[:100], why=f"there is no kind {kind[:40] or 'with an empty name'}")
    return Address(kind, name)


def check_agent_name(name: str) -> str:
    """Return the name if a new agent may have it; raise BadName if not."""
    if len(name) > NAME_LIMIT:
        raise BadName(value=name[:80], why=f"it has {len(name)} characters")
    if not _NAME.fullmatch(name):
        raise BadName(value=name[:80] or "''", why="it has other characters, or a dash at the start or end")
    if name.lower() in RESERVED:
        raise BadName(value=name, why="it is reserved")
    return name
