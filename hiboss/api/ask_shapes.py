"""The parameters and results of the operations about asks."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypedDict

from ..core import clock
from ..core.ids import LARGEST
from ..store import asks
from ..store.connection import Row
from .operation import Id, Params, Timezone
from .param_sizes import Line, Text

State = Literal["open", "answered", "expired", "cancelled", "all"]


class Create(Params):
    question: Text = Field(description="what is asked")
    options: list[str] | None = Field(
        None, description="1 to 20 different answers of up to 200 characters; default yes and no"
    )
    to: str = Field("user:boss", description="who is asked: an agent or a user")
    timeout: str | None = Field(None, description="how long it waits for an answer, like 1h; default: always")
    default: str | None = Field(None, description="the option that counts when the time is over")


class ById(Params):
    id: Id = Field(description="of the ask, like q2")


class Answer(ById):
    choice: str = Field(description="one of the options, upper or lower case, or its number from 1")
    comment: Line | None = Field(None, description="what the asker is told with it")
    scope: Literal["once", "session", "rule"] | None = Field(
        None, description="of a permission: for how long the answer holds; default once"
    )


class Cancel(ById):
    reason: Line | None = Field(None, description="what the asker and the one who is asked are told")


class Wait(ById):
    timeout: str = Field("55s", description="how long to wait at most; a run waits at most 50s")
    received: bool = Field(
        False, description="true: the asker has the answer, so no message need bring it (again)"
    )


class List(Params):
    state: State = Field("open", description="only those in this state")
    page_size: int | None = Field(None, description="how many at most, 1 to 100; default 10")
    after: int | None = Field(None, ge=1, le=LARGEST, description="the `next` of the previous page")


class AskJson(TypedDict):
    id: Annotated[str, Field(description="like q2")]
    kind: Annotated[
        str,
        Field(description="question; permission: may a tool be used; limit: may an agent go on beyond it"),
    ]
    state: Annotated[str, Field(description="open, answered, expired (its time is over) or cancelled")]
    asker: Annotated[str, Field(description="who asks")]
    asked: Annotated[str, Field(description="who is to answer; the boss may answer too")]
    run: Annotated[str | None, Field(description="the run that asked")]
    message: Annotated[str, Field(description="the question as it was sent, like m57")]
    conversation: Annotated[str, Field(description="where it was sent")]
    question: Annotated[str, Field(description="what is asked; empty if its message was deleted")]
    options: Annotated[list[str], Field(description="the possible answers")]
    default: Annotated[str | None, Field(description="the option that counts when the time is over")]
    created_at: Annotated[str, Field(description="when it was asked")]
    expires_at: Annotated[str | None, Field(description="when its time is over; null: never")]
    reminders: Annotated[int, Field(description="how many were sent")]
    answer: Annotated[str | None, Field(description="one of the options; null: there is none")]
    defaulted: Annotated[bool, Field(description="true: nobody answered, and the default counts")]
    comment: Annotated[str | None, Field(description="what was said with it, or why it was cancelled")]
    scope: Annotated[str | None, Field(description="of the answer to a permission: once, session, rule")]
    answered_by: Annotated[str | None, Field(description="who settled it; null: nobody, or its time is over")]
    answered_at: Annotated[str | None, Field(description="when it was settled")]
    reply: Annotated[str | None, Field(description="the message that told the asker")]
    tool: Annotated[str | None, Field(description="of a permission: the tool that would be used")]
    subject: Annotated[str | None, Field(description="of a permission: exactly what a rule would be about")]


class OneAsk(TypedDict):
    ask: Annotated[AskJson, Field(description="as it is now")]
    timezone: Timezone


class CreatedAsk(OneAsk):
    duplicate: Annotated[
        bool, Field(description="true: this turn asked the same before, and this is that ask")
    ]


class WaitedAsk(OneAsk):
    timed_out: Annotated[bool, Field(description="true: it is still open")]


class AskList(TypedDict):
    asks: Annotated[list[AskJson], Field(description="newest first")]
    next: Annotated[
        int | None, Field(description="to be given as `after` for the next page; null: this is the last")
    ]
    timezone: Timezone


def ask_json(row: Row) -> AskJson:
    """Return an ask as the doors show it."""
    return {
        "id": f"q{row['id']}",
        "kind": row["kind"],
        "state": row["state"],
        "asker": row["asker_address"],
        "asked": row["asked_address"],
        "run": None if row["run"] is None else f"r{row['run']}",
        "message": f"m{row['message']}",
        "conversation": f"c{row['conversation']}",
        "question": "" if row["question_deleted"] is not None else row["question"],
        "options": list(asks.options_of(row)),
        "default": row["fallback"],
        "created_at": clock.iso(row["created_at"]),
        "expires_at": clock.iso_or_none(row["expires_at"]),
        "reminders": row["reminders"],
        "answer": row["answer"],
        "defaulted": row["state"] == "expired" and row["answer"] is not None,
        "comment": row["comment"],
        "scope": row["scope"],
        "answered_by": row["by_address"],
        "answered_at": clock.iso_or_none(row["answered_at"]),
        "reply": None if row["reply"] is None else f"m{row['reply']}",
        "tool": row["tool"],
        "subject": row["subject"],
    }
