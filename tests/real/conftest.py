"""What the tests with real programs share: the programs, a model server for each test, and tests that are coroutines.

They run only where somebody asks for them (`make real`, `pytest tests/real`). A program that is missing is a failure.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

from hiboss.testing.model_server import ModelServer
from tests.real import programs as real_programs
from tests.real.attached_desk import Desk, Phone, open_office, opened
from tests.real.harness_rig import SECONDS, HarnessRig
from tests.real.open_terminal import OpenTerminal
from tests.support.telegram_bots import TelegramDaemon

# The homes of the tests. With bubblewrap Codex has no sandbox if its home is below its TMPDIR, or /tmp, or /dev.
os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", "/var/tmp")
# How long a person waits for a program that is looked for. On a busy machine it needs longer.
FOR_A_PERSON = (
    "hiboss.agents.providers.programs.VERSION_SECONDS",
    "hiboss.agents.providers.claude.program.STATUS_SECONDS",
    "hiboss.agents.providers.codex.program.STATUS_SECONDS",
    "hiboss.agents.providers.acp.provider.FIND_SECONDS",
)


def pytest_sessionstart(session: pytest.Session) -> None:
    if session.config.option.collectonly:
        return
    try:
        real_programs.find()
    except LookupError as error:
        raise pytest.UsageError(f"{error}\n`make real` installs what is missing.") from None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Function, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Let a failure show the screens of the programs that are open, and what the daemon and the model know."""
    report = yield
    if report.failed and call.when == "call":
        screens = [("the screen of a program", one.screen()) for one in OpenTerminal.all if one.runs]
        phones = [one for one in item.funcargs.values() if isinstance(one, Phone)]
        report.sections += [*screens, *(told for phone in phones for told in phone.told())]
    return report


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> real_programs.Programs:
    return real_programs.find()._replace(kept=tmp_path_factory.getbasetemp() / "kept")


@pytest.fixture
def rig_class(request: pytest.FixtureRequest) -> type[HarnessRig]:
    """The rig that the class of the test, or its module, names."""
    found: type[HarnessRig] = (request.cls or request.module).rig_class
    return found


@pytest.fixture
def rig(
    rig_class: type[HarnessRig],
    tmp_path: Path,
    programs: real_programs.Programs,
    server: ModelServer,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[HarnessRig]:
    for limit in FOR_A_PERSON:
        monkeypatch.setattr(limit, SECONDS)
    made = rig_class(tmp_path, programs, server)
    yield made
    assert not made.left_behind(), "a turn left processes behind"


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as running:
        yield running
        malformed = [one.message for one in running.refused if one.status == 400]
        assert not running.defects, running.defects
        assert not malformed, f"a program sent what the real API refuses: {malformed}"


# --- the desk of somebody who has Claude Code open -------------------------------------------


@pytest.fixture
def office(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[TelegramDaemon]:
    """A daemon; parametrise it with variables of its environment."""
    with open_office(tmp_path, **getattr(request, "param", {})) as made:
        yield made


@pytest.fixture
def desk(
    office: TelegramDaemon,
    tmp_path: Path,
    programs: real_programs.Programs,
    server: ModelServer,
    request: pytest.FixtureRequest,
) -> Iterator[Desk]:
    """Claude Code, open as nex. A module can say more about its desks, in DESK."""
    facts = getattr(request.module, "DESK", {})
    with opened(Desk(office, tmp_path, programs, server, **facts)) as made:
        yield made
