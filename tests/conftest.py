"""What all tests share: hypothesis without deadlines; a daemon for the module, two agents, a team, the boss."""

from __future__ import annotations

import gc
import os
import random
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# The asserts of helpers are explained too.
pytest.register_assert_rewrite(
    *(f"tests.{path.name}" for path in Path(__file__).parent.iterdir() if path.is_dir())
)

from hiboss.testing.running_daemon import RunningDaemon
from tests.support import async_tests, bulk, failures, forked_daemons, forked_programs
from tests.support.parties import Party, agents, checked_daemon
from tests.support.python_agents import Boss, Team

# Those with the real programs run where somebody names them, as `make real` does.
collect_ignore = ["real"]

# Until the tests are collected: it finds nothing to free, and takes a fifth of that time.
gc.disable()

# Deadlines would be timed assertions, and this machine may be busy with other things. The seed is that of the test's
# name: what fails fails again. `make soak SOAK=tests.bulk_soak` tries others.
settings.register_profile(
    "hiboss",
    deadline=None,
    derandomize=not bulk.is_whole(),
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("hiboss")

# A shell gives what it runs in the background no SIGINT, and programs hand that on: tests press Ctrl-C.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Thousands of daemons would want the one port. Tests of HTTP say `web_enabled="on", web_port=0`.
os.environ["HIBOSS_WEB_ENABLED"] = "off"

# Agents attach files of the tests' own directories; tests/routing/test_attachment_roots.py is about the others.
os.environ["HIBOSS_ATTACHMENTS_ROOTS"] = f"{tempfile.gettempdir()},/tmp"

# Schedules of seconds; tests/api/test_schedule_quotas.py is about the least that agents may have.
os.environ["HIBOSS_SCHEDULES_LEAST_SECONDS"] = "1"

RunningDaemon.spawn = staticmethod(forked_daemons.spawn)
forked_programs.fork_daemons(lambda: forked_programs.address(forked_programs.DAEMON))


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(failures)
    config.pluginmanager.register(async_tests)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Shuffle modules, and the tests in each, with the seed of `make test ORDER=SEED`."""
    if seed := os.environ.get("HIBOSS_TESTS_ORDER"):
        shuffle = random.Random(int(seed))
        places = {path: shuffle.random() for path in dict.fromkeys(item.path for item in items)}
        shuffle.shuffle(items)
        items.sort(key=lambda item: places[item.path])


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Remove the large databases that tests/store/test_flat.py has filled for all workers."""
    if not hasattr(session.config, "workerinput"):
        factory: pytest.TempPathFactory = session.config._tmp_path_factory  # type: ignore[attr-defined]
        shutil.rmtree(factory.getbasetemp() / "filled", ignore_errors=True)


def pytest_collection_finish() -> None:
    """Exclude the collected tests from garbage collection: to walk them takes a third of a second."""
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDaemon]:
    with checked_daemon(tmp_path_factory.mktemp("d")) as running:
        yield running


@pytest.fixture
def two(daemon: RunningDaemon) -> tuple[Party, Party]:
    ada, bob = agents(daemon, 2)
    return ada, bob


@pytest.fixture(scope="module")
def team(daemon: RunningDaemon, tmp_path_factory: pytest.TempPathFactory) -> Team:
    return Team(daemon, tmp_path_factory.mktemp("programs"))


@pytest.fixture(scope="module")
def ada(daemon: RunningDaemon) -> Boss:
    return Boss(daemon)
