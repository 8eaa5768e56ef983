"""Errors in a request: its form, parameters, size, attachments. The docstrings are the messages."""

from __future__ import annotations

from .base import EXIT_USAGE, HibossError

TYPE_CHECKING = False  # see base.py
if TYPE_CHECKING:
    from typing import Any

# --- the errors of the protocol (JSON-RPC 2.0, section 5.1) --------------------------


class ParseError(HibossError):
    """this is not JSON: {detail}; send one JSON-RPC 2.0 request per line"""

    code, rpc = "parse_error", -32700


class InvalidRequest(HibossError):
    """this is not a JSON-RPC 2.0 request: {detail}"""

    code, rpc = "invalid_request", -32600


class FrameTooLarge(InvalidRequest):
    """a request may have at most {limit} bytes, and this one has more; send less at a time, or send large content as an attachment"""

    code, http = "frame_too_large", 413


class AnswerTooLarge(HibossError):
    """the answer has {size} bytes, and the limit is {limit} (limits.answer_bytes); ask for less, like a smaller page_size or fewer ids. If the request changes something, that was done"""

    code, rpc, http = "answer_too_large", -32055, 413


class BatchTooLarge(HibossError):
    """this request was not run: the answers before it in the batch reached {limit} bytes (limits.answer_bytes); send it again in another batch"""

    code, rpc, http = "batch_too_large", -32056, 413


class MethodNotFound(HibossError):
    """there is no operation {method}{hint}; rpc.discover lists them all"""

    code, rpc, http = "method_not_found", -32601, 404


class InvalidParams(HibossError):
    """{detail}"""

    code, rpc, exit = "invalid_params", -32602, EXIT_USAGE


class InternalError(HibossError):
    """hiboss has a defect and could not do this; `hiboss daemon logs` has the details under the reference {reference}"""

    code, rpc, http = "internal_error", -32603, 500


# --- wrong parameters ----------------------------------------------------------------


class BadAddress(InvalidParams):
    """{value} is not a valid address: {why}; addresses look like agent:nex, user:boss, channel:telegram:12345 or group:core-team"""

    code = "bad_address"


class BadTime(InvalidParams):
    """{value} is not a valid time: {why}; write for example +2h, +1Y2M3D, -15m, 2026-01-27T16:30:00+08:00, or 2026-01-27 16:30 (in the boss's zone)"""

    code = "bad_time"


class BadDuration(InvalidParams):
    """{value} is not a valid duration{why}; write for example 90s, 10m or 1h30m (units: h, m, s)"""

    code = "bad_duration"


class BadTimeOfDay(InvalidParams):
    """{value} is not a time of a day; write for example 04:00 or 23:30"""

    code = "bad_time_of_day"


class NoProvider(InvalidParams):
    """{name} has no provider; choose one with: hiboss agent {verb} {name} --provider demo (or --command "python3 agent.py", or --url URL)"""

    code = "no_provider"

    def __init__(self, **facts: Any) -> None:
        super().__init__(**{"verb": "set", **facts})


class BadProvider(InvalidParams):
    """these settings of the provider cannot work: {why}"""

    code = "bad_provider"


class LacksCapability(InvalidParams):
    """{provider}, as it is set, {lacks}; {instead}. hiboss agent providers shows what each can do"""

    code = "lacks_capability"


class BadCron(InvalidParams):
    """{value} is not a valid cron expression: {why}; write for example '0 9 * * MON-FRI' (minute, hour, day, month, weekday) or @daily"""

    code = "bad_cron"


class BadTimezone(InvalidParams):
    """{value} is not an IANA time zone{hint}; write for example Europe/Berlin or UTC"""

    code = "bad_timezone"


class BadId(InvalidParams):
    """{value} is not a valid {kind} id; write for example {example}"""

    code = "bad_id"


class BadName(InvalidParams):
    """{value} cannot be a name: {why}; a name has 1 to 64 characters: letters, digits, and single dashes between them, like nex or code-review"""

    code = "bad_name"


class BadChoice(InvalidParams):
    """{choice} is no option of {id}; the options are: {options}"""

    code = "bad_choice"


class BadOptions(InvalidParams):
    """these options cannot be asked: {why}; give 1 to 20 different options of up to 200 characters each"""

    code = "bad_options"


class BadText(InvalidParams):
    """{field} cannot be stored: {why}"""

    code = "bad_text"


class EmptyMessage(InvalidParams):
    """there is nothing in it; give a text (with envelope send: --text), a file to attach (--attachment), or both"""

    code = "empty_message"


class BadEmoji(InvalidParams):
    """{value} is not one emoji; give exactly one, like 👍"""

    code = "bad_emoji"


class EmojiRefused(InvalidParams):
    """{adapter} shows no {emoji} on a message, so nothing was stored; it shows for example {some}"""

    code = "emoji_refused"


class NoRecipient(InvalidParams):
    """there is no recipient; give at least one (--to), or a message to reply to (--reply-to)"""

    code = "no_recipient"


class UnreadableFile(InvalidParams):
    """{path} cannot be read: {why}"""

    code = "unreadable_file"


class NotUtf8(UnreadableFile):
    """{path} is not UTF-8 text{advice}"""

    code = "not_utf8"


class BadCursor(InvalidParams):
    """{value} is not a valid cursor for this list; give the `next` (next-cursor) of the page before, unchanged"""

    code = "bad_cursor"


class WrongUsage(HibossError):
    """{detail}"""

    # Only the command line raises this, before it calls the daemon.
    code, rpc, exit = "usage", -32602, EXIT_USAGE


# --- limits --------------------------------------------------------------------------


class TooLarge(HibossError):
    """{what} has {size}, and the limit is {limit}{advice}"""

    code, rpc, http = "too_large", -32013, 413


class TooFar(HibossError):
    """{value} is more than {years} years ahead, which is the limit; choose an earlier time"""

    code, rpc, exit = "too_far", -32014, EXIT_USAGE


class TooBroad(HibossError):
    """{what} would have to read through everything; {advice}"""

    code, rpc, exit = "too_broad", -32016, EXIT_USAGE


# --- attachments ---------------------------------------------------------------------


class ScheduleQuota(HibossError):
    """{why}, which only the boss can allow ({setting}); {said}"""

    code, rpc, http = "schedule_quota", -32034, 429


class AttachmentMissing(HibossError):
    """there is no file {path} to attach; give the path of a file that exists"""

    code, rpc, http = "attachment_missing", -32020, 404


class AttachmentUnreadable(HibossError):
    """{path} cannot be attached: {why}"""

    code, rpc, http = "attachment_unreadable", -32021, 400


class AttachmentForbidden(HibossError):
    """{path} is a file of the home directory of hiboss; from there only files under {media} may be attached"""

    code, rpc, http = "attachment_forbidden", -32022, 403


class AttachmentPrivate(AttachmentForbidden):
    """{path} is in {place}, and nothing may be attached from there; to allow it, change attachments.forbidden_paths (hiboss config show)"""

    code = "attachment_private"


class AttachmentOutside(AttachmentForbidden):
    """{path} is in no directory from which you may attach files ({roots}); copy it there and attach the copy, or let the boss add its directory to attachments.roots (hiboss config show)"""

    code = "attachment_outside"


class AttachmentLost(HibossError):
    """the file {name} of {message_id} cannot be read here any more: {why}; ask its sender to send it again"""

    code, rpc, http = "attachment_lost", -32023, 410
