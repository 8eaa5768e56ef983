"""The root of the command line. It only mounts; a noun's file is imported when it is asked for."""

from __future__ import annotations

import gc

gc.disable()  # a command lives for milliseconds: collecting while importing costs a twentieth of them

import sys
from importlib import import_module
from typing import Annotated, Any, get_type_hints

import typer
from typer.core import TyperGroup
from typer.main import get_command, get_group
from typer.models import CommandInfo

from .. import __version__
from ..errors import HibossError
from . import output

NOUNS = {
    "up": "Set up when needed, then run the daemon here.",
    "setup": "Set this home up: boss, first agent, their tokens.",
    "envelope": "Send, list and deal with envelopes.",
    "agent": "Register, list, change and delete agents.",
    "daemon": "Start, stop and look at the daemon.",
}


class Nouns(TyperGroup):
    """The nouns; only the one asked for is imported, and of its verbs only that asked for is built."""

    _verb: str | None = None

    def list_commands(self, ctx: Any) -> list[str]:
        return list(NOUNS)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        self._verb = args[1] if len(args) > 1 else None
        return super().resolve_command(ctx, args)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in NOUNS:
            return None
        noun: typer.Typer = import_module(f"hiboss.cli.{cmd_name}").app
        asked = [verb for verb in noun.registered_commands if _name(verb) == self._verb]
        if asked and self._verb != cmd_name:  # building a verb costs milliseconds
            noun.registered_commands = asked
            _evaluate_annotations(asked[0])
            command: Any = get_group(noun)
        else:
            command = get_command(noun)
        command.name = cmd_name
        command.short_help = NOUNS[cmd_name]
        return command


def _evaluate_annotations(verb: CommandInfo) -> None:
    """Once, here: Typer would evaluate each of them six times."""
    if verb.callback:
        verb.callback.__annotations__ = get_type_hints(verb.callback, include_extras=True)


def _name(verb: CommandInfo) -> str:
    return verb.name or (verb.callback.__name__ if verb.callback else "")


app = typer.Typer(
    cls=Nouns,
    help="The post office for people and AI agents.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(value: bool) -> None:
    if value:
        output.line(f"hiboss {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    pass


def main() -> None:
    try:
        app(prog_name="hiboss")
    except HibossError as error:
        sys.exit(output.fail(error))
    except BrokenPipeError:
        # Whoever read our output has gone (`| head`): no more to say, also not at exit.
        sys.stderr.close()
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
