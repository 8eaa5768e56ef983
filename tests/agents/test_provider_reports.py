"""What a provider reports and returns is checked in one way, by the daemon and by the run for tests."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from hiboss.core.contracts.failures import TurnError
from hiboss.core.contracts.provider import Answer, LiveRun, Progress, Provider, TurnInput, Usage
from hiboss.testing.recorded_run import RecordedRun, sample_turn


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
    with pytest.raises(TurnError) as caught:
        given(Reporting(answer=answer))
    assert says in caught.value.text and "Answer" in caught.value.text


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
    with pytest.raises(kind) as caught:
        given(Reporting(report, Answer()))
    assert says in str(caught.value)


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
    with pytest.raises(TypeError, match="declare the capability session"):
        given(provider)


def test_usage_that_was_only_reported_counts_where_the_answer_has_none_as_in_the_daemon() -> None:
    reported = Progress("usage", usage=Usage(tokens_in=20, tokens_out=5, cost=0.5))
    answer = given(Reporting(reported, Answer(text="done", tokens_out=7)))
    assert (answer.tokens_in, answer.tokens_out, answer.cost) == (20, 7, 0.5)
