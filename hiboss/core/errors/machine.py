"""What can be wrong with the settings, the store, the home or the daemon."""

from __future__ import annotations

from .base import EXIT_STOPPED, EXIT_TIMEOUT, EXIT_UNREACHABLE, EXIT_USAGE, HibossError

# --- settings ------------------------------------------------------------------------


class BadConfig(HibossError):
    """the settings in {where} cannot be read: {detail}"""

    code, rpc, exit = "bad_config", -32050, EXIT_USAGE


class BadSetting(BadConfig):
    """{where} is {value}; right would be {wants}"""

    code = "bad_setting"


class UnknownSetting(BadConfig):
    """{where} names {name}, and there is no such setting{hint}; hiboss config show --defaults lists them all"""

    code = "unknown_setting"


# --- the machine ---------------------------------------------------------------------


class Busy(HibossError):
    """hiboss has more to do than it can take right now ({what}); nothing was stored, try again in a moment"""

    code, rpc, http = "busy", -32030, 503


class StoreError(HibossError):
    """the database {path} could not be used: {detail}"""

    code, rpc, http = "store_error", -32040, 500


class StoreLocked(StoreError):
    """the database {path} is locked by another program; nothing was stored. Close that program, then try again"""

    code, rpc, http = "store_locked", -32041, 503


class StoreFull(StoreError):
    """no space is left for the database {path}; nothing was stored. Free some space, then try again"""

    code, rpc, http = "store_full", -32042, 507


class StoreDamaged(StoreError):
    """the database {path} is damaged ({detail}). Stop the daemon, keep a copy of that file, and put back the newest one from {backups}"""

    code, rpc, http = "store_damaged", -32043, 500


class StoreNewer(StoreError):
    """the database {path} was written by a newer hiboss (it has {unknown}); this is {version}. Upgrade with: pip install --upgrade hiboss"""

    code, rpc, http = "store_newer", -32044, 500


class HomeUnusable(HibossError):
    """the home {home} cannot be used: {why}. Make it writable for you, or choose another with HIBOSS_HOME"""

    code, rpc, http = "home_unusable", -32045, 500


class DaemonRunning(HibossError):
    """a daemon with pid {pid} already serves {home}; to end it: hiboss daemon stop"""

    code, rpc, http = "daemon_running", -32046, 409


class Stopping(HibossError):
    """the daemon is stopping; ask again when it runs"""

    code, rpc, http, exit = "stopping", -32049, 503, EXIT_STOPPED


class DaemonUnreachable(HibossError):
    """no daemon answers at {socket} ({why}). Start it with: hiboss daemon start"""

    code, rpc, http, exit = "daemon_unreachable", -32047, 503, EXIT_UNREACHABLE


class HungUp(DaemonUnreachable):
    """the daemon at {socket} ended before it answered; what was asked may still have happened (send again with the same --key to be sure). Start it with: hiboss daemon start"""

    code = "hung_up"


class TimedOut(HibossError):
    """no answer within {seconds:g} seconds; what was asked may still happen (send again with the same --key to be sure)"""

    code, rpc, http, exit = "timed_out", -32048, 504, EXIT_TIMEOUT
