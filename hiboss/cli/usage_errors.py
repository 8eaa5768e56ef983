"""Wrong usage that Typer finds, as errors of ours: what was wrong and what would be right.

Imported only when the usage is wrong.
"""

from __future__ import annotations

import re
import sys
from itertools import takewhile
from typing import Any

from typer._click.exceptions import BadParameter, MissingParameter, NoArgsIsHelpError, NoSuchOption
from typer._click.types import FloatParamType, IntParamType

from ..core.errors import WrongUsage
from ..core.quoting import nearest


def asks_for_help(error: Any) -> bool:
    """Whether the verb after a noun is missing: then the help is more useful than an error."""
    return isinstance(error, NoArgsIsHelpError)


def explained(error: Any) -> WrongUsage:
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else _typed_path()
    return WrongUsage(detail=_detail(error, context, path), help=f"{path} --help")


def _typed_path() -> str:
    """The words before the first option, for errors of which Typer does not say where they happened."""
    words = list(takewhile(lambda word: not word.startswith("-"), sys.argv[1:]))
    return " ".join(["hiboss", *words])


def _detail(error: Any, context: Any, path: str) -> str:
    if asks_for_help(error):
        return f"a command is missing after {path}"
    if isinstance(error, NoSuchOption):
        known = [name for option in context.command.get_params(context) for name in option.opts]
        return f"there is no option {error.option_name}{nearest(error.option_name, known)}"
    if isinstance(error, MissingParameter) and error.param is not None:
        if error.param.param_type_name == "argument":
            return f"{_name(error.param).rstrip('…')} is missing: {_form(path, context)}"
        return f"the option {'/'.join(error.param.opts)} is missing"
    wanted = getattr(getattr(error, "param", None), "type", None)
    if isinstance(error, BadParameter) and hasattr(wanted, "choices"):
        return _choice(error)
    if isinstance(error, BadParameter) and isinstance(wanted, (IntParamType, FloatParamType)):
        return _number(error, wanted)
    unknown = re.match(r"No such command '(.*?)'\.", error.format_message(), re.DOTALL)
    if unknown and context is not None:
        known = context.command.list_commands(context)
        return f"there is no command {unknown[1]}{nearest(unknown[1], known)}"
    text = str(error.format_message()).strip().removesuffix(".")
    return text if text.split()[0].isupper() else text[:1].lower() + text[1:]


def _name(argument: Any) -> str:
    return str(argument.metavar or argument.name)


def _form(path: str, context: Any) -> str:
    """The command with its positional arguments, like `hiboss reply ID [TEXT]`."""
    arguments = [one for one in context.command.params if one.param_type_name == "argument"]
    return " ".join([path, *map(_name, arguments)])


def _choice(error: Any) -> str:
    known = [str(choice) for choice in error.param.type.choices]
    option = "/".join(error.param.opts)
    given = re.match(r"'(.*)' is not one of", error.message, re.DOTALL)
    value = given[1] if given else ""
    return (
        f"{option} cannot be {value or repr(value)}{nearest(value, known)}; right would be {', '.join(known)}"
    )


def _number(error: Any, wanted: Any) -> str:
    least = getattr(wanted, "min", None)
    bound = "" if least is None else f" from {least}"
    kind = "a whole number" if isinstance(wanted, IntParamType) else "a number"
    given = error.message.partition(" is not ")[0].strip("'")
    return f"{'/'.join(error.param.opts)} must be {kind}{bound}, not {given[:40] or repr(given)}"
