"""The parameters and the result of a send, and the parts of them that other operations share."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, NotRequired

from pydantic import AfterValidator, Field, model_validator
from typing_extensions import TypedDict

from ..core.address import is_name
from .operation import SOCKET_ONLY, Params
from .param_sizes import Line, Size, Text, Word

METADATA_DEPTH = 32
TAGS = 20  # scopes of a message, and refs
TAG_BYTES = 200
_ID = re.compile(r"[A-Za-z]?[0-9]+")  # of anything: it is no name of a group here


def not_too_deep(metadata: dict[str, Any]) -> dict[str, Any]:
    """Refuse deep nesting: orjson writes 254 levels, so deeper metadata could be stored and never shown."""
    level: list[Any] = [metadata]
    for _ in range(METADATA_DEPTH):
        nested = [one for one in level if isinstance(one, (dict, list))]
        level = [child for one in nested for child in (one.values() if isinstance(one, dict) else one)]
    if any(isinstance(one, (dict, list)) for one in level):
        raise ValueError(f"it is nested deeper than {METADATA_DEPTH} levels")
    return metadata


class Tag(Params):
    """A scope or a ref of a message."""

    type: str = Field(min_length=1, description="like module")
    value: str = Field(min_length=1, description="like auth")


class Send(Params):
    to: Annotated[str | list[str], Size(values="recipients")] = Field(
        default_factory=list, description="one or more addresses or names"
    )
    text: Text = Field("", description="what to say; it may be empty if files are attached")
    subject: Line | None = Field(None, description="a line above the text")
    type: Literal["text", "markdown", "json", "html"] = Field(
        "text", description="how the text is to be read"
    )
    parse_mode: Literal["plain", "markdown", "html"] | None = Field(
        None, description="how channels are to read the text of this message, in place of its type"
    )
    priority: Literal["critical", "high", "normal", "low"] = Field(
        "normal", description="higher mail is delivered first"
    )
    attachments: Annotated[list[str], Size(values="attachments")] = Field(
        default_factory=list,
        description="absolute paths of files to send with it",
        json_schema_extra=SOCKET_ONLY,
    )
    uploads: Annotated[list[str], Size(values="attachments")] = Field(
        default_factory=list, description="files that you uploaded, like u7; each is used once"
    )
    deliver_at: str | None = Field(
        None, description="when to deliver: +2h, an ISO 8601 time, or a time in the boss's zone"
    )
    reply_to: str | int | None = Field(
        None, description="e81 or m57; without `to` it goes to all parties of its thread but you"
    )
    to_sender: bool = Field(
        False, description="with reply_to and without `to`: only to the sender of what it answers"
    )
    ack_by: str | None = Field(
        None,
        description="in how long after its arrival it is to be acknowledged, like 30m; if it is not, you and "
        "the boss are told",
    )
    scopes: Annotated[list[Tag], Size(text=TAG_BYTES, values=4 * TAGS)] = Field(
        default_factory=list,
        max_length=TAGS,
        description="what it is about, like {type: module, value: auth}",
    )
    refs: Annotated[list[Tag], Size(text=TAG_BYTES, values=4 * TAGS)] = Field(
        default_factory=list, max_length=TAGS, description="what it refers to, like {type: issue, value: 42}"
    )
    conversation: str | int | None = Field(
        None,
        description="instead of `to`: say it in this conversation, like c4, to all who are in it but you; "
        "or in a group, like core-team",
    )
    session: Word = Field("", description="your session, if it has a name: readers see it with the author")
    interruptible: bool = Field(True, description="false: do not interrupt the run that works on it")
    trace_id: Word | None = Field(None, description="your own name for its trace, to find its runs by")
    metadata: Annotated[
        dict[str, Any], AfterValidator(not_too_deep), Size(text="metadata_bytes", values="metadata_bytes")
    ] = Field(default_factory=dict, description="your own JSON object; hiboss only keeps it")
    key: Word | None = Field(
        None, min_length=1, description="a repeated request with the same key sends nothing"
    )
    sender: str | None = Field(
        None, alias="from", description="the sender (only for the boss; default user:boss)"
    )
    from_boss: bool = Field(False, description="mark as written by the boss (only for the boss)")
    from_name: Word | None = Field(None, description="the sender's name as shown (only for the boss)")

    @model_validator(mode="before")
    @classmethod
    def _send_to_the_group(cls, given: Any) -> Any:
        """A group that is named as the conversation is who it goes to."""
        name = given.get("conversation") if isinstance(given, dict) else None
        if not isinstance(name, str) or given.get("to") or given.get("to_sender"):
            return given
        name = name.strip().removeprefix("group:")
        if _ID.fullmatch(name) or not is_name(name):
            return given
        return {**given, "to": f"group:{name}", "conversation": None}


class Sent(TypedDict):
    ids: Annotated[list[str], Field(description="of the envelopes, one per recipient")]
    message: Annotated[str, Field(description="its id, like m57: one for all recipients")]
    conversation: Annotated[str, Field(description="the conversation it is in, like c4")]
    thread: Annotated[
        str, Field(description="the thread it is in, like t57: its own, or that of the message it replies to")
    ]
    deliver_at: Annotated[str | None, Field(description="when it is delivered; null: now")]
    timezone: NotRequired[Annotated[str, Field(description="the boss's zone, with a deliver_at")]]
    duplicate: Annotated[
        bool, Field(description="true: this key was used before, and this is the first answer again")
    ]
    elsewhere: NotRequired[
        Annotated[
            bool,
            Field(description="true: the reply is in another conversation, as the thread has other parties"),
        ]
    ]
    skipped: NotRequired[
        Annotated[
            list[str],
            Field(
                description="parties of it who do not get it: they were deleted, or you may not write to them"
            ),
        ]
    ]
