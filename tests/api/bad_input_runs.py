"""Bad input of the operations about agents that think: providers, runs, people, conversations (`bad_input.py`)."""

from __future__ import annotations

from collections.abc import Iterator

from tests.api.bad_input_row import (
    BAD_ADDRESSES,
    BAD_IDS,
    LONG,
    NOBODYS_NAMES,
    NUL,
    RIGHT,
    SEND,
    Row,
    row,
    shown,
)

STEERING: dict[str, tuple[dict[str, str], str]] = {  # what else it needs, also on the command line
    "cancel": ({}, ""),
    "pause": ({}, ""),
    "resume": ({}, ""),
    "steer": ({"text": "go on"}, " 'go on'"),
}


def thinking() -> Iterator[Row]:
    for part in (
        _providers,
        _options,
        _checks,
        _budgets,
        _standing,
        _background,
        _runs,
        _tails,
        _instructions,
        _sessions,
        _steering,
    ):
        yield from part()


def people() -> Iterator[Row]:
    for part in (_names, _users, _conversations, _news):
        yield from part()


# --- how an agent thinks -------------------------------------------------------------

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


def _providers() -> Iterator[Row]:
    """Of a new agent, of one there is already, and at set-up."""
    for given, says, words in BAD_PROVIDERS:
        for name, agent, command in (
            ("agent.register", "fresh", "agent register --name fresh"),
            ("agent.set", "spare", "agent set --name spare"),
        ):
            cli = f"{command} {words}" if words else ""
            yield row(name, {"name": agent, **given}, "bad_provider", says, cli)
        if set(given) == {"provider"}:
            yield row("setup.execute", given, "bad_provider", says)
    words = "setup --provider comand"
    yield row("setup.execute", {"provider": "comand"}, "bad_provider", "comand|command?", words)
    for name, agent in (("agent.register", "fresh"), ("agent.set", "spare")):
        for given in (
            {"provider": "none", "settings": {"command": "x"}},
            {"provider": "none", "settings": {"url": "https://example.org/"}},
        ):
            yield row(name, {"name": agent, **given}, "invalid_params", "without a provider")


def _options() -> Iterator[Row]:
    for name, command, agent in (
        ("agent.register", "agent register", "fresh"),
        ("agent.set", "agent set", "spare"),
    ):
        words = f"{command} --name {agent} --mode run"
        yield row(name, {"name": agent, "mode": "run"}, "no_provider", f"{agent}|--provider", words)
        taken_away = {"name": agent, "mode": "run", "provider": "none"}
        yield row(name, taken_away, "no_provider", "--provider")
        for param, value, known in (("reply", "always", "explicit"), ("busy", "wait", "followup")):
            yield row(name, {"name": agent, param: value}, "invalid_params", known)
    yield row("agent.set", {"name": "thinker", "mode": "run", "provider": "none"}, "no_provider", "thinker")


def _checks() -> Iterator[Row]:
    """Of what a provider needs, and of what it cannot do."""
    name, command = "agent.check", "agent check --name"
    for value in ("", "gone", "agent:gone", "user:ann", NUL, LONG):
        yield row(name, {"name": value}, "unknown_agent", f"{shown(value)}|agent list")
    yield row(name, {"name": "spar"}, "unknown_agent", "spar |spare?", f"{command} spar")
    yield row(name, {"name": "spare"}, "no_provider", "spare|--provider", f"{command} spare")
    words = f"{command} spare --provider comand"
    yield row(name, {"name": "spare", "provider": "comand"}, "bad_provider", "comand|command?", words)
    yield row(name, {"name": "spare", "provider": "webhook"}, "bad_provider", "--url")
    yield row(name, {"name": "spare"}, "boss_only", "boss", f"{command} spare", by="nex")
    for name, agent, command in (
        ("agent.register", "fresh", "agent register --name fresh"),
        ("agent.set", "spare", "agent set --name spare"),
    ):
        steer = {"name": agent, "provider": "demo", "busy": "steer"}
        words = f"{command} --provider demo --busy steer"
        yield row(name, steer, "lacks_capability", "demo|steer|collect", words)
        cost = {"name": agent, "provider": "demo", "daily_cost": 5}
        words = f"{command} --provider demo --daily-cost 5"
        yield row(name, cost, "lacks_capability", "demo|--daily-tokens", words)


