"""One setting: which values it takes in `config.toml` and in the environment, and how it says so."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from . import quiet_hours
from .errors import BadSetting

KIB, MIB = 1024, 1024 * 1024
_SIZE = re.compile(r"([0-9]{1,15}) ?(B|KiB|MiB|GiB)?")
_DECIMAL = re.compile(r"[0-9]{1,15}(\.[0-9]{1,15})?")
_URL = re.compile(r"https?://[^\s/?#@]+(/[^\s?#]*)?")
_TEXTS = {  # what a text is, by the end of the name of its setting
    "_url": "a URL, like http://127.0.0.1:8081",
    "_file": "the path of a file, or nothing",
    "_host": "the name or the number of an interface, like 127.0.0.1",
}
_UNITS = {None: 1, "B": 1, "KiB": KIB, "MiB": MIB, "GiB": 1024 * MIB}


@dataclass(frozen=True, kw_only=True, slots=True)
class Setting:
    """One row of the table."""

    name: str  # of the attribute of Settings
    section: str
    key: str
    default: Any
    help: str
    least: float
    most: float
    choices: tuple[str, ...]
    live: bool  # a reload is enough; else it takes effect at the next start

    def __str__(self) -> str:
        return f"{self.section}.{self.key}"

    @property
    def variable(self) -> str:
        """The environment variable of this setting."""
        return f"HIBOSS_{self.section}_{self.key}".upper()

    @property
    def wants(self) -> str:
        """A description of the valid values."""
        if self.choices:
            return f"one of {', '.join(self.choices)}"
        if isinstance(self.default, tuple):
            what = 'paths that begin with / or ~, like ["~/.ssh"]'
            if self.name.endswith("_modules"):
                what = 'Python modules, like ["hiboss.testing.scripted_adapter"]'
            elif self.name == "environment_deny":
                what = 'names of variables or patterns, like ["AWS_*"]'
            elif self.name.endswith("_hosts"):
                what = 'names of hosts, like ["hiboss.example"]'
            return f"a list of {what} (in the environment: separated by commas)"
        if self.name == "quiet_hours":
            return "two different times from 00:00 to 23:59, like 22:00-07:00, or nothing"
        if isinstance(self.default, str):
            return next(
                (words for end, words in _TEXTS.items() if self.name.endswith(end)), "a command, or nothing"
            )
        number = "a number" if isinstance(self.default, float) else "a whole number"
        size = " (or a size, like 4 MiB)" if self.name.endswith("bytes") else ""
        most = f" to {self.most:.15g}"
        return f"{number} from {self.least:.15g}{most}{size}"

    def check(self, value: Any, where: str) -> Any:
        """Return the value as the program uses it; raise BadSetting if it is wrong."""
        if where == self.variable and isinstance(self.default, tuple):
            value = [part.strip() for part in value.split(",") if part.strip()]
        found = self._read(value)
        if found is None:
            raise BadSetting(where=where, value=_quoted(value), wants=self.wants)
        return found

    def _read(self, value: Any) -> Any:
        if self.choices:
            return value if value in self.choices else None
        if isinstance(self.default, tuple):
            found = _texts(value)
            rooted = found is not None and all(one.startswith(("/", "~")) for one in found)
            return found if rooted or self.section != "attachments" else None
        if self.name == "quiet_hours":
            return quiet_hours.check(value) if isinstance(value, str) else None
        if isinstance(self.default, str):
            return _line(value, url=self.name.endswith("_url"))
        number = _number(value, whole=isinstance(self.default, int), sizes=self.name.endswith("bytes"))
        fits = number is not None and self.least <= number <= self.most
        return type(self.default)(number) + 0 if fits else None  # 0 for -0.0, which it could not read again


def _line(value: Any, *, url: bool) -> str | None:
    if not isinstance(value, str) or (value and not value.isprintable()):
        return None
    return None if url and not _URL.fullmatch(value) else value


def _texts(value: Any) -> tuple[str, ...] | None:
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        return None
    return tuple(value) if all(one and one.isprintable() for one in value) else None


def _number(value: Any, *, whole: bool, sizes: bool) -> int | float | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        match = _SIZE.fullmatch(value.strip()) if whole else None
        if match and (sizes or not match[2]):
            return int(match[1]) * _UNITS[match[2]]
        value = float(value) if not whole and _DECIMAL.fullmatch(value.strip()) else None
    if whole:
        return value if isinstance(value, int) else None
    return value if isinstance(value, (int, float)) else None


def _quoted(value: Any) -> str:
    try:
        return repr(value)[:80] if isinstance(value, (str, list, dict)) else str(value).lower()[:80]
    except ValueError:  # Python refuses to print a number with thousands of digits
        return "a number with thousands of digits"
