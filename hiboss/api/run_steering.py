"""Operations on a run while it works: give it words (steer), and answer its questions."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from ..agents.questions import OpenQuestion
from ..agents.run_execution import Execution
from ..core import errors
from ..core.contracts.provider import STEER, Choice
from ..core.envelope import measure
from ..core.errors import CannotSteer, InvalidParams, NotFound, NothingAsked, NotRunning
from ..core.quoting import nearest
from .auth import Caller
from .context import Context
from .operation import Level, operation
from .param_sizes import Line, Text
from .runs import ById, running


class Steer(ById):
    text: Text = Field(description="what the agent is told now, in the middle of its turn")


class Steered(TypedDict):
    id: Annotated[str, Field(description="of the run")]
    taken: Annotated[bool, Field(description="false: it was too late for this turn; send it as a message")]


class AnswerQuestion(ById):
    option: Line = Field(description="one of the options of the question, as run.get shows them")
    question: int | None = Field(None, description="its number in the run, if it asks several now")
    text: Line | None = Field(None, description="what the agent is told with it, like a reason")


class Answered(TypedDict):
    id: Annotated[str, Field(description="of the run")]
    question: Annotated[int, Field(description="its number in the run")]
    option: Annotated[str, Field(description="as it was answered")]


@operation(
    "run.steer",
    level=Level.BOSS,
    effect="change",
    params=Steer,
    result=Steered,
    errors=(
        NotFound,
        errors.BadId,
        NotRunning,
        CannotSteer,
        errors.TooLarge,
        errors.BadText,
        errors.EmptyMessage,
    ),
)
async def steer(context: Context, caller: Caller, params: Steer) -> Steered:
    """Give a run words while it works on its turn, if its provider can take them. Provisional: not stored."""
    text = measure("text", params.text, context.settings.text_bytes)
    if not text.strip():
        raise errors.EmptyMessage()
    late = "steered; send it as a message for the next turn (hiboss send AGENT TEXT)"
    execution, row = await running(context, caller, params.id, late)
    context.auth.recheck(caller)
    if not execution.can(STEER):
        raise CannotSteer(id=f"r{row['id']}", provider=row["provider"])
    return {"id": f"r{row['id']}", "taken": await execution.steer(text)}


@operation(
    "run.answer",
    level=Level.BOSS,
    effect="change",
    params=AnswerQuestion,
    result=Answered,
    errors=(
        NotFound,
        errors.BadId,
        NotRunning,
        NothingAsked,
        InvalidParams,
        errors.TooLarge,
        errors.BadText,
    ),
)
async def answer(context: Context, caller: Caller, params: AnswerQuestion) -> Answered:
    """Answer a question of a run, like whether it may use a tool. The first answer counts. Provisional."""
    text = measure("text", params.text or "", context.settings.subject_bytes)
    measure("option", params.option, context.settings.subject_bytes)
    execution, row = await running(context, caller, params.id, "answered; what it asked ended with it")
    context.auth.recheck(caller)
    asked = _asked(execution, f"r{row['id']}", params.question)
    known = list(asked.question.options)
    if params.option not in known:
        hint = nearest(params.option, known)
        raise InvalidParams(detail=f"option must be one of {', '.join(known)}{hint}")
    asked.answer.set_result(Choice(params.option, text, str(caller.address)))
    return {"id": f"r{row['id']}", "question": asked.number, "option": params.option}


def _asked(execution: Execution, run: str, number: int | None) -> OpenQuestion:
    """Return the question that is meant: the only one, or the one with this number."""
    found = [one for one in execution.questions.open() if not one.answer.done()]
    if number is None and len(found) > 1:
        numbers = ", ".join(str(one.number) for one in found)
        raise InvalidParams(
            detail=f"{run} asks several questions; give the number of one (question): {numbers}"
        )
    wanted = [one for one in found if number in (None, one.number)]
    if not wanted:
        raise NothingAsked(id=run)
    return wanted[0]
