"""The entry of one MCP server in settings in JSON: `{"mcpServers": {NAME: ENTRY, …}, …}`."""

from __future__ import annotations

from typing import Any

from . import json_text
from .json_text import KEPT, Node

SERVERS = "mcpServers"


def find(text: str | None, name: str) -> Any:
    """Return the entry with this name; None: there is none. Raises ValueError for a text of another form."""
    if text is None or json_text.is_blank(text):
        return None
    return _root(text).value.get(SERVERS, {}).get(name)


def installed(text: str | None, name: str, entry: dict[str, Any]) -> str:
    """Return the text with this entry; the same text if it has it."""
    if text is None or json_text.is_blank(text):
        body = json_text.Style().shown({SERVERS: {name: entry}}, "")
        return f"{body}\n" if text is None else body + KEPT + text
    root = _root(text).value
    if SERVERS not in root:
        return json_text.appended(text, (), {name: entry}, SERVERS)
    if name not in root[SERVERS]:
        return json_text.appended(text, (SERVERS,), entry, name)
    return text if root[SERVERS][name] == entry else json_text.replaced(text, (SERVERS, name), entry)


def removed(text: str | None, name: str) -> str | None:
    """Return the text without this entry; None: the file was made for it alone, and can go."""
    if text is None or find(text, name) is None:
        return text
    text = json_text.without(text, (SERVERS, name))
    if not json_text.is_blank(text):
        return text
    return text.removeprefix(KEPT) if text.startswith(KEPT) else None


def _root(text: str) -> Node:
    root = json_text.parse(text)
    if not isinstance(root.value, dict):
        raise ValueError(f'it must be an object: {{"{SERVERS}": {{…}}}}')
    if not isinstance(root.value.get(SERVERS, {}), dict):
        raise ValueError(f'"{SERVERS}" must be an object: {{"NAME": {{"command": …}}}}')
    return root
