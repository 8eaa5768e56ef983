"""The entry of one MCP server in settings in TOML: the table `[mcp_servers.NAME]`.

The text is edited by lines, and read again: if it does not say exactly what it should say then, the edit
is refused. So a form that is not understood here costs an error, and never a setting.
"""

from __future__ import annotations

import json
import re
import tomllib
from typing import Any

SERVERS = "mcp_servers"

Settings = dict[str, Any]


def find(text: str | None, name: str) -> Any:
    """Return the entry with this name; None: there is none. Raises ValueError for a text that is no TOML."""
    servers = tomllib.loads(text or "").get(SERVERS, {})
    if not isinstance(servers, dict):
        raise ValueError(f"{SERVERS} must be a table: [{SERVERS}.NAME]")
    return servers.get(name)


def installed(text: str | None, name: str, entry: Settings) -> str:
    """Return the text with this entry; the same text if it has it."""
    found, text = find(text, name), text or ""
    if found == entry:
        return text
    end = "\r\n" if "\r\n" in text else "\n"
    if found is None:
        lines = [f"[{SERVERS}.{name}]", *(f"{key} = {_value(value)}" for key, value in entry.items())]
        before = text if not text or text.endswith("\n") else text + end
        edited = before + (end if before else "") + end.join(lines) + end
    else:
        edited = _updated(text, name, found, entry, end)
    return _checked(text, edited, name, entry)


def removed(text: str | None, name: str) -> str | None:
    """Return the text without this entry; None: nothing else is in the file, and it can go."""
    if text is None or find(text, name) is None:
        return text
    lines = _lines(text)
    for start, end, path in reversed(_tables(lines)):
        if path[:2] == [SERVERS, name]:
            if start and not lines[start - 1].strip() and (end == len(lines) or not lines[end].strip()):
                start -= 1  # the blank line that came with it
            del lines[start:end]
    edited = _checked(text, "".join(lines), name, None)
    return edited if edited else None


# --- lines ---------------------------------------------------------------------------


def _updated(text: str, name: str, found: Settings, entry: Settings, end: str) -> str:
    """Put the values that differ into the lines of the table; all others stay as they are."""
    lines = _lines(text)
    for key in found.keys() | entry.keys():
        if found.get(key) == entry.get(key):
            continue
        tables = {tuple(path): (start, stop) for start, stop, path in _tables(lines)}
        if (own := tables.get((SERVERS, name, key))) is not None:
            del lines[slice(*own)]  # [mcp_servers.NAME.env]: written anew in one line
            tables = {tuple(path): (start, stop) for start, stop, path in _tables(lines)}
        start, stop = tables.get((SERVERS, name), (0, 0))
        here = [number for number in range(start + 1, stop) if _key(lines[number]) == key]
        for number in reversed(here):
            del lines[number]
        if key in entry and stop:
            lines.insert(here[0] if here else start + 1, f"{key} = {_value(entry[key])}{end}")
    return "".join(lines)


def _lines(text: str) -> list[str]:
    return re.findall(r"[^\n]*\n|[^\n]+", text)  # splitlines knows more line ends than TOML


def _tables(lines: list[str]) -> list[tuple[int, int, list[str]]]:
    """Return each table: its first line, the line behind its last value, and its name in parts."""
    starts: list[tuple[int, list[str]]] = []
    begin = 0  # of the table that a line is in: each is complete by itself
    for number, line in enumerate(lines):
        if (path := _header(line)) and _is_complete(lines[begin:number]):
            starts.append((number, path))
            begin = number
    following = [*(number for number, _ in starts), len(lines)][1:]
    found = []
    for (start, path), stop in zip(starts, following, strict=True):
        while stop > start + 1 and _is_comment(lines[stop - 1]):
            stop -= 1  # what stands above the next table belongs to that one
        found.append((start, stop, path))
    return found


def _header(line: str) -> list[str]:
    """Return the name of the table that begins here, in parts; empty: none begins."""
    if not line.lstrip().startswith("["):
        return []
    try:
        found: Any = tomllib.loads(line)
    except tomllib.TOMLDecodeError:
        return []
    path = []
    while found:  # {"a": {"b": {}}}, or {"a": [{}]} for [[a]]
        key, found = next(iter(found.items()))
        path.append(str(key))
        found = found[0] if isinstance(found, list) else found
    return path


def _is_complete(lines: list[str]) -> bool:
    """Whether a text or an array over several lines is not open behind these lines."""
    try:
        tomllib.loads("".join(lines))
    except tomllib.TOMLDecodeError:
        return False
    return True


def _key(line: str) -> str:
    return line.partition("=")[0].strip() if "=" in line else ""


def _is_comment(line: str) -> bool:
    return not line.strip() or line.lstrip().startswith("#")


def _value(value: Any) -> str:
    """Return a value as TOML has it: a text, a number, or an array or table of them in one line."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_bare(key)} = {_value(one)}" for key, one in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return json.dumps(value)


def _bare(key: str) -> str:
    plain = key.isascii() and key.replace("_", "").replace("-", "").isalnum()
    return key if plain else _value(key)


# --- the proof -----------------------------------------------------------------------


def _checked(before: str, after: str, name: str, entry: Settings | None) -> str:
    """Return the edited text if exactly this entry is different in it. Raises ValueError."""
    wanted = tomllib.loads(before)
    servers = wanted.setdefault(SERVERS, {})
    if entry is None:
        del servers[name]
    else:
        servers[name] = entry
    try:
        found = tomllib.loads(after)
    except tomllib.TOMLDecodeError:
        found = {}
    if _without_empty(found) != _without_empty(wanted):
        form = f"the entry {SERVERS}.{name} is written in a form that hiboss cannot edit safely"
        raise ValueError(f"{form}; edit it by hand")
    return after


def _without_empty(settings: Settings) -> Settings:
    """A table of servers that is empty says the same as none."""
    return {name: value for name, value in settings.items() if name != SERVERS or value}
