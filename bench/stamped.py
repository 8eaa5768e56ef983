"""The scripted adapter, which also says when it was asked to post: `<envelope> <nanoseconds>` a line.

Both sides of a measurement read the clock of the same machine, so the times compare.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any, ClassVar

from hiboss.core.contracts.adapter import Account, Letter
from hiboss.testing.scripted_adapter import ScriptedAdapter

FILE = "stamps"


class StampedAdapter(ScriptedAdapter):
    type: ClassVar[str] = "stamped"

    def __init__(self, account: Account) -> None:
        super().__init__(account)
        self._path = os.path.join(str(account.settings.path), FILE)
        self._stamps: Any = None

    async def start(self) -> None:
        await super().start()
        self._stamps = _append(self._path)

    async def stop(self) -> None:
        if self._stamps is not None:
            self._stamps.close()
        await super().stop()

    async def post(self, letter: Letter, number: int, chunk: str) -> Any:
        self._stamps.write(f"{letter.id} {time.time_ns()}\n")
        self._stamps.flush()
        return await super().post(letter, number, chunk)


def _append(path: str) -> Any:
    return open(path, "a", encoding="ascii")


ADAPTERS = [StampedAdapter]


def stamps(account: Path) -> dict[str, float]:
    """When each envelope was posted, in milliseconds of the epoch; a line being written is left out."""
    try:
        lines = (account / FILE).read_text().split("\n")[:-1]
    except FileNotFoundError:
        return {}
    return {envelope: int(at) / 1e6 for envelope, at in (line.split() for line in lines)}
