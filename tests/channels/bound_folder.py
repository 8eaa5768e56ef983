"""A directory bound to an agent of its own, for the tests of the folder adapter."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from hiboss.testing.running_daemon import RunningDaemon
from tests.support.parties import Envelope, Party, agent, boss
from tests.support.waits import wait_until


class Folder:
    """A directory bound to an agent of its own."""

    def __init__(self, daemon: RunningDaemon, root: Path) -> None:
        self.daemon = daemon
        self.root = root
        self.owner: Party = agent(daemon)
        answer = boss(daemon).call(
            "agent.bind", name=self.owner.name, adapter_type="folder", settings={"path": str(root)}
        )
        self.binding, self.address = answer["binding"], answer["address"]
        wait_until(lambda: self.shown()["state"] == "running")

    def shown(self) -> dict[str, Any]:
        adapters = boss(self.daemon).call("daemon.status")["adapters"]
        (found,) = [one for one in adapters if one["binding"] == self.binding]
        return dict(found)

    def send(self, text: str = "hello", **params: Any) -> str:
        (number,) = self.owner.send(self.address, text=text, **params)["ids"]
        wait_until(lambda: self.owner.get(number)["status"] == "done")
        return str(number)

    def out(self) -> dict[str, bytes]:
        return {file.name: file.read_bytes() for file in (self.root / "out").iterdir()}

    def put(self, name: str, content: str | bytes = "hello", at: int | None = None) -> Path:
        """Put a complete file into `in/`; `at` is the time of its last change, in seconds."""
        data = content.encode() if isinstance(content, str) else content
        partial = self.root / "in" / f".{len(os.listdir(self.root / 'in'))}.new"
        partial.write_bytes(data)
        if at is not None:
            os.utime(partial, (at, at))
        return partial.rename(self.root / "in" / name)

    def waiting(self) -> list[str]:
        return sorted(os.listdir(self.root / "in"))

    def heard(self, number: int) -> list[Envelope]:
        """Wait until so many messages came in; return them in order."""
        wait_until(lambda: len(self.owner.list(page_size=100)) >= number)
        found = self.owner.list(oldest_first=True, page_size=100)
        assert len(found) == number
        return found

    def refused(self) -> dict[str, str]:
        """Return the reasons in `broken/`, by the name of the file."""
        return {
            file.name.removesuffix(".reason.txt"): file.read_text()
            for file in (self.root / "broken").glob("*.reason.txt")
        }
