"""Bad input of the operations about agents: who they are, how they think (`bad_input.py`)."""

from __future__ import annotations

from tests.api.bad_input_row import LONG, NUL, RIGHT, SEND, row, shown

# What else the command line needs for an operation on an agent that is named.
NAMED = {
    "delete": " --yes",
    "set": " --role r",
    "permission.get": "",
    "permission.set": " --level standard",
    "token.rotate": "",
    "token.revoke": "",
}
# What is given, what the message must name, and the same on the command line.
BAD_PROVIDERS: list[tuple[dict[str, str], str, str]] = [
    ({"provider": "comand"}, "comand|command?|demo", "--provider comand"),
    ({"provider": "gpt"}, "gpt|there are |command, demo, webhook", ""),
    ({"provider": "Demo"}, "Demo", ""),
    ({"provider": " "}, "there is no provider", ""),
    ({"provider": "none "}, "there is no provider", ""),
    ({"provider": NUL}, "there is no provider", ""),
    ({"provider": LONG}, "there is no provider", ""),
    ({"provider": "%token"}, "there is no provider", ""),
    ({"provider": "command"}, "--command", "--provider command"),
    ({"provider": "command", "settings": {"command": " \t"}}, "--command", ""),
    ({"provider": "command", "settings": {"command": "python 'agent.py"}}, "split into words", ""),
    ({"provider": "command", "settings": {"command": "python \\"}}, "split into words", ""),
    ({"provider": "command", "settings": {"command": NUL}}, "NUL", ""),
    ({"provider": "command", "settings": {"command": LONG}}, "longer than", ""),
    ({"provider": "command", "settings": {"command": "''"}}, "program", ""),
    ({"provider": "command", "settings": {"url": "https://example.org"}}, "--url|--command", ""),
    ({"provider": "webhook"}, "--url", "--provider webhook"),
    ({"provider": "webhook", "settings": {"url": " "}}, "--url", ""),
    (
        {"provider": "webhook", "settings": {"url": "http://example.org/"}},
        "https",
        "--provider webhook --url http://example.org/",
    ),
    ({"provider": "webhook", "settings": {"url": "http://10.0.0.1/"}}, "https", ""),
    ({"provider": "webhook", "settings": {"url": "ftp://127.0.0.1/"}}, "https", ""),
    ({"provider": "webhook", "settings": {"url": "file:///etc/passwd"}}, "https", ""),
    ({"provider": "webhook", "settings": {"url": "example.org/turns"}}, "https", ""),
    ({"provider": "webhook", "settings": {"url": "https://"}}, "", ""),
    ({"provider": "webhook", "settings": {"url": "https://example.org:99999/"}}, "", ""),
    ({"provider": "webhook", "settings": {"url": "https://user:word@example.org/"}}, "", ""),
    ({"provider": "webhook", "settings": {"url": "https://example.org/" + NUL}}, "", ""),
    ({"provider": "webhook", "settings": {"url": "https://example.org/" + LONG}}, "", ""),
    ({"provider": "webhook", "settings": {"url": "https://example.org/\nHost: x"}}, "", ""),
    (
        {"provider": "webhook", "settings": {"url": "https://example.org/", "command": "x"}},
        "--command|--url",
        "",
    ),
    ({"provider": "demo", "settings": {"command": "x"}}, "--command", "--provider demo --command x"),
    ({"provider": "demo", "settings": {"url": "https://example.org/"}}, "--url", ""),
    (
        {"settings": {"command": "python 'agent.py"}},
        "split into words",
        "",
    ),  # implies the provider, and is checked
    ({"settings": {"url": "http://example.org/"}}, "https", "--url http://example.org/"),
    ({"settings": {"command": "x", "url": "https://example.org/"}}, "--url|--command", ""),
]

