"""Who calls: tokens on the command line, from a file, standard input, the environment, or a profile."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from hiboss.testing.running_daemon import running_daemon
from tests.support.cli import Done, Office, Shell
from tests.support.sweeps import sweep


def who(done: Done) -> str:
    assert done.rc == 0, done.stderr
    return done.record["address"]


def test_a_token_on_the_command_line_works_and_warns(office: Office) -> None:
    done = office("agent", "self", "--token", office.token("nex"))
    assert who(done) == "agent:nex"
    assert done.stderr.startswith("warning: ") and "process list" in done.stderr
    assert "--token @FILE" in done.stderr and office.token("nex") not in done.stderr


NEX, BOSS = "agent:nex", "user:boss"
# Words after `agent self`, standard input, the environment (NEX and BOSS: tokens; FILE, EMPTY: files), and who speaks.
SPEAKERS: list[tuple[str, str, dict[str, str], str]] = [
    ("--token -", "NEX\n", {}, NEX),
    ("--token -", "NEX", {}, NEX),
    ("--token @token", "", {}, NEX),
    ("--token @~/token", "", {}, NEX),
    ("", "", {"HIBOSS_TOKEN": "NEX\n"}, NEX),
    ("--as NEX", "", {}, NEX),
    ("--as Boss", "", {}, BOSS),
    ("", "", {"HIBOSS_TOKEN": "BOSS"}, BOSS),  # what is said on the command line wins
    ("--as nex", "", {"HIBOSS_TOKEN": "BOSS"}, NEX),
    ("--token -", "NEX", {"HIBOSS_TOKEN": "BOSS"}, NEX),
    ("", "", {"HIBOSS_TOKEN_FILE": "FILE"}, NEX),  # a file comes after the token itself
    ("", "", {"HIBOSS_TOKEN_FILE": "FILE", "HIBOSS_TOKEN": " "}, NEX),
    ("", "", {"HIBOSS_TOKEN_FILE": "FILE", "HIBOSS_TOKEN": "BOSS"}, BOSS),
    ("--as boss", "", {"HIBOSS_TOKEN_FILE": "FILE"}, BOSS),
    ("", "", {"HIBOSS_TOKEN_FILE": "GONE"}, "unreadable_file"),  # and never the boss
    ("", "", {"HIBOSS_TOKEN_FILE": "EMPTY"}, "bad_token"),
    ("--token -", "", {"HIBOSS_TOKEN": "NEX"}, "bad_token"),  # an empty one is not taken for none
    ("--token @empty", "", {"HIBOSS_TOKEN": "NEX"}, "bad_token"),
    ("--token ''", "", {"HIBOSS_TOKEN": "NEX"}, "bad_token"),
    *((f"--as {name}", "", {}, "unknown_profile") for name in ("FILE", "../tokens/nex", "''", ".")),
]


def test_who_speaks_is_said_by_the_command_line_then_by_the_environment(
    office: Office, tmp_path: Path
) -> None:
    (tmp_path / "token").write_text(f"  {office.token('nex')}\n\n")
    (tmp_path / "empty").write_text("\n")
    values = {
        name: str(tmp_path / file) for name, file in (("FILE", "token"), ("EMPTY", "empty"), ("GONE", "gone"))
    }
    values |= {"NEX": office.token("nex"), "BOSS": office.token("boss")}

    def filled(text: str) -> str:
        return re.sub("|".join(values), lambda found: values[found[0]], text)

    with sweep() as row:
        for words, stdin, env, speaker in SPEAKERS:
            given = {name: filled(value) for name, value in env.items()} | {"HOME": str(tmp_path)}
            split = [one if one == "NEX" else filled(one) for one in shlex.split(words)]
            with row((words, env)):
                done = office("agent", "self", *split, stdin=filled(stdin), cwd=tmp_path, env=given)
                if done.rc:
                    assert f"code: {speaker}\n" in done.stderr
                else:
                    assert (done.record["address"], done.stderr) == (speaker, "")


def test_without_any_token_every_command_speaks_as_the_boss(office: Office) -> None:
    for environment in ({}, {"HIBOSS_TOKEN": ""}, {"HIBOSS_TOKEN": " "}, {"HIBOSS_TOKEN_FILE": ""}):
        assert who(office("agent", "self", env=environment)) == "user:boss"
    for words in (
        ("agent", "list"),
        ("envelope", "list"),
        ("cron", "list"),
        ("lane", "list"),
        ("boss", "get"),
    ):
        done = office(*words)
        assert (done.rc, done.stderr) == (0, ""), words
    sent = office("envelope", "send", "--to", "nex", "--text", "hello")
    assert office.envelope(sent.record["id"])["from"] == "user:boss"


VARIABLES = [
    "HIBOSS_RUN",
    "HIBOSS_AGENT",
    "CLAUDECODE",
    "CLAUDE_CODE_ENTRYPOINT",
    "CODEX_THREAD_ID",
    "CODEX_SESSION_ID",
    "CODEX_SANDBOX",
    "CODEX_SANDBOX_NETWORK_DISABLED",
    "GEMINI_CLI",
    "CURSOR_AGENT",
    "OPENCODE",
    "AI_AGENT",
]


def test_where_an_agent_runs_the_command_nobody_is_taken_for_the_boss(office: Office) -> None:
    with sweep() as row:
        for variable in VARIABLES:
            with row(variable):
                check_agent(office, variable, {variable: "1"})


def check_agent(office: Office, variable: str, env: dict[str, str]) -> None:
    for words in (("agent", "self"), ("team",), ("send", "nex", "hi"), ("chat", "nex", "--once", "hi")):
        done = office(*words, env=env)
        assert (done.rc, done.stdout) == (1, "")
        assert done.stderr.startswith(f"error: {variable} is set") and "code: agent_not_named" in done.stderr
        assert all(way in done.stderr for way in ("--as NAME", "--token @FILE", "HIBOSS_TOKEN", "--as boss"))
    assert who(office("agent", "self", "--as", "nex", env=env)) == "agent:nex"
    assert who(office("agent", "self", "--as", "boss", env=env)) == "user:boss"
    assert who(office("agent", "self", env={**env, "HIBOSS_TOKEN": office.token("nex")})) == "agent:nex"
    for words in (("daemon", "status"), ("config", "show"), ("cron", "explain", "@daily")):
        assert office(*words, env=env).rc == 0, words  # these need no token
    assert who(office("agent", "self", env={variable: ""})) == "user:boss"


def test_an_agent_cannot_rotate_the_boss_token_of_a_stopped_daemon_by_saying_no_name(tmp_path: Path) -> None:
    shell = Shell(tmp_path / "home")
    shell.set_up()
    before = shell.token("boss")
    for words in ((), ("--offline",)):
        done = shell("boss", "token", "rotate", *words, env={"HIBOSS_RUN": "1"})
        assert done.rc == 1 and "code: agent_not_named" in done.stderr and shell.token("boss") == before
    done = shell("boss", "token", "rotate", "--offline", "--as", "boss", env={"HIBOSS_RUN": "1"})
    assert done.rc == 0 and shell.token("boss") != before


def test_rotating_in_a_new_home_creates_nothing(tmp_path: Path) -> None:
    shell = Shell(tmp_path / "home")
    for words in ((), ("--offline",)):
        done = shell("boss", "token", "rotate", *words)
        assert done.rc == 1 and "run: hiboss up\ncode: not_set_up\n" in done.stderr
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize("words", [("team",), ("chat", "nex", "--once", "hi"), ("team", "--as", "nex")])
def test_a_new_home_says_hiboss_up_everywhere(tmp_path: Path, words: tuple[str, ...]) -> None:
    done = Shell(tmp_path / "home")(*words)
    assert done.rc in (1, 3) and "hiboss up" in done.stderr
    with running_daemon(tmp_path, set_up=False) as daemon:
        done = Shell(daemon.home.path)(*words)
        assert done.rc == 1 and "run: hiboss up" in done.stderr


@pytest.mark.parametrize("json_", [(), ("--json",)])
def test_a_token_never_stands_in_an_error(office: Office, tmp_path: Path, json_: tuple[str, ...]) -> None:
    secret = "hba_" + "S3cret" * 7
    (tmp_path / "token").write_text(secret)
    for words in (
        ("agent", "self", "--token", secret),
        ("agent", "self", "--token", "@token"),
        ("agent", "self", "--token", "-"),
        ("envelope", "send", "--token", "@token", "--to", "nobody", "--text", "x"),
        ("envelope", "list", "--token", "@token", "-n", "0"),
    ):
        done = office(*words, *json_, stdin=secret, cwd=tmp_path)
        assert done.rc in (1, 2) and "S3cret" not in done.stdout + done.stderr
    assert "S3cret" not in Path(office.home.log_file).read_text()


@pytest.mark.parametrize("content", [b"\xff\xfe\n", b"\x00\x00\n"])
def test_a_token_that_is_no_text_is_refused_in_words_about_the_token(
    office: Office, tmp_path: Path, content: bytes
) -> None:
    (tmp_path / "token").write_bytes(content)
    for words in (("--token", "-"), ("--token", "@token")):
        done = office("agent", "self", *words, stdin=content, cwd=tmp_path)
        assert done.rc in (1, 2) and "Traceback" not in done.stderr
        assert "attachment" not in done.stderr and "JSON" not in done.stderr
