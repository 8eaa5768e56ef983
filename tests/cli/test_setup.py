"""`hiboss setup`: on a terminal, without one, again, beside a daemon, and after a crash."""

from __future__ import annotations

import fcntl
import getpass
import os
import pty
import select
import subprocess
import termios
from pathlib import Path

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
    assert done.rc == 0
    assert list(done.record) == ANSWERS
    assert done.record["boss-token"] == shell.token("boss")
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
    for path in (shell.home.profile("boss"), shell.home.profile("nex"), shell.home.database):
        assert os.stat(path).st_mode & 0o777 == 0o600
    for path in (shell.home.path, shell.home.tokens):
        assert os.stat(path).st_mode & 0o777 == 0o700


def test_setup_takes_what_it_is_given(shell: Shell) -> None:
    done = shell("setup", "--boss-name", "Ada Lovelace", "--timezone", "Europe/London", "--agent-name", "Kai")
    assert done.rc == 0 and shell.home.profiles() == ["boss", "kai"]
    assert [done.record[name] for name in ("boss-name", "timezone", "agent-name")] == [
        "Ada Lovelace",
        "Europe/London",
        "Kai",
    ]


def test_the_first_agent_answers_at_once(shell: Shell) -> None:
    check(shell, shell("setup"))
    assert shell("chat", "nex", "--once", "say it back").stdout == "You said: say it back\n"


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
        done = shell("setup", "--json")
        assert (done.rc, done.stderr) == (0, "")
        assert done.json["boss_token"] == shell.token("boss")
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
