"""Command lines of plain commands, read by their table: as Typer reads them, or left to Typer."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

from hiboss.cli import typer_commands
from hiboss.cli.quick import parsing
from hiboss.cli.quick.arguments import VERBS
from tests.support import whole_way
from tests.support.failures import seeded
from tests.support.sweeps import sweep

FREQUENT = (
    *("send", "inbox", "read", "reply", "team", "poll", "watch", "run list"),
    *(f"envelope {verb}" for verb in ("send", "list", "get", "read", "ack", "wait")),
)
VALUES = [
    *(
        "x",
        "",
        " ",
        "-",
        "--",
        "-5",
        "-n",
        "--json",
        "--help",
        "5",
        "0",
        "007",
        "+5",
        " 5",
        "1_0",
        "1e3",
        "٣",
        "²",
    ),
    *("9" * 9, "9" * 30, "a=b", "=", "two words", "ünï", "\udcff", "\x00", "\n", "normal", "NORMAL", "inbox"),
    *("hook", "json", "text", "failed", "running", "true"),
]
STRANGE = [
    *(
        "--help",
        "-h",
        "--version",
        "--id",
        "--id=e1",
        "--name",
        "--no-json",
        "--jso",
        "--json=true",
        "--json=",
    ),
    *(
        "-j",
        "-n",
        "-n5",
        "-n=5",
        "-nx",
        "-N",
        "--number",
        "--Number",
        "---",
        "--=x",
        "-5",
        "-hn",
        "--as",
        "--unknown=x",
    ),
]
SOME = 4_000  # command lines made by chance


def spelled(verb: str) -> Iterator[list[str]]:
    """Each option of a command in each of its spellings, with each value, and several times."""
    for option, (_, kind, _) in VERBS[verb][3].items():
        if kind == "switch":
            yield [option]
            yield [option, option]
            yield [f"{option}=x"]
            continue
        yield [option]
        for value in [*VALUES, *(kind if isinstance(kind, tuple) else ())]:
            yield [option, value]
            yield [f"{option}={value}"]
            yield [f"{option}{value}"]
            yield [option, value, option, "5"]
            yield [f"{option}=5", option, value]


def lines_of(verb: str) -> Iterator[list[str]]:
    """Return many ways to write a command, right and wrong."""
    words = verb.split()
    for count in range(5):
        arguments = [f"e{number}" for number in range(count)]
        yield [*words, *arguments]
        yield [*words, "--", *arguments]
        yield [*words, *arguments, "--"]
        yield [*words, *arguments, "--", "--json", "-n"]
        for strange in [*STRANGE, *VALUES]:
            yield [*words, *arguments, strange]
            yield [*words, strange, *arguments]
    for option in spelled(verb):
        yield [*words, *option]
        yield [*words, "e1", *option]
        yield [*words, *option, "e1", "e2"]
        yield [*words, "e1", "--", *option]


def by_chance(verb: str, chance: random.Random, count: int) -> Iterator[list[str]]:
    options = list(VERBS[verb][3])
    for _ in range(count):
        line = verb.split()
        for _ in range(chance.randrange(7)):
            name, value = chance.choice(options), chance.choice(VALUES)
            forms = [[name], [name, value], [f"{name}={value}"], [value], [chance.choice(STRANGE)], ["--"]]
            line += chance.choices(forms, [3, 4, 3, 4, 1, 1])[0]
        yield line


@pytest.mark.slow
@pytest.mark.parametrize("noun", sorted({verb.split()[0] for verb in VERBS}))
def test_what_is_read_quickly_is_what_typer_reads(noun: str) -> None:
    with sweep() as row:
        for number, verb in enumerate(VERBS):
            if verb.split()[0] == noun:
                lines = [*lines_of(verb), *by_chance(verb, seeded(number, verb), SOME // len(VERBS))]
                read = [(line, found) for line in lines if (found := parsing.read(list(line))) is not None]
                with row(verb):
                    assert len(read) > 20
                    assert [one for one, found in read if typed(found) != typed(whole_way.read(one))] == []


def typed(call: Any) -> Any:
    """The same, with the types of the values: 1 is no True, and a tuple is no list."""
    return None if call is None else (*call[:2], {name: (type(one), one) for name, one in call[2].items()})


def test_every_plain_spelling_is_read_quickly() -> None:
    with sweep() as row:
        for verb in FREQUENT:
            _, _, arguments, options = VERBS[verb]
            needed = ["e1" for _, kind in arguments if not kind.startswith("some")]
            for option, (_, kind, _) in options.items():
                value = (
                    {"switch": [], "number": ["7"]}.get(kind, ["x"]) if isinstance(kind, str) else [kind[-1]]
                )
                joined = [[f"{option}={value[0]}"]] if value and option.startswith("--") else []
                for form in ([option, *value], *joined):
                    with row((verb, form)):
                        first, last = (
                            parsing.read([*verb.split(), *one])
                            for one in ([*form, *needed], [*needed, *form])
                        )
                        assert first is not None and typed(first) == typed(last)
                        assert typed(first) == typed(whole_way.read([*verb.split(), *form, *needed]))


LEFT_TO_TYPER: list[list[str]] = [
    [],
    ["--help"],
    ["--version"],
    ["inbox", "--help"],
    ["inbox", "-h"],
    ["inbox", "e1"],
    ["--json", "inbox"],
    ["inbox", "-n"],
    ["inbox", "-n", "ten"],
    ["inbox", "-n10"],
    ["read"],
    ["read", "--id", "e1"],
    ["send"],
    ["send", "nex", "hello", "you"],
    ["envelope"],
    ["envelope", "lst"],
    ["envelope", "--json", "list"],
    ["envelope", "list", "--box", "inbx"],
    ["envelope", "snooze", "e1", "--until", "+1h"],
    ["agent", "list"],
    ["run list"],
    ["envelope send", "--to", "nex", "--text", "x"],
]


def test_help_mistakes_and_other_commands_are_left_to_typer() -> None:
    assert [line for line in LEFT_TO_TYPER if parsing.read(line) is not None] == []


def test_no_two_modules_declare_an_option_under_one_name() -> None:
    """The annotations of plain commands are looked up in all of them."""
    owners: dict[str, Any] = {}
    for module in typer_commands.DECLARING:
        for name, value in vars(module).items():
            if not name.startswith("__"):
                assert owners.setdefault(name, value) is value, name
