"""`hiboss run …`"""

from __future__ import annotations

from ...core.errors import NothingRunning
from ...core.paths import Home
from .. import output
from ..call import call, call_as
from ..credentials import find_token
from ..plain_commands import PlainCommands
from ..text_input import refuse_input_twice, text_or_input
from ..views import runs as views

TYPE_CHECKING = False  # importing typing would cost every command 3 ms
if TYPE_CHECKING:
    from typing import Annotated

    from ..options import After, As, Json, Number, Reason, Text, Token, argument, flag
    from .run_options import RUN_STATUS, Id

app = PlainCommands("List, show, follow, steer, pause and cancel the runs of agents.")


@app.command("list")
def list_(
    agent: Annotated[Text, flag("--agent", "NAME", "Only runs of this agent.")] = None,
    status: Annotated[RUN_STATUS | None, flag("--status", None, "Only runs with this status.")] = None,
    trace: Annotated[
        Text, flag("--trace", "ID", "Only runs of this trace, like m57, or of a name you gave it.")
    ] = None,
    number: Number = None,
    after: After = None,
    token: Token = None,
    as_: As = None,
    json_: Json = False,
) -> None:
    """List runs, newest first. A run is one turn of an agent."""
    params = {"agent": agent, "status": status, "trace": trace, "page_size": number, "after": after}
    views.runs(call("run.list", params, token=token, profile=as_))


@app.command()
def get(
    id_: Id,
    turn: Annotated[
        bool, flag("--turn", None, "Show the text of its turn instead, exactly as the agent got it.")
    ] = False,
    token: Token = None,
    as_: As = None,
    json_: Json = False,
) -> None:
    """Show one run in full.

    Its envelopes, its answer, its model, its tokens and cost, its error.
    """
    result = call("run.get", {"id": id_, "turn": turn or None}, token=token, profile=as_)
    (views.turn if turn else views.run)(result)


@app.command()
def tail(
    id_: Annotated[Text, argument("[ID]", "The run, like r9; by default the newest that is running.")] = None,
    token: Token = None,
    as_: As = None,
    json_: Json = False,
) -> None:
    """Follow the output of a run until it ends, then show how it ended. With --json: one line for each part."""
    from ..run_tail import RunTail

    home = Home()
    found = find_token(home, token, as_)
    RunTail(home, found, id_ or _newest_running(home, found)).follow()


def _newest_running(home: Home, token: str | None) -> str:
    """The id of the newest run that is under way; a note names the others."""
    found = call_as(home, "run.list", {"status": "running"}, token)["runs"]
    if not found:
        raise NothingRunning()
    newest, *others = [f"{one['id']} ({one['agent']})" for one in found]
    also = f"; also running: {', '.join(others)}" if others else ""
    output.note(f"note: following {newest}{also}")
    return str(found[0]["id"])


@app.command()
def cancel(
    id_: Id,
    reason: Reason = None,
    requeue: Annotated[bool, flag("--requeue", None, "Keep its envelopes: they begin anew.")] = False,
    token: Token = None,
    as_: As = None,
    json_: Json = False,
) -> None:
    """Cancel a run: end its program. Its envelopes are cancelled and can be retried."""
    params = {"id": id_, "reason": reason, "requeue": requeue or None}
    output.answer(call("run.cancel", params, token=token, profile=as_))


@app.command()
def pause(id_: Id, token: Token = None, as_: As = None, json_: Json = False) -> None:
    """Pause the program of a run. Its time limits are paused too, and its agent gets no other turn."""
    output.answer(call("run.pause", {"id": id_}, token=token, profile=as_))


@app.command()
def resume(id_: Id, token: Token = None, as_: As = None, json_: Json = False) -> None:
    """Resume a paused run."""
    output.answer(call("run.resume", {"id": id_}, token=token, profile=as_))


@app.command()
def steer(
    id_: Id,
    text: Annotated[str, argument("TEXT", "What to tell the agent now; - reads standard input.")],
    token: Token = None,
    as_: As = None,
    json_: Json = False,
) -> None:
    """Tell an agent something in the middle of its turn.

    Only if its provider can take it; hiboss agent providers shows which can.

    Example: hiboss run steer r9 "use the other branch"
    """
    refuse_input_twice(token, text)
    result = call("run.steer", {"id": id_, "text": text_or_input(text)}, token=token, profile=as_)
    output.answer(result)
    if not result["taken"]:
        output.note("note: it came too late for this turn; send it as a message: hiboss send AGENT TEXT")
