"""What can be given with a message on the command line: `send`, `reply`, `envelope send`, `cron`."""

from __future__ import annotations

from typing import Annotated, Literal

from ..options import Text, Texts, argument, flag

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
