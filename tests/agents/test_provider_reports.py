"""Mistakes of a provider: what the loader refuses, and how reports are checked by the daemon and the run for tests."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from hiboss.agents.providers.registry import BUILT_IN, check
from hiboss.core.contracts.failures import TurnError
from hiboss.core.contracts.provider import Answer, LiveRun, Progress, Provider, TurnInput, Usage
from hiboss.testing.recorded_run import RecordedRun, sample_turn
from tests.support.raising import raised


class Reporting(Provider):
    """Reports one thing, and returns another."""

    capabilities = frozenset({"session"})

    def __init__(self, report: Any = None, answer: Any = None, session: Any = None) -> None:
        super().__init__(None)
        self.report, self.answer, self.named = report, answer, session

    async def take_turn(self, turn: TurnInput, run: LiveRun) -> Answer:
        if self.report is not None:
            run.progress(self.report)
        if self.named is not None:
            await run.session(self.named)
        return self.answer  # type: ignore[no-any-return]


def given(provider: Provider) -> Answer:
    return asyncio.run(RecordedRun().give(provider, sample_turn("hello")))


@pytest.mark.parametrize(
    ("answer", "says"), [("text", "a str"), (None, "None"), (Answer(text=7), "a int")], ids=repr
)
def test_what_is_no_answer_is_named_with_what_would_be_one(answer: Any, says: str) -> None:
    caught = raised(TurnError, given, Reporting(answer=answer))
    assert says in caught.text and "Answer" in caught.text


@pytest.mark.parametrize(
    ("report", "kind", "says"),
    [
        ("delta", TypeError, "Progress('delta', text), not a str"),
        (Progress("typo", "x"), ValueError, "there is no progress 'typo'; there are delta"),
        (Progress("delta", 7), TypeError, "not a int"),  # type: ignore[arg-type]
        (Progress("usage", usage=(1, 2, 3)), TypeError, "Usage(tokens_in"),  # type: ignore[arg-type]
    ],
    ids=["text", "kind", "number", "tuple"],
)
def test_a_report_of_a_wrong_type_raises_and_says_what_is_right(
    report: Any, kind: type[Exception], says: str
) -> None:
    caught = raised(kind, given, Reporting(report, Answer()))
    assert says in str(caught)


def test_what_cannot_be_stored_is_replaced_or_left_out_with_a_note_each() -> None:
    bad = Progress("usage", usage=Usage(tokens_in=-1))
    answer = given(Reporting(bad, Answer(text="a\x00b\ud800", note="mine"), session="two\nlines"))
    assert answer.text == "a\ufffdb\ufffd"
    notes = (answer.note or "").split("; ")
    assert len(notes) == 4 and notes[2] == "mine"
    assert "usage" in notes[0] and "session" in notes[1] and "characters" in notes[3]


def test_what_is_not_declared_cannot_be_done_in_a_test_either() -> None:
    provider = Reporting(answer=Answer(), session="s-1")
    provider.capabilities = frozenset()
    raised(TypeError, given, provider, says="declare the capability session")


def test_usage_that_was_only_reported_counts_where_the_answer_has_none_as_in_the_daemon() -> None:
    reported = Progress("usage", usage=Usage(tokens_in=20, tokens_out=5, cost=0.5))
    answer = given(Reporting(reported, Answer(text="done", tokens_out=7)))
    assert (answer.tokens_in, answer.tokens_out, answer.cost) == (20, 7, 0.5)


# --- what the loader refuses, so that it does not fail at the first message ---------------


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
