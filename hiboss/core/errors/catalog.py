"""Every error hiboss can answer with: one tree, a stable code each.

A class's docstring is its message; `{names}` in it are the facts given when it is
raised, which stay readable as attributes and travel to the caller. Each class owns its
JSON-RPC code, HTTP status and exit status, so a door maps by class and decides nothing.
"""

from __future__ import annotations

from typing import Any

from .base import EXIT_ARMED, EXIT_STOPPED, EXIT_TIMEOUT, EXIT_UNREACHABLE, EXIT_USAGE, HibossError

# --- the protocol's own errors (JSON-RPC 2.0, section 5.1) ---------------------------


class ParseError(HibossError):
    """this is not JSON: {detail}; send one JSON-RPC 2.0 request per line"""

    code, rpc = "parse_error", -32700


class InvalidRequest(HibossError):
    """this is not a JSON-RPC 2.0 request: {detail}"""

    code, rpc = "invalid_request", -32600


class FrameTooLarge(InvalidRequest):
    """a request may have {limit} bytes and this one has more; send less at a time, or large content as an attachment"""

    code, http = "frame_too_large", 413


class MethodNotFound(HibossError):
    """there is no operation {method}{hint}; rpc.discover lists them all"""

    code, rpc, http = "method_not_found", -32601, 404


class InvalidParams(HibossError):
    """{detail}"""

    code, rpc, exit = "invalid_params", -32602, EXIT_USAGE


class InternalError(HibossError):
    """hiboss failed at this (a defect of ours; reference {reference} is in `hiboss daemon logs`)"""

    code, rpc, http = "internal_error", -32603, 500


# --- what a caller wrote wrongly -----------------------------------------------------


class BadAddress(InvalidParams):
    """{value} is no address: {why}; addresses look like agent:nex, user:boss, channel:telegram:12345 or group:core-team"""

    code = "bad_address"


class BadTime(InvalidParams):
    """{value} is no time: {why}; right would be +2h, +1Y2M3D, -15m, 2026-01-27T16:30:00+08:00, or 2026-01-27 16:30 (in the boss's zone)"""

    code = "bad_time"


class BadDuration(InvalidParams):
    """{value} is no length of time{why}; right would be 90s, 10m or 1h"""

    code = "bad_duration"


class NoProvider(InvalidParams):
    """{name} has no provider to think with; right would be: hiboss agent set --as boss --name {name} --provider command --command "python agent.py" (or webhook, or demo)"""

    code = "no_provider"


class BadProvider(InvalidParams):
    """the provider cannot be used like this: {why}"""

    code = "bad_provider"


class BadCron(InvalidParams):
    """{value} is no cron expression: {why}; right would be '0 9 * * MON-FRI' (minute, hour, day, month, weekday) or @daily"""

    code = "bad_cron"


class BadTimezone(InvalidParams):
    """{value} is no IANA time zone{hint}; right would be Europe/Berlin or UTC"""

    code = "bad_timezone"


class BadId(InvalidParams):
    """{value} is no {kind} id; right would be {example}"""

    code = "bad_id"


class BadName(InvalidParams):
    """{value} cannot be a name: {why}; a name has 1 to 64 letters, digits and single dashes between them, like nex or code-review"""

    code = "bad_name"


class BadText(InvalidParams):
    """{field} cannot be stored: {why}"""

    code = "bad_text"


class EmptyMessage(InvalidParams):
    """there is nothing to send: give a text (of envelope send: --text), a file to attach (--attachment), or both"""

    code = "empty_message"


class NoRecipient(InvalidParams):
    """there is nobody to send to: give at least one recipient (--to), or a message to reply to (--reply-to)"""

    code = "no_recipient"


class UnreadableFile(InvalidParams):
    """{path} cannot be read: {why}"""

    code = "unreadable_file"


class NotUtf8(UnreadableFile):
    """{path} is no UTF-8 text{advice}"""

    code = "not_utf8"


class BadCursor(InvalidParams):
    """{value} is no cursor for this list; pass on the `next` (next-cursor) of the page before, unchanged"""

    code = "bad_cursor"


class SenderMissing(InvalidParams):
    """a boss token speaks for everybody, so say for whom: --from user:boss or --from agent:<name>"""

    code = "sender_missing"


class WrongUsage(HibossError):
    """{detail}"""

    # Only the command line finds this, before anything is asked of the daemon.
    code, rpc, exit = "usage", -32602, EXIT_USAGE


# --- limits --------------------------------------------------------------------------


class TooLarge(HibossError):
    """{what} has {size} and may have {limit}{advice}"""

    code, rpc, http = "too_large", -32013, 413


class TooFar(HibossError):
    """{value} is more than {years} years ahead; right would be at most that far"""

    code, rpc, exit = "too_far", -32014, EXIT_USAGE


# --- who may do what -----------------------------------------------------------------


class NoToken(HibossError):
    """this needs a token: give --as <profile>, --token @file, or HIBOSS_TOKEN (over the socket: params.token, or auth.login once)"""

    code, rpc, http = "no_token", -32001, 401


