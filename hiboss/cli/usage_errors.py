"""Wrong usage that Typer finds, as errors of ours: what was wrong and what would be right.

Imported only when the usage is wrong.
"""

from __future__ import annotations

import re
import shlex
import sys
from itertools import takewhile
from typing import Any

from typer._click.exceptions import BadParameter, MissingParameter, NoArgsIsHelpError, NoSuchOption
from typer._click.types import FloatParamType, IntParamType

from ..core.errors import WrongUsage
from ..core.quoting import nearest, printable
from .positional import EXTRA

TOO_MANY = "unexpected extra argument"
TEXTS = ("text", "once", "task", "subject", "reason", "description")
TOKENS = ("--as", "--token")
# Options that many commands have: somebody who gives one has not mistyped another.
SHARED = (
    *TOKENS,
    "--json",
    "--yes",
    "--address",
    "--number",
    "--after",
    "--timeout",
    "--reason",
    "--display",
)
EXAMPLES = {"--as": " lin", "--token": " @FILE"}


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
        return _unknown_option(error.option_name, context, path)
    if isinstance(error, MissingParameter) and error.param is not None:
        if error.param.param_type_name == "argument":
            return f"{_name(error.param).rstrip('…')} is missing: {_form(path, context)}"
        return f"the option {'/'.join(error.param.opts)} is missing"
    wanted = getattr(getattr(error, "param", None), "type", None)
    if isinstance(error, BadParameter) and hasattr(wanted, "choices"):
        return _choice(error)
    if isinstance(error, BadParameter) and isinstance(wanted, (IntParamType, FloatParamType)):
        return _number(error, wanted)
    if context is not None and context.meta.get(EXTRA) and TOO_MANY in error.format_message():
        return _too_many_words(context.meta[EXTRA], context, path)
    unknown = re.match(r"No such command '(.*?)'\.", error.format_message(), re.DOTALL)
    if unknown and context is not None:
        known = context.command.list_commands(context)
        return f"there is no command {unknown[1]}{nearest(unknown[1], known)}"
    text = str(error.format_message()).strip().removesuffix(".")
    return text if text.split()[0].isupper() else text[:1].lower() + text[1:]


def _unknown_option(given: str, context: Any, path: str) -> str:
    if given in SHARED and hasattr(context.command, "list_commands"):
        verb = "inbox" if path == "hiboss" else context.command.list_commands(context)[0]
        return f"put {given} after the command, like: {path} {verb} {given}{EXAMPLES.get(given, '')}"
    if given in TOKENS:
        return f"{path} takes no {given}: it needs no token"
    known = [name for option in context.command.get_params(context) for name in option.opts]
    hint = "" if given in SHARED else nearest(given, known)  # it is no typing error
    return f"there is no option {given}{hint}"


def _too_many_words(extra: list[str], context: Any, path: str) -> str:
    words = printable("value", " ".join(extra))
    many = "there is one word" if len(extra) == 1 else f"there are {len(extra)} words"
    advice = _unquoted_value(extra, context) or _advice(extra, context.params, path)
    if not advice:
        advice = f"usage: {' '.join([path, *context.command.collect_usage_pieces(context)])}"
    return f"{many} too many: {words}; {printable('value', advice)}"


def _unquoted_value(extra: list[str], context: Any) -> str:
    """What to do when the value of an option was not put in quotes; empty when none was given."""
    for option in context.command.params:
        value = context.params.get(option.name)
        if option.param_type_name == "option" and option.name in TEXTS and value:
            return f"put the text in quotes: {option.opts[0]} {_quoted(value, *extra)}"
        if option.opts == ["--cron"] and value:
            return 'put the expression in quotes, like: --cron "0 9 * * *"'
    return ""


def _advice(extra: list[str], given: dict[str, Any], path: str) -> str:
    """The command that was probably meant; empty when there is no telling."""
    words = " ".join(extra)
    match path.removeprefix("hiboss "):
        case "send" | "reply" as verb:
            first = given["to" if verb == "send" else "id_"]
            return f"put the text in quotes: {path} {first} {_quoted(given['text'], *extra)}"
        case "chat":
            return f"to send one message: {path} {given['agent']} --once {_quoted(*extra)}"
        case "inbox" | "envelope list" if all(re.fullmatch(r"e?\d+", one) for one in extra):
            return f"to show envelopes: hiboss read {words}"
        case "inbox":
            return f"for the mail of one sender: hiboss inbox --from {extra[0]}"
        case "team":
            return f"for one agent: hiboss agent status {extra[0]}"
        case "envelope send":
            text = _quoted(*extra[1:]) if extra[1:] else '"hello"'
            return f"give --to and --text, or: hiboss send {extra[0]} {text}"
        case "envelope get":
            return f"to show several: hiboss read {given['id_']} {words}"
        case "cron explain":
            return f'put the expression in quotes, like: {path} "0 9 * * *"'
    return ""


def _quoted(*words: str) -> str:
    """The words as one word of a shell."""
    text = " ".join(words)
    return shlex.quote(text) if set(text) & set('"$`\\!') else f'"{text}"'


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
    return f"{option} cannot be {value or repr(value)}{nearest(value, known)}; use one of: {', '.join(known)}"


def _number(error: Any, wanted: Any) -> str:
    least = getattr(wanted, "min", None)
    bound = "" if least is None else f" from {least}"
    kind = "a whole number" if isinstance(wanted, IntParamType) else "a number"
    given = error.message.partition(" is not ")[0].strip("'")
    return f"{'/'.join(error.param.opts)} must be {kind}{bound}, not {given[:40] or repr(given)}"
