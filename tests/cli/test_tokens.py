"""Who calls: tokens on the command line, from a file, standard input, the environment, or a profile."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hiboss.testing.running_daemon import running_daemon
from tests.support.cli import Done, Office, Shell, open_office


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Office]:
    with open_office(tmp_path_factory.mktemp("d")) as running:
        yield running


def who(done: Done) -> str:
    assert done.rc == 0, done.stderr
    return done.record["address"]


def test_a_token_on_the_command_line_works_and_warns(office: Office) -> None:
    done = office("agent", "self", "--token", office.token("nex"))
    assert who(done) == "agent:nex"
    assert done.stderr.startswith("warning: ") and "process list" in done.stderr
    assert "--token @FILE" in done.stderr and office.token("nex") not in done.stderr


def test_a_token_comes_from_standard_input_a_file_or_the_environment_without_a_warning(
    office: Office, tmp_path: Path
) -> None:
    token = office.token("nex")
    (tmp_path / "token").write_text(f"  {token}\n\n")
    for done in (
        office("agent", "self", "--token", "-", stdin=f"{token}\n"),
        office("agent", "self", "--token", "-", stdin=token),
        office("agent", "self", "--token", "@token", cwd=tmp_path),
        office("agent", "self", "--token", "@~/token", env={"HOME": str(tmp_path)}),
        office("agent", "self", env={"HIBOSS_TOKEN": f"{token}\n"}),
    ):
        assert who(done) == "agent:nex" and done.stderr == ""


def test_a_profile_is_found_whatever_the_case(office: Office) -> None:
    assert who(office("agent", "self", "--as", "NEX")) == "agent:nex"
    assert who(office("agent", "self", "--as", "Boss")) == "user:boss"


def test_what_is_said_on_the_command_line_wins_over_the_environment(office: Office) -> None:
    environment = {"HIBOSS_TOKEN": office.token("boss")}
    assert who(office("agent", "self", env=environment)) == "user:boss"
    assert who(office("agent", "self", "--as", "nex", env=environment)) == "agent:nex"
    other = office("agent", "self", "--token", "-", stdin=office.token("nex"), env=environment)
    assert who(other) == "agent:nex"


def test_both_token_and_profile_are_refused(office: Office) -> None:
    done = office("agent", "self", "--token", "@x", "--as", "nex")
    assert done.rc == 2 and "--token" in done.stderr and "--as" in done.stderr


def test_an_unknown_profile_hears_the_nearest_and_all(office: Office) -> None:
    done = office("agent", "self", "--as", "nx")
    assert done.rc == 1
    assert "did you mean nex?" in done.stderr and "boss, nex" in done.stderr


def test_a_profile_cannot_be_a_way_out_of_the_directory(office: Office, tmp_path: Path) -> None:
    (tmp_path / "token").write_text(office.token("nex"))
    for name in (str(tmp_path / "token"), "../tokens/nex", "", "."):
        done = office("agent", "self", "--as", name)
        assert done.rc == 1 and "code: unknown_profile" in done.stderr


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


def test_a_token_file_in_the_environment_comes_after_the_token_itself(office: Office, tmp_path: Path) -> None:
    (tmp_path / "token").write_text(office.token("nex") + "\n")
    file = {"HIBOSS_TOKEN_FILE": str(tmp_path / "token")}
    assert who(office("agent", "self", env=file)) == "agent:nex"
    assert who(office("agent", "self", env={**file, "HIBOSS_TOKEN": " "})) == "agent:nex"
    assert who(office("agent", "self", env={**file, "HIBOSS_TOKEN": office.token("boss")})) == "user:boss"
    assert who(office("agent", "self", "--as", "boss", env=file)) == "user:boss"


def test_a_token_file_that_is_gone_is_an_error_and_never_the_boss(office: Office, tmp_path: Path) -> None:
    done = office("agent", "self", env={"HIBOSS_TOKEN_FILE": str(tmp_path / "gone")})
    assert done.rc == 2 and f"{tmp_path}/gone cannot be read" in done.stderr
    (tmp_path / "empty").touch()
    done = office("agent", "self", env={"HIBOSS_TOKEN_FILE": str(tmp_path / "empty")})
    assert done.rc == 1 and "code: bad_token" in done.stderr


@pytest.mark.parametrize(
    "variable",
    [
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
    ],
)
def test_where_an_agent_runs_the_command_nobody_is_taken_for_the_boss(office: Office, variable: str) -> None:
    env = {variable: "1"}
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


def test_an_empty_token_is_refused_and_not_taken_for_none(office: Office, tmp_path: Path) -> None:
    (tmp_path / "empty").write_text("\n")
    environment = {"HIBOSS_TOKEN": office.token("nex")}
    for words in (("--token", "-"), ("--token", "@empty"), ("--token", "")):
        done = office("agent", "self", *words, cwd=tmp_path, env=environment)
        assert done.rc == 1 and "code: bad_token" in done.stderr


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


def test_a_token_file_that_is_not_there_is_said(office: Office, tmp_path: Path) -> None:
    done = office("agent", "self", "--token", "@nowhere", cwd=tmp_path)
    assert done.rc == 2 and "nowhere cannot be read: No such file" in done.stderr
