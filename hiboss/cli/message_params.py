"""From what was given on the command line to the parameters of a send: `send`, `reply`, `envelope send`, `cron`."""

from __future__ import annotations

from ..core.errors import InvalidParams
from .call import call
from .text_input import SEND_AS_FILE, attachments, refuse_input_twice, text_or_input

TYPE_CHECKING = False  # importing typing would cost every command 3 ms
if TYPE_CHECKING:
    from typing import Any


def recipients(given: list[str]) -> list[str]:
    """The names and addresses of --to, each split at its commas."""
    return [name.strip() for one in given for name in one.split(",")]


def message_params(
    where: dict[str, Any],
    text: str | None,
    files: list[str] | None,
    deliver_at: str | None,
    token: str | None,
) -> dict[str, Any]:
    """Return the parameters of a send: a text, files, or both; `where` says to whom, and what else."""
    if text is None and not files:
        raise InvalidParams(detail='the text is missing; give one, like "hello", or - for standard input')
    refuse_input_twice(token, text)
    content = {"text": text_or_input(text or "", SEND_AS_FILE), "attachments": attachments(files)}
    return where | content | {"deliver_at": deliver_at}


def send_message(
    where: dict[str, Any],
    text: str | None,
    files: list[str] | None,
    deliver_at: str | None,
    token: str | None,
    profile: str | None,
) -> Any:
    """Send a text, files, or both; `where` says to whom."""
    params = message_params(where, text, files, deliver_at, token)
    return call("envelope.send", params, token=token, profile=profile)
