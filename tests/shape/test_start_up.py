"""What a command pays for: the client's path imports nothing heavy."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

HEAVY = ["asyncio", "pydantic", "orjson", "rich", "sqlite3", "dateutil", "cronsim"]

# Each piece of code runs in a fork of one fresh interpreter, which has imported nothing of ours.
_REPORT = """
import json, os, sys
codes = json.loads(sys.argv[1])
for code in codes:
    if pid := os.fork():
        os.waitpid(pid, 0)
        continue
    leave, os._exit = os._exit, sys.exit  # quick commands end by os._exit, where nothing could be reported any more
    status = None
    try:
        exec(code)
    except SystemExit as end:
        status = end.code
    found = [name for name in {heavy} if name in sys.modules]
    print(json.dumps([code, status, found]), file=sys.stderr, flush=True)
    leave(0)
"""


def heavy_imports(codes: list[str], home: Path) -> dict[str, tuple[int | None, list[str]]]:
    """The exit status of each piece of code in a fresh interpreter, and what heavy things it imported."""
    done = subprocess.run(
        [sys.executable, "-c", _REPORT.format(heavy=HEAVY), json.dumps(codes)],
        env={"PATH": os.environ["PATH"], "HIBOSS_HOME": str(home)},
        capture_output=True,
        text=True,
        check=True,
    )
    reports = [json.loads(line) for line in done.stderr.splitlines() if line.startswith("[")]
    return {code: (status, found) for code, status, found in reports}


MODULES = [
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
]


def test_a_module_of_the_clients_path_imports_nothing_heavy(tmp_path: Path) -> None:
    codes = [f"import {module}" for module in MODULES]
    assert heavy_imports(codes, tmp_path) == dict.fromkeys(codes, (None, []))


COMMANDS: list[tuple[list[str], int]] = [
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
]


def test_a_command_imports_nothing_heavy(tmp_path: Path) -> None:
    expected = {
        f"sys.argv = {['hiboss', *arguments]}; from hiboss.cli.entry import main; main()": (status, [])
        for arguments, status in COMMANDS
    }
    assert heavy_imports(list(expected), tmp_path) == expected


def test_an_mcp_client_does_not_wait_for_the_command_line(tmp_path: Path) -> None:
    """It may take three times as long as an empty Python; each of these is a tenth of that, or more."""
    slow = ["typer", "socket", "signal", "urllib.parse", "dataclasses", "inspect", "hiboss.cli.output"]
    code = f"import sys, hiboss.cli.mcp_stdio.program; print([one for one in {slow} if one in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_the_check_sees_a_heavy_import(tmp_path: Path) -> None:
    found = heavy_imports([f"import {module}" for module in HEAVY], tmp_path)
    assert [module for module in HEAVY if module not in found[f"import {module}"][1]] == []
