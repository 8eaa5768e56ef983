"""Bad input of the operations about lanes, bindings and contacts (`bad_input.py`)."""

from __future__ import annotations

from typing import Any

from tests.api.bad_input_row import (
    BAD_ADDRESSES,
    BAD_IDS,
    ENDLESS,
    LONG,
    NOBODYS_NAMES,
    NUL,
    RIGHT,
    Row,
    row,
    shown,
)

STEERING = ("retry", "pause", "resume")
FOLDER = {"name": "spare", "adapter_type": "folder"}
KNOWN = "channel:scripted:one"  # of the scene, like the two below
SHARED = "channel:scripted:shared"  # two accounts know it
MINE = "channel:scripted:mine"  # it is the boss's

LANES = [
    *[
        each
        for verb in STEERING
        for each in [
            *[
                row(f"lane.{verb}", {"address": value}, "bad_address", "is not a valid address|agent:nex")
                for value in BAD_ADDRESSES
            ],
            row(
                f"lane.{verb}",
                {"address": "x:y"},
                "bad_address",
                "x:y is not a valid address",
                f"lane {verb} --address x:y",
            ),
            row(
                f"lane.{verb}",
                {"address": "adda"},
                "unknown_address",
                "adda|did you mean ada?",
                f"lane {verb} --address adda",
            ),
            *[
                row(f"lane.{verb}", {"address": value}, "unknown_address", value)
                for value in (*NOBODYS_NAMES, "agent:nobody-here", "channel:folder:none", "group:none")
            ],
            row(
                f"lane.{verb}",
                {"address": "channel:folder:none"},
                "unknown_address",
                "channel:folder:none",
                f"lane {verb} --address channel:folder:none",
            ),
            # they have boxes
            *[
                row(
                    f"lane.{verb}",
                    {"address": value},
                    "not_found",
                    f"no lane|{value}",
                    f"lane {verb} --address {value}",
                )
                for value in ("user:boss", "boss")
            ],
        ]
    ],
]


BINDS = [
    *[
        row("agent.bind", {**RIGHT["agent.bind"], "name": value}, "unknown_agent", shown(value))
        for value in ("spar", "", "gone", "agent:gone", "user:spare", NUL)
    ],
    row(
        "agent.bind",
        {**RIGHT["agent.bind"], "name": "spar"},
        "unknown_agent",
        "spar |spare?",
        "agent bind --adapter-type folder --name spar --path %unbound",
    ),
    *[
        row(
            "agent.bind",
            {**RIGHT["agent.bind"], "adapter_type": value},
            "unknown_adapter",
            "the adapters are: folder",
        )
        for value in ("", "Folder", "pigeon", NUL, "foldr", LONG)
    ],
    row(
        "agent.bind",
        {**RIGHT["agent.bind"], "adapter_type": "foldr"},
        "unknown_adapter",
        "foldr|folder?",
        "agent bind --name spare --adapter-type foldr --path %unbound",
    ),
    row(
        "agent.bind",
        {**FOLDER, "settings": {"path": "%namesake"}},
        "binding_taken",
        "folder:box|unbind",
        "agent bind --adapter-type folder --name spare --path %namesake",
    ),
    *[
        row("agent.bind", {**FOLDER, "settings": {"path": path}}, "invalid_params", says)
        for path, says in (
            ("relative", "absolute"),
            ("~/x", "absolute"),
            ("", "absolute"),
            ("%home", "the hiboss home"),
            ("%database", "the hiboss home"),
            ("%around", "the hiboss home"),
            ("/", "the hiboss home"),
            ("%blank", "cannot be an address"),
            ("%colon", "cannot be an address"),
            ("%file", "cannot be used"),
            ("%below-a-file", "cannot be used"),
            ("/proc/nothing-here", "cannot be used"),
            ("/tmp/" + NUL, ""),
            ("/tmp/" + ENDLESS, ""),
            ("/a" * 50000, ""),
        )
    ],
    *[
        row("agent.bind", {**FOLDER, "settings": settings}, "invalid_params", says)
        for settings, says in (
            ({"path": 5}, "--path"),
            ({"path": ["%unbound"]}, "--path"),
            ({"pth": "%unbound"}, "--pth is not an option of folder|--path"),
            ({"path": "%unbound", "token": "x"}, "--token is not an option of folder"),
        )
    ],
    row(
        "agent.bind",
        {**RIGHT["agent.bind"], "connect": False},
        "invalid_params",
        "--no-check",
        "agent bind --adapter-type folder --name spare --path %unbound --no-check",
    ),
    row("agent.bind", {**RIGHT["agent.bind"], "groups": "never"}, "invalid_params", "groups|mentioned"),
    row(
        "agent.bind",
        {"name": "spare", "adapter_type": "telegram"},
        "invalid_params",
        "--adapter-token",
        "agent bind --name spare --adapter-type telegram",
    ),
    *[
        row(
            "agent.bind",
            {
                "name": "spare",
                "adapter_type": "telegram",
                "settings": {"adapter_token": token},
                "connect": connect,
            },
            "invalid_params",
            "--adapter-token|123456:ABC",
        )
        for token in ("", "7", "7:", ":secret-part", "7 secret-part", "@nexbot", LONG)
        for connect in (True, False)
    ],
    row(
        "agent.bind",
        {"name": "spare", "adapter_type": "telegram", "settings": {"adapter_token": "x"}},
        "invalid_params",
        "--adapter-token|123456:ABC",
        "agent bind --name spare --adapter-type telegram --adapter-token @%file",
    ),
    *[
        row(
            "agent.bind",
            {"name": "spare", "adapter_type": "telegram", "settings": {"adapter_token": value}},
            "invalid_params",
            "--adapter-token",
        )
        for value in (7, NUL, ["7:x"])
    ],
    row(
        "agent.bind",
        {"name": "spare", "adapter_type": "scripted", "settings": {"path": "%refusing"}},
        "account_refused",
        "scripted|401 Unauthorized",
        "agent bind spare --adapter-type scripted --path %refusing",
    ),
    row("agent.bind", FOLDER, "invalid_params", "--path", "agent bind --adapter-type folder --name spare"),
    row(
        "agent.bind",
        {**FOLDER, "settings": {"path": "%file"}},
        "invalid_params",
        "%file",
        "agent bind --adapter-type folder --name spare --path %file",
    ),
]


