"""`hiboss setup` and `hiboss up`: from nothing to a running daemon, again, and after a crash."""

from __future__ import annotations

import fcntl
import getpass
import json
import os
import pty
import select
import signal
import subprocess
import termios
from pathlib import Path

import psutil
import pytest

from hiboss.testing.running_daemon import running_daemon
from tests.support.cli import HIBOSS, SECONDS, Done, Shell, gone
from tests.support.waits import wait_until

CTRL_C = "\x03"
ANSWERS = ["boss-name", "timezone", "boss-token", "agent-name", "agent-token"]


def on_a_terminal(shell: Shell, words: list[str], typed: list[str], **env: str) -> tuple[int, str]:
    """Run a command on a terminal, answering each question as it comes; what the screen showed."""
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [HIBOSS, *words],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env=shell.environment(**env),
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # so that Ctrl-C is a signal
    )
    os.close(slave)
    screen = b""
    answers = list(typed)
    try:
        while part := _read(master):
            screen += part
            if answers and screen.endswith(b": "):
                os.write(master, answers.pop(0).encode() + b"\n")
    finally:
        os.close(master)
        if not answers:
            process.wait(timeout=SECONDS)
        process.kill()
        process.wait()
    assert answers == []
    return process.returncode, screen.decode().replace("\r\n", "\n")


def _read(master: int) -> bytes:
    if not select.select([master], [], [], SECONDS)[0]:
        raise AssertionError("the command neither asks nor ends")
    try:
        return os.read(master, 65_536)
    except OSError:  # Linux's word for: nobody has the other end any more
        return b""


def check(shell: Shell, done: Done) -> None:
    """The tokens printed are those of the profiles, and they are in force."""
    assert (done.rc, list(done.record)) == (0, ANSWERS) and done.record["boss-token"] == shell.token("boss")
    assert done.record["agent-token"] == shell.token(done.record["agent-name"].lower())
    assert shell("daemon", "start").rc in (0, 1)
    agent = done.record["agent-name"]
    assert shell("agent", "self", "--as", "boss").record["kind"] == "boss"
    assert shell("agent", "self", "--as", agent).record["address"] == f"agent:{agent}"


def test_without_a_terminal_setup_takes_the_defaults(shell: Shell) -> None:
    done = shell("setup", env={"TZ": "Asia/Shanghai"})
    check(shell, done)
    assert done.record["boss-name"] == getpass.getuser()
    assert (done.record["timezone"], done.record["agent-name"]) == ("Asia/Shanghai", "nex")
    assert shell("agent", "list", "--as", "boss").record["provider"] == "demo"
    assert "shown only now" in done.stderr and shell.home.profile("nex") in done.stderr
    assert {
        os.stat(path).st_mode & 0o777
        for path in (shell.home.profile("boss"), shell.home.profile("nex"), shell.home.database)
    } == {0o600}
    assert {os.stat(path).st_mode & 0o777 for path in (shell.home.path, shell.home.tokens)} == {0o700}


def test_setup_takes_what_it_is_given(shell: Shell) -> None:
    done = shell("setup", "--boss-name", "Ada Lovelace", "--timezone", "Europe/London", "--agent-name", "Kai")
    assert done.rc == 0 and shell.home.profiles() == ["boss", "kai"]
    assert [done.record[name] for name in ("boss-name", "timezone", "agent-name")] == [
        "Ada Lovelace",
        "Europe/London",
        "Kai",
    ]


def test_the_first_agent_fetches_its_mail_when_it_gets_no_provider(shell: Shell) -> None:
    check(shell, shell("setup", "--provider", "none"))
    nex = shell("agent", "list").record
    assert nex["mode"] == "pull" and "provider" not in nex


def test_setup_again_changes_nothing_and_says_so(shell: Shell) -> None:
    shell.set_up()
    before = {name: shell.token(name) for name in shell.home.profiles()}
    again = shell("setup", "--boss-name", "Eve", "--agent-name", "other")
    assert again.rc == 0 and "already set up. Nothing was changed" in again.stderr
    assert again.record == {"changed": "false", "boss-name": "Ada", "timezone": "UTC"}
    assert {name: shell.token(name) for name in shell.home.profiles()} == before
    assert shell("setup", "--json").json["boss_token"] is None


def test_setup_works_beside_a_running_daemon(tmp_path: Path) -> None:
    with running_daemon(tmp_path, set_up=False) as daemon:
        shell = Shell(daemon.home.path)
        assert shell.ok("setup", "--json").json["boss_token"] == shell.token("boss")
        assert shell("agent", "self", "--as", "nex").rc == 0
        assert shell("setup").values("changed") == ["false"]
        assert shell.pid == daemon.pid


