"""Bad input of the operations about runs and controls (`bad_input.py`)."""

from __future__ import annotations

from tests.api.bad_input_row import BAD_ADDRESSES, BAD_IDS, LONG, NOBODYS_NAMES, NUL, row, shown

STEERING: dict[str, tuple[dict[str, str], str]] = {  # what else it needs, also on the command line
    "cancel": ({}, ""),
    "pause": ({}, ""),
    "resume": ({}, ""),
    "steer": ({"text": "go on"}, " 'go on'"),
}
RUNNING = {"event": "stream.pause", "run": "%running"}

RUNS = [
    *[
        row("run.list", {"page_size": size}, "invalid_params", f"page_size|{size}|1 to 100")
        for size in (0, -1, 101, 2**31, 2**63)
    ],
    row("run.list", {"page_size": 1000}, "invalid_params", "page_size|1000|1 to 100", "run list -n 1000"),
    *[
        row("run.list", {"after": value}, "bad_id", f"{shown(value)} is not a valid |r81")
        for value in BAD_IDS
    ],
    row("run.list", {"after": "e1"}, "bad_id", "e1|r81", "run list --after e1"),
    row("run.list", {"status": "done"}, "invalid_params", "completed"),
    *[
        row("run.list", {"agent": value}, "unknown_agent", f"{shown(value)}|agent list")
        for value in ("", "gone", "user:boss", NUL, LONG)
    ],
    row("run.list", {"agent": "spar"}, "unknown_agent", "spare?", "run list --agent spar"),
    row("run.list", {"agent": "ada"}, "boss_only", "agent:nex", "run list --agent ada"),
    row("run.list", {"trace": NUL}, "bad_text", "trace|NUL"),
    row(
        "run.list", {"trace": "t" * 257}, "too_large", "trace|257 bytes|256", f"run list --trace {'t' * 257}"
    ),
    *[
        each
        for name, command in (("run.get", "run get --id"), ("run.tail", "run tail --id"))
        for each in [
            *[row(name, {"id": value}, "bad_id", f"{shown(value)} is not a valid |r81") for value in BAD_IDS],
            row(name, {"id": "e1"}, "bad_id", "e1|r81", f"{command} e1"),
            # another's is not to be told apart from none
            *[
                row(name, {"id": value}, "not_found", f"no run|{value}|run list", f"{command} {value}")
                for value in ("%running", "r999999")
            ],
            row(name, {"id": "r999999"}, "not_found", "r999999|run list", by="boss"),
            row(name, {"id": 2**63 - 1}, "not_found", "run list", by="boss"),
        ]
    ],
]


TAILS = [
    *[
        row("run.tail", {"id": "%run", "after": number}, "invalid_params", "after")
        for number in (-1, -(2**63), 2**64, 0.5)
    ],
]


STEERED = [
    *[
        each
        for verb, (more, words) in STEERING.items()
        for each in [
            *[
                row(f"run.{verb}", {"id": value, **more}, "bad_id", f"{shown(value)} is not a valid |r81")
                for value in BAD_IDS
            ],
            row(f"run.{verb}", {"id": "e1", **more}, "bad_id", "e1|r81", f"run {verb} --id e1{words}"),
            *[
                row(f"run.{verb}", {"id": value, **more}, "not_found", "run list")
                for value in ("r999999", 2**63 - 1)
            ],
            row(
                f"run.{verb}",
                {"id": "r999999", **more},
                "not_found",
                "r999999|run list",
                f"run {verb} --id r999999{words}",
            ),
            row(
                f"run.{verb}",
                {"id": "%run", **more},
                "not_running",
                "%run|completed|has not ended",
                f"run {verb} --id %run{words}",
            ),
            # Whatever the policy: another's run is none.
            row(
                f"run.{verb}",
                {"id": "%running", **more},
                "not_found",
                "%running",
                by="nex",
                policy={f"run.{verb}": "standard"},
            ),
        ]
    ],
    row(
        "run.steer",
        {"id": "%running", "text": "x"},
        "cannot_steer",
        "%running|command|agent providers",
        "run steer %running x",
    ),
    *[row("run.steer", {"id": "%running", "text": text}, "empty_message") for text in ("", " \n\t")],
    row("run.steer", {"id": "%running", "text": NUL}, "bad_text", "text|NUL"),
    row(
        "run.steer",
        {"id": "%running", "text": "x" * (1024 * 1024 + 1)},
        "too_large",
        "1048577 bytes",
    ),
    *[
        each
        for number in (0, -1, 2**64, 0.5)
        for each in [
            row("ask.rule.remove", {"number": number}, "invalid_params", "number"),
            row("ask.rules", {"after": number}, "invalid_params", "after"),
        ]
    ],
    row(
        "ask.rule.remove",
        {"number": 999999},
        *("not_found", "no rule|999999|ask rules"),
        "ask rule-remove 999999",
    ),
    row("ask.rules", {"agent": "ada"}, "boss_only", "rules|boss", policy={"ask.rules": "standard"}),
    row(
        "ask.rules",
        {"agent": "nobody-here"},
        "unknown_agent",
        "nobody-here",
        "ask rules --agent nobody-here",
        by="boss",
    ),
    *[
        row("ask.rules", {"page_size": number}, "invalid_params", "page_size", f"ask rules -n {number}")
        for number in (0, 101)
    ],
    row("run.cancel", {"id": "%running", "reason": NUL}, "bad_text", "reason|NUL"),
    row(
        "run.cancel",
        {"id": "%running", "reason": "r" * 257},
        "too_large",
        "reason|257 bytes|256",
        f"run cancel --id %running --reason {'r' * 257}",
    ),
]


