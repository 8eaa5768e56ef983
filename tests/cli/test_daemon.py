"""`hiboss daemon …` by hand."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from hiboss import __version__
from tests.support.cli import Office, Shell, gone
from tests.support.waits import wait_until

# --- start, stop, restart ------------------------------------------------------------


def test_start_returns_when_the_daemon_answers_and_stop_when_it_is_gone(shell: Shell) -> None:
    shell.set_up()
    started = shell.ok("daemon", "start")
    pid = int(started.record["pid"])
    assert started.record["home"] == shell.home.path
    assert shell("daemon", "ping").record == {"pong": "true", "version": __version__, "pid": str(pid)}
    stopped = shell("daemon", "stop")
    assert (stopped.rc, stopped.record) == (0, {"stopped": "true", "pid": str(pid)})
    assert not os.path.exists(shell.home.socket)
    wait_until(lambda: gone(pid))
    again = shell("daemon", "stop")
    assert again.rc == 0 and again.record == {"stopped": "false"}
    assert shell("daemon", "ping").rc == 3


def test_a_daemon_in_a_home_that_is_not_set_up_says_what_is_missing(shell: Shell) -> None:
    for verb in ("start", "restart"):
        done = shell("daemon", verb)
        assert (done.rc, done.stderr) == (0, "This home is not set up yet; run: hiboss up\n")
    assert shell("daemon", "stop").rc == 0
    assert "Start it with: hiboss up\n" in shell("daemon", "ping").stderr  # though there is a database now


def test_a_second_daemon_is_refused_with_the_first_one_s_pid(office: Office) -> None:
    words = office.pid_file_words()
    assert words[0] == str(office.daemon.pid)
    second = office("daemon", "start")
    assert (second.rc, second.stdout) == (1, "")
    assert f"pid {office.daemon.pid} " in second.stderr and office.home.path in second.stderr
    assert office.pid_file_words() == words
    assert office("daemon", "ping").rc == 0


@pytest.mark.parametrize("verb", ["restart", "stop"])
def test_a_run_cannot_end_its_daemon(office: Office, verb: str) -> None:
    """Nobody would start it again."""
    pid = office("daemon", "ping").record["pid"]
    inside = {"HIBOSS_RUN": "epoch-r1"}
    for env in (inside, {**inside, "HIBOSS_TOKEN_FILE": f"{office.home.path}/runs/r1"}):
        refused = office("daemon", verb, env=env)
        assert refused.rc == 2 and f"a run cannot {verb} the daemon" in refused.stderr
    assert office("daemon", "ping").record["pid"] == pid


def test_a_run_may_start_and_stop_the_daemon_of_another_home(shell: Shell, tmp_path: Path) -> None:
    shell.set_up()
    inside = {"HIBOSS_RUN": "epoch-r1", "HIBOSS_TOKEN_FILE": str(tmp_path / "own" / "runs" / "r1")}
    assert {shell("daemon", verb, env=inside).rc for verb in ("start", "restart", "stop")} == {0}
    assert shell("daemon", "ping").rc == 3


def test_up_and_setup_inside_a_run_change_nothing(office: Office) -> None:
    pid, tokens = office("daemon", "ping").record["pid"], os.listdir(f"{office.home.path}/tokens")
    inside = {"HIBOSS_RUN": "epoch-r1", "HIBOSS_AGENT": "nex"}
    up = office("up", "--detach", env=inside)
    assert up.rc == 0 and "already running" in up.stderr
    assert office("setup", "--boss-name", "Eve", env=inside).rc in (0, 1)
    assert office("daemon", "ping").record["pid"] == pid
    assert os.listdir(f"{office.home.path}/tokens") == tokens
    assert "Eve" not in office("boss", "get", "--as", "boss").stdout


def test_restart_changes_the_pid_and_starts_what_was_not_running(shell: Shell) -> None:
    first = shell("daemon", "restart")
    second = shell("daemon", "restart")
    assert (first.rc, second.rc) == (0, 0) and first.values("pid") != second.values("pid")
    wait_until(lambda: gone(int(first.values("pid")[0])))  # its lock ends a moment before it
    assert shell("daemon", "ping").values("pid") == second.values("pid") == [str(shell.pid)]


# The command as it is, but it waits less for a daemon that does not end.
IMPATIENT = """
from hiboss.cli.commands import daemon
daemon.ANSWER_SECONDS, daemon.STOP_SECONDS = 0.5, {seconds}
from hiboss.cli.entry import main
main()
"""
HANGS = """
import os, time
from hiboss.core.contracts.provider import Answer, Provider

