"""How plain commands (plain_commands.py) become Typer's: for help, completion, and whatever the quick way leaves."""

from __future__ import annotations

from typing import Any, get_type_hints

from . import options
from .commands import envelope_options, filter_options, message_options, run_options
from .options import noun, single_command
from .plain_commands import PlainCommands
from .positional import Commands

# Where the annotations of plain commands are declared.
DECLARING = (options, message_options, filter_options, envelope_options, run_options)


def typer_commands(plain: PlainCommands) -> Commands:
    """Return a Typer that has these commands, in their order."""
    app = single_command() if plain.help is None else noun(plain.help)
    names: dict[str, Any] = {}
    for module in DECLARING:
        names |= vars(module)
    for name, function in plain.functions:
        known = names | function.__globals__
        function.__annotations__ = get_type_hints(function, globalns=known, include_extras=True)
        app.command(name)(function)
    return app
