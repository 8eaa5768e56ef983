"""The tab key: the command answers as bash, zsh and fish ask it; nothing goes wrong loudly."""

from __future__ import annotations

import os
import pty
import select
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.cli import HIBOSS, SECONDS, Done, Office, Shell, open_office
from tests.support.sweeps import sweep
from tests.support.waits import wait_until

# In zsh a preview is evaluated: one backslash too many and a stranger's words are a command.
EVIL = 'it\'s \\$(touch PWNED) `touch PWNED` "x" [/b] (ok)\n\x1b[31mred'


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Office]:
    with open_office(tmp_path_factory.mktemp("d")) as running:
        running.daemon.register("kai", description=EVIL)
        running.send("nex", "kai", EVIL)
        running.send("nex", "kai", "x", subject="the second")
        running("envelope", "trash", "--as", "kai", "--id", "e1")
        running("cron", "create", "--as", "kai", "--cron", "@yearly", "--to", "agent:kai", "--text", EVIL)
        assert running("user", "register", "--as", "boss", "--name", "ann").rc == 0
        boss = running.token("boss")
        running.daemon.call(
            "agent.set", token=boss, name="nex", provider="command", settings={"command": "sleep 600"}
        )
        folder = {"path": str(Path(running.home.path).with_name("reports"))}
        running.daemon.call("agent.bind", token=boss, name="nex", adapter_type="folder", settings=folder)
        running.send("kai", "nex", "take your time")
        for number in ("q1", "q2"):
            made = running.daemon.call("ask.create", token=boss, question=EVIL, to="user:ann")
            assert made["ask"]["id"] == number
        running.daemon.call("ask.cancel", token=boss, id="q1")
        wait_until(lambda: running.daemon.call("run.list", token=boss)["runs"])
        yield running
        running.daemon.call("run.cancel", token=boss, id="r1")


def ask(shell: Shell, how: str, line: str, **env: str) -> Done:
    """What the scripts of the shells do when somebody presses the key at the end of `line`."""
    asked = {"_HIBOSS_COMPLETE": f"complete_{how}", "_TYPER_COMPLETE_ARGS": line}
    if how == "fish":
        asked["_TYPER_COMPLETE_FISH_ACTION"] = "get-args"
    return shell(env={**asked, **env})


def values(shell: Shell, line: str, **env: str) -> list[str]:
    done = ask(shell, "fish", line, **env)
    assert done.stderr == ""
    return [answer.split("\t")[0] for answer in done.stdout.splitlines()]


# --- commands and options ------------------------------------------------------------


WITHOUT_A_DAEMON: list[tuple[str, list[str] | None]] = [
    ("hiboss env", ["envelope"]),
    (
        "hiboss agent ",
        [
            "register",
            "check",
            "providers",
            "list",
            "set",
            "delete",
            "self",
            "status",
            "instructions",
            "sessions",
            "refresh",
            "pause",
            "resume",
            "detach",
            "background",
            "heartbeat",
            "adapters",
            "bind",
            "unbind",
            "bindings",
            "permission",
            "token",
        ],
    ),
    ("hiboss agent to", ["token"]),
    ("hiboss wa", ["watch"]),
    ("hiboss cron ", ["create", "set", "list", "show", "enable", "disable", "delete", "run", "explain"]),
    ("hiboss cron create --ca", ["--catch-up"]),
    ("hiboss cron create --catch-up ", ["skip", "once", "all"]),
    ("hiboss cron set --overlap q", ["queue"]),
    ("hiboss poll --format ", ["text", "json", "hook"]),
    ("hiboss run ", ["list", "get", "tail", "cancel", "pause", "resume", "steer"]),
    ("hiboss run list --status c", ["completed", "cancelled"]),
    ("hiboss user ", ["register", "list", "delete", "token"]),
    ("hiboss agent register --busy ", ["collect", "followup", "interrupt", "steer", "end-of-turn"]),
    ("hiboss inbox --pe", ["--peek"]),
    ("hiboss chat --on", ["--once"]),
    ("hiboss lane ", ["list", "retry", "pause", "resume"]),
    ("hiboss lane pause --to", ["--token"]),
    ("hiboss envelope re", ["read", "release", "retry", "restore"]),
    ("hiboss agent token ", ["rotate", "revoke"]),
    ("hiboss permission policy s", ["set"]),
    ("hiboss envelope list --st", ["--status"]),
    ("hiboss agent token rotate --na", []),  # an old flag is taken, and not suggested
    ("hiboss envelope list --status ", ["pending", "done", "failed", "cancelled"]),
    ("hiboss envelope list --status d", ["done"]),
    ("hiboss envelope list --status=d", ["--status=done"]),
    ("HIBOSS_HOME=/x hiboss completion show --shell ", ["bash", "zsh", "fish"]),
    ("hiboss envelope send --text ", []),
    ("hiboss nonsense --nonsense ", None),
    ("hiboss --version e", ["envelope"]),
]