class Hangs(Provider):
    name = "hangs"

    async def take_turn(self, turn, run):
        if os.path.exists(__file__ + ".once"):
            return Answer()
        open(__file__ + ".once", "w").close()
        while True:  # so does the whole daemon
            time.sleep(1)

PROVIDERS = [Hangs]
"""


def test_a_stopped_daemon_ends_in_an_orderly_way_and_another_one_starts(shell: Shell) -> None:
    shell.set_up()
    shell("daemon", "start")
    before = shell.pid
    assert before is not None
    os.kill(before, signal.SIGSTOP)
    done = shell.run([sys.executable, "-c", IMPATIENT.format(seconds=30), "daemon", "restart"])
    assert (done.rc, done.stderr) == (0, "") and shell.pid not in (before, None)
    assert "Daemon stopped." in Path(shell.home.log_file).read_text()


@pytest.mark.parametrize("verb", ["restart", "stop"])
def test_a_daemon_that_hangs_is_killed_after_a_while(shell: Shell, tmp_path: Path, verb: str) -> None:
    (tmp_path / "hanging.py").write_text(HANGS)
    own = {"PYTHONPATH": str(tmp_path), "HIBOSS_PROVIDERS_MODULES": "hanging"}
    shell.set_up()
    assert shell("daemon", "start", env=own).rc == 0
    before = shell.pid
    assert before is not None
    assert shell("agent", "register", "stuck", "--provider", "hangs").rc == 0
    shell("send", "stuck", "hello")
    wait_until((tmp_path / "hanging.py.once").exists)  # from here on nothing but its endless loop runs
    done = shell.run([sys.executable, "-c", IMPATIENT.format(seconds=0.5), "daemon", verb], env=own)
    assert done.rc == 0 and f"pid {before}" in done.stderr and "killed" in done.stderr
    wait_until(lambda: gone(before))
    assert (shell.pid is None) == (verb == "stop")


PROVIDER = """
print("this module prints when it is loaded")
from hiboss.core.contracts.provider import Answer, Provider

class One(Provider):
    name = "one"

    async def take_turn(self, turn, run):
        return Answer()

