"""The settings, declared once in one table.

From the table come the parsing of `config.toml`, the environment variables
(`HIBOSS_<SECTION>_<KEY>`), `hiboss config show`, `config.example.toml` and the page of the docs.
Limits are settings too: a request over a limit gets an error, and nothing is stored.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from .envelope import measure
from .errors import BadSetting
from .setting_sources import from_environment, from_file
from .setting_values import KIB, MIB, Setting

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
    """The values in effect. Read a value each time it is needed, so that a reload takes effect."""

    text_bytes: int = _setting("limits", MIB, "The size limit for the text of a message.")
    subject_bytes: int = _setting(
        "limits", KIB, "The size limit for a subject, and for each text that describes an agent."
    )
    metadata_bytes: int = _setting("limits", 16 * KIB, "The size limit for the metadata of a message.")
    word_bytes: int = _setting(
        "limits", 256, "The size limit for a key, a trace id and the name of a person.", most=4 * KIB
    )
    attachments: int = _setting(
        "limits", 20, "How many attachments a message can have at most.", least=0, most=1_000
    )
    attachment_bytes: int = _setting("limits", 50 * MIB, "The size limit for one attachment.")
    recipients: int = _setting("limits", 100, "How many recipients a message can have at most.", most=10_000)
    frame_bytes: int = _setting(
        "limits", 4 * MIB, "The size limit for one request; it applies to new connections.", least=KIB
    )
    batch_requests: int = _setting("limits", 1_000, "How many requests a batch can have at most.")
    connections: int = _setting("limits", 4_096, "How many clients can be connected at the same time.")
    requests_in_flight: int = _setting(
        "limits", 512, "How many requests of one connection are processed at the same time; the rest wait."
    )
    page_size: int = _setting("limits", 10, "How many entries a list shows by default.", most=1_000)
    page_size_limit: int = _setting("limits", 100, "How many entries a list can show at most.", most=1_000)
    page_bytes: int = _setting(
        "limits",
        4 * MIB,
        "A page that reaches this size ends there, and the next page continues. It has at least one entry.",
        least=KIB,
    )
    answer_bytes: int = _setting(
        "limits", 16 * MIB, "The size limit for one answer, and for the answers of a batch.", least=KIB
    )
    waiting_bytes: int = _setting(
        "limits",
        256 * MIB,
        "The size limit for what waits in memory for all clients: answers that they have not read, and "
        "incomplete requests. Above it, the client that read nothing for the longest time is disconnected.",
        least=KIB,
    )
    count_exact_to: int = _setting(
        "limits", 1_000, "Totals are exact up to this number; larger ones are shown as 1000+.", most=1_000_000
    )
    forbidden_paths: tuple[str, ...] = _setting(
        "attachments",
        ("~/.ssh", "~/.gnupg", "~/.aws"),
        "Files in these directories cannot be attached (nor those in the home directory of hiboss).",
    )
    attachment_roots: tuple[str, ...] = _setting(
        "attachments",
        (),
        "Directories from which all agents may attach files, besides their own workspaces and media/. Only "
        "the boss attaches files from anywhere.",
        key="roots",
    )
    caller_uploads: int = _setting(
        "uploads", 100, "How many uploaded files one caller can have that no message has used.", most=1_000
    )
    caller_bytes: int = _setting(
        "uploads", 512 * MIB, "The size limit for all of them; that for one is limits.attachment_bytes."
    )
    keep_seconds: float = _setting(
        "uploads",
        86_400.0,
        "How long an uploaded file is kept that no message uses; then it is deleted.",
        least=1,
        most=2_592_000,
    )
    writer_queue: int = _setting(
        "store", 8_192, "How many changes can wait to be written; further ones get the error busy."
    )
    group_operations: int = _setting("store", 1_024, "How many changes share one COMMIT at most.")
    lock_wait_seconds: float = _setting(
        "store",
        5.0,
        "How long to wait while another program has locked the database.",
        least=0,
        most=600,
        live=False,
    )
    stop_seconds: float = _setting(
        "daemon", 5.0, "How long a stop waits for clients to read their answers.", least=0, most=600
    )
    heartbeat_seconds: float = _setting(
        "daemon",
        15.0,
        "How often to check the clock without a timer, in case the machine slept or its clock was set.",
        least=1,
        most=3_600,
    )
    parallel_lanes: int = _setting(
        "delivery", 32, "How many lanes of one binding deliver at the same time.", most=1_000
    )
    post_seconds: float = _setting(
        "delivery", 60.0, "How long a platform can take to confirm a post.", least=0.1, most=3_600
    )
    drain_seconds: float = _setting(
        "delivery", 5.0, "How long a stop waits for posts that have begun.", least=0, most=600
    )
    pacing: str = _setting(
        "delivery",
        "on",
        "Whether to keep to the rates that platforms allow; off for a server of your own without limits.",
        choices=("on", "off"),
    )
    live_posts: str = _setting(
        "delivery",
        "on",
        "Whether an answer grows in its channel while a run works, where the platform can edit posts.",
        choices=("on", "off"),
    )
    live_seconds: float = _setting(
        "delivery", 1.0, "How much time lies between two changes of a live post.", least=0.01, most=600
    )
    digest_seconds: float = _setting(
        "intake",
        120.0,
        "How long an adapter can take to digest what came in, with all downloads.",
        least=0.1,
        most=3_600,
    )
    parallel_chats: int = _setting(
        "intake", 16, "How many chats of one binding are digested at the same time.", most=1_000
    )
    webhook_body_bytes: int = _setting(
        "webhooks",
        760 * KIB,
        "The size limit for a request to a webhook.",
        key="body_bytes",
        least=KIB,
        most=760 * KIB,  # in base64 it must fit into an update, which has 1 MiB
    )
    parallel_runs: int = _setting("runs", 4, "How many runs are active at the same time.", most=1_000)
    idle_seconds: float = _setting(
        "runs", 600.0, "A run without any output for this long is ended.", least=0.1, most=86_400
    )
    stuck_seconds: float = _setting(
        "runs",
        300.0,
        "A run without any sign of life for this long counts as stuck: the boss is told once. It goes on.",
        least=0.1,
        most=86_400,
    )
    total_seconds: float = _setting(
        "runs", 3_600.0, "A run that takes longer than this is ended.", least=0.1, most=604_800
    )
    output_bytes: int = _setting(
        "runs",
        256 * MIB,
        "A run whose program writes more than this is ended. The limit of its answer is limits.text_bytes.",
        least=KIB,
        most=64 * 1024 * MIB,
    )
    question_seconds: float = _setting(
        "runs",
        3_600.0,
        "How long a question of a run waits for a person; then its default is the answer.",
        least=0.1,
        most=604_800,
    )
    paused_seconds: float = _setting(
        "runs",
        600.0,
        "A run that is paused for longer is ended; it comes again when it is resumed.",
        least=0.1,
        most=604_800,
    )
    environment_deny: tuple[str, ...] = _setting(
        "runs",
        (),
        "Variables of the daemon that no run gets, by name or pattern, like AWS_*. Those that contain a "
        "secret that hiboss knows are always left out.",
    )
    finish_seconds: float = _setting(
        "runs", 5.0, "How long a stop waits for runs to finish.", least=0, most=3_600
    )
    hops: int = _setting("runs", 16, "How many hops a trace can have before the boss is asked.", most=1_000)
    runs_per_trace: int = _setting(
        "runs", 50, "How many runs a trace can have in 24 hours before the boss is asked.", most=100_000
    )
    schedules_per_caller: int = _setting(
        "schedules",
        100,
        "How many schedules an agent or a user can have before the boss is asked. The boss has no limit.",
        key="per_caller",
        most=1_000_000,
    )
    schedule_least_seconds: float = _setting(
        "schedules",
        60.0,
        "How much time lies between two messages of a schedule, at least; for less the boss is asked.",
        key="least_seconds",
        most=31_622_400,
    )
    kept_facts: int = _setting(
        "events",
        10_000,
        "How many facts are kept in memory for clients that connect again.",
        least=10,
        most=1_000_000,
        live=False,
    )
    subscriptions: int = _setting(
        "events",
        1_000,
        "How many subscriptions can be open; those of the boss are counted apart.",
        most=100_000,
    )
    subscriptions_per_caller: int = _setting(
        "events", 100, "How many subscriptions one caller other than the boss can have.", most=100_000
    )
    subscriptions_per_connection: int = _setting(
        "events", 16, "How many subscriptions one connection can have.", most=1_000
    )
    provider_modules: tuple[str, ...] = _setting(
        "providers",
        (),
        "Python modules with your own providers (docs/providers.md).",
        key="modules",
        live=False,
    )
    adapter_modules: tuple[str, ...] = _setting(
        "adapters",
        (),
        "Python modules with your own adapters (docs/adapters.md).",
        key="modules",
        live=False,
    )
    telegram_base_url: str = _setting(
        "telegram",
        "https://api.telegram.org",
        "The server of the Bot API, without /bot: for a server of your own. New connections use it.",
        key="base_url",
    )
    telegram_live: str = _setting(
        "telegram",
        "draft",
        "How an answer grows in Telegram while a run works. draft: in private chats as a draft, if the "
        "server has drafts, and elsewhere as a post that is edited. edit: always as such "
        "a post. off: not at all.",
        key="live",
        choices=("draft", "edit", "off"),
        live=False,
    )
    transcribe_command: str = _setting(
        "telegram",
        "",
        "A program that writes down voice messages: it gets the path of the file as its last argument, and "
        "what it prints is the text. Empty: none.",
    )
    attached_when_busy: str = _setting(
        "attached",
        "end",
        "When an open session that works on something gets mail. end: when it has finished. between: after "
        "the tool that it uses now.",
        key="when_busy",
        choices=("between", "end"),
    )
    attached_fallback: str = _setting(
        "attached",
        "run",
        "What happens to the mail of an agent whose open session has ended. run: its provider works on it, "
        "if it has one. box: it waits for the next session.",
        key="fallback",
        choices=("box", "run"),
    )
    attached_ask_seconds: float = _setting(
        "attached",
        300.0,
        "How long a permission that an open session needs waits for an answer from elsewhere (hiboss hooks "
        "install --asks). Then the harness asks in its terminal.",
        key="ask_seconds",
        least=1,
        most=540,
    )
    web_enabled: str = _setting(
        "web",
        "on",
        "Whether the daemon serves HTTP: the API, events, webhooks and the page.",
        key="enabled",
        choices=("on", "off"),
        live=False,
    )
    web_host: str = _setting(
        "web",
        "127.0.0.1",
        "The interface to listen on. Others than loopback need TLS (web.tls_cert_file), or web.insecure.",
        key="host",
        live=False,
    )
    web_port: int = _setting(
        "web", 9999, "The port; 0 takes any that is free.", key="port", least=0, most=65_535, live=False
    )
    web_hosts: tuple[str, ...] = _setting(
        "web",
        (),
        "Names by which browsers and programs may reach it, besides those of loopback.",
        key="hosts",
    )
    web_tls_cert_file: str = _setting(
        "web", "", "The certificate, as PEM, for HTTPS.", key="tls_cert_file", live=False
    )
    web_tls_key_file: str = _setting(
        "web", "", "The private key of the certificate, as PEM.", key="tls_key_file", live=False
    )
    web_insecure: str = _setting(
        "web",
        "off",
        "on: listen on other interfaces than loopback without TLS. Everybody on the way can read along.",
        key="insecure",
        choices=("on", "off"),
        live=False,
    )
    web_hooks_port: int = _setting(
        "web",
        0,
        "A second port, on the same interface, that serves only webhooks (/hooks), for a tunnel. 0: none.",
        key="hooks_port",
        least=0,
        most=65_535,
        live=False,
    )
    web_hooks_hosts: tuple[str, ...] = _setting(
        "web", (), "Names by which the second port may be reached; empty: any name.", key="hooks_hosts"
    )
    web_session_days: float = _setting(
        "web",
        30.0,
        "How long a person who came by the link of hiboss web stays logged in.",
        key="session_days",
        least=0.001,
        most=400,
    )
    web_connections: int = _setting(
        "web",
        512,
        "How many HTTP connections can be open at the same time.",
        key="connections",
        most=10_000,
        live=False,
    )
    mcp_idle_seconds: float = _setting(
        "mcp",
        300.0,
        "An MCP worker without any client for this long ends; the next client starts another one.",
        key="idle_seconds",
        least=0.1,
        most=86_400,
    )
    mcp_clients: int = _setting(
        "mcp",
        200,
        "How many MCP clients can be connected at the same time. A worker reads both when it starts.",
        key="clients",
        most=10_000,
    )
    quiet_hours: str = _setting(
        "boss",
        "",
        "When notices are not posted to a chat of the boss, by his time zone: one message about all of them "
        "follows at the end. Mail, asks and answers to his commands come as always. Empty: never.",
    )
    log_level: str = _setting(
        "log", "info", "The lowest level that is written to the log.", key="level", choices=LOG_LEVELS
    )
    log_bytes: int = _setting(
        "log", 10 * MIB, "The size at which a new log file is begun.", key="bytes", least=KIB
    )
    log_files: int = _setting("log", 5, "How many old log files are kept.", key="files", least=0, most=1_000)

    def check_word(self, field: str, value: str) -> str:
        """Return a short text if it can be stored; raise BadText or TooLarge if not."""
        return measure(field, value, self.word_bytes)

    def adopt(self, other: Settings) -> None:
        """Copy the live values of `other` into this object, which the other parts hold."""
        for setting in TABLE:
            if setting.live:
                object.__setattr__(self, setting.name, getattr(other, setting.name))


def _table() -> Iterator[Setting]:
    for one in fields(Settings):
        facts = dict(one.metadata)
        facts["key"] = facts["key"] or one.name
        yield Setting(name=one.name, default=one.default, **facts)


TABLE: tuple[Setting, ...] = tuple(_table())
SECTIONS = tuple(dict.fromkeys(setting.section for setting in TABLE))
DEFAULTS = Settings()


class Configuration:
    """The settings in effect and the source of each; read from a file and the environment."""

    def __init__(self, path: str, environ: Mapping[str, str]) -> None:
        self._path = path
        self._environ = environ
        self.settings, self.sources = self._load()
        self.waiting: dict[Setting, Any] = {}  # changed since the start, in effect from the next one

    def reload(self) -> list[Setting]:
        """Read the settings again and return those that changed; BadConfig leaves all as they were."""
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
        found = (*from_file(TABLE, self._path), *from_environment(TABLE, self._environ))
        for setting, value, where in found:
            values[setting.name] = setting.check(value, where)
            sources[setting.name] = where
        settings = Settings(**values)
        if settings.page_size > settings.page_size_limit:
            wants = f"at most limits.page_size_limit, which is {settings.page_size_limit}"
            where = f"limits.page_size ({sources['page_size']})"
            raise BadSetting(where=where, value=str(settings.page_size), wants=wants)
        return settings, sources


def describe(configuration: Configuration) -> list[dict[str, Any]]:
    """Return every setting as `hiboss config show` shows it."""

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
