"""The mark that every process of a run carries, its environment without anything secret, and its token."""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
import stat
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from hiboss.agents import process_control, turn_input
from hiboss.core.paths import Home
from hiboss.testing.running_daemon import Answered, RunningDaemon
from tests.support.daemons import set_up, started
from tests.support.parties import agent
from tests.support.raising import raised
from tests.support.shell_agents import (
    ESCAPES,
    SLEEP,
    Boss,
    Program,
    Worker,
    assert_idle,
    eventually,
    has_ended,
    left_behind,
)
from tests.support.started_programs import Hand, cancelled, carriers, lines
from tests.support.waits import happens, wait_until

pytestmark = pytest.mark.usefixtures("quick")

# Writes its pid to `hidden` when nobody may read its environment any more, like ssh-agent and gpg-agent.
HIDES = f"""setsid {shlex.quote(sys.executable)} -c '
import ctypes, os, sys, time
PR_SET_DUMPABLE = 4
assert ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0
with open(sys.argv[1] + "/new", "w") as file: file.write(str(os.getpid()))
os.rename(sys.argv[1] + "/new", sys.argv[1] + "/hidden")
time.sleep(1000)
' "$D" </dev/null >/dev/null 2>&1 &
"""


async def test_who_left_the_session_and_takes_the_mark_off_may_stay(program: Program) -> None:
    """The way to leave a server running on purpose."""
    program.does(f"""HIBOSS_RUN= setsid sh -c 'echo $$ > "$0/new"; mv "$0/new" "$0/server"; exec {SLEEP}' "$D" >/dev/null 2>&1 &
while [ ! -e "$D/server" ]; do sleep 0.01; done""")
    assert (await Hand(program).ends()).status == 0
    server = psutil.Process(int(lines(program, "server")[0]))
    assert not has_ended(server)
    server.kill()


async def test_programs_started_at_the_same_time_are_told_apart(program: Program, tmp_path: Path) -> None:
    others = [Program(tmp_path / f"other {number}") for number in range(6)]
    for one in (program, *others):
        one.does(f"{ESCAPES}{SLEEP}")
    hands = [Hand(one) for one in (program, *others)]
    runs = await asyncio.gather(*(hand.begin() for hand in hands))
    await happens(lambda: all(lines(hand.program, "escaped") for hand in hands))
    children = [hand.program.escaped for hand in hands]
    for run, child in zip(runs, children, strict=True):
        assert not has_ended(child)
        run.cancel()
        await asyncio.wait([run])
        assert has_ended(child)


async def test_what_others_start_meanwhile_is_no_part_of_a_run(program: Program) -> None:
    """A mark must not be inherited by a process that an adapter starts at the same moment."""
    program.does(SLEEP)
    starting = asyncio.create_task(Hand(program).begin())
    strangers = []
    while not starting.done():
        strangers.append(subprocess.Popen(["/bin/sleep", "1000"], env={}))
        await asyncio.sleep(0)
    try:
        assert len(strangers) > 1
        await happens(lambda: carriers(program))
        starting.result().cancel()
        await asyncio.wait([starting.result()])
        assert [one.poll() for one in strangers] == [None] * len(strangers)
    finally:
        for one in strangers:
            one.kill()
            one.wait()


async def test_a_process_that_hides_its_environment_carries_the_mark_too(program: Program) -> None:
    program.does(f"{HIDES}{SLEEP}")
    under_way = await Hand(program).begin()
    await happens(lambda: lines(program, "hidden"))
    hidden = int(lines(program, "hidden")[0])
    try:
        assert hidden in carriers_seen_by(program, "--bounding-set=-all")
    finally:
        await cancelled(under_way)


async def test_a_server_that_hides_its_environment_may_stay_if_it_takes_both_marks_off(
    program: Program,
) -> None:
    """Like one that writes a title over its environment, as nginx and postgres do. The way of docs/providers.md."""
    program.does(HIDES.replace("setsid", "HIBOSS_RUN= setsid prlimit --locks=unlimited:") + SLEEP)
    under_way = await Hand(program).begin()
    await happens(lambda: lines(program, "hidden"))
    server = int(lines(program, "hidden")[0])
    try:
        found = carriers_seen_by(program, "--bounding-set=-all")
        assert found and server not in found
    finally:
        await cancelled(under_way)
        process_control.signal_all([server], signal.SIGKILL)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start a process as another user")
