"""What can be said of an agent on the command line; the same when registering and changing one."""

from __future__ import annotations

import os
from typing import Annotated, Any, Literal

import typer

Name = Annotated[
    str, typer.Option("--name", metavar="NAME", help="Letters, digits and single dashes, like code-review.")
]
Known = Annotated[
    str, typer.Option("--name", metavar="NAME", help="The agent's name, as agent list shows it.")
]
Kind = Annotated[
    Literal["agent", "service", "bot"] | None,
    typer.Option("--kind", help="What it is: agent (the default), service or bot."),
]
Mode = Annotated[
    Literal["run", "pull"] | None,
    typer.Option(
        "--mode",
        help="run: the daemon gives it turns (comes with a provider). pull: it fetches its mail.",
    ),
]
Provider = Annotated[
    str | None,
    typer.Option(
        "--provider",
        metavar="NAME",
        help="How it thinks: command, webhook or demo; none takes it away.",
    ),
]
Command = Annotated[
    str | None,
    typer.Option(
        "--command", metavar="WORDS", help='For command: the program, like "python agent.py"; no shell.'
    ),
]
Url = Annotated[
    str | None,
    typer.Option("--url", metavar="URL", help="For webhook: https, or http on this machine."),
]
Reply = Annotated[
    Literal["auto", "explicit"] | None,
    typer.Option(
        "--reply", help="auto: its final text is its answer. explicit: it sends its answers itself."
    ),
]
Busy = Annotated[
    Literal["collect", "followup"] | None,
    typer.Option("--busy", help="What came meanwhile: collect it into one turn, or followup one by one."),
]
DailyTokens = Annotated[
    int | None, typer.Option("--daily-tokens", metavar="N", help="Tokens a day, then it pauses; 0: no limit.")
]
DailyCost = Annotated[
    float | None,
    typer.Option("--daily-cost", metavar="DOLLARS", help="Cost a day, then it pauses; 0: no limit."),
]
Description = Annotated[str | None, typer.Option("--description", help="What it is for.")]
Role = Annotated[str | None, typer.Option("--role", help="Its part, like reviewer.")]
Module = Annotated[str | None, typer.Option("--module", help="What it looks after, like auth.")]
Display = Annotated[str | None, typer.Option("--display", help="The name people see.")]
Workspace = Annotated[
    str | None, typer.Option("--workspace", metavar="DIR", help="The directory it works in.")
]


def given(values: dict[str, Any]) -> dict[str, Any]:
    """Of a command's own variables, those that say something of an agent."""
    names = (
        "kind mode description role module display workspace provider command url reply busy"
        " daily_tokens daily_cost"
    )
    found = {name: values[name] for name in names.split()}
    if found["workspace"]:
        found["workspace"] = os.path.abspath(os.path.expanduser(found["workspace"]))
    return found
