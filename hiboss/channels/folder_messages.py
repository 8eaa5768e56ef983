"""Make a message of the content of a file in a folder: a text, or a message described in JSON."""

from __future__ import annotations

import json
import re
from typing import Any

from ..core.contracts.failures import Refused
from ..core.envelope import check_text
from ..core.errors import BadText
from ..core.file_guard import FileGuard
from ..core.quoting import nearest

_KEYS = ("text", "subject", "author", "group", "reply_to", "command", "arguments")
_COMMAND = re.compile(r"/(?P<command>[A-Za-z][A-Za-z0-9_]*)(?:\s+(?P<arguments>.*))?", re.DOTALL)
_AUTHOR = ("name", "username", "id")
_TEXT_BYTES = 16 * 1024 * 1024  # read into memory; the smaller limit of a message is checked later


def read_text(guard: FileGuard, path: str) -> str:
    """Return the text of a file; raise Refused if it has none that can be a message."""
    try:
        with guard.open_file(path) as file:
            content = file.read(_TEXT_BYTES + 1)
    except OSError as error:
        raise Refused(f"it cannot be read: {error.strerror or error}") from None
    if len(content) > _TEXT_BYTES:
        raise Refused(f"it has more than {_TEXT_BYTES} bytes, the limit for a text; send it as an attachment")
    try:
        return _checked(content.decode("utf-8-sig")).rstrip("\r\n")  # editors add a line break at the end
    except UnicodeDecodeError:
        raise Refused(
            "it is not UTF-8 text; to send it as an attachment, give the file another ending"
        ) from None


def parse_text(text: str) -> dict[str, Any]:
    """Return a text as a message; one that begins with /word may be a command, like /stop all."""
    found = _COMMAND.fullmatch(text)
    return {"text": text, **(found.groupdict(default="") if found else {})}


def parse_message(text: str) -> dict[str, Any]:
    """Parse and check a message described in JSON."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:  # RecursionError: nested too deeply
        raise Refused(f"it is not JSON: {error}") from None
    if not isinstance(document, dict):
        raise Refused('it must be an object, like {"text": "hello"}')
    for key, value in document.items():
        if key not in _KEYS:
            raise Refused(
                f"unknown key {key}{nearest(key, list(_KEYS))}; a message can have: {', '.join(_KEYS)}"
            )
        if key == "author":
            if not isinstance(value, dict) or not all(
                name in _AUTHOR and isinstance(one, str) for name, one in value.items()
            ):
                raise Refused(f"author must be an object with text values; it can have: {', '.join(_AUTHOR)}")
        elif not isinstance(value, str):
            raise Refused(f"{key} must be a text")
        for one in value.values() if isinstance(value, dict) else [value]:
            _checked(one)
    return document


def _checked(text: str) -> str:
    """Return the text if it can be stored unchanged: who wrote the file can mend it."""
    try:
        return check_text(text)
    except BadText as error:
        raise Refused(error.message) from None