UNBINDS = [
    *[
        row("agent.unbind", {**RIGHT["agent.unbind"], "name": value}, "unknown_agent", shown(value))
        for value in ("spar", "", "gone", NUL)
    ],
    row(
        "agent.unbind",
        {**RIGHT["agent.unbind"], "name": "spar"},
        "unknown_agent",
        "spare?",
        "agent unbind --adapter-type folder --name spar",
    ),
    *[
        row(
            "agent.unbind",
            {**RIGHT["agent.unbind"], "adapter_type": value},
            "unknown_adapter",
            "the adapters are: folder",
        )
        for value in ("", "pigeon", "foldr", NUL, LONG)
    ],
    row(
        "agent.unbind",
        {**RIGHT["agent.unbind"], "adapter_type": "foldr"},
        "unknown_adapter",
        "foldr|folder?",
        "agent unbind --name ada --adapter-type foldr",
    ),
    row(
        "agent.unbind",
        FOLDER,
        "unknown_binding",
        "folder|agent bindings",
        "agent unbind --adapter-type folder --name spare",
    ),
    # `box` is nex's
    *[
        row("agent.unbind", {**FOLDER, "account": value}, "unknown_binding", "folder:|agent bindings")
        for value in ("", "none", "box", NUL)
    ],
    row(
        "agent.unbind",
        {"name": "nex", "adapter_type": "folder"},
        "invalid_params",
        "--account|box|more",
        "agent unbind --adapter-type folder --name nex",
    ),
]


def _accounts(name: str, command: str, more: dict[str, Any], words: str = "") -> list[Row]:
    """Which account is meant."""
    return [
        *[
            row(
                name,
                {"contact": KNOWN, "binding": value, **more},
                "bad_id",
                f"{shown(value)} is not a valid binding|b81",
            )
            for value in BAD_IDS
        ],
        row(
            name,
            {"contact": KNOWN, "binding": "x", **more},
            "bad_id",
            "x|b81",
            f"{command} {KNOWN} --binding x{words}",
        ),
        row(
            name,
            {"contact": SHARED, **more},
            "invalid_params",
            f"{SHARED}|--binding|b",
            f"{command} {SHARED}{words}",
        ),
        row(
            name,
            {"contact": KNOWN, "binding": "b999", **more},
            "not_found",
            KNOWN,
            f"{command} {KNOWN} --binding b999{words}",
        ),
    ]


CONTACTS = [
    *[
        row("contact.list", {"state": value}, "invalid_params", "state|asking")
        for value in ("none", "ALLOWED", "", NUL)
    ],
    *[
        row("contact.list", {"after": number}, "invalid_params", "after")
        for number in (-1, 2**62 + 1, 2**63, 2**64)
    ],
]


