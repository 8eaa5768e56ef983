"""A few requests of every kind that /openapi.json describes: no 5xx, and no answer that it does not describe."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from hiboss.api import dispatch  # noqa: F401 - it declares the operations
from hiboss.api.operation import REGISTRY

if TYPE_CHECKING:
    from tests.support.openapi_cases import Explored

pytestmark = pytest.mark.slow

CASES = 1  # of each kind; 1,000 for each noun: make soak SOAK=tests.web.openapi_soak
NOUNS = sorted({name.partition(".")[0] for name in REGISTRY} - {"setup"})


@pytest.fixture(scope="module")
def explored(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Explored]:
    # Schemathesis takes a second to import: only here, and not in every process that collects tests.
    from tests.support.openapi_cases import explored_daemon

    with explored_daemon(tmp_path_factory.mktemp("explored")) as found:
        yield found


def explore(explored: Explored, noun: str, cases: int) -> list[str]:
    from tests.support.openapi_cases import MODES

    return [
        one
        for operation in explored.operations(noun)
        for mode in MODES
        for one in explored.explore(operation, mode, cases, number=1)
    ]


@pytest.mark.parametrize("noun", NOUNS)
def test_every_answer_is_described_for_the_boss_and_for_an_agent(explored: Explored, noun: str) -> None:
    assert noun in explored.nouns
    assert explore(explored, noun, CASES) == []


def test_no_noun_is_forgotten(explored: Explored) -> None:
    assert explored.nouns == NOUNS


def test_the_check_itself_finds_a_status_a_code_and_a_result_that_are_not_described(
    explored: Explored,
) -> None:
    told, wrong = explored.document, copy.deepcopy(explored.document)
    del wrong["paths"]["/api/op/reaction.set"]["post"]["responses"]["400"]
    wrong["components"]["schemas"]["error.bad_id"]["properties"]["error"] = {"const": "other"}
    wrong["components"]["schemas"]["turn.preview.result"] = {"type": "string"}
    try:
        explored.believe(wrong)
        found = "\n".join(explore(explored, "reaction", 6))
        assert "Undocumented status code" in found and "Response violates schema" in found
        assert "Response violates schema" in "\n".join(explore(explored, "turn", 5))
    finally:
        explored.believe(told)
