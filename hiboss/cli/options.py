"""The options that many commands share, and how a group of commands is made."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from . import output
from .positional import Commands


def noun(help_: str) -> Commands:
    """A group of commands. Typer's own completion is off, since each group can be the root (see main.run)."""
    return Commands(
        help=help_,
        no_args_is_help=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        add_completion=False,
    )


def single_command() -> Commands:
    """A command without a noun, like `hiboss send`."""
    return Commands(rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False)


def flag(name: str, metavar: str | None, help_: str, *more: str) -> Any:
    """An option: its name, its value, what it is for."""
    return typer.Option(name, *more, metavar=metavar, help=help_)


def argument(metavar: str, help_: str) -> Any:
    """A positional value; `[NAME]` may be left out, `ID…` may be repeated."""
    return typer.Argument(metavar=metavar, help=help_, show_default=False)


def _switch_json(value: bool) -> bool:
    output.Mode.json = output.Mode.json or value
    return value


Text = str | None
Texts = list[str] | None

Token = Annotated[
    Text,
    flag("--token", "TOKEN", "Use this token: @FILE reads a file, - standard input. Or set HIBOSS_TOKEN."),
]
SPEAK_AS = "Speak as NAME, with the token stored here; by default the boss (in an agent's shell, name one)."
As = Annotated[Text, flag("--as", "NAME", SPEAK_AS)]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.", callback=_switch_json)]
Yes = Annotated[bool, flag("--yes", None, "Do not ask.", "-y")]
Profile = Annotated[
    bool | None,
    flag("--profile/--no-profile", None, "Store the token for --as NAME, or not; by default as before."),
]
NoProfile = Annotated[bool, flag("--no-profile", None, "Do not store the token for --as NAME.")]
Address = Annotated[
    Text, flag("--address", "ADDRESS", "Whose box (boss only): kai, user:ann, channel:folder:x, …")
]
Number = Annotated[int | None, flag("-n", "N", "How many, 1 to 100; by default 10.", "--number")]
After = Annotated[Text, flag("--after", "CURSOR", "Continue after the page with this next-cursor.")]
CameAfter = Annotated[Text, flag("--after", "CURSOR", "Only mail that came after this next-cursor.")]
Timeout = Annotated[str, flag("--timeout", "TIME", "How long to wait, like 55s or 1h.")]
Reason = Annotated[Text, flag("--reason", "TEXT", "Why, for the record.")]
Display = Annotated[Text, flag("--display", "NAME", "The name people see.")]

EnvelopeId = Annotated[str, argument("ID", "Envelope id, like e81.")]
EnvelopeIds = Annotated[list[str], argument("ID…", "Envelope ids, like e81 e82.")]
