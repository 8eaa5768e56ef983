"""Bad input of the operations about the boss, other people, the policy, who is here, and open sessions (`bad_input.py`)."""

from __future__ import annotations

from tests.api.bad_input_row import (
    BAD_ADDRESSES,
    BAD_IDS,
    ENDLESS,
    LONG,
    NOBODYS_NAMES,
    NUL,
    RIGHT,
    row,
    shown,
)

REPORTS = ("prompt", "step", "stop", "break", "end", "wait", "permit")

BOSS = [
    row("boss.set", {}, "invalid_params", "--name|--timezone", "boss set"),
    *[row("boss.set", {"name": name}, "invalid_params", "name is empty") for name in ("", "  ")],
    row("boss.set", {"name": NUL}, "bad_text", "name|NUL"),
    *[
        row("boss.set", {"timezone": zone}, "bad_timezone", f"{shown(zone)}|Europe/Berlin")
        for zone in ("", "Europe", "Mars/Base", "../../etc/passwd", "/etc/passwd", NUL, "UTC+1", LONG)
    ],
    row(
        "boss.set",
        {"timezone": "Europe/Berln"},
        "bad_timezone",
        "did you mean Europe/Berlin?",
        "boss set --timezone Europe/Berln",
    ),
    row("boss.set", {"name": "Bea", "timezone": "Europe/Berln"}, "bad_timezone", "Berln"),
    row("boss.set", {"name": NUL, "timezone": "Asia/Tokyo"}, "bad_text", "name|NUL"),
    row(
        "boss.set",
        {"reach": "channel:folder:nowhere"},
        "not_bound",
        "nowhere|folder",
        "boss set --reach channel:folder:nowhere",
    ),
    row("boss.set", {"reach": "agent:nex"}, "invalid_params", "private chat", "boss set --reach agent:nex"),
    row("boss.set", {"reach": "channel:x"}, "bad_address", "channel:x", "boss set --reach channel:x"),
    row("boss.set", {"reach_binding": "b1"}, "invalid_params", "--reach", "boss set --reach-binding b1"),
    row("boss.set", {"reach": "channel:folder:nowhere", "reach_binding": "x"}, "bad_id", "x|b81"),
    row("boss.set", {"forward": "some"}, "invalid_params", "forward|important", "boss set --forward some"),
    row(
        "setup.execute",
        {"timezone": "Europe/Berln"},
        "bad_timezone",
        "did you mean Europe/Berlin?",
        "setup --timezone Europe/Berln",
    ),
    row("setup.execute", {"boss_name": NUL}, "bad_text", "boss_name|NUL"),
    row("setup.execute", {"timezone": "europe/berlin"}, "bad_timezone", "did you mean Europe/Berlin?"),
    *[
        row("setup.execute", {"timezone": zone}, "bad_timezone", f"{shown(zone)}|Europe/Berlin")
        for zone in ("Europe", "../../etc/passwd", "+02:00", NUL, LONG)
    ],
    *[
        row("setup.execute", {"agent_name": name}, "bad_name", name)
        for name in ("a b", "boss", "../../x", "x" * 65, NUL)
    ],
    row("setup.execute", {"agent_name": "a b"}, "bad_name", "a b", "setup --agent-name 'a b'"),
]


HOUSE = [
    *[
        row(
            "permission.policy.set",
            {"policy": policy},
            code,
            says,
            "permission policy set --file -",
            stdin="".join((f"{name}: {level}\n" for name, level in policy.items())),
        )
        for policy, code, says in (
            ({"envelope.snd": "boss"}, "unknown_operation", "envelope.snd|envelope.send?"),
            ({"envelope.send": "stnadard"}, "invalid_params", "stnadard|standard?"),
            ({"boss.set": "standard"}, "fixed_level", "boss.set|boss"),
            ({"observ": "boss"}, "unknown_operation", "did you mean observe?"),
            ({"Envelope.send": "boss"}, "unknown_operation", "did you mean envelope.send?"),
            ({"agent.list": "boss", "envelope.send": "BOSS"}, "invalid_params", "did you mean boss?"),
            ({"envelope.send": "open"}, "invalid_params", "restricted, standard, privileged, boss"),
        )
    ],
    *[
        row("permission.policy.set", {"policy": policy}, code)
        for policy, code in (
            ({"": "boss"}, "unknown_operation"),
            ({NUL: "boss"}, "unknown_operation"),
            ({LONG: "boss"}, "unknown_operation"),
            ({"envelope.send": "open"}, "invalid_params"),
            ({"envelope.send": ""}, "invalid_params"),
            ({"envelope.send": ENDLESS}, "invalid_params"),
            ({"envelope.send": "boss", "daemon.ping": "boss"}, "fixed_level"),
            ({"agent.list": "boss", "none": "boss"}, "unknown_operation"),
        )
    ],
    *[
        row("config.reload", {}, code, says, "config reload", config=text)
        for text, code, says in (
            ("[limits]\npage_size = 'many'", "bad_setting", "page_size|whole number"),
            ("[limits]\npage_sise = 5", "unknown_setting", "page_sise|limits.page_size?"),
            ("[limits", "bad_config", "config.toml"),
        )
    ],
]