async def test_a_process_of_another_user_is_not_waited_for(program: Program) -> None:
    """Nobody but root can end it: to find it would only let the end of the run take all its rounds."""
    program.does(f"setsid {SLEEP} &\n{SLEEP}")
    under_way = await Hand(program).begin()
    await happens(lambda: len(carriers(program)) == 3)
    assert carriers_seen_by(program, "--reuid=65534", "--clear-groups") == []
    await cancelled(under_way)


def carriers_seen_by(program: Program, *rights: str) -> list[int]:
    """Return the processes that carry the mark of a program, as a process without some rights of root sees it."""
    look = "import sys; from hiboss.agents import process_control as p; print(*p.marked(frozenset(sys.argv[1:])))"
    drop = ["setpriv", *rights, "--"] if os.geteuid() == 0 else []
    found = subprocess.run(
        [*drop, sys.executable, "-c", look, f"mark of {program.directory}"],
        capture_output=True,
        text=True,
        check=True,
    )
    return [int(word) for word in found.stdout.split()]


# --- environment and token ------------------------------------------------------------


# Write down what it was given, and wait.
SHOW = 'printf "%s\\n" "$HIBOSS_TOKEN_FILE" "$HIBOSS_TOKEN" > "$D/credentials.new"\nmv "$D/credentials.new" "$D/credentials"'
WAIT = f'{SHOW}\nwhile [ ! -e "$D/go" ]; do sleep 0.02; done\n'


def credentials(worker: Worker) -> tuple[Path, str]:
    """Wait until its program runs; return the path of its token file and the token of its environment."""
    file = worker.program.directory / "credentials"
    wait_until(file.exists)
    path, token = file.read_text().splitlines()
    file.unlink()
    return Path(path), token


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_run_finds_its_token_also_in_a_file_that_only_its_owner_can_read(ada: Boss, worker: Worker) -> None:
    worker.program.does(f"{WAIT}echo done")
    ada.tell(worker)
    path, token = credentials(worker)
    assert path.read_text() == f"{token}\n" and token.startswith("hbr_")
    assert (mode(path), mode(path.parent)) == (0o600, 0o700)
    assert path.parent.parent == Path(worker.daemon.home.path)
    worker.program.let_go()
    worker.settled()


def test_the_token_in_the_file_works_over_the_socket_while_the_run_lasts(ada: Boss, worker: Worker) -> None:
    zoe = agent(worker.daemon)
    worker.program.does(f"{WAIT}echo done")
    ada.tell(worker)
    path, _ = credentials(worker)
    token = path.read_text().strip()
    worker.daemon.call("envelope.send", token=token, to=zoe.address, text="from the run")
    [sent] = zoe.list()
    assert (sent["from"], sent["run"]) == (worker.address, worker.runs()[0]["id"])
    worker.program.let_go()
    worker.settled()
    refused = raised(
        Answered, worker.daemon.call, "envelope.send", token=token, to=zoe.address, text="too late"
    )
    assert refused.stable_code == "bad_token"
    assert len(zoe.list()) == 1


@pytest.mark.parametrize("lost", ["HIBOSS_TOKEN", "HIBOSS_TOKEN HIBOSS_TOKEN_FILE"])
def test_a_program_that_loses_its_variables_still_speaks_as_its_agent(
    ada: Boss, worker: Worker, lost: str
) -> None:
    """Some harnesses keep every variable called *TOKEN* from their tools."""
    zoe = agent(worker.daemon)
    worker.program.does(
        f"unset {lost}\nhiboss send {zoe.name} 'by the file' > /dev/null || exit 9\necho done"
    )
    ada.tell(worker)
    assert worker.settled()["status"] == "completed"
    [sent] = zoe.list()
    assert (sent["from"], sent["text"]) == (worker.address, "by the file")


def test_a_program_that_lost_everything_but_its_name_never_speaks_as_the_boss(
    ada: Boss, worker: Worker
) -> None:
    zoe = agent(worker.daemon)
    worker.program.does(
        "unset HIBOSS_TOKEN HIBOSS_TOKEN_FILE HIBOSS_RUN\n"
        f"hiboss send {zoe.name} 'as whom?' 2>&1 | grep 'code:' && echo done"
    )
    ada.tell(worker)
    assert worker.settled()["text"] == "code: agent_not_named\ndone"
    assert zoe.list() == []