def _budgets() -> Iterator[Row]:
    for name, agent in (("agent.register", "fresh"), ("agent.set", "spare")):
        for number in (-1, -(2**63), 10**12 + 1, 2**63, 2**64, 0.5):
            yield row(name, {"name": agent, "daily_tokens": number}, "invalid_params", "daily_tokens")
        for cost in (-1, -0.01, 10**9 + 1, 1e308, 2**64):
            yield row(name, {"name": agent, "daily_cost": cost}, "invalid_params", "daily_cost")
    words = "agent set --name spare --daily-tokens -1"
    yield row("agent.set", {"name": "spare", "daily_tokens": -1}, "invalid_params", "daily_tokens|0", words)
    words = "agent set --name spare --daily-cost -0.5"
    yield row("agent.set", {"name": "spare", "daily_cost": -0.5}, "invalid_params", "daily_cost|0", words)


# --- how agents stand ----------------------------------------------------------------


def _standing() -> Iterator[Row]:
    for verb in ("status", "pause", "resume"):
        name, command = f"agent.{verb}", f"agent {verb} --name"
        for value in ("", "gone", "agent:gone", "user:ann", NUL, "' OR 1=1 --", LONG):
            yield row(name, {"name": value}, "unknown_agent", f"{shown(value)}|agent list")
        yield row(name, {"name": "spar"}, "unknown_agent", "spar |spare?", f"{command} spar")
    pause = {"name": "spare"}
    yield row("agent.pause", {**pause, "reason": NUL}, "bad_text", "reason|NUL")
    long = "r" * 257
    words = f"agent pause --name spare --reason {long}"
    yield row("agent.pause", {**pause, "reason": long}, "too_large", "reason|257 bytes|256", words)
    yield row("breaker.pull", {"reason": NUL}, "bad_text", "reason|NUL")
    words = f"stop --all --reason {long}"
    yield row("breaker.pull", {"reason": long}, "too_large", "reason|257 bytes|256", words)
    yield row("breaker.pull", {}, "forbidden", "boss", "stop --all", by="nex")
    yield row("breaker.release", {}, "forbidden", "boss", "go", by="nex")


def _background() -> Iterator[Row]:
    name, command = "agent.background", "agent background --task x"
    yield row(name, {"task": "x"}, "no_provider", "nex|--provider", command, by="nex")
    yield row(
        name, {"task": "x", "agent": "spare"}, "no_provider", "spare", f"{command} --name spare", by="boss"
    )
    yield row(name, {"task": "x"}, "invalid_params", "--name", command, by="boss")
    yield row(
        name, {"task": "x", "agent": "ada"}, "boss_only", "agent:nex", f"{command} --name ada", by="nex"
    )
    yield row(
        name, {"task": "x"}, "unknown_recipient", "agents", command, by="ann"
    )  # a person has no provider
    for value in ("", "gone", NUL, "user:boss", LONG):
        yield row(
            name, {"task": "x", "agent": value}, "unknown_agent", f"{shown(value)}|agent list", by="boss"
        )
    yield row(
        name, {"task": "x", "agent": "spar"}, "unknown_agent", "spare?", f"{command} --name spar", by="boss"
    )
    for value in ("", " \n\t"):
        yield row(name, {"task": value}, "empty_message")
    yield row(name, {"task": " "}, "empty_message", "", "agent background --task ' '", by="thinker")
    yield row(name, {"task": NUL}, "bad_text", "NUL")
    yield row(name, {"task": "x", "subject": NUL}, "bad_text", "subject|NUL")
    yield row(name, {"task": "x" * (1024 * 1024 + 1)}, "too_large", "1048577 bytes")
    words = f"{command} --subject {'s' * 1025}"
    yield row(
        name, {"task": "x", "subject": "s" * 1025}, "too_large", "subject|1025 bytes", words, by="thinker"
    )
    # The same by the address that stands for it.
    task = {"to": "agent:background", "text": "x"}
    words = "envelope send --to agent:background --text x"
    yield row("envelope.send", task, "no_provider", "nex|--provider", words)
    yield row("envelope.send", task, "unknown_recipient", "agent:background", by="ann")
    mixed = {"to": ["agent:ada", "agent:background"], "text": "x"}
    yield row("envelope.send", mixed, "no_provider", "nex")
    # What is sent in a run belongs to its errand, and to nobody else.
    yield row("envelope.send", {**SEND, "trace_id": "another"}, "invalid_params", "trace_id", by="run")
    yield row("envelope.send", {**SEND, "from": "agent:nex"}, "boss_only", "from", by="run")


