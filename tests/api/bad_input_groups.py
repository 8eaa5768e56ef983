"""Bad input of the operations about conversations and groups (`bad_input.py`)."""

from __future__ import annotations

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
    ("ä", "unknown_group", "ä"),
    ("%foreign_group", "unknown_group", "theirs"),
)
WITH_MANAGERS = ("set", "archive", "delete")
MEMBERS = ("add", "remove", "role", "transfer")
CHANNEL = "%lane"


def _with(name: str, **params: Any) -> dict[str, Any]:
    return {**RIGHT[name], **params}


def _amounts(name: str) -> list[Row]:
    return [
        *[
            row(name, _with(name, history=number), "invalid_params", "history")
            for number in (-1, 1000001, 2**63, 0.5)
        ],
        *[
            row(name, _with(name, respond=value), "invalid_params", "respond|mentioned")
            for value in ("", "often", NUL)
            if name.endswith((".create", ".add", ".role", ".join"))
        ],
        *(
            [
                row(name, _with(name, description="d" * 1025), "too_large", "description|1025 bytes|1024"),
                row(name, _with(name, description=NUL), "bad_text", "description"),
                row(name, _with(name, metadata={"a": "x" * 20000}), "too_large", "metadata"),
            ]
            if name.startswith("conversation.")
            else []
        ),
    ]


NAMED = [
    *[
        row(name, _with(name, conversation=value), code, says)
        for name in (
            *[f"conversation.{verb}" for verb in ("get", "markRead", *WITH_MANAGERS)],
            *[f"participant.{verb}" for verb in (*MEMBERS, "join", "leave")],
        )
        for value, code, says in NAMED_WRONGLY
    ],
    *[
        row("conversation.messages", {"conversation": value}, code, says)
        for value, code, says in NAMED_WRONGLY
    ],
    *[
        each
        for name in ("conversation.messages", "conversation.news")
        for each in [
            *[
                row(name, {"with": value}, "unknown_group", value.removeprefix("group:"))
                for value in ("group:none", "group:theirs")
            ],
            # a closed group is none for who is not in it
            *[row(name, {"with": value}, "unknown_address", value) for value in ("none", "theirs")],
        ]
    ],
    *[
        each
        for name in ("get", "markRead")
        for each in [
            *[
                row(
                    f"conversation.{name}",
                    _with(f"conversation.{name}", address=value),
                    "unknown_address",
                    value,
                    by="boss",
                )
                for value in ("nobody-here", "agent:nobody-here")
            ],
            row(
                f"conversation.{name}",
                _with(f"conversation.{name}", address="user:boss"),
                "boss_only",
                "address",
            ),
        ]
    ],
    *[
        row(
            f"conversation.{operation}",
            {"conversation": "c999999"},
            "not_found",
            "c999999",
            f"conversation {verb} c999999",
        )
        for verb, operation in (("messages", "messages"), ("read", "markRead"))
    ],
    row("conversation.get", {"conversation": "none"}, "unknown_group", "none", "group show none"),
    row("conversation.get", {"conversation": "x:y"}, "bad_address", "x:y", "conversation show x:y"),
]


CREATED = [
    *[
        row("conversation.create", {"name": value}, "bad_name", "cannot be a name")
        for value in ("", " ", "a b", "-a", "a--b", "boss", "system", "n" * 65, NUL, "ä")
    ],
    *[
        row("conversation.create", {"name": value}, "name_taken", value, f"group create {value}")
        for value in ("nex", "NEX", "ann", "house", "HOUSE", "theirs")
    ],
    *[
        row("conversation.create", {"name": value}, "built_in_group", "group:all", f"group create {value}")
        for value in ("all", "ALL")
    ],
    row("conversation.create", {}, "invalid_params", "name"),
    *[
        each
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
        )
        for each in [
            row(
                "conversation.create",
                {"name": "fresh-group", "participants": ["agent:ada", value]},
                code,
                value.removeprefix("agent:") if code != "bad_address" else value,
                f"group create fresh-group --member ada --member {value}",
            ),
            row(
                "conversation.create",
                {"type": "private", "participants": [value]},
                code,
                value.removeprefix("agent:") if code != "bad_address" else value,
            ),
        ]
    ],
    row(
        "conversation.create",
        {"name": "fresh-group", "participants": ["channel:scripted:mine"]},
        "cannot_be_member",
        "user:boss",
        by="ada",
    ),
    *[
        row("conversation.create", {"type": "private", "participants": several}, "not_two", "exactly two")
        for several in ([], ["agent:nex"], ["agent:ada", "agent:bob"])
    ],
    *[
        row(
            "conversation.create",
            {"type": "private", "participants": ["agent:ada"], field: value},
            "invalid_params",
            "groups",
        )
        for field, value in (("open", True), ("history", 1), ("respond", "all"))
    ],
    *_amounts("conversation.create"),
]


