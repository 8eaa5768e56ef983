"""A row of the table of bad input, and the words its rows are made of (`bad_input.py`)."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import Any

from hiboss.api import dispatch  # noqa: F401 - it declares the operations
from hiboss.api.operation import REGISTRY, Level

NUL, SEEN = "a\x00b", r"a\x00b"  # and as it is seen in a message
HALF = "a\ud800b"  # of a surrogate pair, which no text can hold
ENDLESS = "x" * 100_000
LONG = "x" * 4_050  # nearly as long as a parameter may be


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    operation: str
    params: Any
    code: str
    by: str = "nex"
    says: tuple[str, ...] = ()  # what the message must name
    cli: tuple[str, ...] = ()  # the words after `hiboss` that ask for the same
    cli_code: str = ""  # when the command line finds it first
    stdin: str = ""
    config: str | None = None  # what stands in config.toml meanwhile
    policy: dict[str, str] | None = None  # what is in force meanwhile

    def __str__(self) -> str:
        return f"{self.operation}-{self.code}-{self.by}-{self.params}"[:90]


def row(operation: str, params: Any, code: str, says: str = "", cli: str = "", **more: Any) -> Row:
    """`says` are words between bars; the boss asks where only the boss may."""
    more.setdefault("by", asker(operation))
    words = tuple(word.replace(NUL, SEEN) for word in says.split("|") if word)
    return Row(operation=operation, params=params, code=code, says=words, cli=tuple(shlex.split(cli)), **more)


def asker(operation: str) -> str:
    """Who may call it, so that something else is wrong."""
    if operation == "agent.background":  # nex has nothing to think with
        return "thinker"
    if operation in ("control.send", "run.cancel", "run.pause", "run.resume", "agent.check"):
        return "boss"  # it asks for a right of its own
    if operation in ("web.link", "web.logout"):  # they are for people
        return "boss"
    return "nex" if REGISTRY[operation].level <= Level.STANDARD else "boss"


# A request with which nothing is wrong; what is missing here needs no parameters.
RIGHT: dict[str, dict[str, Any]] = {
    "agent.register": {"name": "fresh"},
    "agent.set": {"name": "spare", "role": "r"},
    "agent.delete": {"name": "spare"},
    "agent.instructions": {"name": "nex"},
    "agent.sessions": {"name": "nex"},
    "agent.refresh": {"name": "spare"},
    "agent.detach": {"name": "spare"},
    "attached.start": {
        "client": "claude",
        "session": "right",
        "pid": 2,
        "pid_started": "1",
        "directory": "/work",
        "agent": "spare",
    },
    "attached.prompt": {"event": "1", "prompt": "x"},
    **{f"attached.{verb}": {"event": "1"} for verb in ("stop", "break", "end")},
    "attached.permit": {"tool": "Bash"},
    "agent.permission.get": {"name": "spare"},
    "agent.permission.set": {"name": "spare", "level": "privileged"},
    "agent.token.rotate": {"name": "spare"},
    "agent.token.revoke": {"name": "spare"},
    "permission.policy.set": {"policy": {"envelope.send": "privileged"}},
    "boss.set": {"name": "Bea"},
    **{f"contact.{verb}": {"contact": "%contact"} for verb in ("approve", "block")},
    "contact.route": {"contact": "%contact", "agent": "ada"},
    "envelope.send": {"to": "agent:ada", "text": "x"},
    "envelope.get": {"id": "%pending"},
    "envelope.trace": {"id": "%pending"},
    **{f"envelope.{verb}": {"ids": ["%pending"]} for verb in ("read", "ack", "archive", "trash")},
    **{f"envelope.{verb}": {"ids": ["%pending"]} for verb in ("restore", "unsnooze")},
    "envelope.snooze": {"ids": ["%pending"], "until": "+1h"},
    "envelope.cancel": {"ids": ["%sent"]},
    "envelope.release": {"ids": ["%claimed"]},
    "message.edit": {"id": "%sent", "text": "x"},
    "message.delete": {"id": "%sent"},
    "message.restore": {"id": "%sent"},
    "message.get": {"message_id": "%sent"},
    "message.markRead": {"message_ids": ["%pending"]},
    "thread.get": {"thread_id": "%sent"},
    "thread.chain": {"id": "%sent"},
    "reaction.set": {"id": "%pending", "emoji": "👍"},
    "reaction.remove": {"id": "%pending"},
    "envelope.retry": {"ids": ["%failed"]},
    "agent.bind": {"name": "spare", "adapter_type": "folder", "settings": {"path": "%unbound"}},
    "agent.unbind": {"name": "ada", "adapter_type": "folder"},
    **{f"lane.{verb}": {"address": "%lane"} for verb in ("retry", "pause", "resume")},
    "cron.create": {"to": "agent:ada", "text": "x", "every": "1h"},
    "cron.set": {"id": "%schedule", "every": "2h"},
    **{f"cron.{verb}": {"id": "%schedule"} for verb in ("show", "enable", "disable", "delete", "run")},
    "cron.explain": {"cron": "@daily"},
    **{f"envelope.{verb}": {"timeout": "1s"} for verb in ("wait", "watch")},
    **{f"agent.{verb}": {"name": "spare"} for verb in ("status", "pause", "resume")},
    "agent.check": {"name": "thinker"},
    "agent.background": {"task": "x"},
    "run.get": {"id": "%run"},
    "run.tail": {"id": "%run"},
    **{f"run.{verb}": {"id": "%running"} for verb in ("cancel", "pause", "resume")},
    "control.send": {"event": "stream.pause", "run": "%running"},
    "run.steer": {"id": "%asking", "text": "x"},
    "ask.rule.remove": {"number": 1},
    "ask.create": {"question": "x"},
    "ask.answer": {"id": "%asked", "choice": "yes"},
    **{f"ask.{verb}": {"id": "%ask"} for verb in ("cancel", "get")},
    "ask.wait": {"id": "%ask", "timeout": "1s"},
    "upload.delete": {"ids": ["%upload"]},
    "user.register": {"name": "zoe"},
    **{f"user.{verb}": {"name": "ann"} for verb in ("delete", "token.rotate")},
    "event.unsubscribe": {"subscription": 1},
    "presence.get": {"address": "spare"},
    "presence.typing": {"conversation": "%conversation"},
    "agent.notify": {"name": "spare", "when": "finished"},
    "agent.notify.remove": {"name": "spare"},
    "conversation.create": {"name": "fresh-group"},
    **{
        f"conversation.{verb}": {"conversation": "%group"}
        for verb in ("get", "archive", "delete", "markRead")
    },
    "conversation.set": {"conversation": "%group", "description": "x"},
    "participant.add": {"conversation": "%group", "address": "agent:bob"},
    **{
        f"participant.{verb}": {"conversation": "%group", "address": "agent:ada"}
        for verb in ("remove", "transfer")
    },
    "participant.role": {"conversation": "%group", "address": "agent:ada", "role": "admin"},
    "participant.join": {"conversation": "%open_group"},
    "participant.leave": {"conversation": "%visited"},
    "webhook.create": {"name": "fresh-hook", "to": "agent:ada"},
    "webhook.subscribe": {"name": "fresh-out", "url": "http://127.0.0.1:9/", "topics": ["breaker.pulled"]},
    "webhook.set": {"name": "scene-hook", "template": "x"},
    **{f"webhook.{verb}": {"name": "scene-hook"} for verb in ("get", "rotate", "delete")},
    "webhook.unsubscribe": {"name": "scene-out"},
    "chat.post": {"content": "x"},
    "chat.ack": {"id": "0"},
    "conversation.messages": {"with": "agent:ada"},
    "conversation.news": {"with": "agent:ada", "after": 0},
}
TO = {"to": "agent:ada"}
SEND = {**TO, "text": "x"}
TAG = {"type": "module", "value": "auth"}
WORDS = "--to agent:ada --text x"  # the same on the command line


BAD_ADDRESSES = (
    "",
    " ",
    "x:y",
    "agent:",
    "agent:a b",
    "robot:ada",
    "agent:a--b",
    "-x",
    "n" * 65,
    "channel:x",
    NUL,
    "user:ä",
)
NOBODYS_NAMES = ("nobody-here", "adda", "n" * 64)  # each could be a name, and nobody ever had it
BAD_TIMES = (
    "x",
    "",
    "+",
    "+h",
    "-",
    "+2H",
    "25:00",
    "2026-02-30",
    "2026-01-01T00:00+99:00",
    NUL,
    "٣",
    "+1h1h",
)
TIMELESS = ("+999999999Y", "+999999999h", "0001-01-01T00:00+14:00", "9999-12-31T23:59-14:00")
BAD_IDS = (
    "x",
    "",
    "e",
    "0",
    "-1",
    "e0",
    "q1",
    "E1",
    "e1.5",
    "²",
    f"e{2**63}",
    "e" + "9" * 40,
    0,
    -1,
    2**63,
    NUL,
)
BAD_LENGTHS = (
    "soon",
    "",
    " ",
    "10",
    "m",
    "+10m",
    "-10m",
    "10 m",
    "30m1h",
    "1h1h",
    "10M",
    "1D",
    "1.5h",
    NUL,
    "٣m",
)
MARKS = ("read", "ack", "archive", "trash", "restore")


def shown(value: Any) -> str:
    """As a message says again what was written; nothing, so that it is seen."""
    return str(value)[:40].strip() or "''"
