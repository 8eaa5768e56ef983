"""docs/reference/cli.md, from the command line's own tree of commands."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

from typer.main import get_command

from hiboss.agents.providers.registry import BUILT_IN as PROVIDERS
from hiboss.channels.registry import BUILT_IN as ADAPTERS
from hiboss.cli.main import app
from hiboss.core import errors
from hiboss.core.option_models import Option, describe

from .markdown import code, page, table

gc.enable()  # the command line switches it off for its own short life

INTRO = """
`hiboss COMMAND --help` shows the same for one command. Every command takes `--json`. Results go to
standard output, errors and notes to standard error.

A command speaks as the one that `--token` names, else `--as`, else `HIBOSS_TOKEN`, else `HIBOSS_TOKEN_FILE`,
else as the boss. In a run, and in the shell of a known harness, it never speaks as the boss by default: there
the agent must be named.
"""
STATUSES = {
    errors.EXIT_REFUSED: "refused, not found, or not possible now",
    errors.EXIT_USAGE: "wrong usage: an unknown command or option, or a wrong value",
    errors.EXIT_UNREACHABLE: "no daemon answers",
    errors.EXIT_TIMEOUT: "no answer in time, or no mail",
    errors.EXIT_WATCHED: "another watch runs already",
    errors.EXIT_STOPPED: "the daemon stopped while the command waited",
}
INTERRUPTED = 130


def make() -> str:
    return page("Command line", INTRO, _statuses(), *(_command(*one) for one in commands()))


def commands() -> Iterator[tuple[str, Any, Any]]:
    """Every command that does something: its words, the command, and a context for it."""
    root = get_command(app)
    yield from _below(root, root.make_context("hiboss", [], resilient_parsing=True), "hiboss")


def options(command: Any) -> list[Any]:
    """The flags and arguments of a command that help shows."""
    return [one for one in command.params if not getattr(one, "hidden", False)]


def old_flags(command: Any) -> list[str]:
    """The flags of older versions that a command still takes; help does not show them."""
    return list(command.old_flags()) if hasattr(command, "old_flags") else []


def described(words: str, command: Any) -> list[tuple[str, Option]]:
    """The options that a command takes for the built-in providers or adapters, each with whose it is."""
    if not getattr(command, "described", False):
        return []
    kinds: dict[str, Any] = dict(ADAPTERS if words.endswith(" bind") else PROVIDERS)
    return [(name, option) for name, kind in kinds.items() for option in describe(kind.Settings)]


def _below(group: Any, context: Any, words: str) -> Iterator[tuple[str, Any, Any]]:
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if command.hidden:
            continue
        inner = type(context)(command, info_name=name, parent=context)
        is_group = hasattr(command, "list_commands")
        if not is_group or command.invoke_without_command:  # hiboss mcp does something of its own
            yield f"{words} {name}", command, inner
        if is_group:
            yield from _below(command, inner, f"{words} {name}")


def _command(words: str, command: Any, context: Any) -> str:
    usage = " ".join([words, *command.collect_usage_pieces(context)])
    rows = [[code(_names(one, context)), _meaning(one)] for one in options(command)]
    flags = table(("argument or flag", "meaning"), rows) if rows else ""
    parts = [f"## {words}", _help(command), f"Usage: `{usage}`", flags, _described(words, command)]
    return "\n\n".join(filter(None, parts))


def _described(words: str, command: Any) -> str:
    """The options of the built-in providers or adapters, which the help does not show."""
    rows = []
    for kind, option in described(words, command):
        value = "|".join(option.choices) or option.type.upper()
        rows.append([kind, code(f"{option.flag} {value}"), option.description])
    return table(("built-in", "its option", "meaning"), rows) if rows else ""


def _help(command: Any) -> str:
    """Its help; an example in it as code."""
    paragraphs = (command.help or "").split("\n\n")
    return "\n\n".join(_paragraph(" ".join(one.split())) for one in paragraphs)


def _paragraph(text: str) -> str:
    before, sign, example = text.partition("Example: ")
    return f"{before}{sign}`{example}`" if sign else text


def _names(option: Any, context: Any) -> str:
    if option.param_type_name == "argument":
        return str(option.make_metavar(context))
    names = ", ".join(sorted([*option.opts, *option.secondary_opts], key=len))
    return names if option.is_flag else f"{names} {option.make_metavar(context)}"


def _meaning(option: Any) -> str:
    words = [getattr(option, "help", None) or ""]
    if option.required:
        words.append("**Required.**")
    if option.multiple if hasattr(option, "multiple") else option.nargs == -1:
        words.append("" if "repeated" in words[0] else "May be repeated.")
    if option.default not in (None, False) and not callable(option.default) and not option.required:
        words.append(f"Default: `{option.default}`.")
    return " ".join(filter(None, words))


def _statuses() -> str:
    rows = [["0", "done", ""]]
    for status in sorted({cls.exit for cls in errors.tree()}):
        codes = [code(cls.code) for cls in errors.tree() if cls.exit == status]
        listed = ", ".join(codes) if status != errors.EXIT_REFUSED else "every other [error](errors.md)"
        rows.append([str(status), STATUSES[status], listed])
    rows.append([str(INTERRUPTED), "interrupted (Ctrl-C)", ""])
    return "## Exit statuses\n\n" + table(("status", "meaning", "errors"), rows)
