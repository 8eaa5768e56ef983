"""Operations on a run while it works: give it words (steer). What it asks people are asks (asks.py)."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from ..core import errors
from ..core.contracts.provider import STEER
from ..core.envelope import measure
from ..core.errors import CannotSteer, NotFound, NotRunning
from .auth import Caller
from .context import Context
from .operation import Level, operation
from .param_sizes import Text
from .runs import ById, running


class Steer(ById):
    text: Text = Field(description="what the agent is told now, in the middle of its turn")


class Steered(TypedDict):
    id: Annotated[str, Field(description="of the run")]
    taken: Annotated[bool, Field(description="false: it was too late for this turn; send it as a message")]


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
