"""The root of the command line. It only mounts; a noun's file is imported when it is asked for."""

from __future__ import annotations

import gc

gc.disable()  # a command lives for milliseconds: collecting while importing costs a twentieth of them

import os
import sys
from importlib import import_module
from typing import Annotated, Any, get_type_hints

import typer
from typer.core import TyperGroup
from typer.main import get_command
from typer.models import CommandInfo

from .. import __version__
from ..errors import HibossError, nearest
from . import output

NOUNS = {
    "up": "Set up when needed, then run the daemon here.",
    "setup": "Set this home up: boss, first agent, their tokens.",
    "envelope": "Send, list and deal with envelopes.",
    "agent": "Register, list, change and delete agents.",
    "daemon": "Start, stop and look at the daemon.",
}
HELP = {"help_option_names": ["-h", "--help"]}


class Nouns(TyperGroup):
    """The nouns, each imported when it is asked for."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(NOUNS)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and args[0] not in NOUNS and not args[0].startswith("-"):
            ctx.fail(f"No such command '{args[0]}'{nearest(args[0], list(NOUNS))}.")
        return super().resolve_command(ctx, args)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in NOUNS:
            return None
        command = get_command(_noun(cmd_name))
        command.name = cmd_name
        command.short_help = NOUNS[cmd_name]
        return command


app = typer.Typer(
    cls=Nouns,
    help="The post office for people and AI agents.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings=HELP,
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
    output.prepare()
    try:
        status = run(sys.argv[1:]) or 0
        if sys.stdout:
            sys.stdout.flush()  # here, where a reader that has gone can still be told apart
    except HibossError as error:
        status = output.fail(error)
    except typer.TyperException as error:
        status = output.misused(error, json_="--json" in sys.argv)
    except typer.Abort:
        output.note("Aborted.")
        status = 1
    except BrokenPipeError:
        # Whoever read our output has gone (`| head`): no more to say, also not at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        status = 1
    except KeyboardInterrupt:
        status = 130
    sys.exit(status)


def run(words: list[str]) -> Any:
    """`noun verb …` goes straight to its verb: building root, noun and the other verbs takes 10 ms."""
    if len(words) > 1 and words[0] in NOUNS:
        noun = _noun(words[0])
        for verb in noun.registered_commands:
            if _name(verb) == words[1] and len(noun.registered_commands) > 1:
                name = f"hiboss {words[0]} {words[1]}"
                return _build(noun, verb)(args=words[2:], prog_name=name, standalone_mode=False)
    return app(args=words, prog_name="hiboss", standalone_mode=False)


def _noun(name: str) -> typer.Typer:
    noun: typer.Typer = import_module(f"hiboss.cli.{name}").app
    return noun


def _build(noun: typer.Typer, verb: CommandInfo) -> Any:
    assert verb.callback
    # Evaluated once, here: Typer would do it six times.
    verb.callback.__annotations__ = get_type_hints(verb.callback, include_extras=True)
    verb.context_settings = HELP
    noun.registered_commands = [verb]
    return get_command(noun)


def _name(verb: CommandInfo) -> str:
    return verb.name or (verb.callback.__name__ if verb.callback else "")


if __name__ == "__main__":
    main()
