"""The scenes that most tests of the store share. Each checks the invariants of its database at the end."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.store import chat_scene
from tests.store.chat_scene import Scene
from tests.store.group_house import House
from tests.store.route_cast import Cast
from tests.store.session_office import Office
from tests.store.written_house import Template, WrittenHouse, template, written_house


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    with chat_scene.scene(tmp_path) as made:
        yield made


@pytest.fixture
def chat(scene: Scene) -> Cast:
    return Cast(scene)


@pytest.fixture
def house(scene: Scene) -> House:
    return House(scene)


@pytest.fixture
def office(scene: Scene) -> Office:
    return Office(scene)


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Template:
    return template(tmp_path_factory.mktemp("house"))


@pytest.fixture
def written(empty: Template, tmp_path: Path) -> Iterator[WrittenHouse]:
    """A house whose changes go through the real writer."""
    with written_house(empty, tmp_path / "copy") as made:
        yield made
