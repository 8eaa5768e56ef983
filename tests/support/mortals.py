"""Daemons that die at a crash point when the test arms them, and are started again."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from hiboss.core.crashpoint import AFTER_COMMIT, BEFORE_WRITE, IN_GROUP
from hiboss.core.errors import DaemonUnreachable
from hiboss.testing.running_daemon import RunningDaemon
from tests.support.crash_groups import Submits, groups_of
from tests.support.daemons import set_up

OF_THE_WRITER = (BEFORE_WRITE, IN_GROUP, AFTER_COMMIT)
_numbers = itertools.count(1)


class Mortal(RunningDaemon):
    """A daemon in a home of its own. The variables that it is made with hold for every start."""

    def __init__(self, directory: Path, **env: str) -> None:
        super().__init__(set_up(directory))
        self._env = env

    def start(self, **env: str) -> None:
        super().start(**{**self._env, **env})

    def restart(self) -> None:
        """Kill it, and start it again."""
        self.kill()
        self.start()

    def dies_at(self, point: str, *, of: Submits | None = None, **env: str) -> Path:
        """Start it anew; it dies at this point, from the moment that the file exists which is returned.

        A point of the writer needs `of`, the function whose operation it is about (crash_groups.py).
        """
        assert of is not None or point.partition(":")[0] not in OF_THE_WRITER, point
        self.stop()
        armed = Path(f"{self.home.path}-armed-{next(_numbers)}")
        groups = groups_of(of) if of else {}
        self.start(HIBOSS_CRASH_AT=f"{point}@{armed}", **groups, **env)
        return armed

    def dies_of(self, armed: Path, act: Callable[[], Any] = lambda: None) -> None:
        """Arm it, do something that it may not live to answer, and wait for its death."""
        armed.touch()
        with suppress(DaemonUnreachable, OSError):
            act()
        assert self.wait_for_death() == -9
