"""`hiboss run …`"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import typer

from .. import output, views
from ..session import As, Json, Token, call_in_person, flag, noun, patience

app = noun("What agents did and are doing; stopping it.")

Id = Annotated[str, typer.Option("--id", metavar="ID", help="The run, like r9; run list shows them.")]
Word = str | None
STATUS = Literal["running", "completed", "failed", "cancelled", "interrupted"]
SLICE = "55s"  # how long one request of a tail waits


@app.command("list")
def list_(
    agent: Annotated[Word, flag("--agent", "NAME", "Only this agent's.")] = None,
    status: Annotated[STATUS | None, flag("--status", None, "Only these.")] = None,
    trace: Annotated[Word, flag("--trace", "ID", "Only this errand's, like m57.")] = None,
    number: Annotated[int | None, flag("-n", "N", "How many, 1 to 100; by default 10.", "--number")] = None,
    after: Annotated[Word, flag("--after", "CURSOR", "Go on after the page with this next-cursor.")] = None,
    token: Token = None,
    as_: As = None,
    json_: Json = False,
) -> None:
    """List runs, newest first: each time an agent was given a turn."""
    params = {"agent": agent, "status": status, "trace": trace, "page_size": number, "after": after}
    views.runs(call_in_person("run.list", params, token=token, profile=as_))


@app.command()
def get(id_: Id, token: Token = None, as_: As = None, json_: Json = False) -> None:
    """Show one run in full.

    Its envelopes, what it answered, what it used up, what went wrong.
    """
    views.run(call_in_person("run.get", {"id": id_}, token=token, profile=as_))


@app.command()
def tail(id_: Id, token: Token = None, as_: As = None, json_: Json = False) -> None:
    """Follow what a run says until it ends, then show how it ended. With --json, a line for each piece."""
    params: dict[str, Any] = {"id": id_, "after": 0, "timeout": SLICE}
    said = False
    try:
        while True:
            result = call_in_person("run.tail", params, token=token, profile=as_, timeout=patience(SLICE))
            views.parts(result)
            params["after"] = result["next"]
            said = said or any(part["kind"] == "delta" for part in result["parts"])
            if result["run"]["status"] != "running":
                break
    finally:
        output.fresh_line()
    views.ended_run(result, said=said)


@app.command()
def cancel(
    id_: Id,
    reason: Annotated[Word, flag("--reason", "TEXT", "Why, for the record.")] = None,
    token: Token = None,
    as_: As = None,
    json_: Json = False,
) -> None:
    """End a run: its program is stopped. Its envelopes fail and can be tried again."""
    params = {"id": id_, "reason": reason}
    output.answer(call_in_person("run.cancel", params, token=token, profile=as_))


@app.command()
def pause(id_: Id, token: Token = None, as_: As = None, json_: Json = False) -> None:
    """Halt a run's program where it is. Its time limits stand still."""
    output.answer(call_in_person("run.pause", {"id": id_}, token=token, profile=as_))


@app.command()
def resume(id_: Id, token: Token = None, as_: As = None, json_: Json = False) -> None:
    """Let a halted run go on."""
    output.answer(call_in_person("run.resume", {"id": id_}, token=token, profile=as_))
