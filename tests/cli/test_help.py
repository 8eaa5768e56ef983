"""The help of every command, as a new user reads it."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from tests.support.cli import Done, Shell
from tests.support.sweeps import sweep

VERBS = {
    "envelope": [
        "send",
        "list",
        "thread",
        "get",
        "read",
        "ack",
        "snooze",
        "unsnooze",
        "cancel",
        "claim",
        "wait",
        "release",
        "retry",
        "archive",
        "trash",
        "restore",
    ],
    "agent": [
        "register",
        "check",
        "providers",
        "list",
        "set",
        "delete",
        "self",
        "status",
        "instructions",
        "sessions",
        "refresh",
        "pause",
        "resume",
        "detach",
        "background",
        "heartbeat",
        "adapters",
        "bind",
        "unbind",
        "bindings",
        "permission",
        "token",
    ],
    "hooks": ["install", "remove", "status"],
    "mcp": ["install", "remove"],
    "cron": ["create", "set", "list", "show", "enable", "disable", "delete", "run", "explain"],
    "run": ["list", "get", "tail", "cancel", "pause", "resume", "steer"],
    "control": ["pause", "resume", "cancel", "preempt", "priority", "route", "handoff", "list"],
    "ask": ["create", "wait", "answer", "list", "get", "cancel", "rules", "rule-remove"],
    "user": ["register", "list", "delete", "token"],
    "user token": ["rotate"],
    "contact": ["list", "approve", "block", "route"],
    "webhook": ["create", "list", "show", "set", "rotate", "delete", "subscribe", "unsubscribe"],
    "message": ["list", "get", "read", "edit", "delete", "restore"],
    "thread": ["list", "show"],
    "conversation": ["create", "list", "show", "messages", "read", "set", "archive", "delete"],
    "group": [
        "create",
        "list",
        "show",
        "set",
        "archive",
        "delete",
        "add",
        "remove",
        "role",
        "transfer",
        "join",
        "leave",
    ],
    "reaction": ["set", "remove"],
    "lane": ["list", "retry", "pause", "resume"],
    "agent permission": ["get", "set"],
    "agent token": ["rotate", "revoke"],
    "boss": ["get", "set", "pair", "token"],
    "boss token": ["rotate"],
    "permission": ["policy"],
    "permission policy": ["get", "set"],
    "config": ["show", "check", "reload"],
    "daemon": ["start", "stop", "restart", "status", "ping", "metrics", "time", "logs"],
    "completion": ["show", "install"],
}
FLAG = re.compile(r"--[a-z-]+")
GROUPS = [tuple(noun.split()) for noun in VERBS]
SINGLE = [
    "up",
    "setup",
    "chat",
    "send",
    "inbox",
    "read",
    "reply",
    "trace",
    "prime",
    "team",
    "stop",
    "go",
    "presence",
    "notify",
    "poll",
    "watch",
    "web",
]  # without a noun
PLACES = [(), *((word,) for word in SINGLE), *GROUPS]
PLACES += [
    place for noun, verbs in VERBS.items() for verb in verbs if (place := (*noun.split(), verb)) not in GROUPS
]


@cache
def helped(place: tuple[str, ...]) -> Done:
    """Return the help of a command, which is the same in any home: it is asked for once."""
    return Shell("/nowhere")(*place, "--help")


def section(text: str, title: str) -> list[str]:
    """The lines below `Title:`, each entry with its continuation lines joined."""
    _, _, rest = text.partition(f"\n{title}:\n")
    entries: list[str] = []
    for line in rest.split("\n\n")[0].splitlines():
        if re.match(r"  \S", line):
            entries.append(line.strip())
        else:
            entries[-1] += "  " + line.strip()
    return entries


def purpose(done: Done) -> str:
    """What stands between the usage line and the options."""
    return done.stdout.partition("\n\n")[2].partition("\nOptions:\n")[0].strip()


def flags(text: str) -> set[str]:
    return set(FLAG.findall(text))


@pytest.mark.parametrize("noun", sorted({place[0] if place else "" for place in PLACES}))
def test_help_is_a_sentence_describes_every_option_and_has_the_flags_of_the_reference(noun: str) -> None:
    # The page is made from the whole tree of commands; a verb that is called is built by itself.
    page = (Path(__file__).parents[2] / "docs/reference/cli.md").read_text()
    with sweep() as row:
        for place in PLACES:
            if " ".join(place[:1]) == noun:
                with row(" ".join(place)):
                    check_help(place, page)


def check_help(place: tuple[str, ...], page: str) -> None:
    done = helped(place)
    assert (done.rc, done.stderr) == (0, "")
    assert done.stdout.startswith(f"Usage: {' '.join(('hiboss', *place))} ")
    assert re.match(r"[A-Z][^\n]+ [^\n]+", purpose(done)) and purpose(done).split("\n\n")[0].endswith(".")
    assert all(paragraph.count("Example: ") <= 1 for paragraph in purpose(done).split("\n\n"))
    options = dict(option.split("  ", 1) for option in section(done.stdout, "Options"))
    assert "-h, --help" in options
    assert [names for names, words in options.items() if not re.search(r"\w+ .*\w", words)] == []
    if noun := " ".join(place) if " ".join(place) in VERBS else "":
        lines = section(done.stdout, "Commands")
        assert [line.split()[0] for line in lines] == VERBS[noun]
        assert [line for line in lines if line.endswith("...")] == []
    elif place:
        rows = page.partition(f"\n## {' '.join(('hiboss', *place))}\n")[2].partition("\n## ")[0]
        documented = flags("".join(re.findall(r"^\| (`-.*?`) \|", rows, re.M)))
        assert flags(" ".join(options)) - {"--help"} == documented and "--json" in documented


@pytest.mark.parametrize("place", [(), ("up",), ("agent",), ("daemon", "logs")], ids=" ".join)
def test_the_short_name_of_help_is_the_same(shell: Shell, place: tuple[str, ...]) -> None:
    assert shell(*place, "-h") == helped(place)


def test_the_root_lists_every_noun() -> None:
    lines = section(helped(()).stdout, "Commands")
    nouns = {noun for noun in VERBS if " " not in noun}
    assert {line.split()[0] for line in lines} == nouns | set(SINGLE)


@pytest.mark.parametrize("place", [(), ("envelope",)], ids=" ".join)
def test_a_command_without_its_verb_shows_the_help(shell: Shell, place: tuple[str, ...]) -> None:
    done = shell(*place)
    assert (done.rc, done.stderr) == (2, helped(place).stdout)


WRONG = [
    (("envlope", "list"), "there is no command envlope (did you mean envelope?)", "hiboss"),
    (("zebra",), "there is no command zebra", "hiboss"),
    (("envelope", "snd"), "there is no command snd (did you mean send?)", "hiboss envelope"),
    (("agent", "tokn", "rotate"), "there is no command tokn (did you mean token?)", "hiboss agent"),
    (
        ("agent", "token", "rotat"),
        "there is no command rotat (did you mean rotate?)",
        "hiboss agent token",
    ),
    (
        ("envelope", "list", "--statu", "done"),
        "there is no option --statu (did you mean --status?)",
        "hiboss envelope list",
    ),
    (
        ("agent", "token", "rotate", "x", "--jsno"),
        "there is no option --jsno (did you mean --json?)",
        "hiboss agent token rotate",
    ),
    (("--verson",), "there is no option --verson (did you mean --version?)", "hiboss"),
    (
        ("envelope", "list", "--status", "don"),
        "--status cannot be don (did you mean done?); use one of: pending, done, failed, cancelled",
        "hiboss envelope list",
    ),
    (
        ("envelope", "send", "--priority", "urgent"),
        "--priority cannot be urgent; use one of: critical, high, normal, low",
        "hiboss envelope send",
    ),
    (("envelope", "get"), "ID is missing: hiboss envelope get ID", "hiboss envelope get"),
    (("envelope", "archive"), "ID is missing: hiboss envelope archive ID…", "hiboss envelope archive"),
    (("envelope", "snooze", "e1"), "the option --until is missing", "hiboss envelope snooze"),
    (("trace",), "ID is missing: hiboss trace ID", "hiboss trace"),
    (("agent", "pause"), "NAME is missing: hiboss agent pause NAME", "hiboss agent pause"),
    (("cron", "explain"), "EXPR is missing: hiboss cron explain EXPR", "hiboss cron explain"),
    (("agent", "background"), "the option --task is missing", "hiboss agent background"),
    (("envelope", "get", "--id"), "option '--id' requires an argument", "hiboss envelope get"),
    (
        ("envelope", "list", "-n", "many"),
        "-n/--number must be a whole number, not many",
        "hiboss envelope list",
    ),
    (("send",), "TO is missing: hiboss send TO [TEXT]", "hiboss send"),
    (("reply",), "ID is missing: hiboss reply ID [TEXT]", "hiboss reply"),
    (
        ("agent", "set", "x", "--daily-cost", "much"),
        "--daily-cost must be a number, not much",
        "hiboss agent set",
    ),
    (("reed", "e1"), "there is no command reed (did you mean read?)", "hiboss"),
    (
        ("agent", "set", "x", "--busy", "colect"),
        "--busy cannot be colect (did you mean collect?); use one of: collect, followup, interrupt, steer, end-of-turn",
        "hiboss agent set",
    ),
    (
        ("envelope", "list", "e1"),
        "there is one word too many: e1; to show envelopes: hiboss read e1",
        "hiboss envelope list",
    ),
]


MISPLACED = [
    (("--as", "lin", "inbox"), "put --as after the command, like: hiboss inbox --as lin"),
    (("agent", "--as", "lin", "list"), "put --as after the command, like: hiboss agent register --as lin"),
    (("daemon", "stop", "--as", "boss"), "hiboss daemon stop takes no --as: it needs no token"),
    (("team", "--yes"), "there is no option --yes"),
]
TOO_MANY = [
    (("send", "nex", "hi", "there"), "there", 'put the text in quotes: hiboss send nex "hi there"'),
    (("send", "nex", "a", "$b"), "$b", "put the text in quotes: hiboss send nex 'a $b'"),
    (("reply", "e1", "yes", "do"), "do", 'put the text in quotes: hiboss reply e1 "yes do"'),
    (("inbox", "e2"), "e2", "to show envelopes: hiboss read e2"),
    (("inbox", "nex"), "nex", "for the mail of one sender: hiboss inbox --from nex"),
    (("team", "nex"), "nex", "for one agent: hiboss agent status nex"),
    (("chat", "nex", "hi"), "hi", 'to send one message: hiboss chat nex --once "hi"'),
    (("chat", "nex", "--once", "hi", "you"), "you", 'put the text in quotes: --once "hi you"'),
    (("envelope", "send", "nex"), "nex", 'give --to and --text, or: hiboss send nex "hello"'),
    (("envelope", "send", "--text", "hi", "you"), "you", 'put the text in quotes: --text "hi you"'),
    (("envelope", "get", "e2", "e3"), "e3", "to show several: hiboss read e2 e3"),
    (
        ("cron", "explain", "0", "9"),
        "9",
        'put the expression in quotes, like: hiboss cron explain "0 9 * * *"',
    ),
    (("cron", "create", "--cron", "0", "9"), "9", 'put the expression in quotes, like: --cron "0 9 * * *"'),
]


TWICE = [
    (("agent", "pause", "nex", "--name", "kai"), "NAME is given twice (--name); give it once"),
    (("agent", "pause", "--name=nex", "--name", "kai"), "NAME is given twice (--name); give it once"),
    (("cron", "explain", "--cron", "@daily", "@hourly"), "EXPR is given twice (--cron); give it once"),
    (("reply", "--id", "e1", "e1", "text"), "ID is given twice (--id); give it once"),
    (("run", "tail", "r1", "--id", "r2"), "ID is given twice (--id); give it once"),
    (("run", "get", "r1", "r2"), "there is one word too many: r2; usage: hiboss run get [OPTIONS] ID"),
]


def test_wrong_usage_is_named_with_what_would_be_right(shell: Shell) -> None:
    rows = [*WRONG, *((*one, None) for one in (*MISPLACED, *TWICE))]
    rows += [
        (words, f"there is one word too many: {extra}; {advice}", None) for words, extra, advice in TOO_MANY
    ]
    with sweep() as row:
        for words, says, place in rows:
            with row(" ".join(words)):
                done = shell(*words)
                assert (done.rc, done.stdout) == (2, "")
                assert done.stderr.startswith(f"error: {says}\ncode: usage\nhelp: {place or 'hiboss'}")
                assert place is None or done.stderr.endswith(f"\nhelp: {place} --help\n")


def test_several_words_too_many_are_counted_and_help_still_helps(shell: Shell) -> None:
    done = shell("envelope", "send", "nex", "hi")
    assert 'there are 2 words too many: nex hi; give --to and --text, or: hiboss send nex "hi"' in done.stderr
    assert shell("inbox", "e2", "--help") == helped(("inbox",))


OLD_FLAGS = [
    (("run", "get"), "--id"),
    (("envelope", "ack"), "--id"),
    (("agent", "pause"), "--name"),
    (("agent", "token", "rotate"), "--name"),
    (("user", "delete"), "--name"),
    (("lane", "retry"), "--address"),
    (("cron", "explain"), "--cron"),
    (("cron", "set"), "--id"),
]


def test_the_flags_of_older_versions_are_not_in_the_help() -> None:
    with sweep() as row:
        for place, flag in OLD_FLAGS:
            with row(" ".join(place)):
                assert flag not in flags(helped(place).stdout)


@pytest.mark.parametrize(("words", "says", "place"), WRONG[3:9:2], ids=lambda value: " ".join(value)[:40])
def test_wrong_usage_has_the_shape_of_every_error_when_json_was_asked_for(
    shell: Shell, words: tuple[str, ...], says: str, place: str
) -> None:
    done = shell(*words, "--json")
    assert (done.rc, done.stdout) == (2, "")
    assert done.error == {
        "code": "usage",
        "message": says,
        "data": {"detail": says, "help": f"{place} --help"},
    }


def test_the_version_is_printed(shell: Shell) -> None:
    assert re.fullmatch(r"hiboss \d+\.\d+\.\d+\S*\n", shell("--version").stdout)


def test_help_makes_no_home(shell: Shell, tmp_path: Path) -> None:
    shell("envelope", "send", "--help")
    assert list(tmp_path.iterdir()) == []