PROVIDERS = [One]
"""


def test_a_module_that_cannot_be_loaded_is_refused_while_the_old_daemon_runs(
    shell: Shell, tmp_path: Path
) -> None:
    module = tmp_path / "own_plugin.py"
    own = {"PYTHONPATH": str(tmp_path), "HIBOSS_PROVIDERS_MODULES": "own_plugin"}
    assert shell("daemon", "start").rc == 0
    before = shell.pid
    for text, why in [
        ("import nothing_there", "No module named 'nothing_there'"),
        ("raise SystemExit(0)", "SystemExit"),
        (PROVIDER.replace("async def", "def"), "take_turn"),
        (PROVIDER + "PROVIDERS.append(One)", "there is already another name one"),
        (PROVIDER.replace('"one"', '"One 1"'), "One 1"),
    ]:
        module.write_text(text)
        done = shell("config", "check", env=own)
        assert done.rc == 2 and "code: bad_setting" in done.stderr and why in done.stderr, done.stderr
    done = shell("daemon", "restart", env=own)
    assert done.rc == 2 and "One 1" in done.stderr and shell.pid == before
    adapters = {"PYTHONPATH": str(tmp_path), "HIBOSS_ADAPTERS_MODULES": "own_plugin"}
    assert "ADAPTERS" in shell("daemon", "restart", env=adapters).stderr and shell.pid == before
    module.write_text(PROVIDER)
    assert shell("config", "check", env=own).record["good"] == "true"
    assert shell("daemon", "restart", env=own).rc == 0 and shell.pid not in (before, None)


def test_a_started_daemon_keeps_no_terminal_directory_or_pipe(shell: Shell, tmp_path: Path) -> None:
    directory = tmp_path / "somewhere"
    directory.mkdir()
    # A pipe the daemon held open would keep `cat` waiting for ever.
    done = shell.sh("hiboss daemon start 2>&1 | cat", cwd=directory)
    assert done.rc == 0 and "started: true" in done.stdout
    pid = shell.pid
    assert pid is not None and os.readlink(f"/proc/{pid}/cwd") == "/" and os.getsid(pid) == pid


# --- a start that fails --------------------------------------------------------------


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere processes are not marked")
def test_a_daemon_that_cannot_mark_processes_says_so_in_its_log(shell: Shell) -> None:
    shell.set_up()
    assert shell.sh("prlimit --locks=1000:1000 hiboss daemon start").rc == 0
    assert "RLIMIT_LOCKS" in Path(shell.home.log_file).read_text()
    assert shell("daemon", "restart").rc == 0
    assert Path(shell.home.log_file).read_text().count("RLIMIT_LOCKS") == 1


def test_a_home_below_a_file_is_said_and_no_traceback_is_shown(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    shell = Shell(tmp_path / "file" / "home")
    for words in (("daemon", "start"), ("setup",), ("daemon", "restart")):
        done = shell(*words)
        assert (done.rc, done.stdout) == (1, ""), words
        assert done.stderr.startswith("error: the home directory ") and "Not a directory" in done.stderr
        assert "HIBOSS_HOME" in done.stderr and "code: home_unusable" in done.stderr


def test_a_damaged_database_is_said_with_what_to_do(shell: Shell) -> None:
    shell.set_up()
    Path(shell.home.database).write_bytes(
        b"this is no database, and it is long enough to look like one" * 100
    )
    for words in (("daemon", "start"), ("up",)):
        done = shell(*words)
        assert (done.rc, done.stdout) == (1, ""), words
        assert "code: store_damaged" in done.stderr and shell.home.database in done.stderr
        assert shell.home.backups in done.stderr and "Traceback" not in done.stderr
    assert shell.pid is None and "is damaged" in shell("daemon", "logs").stdout


# --- status, time, logs --------------------------------------------------------------


def test_status_shows_what_is_in_hand(office: Office) -> None:
    name = office.agent()
    before = office("daemon", "status").record
    office.send("nex", name)
    office.send("nex", name, deliver_at="+2h")
    after = office.ok("daemon", "status")
    assert int(after.record["due"]) == int(before["due"]) + 1
    assert int(after.record["deferred"]) == int(before["deferred"]) + 1
    facts = {
        "pid": str(office.daemon.pid),
        "home": office.home.path,
        "version": __version__,
        "set-up": "true",
    }
    assert {key: after.record[key] for key in facts} == facts
    in_json = office("daemon", "status", "--json").json
    assert in_json["lanes"] == in_json["adapters"] == [] and in_json["breaker"] is None
    left_out = ("lanes", "adapters", "breaker", "mcp_pid")  # it is not pulled, and no worker runs
    assert [key.replace("_", "-") for key in in_json if key not in left_out] == list(after.record)


def test_metrics_are_a_line_for_each_sample_and_in_json_with_their_meaning(office: Office) -> None:
    office.send("nex", office.agent())
    shown = office.ok("daemon", "metrics")
    lines = dict(line.rsplit(" ", 1) for line in shown.stdout.splitlines())
    assert int(lines["hiboss_envelopes_arrived_total"]) >= 1
    assert lines["hiboss_breaker_pulled"] == lines['hiboss_runs{state="active"}'] == "0"
    families = office("daemon", "metrics", "--json").json["families"]
    assert {"name", "type", "help", "samples"} == set(families[0])
    assert sum(len(one["samples"]) for one in families) == len(lines)
    refused = office("daemon", "metrics", "--as", "nex")
    assert (refused.rc, refused.stdout) == (1, "") and "code: forbidden" in refused.stderr


def test_status_shows_lanes_that_have_something_to_say_and_every_adapter(
    shell: Shell, tmp_path: Path
) -> None:
    shell.set_up()
    shell("daemon", "start")
    shell(
        "agent",
        "bind",
        "--as",
        "boss",
        "--name",
        "nex",
        "--adapter-type",
        "folder",
        "--path",
        "reports",
        cwd=tmp_path,
    )
    place = "channel:folder:reports"

    def blocks() -> list[dict[str, str]]:
        return shell("daemon", "status").blocks

    wait_until(lambda: blocks()[-1].get("state") == "running")
    assert blocks()[1:] == [{"adapter": "folder:reports", "state": "running", "agents": "nex"}]
    shell("lane", "pause", "--as", "boss", "--address", place)
    shell("envelope", "send", "--as", "nex", "--to", place, "--text", "hello")
    shell("envelope", "send", "--as", "nex", "--to", "agent:nex", "--deliver-at", "2099-01-01", "--text", "x")
    told, lane, _ = blocks()
    assert lane == {"lane": place, "binding": "b1", "state": "paused", "due": "1"}
    assert (told["due"], told["deferred"], told["failed"]) == ("1", "1", "0")
    assert told["next-wake-at"].startswith("2099-01-01T00:00:00") and told["oldest-due-at"]
    shell("lane", "resume", "--as", "boss", "--address", place)
    wait_until(lambda: (tmp_path / "reports" / "out" / "e1.txt").exists())
    wait_until(lambda: len(blocks()) == 2)
    assert (tmp_path / "reports" / "out" / "e1.txt").read_text() == "hello"


def test_logs_prints_the_last_lines(office: Office) -> None:
    path = Path(office.home.log_file)
    append(path, "".join(f"line {number}\n" for number in range(100)))
    assert office("daemon", "logs", "-n", "2").stdout == "line 98\nline 99\n"
    assert len(office("daemon", "logs").stdout.splitlines()) == 50
    assert office("daemon", "logs", "-n", "0").stdout == ""
    assert office("daemon", "logs", "-n", "-1").rc == 2
    everything = office("daemon", "logs", "--number", "100000")
    assert (everything.rc, everything.stdout) == (0, path.read_text())


def test_logs_without_a_log_say_so(shell: Shell) -> None:
    done = shell("daemon", "logs")
    assert (done.rc, done.stdout) == (0, "") and shell.home.log_file in done.stderr


def test_following_the_log_prints_what_comes_also_after_it_was_rotated(shell: Shell, tmp_path: Path) -> None:
    log, seen = Path(shell.home.log_file), tmp_path / "seen"
    log.parent.mkdir(parents=True)
    log.write_text("old\n")
    with seen.open("w") as screen, shell.open("daemon", "logs", "-n", "1", "-f", into=screen):
        wait_until(lambda: seen.read_text() == "old\n")
        append(log, "new\n")
        wait_until(lambda: seen.read_text() == "old\nnew\n")
        append(log, "the last of this file\n")
        log.rename(log.with_suffix(".log.1"))
        log.write_text("the first of the next\n")
        expected = "old\nnew\nthe last of this file\nthe first of the next\n"
        wait_until(lambda: seen.read_text() == expected)


def append(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


def test_following_the_log_is_ended_by_ctrl_c_without_a_traceback(office: Office, tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    with seen.open("w") as screen, office.open("daemon", "logs", "-f", into=screen) as following:
        wait_until(seen.read_text)
        following.send_signal(signal.SIGINT)
        _, error = following.communicate()
    assert following.returncode == 130 and error == ""
