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
from ..core.errors import HibossError
from . import output

NOUNS = {
    "up": "Set up when needed, then run the daemon here.",
    "setup": "Set this home up: boss, first agent, their tokens.",
    "chat": "Talk with an agent, here in the terminal.",
    "send": 'Send a message: hiboss send nex "hello".',
    "inbox": "Look into your inbox.",
    "read": "Read an envelope.",
    "reply": "Answer an envelope.",
    "team": "How all agents stand.",
    "run": "What agents did and are doing; stopping it.",
    "envelope": "Send, list and deal with envelopes.",
    "poll": "Get the mail you were not told of yet.",
    "watch": "Wait for mail, print a digest of it, and end.",
    "cron": "Send by a schedule.",
    "agent": "Register, list, change and delete agents.",
    "user": "People beside you who have a box here.",
    "lane": "What does not get through to a channel, and letting it.",
    "boss": "Your name, your time zone, your token.",
    "permission": "Who may do what.",
    "config": "The settings, and where each comes from.",
    "daemon": "Start, stop and look at the daemon.",
    "completion": "Let the tab key complete commands, names and ids.",
}
HELP = {"help_option_names": ["-h", "--help"]}
COMPLETE = "_HIBOSS_COMPLETE"  # set by the shell when it asks what could come next
INTERRUPTED = 130


class Nouns(TyperGroup):
    """The nouns, each imported when it is asked for."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(NOUNS)

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


def _version(context: typer.Context, value: bool) -> None:
    if value and not context.resilient_parsing:  # which is how a line is looked at to complete it
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
    if COMPLETE in os.environ:
        from .completion import suggest

        sys.exit(suggest(get_command(app), os.environ[COMPLETE]))
    sys.exit(_status())


def _status() -> int:
    """Run what was asked; however it ends, say so in the way that was asked for."""
    try:
        status: int = run(sys.argv[1:]) or 0
        if sys.stdout:
            sys.stdout.flush()  # here, where a reader that has gone can still be told apart
        if status == INTERRUPTED:  # Typer's word for Ctrl-C
            raise KeyboardInterrupt
        return status
    except HibossError as error:
        return output.fail(error)
    except typer.TyperException as error:
        output.Mode.json = "--json" in sys.argv
        return output.misused(error)
    except typer.Abort:
        output.note("Aborted.")
        return output.ended("nothing was done, for want of an answer", 1)
    except BrokenPipeError:
        # Whoever read our output has gone (`| head`): no more to say, also not at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 1
    except KeyboardInterrupt:
        return output.ended("interrupted; what was asked may still happen", INTERRUPTED)
    except Exception as error:
        if not output.Mode.json:
            raise  # a defect of ours: the place where it happened is all there is to say
        return output.ended(f"hiboss failed at this, a defect of ours: {error!r}", 1)


def run(words: list[str]) -> Any:
    """`noun verb …` goes straight to its verb: building root, noun and the other verbs takes 10 ms."""
    if len(words) > 1 and words[0] in NOUNS:
        place = _noun(words[0])
        if len(place.registered_commands) > 1 or place.registered_groups:
            return _go(place, words, 1)
    return app(args=words, prog_name="hiboss", standalone_mode=False)


def _go(place: typer.Typer, words: list[str], depth: int) -> Any:
    """Follow the words through groups in groups (`agent token rotate`) to a verb; else let Typer look."""
    wanted = words[depth] if depth < len(words) else ""
    for verb in place.registered_commands:
        if _name(verb) == wanted:
            name = " ".join(["hiboss", *words[: depth + 1]])
            return _build(place, verb)(args=words[depth + 1 :], prog_name=name, standalone_mode=False)
    for group in place.registered_groups:
        if group.name == wanted and group.typer_instance:
            return _go(group.typer_instance, words, depth + 1)
    return app(args=words, prog_name="hiboss", standalone_mode=False)


def _noun(name: str) -> typer.Typer:
    noun: typer.Typer = import_module(f"hiboss.cli.commands.{name}").app
    return noun


def _build(noun: typer.Typer, verb: CommandInfo) -> Any:
    assert verb.callback
    # Evaluated once, here: Typer would do it six times.
    verb.callback.__annotations__ = get_type_hints(verb.callback, include_extras=True)
    verb.context_settings = HELP
    noun.registered_commands, noun.registered_groups = [verb], []
    return get_command(noun)


def _name(verb: CommandInfo) -> str:
    return verb.name or (verb.callback.__name__ if verb.callback else "")


if __name__ == "__main__":
    main()
