"""`hiboss notify`"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from ...core.errors import InvalidParams
from .. import output
from ..call import call
from ..options import As, Json, Token, argument, flag, single_command
from ..views import presence as views

app = single_command()


class When(StrEnum):
    idle = "idle"
    waiting = "waiting"
    finished = "finished"
    failed = "failed"


Name = Annotated[str | None, argument("[NAME]", "The agent, like nex.")]
WhenOption = Annotated[
    When | None,
    flag(
        "--when",
        "idle|waiting|finished|failed",
        "idle: nothing to do; waiting: it asks; finished or failed: how its next run ends.",
    ),
]
Remove = Annotated[bool, flag("--remove", None, "Do not be told any more; with --when only of that.")]
List = Annotated[bool, flag("--list", None, "List what you will be told of.")]


@app.command()
def notify(
    name: Name = None,
    when: WhenOption = None,
    remove: Remove = False,
    list_: List = False,
    token: Token = None,
    as_: As = None,
    json_: Json = False,
) -> None:
    """Be told once when an agent is idle, waits for an answer, finished or failed.

    You get a notice, also on your phone. An agent gets mail, which starts a turn.

    Example: hiboss notify nex --when idle
    """
    if list_ and name is None and when is None and not remove:
        views.watches(call("agent.notify.list", {}, token=token, profile=as_))
        return
    if list_ or name is None:
        raise InvalidParams(detail="name the agent, like: hiboss notify nex --when idle; or only: --list")
    if not remove and when is None:
        raise InvalidParams(detail="say when: --when idle, waiting, finished or failed")
    method = "agent.notify.remove" if remove else "agent.notify"
    output.answer(call(method, {"name": name, "when": when}, token=token, profile=as_))