def test_commands_options_and_their_values_need_no_daemon(shell: Shell) -> None:
    with sweep() as row:
        for line, expected in WITHOUT_A_DAEMON:
            with row(line):
                found = values(shell, line)
                assert expected is None or found == expected


def test_after_a_verb_its_options_come(office: Office) -> None:
    found = values(office, "hiboss envelope list --unread ")
    assert {"--status", "--as", "--json", "--box"} <= set(found) and "--unread" not in found


# --- names and ids -------------------------------------------------------------------


OF_THIS_OFFICE = [
    ("hiboss agent set ", ["kai", "nex"]),
    ("hiboss agent set --name ", ["kai", "nex"]),
    ("hiboss agent delete --as kai N", ["nex"]),
    ("hiboss agent token rotate k", ["kai"]),
    ("hiboss agent register k", []),
    ("hiboss boss set --name ", []),
    ("hiboss envelope send --to ", ["agent:kai", "agent:nex", "user:boss", "user:ann"]),
    ("hiboss send ", ["kai", "nex", "boss", "ann"]),
    ("hiboss send a", ["ann"]),
    ("hiboss chat ", ["kai", "nex", "boss", "ann"]),
    ("hiboss chat --as kai n", ["nex"]),
    ("hiboss inbox --from k", ["kai"]),
    ("hiboss agent status n", ["nex"]),
    ("hiboss agent instructions n", ["nex"]),
    ("hiboss agent check n", ["nex"]),
    ("hiboss agent sessions n", ["nex"]),
    ("hiboss agent refresh n", ["nex"]),
    ("hiboss agent background n", ["nex"]),
    ("hiboss user delete ", ["ann"]),
    ("hiboss user token rotate ", ["ann"]),
    ("hiboss user register a", []),
    ("hiboss read --as kai ", ["e2"]),
    ("hiboss reply --as kai ", ["e2"]),
    ("hiboss run list --agent k", ["kai"]),
    ("hiboss run get ", ["r1"]),
    ("hiboss run get --as kai r", []),
    ("hiboss run tail ", ["r1"]),
    ("hiboss run cancel --id ", ["r1"]),
    ("hiboss envelope send --from-name x --to agent:k", ["agent:kai"]),
    ("hiboss envelope list --from=user", ["--from=user:boss", "--from=user:ann"]),
    ("hiboss envelope list --address agent:n", ["agent:nex"]),
    ("hiboss envelope list --as ", ["ann", "boss", "kai", "nex"]),
    ("hiboss agent self --as k", ["kai"]),
    ("hiboss envelope read --as kai ", ["e2"]),
    ("hiboss envelope restore --as kai ", ["e1"]),
    ("hiboss envelope ack --address agent:kai ", ["e2"]),
    ("hiboss envelope cancel --as nex ", ["e2"]),
    ("hiboss envelope get --as nex ", ["e3", "e2", "e1"]),
    ("hiboss envelope send --as kai --reply-to e", ["e2"]),
    ("hiboss envelope list --as kai --thread ", ["e2"]),
    ("hiboss cron show --as kai ", ["s1"]),
    ("hiboss cron delete --as nex s", []),
    ("hiboss cron create --as kai --to agent:k", ["agent:kai"]),
    ("hiboss watch --address agent:n", ["agent:nex"]),
    ("hiboss message edit --as nex ", ["e2", "e1"]),
    ("hiboss message delete --as kai ", ["e3"]),
    ("hiboss reaction set --as kai ", ["e2", "e3"]),
    ("hiboss reaction remove --as nex ", ["e3", "e2", "e1"]),
    ("hiboss ask answer ", ["q2"]),
    ("hiboss ask get ", ["q2", "q1"]),
    ("hiboss ask cancel --as kai q", []),
    ("hiboss ask wait --as ann ", ["q2"]),
    ("hiboss ask create x --to agent:k", ["agent:kai"]),
    ("hiboss message get --as kai ", ["e2", "e3"]),
    ("hiboss message read --as kai ", ["e2"]),
    ("hiboss trace --as kai ", ["e2", "e3"]),
    ("hiboss envelope unsnooze --as kai ", []),
    ("hiboss prime n", ["nex"]),
    ("hiboss contact block ", ["channel:folder:reports"]),
    ("hiboss contact block --as kai ", []),
    ("hiboss contact approve channel:", []),  # it is allowed already
    ("hiboss contact route ", ["channel:folder:reports"]),
    ("hiboss contact route channel:folder:reports --agent k", ["kai"]),
]