AGENTS = [
    *[
        row("agent.register", {"name": name}, "bad_name", f"{name.strip()}|code-review")
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
            "a:b",
            "a.b",
            "a/b",
            "../a",
            "a\n",
            "²",
            NUL,
            "boss",
            "System",
            "all",
            "background",
        )
    ],
    row("agent.register", {"name": "a b"}, "bad_name", "a b", "agent register --name 'a b'"),
    *[
        row("agent.register", {"name": name}, "name_taken", name, f"agent register --name {name}")
        for name in ("nex", "NEX")
    ],
    *[
        each
        for name in ("agent.register", "agent.set")
        for each in [
            *[
                each
                for field in ("description", "role", "module", "display", "workspace")
                for each in [
                    row(
                        name,
                        {"name": "spare" if name == "agent.set" else "fresh", field: NUL},
                        "bad_text",
                        f"{field}|NUL",
                    ),
                    row(
                        name,
                        {"name": "spare" if name == "agent.set" else "fresh", field: "/" + "ü" * 512},
                        "too_large",
                        f"{field}|1025 bytes|1024",
                    ),
                ]
            ],
            row(
                name,
                {"name": "spare" if name == "agent.set" else "fresh", "workspace": "here"},
                "invalid_params",
                "here is not an absolute path",
            ),
        ]
    ],
    row("agent.set", {"name": "spare"}, "invalid_params", "--role", "agent set --name spare"),
    *[
        each
        for verb in NAMED
        for each in [
            row(
                f"agent.{verb}",
                {**RIGHT[f"agent.{verb}"], "name": "spar"},
                "unknown_agent",
                "spar |spare?",
                f"agent {verb.replace('.', ' ')} --name spar{NAMED[verb]}",
                by="boss",
            ),
            *[
                row(
                    f"agent.{verb}",
                    {**RIGHT[f"agent.{verb}"], "name": value},
                    "unknown_agent",
                    f"{shown(value)}|agent list",
                    by="boss",
                )
                for value in ("", "gone", "agent:gone", "agent:", "user:spare", NUL, "' OR 1=1 --")
            ],
        ]
    ],
    # whatever the policy: nobody but oneself
    *[
        row(
            f"agent.{verb}",
            RIGHT[f"agent.{verb}"],
            "boss_only",
            "agent:nex",
            f"agent {verb.replace('.', ' ')} --name spare{NAMED[verb]}",
            by="nex",
            policy={f"agent.{verb}": "standard"},
        )
        for verb in ("set", "delete", "token.rotate", "token.revoke")
    ],
    *[
        row(name, RIGHT[name], "boss_only", "agent:nex", by="nex", policy={name: "standard"})
        for name in (
            "agent.pause",
            "agent.refresh",
            "agent.resume",
            "agent.bind",
            "agent.unbind",
            "user.delete",
            "user.token.rotate",
        )
    ],
    *[
        row(name, {"address": "agent:ada"}, "boss_only", "agent:ada", by="nex", policy={name: "standard"})
        for name in ("lane.retry", "lane.pause", "lane.resume")
    ],
]


# Of a new agent, of one there is already, and at set-up.
PROVIDERS = [
    *[
        each
        for given, says, words in BAD_PROVIDERS
        for each in [
            *[
                row(
                    name,
                    {"name": agent, **given},
                    "bad_provider",
                    says,
                    f"{command} {words}" if words else "",
                )
                for name, agent, command in (
                    ("agent.register", "fresh", "agent register --name fresh"),
                    ("agent.set", "spare", "agent set --name spare"),
                )
            ],
            *(
                [
                    row("setup.execute", given, "bad_provider", says),
                ]
                if set(given) == {"provider"}
                else []
            ),
        ]
    ],
    row(
        "setup.execute", {"provider": "comand"}, "bad_provider", "comand|command?", "setup --provider comand"
    ),
    *[
        row(name, {"name": agent, **given}, "invalid_params", "without a provider")
        for name, agent in (("agent.register", "fresh"), ("agent.set", "spare"))
        for given in (
            {"provider": "none", "settings": {"command": "x"}},
            {"provider": "none", "settings": {"url": "https://example.org/"}},
        )
    ],
]