LISTED = [
    *[
        row("conversation.list", {"page_size": size}, "invalid_params", f"page_size|{size}|1 to 100")
        for size in (0, -1, 101, 2**63)
    ],
    *[row("conversation.list", {"after": value}, "bad_id", "c81") for value in ("x", "e1", "c0", "", NUL)],
    *[
        row("conversation.list", {field: value}, "invalid_params", f"{field} must be")
        for field, value in (("type", "channel"), ("scope", "mine"))
    ],
    *[
        row("conversation.list", {"scope": "open", **more}, "invalid_params", "own")
        for more in ({"type": "private"}, {"name": "house"}, {"past": True})
    ],
    row("conversation.list", {"scope": "all"}, "boss_only", "scope all", "group list --all"),
    row("conversation.list", {"address": "user:boss"}, "boss_only", "address"),
    row("conversation.list", {"address": "x:y"}, "bad_address", "x:y", by="boss"),
    row("conversation.list", {"address": "nobody-here"}, "unknown_address", "nobody-here", by="boss"),
]


MANAGED = [
    *[
        each
        for verb in WITH_MANAGERS
        for each in [
            row(
                f"conversation.{verb}",
                _with(f"conversation.{verb}", conversation="all"),
                "built_in_group",
                "group:all",
                f"group {verb} all{(' --yes' if verb == 'delete' else ' --description x' if verb == 'set' else '')}",
            ),
            row(
                f"conversation.{verb}",
                _with(f"conversation.{verb}", conversation="%open_group"),
                "not_member",
                "open-house|hiboss group join",
                f"group {verb} open-house{(' --yes' if verb == 'delete' else ' --description x' if verb == 'set' else '')}",
            ),
            row(
                f"conversation.{verb}",
                _with(f"conversation.{verb}", conversation="%visited"),
                "not_manager",
                "visited|the owner",
                f"group {verb} visited{(' --yes' if verb == 'delete' else ' --description x' if verb == 'set' else '')}",
            ),
        ]
    ],
    *[
        row(f"conversation.{verb}", {"conversation": "%conversation"}, "boss_only", "no group")
        for verb in ("archive", "delete")
    ],
    row("conversation.delete", _with("conversation.delete", reason=NUL), "bad_text", "reason"),
    row(
        "conversation.delete",
        _with("conversation.delete", reason="r" * 1025),
        "too_large",
        "reason|1025 bytes|1024",
    ),
    *_amounts("conversation.set"),
    row(
        "conversation.set",
        {"conversation": "%group"},
        "invalid_params",
        "nothing to change",
        "group set house",
    ),
    row("conversation.set", {"conversation": "%group", "name": "new"}, "invalid_params", "keeps its name"),
    *[
        row("conversation.set", {"conversation": "%conversation", field: value}, "invalid_params", "groups")
        for field, value in (("open", True), ("history", 1))
    ],
]


MESSAGES = [
    row("conversation.messages", {}, "invalid_params", "either conversation, or with"),
    row("conversation.messages", {"conversation": "%group", "with": "agent:ada"}, "invalid_params", "either"),
    *[
        row("conversation.messages", {"conversation": "%group", field: number}, "invalid_params", field)
        for field in ("after_seq", "before_seq")
        for number in (-1, 2**63, 0.5)
    ],
    *[
        row(
            "conversation.markRead",
            _with("conversation.markRead", up_to_seq=number),
            "invalid_params",
            "up_to_seq",
        )
        for number in (-1, 2**63, 0.5)
    ],
    row("conversation.markRead", _with("conversation.markRead", session=NUL), "bad_text", "session"),
    row(
        "conversation.markRead",
        _with("conversation.markRead", session="s" * 257),
        "too_large",
        "session|257 bytes|256",
    ),
]


