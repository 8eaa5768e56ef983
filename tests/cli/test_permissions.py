"""Who calls and who may do what, from the command line: tokens, policy, levels, and the boss."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from hiboss.testing.running_daemon import running_daemon
from tests.support.cli import Done, Office, Shell
from tests.support.sweeps import sweep


@pytest.fixture(autouse=True)
def declared_again(office: Office) -> Iterator[None]:
    yield
    office.daemon.call("permission.policy.set", token=office.token("boss"), policy={})


def levels(office: Office) -> dict[str, str]:
    return office.daemon.call("permission.policy.get", token=office.token("boss"))["policy"]


def decide(office: Office, text: str, *more: str) -> Done:
    return office("permission", "policy", "set", "--as", "boss", "--file", "-", *more, stdin=text)


# --- the policy ----------------------------------------------------------------------


@pytest.mark.parametrize("json_", [(), ("--json",)])
def test_what_get_prints_can_be_edited_and_set(
    office: Office, tmp_path: Path, json_: tuple[str, ...]
) -> None:
    file = tmp_path / "policy"
    assert decide(office, "envelope.send: privileged").rc == 0
    got = office.ok("permission", "policy", "get", "--as", "nex", *json_)
    file.write_text(got.stdout)
    assert decide(office, "").rc == 2 and levels(office)["envelope.send"] == "privileged"
    assert decide(office, "{}").rc == 0 and levels(office)["envelope.send"] == "standard"
    again = office("permission", "policy", "set", "--as", "boss", "--file", str(file), *json_)
    assert again.stdout == got.stdout and levels(office)["envelope.send"] == "privileged"
    file.write_text(got.stdout.replace("privileged", "boss"))
    done = office("permission", "policy", "set", "--as", "boss", "--file", str(file), *json_)
    changed = levels(office)
    assert (changed["envelope.send"], changed["observe"]) == ("boss", "boss")
    assert (done.json["policy"] if json_ else done.record) == changed


def test_a_policy_file_may_have_comments_blank_lines_and_odd_spaces(office: Office, tmp_path: Path) -> None:
    (tmp_path / "policy").write_bytes(
        b"# who may do what\r\n\r\n  envelope.send :privileged # for now\r\nobserve:boss\n\n   #\nobserve: boss\n"
    )
    before = levels(office)
    assert office("permission", "policy", "set", "--as", "boss", "--file", "policy", cwd=tmp_path).rc == 0
    assert levels(office) == before | {"envelope.send": "privileged", "observe": "boss"}
    inner = json.dumps({"policy": {"envelope.send": "boss"}, "changed": ["whatever"]})
    for text in (f"\n  {inner}", '{"envelope.send": "boss"}'):
        assert decide(office, text).rc == 0 and levels(office) == before | {"envelope.send": "boss"}
    assert decide(office, "{}").rc == 0 and levels(office) == before


@pytest.mark.parametrize(
    ("text", "rc", "says"),
    [
        ("agent.list: boss\nenvelope.snd: boss", 1, ("unknown_operation", "did you mean envelope.send?")),
        ("agent.list: boss\nboss.set: standard", 1, ("fixed_level", "boss.set always needs the level boss")),
        ("agent.list: boss\nenvelope.send: bos", 2, ("did you mean boss?", "restricted, standard")),
        ("agent.list: boss\nenvelope.send", 2, ("line 2", "envelope.send: standard")),
        ("agent.list: boss\n\n: boss", 2, ("line 3",)),
        ("agent.list: boss\nagent.list:", 2, ("line 2",)),
        ("agent.list: boss\nagent.list: standard", 2, ("line 2", "names agent.list again")),
        ('{"agent.list": "boss"', 2, ("no JSON",)),
        ('{"agent.list": "boss", "observe": 5}', 2, ("observe",)),
        ('{"policy": ["agent.list"]}', 2, ("policy",)),
        ('["agent.list"]', 2, ("line 1",)),
        ('{"a":' * 100_000, 2, ("JSON",)),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_file_with_a_mistake_changes_nothing(
    office: Office, text: str, rc: int, says: tuple[str, ...]
) -> None:
    before = levels(office)
    done = decide(office, text)
    assert done.rc == rc and done.stdout == "", done.stderr
    assert "Traceback" not in done.stderr and [word for word in says if word not in done.stderr] == []
    assert levels(office) == before


def test_a_file_that_cannot_be_read_is_said(office: Office, tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    for name in ("nowhere", "binary", "."):
        done = office("permission", "policy", "set", "--as", "boss", "--file", name, cwd=tmp_path)
        assert done.rc == 2 and done.stderr.startswith(f"error: {name} ")
        assert "attachment" not in done.stderr and "Traceback" not in done.stderr
    assert office("permission", "policy", "set", "--as", "boss").rc == 2


# --- levels --------------------------------------------------------------------------


def test_an_agents_level_is_shown_and_changed_and_in_force_at_once(office: Office) -> None:
    name = office.agent()
    send = ("envelope", "send", "--as", name, "--to", "agent:nex", "--text", "x")
    got = office("agent", "permission", "get", "--as", name, "--name", name)
    assert got.record["level"] == "standard" and "envelope.send" in got.record["may"].split(", ")
    done = office("agent", "permission", "set", "--as", "boss", "--name", name, "--level", "restricted")
    assert done.record["level"] == "restricted" and "envelope.send" not in done.record["may"].split(", ")
    refused = office(*send)
    assert refused.rc == 1 and "envelope.send needs the level standard" in refused.stderr
    assert decide(office, "envelope.send: restricted").rc == office(*send).rc == 0


# --- tokens --------------------------------------------------------------------------


def test_a_rotated_token_is_shown_once_and_kept_for_as(office: Office) -> None:
    name = office.agent()
    old = office.token(name)
    done = office("agent", "token", "rotate", "--as", "boss", "--name", name)
    assert done.record["token"] == office.token(name) != old
    assert done.record["profile"] == office.home.profile(name) and done.record["revoked"] == "1"
    assert office("agent", "self", "--as", name).rc == 0
    assert office("agent", "self", env={"HIBOSS_TOKEN": old}).rc == 1
    done = office("agent", "token", "rotate", "--as", "boss", "--name", name, "--no-profile", "--json")
    assert done.json["profile"] is None and not office.home.has_profile(name)
    assert office("agent", "self", env={"HIBOSS_TOKEN": done.json["token"]}).rc == 0
    done = office("agent", "token", "rotate", "--as", "boss", "--name", name, "--profile")
    assert done.record["token"] == office.token(name)


def test_a_revoked_token_is_refused_and_its_profile_is_gone(office: Office) -> None:
    name = office.agent()
    old = office.token(name)
    done = office("agent", "token", "revoke", "--as", "boss", "--name", name)
    assert done.record == {"name": name, "revoked": "1"}
    assert "code: unknown_profile" in office("agent", "self", "--as", name).stderr
    assert "code: bad_token" in office("agent", "self", env={"HIBOSS_TOKEN": old}).stderr


# --- the boss ------------------------------------------------------------------------


def test_the_boss_is_shown_and_changed_and_times_follow(office: Office) -> None:
    name = office.agent()
    office.send("nex", name)
    assert office("boss", "get", "--as", "nex").record == {
        "name": "Ada",
        "address": "user:boss",
        "timezone": "UTC",
    }
    assert office("boss", "set", "--as", "boss", "--name", "Grace", "--timezone", "Asia/Tokyo").record == {
        "name": "Grace",
        "address": "user:boss",
        "timezone": "Asia/Tokyo",
        "forward": "all",
    }
    try:
        listed = office("envelope", "list", "--as", name)
        assert [time[-6:] for time in listed.values("created-at")] == ["+09:00"]
        turn = office("envelope", "list", "--as", name, "--as-turn")
        assert {time[-6:] for time in turn.values("created-at") + turn.values("now")} == {"+09:00"}
        assert office("daemon", "time").record["local"].endswith("+09:00")
        assert office("agent", "list", "--as", "nex").values("created-at")[0].endswith("+09:00")
    finally:
        assert office("boss", "set", "--as", "boss", "--name", "Ada", "--timezone", "UTC").rc == 0


def test_what_the_boss_cannot_be_is_said(office: Office) -> None:
    nothing = office("boss", "set", "--as", "boss")
    assert nothing.rc == 2 and "--name" in nothing.stderr and "--timezone" in nothing.stderr
    zone = office("boss", "set", "--as", "boss", "--timezone", "Asia/Tokio")
    assert zone.rc == 2 and "did you mean Asia/Tokyo?" in zone.stderr
    assert office("boss", "set", "--as", "nex", "--name", "Eve").rc == 1


def test_the_boss_rotates_by_the_daemon_while_one_runs(office: Office) -> None:
    old = office.token("boss")
    offline = office("boss", "token", "rotate", "--offline", "--json")
    assert offline.rc == 1 and offline.error["code"] == "daemon_running"
    assert "code: forbidden" in office("boss", "token", "rotate", "--as", "nex").stderr
    assert office.token("boss") == old
    assert office("boss", "token", "rotate").record["token"] == office.token("boss") != old
    assert "code: bad_token" in office("boss", "get", env={"HIBOSS_TOKEN": old}).stderr


def test_the_owner_of_the_home_rotates_without_a_daemon_and_without_a_token(tmp_path: Path) -> None:
    shell = Shell(tmp_path / "home")
    shell.set_up()
    tokens = [shell.token("boss")]
    refused = shell("boss", "token", "rotate", "--offline", "--as", "nex")
    assert refused.rc == 2 and "takes no token" in refused.stderr
    assert shell("boss", "token", "rotate", "--as", "nex").rc == 3  # who gives a token is held to it
    for words in ((), ("--offline",)):
        done = shell("boss", "token", "rotate", *words)
        assert done.rc == 0, done.stderr
        tokens.append(done.record["token"])
        assert shell.token("boss") == tokens[-1]
    assert len(set(tokens)) == 3


# --- who calls ------------------------------------------------------------------------


def who(done: Done) -> str:
    assert done.rc == 0, done.stderr
    return done.record["address"]


def test_a_token_on_the_command_line_works_and_warns(office: Office) -> None:
    done = office("agent", "self", "--token", office.token("nex"))
    assert who(done) == "agent:nex" and done.stderr.startswith("warning: ") and "process list" in done.stderr
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
        office.ok(*words)
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
                check_refusal(office("agent", "self", env={variable: "1"}), variable)
                assert who(office("agent", "self", env={variable: ""})) == "user:boss"


def check_refusal(done: Done, variable: str) -> None:
    assert (done.rc, done.stdout) == (1, "")
    assert done.stderr.startswith(f"error: {variable} is set") and "code: agent_not_named" in done.stderr
    assert all(way in done.stderr for way in ("--as NAME", "--token @FILE", "HIBOSS_TOKEN", "--as boss"))


def test_where_an_agent_runs_every_command_needs_a_name_but_those_without_a_token(office: Office) -> None:
    env = {"CLAUDECODE": "1"}
    for words in (("team",), ("send", "nex", "hi"), ("chat", "nex", "--once", "hi")):
        check_refusal(office(*words, env=env), "CLAUDECODE")
    assert who(office("agent", "self", "--as", "nex", env=env)) == "agent:nex"
    assert who(office("agent", "self", "--as", "boss", env=env)) == "user:boss"
    assert who(office("agent", "self", env={**env, "HIBOSS_TOKEN": office.token("nex")})) == "agent:nex"
    for words in (("daemon", "status"), ("config", "show"), ("cron", "explain", "@daily")):
        assert office(*words, env=env).rc == 0, words  # these need no token


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