def test_names_and_ids_are_those_of_this_office(office: Office) -> None:
    with sweep() as row:
        for line, expected in OF_THIS_OFFICE:
            with row(line):
                assert values(office, line) == expected


def test_groups_conversations_and_threads_are_those_that_one_is_in(tmp_path: Path) -> None:
    with open_office(tmp_path) as office:
        office.daemon.register("kai")
        office("group", "create", "core-team", "--member", "kai", "--as", "nex", "--description", EVIL)
        office("group", "create", "lobby", "--open", "--as", "nex")
        asked = {"to": "group:core-team", "text": "who has time?"}
        office.daemon.call("envelope.send", token=office.token("nex"), **asked)
        office.daemon.call("envelope.send", token=office.token("kai"), reply_to="e2", text="I have")
        for line, expected in (
            ("hiboss group show --as kai ", ["core-team"]),
            ("hiboss group join --as kai ", ["lobby"]),
            ("hiboss group create c", []),
            ("hiboss group add core-team --as nex k", ["kai"]),
            ("hiboss group create x --member k", ["kai"]),
            ("hiboss group role core-team --as nex k", ["kai"]),
            ("hiboss envelope send --as kai --to group:", ["group:core-team"]),
            ("hiboss cron create --as kai --to group:", ["group:core-team"]),
            ("hiboss ask create x --as kai --to group:", []),
            ("hiboss send --as kai c", ["core-team"]),
            ("hiboss conversation show --as kai ", ["c1"]),
            ("hiboss message list --as kai --conversation ", ["c1"]),
            ("hiboss conversation create --as kai n", ["nex"]),
            ("hiboss thread show --as kai ", ["t1"]),
        ):
            assert values(office, line) == expected, line
        office("envelope", "snooze", "e2", "--until", "+1h", "--as", "kai")
        assert values(office, "hiboss envelope unsnooze --as kai ") == ["e2"]
        assert "PWNED" in ask(office, "zsh", "hiboss group show --as kai ").stdout
        assert "$(" not in ask(office, "zsh", "hiboss group show --as kai ").stdout


def test_who_asks_is_found_as_the_command_finds_it(office: Office) -> None:
    line = "hiboss envelope read e"
    assert values(office, line) == []  # the boss, who has no mail
    assert values(office, line, HIBOSS_TOKEN=office.token("kai")) == ["e2"]
    assert values(office, f"hiboss envelope read --token @{office.home.profile('kai')} ") == ["e2"]
    assert values(office, "hiboss envelope read --as nex ", HIBOSS_TOKEN=office.token("kai")) == ["e3"]


UNANSWERABLE = [
    "hiboss agent set --as nobody ",
    "hiboss agent set --token hba_wrong ",
    "hiboss agent set --token - --as kai ",
    "hiboss envelope read --as kai --address nonsense e9",
    'hiboss envelope send --text "unclosed --to ',
    "",
]


def test_what_cannot_be_answered_is_answered_with_silence(office: Office) -> None:
    for line in UNANSWERABLE:
        for how in ("bash", "zsh", "fish"):
            done = ask(office, how, line)
            assert done.stderr == "" and "Traceback" not in done.stdout, (how, line)


def test_without_a_daemon_or_a_home_there_are_no_names_and_no_noise(tmp_path: Path) -> None:
    shell = Shell(tmp_path / "home")
    for line in ("hiboss agent set k", "hiboss envelope send --to ", "hiboss envelope list --as "):
        assert values(shell, line) == []
    assert list(tmp_path.iterdir()) == []
    assert shell(env={"_HIBOSS_COMPLETE": "complete_tcsh"}).stderr == ""


# --- as each shell takes it ----------------------------------------------------------


def test_fish_gets_what_each_value_is(office: Office) -> None:
    done = ask(office, "fish", "hiboss envelope get --as kai ")
    assert done.stdout == "e2\tagent:nex the second\ne3\tagent:kai take your time\n"
    assert ask(office, "fish", "hiboss run tail ").stdout == "r1\tnex running\n"
    assert (
        ask(office, "fish", "hiboss agent set --provider d").stdout
        == "demo\ta few built-in answers; no network\n"
    )
    evil = ask(office, "fish", "hiboss agent set k").stdout
    assert evil == "kai\tit’s (touch PWNED) touch PWNED x /b (ok) 31mred\n"


def test_zsh_gets_a_call_in_which_nothing_of_a_stranger_is_evaluated(office: Office) -> None:
    done = ask(office, "zsh", "hiboss envelope send --to agent:k")
    preview = "it’s (touch PWNED) touch PWNED x /b (ok) 31mred"
    assert done.stdout == f"""_arguments '*: :(("agent\\\\:kai":"{preview}"))'\n"""
    assert ask(office, "zsh", "hiboss envelope send --text ").stdout == "_files\n"


