"""What a failed wait and a failed sweep say."""

from __future__ import annotations

import asyncio

import pytest

from tests.support.sweeps import sweep
from tests.support.waits import happens, wait_until


def test_a_failed_wait_says_what_was_awaited_and_what_was_there() -> None:
    numbers = [1]
    with pytest.raises(AssertionError) as failed:
        wait_until(lambda: [*numbers, len(numbers)] == [1, 2], 0)
    assert "waited 0 s for: [*numbers, len(numbers)] == [1, 2]" in str(failed.value)
    assert "there was instead: [1, 1] == [1, 2]" in str(failed.value)
    with pytest.raises(AssertionError, match=r"waited 0 s for: [^\n]*isdigit\nthere was instead: False"):
        asyncio.run(happens("x".isdigit, 0))


def test_a_condition_with_default_values_is_explained() -> None:
    with pytest.raises(AssertionError, match=r"instead: \(1 \+ 1\) == 3"):
        wait_until(lambda one=1: one + 1 == 3, 0)


def test_a_wait_returns_what_it_waited_for() -> None:
    found = iter([[], [], ["here"]])
    assert wait_until(lambda: next(found)) == ["here"]
    assert asyncio.run(happens(lambda: "there")) == "there"


def test_of_two_lambdas_in_a_line_the_one_that_was_awaited_is_shown() -> None:
    first, second = (lambda: 1 == 2, lambda: 3 == 4)
    with pytest.raises(AssertionError, match="for: 1 == 2"):
        wait_until(first, 0)
    with pytest.raises(AssertionError, match="for: 3 == 4"):
        wait_until(second, 0)


def test_a_sweep_goes_on_after_a_row_that_fails_and_names_it() -> None:
    seen = []
    with pytest.raises(AssertionError) as failed, sweep() as row:
        for number in range(3):
            with row(f"number {number}"):
                seen.append(number)
                assert number != 1
    assert seen == [0, 1, 2]
    assert "1 of 3 rows failed" in str(failed.value) and "number 1" in str(failed.value)


def test_a_sweep_without_rows_fails() -> None:
    with pytest.raises(AssertionError, match="no rows"), sweep():
        pass