def test_on_a_terminal_setup_asks_three_questions_with_defaults(shell: Shell) -> None:
    rc, screen = on_a_terminal(shell, ["setup"], ["", "", ""], TZ="Europe/Berlin")
    assert rc == 0
    questions = [line for line in screen.splitlines() if "]: " in line]
    assert [question.split("]")[0].split("[")[1] for question in questions] == [
        getpass.getuser(),
        "Europe/Berlin",
        "nex",
    ]
    assert (
        f"boss-token: {shell.token('boss')}\n" in screen and f"agent-token: {shell.token('nex')}\n" in screen
    )


def test_what_is_typed_on_the_terminal_counts_and_what_was_given_is_not_asked(shell: Shell) -> None:
    rc, screen = on_a_terminal(shell, ["setup", "--timezone", "UTC"], ["Ada Ł", "kai"])
    assert rc == 0
    assert "boss-name: Ada Ł\ntimezone: UTC\n" in screen and "agent-name: kai\n" in screen
    rc, again = on_a_terminal(shell, ["setup"], [])
    assert rc == 0 and "]: " not in again and "Nothing was changed" in again


def test_a_mistyped_time_zone_is_asked_for_again(shell: Shell) -> None:
    rc, screen = on_a_terminal(shell, ["setup"], ["Ada", "Europe/Berln", "Europe/Berlin", "kai"])
    assert rc == 0 and screen.count("Your time zone [") == 2
    assert "Europe/Berln is not an IANA time zone (did you mean Europe/Berlin?)" in screen
    assert "timezone: Europe/Berlin\n" in screen and shell.home.profiles() == ["boss", "kai"]


def test_ctrl_c_at_a_question_sets_nothing_up(shell: Shell) -> None:
    rc, screen = on_a_terminal(shell, ["setup"], ["Ada", CTRL_C])
    assert rc not in (0, 2, 3, 4) and "Traceback" not in screen
    assert shell.home.profiles() == []


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("--timezone", "Europe/Berln"), "bad_timezone"),
        (("--agent-name", "boss"), "bad_name"),
        (("--provider", "demoo"), "bad_provider"),
        (("--boss-name", "x" * 300), "too_large"),
    ],
)
def test_a_bad_answer_is_refused_and_nothing_is_set_up(
    shell: Shell, words: tuple[str, ...], code: str
) -> None:
    done = shell("setup", *words)
    assert done.rc in (1, 2) and f"code: {code}" in done.stderr
    assert shell.home.profiles() == []
    assert code != "bad_timezone" or "did you mean Europe/Berlin?" in done.stderr


def test_setup_killed_in_between_can_be_repeated(shell: Shell) -> None:
    crashed = shell("setup", env={"HIBOSS_CRASH_AT": "setup.profiles_written"})
    assert crashed.rc != 0 and "token:" not in crashed.stdout and "Traceback" not in crashed.stderr
    assert shell.home.profiles() == []  # what waits beside its place is nobody's token yet
    check(shell, shell("setup"))
    assert sorted(os.listdir(shell.home.tokens)) == ["boss", "nex"]


def test_a_daemon_killed_in_the_middle_of_setup_leaves_it_to_the_command(shell: Shell) -> None:
    assert shell("daemon", "start", env={"HIBOSS_CRASH_AT": "setup.profiles_written"}).rc == 0
    pid = int(shell.pid_file_words()[0])
    done = shell("setup")
    wait_until(lambda: gone(pid))
    check(shell, done)


def test_setup_with_closed_standard_input_takes_the_defaults(shell: Shell) -> None:
    done = shell.sh("hiboss setup <&-")
    assert done.rc == 0 and list(done.record) == ANSWERS


def test_two_setups_at_once_set_up_once(shell: Shell) -> None:
    with shell.open("setup", "--json") as one, shell.open("setup", "--json") as two:
        ended = [(*process.communicate(), process.returncode) for process in (one, two)]
    assert [rc for _, _, rc in ended] == [0, 0], [error for _, error, _ in ended]
    assert sum('"changed": true' in output for output, _, _ in ended) == 1
    assert any(shell.token("boss") in output for output, _, _ in ended)


# --- up -------------------------------------------------------------------------------


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
        assert shell("daemon", "stop").rc == up.wait() == 0


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
    done = shell.ok("up", "--detach", "--json")
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
