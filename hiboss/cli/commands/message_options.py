"""What can be given with a message on the command line: `send`, `reply`, `envelope send`, `cron`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from ...core.errors import InvalidParams
from ..call import call
from ..options import Text, Texts, argument, flag
from ..text_input import SEND_AS_FILE, attachments, refuse_input_twice, text_or_input

PRIORITY = Literal["critical", "high", "normal", "low"]
WHEN = (
    "Do not deliver before this time: +2h, +1D (D days, M months, m minutes), 2026-01-27T16:30:00+08:00, "
    "or 2026-01-27 16:30 in the boss's zone."
)

MessageText = Annotated[Text, argument("[TEXT]", "The text; - reads standard input.")]
To = Annotated[Texts, flag("--to", "ADDRESS", "To whom: nex, user:ann; several: nex,kai. May be repeated.")]
TextOption = Annotated[Text, flag("--text", "TEXT", "The text; - reads standard input.")]
Subject = Annotated[Text, flag("--subject", "TEXT", "A line above the text.")]
Attachments = Annotated[Texts, flag("--attachment", "FILE", "A file to send with it; may be repeated.")]
DeliverAt = Annotated[Text, flag("--deliver-at", "TIME", WHEN)]
AckBy = Annotated[
    Text,
    flag(
        "--ack-by",
        "TIME",
        "Acknowledge it in this time after its arrival, like 30m; else you and the boss are told.",
    ),
]
Key = Annotated[Text, flag("--key", "KEY", "A name for this request; the same key never sends twice.")]
ToSender = Annotated[bool, flag("--to-sender", None, "Answer only the sender, not all others of the thread.")]
From = Annotated[Text, flag("--from", "ADDRESS", "In whose name (boss only); by default user:boss.")]


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
