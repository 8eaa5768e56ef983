"""hiboss/cli/quick/: a table of what plain commands take, and the root's help, from the Typer commands."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

from typer.main import get_command

from hiboss.cli.main import NOUNS, app, declared
from hiboss.cli.plain_commands import PlainCommands
from hiboss.cli.typer_commands import typer_commands

from .markdown import NOTICE

JSON = "json_"  # its callback is in quick/program.py
HELP = "hiboss/cli/quick/help_text.py"
ARGUMENTS = "hiboss/cli/quick/arguments.py"
HEAD = f'''"""{NOTICE}

What each plain command takes: the module and the function of the command, its positional arguments, and its
options by their spelling: the parameter, its kind, and what is passed when it is not given. A kind is `text`,
`texts` (repeated), `switch`, `number`, or a tuple of choices; of arguments `text` and `texts`, with `some`
before those that can be left out.
"""

from __future__ import annotations

TYPE_CHECKING = False  # nothing of this is needed to run a command
if TYPE_CHECKING:
    Kind = str | tuple[str, ...]
    Arguments = tuple[tuple[str, str], ...]
    Options = dict[str, tuple[str, Kind, str | bool | None]]

VERBS: dict[str, tuple[str, str, Arguments, Options]] = '''


def table() -> str:
    """Return the module with the table, as `ruff format` leaves it."""
    verbs = {words: _verb(noun, function, command) for words, noun, function, command in _plain()}
    format_ = [sys.executable, "-m", "ruff", "format", "--stdin-filename", ARGUMENTS, "-"]
    source = f"{HEAD}{verbs!r}\n"
    return subprocess.run(format_, input=source, capture_output=True, text=True, check=True).stdout


def root_help() -> str:
    """Return a module with what `hiboss --help` prints at 80 columns, which no wider terminal changes."""
    root = get_command(app)
    context = root.make_context("hiboss", [], resilient_parsing=True, terminal_width=78)
    text = root.get_help(context)
    assert text.isascii(), "it is printed as it is, whatever the encoding of the terminal"
    assert "\\" not in text and '"""' not in text, "it would have to be escaped here"
    return f'"""{NOTICE}"""\n\nROOT = """\\\n{text}\n"""\n'


def _plain() -> list[tuple[str, str, str, Any]]:
    """Return the words, the module, the function and the Typer command of each plain command.

    Those with an option that must be given are left to Typer.
    """
    found = []
    for noun in NOUNS:
        commands = declared(noun)
        if not isinstance(commands, PlainCommands):
            continue
        built = get_command(typer_commands(commands))
        known = getattr(built, "commands", {})
        for name, function in commands.functions:
            verb = name or function.__name__
            words, command = (noun, built) if commands.help is None else (f"{noun} {verb}", known[verb])
            if not any(one.required for one in command.params if one.param_type_name == "option"):
                found.append((words, noun, function.__name__, command))
    return found


def _verb(module: str, function: str, command: Any) -> tuple[Any, ...]:
    context = command.make_context(command.name, [], resilient_parsing=True)
    arguments = [one for one in command.params if one.param_type_name == "argument"]
    options = [one for one in command.params if one.param_type_name == "option"]
    for one in command.params:
        assert one.envvar is None and (one.callback is None) == (one.name != JSON), (
            f"the table cannot say {one}"
        )
    return (
        module,
        function,
        tuple((one.name, _argument(one)) for one in arguments),
        {word: (one.name, _kind(one), one.get_default(context)) for one in options for word in one.opts},
    )


def _argument(one: Any) -> str:
    assert one.type.name == "str" and one.nargs in (1, -1) and one.default is None, one
    return ("" if one.required else "some ") + ("text" if one.nargs == 1 else "texts")


def _kind(one: Any) -> Any:
    """Return the kind of an option. What the table cannot say must not be in a plain command."""
    assert not one.required and one.nargs == 1 and not one.secondary_opts and not one.count, one
    if one.is_flag:
        assert one.default is False, one
        return "switch"
    kind = {"str": "texts" if one.multiple else "text", "int": "number"}.get(one.type.name)
    return kind or tuple(one.type.choices)
