"""What can be given to `hiboss envelope …`, beside what other commands take too."""

from __future__ import annotations

from typing import Annotated, Literal

from ..options import Text, flag

TYPE = Literal["text", "markdown", "json", "html"]
PARSE_MODE = Literal["plain", "markdown", "html"]
PARSE = "How channels read the text of this message; by default its --type says it."
BOX = Literal["inbox", "outbox", "archived", "trash", "snoozed", "all"]
BoxOption = Annotated[
    BOX | None,
    flag(
        "--box",
        None,
        "Which box; by default inbox (with --thread: all of your mail). all: every envelope of everybody "
        "(boss only).",
    ),
]
STATUS = Literal["pending", "done", "failed", "cancelled"]
ANSWERS = "The envelope or message to answer; without --to it goes to all others of the thread."
IN_CONVERSATION = "Instead of --to: say it in this conversation, like c4, to all others who are in it."
SCOPE = "What it is about, like module:auth. May be repeated."
REF = "What it refers to, like issue:42. May be repeated."
TRACE = "Your own name for the trace of this message, to find its runs: hiboss run list --trace ID."
FROM_BOSS = "With --from: show the agent that the boss wrote it, as from-boss (boss only)."
ClaimId = Annotated[Text, flag("--claim", "ID", "Only if your claim, like k7, still has them.")]
Session = Annotated[Text, flag("--session", "NAME", "The name of your session, for the record.")]
UpTo = Annotated[Text, flag("--up-to", "ID", "With --all: nothing that came after this envelope.")]
OWN_DATA = "Your own data; a value that is JSON is stored as JSON. May be repeated."
