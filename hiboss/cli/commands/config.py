"""`hiboss config …`"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Annotated, Any

from ...core.errors import DaemonUnreachable
from ...core.paths import Home
from .. import output
from ..call import call, call_without_token
from ..daemon_process import check_settings
from ..options import As, Json, Token, flag, noun
from ..views import daemon as views

app = noun("Show, check and reload the settings.")


@app.command()
def show(
    changed: Annotated[bool, flag("--changed", None, "Only what differs from the default.")] = False,
    defaults: Annotated[
        bool, flag("--defaults", None, "Only the defaults, without file and environment.")
    ] = False,
    json_: Json = False,
) -> None:
    """Show every setting, its value and where it comes from.

    With a running daemon: the values it uses. Without one: the values a start would use.
    """
    try:
        result = (
            _without_daemon(Home(), {}, os.devnull) if defaults else call_without_token("config.show", {})
        )
    except DaemonUnreachable:
        output.note("No daemon runs here; these are the values that a start would use.")
        result = _without_daemon(Home(), os.environ)
    if changed:
        result["settings"] = [
            one for one in result["settings"] if one["value"] != one["default"] or one["next_start"]
        ]
    views.settings(result)


@app.command()
def check(json_: Json = False) -> None:
    """Check config.toml, the environment and the modules that they name."""
    from ...core.settings import describe

    home = Home()
    settings = describe(check_settings(home))
    changed = [one["setting"] for one in settings if one["value"] != one["default"]]
    output.answer({"file": home.config, "good": True, "differing": changed or None})


@app.command()
def reload(token: Token = None, as_: As = None, json_: Json = False) -> None:
    """Make the daemon read config.toml again, like SIGHUP. Wrong settings are refused."""
    result = call("config.reload", {}, token=token, profile=as_)
    facts = {"changed": result["changed"] or "nothing", "next-start": result["next_start"] or None}
    output.answer(result, facts)


def _without_daemon(home: Home, environ: Mapping[str, str], path: str | None = None) -> dict[str, Any]:
    from ...core.settings import Configuration, describe

    return {"file": home.config, "settings": describe(Configuration(path or home.config, environ))}
