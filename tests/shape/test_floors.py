"""The package keeps to the floors of DESIGN.md §2, and nothing imports itself in a circle."""

from __future__ import annotations

import pytest

from . import floors


@pytest.fixture(scope="module")
def graph() -> dict[str, set[str]]:
    return floors.imports("hiboss")


def test_the_graph_holds_the_package(graph: dict[str, set[str]]) -> None:
    assert "hiboss.errors" in graph["hiboss.address"]
    assert "hiboss.store.store" in graph["hiboss.daemon"]


def test_no_module_imports_itself_in_a_circle(graph: dict[str, set[str]]) -> None:
    assert floors.cycles(graph) == []


def test_no_room_imports_itself_in_a_circle(graph: dict[str, set[str]]) -> None:
    assert floors.cycles(floors.rooms(graph)) == []


def test_every_room_stands_on_a_floor(graph: dict[str, set[str]]) -> None:
    assert floors.unplaced(graph) == []


def test_nothing_imports_what_stands_above_it(graph: dict[str, set[str]]) -> None:
    assert floors.trespasses(graph) == []