# --- runs ----------------------------------------------------------------------------


def _runs() -> Iterator[Row]:
    name, command = "run.list", "run list"
    for size in (0, -1, 101, 2**31, 2**63):
        yield row(name, {"page_size": size}, "invalid_params", f"page_size|{size}|1 to 100")
    yield row(name, {"page_size": 1000}, "invalid_params", "page_size|1000|1 to 100", f"{command} -n 1000")
    for value in BAD_IDS:
        yield row(name, {"after": value}, "bad_id", f"{shown(value)} is not a valid |r81")
    yield row(name, {"after": "e1"}, "bad_id", "e1|r81", f"{command} --after e1")
    yield row(name, {"status": "done"}, "invalid_params", "completed")
    for value in ("", "gone", "user:boss", NUL, LONG):
        yield row(name, {"agent": value}, "unknown_agent", f"{shown(value)}|agent list")
    yield row(name, {"agent": "spar"}, "unknown_agent", "spare?", f"{command} --agent spar")
    yield row(name, {"agent": "ada"}, "boss_only", "agent:nex", f"{command} --agent ada")
    yield row(name, {"trace": NUL}, "bad_text", "trace|NUL")
    long = "t" * 257
    yield row(name, {"trace": long}, "too_large", "trace|257 bytes|256", f"{command} --trace {long}")
    for name, command in (("run.get", "run get --id"), ("run.tail", "run tail --id")):
        for value in BAD_IDS:
            yield row(name, {"id": value}, "bad_id", f"{shown(value)} is not a valid |r81")
        yield row(name, {"id": "e1"}, "bad_id", "e1|r81", f"{command} e1")
        for value in ("%running", "r999999"):  # another's is not to be told apart from none
            yield row(name, {"id": value}, "not_found", f"no run|{value}|run list", f"{command} {value}")
        yield row(name, {"id": "r999999"}, "not_found", "r999999|run list", by="boss")
        yield row(name, {"id": 2**63 - 1}, "not_found", "run list", by="boss")


def _instructions() -> Iterator[Row]:
    name, command = "agent.instructions", "agent instructions --name"
    for value in ("", "gone", "agent:gone", "user:ann", NUL, LONG):
        yield row(name, {"name": value}, "unknown_agent", f"{shown(value)}|agent list")
    yield row(name, {"name": "spar"}, "unknown_agent", "spar |spare?", f"{command} spar")
    yield row(name, {"name": "spare"}, "boss_only", "name|agent:nex", f"{command} spare")
    yield row("run.get", {"id": "%run", "turn": "yes"}, "invalid_params", "turn")


def _sessions() -> Iterator[Row]:
    for name, command in (
        ("agent.sessions", "agent sessions --name"),
        ("agent.refresh", "agent refresh --name"),
    ):
        for value in ("", "gone", "agent:gone", "user:ann", NUL, LONG):
            yield row(name, {"name": value}, "unknown_agent", f"{shown(value)}|agent list")
        yield row(name, {"name": "spar"}, "unknown_agent", "spar |spare?", f"{command} spar")
    yield row(
        "agent.sessions", {"name": "spare"}, "boss_only", "name|agent:nex", "agent sessions --name spare"
    )
    name, command = "agent.refresh", "agent refresh --name spare --conversation"
    for value in ("e1", "c0", "", NUL, -1):
        yield row(name, {"name": "spare", "conversation": value}, "bad_id", f"{shown(value)} is not a valid ")
    yield row(name, {"name": "spare", "conversation": "e1"}, "bad_id", "e1", f"{command} e1")
    # One in which it takes no part is for it like one that does not exist.
    for value in ("c1", "c999999"):
        yield row(name, {"name": "spare", "conversation": value}, "not_found", value, f"{command} {value}")
    for name, agent in (("agent.register", "fresh"), ("agent.set", "spare")):
        for value in ("4", "24:00", "4:60", "04:00:00", "-1:00", "noon", NUL):
            says = f"{shown(value)}|04:00"
            yield row(name, {"name": agent, "session_reset": value}, "bad_time_of_day", says)
        for value in ("0s", "6", "6d", "-1h", "9000h", NUL):
            yield row(name, {"name": agent, "session_idle": value}, "bad_duration", f"{shown(value)}|1h30m")
        for number in (-1, 10**12 + 1, 2**64, 0.5):
            yield row(name, {"name": agent, "session_context": number}, "invalid_params", "session_context")
        yield row(name, {"name": agent, "session_scope": "chat"}, "invalid_params", "session_scope|person")
    words = "agent set --name spare"
    for flag, value, code in (
        ("session-reset", "4 pm", "bad_time_of_day"),
        ("session-idle", "soon", "bad_duration"),
    ):
        params = {"name": "spare", flag.replace("-", "_"): value}
        yield row("agent.set", params, code, value, f"{words} --{flag} '{value}'")


