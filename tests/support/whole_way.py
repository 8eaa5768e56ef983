"""What Typer makes of the command line of a plain command, without running it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, wraps
from typing import Any

import typer
from typer.main import get_command

from hiboss.cli.main import declared
from hiboss.cli.plain_commands import PlainCommands
from hiboss.cli.typer_commands import typer_commands

Call = tuple[str, str, dict[str, Any]]  # the module, the function, and its parameters


def read(words: list[str]) -> Call | None:
    """Return the function that Typer calls for these words, with its parameters; None where it refuses or helps."""
    root, calls = _recording(words[0])
    calls.clear()
    try:
        root(args=words[1:], prog_name="hiboss", standalone_mode=False)
    except typer.TyperException:
        assert not calls
    return calls[0] if calls else None


@cache
def _recording(noun: str) -> tuple[Any, list[Call]]:
    """Return the Typer command of a noun, and a list in which it writes what it would call."""
    commands = declared(noun)
    assert isinstance(commands, PlainCommands)
    app, calls = typer_commands(commands), list[Call]()
    for one in app.registered_commands:
        assert one.callback is not None
        one.callback = _recorder(noun, one.callback, calls)
    return get_command(app), calls


def _recorder(noun: str, function: Callable[..., Any], calls: list[Call]) -> Callable[..., None]:
    @wraps(function)
    def record(**values: Any) -> None:
        calls.append((noun, function.__name__, values))

    return record
