"""What the everyday words share: who speaks, and to whom a bare name leads."""

from __future__ import annotations

from typing import Any

from ..errors import InvalidParams
from .session import call_in_person, read_file

SEND_AS_FILE = "; send it with --attachment"


def own_address(token: str | None, profile: str | None) -> str:
    """Who speaks: the boss is `user:boss` here, and everybody else is who the token says."""
    found: str = call_in_person("agent.self", {}, token=token, profile=profile)["address"]
    return found


def addressed(name: str) -> str:
    """A bare name is an agent's."""
    return name if ":" in name else f"agent:{name}"


def say(params: dict[str, Any], token: str | None, profile: str | None) -> Any:
    """Send in one's own name."""
    own = {"from": own_address(token, profile)}
    return call_in_person("envelope.send", params | own, token=token, profile=profile)


def spoken(text: str | None, has_files: bool) -> str:
    """The text as given; `-` reads standard input."""
    if text == "-":
        return read_file("-", SEND_AS_FILE)
    if text is None and not has_files:
        raise InvalidParams(detail='what is to be said? Give a text, like "hello", or - for standard input')
    return text or ""
