"""Errors of the settings, the store, the home and the daemon. The docstrings are the messages."""

from __future__ import annotations

from .base import EXIT_REFUSED, EXIT_STOPPED, EXIT_TIMEOUT, EXIT_UNREACHABLE, EXIT_USAGE, HibossError

TYPE_CHECKING = False  # see base.py
if TYPE_CHECKING:
    from typing import Any

# --- settings ------------------------------------------------------------------------


class BadConfig(HibossError):
    """the settings in {where} cannot be read: {detail}"""

    code, rpc, exit = "bad_config", -32050, EXIT_USAGE


class BadSetting(BadConfig):
    """{where} is {value}; it must be {wants}"""

    code = "bad_setting"


class UnknownSetting(BadConfig):
    """{where} has {name}, but there is no such setting{hint}; hiboss config show --defaults lists all settings"""

    code = "unknown_setting"


class HarnessSettingsRefused(BadConfig):
    """the settings in {path} cannot be read as {form}: {why}. Nothing was changed; correct that file, then try again"""

    code, exit = "harness_settings_refused", EXIT_REFUSED


class HarnessSettingsUnwritable(BadConfig):
    """the settings in {path} cannot be changed: {why}. Nothing was changed"""

    code, exit = "harness_settings_unwritable", EXIT_REFUSED


# --- store, home, daemon -------------------------------------------------------------


class Busy(HibossError):
    """hiboss cannot take more now: {what}; nothing was stored"""

    code, rpc, http = "busy", -32030, 503


class StoreError(HibossError):
    """the database {path} could not be used: {detail}"""

    code, rpc, http = "store_error", -32040, 500


class StoreLocked(StoreError):
    """the database {path} is locked by another program; nothing was stored. Close that program, then try again"""

    code, rpc, http = "store_locked", -32041, 503


class StoreFull(StoreError):
    """no space is left on the disk of {path}; nothing was stored. Free some space, then try again"""

    code, rpc, http = "store_full", -32042, 507


class BreakerNotStored(HibossError):
    """everything was stopped, but this is not durable: {why}. No run begins before it is stored; if the daemon ends before, they begin again at its next start"""

    code, rpc, http = "breaker_not_stored", -32052, 507


class StoreDamaged(StoreError):
    """the database {path} is damaged ({detail}). Stop the daemon, keep a copy of that file, then replace it with the newest backup from {backups}"""

    code, rpc, http = "store_damaged", -32043, 500


class StoreNewer(StoreError):
    """the database {path} was written by a newer hiboss (it has {unknown}); this is {version}. Upgrade with: pip install --upgrade hiboss"""

    code, rpc, http = "store_newer", -32044, 500


class StoreUnreleased(StoreError):
    """the database {path} was created by an unreleased version of hiboss (it has {unknown}); this is {version} and cannot read it. Nothing was changed. Rename the directory {home} to keep it, then run: hiboss up"""

    code, rpc, http = "store_unreleased", -32051, 500


class HomeUnusable(HibossError):
    """the home directory {home} cannot be used: {why}. Make it writable for you, or choose another one with HIBOSS_HOME"""

    code, rpc, http = "home_unusable", -32045, 500


class DaemonRunning(HibossError):
    """a daemon with pid {pid} already serves {home}; to stop it: hiboss daemon stop"""

    code, rpc, http = "daemon_running", -32046, 409


class Stopping(HibossError):
    """the daemon is stopping; try again when it has started"""

    code, rpc, http, exit = "stopping", -32049, 503, EXIT_STOPPED


class DaemonUnreachable(HibossError):
    """no daemon answers at {socket} ({why}). Start it with: {start}"""

    code, rpc, http, exit = "daemon_unreachable", -32047, 503, EXIT_UNREACHABLE

    def __init__(self, **facts: Any) -> None:
        facts.setdefault("start", "hiboss daemon start")
        super().__init__(**facts)


class McpUnavailable(HibossError):
    """MCP is not served now: {why}"""

    code, rpc, http = "mcp_unavailable", -32030, 503


class HungUp(DaemonUnreachable):
    """the daemon at {socket} ended before it answered; the request may still have been carried out (to be sure, send again with the same --key). Start it with: {start}"""

    code = "hung_up"


class TimedOut(HibossError):
    """no answer within {seconds:g} seconds; the request may still be carried out (to be sure, send again with the same --key)"""

    code, rpc, http, exit = "timed_out", -32048, 504, EXIT_TIMEOUT