@pytest.mark.parametrize("end", ["echo done", "exit 3", "cancel"])
def test_the_token_file_is_gone_when_the_run_ends(ada: Boss, worker: Worker, end: str) -> None:
    worker.program.does(WAIT + ("" if end == "cancel" else end))
    ada.tell(worker)
    path, _ = credentials(worker)
    assert path.exists()
    if end == "cancel":
        ada.call("run.cancel", id=worker.runs()[0]["id"])
    else:
        worker.program.let_go()
    worker.settled()
    wait_until(lambda: not path.exists())
    assert path.name not in os.listdir(path.parent)


def test_runs_at_the_same_time_have_files_of_their_own(ada: Boss, worker: Worker, tmp_path: Path) -> None:
    other = Worker(worker.daemon, tmp_path)
    for one in (worker, other):
        one.program.does(f"{WAIT}echo done")
        ada.tell(one)
    (path, token), (other_path, other_token) = credentials(worker), credentials(other)
    worker.program.let_go()
    worker.settled()
    wait_until(lambda: not path.exists())
    assert path != other_path and token != other_token
    assert other_path.read_text() == f"{other_token}\n"
    other.program.let_go()
    other.settled()
    wait_until(lambda: not other_path.exists())


def test_after_a_crash_the_next_start_deletes_the_token_files(tmp_path: Path) -> None:
    with started(tmp_path / "d") as own:
        ada, worker = Boss(own), Worker(own, tmp_path)
        worker.program.does(f"{WAIT}echo done")
        number = ada.tell(worker)
        path, token = credentials(worker)
        own.kill()
        assert path.read_text() == f"{token}\n"  # nobody could delete it
        own.start()
        next_path, next_token = credentials(worker)  # its envelope is redelivered to a new run
        assert not path.exists() and next_path.exists() and next_token != token
        worker.program.let_go()
        eventually(lambda: worker.answers_to(number), ["done"])
        wait_until(lambda: os.listdir(next_path.parent) == [])
        assert left_behind(own, worker.program.pids) == []
        assert_idle(own, worker.program)


# --- the environment ---------------------------------------------------------------------

OLD_TOKEN = "hbb_" + "x" * 43


def test_a_program_gets_no_variable_with_a_token_or_a_secret_in_it_and_none_that_is_denied(
    tmp_path: Path,
) -> None:
    home = set_up(tmp_path)
    secret = home.keep_secrets({"bot_token": "123456:AAE-of-a-bot"}, "8f3a")
    daemon = RunningDaemon(home)
    variables = {
        "PLAIN": "fine",
        "HIBOSS_TOKEN": OLD_TOKEN,
        "NOTE": f"the token is {OLD_TOKEN}.",
        "BOT_URL": "https://example.org/bot123456:AAE-of-a-bot/send",
        "SIGNED": "whsec_c2VjcmV0c2VjcmV0",
        "ANTHROPIC_API_KEY": "sk-not-of-hiboss",
        "AWS_SECRET_KEY": "of somebody else",
        "DEPLOY_KEY": "of somebody else",
        "HIBOSS_RUNS_ENVIRONMENT_DENY": "AWS_*, DEPLOY_KEY",
    }
    daemon.start(**variables)
    try:
        worker = Worker(daemon, tmp_path / "w")
        worker.program.does('env > "$D/env.new"; mv "$D/env.new" "$D/env"')
        Boss(daemon).tell(worker)
        file = worker.program.directory / "env"
        wait_until(file.exists)
        found = dict(line.split("=", 1) for line in file.read_text().splitlines() if "=" in line)
    finally:
        daemon.stop()
        home.forget_secrets(secret)
    assert (found["PLAIN"], found["ANTHROPIC_API_KEY"]) == ("fine", "sk-not-of-hiboss")
    assert not {"NOTE", "BOT_URL", "SIGNED", "AWS_SECRET_KEY", "DEPLOY_KEY"} & found.keys()
    assert found["HIBOSS_TOKEN"].startswith("hbr_")
    assert OLD_TOKEN not in file.read_text() and "AAE-of-a-bot" not in file.read_text()


def test_a_short_secret_leaves_out_only_the_variable_that_is_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Home(str(tmp_path / "home"))
    home.create()
    home.keep_secrets({"a": "1", "b": "longer-secret"}, "8f3a")
    monkeypatch.setenv("HARMLESS", "v1.0")
    monkeypatch.setenv("HARMFUL", "v1.0 longer-secret")
    monkeypatch.setenv("PIN", "1")
    found = turn_input.environment(home, "nex", "mark", "hbr_new")
    assert "HARMLESS" in found and not {"HARMFUL", "PIN"} & found.keys()
    assert found["HIBOSS_TOKEN"] == "hbr_new"