MEMBERS_OF_GROUPS = [
    *[
        each
        for verb in MEMBERS
        for each in [
            *[
                row(
                    f"participant.{verb}",
                    _with(f"participant.{verb}", address=value),
                    "bad_address",
                    shown(value),
                )
                for value in ("", "x:y", "agent:", "agent:a b", NUL)
            ],
            *[
                row(
                    f"participant.{verb}",
                    _with(f"participant.{verb}", address=value),
                    "unknown_address",
                    f"{value}|hiboss agent list",
                )
                for value in ("nobody-here", "agent:nobody-here", "agent:gone", "user:parted")
            ],
            *[
                row(
                    f"participant.{verb}",
                    _with(f"participant.{verb}", conversation=group),
                    code,
                    group,
                    f"group {verb} %s ada{(' admin' if verb == 'role' else '')}" % group,
                )
                for group, code in (
                    ("all", "built_in_group"),
                    ("open-house", "not_member"),
                    ("visited", "not_manager"),
                )
            ],
            row(
                f"participant.{verb}",
                _with(f"participant.{verb}", conversation="%conversation"),
                "no_group",
                "is no group",
            ),
        ]
    ],
    *[
        row(
            f"participant.{verb}",
            _with(f"participant.{verb}", address="agent:bob"),
            "not_member",
            "agent:bob|house",
        )
        for verb in ("remove", "role", "transfer")
    ],
    *[
        row(
            f"participant.{verb}",
            _with(f"participant.{verb}", address="agent:nex"),
            "owner_stays",
            "hiboss group transfer",
        )
        for verb in ("remove", "role")
    ],
]


STEPS = [
    *_amounts("participant.add"),
    *[
        row(
            "participant.add",
            {
                "conversation": "visited"
                if ("ada" if value.startswith("channel") else "nex") == "ada"
                else "house",
                "address": value,
            },
            "cannot_be_member",
            value,
            by="ada" if value.startswith("channel") else "nex",
        )
        for value in ("agent:system", "agent:background", "group:house", "channel:scripted:mine")
    ],
    *[
        row(
            "participant.add",
            _with("participant.add", address=value),
            "not_bound",
            value,
            f"group add house {value}",
        )
        for value in ("channel:folder:nowhere", "channel:telegram:1")
    ],
    row(
        "participant.add",
        _with("participant.add", address="user:ann", respond="all"),
        "invalid_params",
        "respond|agents",
    ),
    row("participant.add", _with("participant.add", role="owner"), "invalid_params", "role|admin"),
    row(
        "participant.role",
        {"conversation": "%group", "address": "agent:ada"},
        "invalid_params",
        "role|respond",
    ),
    row("participant.role", _with("participant.role", address=CHANNEL), "cannot_be_member", CHANNEL),
    row("participant.transfer", _with("participant.transfer", address=CHANNEL), "cannot_be_member", CHANNEL),
    *[
        each
        for verb in ("join", "leave")
        for each in [
            row(
                f"participant.{verb}",
                {"conversation": "all"},
                "built_in_group",
                "group:all",
                f"group {verb} all",
            ),
            row(f"participant.{verb}", {"conversation": "%conversation"}, "no_group", "is no group"),
        ]
    ],
    row("participant.join", {"conversation": "%left_group"}, "group_closed", "left-house"),
    row(
        "participant.join",
        {"conversation": "%open_group", "respond": "all"},
        "invalid_params",
        "respond|agents",
        by="ann",
    ),
    row(
        "participant.leave",
        {"conversation": "%group"},
        "owner_stays",
        "hiboss group transfer",
        "group leave house",
    ),
    row("participant.leave", {"conversation": "%left_group"}, "not_member", "left-house"),
    row("participant.leave", {"conversation": LONG}, "unknown_group", "hiboss group list"),
]


ROWS = [
    *NAMED,
    *CREATED,
    *LISTED,
    *MANAGED,
    *MESSAGES,
    *MEMBERS_OF_GROUPS,
    *STEPS,
]
