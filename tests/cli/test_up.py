"""`hiboss up`: from nothing to a running daemon, and every command it prints works."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import psutil
import pytest

from tests.support.cli import HIBOSS, Shell, gone
from tests.support.waits import wait_until

ROOT = Path(__file__).parents[2]
STEPS = 3  # talk, look, choose a provider


def steps(output: str) -> list[str]:
    """The commands of the `Next:` block."""
    _, _, block = output.partition("\nNext:\n")
    lines = [line.strip() for line in block.splitlines()]
    return [line for line in lines if line and not line.startswith("#")]


def read_steps(process: subprocess.Popen[str]) -> str:
    """What `up` prints before it goes on in front of its daemon."""
    assert process.stdout is not None
    output = ""
    while len(steps(output)) < STEPS:
        line = process.stdout.readline()
        assert line, f"it ended after: {output}"
        output += line
    return output


def try_steps(shell: Shell, output: str) -> None:
    """Each command printed works as it stands, in a shell that knows nothing of hiboss."""
    commands = steps(output)
    assert STEPS <= len(commands) <= STEPS + 2  # and one for each harness on this machine
    try_commands(shell, commands)


def try_commands(shell: Shell, commands: list[str]) -> None:
    environment = {name: value for name, value in shell.environment().items() if name != "HIBOSS_HOME"}
    talk, look, choose = [
        subprocess.run(
            ["sh", "-c", command], env=environment, cwd="/", capture_output=True, text=True, input="hello"
        )
        for command in commands
    ]
    for command, done in zip(commands, (talk, look, choose), strict=True):
        assert done.returncode == 0, (command, done.stderr)
    assert "I am " in talk.stdout  # into a pipe, the conversation is one question and its answer
    assert "state: idle\n" in look.stdout and "provider: command\n" in choose.stdout


def test_up_sets_up_runs_in_front_and_prints_commands_that_work(shell: Shell) -> None:
    with shell.open("up") as up:
        output = read_steps(up)
        assert f"boss-token: {shell.token('boss')}\n" in output
        assert f"agent-name: nex\nagent-token: {shell.token('nex')}\n" in output
        assert f"pid: {shell.pid}\n" in output and HIBOSS in output
        try_steps(shell, output)
        pid = shell.pid
        assert pid is not None and up.poll() is None
        os.killpg(up.pid, signal.SIGINT)  # what Ctrl-C does
        assert up.wait() == 0
        wait_until(lambda: gone(pid))
        assert up.stderr is not None and "Traceback" not in up.stderr.read()
    assert not os.path.exists(shell.home.socket)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_to_up_alone_ends_the_daemon_too(shell: Shell, number: signal.Signals) -> None:
    with shell.open("up") as up:
        read_steps(up)
        pid = shell.pid
        assert pid is not None
        os.kill(up.pid, number)
        assert up.wait() == 0
        wait_until(lambda: gone(pid))


def test_a_signal_while_the_daemon_is_starting_leaves_no_daemon(shell: Shell) -> None:
    shell.set_up()
    with shell.open("up") as up:
        pid = wait_until(lambda: daemon_below(up.pid))
        try:
            os.kill(up.pid, signal.SIGTERM)
            up.wait()
            wait_until(lambda: gone(pid))
        finally:
            if not gone(pid):
                os.kill(pid, signal.SIGKILL)


def daemon_below(pid: int) -> int | None:
    """The daemon that a process has just started; it may not have its pid file yet."""
    for child in psutil.Process(pid).children():
        try:
            if "--ready-fd" in child.cmdline():
                return child.pid
        except psutil.NoSuchProcess:  # another child, which has ended meanwhile
            continue
    return None


def test_a_daemon_stopped_from_elsewhere_ends_up(shell: Shell) -> None:
    with shell.open("up") as up:
        read_steps(up)
        assert shell("daemon", "stop").rc == 0
        assert up.wait() == 0


def test_up_detached_returns_and_the_daemon_goes_on(shell: Shell) -> None:
    done = shell("up", "--detach", "--boss-name", "Ada", "--agent-name", "kai", "--timezone", "Asia/Tokyo")
    assert done.rc == 0 and "agent-name: kai\n" in done.stdout and "timezone: Asia/Tokyo\n" in done.stdout
    assert shell.pid is not None and done.values("pid") == [str(shell.pid)]
    try_steps(shell, done.stdout)
    pid = shell.pid
    for again in (shell("up"), shell("up", "--detach")):
        assert again.rc == 0 and again.values("pid") == [str(pid)] and "token" not in again.stdout
        assert "already" in again.stdout + again.stderr
        assert steps(again.stdout) == steps(done.stdout)[:2]  # it has a program now
    assert shell.pid == pid


def test_up_again_names_the_oldest_agent_and_the_options_it_did_not_use(shell: Shell) -> None:
    shell("up", "--detach", "--agent-name", "nex")
    shell("agent", "register", "abe", "--provider", "demo")
    again = shell("up", "--detach", "--agent-name", "bob", "--timezone", "UTC")
    assert "This home is already set up; --timezone and --agent-name were not used.\n" in again.stderr
    assert steps(again.stdout)[0].endswith(" chat nex") and len(steps(again.stdout)) == STEPS
    shell("agent", "delete", "abe", "--yes")
    shell("agent", "delete", "nex", "--yes")
    alone = shell("up", "--detach", "--agent-name", "bob")
    assert "--agent-name was not used.\n" in alone.stderr
    assert steps(alone.stdout)[0].endswith(" agent register nex --provider demo")


def test_a_first_up_offers_the_harnesses_that_it_finds(shell: Shell, tmp_path: Path) -> None:
    program = tmp_path / "bin" / "codex"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\n[ "$1" = --version ] && echo codex-cli 99.1.2\nexit 0\n')
    program.chmod(0o700)
    path = {"PATH": f"{program.parent}:/usr/bin:/bin"}
    done = shell("up", "--detach", env=path)
    assert f"Let codex answer for nex (found: codex 99.1.2 ({program})" in done.stdout
    offered = [one for one in steps(done.stdout) if one.endswith(" --provider codex")]
    assert len(offered) == 1 and "agent set nex" in offered[0]
    assert "Looking for claude and codex …\n" in done.stderr
    assert "codex" not in shell("up", "--detach", env=path).stdout  # only once


def test_up_works_in_the_shell_of_an_agent(shell: Shell) -> None:
    done = shell("up", "--detach", env={"CLAUDECODE": "1"})
    assert done.rc == 0 and [step.split()[-1] for step in steps(done.stdout)] == ["nex", "team"]


def test_up_with_json_prints_one_document_with_tokens_and_next_commands(shell: Shell) -> None:
    done = shell("up", "--detach", "--json")
    assert (done.rc, done.stderr) == (0, "")
    assert shell.token("boss") in json.dumps(done.json) and done.json["pid"] == shell.pid
    try_commands(shell, done.json["next"])


def test_up_after_the_first_agent_was_deleted_prints_commands_that_work(shell: Shell) -> None:
    shell("up", "--detach")
    shell("agent", "register", "--as", "boss", "--name", "kai", "--provider", "demo")
    shell("agent", "register", "--as", "boss", "--name", "anon", "--no-profile")
    shell("agent", "delete", "--as", "boss", "--name", "nex", "--yes")
    again = shell("up")
    assert again.rc == 0
    try_steps(shell, again.stdout)


@pytest.mark.parametrize("name", ["a b'c $d", "~"])
def test_the_commands_printed_name_the_home_that_is_used(tmp_path: Path, name: str) -> None:
    environment = {"HOME": str(tmp_path), "HIBOSS_HOME": "~/h" if name == "~" else str(tmp_path / name)}
    shell = Shell(tmp_path / ("h" if name == "~" else name))
    try:
        done = shell("up", "--detach", cwd=tmp_path, env=environment)
        assert done.rc == 0 and done.values("home") == [shell.home.path]
        try_steps(shell, done.stdout)
    finally:
        shell.end_daemon()


def test_make_up_runs_up() -> None:
    done = subprocess.run(["make", "-n", "up", "ARGS=--detach"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0 and "hiboss up --detach" in done.stdout