@pytest.mark.parametrize(
    ("line", "breaks", "expected"),
    [
        ("hiboss envelope send --to agent:k", "\"'><=;|&(:", "kai"),
        ("hiboss envelope send --to agent:k", " ", "agent:kai"),
        ("hiboss envelope send --to=agent:k", ":=", "kai"),
        ("hiboss envelope send --to=agent:k", "=", "agent:kai"),
        ("hiboss envelope list --status=d", ":=", "done"),
    ],
)
def test_bash_gets_the_part_of_a_word_it_replaces(
    office: Office, line: str, breaks: str, expected: str
) -> None:
    assert ask(office, "bash", line, COMP_WORDBREAKS=breaks).stdout == f"{expected}\n"


def test_in_a_real_bash_the_tab_key_completes_an_address(office: Office, tmp_path: Path) -> None:
    path = f"{os.path.dirname(HIBOSS)}:{os.environ['PATH']}"
    env = office.environment(PATH=path, HOME=str(tmp_path), TERM="dumb", PS1="")
    assert office("completion", "install", "--shell", "bash", env={"HOME": str(tmp_path)}).rc == 0
    master, slave = pty.openpty()
    bash = subprocess.Popen(
        ["bash", "-i"], stdin=slave, stdout=slave, stderr=slave, env=env, start_new_session=True
    )
    os.close(slave)
    screen = b""
    try:
        os.write(master, b"echo rea''dy\n")
        for typed, wanted in ((b"hiboss envelope send --to agent:k\t", b"ready"), (b"", b"--to agent:kai ")):
            while wanted not in screen:
                assert select.select([master], [], [], SECONDS)[0], screen
                screen += os.read(master, 65_536)
            os.write(master, typed)
    finally:
        bash.kill()
        bash.wait()
        os.close(master)


# --- showing and installing ----------------------------------------------------------


@pytest.mark.parametrize("how", ["bash", "zsh", "fish"])
def test_the_script_is_shown(tmp_path: Path, how: str) -> None:
    shell = Shell(tmp_path / "home")
    done = shell.ok("completion", "show", "--shell", how)
    assert f"_HIBOSS_COMPLETE=complete_{how}" in done.stdout
    in_json = shell("completion", "show", "--shell", how, "--json").json
    assert in_json == {"shell": how, "script": done.stdout.removesuffix("\n")}


@pytest.mark.parametrize(
    ("how", "script", "start", "line"),
    [
        ("bash", ".bash_completions/hiboss.sh", ".bashrc", "source 'HOME/.bash_completions/hiboss.sh'"),
        ("zsh", ".zfunc/_hiboss", ".zshrc", "fpath+=~/.zfunc; autoload -Uz compinit; compinit"),
    ],
)
def test_installing_adds_one_line_to_what_the_shell_reads_and_says_so(
    tmp_path: Path, how: str, script: str, start: str, line: str
) -> None:
    (tmp_path / start).write_bytes(b"# mine \xff without a newline")
    shell, env = Shell(tmp_path / "home"), {"HOME": str(tmp_path)}
    done = shell("completion", "install", "--shell", how, env=env)
    assert done.rc == 0 and "next shell" in done.stderr
    places = {"script": str(tmp_path / script), "changed": str(tmp_path / start)}
    assert done.record == {"shell": how, **places}
    added = line.replace("HOME", str(tmp_path)).encode()
    assert (tmp_path / start).read_bytes() == b"# mine \xff without a newline\n" + added + b"\n"
    assert (tmp_path / script).read_text() == shell("completion", "show", "--shell", how).stdout
    again = shell("completion", "install", "--shell", how, env=env)
    assert again.record == {"shell": how, "script": str(tmp_path / script)}
    assert (tmp_path / start).read_bytes().count(added) == 1


def test_fish_reads_its_directory_so_nothing_else_is_changed(tmp_path: Path) -> None:
    shell = Shell(tmp_path / "home")
    done = shell("completion", "install", "--shell", "fish", "--json", env={"HOME": str(tmp_path)})
    script = tmp_path / ".config/fish/completions/hiboss.fish"
    assert done.json == {"shell": "fish", "script": str(script), "changed": None}
    assert script.is_file() and [path.name for path in tmp_path.iterdir()] == [".config"]


def test_the_shell_it_was_called_from_is_found(tmp_path: Path) -> None:
    done = Shell(tmp_path / "home").run(["bash", "-c", f"{HIBOSS} completion show; true"])
    assert (done.rc, done.stderr) == (0, "") and "complete_bash" in done.stdout
