"""`--token -` and `--token @FILE`: the token is read once, whatever asks for it in a command."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from hiboss.testing.running_daemon import RunningDaemon
from tests.support.parties import boss

COMMANDS = [
    ["envelope", "read", "e1"],
    ["read", "e1"],
    ["envelope", "get", "e1"],
    ["message", "get", "m1"],
    ["agent", "list"],
    ["inbox"],
    ["send", "nex", "hello"],
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_token_from_a_pipe_is_good_for_the_whole_command(daemon: RunningDaemon, command: list[str]) -> None:
    ada = boss(daemon)
    daemon.call("envelope.send", token=daemon.token("nex"), to="user:boss", text="first")
    hiboss = [sys.executable, "-m", "hiboss.cli.entry", *command]
    env = {name: value for name, value in os.environ.items() if not name.startswith("HIBOSS")}
    env["HIBOSS_HOME"] = daemon.home.path

    def run(*token: str, **how: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*hiboss, *token], env=env, capture_output=True, text=True, check=False, timeout=60, **how
        )

    assert run("--as", "boss").returncode == 0
    piped = run("--token", "-", input=ada.token + "\n")
    assert (piped.returncode, piped.stderr) == (0, "")
    reader, writer = os.pipe()
    os.write(writer, ada.token.encode())
    os.close(writer)
    try:
        found = subprocess.run(
            [*hiboss, "--token", f"@/dev/fd/{reader}"],
            env=env,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
            pass_fds=[reader],
        )
    finally:
        os.close(reader)
    assert (found.returncode, found.stderr) == (0, "")
