"""`hiboss run …`"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from ...core.errors import NothingRunning
from .. import output
from ..call import call, timeout_for
from ..options import After, As, Json, Number, Reason, Text, Token, argument, flag, noun
from ..views import runs as views

app = noun("List, show, follow, pause and cancel the runs of agents.")

Id = Annotated[str, argument("ID", "The run, like r9; hiboss run list shows them.")]
STATUS = Literal["running", "completed", "failed", "cancelled", "interrupted"]
SLICE = "55s"  # how long one request of a tail waits


@app.command("list")
def list_(
    agent: Annotated[Text, flag("--agent", "NAME", "Only runs of this agent.")] = None,
    status: Annotated[STATUS | None, flag("--status", None, "Only runs with this status.")] = None,
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
def get(id_: Id, token: Token = None, as_: As = None, json_: Json = False) -> None:
    """Show one run in full.

    Its envelopes, its answer, its tokens and cost, its error.
    """
    views.run(call("run.get", {"id": id_}, token=token, profile=as_))


@app.command()
def tail(
    id_: Annotated[Text, argument("[ID]", "The run, like r9; by default the newest that is running.")] = None,
    token: Token = None,
    as_: As = None,
    json_: Json = False,
) -> None:
    """Follow the output of a run until it ends, then show how it ended. With --json: one line for each part."""
    wanted = id_ or _newest_running(token, as_)
    params: dict[str, Any] = {"id": wanted, "after": 0, "timeout": SLICE}
    text_shown = False
    try:
        while True:
            result = call("run.tail", params, token=token, profile=as_, timeout=timeout_for(SLICE))
            views.parts(result)
            params["after"] = result["next"]
            text_shown = text_shown or any(part["kind"] == "delta" for part in result["parts"])
            if result["run"]["status"] != "running":
                break
    finally:
        output.fresh_line()
    views.ended_run(result, text_shown=text_shown)


def _newest_running(token: str | None, profile: str | None) -> str:
    """The id of the newest run that is under way; a note names the others."""
    found = call("run.list", {"status": "running"}, token=token, profile=profile)["runs"]
    if not found:
        raise NothingRunning()
    newest, *others = [f"{one['id']} ({one['agent']})" for one in found]
    also = f"; also running: {', '.join(others)}" if others else ""
    output.note(f"note: following {newest}{also}")
    return str(found[0]["id"])


@app.command()
def cancel(id_: Id, reason: Reason = None, token: Token = None, as_: As = None, json_: Json = False) -> None:
    """Cancel a run: end its program. Its envelopes fail and can be retried."""
    output.answer(call("run.cancel", {"id": id_, "reason": reason}, token=token, profile=as_))


@app.command()
def pause(id_: Id, token: Token = None, as_: As = None, json_: Json = False) -> None:
    """Pause the program of a run. Its time limits are paused too."""
    output.answer(call("run.pause", {"id": id_}, token=token, profile=as_))


@app.command()
def resume(id_: Id, token: Token = None, as_: As = None, json_: Json = False) -> None:
    """Resume a paused run."""
    output.answer(call("run.resume", {"id": id_}, token=token, profile=as_))
