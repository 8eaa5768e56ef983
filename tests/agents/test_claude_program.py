"""Where programs of others are found and how claude is called; the files that claude keeps of its sessions. Without it."""

from __future__ import annotations

import asyncio
import json
import os
import stat
import subprocess
import sys
import tracemalloc
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from hiboss.agents import process_control
from hiboss.agents.providers import programs
from hiboss.agents.providers.claude import arguments, program, saved_sessions
from hiboss.agents.providers.claude.settings import ClaudeSettings
from hiboss.core.contracts.failures import LaneError
from tests.support.moved_clock import MovedClock
from tests.support.raising import raised
from tests.support.waits import happens

LONG = 200.0  # seconds


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for a program as long as it takes to start it on a busy machine."""
    monkeypatch.setattr(programs.call, "__defaults__", (LONG,))


def make(path: Path, text: str = "echo 2.1.326 '(Claude Code)'") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def home(tmp_path: Path, path: str = "/nowhere") -> dict[str, str]:
    return {"HOME": str(tmp_path), "PATH": path}


# --- where it is ---------------------------------------------------------------------------


def test_a_program_on_the_path_comes_first(tmp_path: Path) -> None:
    there = make(tmp_path / "bin" / "hbtool")
    make(tmp_path / ".local" / "bin" / "hbtool")
    assert programs.locate("hbtool", home(tmp_path, f"/nowhere:{there.parent}")) == str(there)


@pytest.mark.parametrize("place", [".local/bin", ".npm-global/bin", ".claude/local"])
def test_a_program_is_found_in_the_usual_places(tmp_path: Path, place: str) -> None:
    there = make(tmp_path / place / "hbtool")
    assert programs.locate("hbtool", home(tmp_path)) == str(there)


def test_of_several_versions_of_node_the_newest_counts(tmp_path: Path) -> None:
    for version in ("v9.11.2", "v24.1.0", "v22.9.0"):
        make(tmp_path / ".nvm/versions/node" / version / "bin" / "hbtool")
    found = programs.locate("hbtool", home(tmp_path))
    assert found is not None and "v24.1.0" in found


def test_what_cannot_be_run_is_not_found(tmp_path: Path) -> None:
    there = make(tmp_path / "bin" / "hbtool")
    environment = home(tmp_path, str(there.parent))
    there.chmod(stat.S_IRUSR)
    if os.geteuid() != 0:
        assert programs.locate("hbtool", environment) is None
    there.unlink()
    there.mkdir()
    assert programs.locate("hbtool", environment) is None and programs.locate(str(there), environment) is None
    assert programs.locate("hbtool", home(tmp_path, "bin:.")) is None  # relative to nothing


def test_a_path_is_taken_as_it_is(tmp_path: Path) -> None:
    there = make(tmp_path / "own" / "hbtool")
    assert programs.locate(str(there), home(tmp_path)) == str(there)
    assert programs.locate("~/own/hbtool", home(tmp_path)) == str(there)
    assert programs.locate("own/hbtool", home(tmp_path)) is None


async def test_a_version_is_asked_for_once_until_the_program_changes(tmp_path: Path) -> None:
    there = make(tmp_path / "hbtool", f"echo x >> {tmp_path}/asked; echo hbtool 1.20.3")
    assert [await programs.version(str(there), home(tmp_path)) for _ in range(3)] == ["1.20.3"] * 3
    make(there, f"echo x >> {tmp_path}/asked; echo hbtool version 2.0, at your service")
    assert await programs.version(str(there), home(tmp_path)) == "2.0"
    assert (tmp_path / "asked").read_text() == "x\nx\n"


@pytest.mark.parametrize(
    "text",
    ["exit 3", "echo hello", "echo 1.2.3; exit 1", "printf 2.; head -c 6000 /dev/zero | tr '\\0' 9"],
)
def test_a_program_that_says_no_version_has_none(tmp_path: Path, text: str) -> None:
    assert asyncio.run(programs.version(str(make(tmp_path / "hbtool", text)), home(tmp_path))) == ""


@pytest.mark.usefixtures("quick")
async def test_a_program_that_does_not_end_is_ended_with_all_it_started(tmp_path: Path) -> None:
    there = make(
        tmp_path / "hbtool",
        f"sleep 1000 & echo $! > {tmp_path}/new; mv {tmp_path}/new {tmp_path}/child; wait",
    )
    clock, environment = MovedClock(), {"PATH": os.environ["PATH"]}
    for call, nothing in (
        (programs.version(str(there), environment), ""),
        (programs.call([str(there)], environment), None),
    ):
        spoken = asyncio.create_task(call)
        await happens((tmp_path / "child").exists)
        await clock.move(LONG)
        assert await spoken == nothing
        assert not _lives(int((tmp_path / "child").read_text()))
        (tmp_path / "child").unlink()


@pytest.mark.usefixtures("quick")
async def test_of_a_program_that_writes_without_an_end_little_is_kept(tmp_path: Path) -> None:
    environment = {"PATH": os.environ["PATH"]}
    endless = make(tmp_path / "endless", "echo 1.2.3; exec cat /dev/zero")
    spoken = await programs.call([str(endless)], environment)
    assert spoken is not None and spoken.status != 0 and len(spoken.output) <= programs.OUTPUT_BYTES
    assert await programs.version(str(endless), environment) == ""
    complains = make(tmp_path / "complains", "head -c 50000000 /dev/zero >&2; echo 1.2.3")
    tracemalloc.start()
    try:
        spoken = await programs.call([str(complains)], environment)
        assert spoken is not None and spoken.output == "1.2.3\n"
        assert tracemalloc.get_traced_memory()[1] < 5_000_000  # bytes, at most at one time
    finally:
        tracemalloc.stop()


def _lives(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
    return state not in "ZX"


@pytest.mark.parametrize(
    ("version", "is_older"),
    [
        *(("2.0.76", True), ("2.1.0", False), ("2.10.1", False), ("10.0", False), ("", False)),
        *(("9" * 5000, False), ("1." + "9" * 5000, False), ("1.²", False)),
    ],
)
def test_versions_are_compared_as_numbers(version: str, is_older: bool) -> None:
    assert programs.older(version, (2, 1)) == is_older


# --- what is found -------------------------------------------------------------------------


def found(tmp_path: Path, text: str, **settings: Any) -> tuple[str, str, str]:
    path = make(tmp_path / "bin" / "claude", text)
    environment = home(tmp_path, f"{path.parent}:{os.environ['PATH']}")
    return tuple(asyncio.run(program.find(ClaudeSettings(**settings), environment)))  # type: ignore[return-value]


LOGIN = """case "$1" in --version) echo '2.1.326 (Claude Code)';; auth) echo '%s';; esac"""


def test_who_is_logged_in_is_said(tmp_path: Path) -> None:
    status = LOGIN % '{"loggedIn": true, "authMethod": "claude.ai"}'
    said = f"claude 2.1.326 ({tmp_path}/bin/claude), logged in (claude.ai)"
    assert found(tmp_path, status) == (said, "", "")


def test_who_is_not_logged_in_reads_the_command(tmp_path: Path) -> None:
    status = LOGIN % '{"loggedIn": false, "authMethod": "none"}'
    assert found(tmp_path, status)[1:] == ("claude is not logged in", "claude auth login")
    assert found(tmp_path, status, api_key="sk-ant-x")[1:] == ("", "")


def test_a_version_that_is_too_old_names_the_command(tmp_path: Path) -> None:
    assert found(tmp_path, "echo 1.0.88")[2] == "claude update"


@pytest.mark.parametrize("said", ["not json", "[]", '{"loggedIn": "yes"}'])
def test_a_status_that_makes_no_sense_is_no_problem(tmp_path: Path, said: str) -> None:
    assert found(tmp_path, LOGIN % said) == (f"claude 2.1.326 ({tmp_path}/bin/claude)", "", "")


def test_a_missing_program_names_the_command(tmp_path: Path) -> None:
    settings = ClaudeSettings(program="hb-no-such-claude")
    finding = asyncio.run(program.find(settings, home(tmp_path)))
    assert finding.problem and finding.help == "npm install -g @anthropic-ai/claude-code"
    error = raised(LaneError, program.located, settings, home(tmp_path))
    assert error.kind == "no_program" and "npm install" in error.text


# --- how it is called ----------------------------------------------------------------------


def words(bypass: bool = True, **settings: Any) -> list[str]:
    return arguments.arguments(
        "/bin/claude", ClaudeSettings(**settings), session=["--resume", "s"], instructions="/f", bypass=bypass
    )


def after(name: str, given: list[str]) -> str | None:
    return given[given.index(name) + 1] if name in given else None


@pytest.mark.parametrize(
    ("autonomy", "bypass", "mode"),
    [
        ("low", True, "default"),
        ("medium", True, "acceptEdits"),
        ("high", True, "bypassPermissions"),
        ("high", False, "acceptEdits"),
    ],
)
def test_autonomy_is_a_permission_mode(autonomy: str, bypass: bool, mode: str) -> None:
    assert after("--permission-mode", words(bypass, autonomy=autonomy)) == mode


@pytest.mark.parametrize(
    ("root", "variables", "may"),
    [
        (False, {}, True),
        (True, {}, False),
        (True, {"IS_SANDBOX": "1"}, True),
        (True, {"IS_SANDBOX": "0"}, False),
    ],
)
def test_root_bypasses_only_in_a_sandbox(root: bool, variables: dict[str, str], may: bool) -> None:
    assert arguments.may_bypass(variables, is_root=root) == may


def test_settings_become_arguments() -> None:
    given = words(
        model="opus", effort="low", max_turns=7, max_cost=0.00001, arguments="--add-dir '/a b' --betas x"
    )
    assert after("--model", given) == "opus" and after("--effort", given) == "low"
    assert after("--max-turns", given) == "7" and after("--max-budget-usd", given) == "0.000010"
    assert after("--append-system-prompt-file", given) == "/f" and after("--resume", given) == "s"
    assert given[-4:] == ["--add-dir", "/a b", "--betas", "x"]
    assert not {"--model", "--effort", "--max-turns", "--max-budget-usd"} & set(words())


def test_the_program_is_no_part_of_a_claude_that_started_the_daemon() -> None:
    given = {"CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": "s", "CLAUDE_CODE_ENTRYPOINT": "cli", "HOME": "/h"}
    environment = arguments.environment(ClaudeSettings(), given)
    assert environment["HOME"] == "/h" and not environment.keys() & (given.keys() - {"HOME"})
    assert environment["CLAUDE_CODE_MAX_RETRIES"] == "2" and environment["DISABLE_AUTOUPDATER"] == "1"
    assert "ANTHROPIC_API_KEY" not in environment


def test_no_file_is_read_because_a_text_names_it() -> None:
    given = {"CLAUDE_CODE_DISABLE_FILE_MENTIONS": "0"}
    assert arguments.environment(ClaudeSettings(), given)["CLAUDE_CODE_DISABLE_FILE_MENTIONS"] == "1"


def test_the_key_of_the_agent_is_given_by_the_environment_alone() -> None:
    settings = ClaudeSettings(api_key="sk-ant-canary")
    given = {"ANTHROPIC_AUTH_TOKEN": "t", "CLAUDE_CODE_OAUTH_TOKEN": "o", "ANTHROPIC_API_KEY": "k"}
    environment = arguments.environment(settings, given)
    assert environment["ANTHROPIC_API_KEY"] == "sk-ant-canary"
    assert not environment.keys() & {"ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"}
    assert "canary" not in repr(words(api_key="sk-ant-canary"))


@pytest.mark.parametrize(
    "settings",
    [
        {"model": ""},
        {"model": "--resume"},
        {"model": "a\nb"},
        {"effort": "much"},
        {"autonomy": "all"},
        {"max_turns": 0},
        {"max_cost": 0},
        {"max_cost": -1},
        {"max_cost": 0.0000001},  # six decimals reach claude
        {"program": ""},
        {"program": "bin/claude"},
        {"program": "-p"},
        {"arguments": "say hello"},
        {"arguments": "--add-dir x -- hello"},
        {"arguments": "--add-dir 'x"},
        {"arguments": "--resume x"},
        {"arguments": "--session-id=x"},
        {"arguments": "-rabc"},
        {"arguments": "--add-dir /x -pv"},
        {"max_turns": 10**23},
        {"max_cost": float("inf")},
        {"arguments": "--add-dir /x -p"},
        {"arguments": "x" * 5000},
        {"colour": "red"},
    ],
)
def test_settings_that_can_never_work_are_refused(settings: dict[str, Any]) -> None:
    raised(ValidationError, ClaudeSettings, **settings)


# --- the files of sessions ------------------------------------------------------------


SESSION = str(uuid.uuid4())
WAITS = "import sys\nprint(flush=True)\nsys.stdin.read()\n"


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    for name in ("projects/-a", "projects/-b", "sessions"):
        (tmp_path / name).mkdir(parents=True)
    return {"CLAUDE_CONFIG_DIR": str(tmp_path)}


@pytest.fixture
def other() -> Iterator[subprocess.Popen[bytes]]:
    with begun([sys.executable, "-c", WAITS]) as process:
        yield process


@contextmanager
def begun(arguments: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    """A process that has begun, and waits until the test has finished with it."""
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdout.readline()
        yield process
        process.communicate()


def note(environment: dict[str, str], pid: int, **facts: object) -> None:
    noted = {"pid": pid, "sessionId": SESSION, "procStart": process_control.started_at(pid), **facts}
    Path(environment["CLAUDE_CONFIG_DIR"], "sessions", f"{pid}.json").write_text(json.dumps(noted))


def test_the_configuration_directory_is_the_one_of_the_program() -> None:
    assert saved_sessions.directory({"CLAUDE_CONFIG_DIR": "/c", "HOME": "/h"}) == Path("/c")
    assert saved_sessions.directory({"HOME": "/h"}) == Path("/h/.claude")


def test_a_saved_session_is_found_in_every_project(environment: dict[str, str], tmp_path: Path) -> None:
    assert saved_sessions.saved_bytes(environment, SESSION) is None
    (tmp_path / "projects/-b" / f"{SESSION}.jsonl").write_text("{}\n")
    assert saved_sessions.saved_bytes(environment, SESSION) == 3
    assert saved_sessions.saved_bytes({"CLAUDE_CONFIG_DIR": str(tmp_path / "no")}, SESSION) is None


def test_a_running_program_that_notes_the_session_has_it_open(
    environment: dict[str, str], other: subprocess.Popen[bytes]
) -> None:
    assert saved_sessions.holder(environment, SESSION) == ""
    note(environment, other.pid)
    assert saved_sessions.holder(environment, SESSION) == f"claude (pid {other.pid})"
    assert saved_sessions.holder(environment, str(uuid.uuid4())) == ""


def test_a_number_that_belongs_to_another_process_now_does_not_count(
    environment: dict[str, str], other: subprocess.Popen[bytes]
) -> None:
    note(environment, other.pid, procStart="1")
    assert saved_sessions.holder(environment, SESSION) == ""


def test_a_process_that_has_ended_does_not_count(environment: dict[str, str]) -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as gone:
        started = process_control.started_at(gone.pid)
    note(environment, gone.pid, procStart=started)
    note(environment, os.getpid())
    Path(environment["CLAUDE_CONFIG_DIR"], "sessions", "7.json").write_text("{")
    Path(environment["CLAUDE_CONFIG_DIR"], "sessions", "8.json").write_text("[]")
    assert saved_sessions.holder(environment, SESSION) == ""


def test_a_process_that_has_ended_and_is_not_reaped_does_not_count(environment: dict[str, str]) -> None:
    with subprocess.Popen([sys.executable, "-c", ""], stdout=subprocess.PIPE) as ended:
        os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)
        note(environment, ended.pid)
        assert saved_sessions.holder(environment, SESSION) == ""


def test_a_claude_with_the_session_in_its_arguments_has_it_open(
    environment: dict[str, str], tmp_path: Path
) -> None:
    session = str(uuid.uuid4())
    script = tmp_path / "claude.py"
    script.write_text(WAITS)
    with begun([sys.executable, str(script), "--resume", session]) as process:
        assert saved_sessions.holder(environment, session) == f"claude (pid {process.pid})"
        assert saved_sessions.holder(environment, str(uuid.uuid4())) == ""
    assert saved_sessions.holder(environment, session) == ""
    with begun([sys.executable, "-c", WAITS, session]):
        assert saved_sessions.holder(environment, session) == ""  # not claude
