"""The daemon of a checkout of hiboss, this one or another: the same Python, other code."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .homes import cpu, new_home
from .load import Outcome
from .sends import Way, check, send


class Tree:
    """A checkout, and a home that its own code has set up; `daemon` is its daemon."""

    def __init__(self, code: Path, directory: Path) -> None:
        self.code = code.resolve()
        _check_is_used(self.code)
        with self._chosen():
            self.daemon = new_home(directory)
        self._answered = 0

    @property
    def name(self) -> str:
        return os.fspath(self.code)

    def start(self) -> None:
        with self._chosen():
            self.daemon.start()

    def stop(self) -> None:
        self.daemon.stop()

    def send(self, way: Way, seconds: float) -> tuple[Outcome, float]:
        """What came of it, and the microseconds that the daemon worked for one."""
        sent, spent = send(self.daemon, way, seconds)
        self._answered += sent.answered
        return sent, spent

    def check(self) -> None:
        check(self.daemon, self._answered)

    def cpu(self) -> float:
        return cpu(self.daemon)

    @contextmanager
    def _chosen(self) -> Iterator[None]:
        """Processes started here import this code."""
        before = os.environ.get("PYTHONPATH")
        os.environ["PYTHONPATH"] = self.name
        try:
            yield
        finally:
            if before is None:
                del os.environ["PYTHONPATH"]
            else:
                os.environ["PYTHONPATH"] = before


def is_checkout(path: Path) -> bool:
    return (path / "hiboss" / "daemon" / "__main__.py").is_file()


def _check_is_used(code: Path) -> None:
    """Compile it, so that no start has to; and see that it is what a process imports."""
    subprocess.run([sys.executable, "-m", "compileall", "-q", code / "hiboss"], check=True)
    found = subprocess.run(
        [sys.executable, "-c", "import hiboss; print(hiboss.__file__)"],
        env={**os.environ, "PYTHONPATH": os.fspath(code)},
        cwd="/",
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    if not Path(found.strip()).is_relative_to(code):
        raise RuntimeError(f"the code of {code} is not used, but {found.strip()}")