NAMES = [
    *[
        row("user.register", {"name": value}, "bad_name", f"{value.strip()}|code-review")
        for value in (
            "",
            " ",
            "a b",
            "-a",
            "a-",
            "a--b",
            "ä",
            "a_b",
            "user:a",
            NUL,
            "boss",
            "System",
            "all",
            "background",
        )
    ],
    row("user.register", {"name": "n" * 65}, "bad_name", "64"),
    row("user.register", {"name": "a b"}, "bad_name", "a b", "user register --name 'a b'"),
    # of people and agents together: --as knows only names
    *[
        row("user.register", {"name": value}, "name_taken", value, f"user register --name {value}")
        for value in ("ann", "ANN", "nex", "Nex")
    ],
    *[row("agent.register", {"name": value}, "name_taken", value) for value in ("ann", "nex")],
    row("user.register", {"name": "zoe", "display": NUL}, "bad_text", "display|NUL"),
    row(
        "user.register",
        {"name": "zoe", "display": "d" * 257},
        "too_large",
        "display|257 bytes|256",
        f"user register --name zoe --display {'d' * 257}",
    ),
]


USERS = [
    *[
        each
        for verb, command in (
            ("delete", "user delete --yes --name"),
            ("token.rotate", "user token rotate --name"),
        )
        for each in [
            *[
                row(f"user.{verb}", {"name": value}, "unknown_user", f"{shown(value)}|user list")
                for value in ("", "parted", "agent:ann", "nex", "boss", "Boss", NUL, "' OR 1=1 --", LONG)
            ],
            row(f"user.{verb}", {"name": "an"}, "unknown_user", "an |ann?", f"{command} an"),
            row(f"user.{verb}", {"name": "boss"}, "unknown_user", "boss", f"{command} boss"),
        ]
    ],
]


BROWSERS = [
    *[
        row(name, {}, "not_a_person", f"{name} is for people|agent:nex", words, by="nex")
        for name, words in (("web.link", "web --print"), ("web.logout", "web --logout"))
    ],
    *[
        row("web.link", {"name": value}, "unknown_user", "no user|user list")
        for value in ("", " ", "gone", "user:gone", "agent:nex", NUL, "' OR 1=1 --", LONG)
    ],
    row("web.link", {"name": "bea"}, "boss_only", "web.link for others", by="ann"),
    row("web.link", {}, "web_unavailable", "web.enabled"),
    row("web.logout", {"browser": 1}, "invalid_params", "browser", by="ann"),
]


OBSERVED = [
    row("daemon.metrics", {}, "forbidden", "observe|privileged", "daemon metrics"),
    row("daemon.metrics", {}, "forbidden", "observe|standard", by="ann"),
    row("daemon.metrics", {"names": ["hiboss_runs"]}, "invalid_params", "names"),
]

WHO = [
    *[
        row("presence.get", {"address": value}, "bad_address", "is not a valid address|agent:nex")
        for value in BAD_ADDRESSES
    ],
    *[
        row("presence.get", {"address": value}, "unknown_address", value)
        for value in (*NOBODYS_NAMES, "user:nobody-here", "channel:telegram:1")
    ],
    row("presence.get", {"address": "adda"}, "unknown_address", "adda|ada?", "presence adda"),
    row(
        "presence.get", {"address": "%lane"}, "invalid_params", "agents and people|channel", "presence %lane"
    ),
]


TYPING = [
    *[
        row("presence.typing", {"conversation": value}, "bad_id", f"{shown(value)} is not a valid |c81")
        for value in BAD_IDS
    ],
    *[
        row("presence.typing", {"conversation": value}, "not_found", "no conversation")
        for value in ("c999999", 2**63 - 1)
    ],
    # of two others, and of nobody whom one may see
    row("presence.typing", {"conversation": "%conversation"}, "not_found", "%conversation", by="ann"),
]


WATCHES = [
    *[
        each
        for name, more, words in (
            ("agent.notify", {"when": "idle"}, ""),
            ("agent.notify.remove", {}, " --remove"),
        )
        for each in [
            *[
                row(name, {"name": value, **more}, "unknown_agent", f"{shown(value)}|agent list")
                for value in ("", "gone", "agent:gone", "user:ann", NUL, "' OR 1=1 --", LONG)
            ],
            row(
                name,
                {"name": "spar", **more},
                "unknown_agent",
                "spar |spare?",
                f"notify spar --when idle{words}",
            ),
            row(name, {"name": "spare", "when": "bored"}, "invalid_params", "when|finished"),
        ]
    ],
    row(
        "agent.notify",
        {"name": "nex", "when": "idle"},
        "invalid_params",
        "about itself",
        "notify nex --when idle",
    ),
    row("agent.notify", {"name": "spare"}, "invalid_params", "when", "notify spare"),
]