CONTROL_TARGETS = [
    *[
        each
        for kind, letter in (("run", "r"), ("conversation", "c"), ("envelope", "e"))
        for each in [
            *[
                row(
                    "control.send",
                    {"event": "stream.cancel", kind: value},
                    "bad_id",
                    f"{shown(value)} is not a valid |{letter}81",
                )
                for value in BAD_IDS
            ],
            *[
                row("control.send", {"event": "stream.resume", kind: value}, "not_found", f"no {kind}")
                for value in (f"{letter}999999", 2**63 - 1)
            ],
        ]
    ],
    row(
        "control.send",
        {"event": "stream.pause", "run": "r999999"},
        "not_found",
        "r999999|run list",
        "control pause --run r999999",
    ),
    *[
        row(
            "control.send",
            {"event": "stream.pause", "agent": value},
            "unknown_agent",
            f"{shown(value).removeprefix('agent:')}|agent list",
        )
        for value in ("", "gone", "agent:gone", "user:ann", NUL)
    ],
    row(
        "control.send",
        {"event": "stream.pause", "agent": "spar"},
        "unknown_agent",
        "spar |spare?",
        "control pause --agent spar",
    ),
]


CONTROL_PARAMETERS = [
    row(
        "control.send",
        {**RUNNING, "agent": "spare"},
        "invalid_params",
        "exactly one of|agent, run",
        "control pause --run %running --agent spare",
    ),
    row("control.send", {"event": "stream.cancel"}, "invalid_params", "exactly one of", "control cancel"),
    row("control.send", {"event": "stream.stop", "run": "%running"}, "invalid_params", "event|stream.pause"),
    *[
        row("control.send", {**RUNNING, "event": f"stream.{event}", **more}, "invalid_params", says)
        for event, more, says in (
            ("pause", {"requeue": True}, "requeue|cancel"),
            ("pause", {"to": "agent:ada"}, "to|route and handoff"),
            ("pause", {"level": "high"}, "level|priority"),
            ("priority", {}, "priority takes no run|envelope"),
        )
    ],
    row(
        "control.send",
        {"event": "stream.priority", "envelope": "%pending"},
        "invalid_params",
        "priority needs level",
    ),
    row(
        "control.send", {"event": "stream.route", "envelope": "%pending"}, "invalid_params", "route needs to"
    ),
    row("control.send", {"event": "stream.preempt", "run": "%running"}, "invalid_params", "needs envelope"),
    *[
        row(
            "control.send",
            {"event": "stream.route", "envelope": "%pending", "to": value},
            "bad_address",
            "is not a valid address|agent:nex",
        )
        for value in BAD_ADDRESSES
    ],
    *[
        row(
            "control.send",
            {"event": "stream.route", "envelope": "%pending", "to": value},
            "unknown_address",
            value,
        )
        for value in NOBODYS_NAMES
    ],
    row("control.send", {**RUNNING, "reason": NUL}, "bad_text", "reason|NUL"),
    row(
        "control.send",
        {**RUNNING, "reason": "r" * 257},
        "too_large",
        "reason|257 bytes|256",
        f"control pause --run %running --reason {'r' * 257}",
    ),
    row(
        "control.send",
        {**RUNNING, "meta": {"control": 1}},
        "invalid_params",
        "meta|control",
        "control pause --run %running --meta control=1",
    ),
    row("control.send", {**RUNNING, "meta": {"a": "x" * 20000}}, "too_large", "meta"),
]


# Whose it is not cannot tell it from none; whose it is needs the right.
CONTROL_RIGHTS = [
    *[
        each
        for verb in ("pause", "resume", "cancel")
        for each in [
            row(
                "control.send",
                {"event": f"stream.{verb}", "run": "%running"},
                "not_found",
                "%running",
                by="nex",
            ),
            row(f"run.{verb}", {"id": "%running"}, "not_found", "%running", by="nex"),
            row(
                "control.send",
                {"event": f"stream.{verb}", "agent": "spare"},
                "forbidden",
                "control.interrupt",
                by="nex",
            ),
        ]
    ],
    row(
        "control.send",
        {"event": "stream.route", "agent": "spare", "to": "agent:nex"},
        "boss_only",
        "control route|agent:nex",
        by="nex",
    ),
    row(
        "control.send", {"event": "stream.cancel", "envelope": "%pending"}, "not_found", "%pending", by="ann"
    ),
    row("control.send", {"event": "stream.pause", "conversation": "%conversation"}, "not_found", by="ann"),
]


CONTROL_LISTS = [
    *[
        row("control.list", {"conversation": value}, "bad_id", f"{shown(value)} is not a valid |c81")
        for value in BAD_IDS
    ],
    row("control.list", {"conversation": "%conversation"}, "not_found", "%conversation", by="ann"),
    row("control.list", {"agent": "gone"}, "unknown_agent", "gone|agent list", "control list --agent gone"),
    *[
        row("control.list", {"actor": value}, "bad_address", "is not a valid address|agent:nex")
        for value in BAD_ADDRESSES
    ],
    *[row("control.list", {"actor": value}, "unknown_address", value) for value in NOBODYS_NAMES],
    *[
        row("control.list", {"page_size": number}, "invalid_params", "page_size", f"control list -n {number}")
        for number in (0, 101)
    ],
    *[row("control.list", {"after": number}, "invalid_params", "after") for number in (0, -1, 2**64)],
]


ROWS = [
    *RUNS,
    *TAILS,
    *STEERED,
    *CONTROL_TARGETS,
    *CONTROL_PARAMETERS,
    *CONTROL_RIGHTS,
    *CONTROL_LISTS,
]
