"""The JSON form of an envelope, the same at every API."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, NamedTuple, NotRequired

from pydantic import Field
from typing_extensions import TypedDict


class AttachmentJson(TypedDict):
    name: Annotated[str, Field(description="the file's name as it was sent")]
    path: Annotated[str, Field(description="where the daemon keeps it: read it, do not change it")]
    size: Annotated[int, Field(description="in bytes")]
    mime: Annotated[str, Field(description="its media type: guessed from its name, or as its uploader said")]
    sha256: Annotated[str, Field(description="of its content, in hexadecimal")]
    source: NotRequired[Annotated[str, Field(description="the type of the adapter that received it")]]
    filename: NotRequired[Annotated[str, Field(description="as its sender on the platform named it")]]
    telegram_file_id: NotRequired[
        Annotated[str, Field(description="its id on Telegram; of another platform: <source>_file_id")]
    ]


class ReactionJson(TypedDict):
    emoji: Annotated[str, Field(description="like 👍")]
    name: Annotated[str | None, Field(description="of the person, as the platform gave it")]
    username: Annotated[str | None, Field(description="the short name on the platform, without @")]
    from_boss: Annotated[bool, Field(description="true: it is the boss's")]
    address: Annotated[
        str | None, Field(description="of the agent or user who set it here; null: a person on a platform")
    ]


class ReadingJson(TypedDict):
    address: Annotated[str, Field(description="who has seen it: the recipient, or the boss in its place")]
    session: Annotated[
        str | None,
        Field(description="in which session of theirs, like r9 for a run; null: it was not named"),
    ]
    at: Annotated[str, Field(description="when that was first")]
    read: Annotated[
        bool, Field(description="false: a poll has shown it to this session; nobody said that it was read")
    ]


class TagJson(TypedDict):
    type: Annotated[str, Field(description="like module or issue; of a name with @ in the text: mention")]
    value: Annotated[str, Field(description="like auth or 42; of a mention: the name without @")]


class ErrorJson(TypedDict):
    kind: Annotated[str, Field(description="in one word, like refused")]
    text: Annotated[str | None, Field(description="what the platform or the provider said")]
    at: Annotated[str | None, Field(description="when it happened")]


EnvelopeJson = TypedDict(
    "EnvelopeJson",
    {
        "id": Annotated[str, Field(description="like e81: one message on its way to one address")],
        "message": Annotated[str, Field(description="the message it carries, like m57")],
        "conversation": Annotated[str, Field(description="the conversation it is in, like c4")],
        "seq": Annotated[
            int | None, Field(description="its number in the conversation; null: it has not arrived")
        ],
        "thread": Annotated[
            str, Field(description="like t57: the number of the first message of the thread")
        ],
        "reply_to": Annotated[str | None, Field(description="the message that it answers; null: none")],
        "quote": Annotated[
            str | None, Field(description="the beginning of that message, if the reader may see it")
        ],
        "from": Annotated[
            str,
            Field(
                description="the sender's address; for mail from a platform, the place where it was written"
            ),
        ],
        "sender": Annotated[
            str, Field(description="who sent it: user:boss also for what he wrote in a chat of his")
        ],
        "from_boss": Annotated[
            bool, Field(description="true: the boss wrote it; false for what he only forwarded")
        ],
        "from_name": Annotated[
            str | None, Field(description="the name of its author, as the platform or the sender gave it")
        ],
        "channel": Annotated[
            dict[str, Any] | None,
            Field(description="what the platform told about it; null: it came from no platform"),
        ],
        "group": Annotated[str | None, Field(description="the name of the group it was sent to; null: none")],
        "to": Annotated[str, Field(description="the address it goes to")],
        "forwards": Annotated[
            str | None,
            Field(
                description="the envelope in the boss's box that this one posts to a chat of his; null: none"
            ),
        ],
        "routed_from": Annotated[
            str | None,
            Field(description="the agent it was for, in whose place the recipient got it; null: none"),
        ],
        "subject": Annotated[str | None, Field(description="a line above the text")],
        "type": Annotated[str, Field(description="how the text is to be read: text, markdown, json or html")],
        "text": Annotated[str, Field(description="as it was written; its latest wording if it was edited")],
        "attachments": Annotated[list[AttachmentJson], Field(description="the files sent with it")],
        "status": Annotated[str, Field(description="pending, done, failed or cancelled")],
        "waits": Annotated[
            str | None,
            Field(
                description="why a pending one is not due: deferred, retry, lease or snooze; null: it is due"
            ),
        ],
        "priority": Annotated[str, Field(description="critical, high, normal or low")],
        "box": Annotated[str, Field(description="of the recipient: inbox, archived, trash or snoozed")],
        "snoozed_until": Annotated[
            str | None,
            Field(description="when it comes back to the inbox; null: its recipient did not put it off"),
        ],
        "interruptible": Annotated[
            bool, Field(description="false: do not interrupt the run that works on it")
        ],
        "auto": Annotated[
            bool,
            Field(description="true: made by a machine, like the final text of a run"),
        ],
        "context": Annotated[
            bool,
            Field(
                description="true: it starts no turn, and is not counted as unread: the recipient only reads "
                "it along"
            ),
        ],
        "deliver_at": Annotated[str | None, Field(description="when it was to be delivered; null: at once")],
        "late_seconds": Annotated[
            int | None, Field(description="how much later than deliver_at it arrived; null: in time")
        ],
        "created_at": Annotated[str, Field(description="when it was sent")],
        "edited_at": Annotated[
            str | None,
            Field(description="when its author last changed it; null: it is as it was sent"),
        ],
        "deleted": Annotated[
            bool, Field(description="true: its author or the boss deleted it, and its content is not shown")
        ],
        "deleted_why": Annotated[str | None, Field(description="the reason that was given; null: none was")],
        "reactions": Annotated[
            list[ReactionJson], Field(description="what people and agents have on it now; at most 100")
        ],
        "scopes": Annotated[list[TagJson], Field(description="what it is about, as its sender said")],
        "refs": Annotated[
            list[TagJson], Field(description="what it refers to, and who is mentioned in its text")
        ],
        "read_at": Annotated[str | None, Field(description="when the recipient first read it")],
        "read_by": Annotated[
            list[ReadingJson],
            Field(description="who has seen it, and in which session; at most 20, the first of them"),
        ],
        "acked_at": Annotated[str | None, Field(description="when the recipient acknowledged it")],
        "ack_by": Annotated[
            str | None,
            Field(description="until when it is to be acknowledged; null: there is no deadline"),
        ],
        "done_at": Annotated[str | None, Field(description="when it got its final status")],
        "attempts": Annotated[int, Field(description="how often its delivery was tried and failed")],
        "redelivered": Annotated[
            bool, Field(description="true: it was handed over before, and may have been dealt with")
        ],
        "preempted_by": Annotated[
            str | None,
            Field(description="the message for which the run that worked on it was set aside; null: none"),
        ],
        "last_error": Annotated[
            ErrorJson | None, Field(description="of the last failed try; null: there was none")
        ],
        "run": Annotated[str | None, Field(description="the run that it was sent in, like r9; null: none")],
        "trace": Annotated[str, Field(description="the chain of messages and runs it belongs to, like m57")],
        "hops": Annotated[int, Field(description="how many runs of the trace led to it")],
        "metadata": Annotated[
            dict[str, Any], Field(description="the sender's own JSON object; hiboss only keeps it")
        ],
    },
)


class Tags(NamedTuple):
    """What a message is about, and what it refers to."""

    scopes: list[TagJson]
    refs: list[TagJson]


class Beside(NamedTuple):
    """What a page of envelopes shows that is in no column of theirs."""

    quotes: Mapping[int, str] = MappingProxyType({})  # what may be shown of messages replied to, by id
    reactions: Mapping[int, list[ReactionJson]] = MappingProxyType({})  # by the id of the message
    tags: Mapping[int, Tags] = MappingProxyType({})  # by the id of the message
    read_by: Mapping[int, list[ReadingJson]] = MappingProxyType({})  # by the id of the envelope