def _tails() -> Iterator[Row]:
    name = "run.tail"
    for number in (-1, -(2**63), 2**64, 0.5):
        yield row(name, {"id": "%run", "after": number}, "invalid_params", "after")


def _steering() -> Iterator[Row]:
    for verb, (more, words) in STEERING.items():
        name, command = f"run.{verb}", f"run {verb} --id"
        for value in BAD_IDS:
            yield row(name, {"id": value, **more}, "bad_id", f"{shown(value)} is not a valid |r81")
        yield row(name, {"id": "e1", **more}, "bad_id", "e1|r81", f"{command} e1{words}")
        for value in ("r999999", 2**63 - 1):
            yield row(name, {"id": value, **more}, "not_found", "run list")
        none = {"id": "r999999", **more}
        yield row(name, none, "not_found", "r999999|run list", f"{command} r999999{words}")
        over = "%run|completed|has not ended"
        yield row(name, {"id": "%run", **more}, "not_running", over, f"{command} %run{words}")
        # Whatever the policy: another's run is none.
        allowed = {name: "standard"}
        yield row(name, {"id": "%running", **more}, "not_found", "%running", by="nex", policy=allowed)
    yield from _words()
    name, long = "run.cancel", "r" * 257
    yield row(name, {"id": "%running", "reason": NUL}, "bad_text", "reason|NUL")
    words = f"run cancel --id %running --reason {long}"
    yield row(name, {"id": "%running", "reason": long}, "too_large", "reason|257 bytes|256", words)


def _words() -> Iterator[Row]:
    """In the middle of a turn."""
    steer = {"id": "%running", "text": "x"}
    words = "run steer %running x"
    yield row("run.steer", steer, "cannot_steer", "%running|command|agent providers", words)
    for text in ("", " \n\t"):
        yield row("run.steer", {**steer, "text": text}, "empty_message")
    yield row("run.steer", {**steer, "text": NUL}, "bad_text", "text|NUL")
    yield row("run.steer", {**steer, "text": "x" * (1024 * 1024 + 1)}, "too_large", "1048577 bytes")
    yield from _rules()


def _rules() -> Iterator[Row]:
    """The answers to permissions that are remembered."""
    for number in (0, -1, 2**64, 0.5):
        yield row("ask.rule.remove", {"number": number}, "invalid_params", "number")
        yield row("ask.rules", {"after": number}, "invalid_params", "after")
    none = ("not_found", "no rule|999999|ask rules")
    yield row("ask.rule.remove", {"number": 999999}, *none, "ask rule-remove 999999")
    allowed = {"ask.rules": "standard"}
    yield row("ask.rules", {"agent": "ada"}, "boss_only", "rules|boss", policy=allowed)
    words = "ask rules --agent nobody-here"
    yield row("ask.rules", {"agent": "nobody-here"}, "unknown_agent", "nobody-here", words, by="boss")
    for number in (0, 101):
        yield row("ask.rules", {"page_size": number}, "invalid_params", "page_size", f"ask rules -n {number}")


# --- people --------------------------------------------------------------------------


