"""Text from a file or standard input, paths, ids, and the question before something that cannot be undone."""

from __future__ import annotations

import os
import sys

from ..core.errors import InvalidParams, NotUtf8, TooLarge, UnreadableFile, WrongUsage

SEND_AS_FILE = "; send it with --attachment"
_MOST_BYTES = 64 * 1024 * 1024  # read into memory; the daemon has a smaller limit. A device has no end.


def read_file(path: str, advice: str = "") -> str:
    """Return the text of a file, or of standard input for `-`; `advice` is for a file that is no text."""
    called = "standard input" if path == "-" else path
    if path == "-" and sys.stdin is None:
        raise UnreadableFile(path=called, why="it is closed")
    try:
        if path == "-":
            content = sys.stdin.buffer.read(_MOST_BYTES + 1)
        else:
            with open(os.path.expanduser(path), "rb") as file:
                content = file.read(_MOST_BYTES + 1)
        if len(content) > _MOST_BYTES:
            size, limit = f"more than {_MOST_BYTES} bytes", f"{_MOST_BYTES} for a text"
            raise TooLarge(what=called, size=size, limit=limit, advice=advice)
        return content.decode()
    except OSError as error:
        raise UnreadableFile(path=path, why=error.strerror or str(error)) from None
    except UnicodeDecodeError:
        raise NotUtf8(path=called, advice=advice) from None


def text_or_input(text: str, advice: str = "") -> str:
    """Return the text itself; `-` reads standard input."""
    return read_file("-", advice) if text == "-" else text


def refuse_input_twice(token: str | None, *texts: str | None) -> None:
    """Standard input can be read once: as the token, or as a text."""
    if token == "-" and "-" in texts:
        raise InvalidParams(detail="standard input can be the token or the text, not both; use --token @FILE")


def absolute(path: str) -> str:
    """The path as the daemon finds it, which works in another directory."""
    return os.path.abspath(os.path.expanduser(path))


def attachments(paths: list[str] | None) -> list[str]:
    """The files to attach, as the daemon finds them."""
    if paths and "" in paths:
        raise InvalidParams(detail="--attachment is empty; give the path of a file")
    return [absolute(path) for path in paths or []]


def unrepeated(ids: list[str]) -> list[str]:
    """The ids in their order, each once."""
    return list(dict.fromkeys(ids))


def confirm(yes: bool, what: str, question: str, help_: str) -> None:
    """Ask before something that cannot be undone, unless --yes was given."""
    if yes:
        return
    from . import output

    if output.Mode.json or not output.on_terminal(sys.stdin):
        detail = f"hiboss cannot ask you here whether to {what}; give --yes if you are sure"
        raise WrongUsage(detail=detail, help=help_)
    import typer

    typer.confirm(question, abort=True)
