"""The socket of the daemon is open to its owner only, and nothing else changes its mode with it."""

from __future__ import annotations

import asyncio
import os
import stat
from pathlib import Path
from typing import Any

from hiboss.core.settings import DEFAULTS
from hiboss.rpc.server import Server


def umask() -> str:
    """Return the umask of this process as the kernel has it: to ask by os.umask would change it."""
    [line] = [
        line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("Umask:")
    ]
    return line.split()[1]


async def test_whatever_is_made_while_the_daemon_begins_to_listen_has_its_usual_mode(tmp_path: Path) -> None:
    seen, before, path = [], umask(), str(tmp_path / "daemon.sock")
    dispatcher: Any = None  # nobody calls
    server = Server(dispatcher, DEFAULTS)
    asyncio.get_running_loop().call_soon(lambda: seen.append(umask()))
    await server.listen(path)
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    _, writer = await asyncio.open_unix_connection(path)
    writer.close()
    await writer.wait_closed()
    await server.close()
    assert seen == [before]
