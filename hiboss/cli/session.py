"""Who calls, and calling: token, profile, home, and the options every command has."""

from __future__ import annotations

import json
import os
import re
import sys
from typing import Annotated, Any

import typer

from .. import __version__
from ..core.errors import (
    BadText,
    BadToken,
    InvalidParams,
    NotUtf8,
    UnknownProfile,
    UnreadableFile,
    WrongUsage,
)
from ..core.paths import Home
from ..core.quoting import nearest
from . import client, output
from .daemon_process import TOKEN_VARIABLE, holder

BOSS = "boss"


def noun(help_: str) -> typer.Typer:
    """A group of commands. Without Typer's own completion: each may be the root (see main.run)."""
    return typer.Typer(
        help=help_,
        no_args_is_help=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        add_completion=False,
    )


def flag(name: str, metavar: str | None, help_: str, *more: str) -> Any:
    """An option, in the order a person reads it: name, what it takes, what it is for."""
    return typer.Option(name, *more, metavar=metavar, help=help_)


def _switch_json(value: bool) -> bool:
    output.Mode.json = output.Mode.json or value
    return value


Token = Annotated[
    str | None,
    typer.Option(
        "--token",
        metavar="TOKEN",
        help="Token: - for standard input, @FILE for a file. Or HIBOSS_TOKEN, or --as.",
    ),
]
As = Annotated[
    str | None, typer.Option("--as", metavar="NAME", help="Use the token kept for NAME (boss, nex, …).")
]
Profile = Annotated[
    bool | None,
    typer.Option("--profile/--no-profile", help="Keep it for --as NAME, or not; by default as before."),
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.", callback=_switch_json)]
Address = Annotated[
    str | None,
    typer.Option("--address", metavar="ADDRESS", help="Whose box, for the boss: agent:kai, user:boss, …"),
]


def call_openly(method: str, params: dict[str, Any]) -> Any:
    """Call an operation that needs no token; one that has ended, in the environment, does no harm."""
    return _call(Home(), method, params, None)


def call(
    method: str,
    params: dict[str, Any],
    *,
    token: str | None = None,
    profile: str | None = None,
    timeout: float | None = None,
    in_person: bool = False,
) -> Any:
    """Call an operation in the name of whoever the options and the environment say."""
    home = Home()
    find = find_person if in_person else find_token
    return _call(home, method, params, find(home, token, profile), timeout)


def call_in_person(method: str, params: dict[str, Any], **options: Any) -> Any:
    """The same for the everyday words: nobody named means the boss, whose machine this is."""
    return call(method, params, in_person=True, **options)


def find_person(home: Home, token: str | None, profile: str | None) -> str | None:
    """--token, else --as, else HIBOSS_TOKEN, else the token kept for the boss."""
    found = find_token(home, token, profile)
    return found if found is not None or not home.has_profile(BOSS) else _from_profile(home, BOSS)


def patience(wait: str | None) -> float:
    """How long to wait for the answer of an operation that itself waits so long; generously."""
    numbers = re.findall(r"(\d{1,6})(?:\.\d*)?([hms])", wait or "")
    return client.TIMEOUT + sum(int(number) * {"h": 3600, "m": 60, "s": 1}[unit] for number, unit in numbers)


def _call(
    home: Home, method: str, params: dict[str, Any], given: str | None, timeout: float | None = None
) -> Any:
    wanted = {name: value for name, value in params.items() if value is not None}
    if given is not None:
        wanted["token"] = given
    _check_utf8(wanted)
    notice_other_version(home)
    with output.Progress(f"waiting for {method}") as waiting:
        if timeout is None:
            return client.call(home, method, wanted, waiting=waiting)
        return client.call(home, method, wanted, timeout=timeout, waiting=waiting)


def _check_utf8(params: dict[str, Any]) -> None:
    """What the terminal gave us in another encoding than UTF-8 stops here."""
    for name, value in params.items():
        try:
            json.dumps(value, ensure_ascii=False).encode()  # also what lies inside --meta
        except UnicodeEncodeError:
            if name == "token":
                raise BadToken() from None
            raise BadText(field=name, why="it is no UTF-8 text") from None


def make_sure(yes: bool, what: str, question: str, help_: str) -> None:
    """Ask before something that cannot be undone, unless --yes was given."""
    if yes:
        return
    if output.Mode.json or not output.on_terminal(sys.stdin):
        detail = f"nobody can be asked here whether to {what}; give --yes if you are sure"
        raise WrongUsage(detail=detail, help=help_)
    typer.confirm(question, abort=True)


def find_token(home: Home, token: str | None, profile: str | None) -> str | None:
    """--token, else --as, else HIBOSS_TOKEN."""
    if token is not None and profile is not None:
        raise InvalidParams(detail="give --token or --as, not both")
    if profile is not None:
        return _from_profile(home, profile)
    if token is None:
        return os.environ.get(TOKEN_VARIABLE, "").strip() or None
    if token == "-":
        found = _token_in("-")
    elif token.startswith("@"):
        found = _token_in(token[1:])
    else:
        output.note(
            "warning: a token on the command line shows in the process list; use --token @FILE or --as"
        )
        found = token.strip()
    if not found:
        raise BadToken()
    return found


def _token_in(path: str) -> str:
    try:
        return read_file(path).strip()
    except NotUtf8:
        raise BadToken() from None


def _from_profile(home: Home, name: str) -> str:
    known = home.profiles()
    if name.lower() not in known:
        listed = ", ".join(known) or "none (run: hiboss setup)"
        raise UnknownProfile(name=name, hint=nearest(name, known), profiles=listed)
    return read_file(home.profile(name.lower())).strip()


def read_file(path: str, advice: str = "") -> str:
    """The text of a file, or of standard input for `-`; `advice` for one that is no text."""
    called = "standard input" if path == "-" else path
    if path == "-" and sys.stdin is None:
        raise UnreadableFile(path=called, why="it is closed")
    try:
        if path == "-":
            return sys.stdin.buffer.read().decode()
        with open(os.path.expanduser(path), encoding="utf-8", newline="") as file:
            return file.read()
    except OSError as error:
        raise UnreadableFile(path=path, why=error.strerror or str(error)) from None
    except UnicodeDecodeError:
        raise NotUtf8(path=called, advice=advice) from None


def notice_other_version(home: Home) -> None:
    """A daemon of another version may still run after an upgrade: say so, and go on."""
    try:
        with open(home.pid_file) as file:
            words = file.read(100).split()
    except OSError:
        return
    if len(words) > 1 and words[1] != __version__ and holder(home) is not None:
        output.note(
            f"note: the running daemon is {words[1]}, this is {__version__}; run: hiboss daemon restart"
        )
