"""The package keeps to its floors, and nothing imports itself in a circle."""

from __future__ import annotations

import pytest

from . import floors, sources


@pytest.fixture(scope="module")
def graph() -> dict[str, set[str]]:
    return floors.imports("hiboss")


def test_the_graph_holds_the_package(graph: dict[str, set[str]]) -> None:
    assert "hiboss.core.errors" in graph["hiboss.core.address"]
    assert "hiboss.store.store" in graph["hiboss.daemon.lifecycle"]


def test_no_module_imports_itself_in_a_circle(graph: dict[str, set[str]]) -> None:
    assert floors.cycles(graph) == []


def test_no_folder_imports_itself_in_a_circle(graph: dict[str, set[str]]) -> None:
    assert floors.cycles(floors.folders(graph)) == []


def test_every_folder_is_on_a_floor(graph: dict[str, set[str]]) -> None:
    assert floors.unplaced(graph) == []


def test_every_module_is_in_a_folder() -> None:
    assert floors.loose_modules(sources.ROOT / "hiboss") == []


def test_nothing_imports_what_is_above_it(graph: dict[str, set[str]]) -> None:
    assert floors.trespasses(graph) == []


def test_the_tests_have_a_folder_for_each_folder_of_the_package() -> None:
    package = {path.name for path in (sources.ROOT / "hiboss").iterdir() if (path / "__init__.py").exists()}
    assert package - {path.name for path in (sources.ROOT / "tests").iterdir() if path.is_dir()} == set()