OPTIONS = [
    *[
        each
        for name, command, agent in (
            ("agent.register", "agent register", "fresh"),
            ("agent.set", "agent set", "spare"),
        )
        for each in [
            row(
                name,
                {"name": agent, "mode": "run"},
                "no_provider",
                f"{agent}|--provider",
                f"{command} --name {agent} --mode run",
            ),
            row(name, {"name": agent, "mode": "run", "provider": "none"}, "no_provider", "--provider"),
            *[
                row(name, {"name": agent, param: value}, "invalid_params", known)
                for param, value, known in (("reply", "always", "explicit"), ("busy", "wait", "followup"))
            ],
        ]
    ],
    row("agent.set", {"name": "thinker", "mode": "run", "provider": "none"}, "no_provider", "thinker"),
]


# Of what a provider needs, and of what it cannot do.
CHECKS = [
    *[
        row("agent.check", {"name": value}, "unknown_agent", f"{shown(value)}|agent list")
        for value in ("", "gone", "agent:gone", "user:ann", NUL, LONG)
    ],
    row("agent.check", {"name": "spar"}, "unknown_agent", "spar |spare?", "agent check --name spar"),
    row("agent.check", {"name": "spare"}, "no_provider", "spare|--provider", "agent check --name spare"),
    row(
        "agent.check",
        {"name": "spare", "provider": "comand"},
        "bad_provider",
        "comand|command?",
        "agent check --name spare --provider comand",
    ),
    row("agent.check", {"name": "spare", "provider": "webhook"}, "bad_provider", "--url"),
    row("agent.check", {"name": "spare"}, "boss_only", "boss", "agent check --name spare", by="nex"),
    *[
        each
        for name, agent, command in (
            ("agent.register", "fresh", "agent register --name fresh"),
            ("agent.set", "spare", "agent set --name spare"),
        )
        for each in [
            row(
                name,
                {"name": agent, "provider": "demo", "busy": "steer"},
                "lacks_capability",
                "demo|steer|collect",
                f"{command} --provider demo --busy steer",
            ),
            row(
                name,
                {"name": agent, "provider": "demo", "daily_cost": 5},
                "lacks_capability",
                "demo|--daily-tokens",
                f"{command} --provider demo --daily-cost 5",
            ),
        ]
    ],
]


BUDGETS = [
    *[
        each
        for name, agent in (("agent.register", "fresh"), ("agent.set", "spare"))
        for each in [
            *[
                row(name, {"name": agent, "daily_tokens": number}, "invalid_params", "daily_tokens")
                for number in (-1, -(2**63), 10**12 + 1, 2**63, 2**64, 0.5)
            ],
            *[
                row(name, {"name": agent, "daily_cost": cost}, "invalid_params", "daily_cost")
                for cost in (-1, -0.01, 10**9 + 1, 1e308, 2**64)
            ],
        ]
    ],
    row(
        "agent.set",
        {"name": "spare", "daily_tokens": -1},
        "invalid_params",
        "daily_tokens|0",
        "agent set --name spare --daily-tokens -1",
    ),
    row(
        "agent.set",
        {"name": "spare", "daily_cost": -0.5},
        "invalid_params",
        "daily_cost|0",
        "agent set --name spare --daily-cost -0.5",
    ),
]


STANDING = [
    *[
        each
        for verb in ("status", "pause", "resume")
        for each in [
            *[
                row(f"agent.{verb}", {"name": value}, "unknown_agent", f"{shown(value)}|agent list")
                for value in ("", "gone", "agent:gone", "user:ann", NUL, "' OR 1=1 --", LONG)
            ],
            row(
                f"agent.{verb}",
                {"name": "spar"},
                "unknown_agent",
                "spar |spare?",
                f"agent {verb} --name spar",
            ),
        ]
    ],
    row("agent.pause", {"name": "spare", "reason": NUL}, "bad_text", "reason|NUL"),
    row(
        "agent.pause",
        {"name": "spare", "reason": "r" * 257},
        "too_large",
        "reason|257 bytes|256",
        f"agent pause --name spare --reason {'r' * 257}",
    ),
    row("breaker.pull", {"reason": NUL}, "bad_text", "reason|NUL"),
    row(
        "breaker.pull",
        {"reason": "r" * 257},
        "too_large",
        "reason|257 bytes|256",
        f"stop --all --reason {'r' * 257}",
    ),
    row("breaker.pull", {}, "forbidden", "boss", "stop --all", by="nex"),
    row("breaker.release", {}, "forbidden", "boss", "go", by="nex"),
]


