"""Bad input of the operations about conversations and groups (`bad_input.py`)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.api.bad_input_row import LONG, NUL, RIGHT, Row, row, shown

# A conversation that is named wrongly: the code, and what the message says.
NAMED_WRONGLY: tuple[tuple[Any, str, str], ...] = (
    ("x:y", "bad_address", "x:y|only a group or a conversation"),
    ("agent:nex", "bad_address", "agent:nex"),
    ("group:", "bad_address", "group:"),
    ("group:a b", "bad_address", "group:a b"),
    ("c0", "bad_id", "c0|c81"),
    (0, "bad_id", "0|c81"),
    ("c" + "9" * 30, "bad_id", "c81"),
    ("c999999", "not_found", "conversation c999999"),
    (999999, "not_found", "conversation c999999"),
    ("", "unknown_group", "hiboss group list"),
    ("none", "unknown_group", "none|hiboss group list"),
    ("group:none", "unknown_group", "none"),
    ("e1", "unknown_group", "e1"),
    ("%foreign_group", "unknown_group", "theirs"),
)
WITH_MANAGERS = ("set", "archive", "delete")
MEMBERS = ("add", "remove", "role", "transfer")
CHANNEL = "%lane"


def grouped() -> Iterator[Row]:
    for part in (_named, _created, _listed, _managed, _messages, _members, _steps):
        yield from part()


def _with(name: str, **params: Any) -> dict[str, Any]:
    return {**RIGHT[name], **params}


def _named() -> Iterator[Row]:
    names = [f"conversation.{verb}" for verb in ("get", "markRead", *WITH_MANAGERS)]
    names += [f"participant.{verb}" for verb in (*MEMBERS, "join", "leave")]
    for name in names:
        for value, code, says in NAMED_WRONGLY:
            yield row(name, _with(name, conversation=value), code, says)
    for value, code, says in NAMED_WRONGLY:
        yield row("conversation.messages", {"conversation": value}, code, says)
    for name in ("conversation.messages", "conversation.news"):
        for value in ("group:none", "group:theirs"):
            yield row(name, {"with": value}, "unknown_group", value.removeprefix("group:"))
        for value in ("none", "theirs"):  # a closed group is none for who is not in it
            yield row(name, {"with": value}, "unknown_address", value)
    for name in ("get", "markRead"):
        for value in ("nobody-here", "agent:nobody-here"):
            wrong = _with(f"conversation.{name}", address=value)
            yield row(f"conversation.{name}", wrong, "unknown_address", value, by="boss")
        wrong = _with(f"conversation.{name}", address="user:boss")
        yield row(f"conversation.{name}", wrong, "boss_only", "address")
    for verb, operation in (("messages", "messages"), ("read", "markRead")):
        wrong = {"conversation": "c999999"}
        words = f"conversation {verb} c999999"
        yield row(f"conversation.{operation}", wrong, "not_found", "c999999", words)
    yield row("conversation.get", {"conversation": "none"}, "unknown_group", "none", "group show none")
    yield row("conversation.get", {"conversation": "x:y"}, "bad_address", "x:y", "conversation show x:y")


def _created() -> Iterator[Row]:
    name = "conversation.create"
    for value in ("", " ", "a b", "-a", "a--b", "boss", "system", "n" * 65, NUL, "ä"):
        yield row(name, {"name": value}, "bad_name", "cannot be a name")
    for value in ("nex", "NEX", "ann", "house", "HOUSE", "theirs"):
        yield row(name, {"name": value}, "name_taken", value, f"group create {value}")
    for value in ("all", "ALL"):
        yield row(name, {"name": value}, "built_in_group", "group:all", f"group create {value}")
    yield row(name, {}, "invalid_params", "name")
    for value, code in (
        ("x:y", "bad_address"),
        ("nobody-here", "unknown_address"),
        ("user:nobody-here", "unknown_address"),
        ("agent:gone", "unknown_address"),
        ("channel:folder:nowhere", "not_bound"),
        ("channel:scripted:one", "not_bound"),
        ("agent:system", "cannot_be_member"),
        ("agent:background", "cannot_be_member"),
        ("group:house", "cannot_be_member"),
        ("group:all", "cannot_be_member"),
    ):
        says = value.removeprefix("agent:") if code != "bad_address" else value
        wrong = {"name": "fresh-group", "participants": ["agent:ada", value]}
        yield row(name, wrong, code, says, f"group create fresh-group --member ada --member {value}")
        yield row(name, {"type": "private", "participants": [value]}, code, says)
    mine = {"name": "fresh-group", "participants": ["channel:scripted:mine"]}
    yield row(name, mine, "cannot_be_member", "user:boss", by="ada")
    for several in ([], ["agent:nex"], ["agent:ada", "agent:bob"]):
        yield row(name, {"type": "private", "participants": several}, "not_two", "exactly two")
    for field, value in (("open", True), ("history", 1), ("respond", "all")):
        wrong = {"type": "private", "participants": ["agent:ada"], field: value}
        yield row(name, wrong, "invalid_params", "groups")
    yield from _amounts(name)


def _amounts(name: str) -> Iterator[Row]:
    for number in (-1, 1_000_001, 2**63, 0.5):
        yield row(name, _with(name, history=number), "invalid_params", "history")
    for value in ("", "often", NUL):
        if name.endswith((".create", ".add", ".role", ".join")):
            yield row(name, _with(name, respond=value), "invalid_params", "respond|mentioned")
    if name.startswith("conversation."):
        yield row(name, _with(name, description="d" * 1025), "too_large", "description|1025 bytes|1024")
        yield row(name, _with(name, description=NUL), "bad_text", "description")
        deep: dict[str, Any] = {"metadata": {"a": "x" * 20_000}}
        yield row(name, _with(name, **deep), "too_large", "metadata")


def _listed() -> Iterator[Row]:
    name = "conversation.list"
    for size in (0, -1, 101, 2**63):
        yield row(name, {"page_size": size}, "invalid_params", f"page_size|{size}|1 to 100")
    for value in ("x", "e1", "c0", "", NUL):
        yield row(name, {"after": value}, "bad_id", "c81")
    for field, value in (("type", "channel"), ("scope", "mine")):
        yield row(name, {field: value}, "invalid_params", f"{field} must be")
    for more in ({"type": "private"}, {"name": "house"}, {"past": True}):
        yield row(name, {"scope": "open", **more}, "invalid_params", "own")
    yield row(name, {"scope": "all"}, "boss_only", "scope all", "group list --all")
    yield row(name, {"address": "user:boss"}, "boss_only", "address")
    yield row(name, {"address": "x:y"}, "bad_address", "x:y", by="boss")
    yield row(name, {"address": "nobody-here"}, "unknown_address", "nobody-here", by="boss")


def _managed() -> Iterator[Row]:
    for verb in WITH_MANAGERS:
        name, command = f"conversation.{verb}", f"group {verb}"
        more = " --yes" if verb == "delete" else " --description x" if verb == "set" else ""
        yield row(
            name, _with(name, conversation="all"), "built_in_group", "group:all", f"{command} all{more}"
        )
        wrong = _with(name, conversation="%open_group")
        yield row(name, wrong, "not_member", "open-house|hiboss group join", f"{command} open-house{more}")
        wrong = _with(name, conversation="%visited")
        yield row(name, wrong, "not_manager", "visited|the owner", f"{command} visited{more}")
    for verb in ("archive", "delete"):
        name = f"conversation.{verb}"
        yield row(name, {"conversation": "%conversation"}, "boss_only", "no group")
    name = "conversation.delete"
    yield row(name, _with(name, reason=NUL), "bad_text", "reason")
    yield row(name, _with(name, reason="r" * 1025), "too_large", "reason|1025 bytes|1024")
    name = "conversation.set"
    yield from _amounts(name)
    yield row(name, {"conversation": "%group"}, "invalid_params", "nothing to change", "group set house")
    yield row(name, {"conversation": "%group", "name": "new"}, "invalid_params", "keeps its name")
    for field, value in (("open", True), ("history", 1)):
        yield row(name, {"conversation": "%conversation", field: value}, "invalid_params", "groups")


def _messages() -> Iterator[Row]:
    name = "conversation.messages"
    yield row(name, {}, "invalid_params", "either conversation, or with")
    yield row(name, {"conversation": "%group", "with": "agent:ada"}, "invalid_params", "either")
    for field in ("after_seq", "before_seq"):
        for number in (-1, 2**63, 0.5):
            yield row(name, {"conversation": "%group", field: number}, "invalid_params", field)
    name = "conversation.markRead"
    for number in (-1, 2**63, 0.5):
        yield row(name, _with(name, up_to_seq=number), "invalid_params", "up_to_seq")
    yield row(name, _with(name, session=NUL), "bad_text", "session")
    yield row(name, _with(name, session="s" * 257), "too_large", "session|257 bytes|256")


def _members() -> Iterator[Row]:
    for verb in MEMBERS:
        name, command = f"participant.{verb}", f"group {verb}"
        word = " admin" if verb == "role" else ""
        for value in ("", "x:y", "agent:", "agent:a b", NUL):
            yield row(name, _with(name, address=value), "bad_address", shown(value))
        for value in ("nobody-here", "agent:nobody-here", "agent:gone", "user:parted"):
            says = f"{value}|hiboss agent list"
            yield row(name, _with(name, address=value), "unknown_address", says)
        command = f"{command} %s ada{word}"
        for group, code in (
            ("all", "built_in_group"),
            ("open-house", "not_member"),
            ("visited", "not_manager"),
        ):
            wrong = _with(name, conversation=group)
            yield row(name, wrong, code, group, command % group)
        yield row(name, _with(name, conversation="%conversation"), "no_group", "is no group")
    for verb in ("remove", "role", "transfer"):
        name = f"participant.{verb}"
        yield row(name, _with(name, address="agent:bob"), "not_member", "agent:bob|house")
    for verb in ("remove", "role"):
        name = f"participant.{verb}"
        yield row(name, _with(name, address="agent:nex"), "owner_stays", "hiboss group transfer")


def _steps() -> Iterator[Row]:
    name = "participant.add"
    yield from _amounts(name)
    for value in ("agent:system", "agent:background", "group:house", "channel:scripted:mine"):
        by = "ada" if value.startswith("channel") else "nex"
        wrong = {"conversation": "visited" if by == "ada" else "house", "address": value}
        yield row(name, wrong, "cannot_be_member", value, by=by)
    for value in ("channel:folder:nowhere", "channel:telegram:1"):
        yield row(name, _with(name, address=value), "not_bound", value, f"group add house {value}")
    yield row(name, _with(name, address="user:ann", respond="all"), "invalid_params", "respond|agents")
    yield row(name, _with(name, role="owner"), "invalid_params", "role|admin")
    name = "participant.role"
    yield row(name, {"conversation": "%group", "address": "agent:ada"}, "invalid_params", "role|respond")
    yield row(name, _with(name, address=CHANNEL), "cannot_be_member", CHANNEL)
    yield row(
        "participant.transfer", _with("participant.transfer", address=CHANNEL), "cannot_be_member", CHANNEL
    )
    for verb in ("join", "leave"):
        name = f"participant.{verb}"
        yield row(name, {"conversation": "all"}, "built_in_group", "group:all", f"group {verb} all")
        yield row(name, {"conversation": "%conversation"}, "no_group", "is no group")
    yield row("participant.join", {"conversation": "%left_group"}, "group_closed", "left-house")
    wrong = {"conversation": "%open_group", "respond": "all"}
    yield row("participant.join", wrong, "invalid_params", "respond|agents", by="ann")
    yield row(
        "participant.leave",
        {"conversation": "%group"},
        "owner_stays",
        "hiboss group transfer",
        "group leave house",
    )
    yield row("participant.leave", {"conversation": "%left_group"}, "not_member", "left-house")
    yield row("participant.leave", {"conversation": LONG}, "unknown_group", "hiboss group list")