def _names() -> Iterator[Row]:
    name, command = "user.register", "user register --name"
    bad = (
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
    for value in bad:
        yield row(name, {"name": value}, "bad_name", f"{value.strip()}|code-review")
    yield row(name, {"name": "n" * 65}, "bad_name", "64")
    yield row(name, {"name": "a b"}, "bad_name", "a b", f"{command} 'a b'")
    for value in ("ann", "ANN", "nex", "Nex"):  # of people and agents together: --as knows only names
        yield row(name, {"name": value}, "name_taken", value, f"{command} {value}")
    for value in ("ann", "nex"):
        yield row("agent.register", {"name": value}, "name_taken", value)
    yield row(name, {"name": "zoe", "display": NUL}, "bad_text", "display|NUL")
    words = f"{command} zoe --display {'d' * 257}"
    yield row(name, {"name": "zoe", "display": "d" * 257}, "too_large", "display|257 bytes|256", words)


def _users() -> Iterator[Row]:
    for verb, command in (
        ("delete", "user delete --yes --name"),
        ("token.rotate", "user token rotate --name"),
    ):
        name = f"user.{verb}"
        for value in (
            "",
            "parted",
            "agent:ann",
            "nex",
            "boss",
            "Boss",
            NUL,
            "' OR 1=1 --",
            LONG,
        ):
            yield row(name, {"name": value}, "unknown_user", f"{shown(value)}|user list")
        yield row(name, {"name": "an"}, "unknown_user", "an |ann?", f"{command} an")
        yield row(name, {"name": "boss"}, "unknown_user", "boss", f"{command} boss")


# --- conversations -------------------------------------------------------------------


def _conversations() -> Iterator[Row]:
    for verb in ("messages", "news"):
        name, right = f"conversation.{verb}", RIGHT[f"conversation.{verb}"]
        for value in BAD_ADDRESSES:
            yield row(name, {**right, "with": value}, "bad_address", "is not a valid address|agent:nex")
            yield row(name, {**right, "address": value}, "bad_address", "is not a valid address|agent:nex")
        for value in NOBODYS_NAMES:
            yield row(name, {**right, "with": value}, "unknown_address", value)
            yield row(name, {**right, "address": value}, "unknown_address", value)
        yield row(name, {**right, "with": "agent:adda"}, "unknown_address", "agent:ada?")
        for value in ("user:nobody-here", "channel:telegram:1"):  # who left has a history
            yield row(name, {**right, "with": value}, "unknown_address", value)
        yield row(name, {**right, "address": "user:boss"}, "boss_only", "address|agent:nex")
        nobody = {**right, "address": "agent:nobody-here"}
        yield row(name, nobody, "unknown_address", "nobody-here", by="boss")
    name, right = "conversation.messages", RIGHT["conversation.messages"]
    for size in (0, -1, 101, 2**31, 2**63):
        yield row(name, {**right, "page_size": size}, "invalid_params", f"page_size|{size}|1 to 100")
    for number in (-1, -(2**63), 2**63, 2**64, 0.5):
        yield row(name, {**right, "before": number}, "invalid_params", "before")


def _news() -> Iterator[Row]:
    name, right = "conversation.news", RIGHT["conversation.news"]
    for value in BAD_IDS:
        yield row(
            name, {**right, "run": value}, "bad_id" if isinstance(value, str) else "invalid_params", "run"
        )
    yield row(name, {**right, "run": "e1"}, "bad_id", "e1|r81")
    for number in (-1, -(2**63), 2**63, 2**64, 0.5):
        yield row(name, {**right, "after": number}, "invalid_params", "after")
    for number in (-1, -(2**63), 2**64, 0.5):
        yield row(name, {**right, "parts": number}, "invalid_params", "parts")


def following() -> Iterator[Row]:
    """Facts: whose, in which conversations, from where on."""
    name = "event.subscribe"
    for by in ("nex", "boss"):
        for value in BAD_ADDRESSES:
            yield row(name, {"addresses": [value]}, "bad_address", "is not a valid address|agent:nex", by=by)
        for value in NOBODYS_NAMES:
            yield row(name, {"addresses": [value]}, "unknown_address", value, by=by)
    for value in ("agent:ada", "ada", "user:boss"):
        yield row(name, {"addresses": ["agent:nex", value]}, "boss_only", "addresses")
    for value in BAD_IDS:
        if isinstance(value, str):
            yield row(name, {"conversations": [value]}, "bad_id", "c81")
    yield row(name, {"conversations": ["c999999"]}, "not_found", "conversation|c999999")
    yield row(name, {"topics": ["envelope.lost"]}, "invalid_params", "topics")
    yield row("event.unsubscribe", {"subscription": "1"}, "invalid_params", "subscription")