DECISIONS = [
    *[
        each
        for verb in ("approve", "block")
        for each in [
            *[
                row(
                    f"contact.{verb}",
                    {"contact": value},
                    "not_found",
                    f"no contact {shown(value)}|hiboss contact list",
                )
                for value in (
                    *(
                        "",
                        " ",
                        "x:y",
                        "agent:nex",
                        "user:boss",
                        "channel:",
                        "channel:x",
                        "channel:scripted:none",
                    ),
                    "K7QM2XPA",
                    "777",
                    "one",
                    NUL,
                    LONG,
                    "' OR 1=1 --",
                )
            ],
            *[
                row(
                    f"contact.{verb}",
                    {"contact": value},
                    "not_found",
                    f"{value}|contact list",
                    f"contact {verb} {value}",
                )
                for value in ("K7QM2XPA", "channel:telegram:777", "@ada")
            ],
            *_accounts(f"contact.{verb}", f"contact {verb}", {}),
        ]
    ],
    row("contact.block", {"contact": MINE}, "invalid_params", "yours|--reach", f"contact block {MINE}"),
]


ROUTES = [
    *_accounts("contact.route", "contact route", {"agent": "ada"}, " --agent ada"),
    *[
        row(
            "contact.route",
            {"contact": value, "agent": "ada"},
            "not_found",
            f"{shown(value)}|hiboss contact list",
        )
        for value in ("", "x:y", "channel:scripted:none", "K7QM2XPA", NUL, LONG)
    ],
    row(
        "contact.route",
        {"contact": "channel:telegram:-100", "agent": "ada"},
        "not_found",
        "channel:telegram:-100",
        "contact route channel:telegram:-100 --agent ada",
    ),
    row(
        "contact.route",
        {"contact": f"{KNOWN}/7", "agent": "ada"},
        "not_found",
        f"no topic {KNOWN}/7",
        f"contact route {KNOWN}/7 --agent ada",
    ),
    *[
        row(
            "contact.route",
            {"contact": value, "agent": "ada"},
            "bad_address",
            "is not a valid address|channel:",
        )
        for value in (f"{KNOWN}/", f"{KNOWN}/a b", f"{KNOWN}/{NUL}", f"{KNOWN}/a:b")
    ],
    row(
        "contact.route",
        {"contact": f"{KNOWN}/", "agent": "ada"},
        "bad_address",
        f"{KNOWN}/",
        f"contact route {KNOWN}/ --agent ada",
    ),
    *[
        row(
            "contact.route", {"contact": KNOWN, "agent": value}, "unknown_agent", f"{shown(value)}|agent list"
        )
        for value in ("gone", "agent:gone", "user:boss", NUL, LONG)
    ],
    row(
        "contact.route",
        {"contact": KNOWN, "agent": "adda"},
        "unknown_agent",
        "adda|ada?",
        f"contact route {KNOWN} --agent adda",
    ),
    row(
        "contact.route",
        {"contact": KNOWN, "agent": "bob"},
        "not_bound",
        f"agent:bob|{KNOWN}|scripted",
        f"contact route {KNOWN} --agent bob",
    ),
]


IDS_OF_THE_BOSS = [
    *[
        row(
            "boss.set",
            {"ids": {adapter: "7"}},
            "unknown_adapter",
            f"{shown(adapter)}|the adapters are: folder",
        )
        for adapter in ("", "Telegram", "pigeon", NUL, "x" * 200)
    ],
    row("boss.set", {"ids": {"telegrm": "7"}}, "unknown_adapter", "telegrm|telegram?"),
    *[
        row(
            "boss.set",
            {"ids": {"telegram": person}},
            "invalid_params",
            f"{shown(person)}|cannot be the id of a person|hiboss boss pair",
        )
        for person in ("@ada", "ada", "-100", "0", "7/8", "7 ", "７", NUL, "7" * 200)
    ],
    *[
        row("boss.set", {"ids": {"folder": person}}, "invalid_params", f"{person}|folder")
        for person in ("a b", "a/b", "a:b", NUL)
    ],
    row("boss.set", {"ids": {"telegram": "7" * 201}}, "invalid_params", "ids|200"),
    row("boss.set", {"name": "Bea", "ids": {"telegram": "@ada"}}, "invalid_params", "@ada"),
    row("boss.set", {"ids": {"telegram": "@ada"}}, "invalid_params", "@ada|pair", "boss set --telegram @ada"),
]


ROWS = [
    *LANES,
    *BINDS,
    *UNBINDS,
    *CONTACTS,
    *DECISIONS,
    *ROUTES,
    *IDS_OF_THE_BOSS,
]
