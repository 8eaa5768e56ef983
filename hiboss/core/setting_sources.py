"""Where settings come from: `config.toml` and the environment. An unknown name is refused."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .errors import BadConfig, UnknownSetting
from .paths import MCP_HTTP_SOCKET, MCP_SOCKET
from .quoting import nearest
from .setting_values import Setting

NO_SETTINGS = (MCP_SOCKET, MCP_HTTP_SOCKET)  # variables that begin like those of a section
Found = tuple[Setting, Any, str]  # a setting, its value as it is written, and where


def from_file(table: Sequence[Setting], path: str) -> Iterator[Found]:
    known = {str(setting): setting for setting in table}
    sections = _sections(table)
    for section, body in _document(path).items():
        if not isinstance(body, dict):
            inside = [str(s) for s in table if section in (s.key, s.name)]
            hint = f" (it belongs in a section: {inside[0]})" if inside else ""
            raise UnknownSetting(where=path, name=section, hint=hint)
        if section not in sections:
            raise UnknownSetting(where=path, name=f"[{section}]", hint=nearest(section, sections))
        for key, value in body.items():
            name = f"{section}.{key}"
            if name not in known:
                raise UnknownSetting(where=path, name=name, hint=nearest(name, list(known)))
            yield known[name], value, f"{path} [{section}] {key}"


def from_environment(table: Sequence[Setting], environ: Mapping[str, str]) -> Iterator[Found]:
    """Yield the settings in the environment; an unknown name is refused if it begins like a section."""
    known = {setting.variable: setting for setting in table}
    prefixes = tuple(f"HIBOSS_{section}_".upper() for section in _sections(table))
    for name in sorted(environ):
        if name in known:
            yield known[name], environ[name], name
        elif name.startswith(prefixes) and name not in NO_SETTINGS:
            raise UnknownSetting(where="the environment", name=name, hint=nearest(name, list(known)))


def _sections(table: Sequence[Setting]) -> list[str]:
    return list(dict.fromkeys(setting.section for setting in table))


def _document(path: str) -> dict[str, Any]:
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:  # sig: some editors write a BOM
            return tomllib.loads(file.read())
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise BadConfig(where=path, detail=error.strerror or str(error)) from None
    except (ValueError, RecursionError) as error:  # also for far too long numbers and too deep nesting
        raise BadConfig(where=path, detail=str(error)) from None
