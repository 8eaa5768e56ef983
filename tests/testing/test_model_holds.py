"""Answers of the model server that are held, and those that go on."""

from __future__ import annotations

import pytest

from hiboss.testing.model_server.holds import Holds


def test_an_answer_that_goes_on_is_held_no_more_also_before_its_thread_runs_again() -> None:
    holds = Holds()
    hold = holds.enter()
    holds.wait(1, 0)
    holds.go_on()
    with pytest.raises(TimeoutError):
        holds.wait(1, 0)
    assert holds.stay(hold, lambda: False)
    holds.enter()
    holds.wait(1, 0)
