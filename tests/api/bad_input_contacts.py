"""Bad input of the operations about contacts and about the ids of the boss on platforms (`bad_input.py`)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.api.bad_input_row import BAD_IDS, LONG, NUL, Row, row, shown

KNOWN = "channel:scripted:one"  # of the scene, like the two below
SHARED = "channel:scripted:shared"  # two accounts know it
MINE = "channel:scripted:mine"  # it is the boss's


def contacts() -> Iterator[Row]:
    for part in (_lists, _decisions, _routes, _ids):
        yield from part()


def _lists() -> Iterator[Row]:
    name = "contact.list"
    for value in ("none", "ALLOWED", "", NUL):
        yield row(name, {"state": value}, "invalid_params", "state|asking")
    for number in (-1, 2**62 + 1, 2**63, 2**64):
        yield row(name, {"after": number}, "invalid_params", "after")


def _decisions() -> Iterator[Row]:
    for verb in ("approve", "block"):
        name, command = f"contact.{verb}", f"contact {verb}"
        unknown = ("", " ", "x:y", "agent:nex", "user:boss", "channel:", "channel:x", "channel:scripted:none")
        for value in (*unknown, "K7QM2XPA", "777", "one", NUL, LONG, "' OR 1=1 --"):
            yield row(name, {"contact": value}, "not_found", f"no contact {shown(value)}|hiboss contact list")
        for value in ("K7QM2XPA", "channel:telegram:777", "@ada"):
            yield row(name, {"contact": value}, "not_found", f"{value}|contact list", f"{command} {value}")
        yield from _accounts(name, command, {})
    blocked = "yours|--reach"
    yield row("contact.block", {"contact": MINE}, "invalid_params", blocked, f"contact block {MINE}")


def _accounts(name: str, command: str, more: dict[str, Any], words: str = "") -> Iterator[Row]:
    """Which account is meant."""
    for value in BAD_IDS:
        wrong = {"contact": KNOWN, "binding": value, **more}
        yield row(name, wrong, "bad_id", f"{shown(value)} is not a valid binding|b81")
    wrong = {"contact": KNOWN, "binding": "x", **more}
    yield row(name, wrong, "bad_id", "x|b81", f"{command} {KNOWN} --binding x{words}")
    several = {"contact": SHARED, **more}
    yield row(name, several, "invalid_params", f"{SHARED}|--binding|b", f"{command} {SHARED}{words}")
    other = {"contact": KNOWN, "binding": "b999", **more}
    yield row(name, other, "not_found", KNOWN, f"{command} {KNOWN} --binding b999{words}")


def _routes() -> Iterator[Row]:
    name, command, to = "contact.route", "contact route", {"agent": "ada"}
    words = " --agent ada"
    yield from _accounts(name, command, to, words)
    for value in ("", "x:y", "channel:scripted:none", "K7QM2XPA", NUL, LONG):
        yield row(name, {"contact": value, **to}, "not_found", f"{shown(value)}|hiboss contact list")
    unknown = "channel:telegram:-100"
    yield row(name, {"contact": unknown, **to}, "not_found", unknown, f"{command} {unknown}{words}")
    topic = f"{KNOWN}/7"
    yield row(name, {"contact": topic, **to}, "not_found", f"no topic {topic}", f"{command} {topic}{words}")
    for value in (f"{KNOWN}/", f"{KNOWN}/a b", f"{KNOWN}/{NUL}", f"{KNOWN}/a:b"):
        yield row(name, {"contact": value, **to}, "bad_address", "is not a valid address|channel:")
    wrong = f"{KNOWN}/"
    yield row(name, {"contact": wrong, **to}, "bad_address", wrong, f"{command} {wrong}{words}")
    for value in ("gone", "agent:gone", "user:boss", NUL, LONG):
        yield row(name, {"contact": KNOWN, "agent": value}, "unknown_agent", f"{shown(value)}|agent list")
    adda = {"contact": KNOWN, "agent": "adda"}
    yield row(name, adda, "unknown_agent", "adda|ada?", f"{command} {KNOWN} --agent adda")
    other = {"contact": KNOWN, "agent": "bob"}
    yield row(name, other, "not_bound", f"agent:bob|{KNOWN}|scripted", f"{command} {KNOWN} --agent bob")


def _ids() -> Iterator[Row]:
    name = "boss.set"
    for adapter in ("", "Telegram", "pigeon", NUL, "x" * 200):
        says = "the adapters are: folder"
        yield row(name, {"ids": {adapter: "7"}}, "unknown_adapter", f"{shown(adapter)}|{says}")
    yield row(name, {"ids": {"telegrm": "7"}}, "unknown_adapter", "telegrm|telegram?")
    for person in ("@ada", "ada", "-100", "0", "7/8", "7 ", "７", NUL, "7" * 200):
        says = f"{shown(person)}|cannot be the id of a person|hiboss boss pair"
        yield row(name, {"ids": {"telegram": person}}, "invalid_params", says)
    for person in ("a b", "a/b", "a:b", NUL):
        yield row(name, {"ids": {"folder": person}}, "invalid_params", f"{person}|folder")
    yield row(name, {"ids": {"telegram": "7" * 201}}, "invalid_params", "ids|200")
    yield row(name, {"name": "Bea", "ids": {"telegram": "@ada"}}, "invalid_params", "@ada")
    yield row(name, {"ids": {"telegram": "@ada"}}, "invalid_params", "@ada|pair", "boss set --telegram @ada")
