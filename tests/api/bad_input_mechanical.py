"""What can be wrong with any request, whatever it means: made from the declarations of the operations.

The types come from the published schema of the parameters, so this also holds what
`rpc.discover` says against what the daemon takes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hiboss.api import dispatch  # noqa: F401 - it declares the operations
from hiboss.api.operation import REGISTRY, Level
from hiboss.api.param_sizes import DEFAULT
from tests.api.bad_input_row import ENDLESS, HALF, MARKS, NUL, RIGHT, Row, asker

SAMPLES: dict[str, Any] = {
    "null": None,
    "boolean": True,
    "integer": 7,
    "number": 1.5,
    "string": "nonsense",
    "array": [],
    "object": {},
}
BAD_TOKENS = ("wrong", "empty", "nul", "endless", "ended", "turned", "gone", "parted", "over")

# What a text is answered with that holds a NUL, is empty, or has 100,000 letters. "": it is taken,
# since there it means something (a word taken away, a default) or is only looked for and not found.
# A parameter without a declared size answers 100,000 letters with invalid_params, whatever is said here.
NAMED = ("delete", "set", "permission.get", "permission.set", "token.rotate", "token.revoke")
NO_SESSION = ("not_attached", "not_attached", "too_large")
SCHEDULED = ("set", "show", "enable", "disable", "delete", "run")
TEXTS: dict[tuple[str, str], tuple[str, str, str]] = {
    **{(f"agent.{verb}", "name"): ("unknown_agent",) * 3 for verb in NAMED},
    ("agent.register", "name"): ("bad_name",) * 3,
    **{
        (f"agent.{verb}", word): ("bad_text", "", "too_large")
        for verb in ("register", "set")
        for word in ("description", "role", "module", "display", "workspace")
    },
    **{
        (f"agent.{verb}", word): ("bad_provider", "", "bad_provider")
        for verb in ("register", "set")
        for word in ("provider",)
    },
    **{(f"agent.{verb}", "name"): ("unknown_agent",) * 3 for verb in ("status", "pause", "resume", "check")},
    ("agent.check", "provider"): ("bad_provider",) * 3,
    **{(f"agent.{verb}", "name"): ("unknown_agent",) * 3 for verb in ("instructions", "sessions", "refresh")},
    ("agent.refresh", "conversation"): ("bad_id",) * 3,
    **{
        (f"agent.{verb}", "session_reset"): ("bad_time_of_day", "", "too_large")
        for verb in ("register", "set")
    },
    **{(f"agent.{verb}", "session_idle"): ("bad_duration", "", "too_large") for verb in ("register", "set")},
    ("agent.pause", "reason"): ("bad_text", "", "too_large"),
    ("auth.login", "door"): ("invalid_params",) * 3,
    **{(f"chat.{verb}", "agent"): ("bad_address",) * 3 for verb in ("read", "post", "ack", "status")},
    **{(f"chat.{verb}", "subscriber"): ("bad_text", "", "too_large") for verb in ("read", "ack", "status")},
    **{("chat.read", word): ("bad_id",) * 3 for word in ("after_id", "id")},
    ("chat.post", "reply_to"): ("bad_id",) * 3,
    ("chat.ack", "id"): ("bad_id",) * 3,
    ("chat.post", "mime"): ("invalid_params",) * 3,
    ("chat.post", "content"): ("bad_text", "empty_message", ""),
    ("chat.post", "key"): ("bad_text", "invalid_params", "too_large"),
    ("agent.background", "task"): ("bad_text", "empty_message", ""),
    ("agent.background", "subject"): ("bad_text", "", "too_large"),
    ("agent.background", "agent"): ("unknown_agent",) * 3,
    **{("agent.list", word): ("", "", "") for word in ("role", "module")},
    ("boss.set", "name"): ("bad_text", "invalid_params", "too_large"),
    ("boss.set", "timezone"): ("bad_timezone",) * 3,
    ("boss.set", "reach"): ("bad_address", "", "bad_address"),
    ("boss.set", "reach_binding"): ("bad_id",) * 3,
    **{(f"contact.{verb}", "contact"): ("not_found",) * 3 for verb in ("approve", "block", "route")},
    **{(f"contact.{verb}", "binding"): ("bad_id",) * 3 for verb in ("approve", "block", "route")},
    ("contact.route", "agent"): ("unknown_agent", "", "unknown_agent"),
    ("setup.execute", "boss_name"): ("bad_text", "", "too_large"),
    ("setup.execute", "timezone"): ("bad_timezone", "", "bad_timezone"),
    ("setup.execute", "agent_name"): ("bad_name", "", "bad_name"),
    ("setup.execute", "provider"): ("bad_provider", "", "bad_provider"),
    ("user.register", "name"): ("bad_name",) * 3,
    ("user.register", "display"): ("bad_text", "", "too_large"),
    **{(f"user.{verb}", "name"): ("unknown_user",) * 3 for verb in ("delete", "token.rotate")},
    ("run.list", "agent"): ("unknown_agent",) * 3,
    ("run.list", "trace"): ("bad_text", "", "too_large"),
    **{(f"{noun}.list", "after"): ("bad_id",) * 3 for noun in ("run", "cron")},
    **{(f"run.{verb}", "id"): ("bad_id",) * 3 for verb in ("get", "tail", "cancel", "pause", "resume")},
    ("breaker.pull", "reason"): ("bad_text", "", "too_large"),
    ("breaker.release", "pull"): ("", "", "too_large"),
    ("run.cancel", "reason"): ("bad_text", "", "too_large"),
    # Beside the run that is right, whatever they are.
    **{
        ("control.send", param): ("invalid_params",) * 3
        for param in ("agent", "conversation", "envelope", "to")
    },
    ("control.send", "run"): ("bad_id",) * 3,
    ("control.send", "reason"): ("bad_text", "", "too_large"),
    ("control.list", "agent"): ("unknown_agent",) * 3,
    ("control.list", "conversation"): ("bad_id",) * 3,
    ("control.list", "actor"): ("bad_address",) * 3,
    ("run.steer", "id"): ("bad_id",) * 3,
    ("run.steer", "text"): ("bad_text", "empty_message", ""),
    ("ask.rules", "agent"): ("unknown_agent",) * 3,
    ("ask.create", "question"): ("bad_text", "empty_message", ""),
    ("ask.create", "options"): ("bad_text", "bad_options", "bad_options"),
    ("ask.create", "to"): ("bad_address",) * 3,
    ("ask.create", "timeout"): ("bad_duration",) * 3,
    ("ask.create", "default"): ("invalid_params",) * 3,  # without a timeout, whatever it is
    **{(f"ask.{verb}", "id"): ("bad_id",) * 3 for verb in ("answer", "cancel", "get", "wait")},
    ("ask.answer", "choice"): ("bad_text", "bad_choice", "bad_choice"),
    ("ask.answer", "comment"): ("bad_text", "", "too_large"),
    ("ask.cancel", "reason"): ("bad_text", "", "too_large"),
    ("ask.wait", "timeout"): ("bad_duration",) * 3,
    **{
        (f"conversation.{verb}", param): ("bad_address",) * 3
        for verb in ("messages", "news")
        for param in ("with", "address")
    },
    ("conversation.news", "run"): ("bad_id",) * 3,
    ("conversation.messages", "conversation"): ("invalid_params",) * 3,  # beside `with`, whatever it is
    ("envelope.send", "conversation"): ("invalid_params",) * 3,  # beside `to`, whatever it is
    **{
        (f"conversation.{verb}", "conversation"): ("unknown_group",) * 3
        for verb in ("get", "set", "archive", "delete", "markRead")
    },
    **{
        (f"participant.{verb}", "conversation"): ("unknown_group",) * 3
        for verb in ("add", "remove", "role", "transfer", "join", "leave")
    },
    **{
        (f"participant.{verb}", "address"): ("bad_address",) * 3
        for verb in ("add", "remove", "role", "transfer")
    },
    **{(f"conversation.{verb}", "address"): ("bad_address",) * 3 for verb in ("get", "list", "markRead")},
    ("conversation.create", "name"): ("bad_name",) * 3,
    ("conversation.create", "participants"): ("bad_address",) * 3,
    **{(f"conversation.{verb}", "description"): ("bad_text", "", "too_large") for verb in ("create", "set")},
    ("conversation.set", "name"): ("bad_text", "invalid_params", "too_large"),  # of a group, whatever it is
    ("conversation.list", "name"): ("", "", ""),
    ("conversation.list", "after"): ("bad_id",) * 3,
    ("conversation.delete", "reason"): ("bad_text", "", "too_large"),
    ("conversation.markRead", "session"): ("bad_text", "", "too_large"),
    ("presence.get", "address"): ("bad_address",) * 3,
    # Whoever asks here is no open session.
    **{(f"attached.{verb}", "event"): NO_SESSION for verb in ("prompt", "stop", "break", "end")},
    ("attached.step", "tool"): NO_SESSION,
    ("attached.permit", "tool"): NO_SESSION,
    **{(f"attached.{verb}", "text"): ("not_attached",) * 3 for verb in ("stop",)},
    ("attached.prompt", "prompt"): ("not_attached",) * 3,
    ("attached.permit", "input"): ("not_attached",) * 3,
    ("attached.start", "session"): ("invalid_params", "invalid_params", "too_large"),
    ("attached.start", "pid_started"): ("bad_text", "", "too_large"),
    ("attached.start", "directory"): ("bad_text", "invalid_params", "too_large"),
    ("attached.start", "agent"): ("unknown_agent",) * 3,
    ("agent.detach", "name"): ("unknown_agent",) * 3,
    ("presence.typing", "conversation"): ("bad_id",) * 3,
    **{(f"agent.{verb}", "name"): ("unknown_agent",) * 3 for verb in ("notify", "notify.remove")},
    ("event.subscribe", "addresses"): ("bad_address",) * 3,
    ("event.subscribe", "conversations"): ("bad_id",) * 3,
    **{(f"envelope.{verb}", "ids"): ("bad_id",) * 3 for verb in (*MARKS, "cancel", "release", "retry")},
    **{
        (f"envelope.{verb}", "address"): ("bad_address",) * 3 for verb in (*MARKS, "list", "claim", "release")
    },
    ("envelope.claim", "lease"): ("bad_duration",) * 3,
    **{(f"lane.{verb}", "address"): ("bad_address",) * 3 for verb in ("retry", "pause", "resume")},
    **{(f"agent.{verb}", "name"): ("unknown_agent",) * 3 for verb in ("bind", "unbind")},
    **{(f"agent.{verb}", "adapter_type"): ("unknown_adapter",) * 3 for verb in ("bind", "unbind")},
    ("agent.unbind", "account"): ("unknown_binding",) * 3,
    ("envelope.get", "id"): ("bad_id",) * 3,
    ("envelope.trace", "id"): ("bad_id",) * 3,
    ("agent.briefing", "name"): ("bad_address",) * 3,
    **{(f"envelope.{verb}", "up_to"): ("invalid_params",) * 3 for verb in ("ack", "read")},  # beside ids
    **{(f"envelope.{verb}", "session"): ("bad_text", "", "too_large") for verb in ("ack", "read", "send")},
    **{(f"envelope.{verb}", "ids"): ("bad_id",) * 3 for verb in ("snooze", "unsnooze")},
    **{(f"envelope.{verb}", "address"): ("bad_address",) * 3 for verb in ("snooze", "unsnooze")},
    ("envelope.snooze", "until"): ("bad_time",) * 3,
    **{(f"envelope.{verb}", "claim"): ("bad_id",) * 3 for verb in ("ack", "release")},
    **{("envelope.list", word): ("bad_address",) * 3 for word in ("from", "to")},
    **{("envelope.list", word): ("bad_time",) * 3 for word in ("created_after", "created_before")},
    ("envelope.list", "thread"): ("bad_id",) * 3,
    ("envelope.list", "after"): ("bad_cursor",) * 3,
    ("message.edit", "id"): ("bad_id",) * 3,
    ("message.edit", "text"): ("bad_text", "empty_message", ""),
    ("message.delete", "id"): ("bad_id",) * 3,
    ("message.delete", "reason"): ("bad_text", "", "too_large"),
    ("message.restore", "id"): ("bad_id",) * 3,
    ("message.get", "message_id"): ("bad_id",) * 3,
    ("message.markRead", "message_ids"): ("bad_id",) * 3,
    ("message.markRead", "session"): ("bad_text", "", "too_large"),
    **{("message.list", param): ("bad_id",) * 3 for param in ("thread_id", "conversation_id", "run_id")},
    # Alone it would be too broad, whatever it is.
    **{("message.list", param): ("too_broad",) * 3 for param in ("created_after", "created_before")},
    ("message.list", "author_id"): ("too_broad",) * 3,
    ("message.list", "trace_id"): ("too_broad", "too_broad", "too_large"),
    ("message.list", "mention_role"): ("bad_text", "", "too_large"),
    ("message.list", "unread_for_agent"): ("boss_only",) * 3,
    **{(f"{noun}.list", "cursor"): ("bad_cursor",) * 3 for noun in ("message", "thread")},
    ("thread.get", "cursor"): ("bad_cursor",) * 3,
    **{(name, "address"): ("bad_address",) * 3 for name in ("message.list", "thread.list", "thread.get")},
    ("thread.get", "thread_id"): ("bad_id",) * 3,
    ("thread.chain", "id"): ("bad_id",) * 3,
    ("envelope.list", "conversation"): ("bad_id",) * 3,
    ("envelope.list", "mention_role"): ("bad_text", "", "too_large"),
    **{(f"reaction.{verb}", "id"): ("bad_id",) * 3 for verb in ("set", "remove")},
    ("reaction.set", "emoji"): ("bad_emoji", "bad_emoji", "too_large"),
    ("envelope.send", "to"): ("bad_address",) * 3,
    ("envelope.send", "text"): ("bad_text", "empty_message", ""),
    ("envelope.send", "subject"): ("bad_text", "", "too_large"),
    ("envelope.send", "trace_id"): ("bad_text", "", "too_large"),
    ("envelope.send", "key"): ("bad_text", "invalid_params", "too_large"),
    ("envelope.send", "attachments"): ("bad_text", "attachment_unreadable", "attachment_unreadable"),
    ("envelope.send", "uploads"): ("bad_id",) * 3,
    ("upload.delete", "ids"): ("bad_id",) * 3,
    ("envelope.send", "deliver_at"): ("bad_time",) * 3,
    ("envelope.send", "ack_by"): ("bad_duration",) * 3,
    ("envelope.send", "reply_to"): ("bad_id",) * 3,
    ("envelope.send", "from"): ("bad_address",) * 3,
    ("envelope.send", "from_name"): ("boss_only", "boss_only", "too_large"),
    ("turn.preview", "address"): ("bad_address",) * 3,
    ("envelope.unread", "address"): ("bad_address",) * 3,
    **{
        (f"cron.{verb}", param): codes
        for verb in ("create", "set")
        for param, codes in {
            "cron": ("bad_cron",) * 3,
            "every": ("bad_duration",) * 3,
            "at": ("bad_time",) * 3,
            "to": ("bad_address",) * 3,
            "text": ("bad_text", "empty_message", ""),
            "subject": ("bad_text", "", "too_large"),
            "attachments": ("bad_text", "attachment_unreadable", "attachment_unreadable"),
            "uploads": ("bad_id",) * 3,
            "timezone": ("bad_timezone", "", "bad_timezone"),
            "name": ("bad_text", "", "too_large"),
        }.items()
    },
    ("cron.create", "from"): ("bad_address",) * 3,
    ("cron.create", "from_name"): ("boss_only", "boss_only", "too_large"),
    **{(f"cron.{verb}", "id"): ("bad_id",) * 3 for verb in SCHEDULED},
    ("cron.explain", "cron"): ("bad_cron",) * 3,
    ("cron.explain", "timezone"): ("bad_timezone", "", "bad_timezone"),
    **{(f"envelope.{verb}", "timeout"): ("bad_duration",) * 3 for verb in ("wait", "watch")},
    **{(f"envelope.{verb}", "after"): ("bad_cursor",) * 3 for verb in ("wait", "watch")},
    **{(f"envelope.{verb}", "address"): ("bad_address",) * 3 for verb in ("wait", "watch")},
    ("web.link", "name"): ("unknown_user",) * 3,
    ("webhook.create", "name"): ("invalid_params",) * 3,
    ("webhook.subscribe", "name"): ("invalid_params",) * 3,
    **{
        (f"webhook.{verb}", "name"): ("unknown_webhook",) * 3
        for verb in ("get", "set", "rotate", "delete", "unsubscribe")
    },
    **{(f"webhook.{verb}", "to"): ("bad_address",) * 3 for verb in ("create", "set")},
    **{
        (f"webhook.{verb}", word): ("invalid_params", "", "invalid_params")
        for verb in ("create", "set")
        for word in ("template", "subject")
    },
    **{(f"webhook.{verb}", "url"): ("invalid_params",) * 3 for verb in ("subscribe", "set")},
    ("webhook.subscribe", "addresses"): ("bad_address",) * 3,
    ("webhook.set", "addresses"): ("invalid_params",) * 3,  # of one that receives, whatever they are
    ("envelope.poll", "wait"): ("bad_duration",) * 3,
    ("envelope.poll", "session"): ("bad_text", "", "too_large"),
}


def mechanical(name: str) -> list[Row]:
    return [*_parameters(name), *_texts(name), *_callers(name)]


def properties(name: str) -> dict[str, Any]:
    found: dict[str, Any] = REGISTRY[name].params.model_json_schema().get("properties", {})
    return found


def text_parameters(name: str) -> Iterator[tuple[str, bool]]:
    """Those that take any text, and whether they take a list of them."""
    for param, shape in properties(name).items():
        branches = _branches(shape)
        items = [inner for one in branches if "items" in one for inner in _branches(one["items"])]
        if any(_is_text(one) for one in branches):
            yield param, False
        elif any(_is_text(one) for one in items):
            yield param, True


def _row(name: str, params: Any, code: str, *says: str, by: str | None = None) -> Row:
    return Row(operation=name, params=params, code=code, says=says, by=by or asker(name))


def _parameters(name: str) -> Iterator[Row]:
    right, shapes = RIGHT.get(name, {}), properties(name)
    for param, shape in shapes.items():
        for value in _wrong(shape):
            yield _row(name, {**right, param: value}, "invalid_params", name, param)
        wrong = {**right, f"{param}x": 1}
        yield _row(name, wrong, "invalid_params", f"{param}x is not a parameter", f"did you mean {param}?")
    for param in REGISTRY[name].params.model_json_schema().get("required", []):
        left = {key: value for key, value in right.items() if key != param}
        yield _row(name, left, "invalid_params", f"{param} is missing")
    listed = ", ".join(shapes) or "none"
    yield _row(name, {**right, "q": 1}, "invalid_params", "q is not a parameter", f"there are: {listed}")
    yield _row(name, {**right, ENDLESS: 1}, "invalid_params", "is not a parameter")
    yield _row(name, [None] * (len(shapes) + 1), "invalid_params", name, str(len(shapes)))


def _texts(name: str) -> Iterator[Row]:
    right = RIGHT.get(name, {})
    for param, several in text_parameters(name):
        nul, empty, endless = TEXTS.get((name, param), ("", "", ""))
        if REGISTRY[name].sizes.get(param, DEFAULT).text == DEFAULT.text:
            endless = "invalid_params"
        for value, code in ((NUL, nul), ("", empty), (ENDLESS, endless)):
            if code:
                yield _row(name, {**right, param: [value] if several else value}, code)
        yield _row(name, {**right, param: [HALF] if several else HALF}, "parse_error", "not JSON")
    yield _row(name, {**right, HALF: 1}, "parse_error", "not JSON")


def _callers(name: str) -> Iterator[Row]:
    right, level = RIGHT.get(name, {}), REGISTRY[name].level
    for by in BAD_TOKENS:
        yield _row(name, right, "bad_token", "not valid here", by=by)
    for token in (5, True, 1.5, [], {}, ["x"]):
        yield _row(name, {**right, "token": token}, "invalid_params", "token must be text", by="nobody")
    if level > Level.OPEN:
        yield _row(name, right, "no_token", "--token", by="nobody")
        yield _row(name, {**right, "token": None}, "no_token", "--token", by="nobody")
    for by, has in (("low", Level.RESTRICTED), ("nex", Level.STANDARD)):
        if level > has:
            yield _row(name, right, "forbidden", name, level.word, has.word, by=by)


def before_set_up(name: str) -> list[Row]:
    """Of a home where no token can be right yet."""
    right = RIGHT.get(name, {})
    callers = ["wrong"] if REGISTRY[name].level is Level.OPEN else ["wrong", "nobody"]
    return [_row(name, right, "not_set_up", "hiboss up", by=by) for by in callers]


def _branches(shape: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = shape.get("anyOf", [shape])
    return [{"type": "object"} if "$ref" in one else one for one in found]  # a model of its own, like a tag


def _is_text(shape: dict[str, Any]) -> bool:
    return shape.get("type") == "string" and "enum" not in shape


def _wrong(shape: dict[str, Any]) -> Iterator[Any]:
    """Values of every JSON type that this does not take, and those its own bounds refuse."""
    branches = _branches(shape)
    taken = {one["type"] for one in branches}
    if "number" in taken:
        taken.add("integer")  # which is a number too
    yield from (value for kind, value in SAMPLES.items() if kind not in taken)
    for one in branches:
        if "enum" in one:
            yield from ("nonsense", "", one["enum"][0].upper(), one["enum"][0] + " ", NUL, ENDLESS)
        if "minimum" in one:
            yield one["minimum"] - 1
        if "maximum" in one:
            yield one["maximum"] + 1
        if one.get("minLength"):
            yield ""
        if one.get("minItems"):
            yield []
        if "items" in one:
            yield from ([value] for value in _wrong(one["items"]))
        if isinstance(one.get("additionalProperties"), dict):
            yield from ({"k": value} for value in _wrong(one["additionalProperties"]))
