"""What is left out of the tests in bulk is never all of a kind, and nothing in a soak."""

from __future__ import annotations

import pytest

from tests import bulk_soak
from tests.support import bulk

ROWS = [(kind, number) for number in range(10) for kind in "abc"]


@pytest.fixture(autouse=True)
def _usual(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(bulk.VARIABLE, raising=False)  # the soak runs this too


def test_every_kind_is_taken_as_often_as_asked_in_the_order_of_the_rows() -> None:
    rows = [*ROWS, ("d", 0)]
    taken = bulk.some(rows, lambda row: row[0], each=2)
    assert sorted(kind for kind, _ in taken) == ["a", "a", "b", "b", "c", "c", "d"]
    assert taken == [row for row in rows if row in taken]
    assert taken == bulk.some(rows, lambda row: row[0], each=2)  # or the workers would not agree


def test_not_the_first_row_of_each_kind_is_taken() -> None:
    assert {number for _, number in bulk.some(ROWS, lambda row: row[0])} != {0}


def test_in_a_soak_every_row_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(bulk.VARIABLE, "whole")
    assert bulk.some(ROWS, lambda row: row[0]) == ROWS
    assert bulk.number(3, 40) == 40


def test_the_soak_runs_the_modules_that_leave_rows_out() -> None:
    found = bulk_soak.modules()
    assert "tests/web/test_door_contract.py" in found and "tests/cli/test_bad_input_cli.py" in found
    assert "tests/cli/test_help.py" not in found
