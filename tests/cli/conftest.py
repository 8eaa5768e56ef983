"""What many tests of the command line share: an office with a running daemon for the module; a home without one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.cli import Office, Shell, open_office
from tests.support.hook_desks import Desk


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Office]:
    with open_office(tmp_path_factory.mktemp("d")) as running:
        yield running


@pytest.fixture(scope="module")
def demo_office(office: Office) -> Office:
    """The same, where nex answers by itself."""
    office.daemon.call("agent.set", token=office.token("boss"), name="nex", provider="demo")
    return office


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    """A home that is not set up; a daemon that a test starts there is ended."""
    shell = Shell(tmp_path / "home")
    yield shell
    shell.end_daemon()


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path, Shell(tmp_path / "home"))