START = [
    *[
        row(
            "attached.start",
            {**RIGHT["attached.start"], "session": value},
            "invalid_params",
            "session must be an id",
        )
        for value in ("", "a b", "../up", ".hidden", "é", "x" * 101)
    ],
    *[
        row("attached.start", {**RIGHT["attached.start"], "pid": value}, "invalid_params", "pid")
        for value in (1, 0, -1, 2**31)
    ],
    *[
        row(
            "attached.start",
            {**RIGHT["attached.start"], "directory": value},
            "invalid_params",
            "directory|absolute",
        )
        for value in ("work", "./work", "~/work")
    ],
    row("attached.start", {**RIGHT["attached.start"], "client": "gemini"}, "invalid_params", "client|claude"),
    *[
        row(
            "attached.start",
            {**RIGHT["attached.start"], "agent": value},
            "unknown_agent",
            f"{shown(value)}|agent list",
        )
        for value in ("gone", "user:ann", "' OR 1=1 --", NUL)
    ],
    row("attached.start", {**RIGHT["attached.start"], "agent": "ended"}, "cannot_attach", "ended|revoked"),
]


NOT_ATTACHED = [
    *[
        row(f"attached.{verb}", RIGHT.get(f"attached.{verb}", {}), "not_attached", "", by=by)
        for verb in REPORTS
        for by in ("nex", "boss")
    ],
]


DETACH = [
    *[
        row("agent.detach", {"name": value}, "unknown_agent", f"{shown(value)}|agent list")
        for value in ("", "gone", "agent:gone", "user:ann", NUL, "' OR 1=1 --", LONG)
    ],
    row("agent.detach", {"name": "spar"}, "unknown_agent", "spar |spare?", "agent detach spar"),
    row(
        "agent.detach",
        RIGHT["agent.detach"],
        "boss_only",
        "agent:nex",
        by="nex",
        policy={"agent.detach": "standard"},
    ),
]


BRIEFINGS = [
    *[
        row("agent.briefing", {"name": value}, "bad_address", "is not a valid address|agent:nex", by="boss")
        for value in BAD_ADDRESSES
    ],
    *[
        row("agent.briefing", {"name": value}, "unknown_address", value, by="boss")
        for value in (*NOBODYS_NAMES, "channel:folder:nowhere")
    ],
    row("agent.briefing", {"name": "spare"}, "boss_only", "agent:nex", "prime spare"),
]

SESSIONS = [
    *[
        each
        for name, command in (
            ("agent.sessions", "agent sessions --name"),
            ("agent.refresh", "agent refresh --name"),
        )
        for each in [
            *[
                row(name, {"name": value}, "unknown_agent", f"{shown(value)}|agent list")
                for value in ("", "gone", "agent:gone", "user:ann", NUL, LONG)
            ],
            row(name, {"name": "spar"}, "unknown_agent", "spar |spare?", f"{command} spar"),
        ]
    ],
    row("agent.sessions", {"name": "spare"}, "boss_only", "name|agent:nex", "agent sessions --name spare"),
    *[
        row(
            "agent.refresh",
            {"name": "spare", "conversation": value},
            "bad_id",
            f"{shown(value)} is not a valid ",
        )
        for value in ("e1", "c0", "", NUL, -1)
    ],
    row(
        "agent.refresh",
        {"name": "spare", "conversation": "e1"},
        "bad_id",
        "e1",
        "agent refresh --name spare --conversation e1",
    ),
    # One in which it takes no part is for it like one that does not exist.
    *[
        row(
            "agent.refresh",
            {"name": "spare", "conversation": value},
            "not_found",
            value,
            f"agent refresh --name spare --conversation {value}",
        )
        for value in ("c1", "c999999")
    ],
    *[
        each
        for name, agent in (("agent.register", "fresh"), ("agent.set", "spare"))
        for each in [
            *[
                row(name, {"name": agent, "session_reset": value}, "bad_time_of_day", f"{shown(value)}|04:00")
                for value in ("4", "24:00", "4:60", "04:00:00", "-1:00", "noon", NUL)
            ],
            *[
                row(name, {"name": agent, "session_idle": value}, "bad_duration", f"{shown(value)}|1h30m")
                for value in ("0s", "6", "6d", "-1h", "9000h", NUL)
            ],
            *[
                row(name, {"name": agent, "session_context": number}, "invalid_params", "session_context")
                for number in (-1, 10**12 + 1, 2**64, 0.5)
            ],
            row(name, {"name": agent, "session_scope": "chat"}, "invalid_params", "session_scope|person"),
        ]
    ],
    *[
        row(
            "agent.set",
            {"name": "spare", flag.replace("-", "_"): value},
            code,
            value,
            f"agent set --name spare --{flag} '{value}'",
        )
        for flag, value, code in (
            ("session-reset", "4 pm", "bad_time_of_day"),
            ("session-idle", "soon", "bad_duration"),
        )
    ],
]

ROWS = [
    *BOSS,
    *HOUSE,
    *NAMES,
    *USERS,
    *BROWSERS,
    *OBSERVED,
    *WHO,
    *TYPING,
    *WATCHES,
    *START,
    *NOT_ATTACHED,
    *DETACH,
    *BRIEFINGS,
    *SESSIONS,
]
