"""Calling an operation of the daemon, with the token of the one who speaks."""

from __future__ import annotations

import json
import re

from .. import __version__
from ..core.errors import AgentNotNamed, BadText, BadToken, NotSetUp, UnreadableFile
from ..core.paths import Home
from . import client, output
from .credentials import Unnamed, find_token

TYPE_CHECKING = False  # importing typing would cost every command 3 ms
if TYPE_CHECKING:
    from typing import Any


def call(
    method: str,
    params: dict[str, Any],
    *,
    token: str | None = None,
    profile: str | None = None,
    timeout: float = client.TIMEOUT,
) -> Any:
    """Call an operation as the one that options and environment name, else as the boss."""
    home = Home()
    return call_as(home, method, params, find_token(home, token, profile), timeout)


def call_for_all(
    method: str, params: dict[str, Any], records: str, *, token: str | None, profile: str | None
) -> Any:
    """Call an operation that lists records, until the last page; return the pages as one result."""
    home = Home()
    found = find_token(home, token, profile)  # once: it may be read from standard input
    result = call_as(home, method, params, found)
    while result["next"] is not None:
        page = call_as(home, method, params | {"after": result["next"]}, found)
        result = page | {records: result[records] + page[records]}
    return result


def call_without_token(method: str, params: dict[str, Any]) -> Any:
    """Call an operation that needs no token; a revoked one in the environment does no harm."""
    return call_as(Home(), method, params, None)


def call_with_any_token(method: str, params: dict[str, Any]) -> Any:
    """Call an operation that needs no token but tells some callers more, with a token if there is a valid one."""
    try:
        return call(method, params)
    except (AgentNotNamed, BadToken, NotSetUp, UnreadableFile):
        return call_without_token(method, params)


def call_as(
    home: Home, method: str, params: dict[str, Any], token: str | None, timeout: float = client.TIMEOUT
) -> Any:
    """Call an operation with a token that was found already."""
    wanted = {name: value for name, value in params.items() if value is not None}
    if token is not None:
        wanted["token"] = str(token)
    if isinstance(token, Unnamed):
        wanted["unnamed"] = True
    _check_utf8(wanted)
    notice_other_version(home)
    with output.ProgressBar("waiting for the daemon") as waiting:
        return client.call(home, method, wanted, timeout=timeout, waiting=waiting)


def timeout_for(wait: str | None) -> float:
    """How long to wait for the answer of an operation that itself waits this long; generously."""
    numbers = re.findall(r"(\d{1,6})(?:\.\d*)?([hms])", wait or "")
    return client.TIMEOUT + sum(int(number) * {"h": 3600, "m": 60, "s": 1}[unit] for number, unit in numbers)


def _check_utf8(params: dict[str, Any]) -> None:
    """Refuse what the terminal gave us in another encoding than UTF-8."""
    for name, value in params.items():
        try:
            json.dumps(value, ensure_ascii=False).encode()  # also what is inside --meta
        except UnicodeEncodeError:
            if name == "token":
                raise BadToken() from None
            raise BadText(field=name, why="it is no UTF-8 text") from None


def notice_other_version(home: Home) -> None:
    """Print a note when the running daemon has another version, as after an upgrade."""
    try:
        with open(home.pid_file) as file:
            words = file.read(100).split()
    except OSError:
        return
    if len(words) < 2 or words[1] == __version__:
        return
    from .daemon_process import holder

    if holder(home) is not None:
        output.note(
            f"note: the running daemon is {words[1]}, this is {__version__}; run: hiboss daemon restart"
        )
