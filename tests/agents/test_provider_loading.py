"""What the loader refuses in a provider of somebody's own, so that it does not fail at the first message."""

from __future__ import annotations

from typing import Any

import pytest

from hiboss.agents.providers.registry import BUILT_IN, check
from hiboss.core.contracts.provider import Answer, Provider


class Good(Provider):
    name = "good"

    async def take_turn(self, turn: Any, run: Any) -> Answer:
        return Answer()


def plain_turn(self: Any, turn: Any, run: Any) -> Answer:
    return Answer()


async def old_turn(self: Any, turn: Any, progress: Any, started: Any) -> Answer:
    return Answer()


async def wide_turn(self: Any, *given: Any) -> Answer:
    return Answer()


async def no_words(self: Any) -> bool:
    return True


MISTAKES = [
    ({"take_turn": plain_turn}, "take_turn must be async: async def take_turn(self, turn, run)"),
    ({"take_turn": old_turn}, "missing a required argument: 'started'"),
    ({"steer": no_words}, "steer cannot be called: too many positional arguments"),
    ({"capabilities": ["session"]}, "capabilities must be a frozenset"),
    ({"capabilities": "session"}, "frozenset of texts, like frozenset({'session'})"),
    ({"capabilities": frozenset({"talk"})}, "there is no capability talk"),
    ({"capabilities": frozenset({"steer"})}, "it needs a method steer of its own"),
    ({"session_settings": ["model"]}, "session_settings must be a frozenset"),
    ({"session_settings": frozenset({"model"})}, "session_settings names model"),
    ({"__init__": lambda self: None}, "__init__ cannot be called"),
]


@pytest.mark.parametrize(("attributes", "expected"), MISTAKES, ids=[text for _, text in MISTAKES])
def test_a_mistake_in_a_class_is_named_with_what_would_be_right(
    attributes: dict[str, Any], expected: str
) -> None:
    found = check(type("Bad", (Good,), attributes))
    assert len(found) == 1 and expected in found[0]


@pytest.mark.parametrize(
    "kind",
    [*BUILT_IN.values(), Good, type("Wide", (Good,), {"take_turn": wide_turn})],
    ids=lambda k: k.__name__,
)
def test_a_class_without_a_mistake_is_taken(kind: type[Provider]) -> None:
    assert check(kind) == []
