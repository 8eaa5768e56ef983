"""The root of the command line: it finds the command and runs it. Each noun is imported only when called."""

from __future__ import annotations

import gc

gc.disable()  # a command lives for milliseconds; collecting during the imports takes 5 % of them

import os
import sys
from importlib import import_module
from typing import Annotated, Any, get_type_hints

import typer
from typer.core import TyperGroup
from typer.main import get_command
from typer.models import CommandInfo

from .. import __version__
from . import output
from .ending import run_to_end
from .plain_commands import COMPLETE, PlainCommands
from .positional import HELP

NOUNS = {
    "up": "Set up this home if needed, and run the daemon here.",
    "setup": "Set up this home: the boss, a first agent, their tokens.",
    "chat": "Talk with an agent in the terminal.",
    "send": 'Send a message: hiboss send nex "hello".',
    "inbox": "List your inbox.",
    "read": "Show envelopes in full and mark them as read.",
    "reply": "Answer an envelope.",
    "trace": "Follow a message: how far it got, and what came of it.",
    "prime": "Show who you are, your team, and what waits for you.",
    "team": "Show the state of every agent.",
    "presence": "Show who is here, and who is away.",
    "notify": "Be told once when an agent is idle, waits, finished or failed.",
    "stop": "Stop everything, until hiboss go: hiboss stop --all.",
    "go": "Let everybody work again after hiboss stop --all.",
    "ask": "Ask a question with options, answer one, list and cancel them.",
    "run": "List, show, follow, pause and cancel the runs of agents.",
    "control": "Pause, resume, cancel, reorder and hand over what agents do.",
    "envelope": "Send, list, read and finish envelopes.",
    "message": "List, show, edit, delete and restore messages.",
    "thread": "List threads, and show one with its messages.",
    "conversation": "List and read conversations, and mark them as read.",
    "group": "Create groups, and manage who is in them.",
    "reaction": "Put an emoji on a message, or take it back.",
    "poll": "Get the mail that this session has not been shown yet.",
    "watch": "Wait for mail, print it, and end.",
    "hooks": "Let mail reach the Claude Code or Codex that is open in a terminal.",
    "mcp": "Serve an MCP client, or put hiboss into the settings of one.",
    "cron": "Send messages by a schedule.",
    "agent": "Register, list, change, pause and delete agents.",
    "user": "Register, list and delete other people who have a box here.",
    "lane": "List, retry, pause and resume deliveries to an address.",
    "boss": "Show or change your name, your time zone, your chat and your token.",
    "web": "Open hiboss in a browser, or print the link for it.",
    "webhook": "Let programs post to agents, and post facts to web servers.",
    "contact": "List, approve and block the people and groups that write to your accounts.",
    "permission": "Show or change the level that each operation needs.",
    "config": "Show, check and reload the settings.",
    "daemon": "Start, stop and inspect the daemon.",
    "completion": "Complete commands, names and ids with the tab key.",
}


class Nouns(TyperGroup):
    """The nouns, each imported when it is called."""

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
    help="Send mail between people and AI agents.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings=HELP,
)


def _version(context: typer.Context, value: bool) -> None:
    if value and not context.resilient_parsing:  # which is set while a line is completed
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
    sys.exit(run_to_end(lambda: _run(sys.argv[1:])))


def _run(words: list[str]) -> Any:
    """Run a command by Typer, and report what only Typer raises."""
    try:
        return run(words)
    except typer.TyperException as error:
        output.Mode.json = "--json" in sys.argv
        return output.misused(error)
    except typer.Abort:
        output.note("Aborted.")
        return output.ended("nothing was done: the question was not answered", 1)


def run(words: list[str]) -> Any:
    """Run `noun verb …` without building the root and the other verbs, which takes 10 ms."""
    if len(words) > 1 and words[0] in NOUNS:
        place = _noun(words[0])
        if len(place.registered_commands) > 1 or place.registered_groups:
            return _go(place, words, 1)
    return app(args=words, prog_name="hiboss", standalone_mode=False)


def _go(place: typer.Typer, words: list[str], depth: int) -> Any:
    """Follow the words through groups (`agent token rotate`) to a verb; else let Typer find it."""
    wanted = words[depth] if depth < len(words) else ""
    for verb in place.registered_commands:
        if _name(verb) == wanted:
            name = " ".join(["hiboss", *words[: depth + 1]])
            return _build(place, verb)(args=words[depth + 1 :], prog_name=name, standalone_mode=False)
    for group in place.registered_groups:
        if group.name == wanted and group.typer_instance:
            return _go(group.typer_instance, words, depth + 1)
    return app(args=words, prog_name="hiboss", standalone_mode=False)


def declared(noun: str) -> typer.Typer | PlainCommands:
    """Return the commands of a noun as its module declares them."""
    found: typer.Typer | PlainCommands = import_module(f"hiboss.cli.commands.{noun}").app
    return found


def _noun(name: str) -> typer.Typer:
    found = declared(name)
    if not isinstance(found, PlainCommands):
        return found
    from .typer_commands import typer_commands

    return typer_commands(found)


def _build(noun: typer.Typer, verb: CommandInfo) -> Any:
    assert verb.callback
    # Evaluated once, here: Typer would evaluate them six times.
    verb.callback.__annotations__ = get_type_hints(verb.callback, include_extras=True)
    noun.registered_commands, noun.registered_groups, noun.registered_callback = [verb], [], None
    return get_command(noun)


def _name(verb: CommandInfo) -> str:
    return verb.name or (verb.callback.__name__ if verb.callback else "")


if __name__ == "__main__":
    main()
