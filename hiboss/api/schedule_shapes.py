"""Parameters and results of the operations about schedules."""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from .operation import SOCKET_ONLY, Id, Params
from .param_sizes import Line, Size, Text, Word


class ScheduleFields(Params):
    cron: str | None = Field(None, description="five fields as in cron(5), or a name like @daily")
    every: str | None = Field(None, description="an interval, like 90s or 2h")
    at: str | None = Field(None, description="once: +2h, an ISO 8601 time, or a time in the boss's zone")
    to: Annotated[str | list[str] | None, Size(values="recipients")] = Field(
        None, description="one or more addresses or names"
    )
    text: Text | None = Field(None, description="what to send; it may be empty if files are attached")
    subject: Line | None = Field(None, description="a line above the text")
    type: Literal["text", "markdown", "json", "html"] | None = Field(
        None, description="how the text is to be read; default text"
    )
    priority: Literal["critical", "high", "normal", "low"] | None = Field(
        None, description="higher mail is delivered first; default normal"
    )
    attachments: Annotated[list[str] | None, Size(values="attachments")] = Field(
        None, description="absolute paths of files, copied now", json_schema_extra=SOCKET_ONLY
    )
    uploads: Annotated[list[str] | None, Size(values="attachments")] = Field(
        None, description="files that you uploaded, like u7; each is used once"
    )
    timezone: str | None = Field(None, description="of the cron expression; default the boss's")
    catch_up: Literal["skip", "once", "all"] | None = Field(
        None, description="after a downtime: send none, one or all of what was missed; default once"
    )
    overlap: Literal["skip", "queue"] | None = Field(
        None, description="while the last message is not done: send nothing, or send anyway; default skip"
    )
    name: Word | None = Field(None, description="your own name for it")


class Create(ScheduleFields):
    sender: str | None = Field(
        None, alias="from", description="the sender (only for the boss; default user:boss)"
    )
    from_boss: bool = Field(False, description="mark as written by the boss (only for the boss)")
    from_name: Word | None = Field(None, description="the sender's name as shown (only for the boss)")


class ById(Params):
    id: Id = Field(description="the schedule, like s3")


class List(Params):
    after: Id | None = Field(None, description="the `next` of the previous page")


class Set(ScheduleFields, ById):
    """The id first: required parameters come before the others."""


class Explain(Params):
    cron: str = Field(description="five fields as in cron(5), or a name like @daily")
    timezone: str | None = Field(None, description="default the boss's")
    count: int = Field(5, description="how many times to show")


class Slot(TypedDict):
    """A time of a schedule, and what came of it. Missed times in a row are one slot."""

    slot: Annotated[str, Field(description="the time that was planned")]
    last_slot: Annotated[str, Field(description="of several missed in a row; else the same")]
    number: Annotated[int, Field(description="how many times this slot stands for")]
    outcome: Annotated[str, Field(description="fired, missed, skipped, failed")]
    reason: Annotated[str | None, Field(description="why nothing was sent")]
    message: Annotated[str | None, Field(description="the id of what was sent")]


ScheduleJson = TypedDict(
    "ScheduleJson",
    {
        "id": Annotated[str, Field(description="like s3")],
        "name": Annotated[str | None, Field(description="the owner's own name for it")],
        "owner": Annotated[str, Field(description="who created it")],
        "from": Annotated[str, Field(description="the sender of its messages")],
        "to": Annotated[list[str], Field(description="the addresses its messages go to")],
        "cron": Annotated[str | None, Field(description="the cron expression; null: it has none")],
        "every_seconds": Annotated[float | None, Field(description="the interval; null: it has none")],
        "at": Annotated[
            str | None, Field(description="the time of one that is sent once; null for the others")
        ],
        "timezone": Annotated[str, Field(description="in which the cron expression is read")],
        "catch_up": Annotated[
            str, Field(description="what is sent after a downtime: skip (nothing), once or all")
        ],
        "overlap": Annotated[
            str,
            Field(
                description="while its last message is not done: skip (send nothing) or queue (send anyway)"
            ),
        ],
        "enabled": Annotated[bool, Field(description="false: it sends nothing until cron.enable")],
        "next_at": Annotated[str | None, Field(description="when it sends next; null: never again")],
        "subject": Annotated[str | None, Field(description="of its messages")],
        "text": Annotated[str, Field(description="of its messages")],
        "priority": Annotated[str, Field(description="of its messages: critical, high, normal or low")],
        "attachments": Annotated[list[str], Field(description="the names of the files")],
        "created_at": Annotated[str, Field(description="when it was created")],
        "slots": NotRequired[
            Annotated[list[Slot], Field(description="what came of the last times; only in cron.show")]
        ],
    },
)


class ScheduleList(TypedDict):
    schedules: Annotated[list[ScheduleJson], Field(description="the caller's own; for the boss everybody's")]
    next: Annotated[
        str | None, Field(description="to be given as `after` for the next page; null: this is the last")
    ]


class ScheduleRun(TypedDict):
    id: Annotated[str, Field(description="the schedule, like s3")]
    fired: Annotated[bool, Field(description="whether a message was sent")]
    ids: Annotated[list[str], Field(description="of the envelopes sent, one per recipient")]
    why: Annotated[str | None, Field(description="why nothing was sent; the schedule is then disabled")]


class CronTimes(TypedDict):
    cron: Annotated[str, Field(description="the expression as it is understood")]
    timezone: Annotated[str, Field(description="in which it is read")]
    next: Annotated[list[str], Field(description="the next times, in UTC")]
    local: Annotated[list[str], Field(description="the same times in the time zone")]