BACKGROUND = [
    row(
        "agent.background",
        {"task": "x"},
        "no_provider",
        "nex|--provider",
        "agent background --task x",
        by="nex",
    ),
    row(
        "agent.background",
        {"task": "x", "agent": "spare"},
        "no_provider",
        "spare",
        "agent background --task x --name spare",
        by="boss",
    ),
    row(
        "agent.background", {"task": "x"}, "invalid_params", "--name", "agent background --task x", by="boss"
    ),
    row(
        "agent.background",
        {"task": "x", "agent": "ada"},
        "boss_only",
        "agent:nex",
        "agent background --task x --name ada",
        by="nex",
    ),
    # a person has no provider
    row(
        "agent.background",
        {"task": "x"},
        "unknown_recipient",
        "agents",
        "agent background --task x",
        by="ann",
    ),
    *[
        row(
            "agent.background",
            {"task": "x", "agent": value},
            "unknown_agent",
            f"{shown(value)}|agent list",
            by="boss",
        )
        for value in ("", "gone", NUL, "user:boss", LONG)
    ],
    row(
        "agent.background",
        {"task": "x", "agent": "spar"},
        "unknown_agent",
        "spare?",
        "agent background --task x --name spar",
        by="boss",
    ),
    *[row("agent.background", {"task": value}, "empty_message") for value in ("", " \n\t")],
    row("agent.background", {"task": " "}, "empty_message", "", "agent background --task ' '", by="thinker"),
    row("agent.background", {"task": NUL}, "bad_text", "NUL"),
    row("agent.background", {"task": "x", "subject": NUL}, "bad_text", "subject|NUL"),
    row("agent.background", {"task": "x" * (1024 * 1024 + 1)}, "too_large", "1048577 bytes"),
    row(
        "agent.background",
        {"task": "x", "subject": "s" * 1025},
        "too_large",
        "subject|1025 bytes",
        f"agent background --task x --subject {'s' * 1025}",
        by="thinker",
    ),
    # The same by the address that stands for it.
    row(
        "envelope.send",
        {"to": "agent:background", "text": "x"},
        "no_provider",
        "nex|--provider",
        "envelope send --to agent:background --text x",
    ),
    row(
        "envelope.send",
        {"to": "agent:background", "text": "x"},
        "unknown_recipient",
        "agent:background",
        by="ann",
    ),
    row("envelope.send", {"to": ["agent:ada", "agent:background"], "text": "x"}, "no_provider", "nex"),
    # What is sent in a run belongs to its errand, and to nobody else.
    row("envelope.send", {**SEND, "trace_id": "another"}, "invalid_params", "trace_id", by="run"),
    row("envelope.send", {**SEND, "from": "agent:nex"}, "boss_only", "from", by="run"),
]


INSTRUCTIONS = [
    *[
        row("agent.instructions", {"name": value}, "unknown_agent", f"{shown(value)}|agent list")
        for value in ("", "gone", "agent:gone", "user:ann", NUL, LONG)
    ],
    row(
        "agent.instructions",
        {"name": "spar"},
        "unknown_agent",
        "spar |spare?",
        "agent instructions --name spar",
    ),
    row(
        "agent.instructions",
        {"name": "spare"},
        "boss_only",
        "name|agent:nex",
        "agent instructions --name spare",
    ),
    row("run.get", {"id": "%run", "turn": "yes"}, "invalid_params", "turn"),
]


ROWS = [
    *AGENTS,
    *PROVIDERS,
    *OPTIONS,
    *CHECKS,
    *BUDGETS,
    *STANDING,
    *BACKGROUND,
    *INSTRUCTIONS,
]
