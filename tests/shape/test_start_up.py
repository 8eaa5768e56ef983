"""What a command pays for: the client's path imports nothing heavy (FINDINGS.md, Typer and start-up)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = ["asyncio", "pydantic", "orjson", "rich", "sqlite3", "dateutil", "cronsim"]

_REPORT = """
import json, os, sys
os._exit = sys.exit  # by which quick commands end, where nothing could be reported any more
try:
    {code}
except SystemExit as end:
    status = end.code
else:
    status = None
print(json.dumps([status, [name for name in {heavy} if name in sys.modules]]), file=sys.stderr)
"""


def heavy_imports(code: str, home: Path) -> tuple[int | None, list[str]]:
    """The exit status of a piece of code in a fresh interpreter, and what heavy things it imported."""
    done = subprocess.run(
        [sys.executable, "-c", _REPORT.format(code=code, heavy=HEAVY)],
        env={"PATH": os.environ["PATH"], "HIBOSS_HOME": str(home)},
        capture_output=True,
        text=True,
        check=True,
    )
    status, found = json.loads(done.stderr.splitlines()[-1])
    return status, found


@pytest.mark.parametrize(
    "module",
    [
        "hiboss.cli.client",
        "hiboss.core.paths",
        "hiboss.core.errors",
        "hiboss.cli.main",
        "hiboss.cli.call",
        "hiboss.cli.commands.envelope",
        "hiboss.cli.commands.agent",
        "hiboss.cli.commands.daemon",
        "hiboss.cli.commands.completion",
        "hiboss.cli.completion",
        "hiboss.cli.commands.cron",
        "hiboss.cli.commands.poll",
        "hiboss.cli.commands.watch",
        "hiboss.cli.commands.chat",
        "hiboss.cli.commands.send",
        "hiboss.cli.commands.inbox",
        "hiboss.cli.commands.run",
        "hiboss.cli.commands.team",
        "hiboss.cli.commands.mcp",
        "hiboss.cli.mcp_stdio.program",
    ],
)
def test_a_module_of_the_clients_path_imports_nothing_heavy(module: str, tmp_path: Path) -> None:
    assert heavy_imports(f"import {module}", tmp_path) == (None, [])


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["envelope", "list"], 3),  # no daemon runs: everything up to the socket
        (["envelope", "send", "--to", "agent:nex", "--text", "hello"], 3),
        (["envelope", "--help"], 0),
        (["envelope", "wait", "--timeout", "1s"], 3),
        (["watch", "--timeout", "1s"], 3),
        (["poll", "--wait", "1s", "--format", "hook"], 3),
        (["cron", "list"], 3),
        (["cron", "create", "--cron", "@daily", "--to", "agent:nex", "--text", "hello"], 3),
        (["daemon", "status"], 3),
        (["send", "nex", "hello"], 3),
        (["inbox"], 3),
        (["run", "list"], 3),
        (["team"], 3),
        (["chat", "nex", "--once", "hello"], 3),
        (["--version"], 0),
    ],
)
def test_a_command_imports_nothing_heavy(arguments: list[str], status: int, tmp_path: Path) -> None:
    code = f"sys.argv = {['hiboss', *arguments]}; from hiboss.cli.entry import main; main()"
    assert heavy_imports(code, tmp_path) == (status, [])


def test_an_mcp_client_does_not_wait_for_the_command_line(tmp_path: Path) -> None:
    """It may take three times as long as an empty Python; each of these is a tenth of that, or more."""
    slow = ["typer", "socket", "signal", "urllib.parse", "dataclasses", "inspect", "hiboss.cli.output"]
    code = f"import sys, hiboss.cli.mcp_stdio.program; print([one for one in {slow} if one in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize("module", HEAVY)
def test_the_check_sees_a_heavy_import(module: str, tmp_path: Path) -> None:
    assert module in heavy_imports(f"import {module}", tmp_path)[1]
