"""The settings: declared once, in this table.

It yields the parsing of `config.toml`, the environment variables (`HIBOSS_<SECTION>_<KEY>`),
`hiboss config show`, `config.example.toml` and the page of the docs. Limits are settings
too: over one, a clear error and nothing stored.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from .envelope import measure
from .errors import BadConfig, BadSetting, UnknownSetting
from .quoting import nearest

KIB, MIB = 1024, 1024 * 1024
_SIZE = re.compile(r"([0-9]{1,15}) ?(B|KiB|MiB|GiB)?")
_DECIMAL = re.compile(r"[0-9]{1,15}(\.[0-9]{1,15})?")
_UNITS = {None: 1, "B": 1, "KiB": KIB, "MiB": MIB, "GiB": 1024 * MIB}
LOG_LEVELS = ("debug", "info", "warning", "error")
MOST = 2**31 - 1


def _setting(
    section: str,
    default: Any,
    help_: str,
    *,
    key: str | None = None,
    least: float = 1,
    most: float = MOST,
    choices: tuple[str, ...] = (),
    live: bool = True,
) -> Any:
    facts = {"section": section, "key": key, "help": help_, "least": least, "most": most}
    return field(default=default, metadata={**facts, "choices": choices, "live": live})


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """The values in force. Whoever uses one asks for it each time, so that a reload reaches them."""

    text_bytes: int = _setting("limits", MIB, "The longest text of a message.")
    subject_bytes: int = _setting("limits", KIB, "The longest subject, and the longest word about an agent.")
    metadata_bytes: int = _setting("limits", 16 * KIB, "The most metadata of a message, as JSON.")
    word_bytes: int = _setting("limits", 256, "The longest key, trace id or name of a person.", most=4 * KIB)
    attachments: int = _setting("limits", 20, "How many files a message may bring.", least=0, most=1_000)
    attachment_bytes: int = _setting("limits", 50 * MIB, "The largest file a message may bring.")
    recipients: int = _setting("limits", 100, "To how many addresses one message may go.", most=10_000)
    frame_bytes: int = _setting(
        "limits", 4 * MIB, "The longest request on a connection made from now on.", least=KIB
    )
    batch_requests: int = _setting("limits", 1_000, "How many requests one batch may hold.")
    connections: int = _setting("limits", 4_096, "How many clients may be connected.")
    requests_in_flight: int = _setting(
        "limits", 512, "How many unanswered requests of one connection are worked on; more are left unread."
    )
    page_size: int = _setting("limits", 10, "How many a list shows when nobody says how many.", most=1_000)
    page_size_limit: int = _setting("limits", 100, "How many a list shows at most.", most=1_000)
    count_exact_to: int = _setting(
        "limits", 1_000, "Totals are exact up to this; beyond it they say 1000+.", most=1_000_000
    )
    forbidden_paths: tuple[str, ...] = _setting(
        "attachments",
        ("~/.ssh", "~/.gnupg", "~/.aws"),
        "Nothing in these directories is ever attached (nor in hiboss's own home).",
    )
    writer_queue: int = _setting(
        "store", 8_192, "How many changes may wait to be written; more are answered busy."
    )
    group_operations: int = _setting("store", 1_024, "How many changes share one COMMIT at most.")
    lock_wait_seconds: float = _setting(
        "store",
        5.0,
        "How long to wait while another program locks the database.",
        least=0,
        most=600,
        live=False,
    )
    stop_seconds: float = _setting(
        "daemon", 5.0, "How long a stop waits for answers to be read.", least=0, most=600
    )
    heartbeat_seconds: float = _setting(
        "daemon",
        15.0,
        "How often to look at the clock anyway, for a machine that slept or a clock that was set.",
        least=1,
        most=3_600,
    )
    parallel_lanes: int = _setting("delivery", 32, "How many lanes deliver at the same time.", most=1_000)
    post_seconds: float = _setting(
        "delivery", 60.0, "How long a platform may take to confirm a post.", least=0.1, most=3_600
    )
    drain_seconds: float = _setting(
        "delivery", 5.0, "How long a stop waits for posts in hand.", least=0, most=600
    )
    parallel_runs: int = _setting("runs", 4, "How many runs go on at the same time.", most=1_000)
    idle_seconds: float = _setting(
        "runs", 600.0, "A run that gives no sign of life for so long is ended.", least=0.1, most=86_400
    )
    total_seconds: float = _setting(
        "runs", 3_600.0, "A run that lasts longer is ended.", least=0.1, most=604_800
    )
    output_bytes: int = _setting(
        "runs", MIB, "A run that writes more than this is ended.", least=KIB, most=1024 * MIB
    )
    finish_seconds: float = _setting(
        "runs", 5.0, "How long a stop waits for runs to finish.", least=0, most=3_600
    )
    hops: int = _setting(
        "runs", 16, "Through how many hands an errand goes before the boss is asked.", most=1_000
    )
    runs_per_trace: int = _setting(
        "runs", 50, "How many runs an errand takes before the boss is asked.", most=100_000
    )
    provider_modules: tuple[str, ...] = _setting(
        "providers",
        (),
        "Python modules with providers of your own (docs/providers.md).",
        key="modules",
        live=False,
    )
    adapter_modules: tuple[str, ...] = _setting(
        "adapters",
        (),
        "Python modules with adapters of your own (docs/adapters.md).",
        key="modules",
        live=False,
    )
    log_level: str = _setting(
        "log", "info", "What is worth a line in the log.", key="level", choices=LOG_LEVELS
    )
    log_bytes: int = _setting(
        "log", 10 * MIB, "A log file of this size is put aside and a new one begun.", key="bytes", least=KIB
    )
    log_files: int = _setting(
        "log", 5, "How many log files put aside are kept.", key="files", least=0, most=1_000
    )

    def check_word(self, field: str, value: str) -> str:
        """A short text, when it can be stored."""
        return measure(field, value, self.word_bytes)

    def adopt(self, other: Settings) -> None:
        """Take over the live values of others, in place: everybody holds this object."""
        for setting in TABLE:
            if setting.live:
                object.__setattr__(self, setting.name, getattr(other, setting.name))


@dataclass(frozen=True, kw_only=True, slots=True)
class Setting:
    """One row of the table."""

    name: str  # of the attribute
    section: str
    key: str
    default: Any
    help: str
    least: float
    most: float
    choices: tuple[str, ...]
    live: bool  # a reload is enough

    def __str__(self) -> str:
        return f"{self.section}.{self.key}"

    @property
    def variable(self) -> str:
        return f"HIBOSS_{self.section}_{self.key}".upper()

    @property
    def wants(self) -> str:
        """What would be right, in words."""
        if self.choices:
            return f"one of {', '.join(self.choices)}"
        if isinstance(self.default, tuple):
            what = 'paths that begin with / or ~, like ["~/.ssh"]'
            if self.name.endswith("_modules"):
                what = 'Python modules, like ["hiboss.testing.scripted_adapter"]'
            return f"a list of {what} (in the environment: separated by commas)"
        number = "a number" if isinstance(self.default, float) else "a whole number"
        size = " (or a size, like 4 MiB)" if self.name.endswith("bytes") else ""
        most = f" to {self.most:.15g}"
        return f"{number} from {self.least:.15g}{most}{size}"

    def check(self, value: Any, where: str) -> Any:
        """The value as the program uses it, or what is wrong with it."""
        if where == self.variable and isinstance(self.default, tuple):
            value = [part.strip() for part in value.split(",") if part.strip()]
        found = self._read(value)
        if found is None:
            raise BadSetting(where=where, value=_shown(value), wants=self.wants)
        return found

    def _read(self, value: Any) -> Any:
        if self.choices:
            return value if value in self.choices else None
        if isinstance(self.default, tuple):
            found = _texts(value)
            rooted = found is not None and all(one.startswith(("/", "~")) for one in found)
            return found if rooted or self.name != "forbidden_paths" else None
        number = _number(value, whole=isinstance(self.default, int), sizes=self.name.endswith("bytes"))
        fits = number is not None and self.least <= number <= self.most
        return type(self.default)(number) if fits else None


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


def _shown(value: Any) -> str:
    try:
        return repr(value)[:80] if isinstance(value, (str, list, dict)) else str(value).lower()[:80]
    except ValueError:  # Python does not write down a number of thousands of digits
        return "a number without end"


def _table() -> Iterator[Setting]:
    for one in fields(Settings):
        facts = dict(one.metadata)
        facts["key"] = facts["key"] or one.name
        yield Setting(name=one.name, default=one.default, **facts)


TABLE: tuple[Setting, ...] = tuple(_table())
SECTIONS = tuple(dict.fromkeys(setting.section for setting in TABLE))
DEFAULTS = Settings()


class Configuration:
    """The settings in force and where each comes from; read from a file and the environment."""

    def __init__(self, path: str, environ: Mapping[str, str]) -> None:
        self._path = path
        self._environ = environ
        self.settings, self.sources = self._load()
        self.waiting: dict[Setting, Any] = {}  # changed since, and in force from the next start

    def reload(self) -> list[Setting]:
        """Read again. What is wrong raises BadConfig and leaves everything as it was."""
        found, sources = self._load()
        before = {setting: getattr(self.settings, setting.name) for setting in TABLE}
        new = {s: getattr(found, s.name) for s in TABLE if not s.live}
        self.waiting = {s: value for s, value in new.items() if value != before[s]}
        self.settings.adopt(found)
        self.sources |= {s.name: sources[s.name] for s in TABLE if s not in self.waiting}
        return [s for s in TABLE if getattr(self.settings, s.name) != before[s]]

    def _load(self) -> tuple[Settings, dict[str, str]]:
        values: dict[str, Any] = {}
        sources = {setting.name: "default" for setting in TABLE}
        for setting, value, where in (*_from_file(self._path), *_from_environment(self._environ)):
            values[setting.name] = setting.check(value, where)
            sources[setting.name] = where
        settings = Settings(**values)
        if settings.page_size > settings.page_size_limit:
            wants = f"at most limits.page_size_limit, which is {settings.page_size_limit}"
            where = f"limits.page_size ({sources['page_size']})"
            raise BadSetting(where=where, value=str(settings.page_size), wants=wants)
        return settings, sources


def describe(configuration: Configuration) -> list[dict[str, Any]]:
    """Every setting as it is shown: value, where from, and how to change it."""

    def plain(value: Any) -> Any:
        return list(value) if isinstance(value, tuple) else value

    return [
        {
            "setting": str(setting),
            "value": plain(getattr(configuration.settings, setting.name)),
            "source": configuration.sources[setting.name],
            "default": plain(setting.default),
            "variable": setting.variable,
            "about": setting.help,
            "next_start": setting in configuration.waiting,
            "next_value": plain(configuration.waiting.get(setting)),
        }
        for setting in TABLE
    ]


Found = tuple[Setting, Any, str]


def _from_file(path: str) -> Iterator[Found]:
    known = {str(setting): setting for setting in TABLE}
    for section, body in _document(path).items():
        if not isinstance(body, dict):
            inside = [str(s) for s in TABLE if section in (s.key, s.name)]
            hint = f" (it belongs into a section: {inside[0]})" if inside else ""
            raise UnknownSetting(where=path, name=section, hint=hint)
        if section not in SECTIONS:
            raise UnknownSetting(where=path, name=f"[{section}]", hint=nearest(section, list(SECTIONS)))
        for key, value in body.items():
            name = f"{section}.{key}"
            if name not in known:
                raise UnknownSetting(where=path, name=name, hint=nearest(name, list(known)))
            yield known[name], value, f"{path} [{section}] {key}"


def _document(path: str) -> dict[str, Any]:
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:  # some editors write a mark in front
            return tomllib.loads(file.read())
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise BadConfig(where=path, detail=error.strerror or str(error)) from None
    except (ValueError, RecursionError) as error:  # also of a number or a nesting beyond all measure
        raise BadConfig(where=path, detail=str(error)) from None


def _from_environment(environ: Mapping[str, str]) -> Iterator[Found]:
    """Only names that begin with one of our sections are ours to judge."""
    known = {setting.variable: setting for setting in TABLE}
    prefixes = tuple(f"HIBOSS_{section}_".upper() for section in SECTIONS)
    for name in sorted(environ):
        if name in known:
            yield known[name], environ[name], name
        elif name.startswith(prefixes):
            raise UnknownSetting(where="the environment", name=name, hint=nearest(name, list(known)))
