"""What the everyday words share: who speaks, and to whom a bare name leads."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from ...core.errors import InvalidParams
from ..session import call_in_person, flag, read_file
from .envelope import SEND_AS_FILE, WHEN, absolute

Text = Annotated[str | None, typer.Argument(metavar="TEXT", help="The text; - reads standard input.")]
Files = Annotated[list[str] | None, flag("--attachment", "FILE", "A file to send along; may be repeated.")]
When = Annotated[str | None, flag("--deliver-at", "TIME", WHEN)]


def own_address(token: str | None, profile: str | None) -> str:
    """Who speaks: the boss is `user:boss` here, and everybody else is who the token says."""
    found: str = call_in_person("agent.self", {}, token=token, profile=profile)["address"]
    return found


def addressed(name: str) -> str:
    """A bare name is an agent's."""
    return name if ":" in name else f"agent:{name}"


def say(
    where: dict[str, Any],
    text: str | None,
    files: list[str] | None,
    deliver_at: str | None,
    token: str | None,
    profile: str | None,
) -> Any:
    """Send in one's own name."""
    params = where | {
        "text": _spoken(text, bool(files)),
        "attachments": [absolute(path) for path in files or []],
        "deliver_at": deliver_at,
    }
    params["from"] = own_address(token, profile)
    return call_in_person("envelope.send", params, token=token, profile=profile)


def _spoken(text: str | None, has_files: bool) -> str:
    """The text as given; `-` reads standard input."""
    if text == "-":
        return read_file("-", SEND_AS_FILE)
    if text is None and not has_files:
        raise InvalidParams(detail='what is to be said? Give a text, like "hello", or - for standard input')
    return text or ""
