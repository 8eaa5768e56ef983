"""Commands as plain functions, for those that are called often: importing one imports no Typer.

Each function is the whole command: its parameters say in their annotations how they are written on the command
line, its docstring is the help. The annotations are names that only a type checker imports; typer_commands.py
looks them up when Typer is needed. A function returns its exit status where that is not 0.
"""

from __future__ import annotations

TYPE_CHECKING = False  # importing typing would cost every command 3 ms
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    Function = TypeVar("Function", bound=Callable[..., int | None])

COMPLETE = "_HIBOSS_COMPLETE"  # set by the shell when it asks for completions: then Typer must read the line


class PlainCommands:
    """The commands of one noun; without a help of its own it is a single command, like `hiboss send`."""

    def __init__(self, help_: str | None = None) -> None:
        self.help = help_
        self.functions: list[tuple[str | None, Callable[..., int | None]]] = []

    def command(self, name: str | None = None) -> Callable[[Function], Function]:
        """Add a command; without a name it is called as its function."""

        def add(function: Function) -> Function:
            self.functions.append((name, function))
            return function

        return add
