"""Every bad input: for each operation what is wrong with a request, and the stable code it is answered with.

A row is sent over the socket and, where it has words for it, by the command line. `%name` stands
for a fact of the scene (`bad_input_scene.py`). What can be wrong with any parameter whatever it
means (its type, its absence, its spelling, who asks) is made from the declarations by
`mechanical`; what a parameter means is written out here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.api.bad_input_asks import asks
from tests.api.bad_input_attached import attached
from tests.api.bad_input_chat import chats
from tests.api.bad_input_contacts import contacts
from tests.api.bad_input_controls import controls
from tests.api.bad_input_delivery import delivery
from tests.api.bad_input_groups import grouped
from tests.api.bad_input_mailboxes import TAG, mailboxes
from tests.api.bad_input_messages import messages
from tests.api.bad_input_metrics import observed
from tests.api.bad_input_presence import present
from tests.api.bad_input_receipts import followed
from tests.api.bad_input_row import (
    BAD_ADDRESSES,
    BAD_IDS,
    BAD_TIMES,
    ENDLESS,
    LONG,
    MARKS,
    NOBODYS_NAMES,
    NUL,
    RIGHT,
    SEND,
    TIMELESS,
    TO,
    WORDS,
    Row,
    row,
    shown,
)
from tests.api.bad_input_runs import following, people, thinking
from tests.api.bad_input_schedules import schedules, waiting
from tests.api.bad_input_web import browsers
from tests.api.bad_input_webhooks import webhooks


def _kinds() -> Iterator[Row]:
    """Every parameter that is an address, a time or an id, with everything that is none."""
    addresses = [
        ("envelope.send", "to", SEND, "nex"),
        ("envelope.send", "from", SEND, "boss"),
        ("envelope.send", "from", SEND, "nex"),
        *[("envelope.list", name, {}, "nex") for name in ("from", "to", "address")],
        *[(f"envelope.{verb}", "address", {"ids": ["%pending"]}, "nex") for verb in MARKS],
        ("turn.preview", "address", {}, "nex"),
        ("envelope.unread", "address", {}, "nex"),
    ]
    for name, param, base, by in addresses:
        for value in BAD_ADDRESSES:
            yield row(name, {**base, param: value}, "bad_address", "is not a valid address|agent:nex", by=by)
        unknown = {"to": "unknown_recipient", "from": "unknown_sender"} if name == "envelope.send" else {}
        for value in NOBODYS_NAMES:
            yield row(name, {**base, param: value}, unknown.get(param, "unknown_address"), value, by=by)
    times = [("envelope.send", "deliver_at", SEND)]
    times += [("envelope.list", param, {}) for param in ("created_after", "created_before")]
    for name, param, base in times:
        for value in BAD_TIMES:
            yield row(name, {**base, param: value}, "bad_time", f"{shown(value)} is not a valid time|+2h")
        for value in TIMELESS:
            yield row(name, {**base, param: value}, "bad_time", f"{value}|years 1 to 9999")
    ids = [("envelope.send", "reply_to", SEND), ("envelope.list", "thread", {}), ("envelope.get", "id", {})]
    ids += [("envelope.ack", "up_to", {"all": True})]
    for value in BAD_IDS:
        for name, param, base in ids:
            yield row(name, {**base, param: value}, "bad_id", f"{shown(value)} is not a valid |e81")
        for verb in (*MARKS, "cancel"):
            yield row(
                f"envelope.{verb}",
                {"ids": ["%pending", value]},
                "bad_id",
                f"{shown(value)} is not a valid |e81",
            )


def _recipients() -> Iterator[Row]:
    for params, code, says, cli in (
        (
            {"to": ["agent:ada", "x:y"], "text": "x"},
            "bad_address",
            "x:y is no",
            "--to agent:ada --to x:y --text x",
        ),
        ({"to": "%token", "text": "x"}, "bad_address", "is not a valid address", ""),
        (
            {"to": "agent:adda", "text": "x"},
            "unknown_recipient",
            "adda|agent:ada?",
            "--to agent:adda --text x",
        ),
        ({"to": "adda", "text": "x"}, "unknown_recipient", "adda|did you mean ada?", "--to adda --text x"),
        ({"to": ["agent:ada", "agent:gone"], "text": "x"}, "unknown_recipient", "agent:gone", ""),
        ({"to": ["ada", "gone"], "text": "x"}, "unknown_recipient", "agent:gone", "--to gone --text x"),
        ({"to": "user:nobody", "text": "x"}, "unknown_recipient", "user:nobody", ""),
        ({"to": "group:none", "text": "x"}, "unknown_recipient", "group:none", ""),
        (
            {"to": "channel:telegram:1", "text": "x"},
            "not_bound",
            "telegram",
            "--to channel:telegram:1 --text x",
        ),
        ({"text": "x"}, "no_recipient", "--to|--reply-to", "--text x"),
        ({"to": [], "text": "x"}, "no_recipient", "--to", ""),
    ):
        yield row("envelope.send", params, code, says, f"envelope send {cli}" if cli else "")


def _content() -> Iterator[Row]:
    for params, code, says, cli, by in (
        (TO, "empty_message", "--text|--attachment", "--to agent:ada", ""),
        ({**TO, "text": ""}, "empty_message", "--text", "", ""),
        ({**TO, "text": " \n\t\u2003"}, "empty_message", "--text", "", ""),
        ({**SEND, "deliver_at": "soon"}, "bad_time", "soon|+2h", f"{WORDS} --deliver-at soon", ""),
        ({**SEND, "deliver_at": "+1h1h"}, "bad_time", "twice", "", ""),
        ({**SEND, "deliver_at": "+2H"}, "bad_time", "Y M D h m s", "", ""),
        ({**SEND, "reply_to": "x1"}, "bad_id", "x1|e81", f"{WORDS} --reply-to x1", ""),
        ({"text": "x", "reply_to": "%others"}, "not_found", "%others", "--text x --reply-to %others", ""),
        *[
            ({**SEND, "reply_to": value}, "not_found", "there is no", "", "")
            for value in ("%others_message", "%deferred", "e999999", 2**63 - 1)
        ],
        *[
            ({**SEND, name: NUL}, "bad_text", f"{name}|NUL", "", "")
            for name in ("text", "subject", "trace_id", "key")
        ],
        ({**SEND, "key": "used"}, "key_reused", "used|%sent", f"{WORDS} --key used", ""),
        ({**SEND, "from": "agent:ada"}, "boss_only", "from", f"{WORDS} --from agent:ada", ""),
        ({**SEND, "from": "agent:nex", "from_boss": True}, "boss_only", "from_boss", "", ""),
        ({**SEND, "from": "user:boss"}, "boss_only", "from", "", ""),
        ({**SEND, "from_boss": True}, "boss_only", "from_boss", "", ""),
        ({**SEND, "from_name": "x"}, "boss_only", "from_name", "", ""),
        ({**SEND, "from": "ada"}, "boss_only", "from", f"{WORDS} --from ada", ""),
        ({**SEND, "from": "adda"}, "unknown_sender", "did you mean ada?", f"{WORDS} --from adda", "boss"),
        ({**SEND, "from": "user:boss", "from_name": NUL}, "bad_text", "from_name", "", "boss"),
        (
            {**SEND, "from": "agent:adda"},
            "unknown_sender",
            "agent:ada?",
            f"{WORDS} --from agent:adda",
            "boss",
        ),
        ({**SEND, "from": "agent:gone"}, "unknown_sender", "agent:gone", "", "boss"),
    ):
        yield row("envelope.send", params, code, says, f"envelope send {cli}" if cli else "", by=by or "nex")


def _attachments() -> Iterator[Row]:
    def attach(path: str, code: str, says: str, *, cli: bool = False) -> Row:
        words = f"envelope send --to agent:ada --attachment {path}" if cli else ""
        return row("envelope.send", {**TO, "attachments": [path]}, code, f"{path}|{says}", words)

    yield attach("%missing", "attachment_missing", "there is no file", cli=True)
    yield attach("%below-a-file", "attachment_unreadable", "Not a directory")
    yield attach("%directory", "attachment_unreadable", "not a regular file", cli=True)
    yield attach("%slash", "attachment_unreadable", "it is a directory")
    yield attach("%pipe", "attachment_unreadable", "not a regular file", cli=True)
    yield attach("%socket", "attachment_unreadable", "cannot be attached")
    yield attach("%loop", "attachment_unreadable", "symbolic links")
    yield attach("/dev/zero", "attachment_unreadable", "not a regular file")
    yield attach("/proc/self/mem", "attachment_unreadable", "cannot be attached")  # opens, and cannot be read
    for path in ("file", "./file", "~/file", "../file"):
        yield attach(path, "attachment_unreadable", "must be absolute")
    yield row("envelope.send", {**TO, "attachments": [""]}, "attachment_unreadable", "must be absolute")
    for path in ("%database", "%profile", "%link", "%hard-link"):
        yield attach(path, "attachment_forbidden", "only files under", cli=path == "%database")
    yield attach("%private", "attachment_private", "attachments.forbidden_paths", cli=True)
    yield attach("%to-private", "attachment_private", "attachments.forbidden_paths")
    yield row("envelope.send", {**TO, "attachments": ["/" + NUL]}, "bad_text", "attachment path|NUL")
    yield row("envelope.send", {**TO, "attachments": ["/" + LONG]}, "attachment_unreadable", "long")
    yield row("envelope.send", {**TO, "attachments": ["/a" * 2_000]}, "attachment_missing", "no file")
    mixed = {**TO, "attachments": ["%missing", "%file"]}
    yield row("envelope.send", mixed, "attachment_missing", "%missing")


def _list() -> Iterator[Row]:
    def look(params: dict[str, Any], code: str, says: str = "", cli: str = "", **more: Any) -> Row:
        return row("envelope.list", params, code, says, f"envelope list {cli}" if cli else "", **more)

    for size in (0, -1, 101, 2**31, 2**63, 2**64 - 1):
        yield look({"page_size": size}, "invalid_params", f"page_size|{size}|1 to 100")
    yield look({"page_size": 2**64}, "invalid_params", "page_size")  # JSON's number, no longer a whole one
    yield look({"page_size": -5}, "invalid_params", "page_size|-5|1 to 100", "-n -5")
    yield look({"page_size": 1000}, "invalid_params", "page_size|1000|1 to 100", "-n 1000")
    for name in ("from", "to"):
        yield look({name: "x:y"}, "bad_address", "x:y is not a valid address", f"--{name} x:y")
        yield look({name: "adda"}, "unknown_address", "adda|did you mean ada?", f"--{name} adda")
        yield look(
            {name: "agent:nobody-here"}, "unknown_address", "agent:nobody-here", f"--{name} agent:nobody-here"
        )
    for name in ("created_after", "created_before"):
        yield look({name: "x"}, "bad_time", "x is not a valid time", f"--{name.replace('_', '-')} x")
    yield look({"thread": "x1"}, "bad_id", "x1|t81", "--thread x1")
    yield look({"thread": "%others"}, "not_found", "%others", "--thread %others")
    yield look({"thread": "%deferred"}, "not_found", "%deferred")
    for cursor in (
        "x",
        "-",
        "a1",
        "00000000-",
        "00000000-a",
        "00000000-x1",
        "00000000-o1",
        "00000000-a1.1",
        "0-a²",
    ):
        yield look({"after": cursor}, "bad_cursor", f"{cursor} is not a valid cursor")
    yield look({"after": f"0-a{2**63}"}, "bad_cursor", "is not a valid cursor")
    yield look({"after": "x"}, "bad_cursor", "x is not a valid cursor|next", "--after x")
    yield look({"after": "00000000-a1"}, "gap", "an earlier store", "--after 00000000-a1")
    yield look({"address": "user:boss"}, "boss_only", "address|agent:nex", "--address user:boss")
    yield row("envelope.unread", {"address": "user:boss"}, "boss_only", "address|agent:nex")
    yield look({"address": "agent:nobody-here"}, "unknown_address", "nobody-here", by="boss")
    yield look({"box": "all"}, "boss_only", "box all|agent:nex", "--box all")
    yield look({"box": "all", "address": "agent:ada"}, "invalid_params", "box all|address", by="boss")


def _marks() -> Iterator[Row]:
    for verb in (*MARKS, "cancel"):
        name, command = f"envelope.{verb}", f"envelope {verb}"
        own = "%sent" if verb == "cancel" else "%pending"
        yield row(name, {"ids": [own, "x"]}, "bad_id", "x|e81", f"{command} --id {own} --id x")
        foreign = f"{command} --id {own} --id %others"
        yield row(name, {"ids": [own, "%others"]}, "not_found", "%others", foreign)
        yield row(name, {"ids": ["e999999"]}, "not_found", "e999999")
        if verb != "cancel":
            whose = "%pending|agent:nex|--address agent:nex"
            yield row(name, {"ids": ["%pending"]}, "other_box", whose, f"{command} --id %pending", by="boss")
            yield row(name, {"ids": ["%deferred"]}, "not_found", "%deferred")
            yield row(name, {"ids": ["%pending"], "address": "user:boss"}, "boss_only", "address")
            yield row(name, {"ids": ["%own"], "address": "agent:ada"}, "not_found", "%own", by="boss")
            nobody = {"ids": ["%own"], "address": "agent:nobody-here"}
            yield row(name, nobody, "unknown_address", "agent:nobody-here", by="boss")
        if verb in ("archive", "trash", "restore", "cancel"):
            yield row(name, {"ids": ["%held"]}, "too_late", "%held|being delivered")
    yield row(
        "envelope.ack", {"ids": ["%cancelled"]}, "too_late", "cancelled", "envelope ack --id %cancelled"
    )
    yield row("envelope.cancel", {"ids": ["%own"]}, "too_late", "%own|done", "envelope cancel --id %own")
    yield row("envelope.ack", {}, "invalid_params", "ids|--all", "envelope ack")
    yield row("envelope.ack", {"ids": ["%pending"], "all": True}, "invalid_params", "ids|--all")
    yield row("envelope.ack", {"ids": ["%pending"], "up_to": "%own"}, "invalid_params", "--up-to")
    yield row("envelope.ack", {"all": True, "claim": "k1"}, "invalid_params", "--claim")
    yield row("envelope.ack", {"ids": ["%claimed"], "claim": "k999999"}, "too_late", "another session")
    for value in ("%others", "%deferred", "%sent"):
        yield row("envelope.ack", {"all": True, "up_to": value}, "not_found", value)
    yield row("envelope.get", {"id": "m1"}, "bad_id", "m1|e81", "envelope get --id m1")
    yield row("envelope.get", {"id": "%others"}, "not_found", "%others", "envelope get --id %others")
    for value in ("%deferred", 2**63 - 1):
        yield row("envelope.get", {"id": value}, "not_found", "there is no envelope")


def _turns() -> Iterator[Row]:
    command = "envelope list --as-turn"
    yield row("turn.preview", {}, "invalid_params", "--address", command, by="boss")
    for value, code, says in (("x:y", "bad_address", "x:y is no"), ("adda", "unknown_address", "adda|ada?")):
        yield row("turn.preview", {"address": value}, code, says, f"{command} --address {value}", by="boss")
    yield row(
        "turn.preview", {"address": "user:boss"}, "invalid_params", "user:boss is not an agent", by="boss"
    )
    yield row("turn.preview", {"address": "agent:nobody-here"}, "unknown_address", "nobody-here", by="boss")
    yield row("turn.preview", {"address": "agent:gone"}, "unknown_agent", "gone", by="boss")
    yield row(
        "turn.preview", {"address": "agent:ada"}, "boss_only", "agent:nex", f"{command} --address agent:ada"
    )


def _agents() -> Iterator[Row]:
    for name in (
        "",
        " ",
        "a b",
        "-a",
        "a-",
        "a--b",
        "ä",
        "a_b",
        "agent:a",
        NUL,
        "boss",
        "System",
        "all",
        "background",
    ):
        yield row("agent.register", {"name": name}, "bad_name", f"{name.strip()}|code-review")
    yield row("agent.register", {"name": "a b"}, "bad_name", "a b", "agent register --name 'a b'")
    for name in ("nex", "NEX"):
        yield row("agent.register", {"name": name}, "name_taken", name, f"agent register --name {name}")
    for name in ("agent.register", "agent.set"):
        agent = "spare" if name == "agent.set" else "fresh"
        for field in ("description", "role", "module", "display", "workspace"):
            yield row(name, {"name": agent, field: NUL}, "bad_text", f"{field}|NUL")
            yield row(name, {"name": agent, field: "/" + "ü" * 512}, "too_large", f"{field}|1025 bytes|1024")
        yield row(
            name, {"name": agent, "workspace": "here"}, "invalid_params", "here is not an absolute path"
        )
    yield row("agent.set", {"name": "spare"}, "invalid_params", "--role", "agent set --name spare")
    named = ("delete", "set", "permission.get", "permission.set", "token.rotate", "token.revoke")
    more = {"set": " --role r", "permission.set": " --level standard", "delete": " --yes"}
    for verb in named:
        name, command = f"agent.{verb}", f"agent {verb.replace('.', ' ')}"
        right = RIGHT[name]
        words = f"{command} --name spar{more.get(verb, '')}"
        yield row(name, {**right, "name": "spar"}, "unknown_agent", "spar |spare?", words, by="boss")
        for value in ("", "gone", "agent:gone", "agent:", "user:spare", NUL, "' OR 1=1 --"):
            yield row(
                name, {**right, "name": value}, "unknown_agent", f"{shown(value)}|agent list", by="boss"
            )
    for verb in ("set", "delete", "token.rotate", "token.revoke"):  # whatever the policy: nobody but oneself
        name, allowed = f"agent.{verb}", {f"agent.{verb}": "standard"}
        command = f"agent {verb.replace('.', ' ')} --name spare{more.get(verb, '')}"
        yield row(name, RIGHT[name], "boss_only", "agent:nex", command, by="nex", policy=allowed)
    for name in (
        "agent.pause",
        "agent.refresh",
        "agent.resume",
        "agent.bind",
        "agent.unbind",
        "user.delete",
        "user.token.rotate",
    ):
        allowed = {name: "standard"}
        yield row(name, RIGHT[name], "boss_only", "agent:nex", by="nex", policy=allowed)
    for name in ("lane.retry", "lane.pause", "lane.resume"):
        allowed = {name: "standard"}
        yield row(name, {"address": "agent:ada"}, "boss_only", "agent:ada", by="nex", policy=allowed)


def _boss() -> Iterator[Row]:
    yield row("boss.set", {}, "invalid_params", "--name|--timezone", "boss set")
    for name in ("", "  "):
        yield row("boss.set", {"name": name}, "invalid_params", "name is empty")
    yield row("boss.set", {"name": NUL}, "bad_text", "name|NUL")
    zones = ("", "Europe", "Mars/Base", "../../etc/passwd", "/etc/passwd", NUL, "UTC+1", LONG)
    for zone in zones:
        yield row("boss.set", {"timezone": zone}, "bad_timezone", f"{shown(zone)}|Europe/Berlin")
    zone = {"timezone": "Europe/Berln"}
    yield row(
        "boss.set", zone, "bad_timezone", "did you mean Europe/Berlin?", "boss set --timezone Europe/Berln"
    )
    yield row("boss.set", {"name": "Bea", **zone}, "bad_timezone", "Berln")
    chat = {"reach": "channel:folder:nowhere"}
    yield row("boss.set", chat, "not_bound", "nowhere|folder", "boss set --reach channel:folder:nowhere")
    yield row(
        "boss.set", {"reach": "agent:nex"}, "invalid_params", "private chat", "boss set --reach agent:nex"
    )
    yield row("boss.set", {"reach": "channel:x"}, "bad_address", "channel:x", "boss set --reach channel:x")
    yield row("boss.set", {"reach_binding": "b1"}, "invalid_params", "--reach", "boss set --reach-binding b1")
    yield row("boss.set", {**chat, "reach_binding": "x"}, "bad_id", "x|b81")
    yield row(
        "boss.set", {"forward": "some"}, "invalid_params", "forward|important", "boss set --forward some"
    )
    yield row(
        "setup.execute", zone, "bad_timezone", "did you mean Europe/Berlin?", "setup --timezone Europe/Berln"
    )
    yield row("setup.execute", {"boss_name": NUL}, "bad_text", "boss_name|NUL")
    for name in ("a b", "boss", NUL):
        yield row("setup.execute", {"agent_name": name}, "bad_name", name)
    yield row("setup.execute", {"agent_name": "a b"}, "bad_name", "a b", "setup --agent-name 'a b'")


def _house() -> Iterator[Row]:
    command = "permission policy set --file -"
    for policy, code, says in (
        ({"envelope.snd": "boss"}, "unknown_operation", "envelope.snd|envelope.send?"),
        ({"envelope.send": "stnadard"}, "invalid_params", "stnadard|standard?"),
        ({"boss.set": "standard"}, "fixed_level", "boss.set|boss"),
    ):
        text = "".join(f"{name}: {level}\n" for name, level in policy.items())
        yield row("permission.policy.set", {"policy": policy}, code, says, command, stdin=text)
    for policy, code in (
        ({"": "boss"}, "unknown_operation"),
        ({NUL: "boss"}, "unknown_operation"),
        ({LONG: "boss"}, "unknown_operation"),
        ({"envelope.send": "open"}, "invalid_params"),
        ({"envelope.send": ""}, "invalid_params"),
        ({"envelope.send": ENDLESS}, "invalid_params"),
        ({"envelope.send": "boss", "daemon.ping": "boss"}, "fixed_level"),
        ({"agent.list": "boss", "none": "boss"}, "unknown_operation"),
    ):
        yield row("permission.policy.set", {"policy": policy}, code)
    reload = "config reload"
    for text, code, says in (
        ("[limits]\npage_size = 'many'", "bad_setting", "page_size|whole number"),
        ("[limits]\npage_sise = 5", "unknown_setting", "page_sise|limits.page_size?"),
        ("[limits", "bad_config", "config.toml"),
    ):
        yield row("config.reload", {}, code, says, reload, config=text)


def written() -> list[Row]:
    """What is wrong because of what a parameter means."""
    parts = (_kinds, _recipients, _content, _attachments, _list, _marks, _turns, _agents, _boss, _house)
    elsewhere = (asks, contacts, controls, delivery, messages, schedules, waiting, thinking, people)
    elsewhere += (followed, observed, following, present, attached, grouped, mailboxes)
    elsewhere += (webhooks, browsers, chats)
    return [one for part in (*parts, *elsewhere) for one in part()]


# --- limits: what is accepted at the limit, and refused one over it ------------------


@dataclass(frozen=True, kw_only=True, slots=True)
class Limit:
    operation: str
    most: dict[str, Any]
    over: Row

    def __str__(self) -> str:
        return f"{self.operation}-{'-'.join(self.over.params)}-{self.over.code}"


def _limit(operation: str, name: str, most: Any, over: Any, code: str, says: str = "", **more: Any) -> Limit:
    base: dict[str, Any] = more.pop("base", RIGHT.get(operation, {}))
    refused = row(operation, {**base, name: over}, code, f"{name}|{says}" if says else "", **more)
    return Limit(operation=operation, most={**base, name: most}, over=refused)


def _deep(levels: int) -> dict[str, Any]:
    value: Any = 1
    for _ in range(levels):
        value = {"a": value}
    return dict(value)


def limits() -> list[Limit]:
    send, boss = "envelope.send", {**SEND, "from": "user:boss"}
    mib = 1024 * 1024
    return [
        _limit(send, "text", "ü" * (mib // 2), "ü" * (mib // 2) + "x", "too_large", "1048577 bytes|1048576"),
        _limit(send, "subject", "s" * 1024, "s" * 1025, "too_large", "1025 bytes|1024"),
        _limit(send, "trace_id", "t" * 256, "t" * 257, "too_large", "257 bytes|256"),
        _limit(send, "key", "k" * 256, "l" * 257, "too_large", "257 bytes|256"),
        _limit(send, "from_name", "n" * 256, "n" * 257, "too_large", "257 bytes", base=boss, by="boss"),
        _limit(send, "metadata", {"a": "m" * 16_375}, {"a": "m" * 16_376}, "too_large", "16385 bytes|16384"),
        _limit(send, "metadata", _deep(32), _deep(33), "invalid_params", "32 levels"),
        _limit(send, "to", ["agent:ada"] * 100, ["agent:ada"] * 101, "too_large"),
        _limit(send, "attachments", ["%file"] * 20, ["%file"] * 21, "too_large"),
        _limit(send, "attachments", ["%full"], ["%over"], "too_large"),
        _limit(send, "deliver_at", "+100Y", "+101Y", "too_far"),
        _limit(send, "ack_by", "9600h", "9600h1s", "bad_duration"),
        _limit(send, "scopes", [TAG] * 20, [TAG] * 21, "invalid_params", "20"),
        _limit(send, "refs", [{**TAG, "value": "v" * 200}], [{**TAG, "value": "v" * 201}], "invalid_params"),
        _limit("envelope.snooze", "until", "+100Y", "+101Y", "too_far"),
        _limit("message.edit", "text", "x" * mib, "x" * (mib + 1), "too_large", "1048577 bytes|1048576"),
        _limit("chat.post", "content", "x" * mib, "x" * (mib + 1), "too_large", "1048577 bytes|1048576"),
        _limit("ask.create", "question", "x" * mib, "x" * (mib + 1), "too_large", "1048577 bytes|1048576"),
        _limit("ask.create", "options", [*map(str, range(20))], [*map(str, range(21))], "bad_options"),
        _limit("ask.create", "options", ["ü" * 200], ["ü" * 201], "bad_options"),
        _limit("ask.create", "timeout", "8784h", "8784h1s", "bad_duration"),
        _limit("ask.list", "page_size", 100, 101, "invalid_params", "1 to 100"),
        _limit("envelope.list", "page_size", 100, 101, "invalid_params", "1 to 100"),
        _limit("envelope.list", "page_size", 1, 0, "invalid_params", "1 to 100"),
        *[
            _limit(f"envelope.{verb}", "ids", ["%own"] * 100, ["%own"] * 101, "invalid_params", "100")
            for verb in MARKS
        ],
        _limit("envelope.cancel", "ids", ["%sent"] * 100, ["%sent"] * 101, "invalid_params", "100"),
        *[
            _limit(name, "ids", [own] * 100, [own] * 101, "invalid_params", "100")
            for name, own in (("envelope.release", "%claimed"), ("envelope.retry", "%failed"))
        ],
        _limit("envelope.claim", "limit", 100, 101, "invalid_params", "1 to 100"),
        _limit("envelope.claim", "limit", 1, 0, "invalid_params", "1 to 100"),
        _limit("envelope.claim", "lease", "24h", "24h0.001s", "bad_duration"),
        _limit("cron.create", "every", "8784h", "8784h1s", "bad_duration", base=SEND),
        _limit("cron.create", "at", "+100Y", "+101Y", "too_far", base=SEND),
        _limit("cron.create", "name", "n" * 256, "n" * 257, "too_large", "257 bytes|256"),
        _limit("cron.explain", "count", 100, 101, "invalid_params", "1 to 100"),
        _limit("cron.explain", "count", 1, 0, "invalid_params", "1 to 100"),
        _limit("envelope.poll", "session", "s" * 256, "s" * 257, "too_large", "257 bytes|256"),
        _limit("agent.register", "name", "n" * 64, "n" * 65, "bad_name"),
        _limit("agent.set", "daily_tokens", 10**12, 10**12 + 1, "invalid_params"),
        _limit("agent.set", "daily_cost", 10.0**9, 10.0**9 + 1, "invalid_params"),
        _limit("agent.pause", "reason", "r" * 256, "r" * 257, "too_large", "257 bytes|256"),
        _limit("run.list", "page_size", 100, 101, "invalid_params", "1 to 100"),
        _limit("run.list", "page_size", 1, 0, "invalid_params", "1 to 100"),
        _limit("run.list", "trace", "t" * 256, "t" * 257, "too_large", "257 bytes|256"),
        _limit("user.register", "name", "u" * 64, "u" * 65, "bad_name"),
        _limit("conversation.messages", "page_size", 100, 101, "invalid_params", "1 to 100"),
        _limit("conversation.messages", "before", 2**63 - 1, 2**63, "invalid_params"),
        _limit("agent.set", "role", "ü" * 512, "ü" * 512 + "x", "too_large", "1025 bytes|1024"),
        _limit("boss.set", "name", "ü" * 128, "ü" * 128 + "x", "too_large", "257 bytes|256"),
        _limit("setup.execute", "boss_name", "n" * 256, "n" * 257, "too_large", "257 bytes|256"),
    ]
