"""What the tests with real programs share: the programs, and a model server for each test.

They run only if somebody asks for them (`make real`, `pytest tests/real`), and skip otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hiboss.testing.model_server import ModelServer
from tests.real import programs as real_programs

HERE = Path(__file__).parent


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    asked = any(HERE in (given := Path(one.split("::")[0]).resolve(), *given.parents) for one in config.args)
    if asked and real_programs.find() is not None:
        return
    why = "not asked for" if not asked else "the programs are not installed"
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.skip(reason=f"{why}: {real_programs.COMMAND}"))


@pytest.fixture(scope="session")
def programs() -> real_programs.Programs:
    found = real_programs.find()
    assert found is not None, "pytest_collection_modifyitems skips without them"
    return found


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as running:
        yield running
        malformed = [one.message for one in running.refused if one.status == 400]
        assert not running.defects, running.defects
        assert not malformed, f"a program sent what the real API refuses: {malformed}"