class BadToken(HibossError):
    """this token is not valid here: mistyped, revoked, or of another hiboss home; hiboss agent token rotate (the boss: hiboss boss token rotate) gives a new one"""

    code, rpc, http = "bad_token", -32002, 401


class Forbidden(HibossError):
    """{operation} needs the level {needed}, and {caller} has {level}; ask the boss"""

    code, rpc, http = "forbidden", -32003, 403


class BossOnly(HibossError):
    """{what} is for the boss alone, and {caller} is not the boss; leave it out, or ask the boss"""

    code, rpc, http = "boss_only", -32003, 403


class FixedLevel(HibossError):
    """{operation} always needs the level {level}; no policy can change that"""

    code, rpc, http = "fixed_level", -32003, 403


class ForeignPeer(HibossError):
    """this socket serves the user with uid {owner} only, and you are uid {uid}"""

    code, rpc, http = "foreign_peer", -32003, 403


# --- what is not there ---------------------------------------------------------------


class NotFound(HibossError):
    """there is no {what} {value} that you can see; {where} shows what there is"""

    code, rpc, http = "not_found", -32004, 404

    def __init__(self, **facts: Any) -> None:
        if type(self) is NotFound:  # the more particular ones say it themselves
            facts.setdefault("where", "hiboss envelope list")
        super().__init__(**facts)


class OtherBox(NotFound):
    """{id} lies with {address}, not with you; to act for them, add --address {address}"""

    code = "other_box"


class UnknownRecipient(NotFound):
    """nobody has the address {address}{hint}; nothing was sent. hiboss agent list shows who is here"""

    code = "unknown_recipient"


class UnknownSender(NotFound):
    """nobody has the address {address}{hint}, so nothing was sent in that name. hiboss agent list shows who is here"""

    code = "unknown_sender"


class UnknownAddress(NotFound):
    """nobody has the address {address}{hint}; hiboss agent list shows who is here"""

    code = "unknown_address"


class UnknownAgent(NotFound):
    """there is no agent {name}{hint}; hiboss agent list shows who is here"""

    code = "unknown_agent"


class UnknownUser(NotFound):
    """there is nobody called {name}{hint} whose box could be changed; hiboss user list shows who has one"""

    code = "unknown_user"


class UnknownProfile(NotFound):
    """there is no profile {name}{hint}; profiles here: {profiles}"""

    code = "unknown_profile"


class UnknownOperation(NotFound):
    """{name} is no operation a policy can name{hint}; hiboss permission policy get lists them"""

    code = "unknown_operation"


class NotBound(HibossError):
    """{sender} cannot post to {address}: no {adapter} account it may use reaches there; bind one with: hiboss agent bind"""

    code, rpc, http = "not_bound", -32005, 403


class UnknownBinding(NotFound):
    """{account} is not bound to that agent; hiboss agent bindings shows what is"""

    code = "unknown_binding"


class UnknownAdapter(NotFound):
    """there is no adapter {name}{hint}; there are: {known}"""

    code = "unknown_adapter"


class NotSetUp(HibossError):
    """this home ({home}) is not set up yet; run: hiboss setup"""

    code, rpc, http = "not_set_up", -32006, 409


# --- clashes -------------------------------------------------------------------------


class NameTaken(HibossError):
    """the name {name} is taken (names are unique whatever the case); choose another, or delete that agent first"""

    code, rpc, http = "name_taken", -32009, 409


class BindingTaken(HibossError):
    """{account} is bound already, with other settings ({binding}); unbind it first, or choose another name"""

    code, rpc, http = "binding_taken", -32009, 409


class ArmedElsewhere(HibossError):
    """somebody already watches for {address}; one watch is enough"""

    code, rpc, http, exit = "armed_elsewhere", -32015, 409, EXIT_ARMED


class NotRunning(HibossError):
    """{id} is {state}; only a run that is under way can be cancelled, paused or resumed. hiboss run list shows them"""

    code, rpc, http = "not_running", -32026, 409


class KeyReused(HibossError):
    """the key {key} was already used for other content (envelope {id}); a key repeats one request and no other: for new content take a new key"""

    code, rpc, http = "key_reused", -32010, 409


class Gap(HibossError):
    """this cursor belongs to another state of the store (it was restored or replaced); start again without a cursor"""

    code, rpc, http = "gap", -32011, 410


class TooLate(HibossError):
    """{id} can no longer be {action}: it is {state}; hiboss envelope get shows how it stands"""

    code, rpc, http = "too_late", -32012, 409


# --- attachments ---------------------------------------------------------------------


class AttachmentMissing(HibossError):
    """there is no file {path} to attach; give the path of one that is there"""

    code, rpc, http = "attachment_missing", -32020, 404


class AttachmentUnreadable(HibossError):
    """{path} cannot be attached: {why}"""

    code, rpc, http = "attachment_unreadable", -32021, 400


class AttachmentForbidden(HibossError):
    """{path} lies in hiboss's own home; only files under {media} may be attached from there"""

    code, rpc, http = "attachment_forbidden", -32022, 403


class AttachmentPrivate(AttachmentForbidden):
    """{path} lies in {place}, from where nothing is attached; to allow it, change attachments.forbidden_paths (hiboss config show)"""

    code = "attachment_private"


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
