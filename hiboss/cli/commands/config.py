"""`hiboss config …`"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Annotated, Any

from ...core.errors import DaemonUnreachable
from ...core.paths import Home
from .. import output
from ..session import As, Json, Token, call, call_openly, flag, noun

app = noun("The settings, and where each comes from.")


@app.command()
def show(
    changed: Annotated[bool, flag("--changed", None, "Only what differs from the default.")] = False,
    defaults: Annotated[
        bool, flag("--defaults", None, "The defaults alone, whatever file and environment say.")
    ] = False,
    json_: Json = False,
) -> None:
    """Show every setting, its value and where it comes from.

    A running daemon says what is in force there; else this says what a start would use.
    """
    try:
        result = _without_daemon(Home(), {}, os.devnull) if defaults else call_openly("config.show", {})
    except DaemonUnreachable:
        output.note("No daemon runs here; this is what a start would use.")
        result = _without_daemon(Home(), os.environ)
    if changed:
        result["settings"] = [
            one for one in result["settings"] if one["value"] != one["default"] or one["next_start"]
        ]
    output.settings(result)


@app.command()
def check(json_: Json = False) -> None:
    """Say what is wrong with config.toml or the environment."""
    result = _without_daemon(Home(), os.environ)
    changed = [one["setting"] for one in result["settings"] if one["value"] != one["default"]]
    output.answer({"file": result["file"], "good": True, "differing": changed or None})


@app.command()
def reload(token: Token = None, as_: As = None, json_: Json = False) -> None:
    """Let the daemon read config.toml again, as SIGHUP does. Wrong settings are refused."""
    result = call("config.reload", {}, token=token, profile=as_)
    facts = {"changed": result["changed"] or "nothing", "next-start": result["next_start"] or None}
    output.answer(result, facts)


def _without_daemon(home: Home, environ: Mapping[str, str], path: str | None = None) -> dict[str, Any]:
    from ...core.settings import Configuration, describe  # the table, which other commands need not load

    return {"file": home.config, "settings": describe(Configuration(path or home.config, environ))}
