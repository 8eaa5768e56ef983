"""Plain commands against real daemons: the quick way prints, writes and ends as the whole way, by Typer."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import socketserver
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from hiboss.cli.quick import parsing
from tests.support import command_server
from tests.support.cli import HIBOSS, SECONDS, Office, open_office
from tests.support.forked_programs import WHOLE_WAY
from tests.support.sweeps import sweep
from tests.support.waits import wait_until

WHOLE = [sys.executable, "-m", "hiboss.cli.main"]
MANY = 100  # messages: more than fits into a pipe


class Pair:
    """Two offices in the same state: one is spoken to by the quick way, the other by Typer."""

    def __init__(self, quick: Office, whole: Office) -> None:
        self.offices = {HIBOSS: quick, WHOLE_WAY: whole}

    def same(self, *words: str, stdin: bytes = b"", **env: str) -> tuple[int, str, str]:
        """Run a command in both; return how it ended, which must be the same."""
        quick, whole = (
            _masked(
                office,
                command_server.call(
                    [program, *words], stdin, "/", office.environment(**_placed(office, env)), SECONDS
                ),
            )
            for program, office in self.offices.items()
        )
        assert quick == whole, words
        return quick


def _placed(office: Office, env: dict[str, str]) -> dict[str, str]:
    return {name: value.replace("HOME/", f"{office.home.path}/") for name, value in env.items()}


def _masked(office: Office, ended: tuple[int, bytes, bytes]) -> tuple[int, str, str]:
    """How a command ended, without what differs between two homes."""
    status, *streams = ended
    out, err = (_mask(stream.decode(), office.home.path) for stream in streams)
    return status, out, err


def _mask(text: str, home: str) -> str:
    text = text.replace(home, "HOME")
    text = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", "TIME", text)
    return re.sub(r"\b[0-9a-f]{8}(?=-[a-z]\d+)", "EPOCH", text)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    with ExitStack() as stack:
        offices = [stack.enter_context(open_office(tmp_path_factory.mktemp("d"))) for _ in range(2)]
        for office in offices:
            office.daemon.call("boss.set", token=office.token("boss"), timezone="Asia/Shanghai")
            office.daemon.register("kai")
        yield Pair(*offices)


# Each line as a shell would split it; the state that one leaves is the one that the next finds.
STORY = """
inbox
inbox --json
team
team --json
run list
run list --json --status failed -n 3
send kai hello
send --json kai hello --as nex
send kai,nex several
send user:boss --as nex from-nex
send --as=nex user:boss "two\\nlines ünï \u202eabc"
send boss --as nex -- --not-an-option
send boss --as nex - < piped
send boss --as nex --deliver-at +2h later
send boss --as nex --attachment /nowhere/at/all text
send nobody hello
send kai
send kai ""
send kai "a" --as nobody
send kai a --as nex --token x
send kai a --token hba_wrong
envelope send --to boss --as nex --text hi --subject "a subject" --priority high --scope module:auth --ref issue:42
envelope send --to boss --to kai --as nex --text hi --meta a=1 --meta b=text --type markdown --key k1
envelope send --to boss --to kai --as nex --text hi --meta a=1 --meta b=text --type markdown --key k1 --json
envelope send --to boss --as nex --text hi --not-interruptible --ack-by 30m --trace-id t1
envelope send --to boss --as nex --text=hi --text-file=/nowhere
envelope send --to boss --as nex --text - < piped
envelope send --to boss --as nex --scope wrong --text x
envelope send --text x
inbox --peek
inbox --peek --json -n 2
inbox --peek -n 200
inbox --unread --from nex
inbox --mentions --peek
inbox --scope module:auth --peek
inbox --ref issue:42 --peek
inbox --ref wrong
inbox --thread e4
inbox --snoozed
inbox --address kai
inbox --address kai --as nex
envelope list
envelope list --json
envelope list --box outbox
envelope list --box=all -n=2
envelope list --box all --number 2 --count
envelope list --status failed
envelope list --oldest-first --count -n 1
envelope list --created-after -1D --created-before 2020-01-01
envelope list --as-turn --address nex
envelope list --as-turn --unread
envelope list --after nonsense
envelope get e1
envelope get e4 --json
envelope get e999
envelope get x
envelope get e1 e2
read e4
read e4 e5 e4 --json
read e1
read e999
reply e4 "yes, do it"
reply e5 - --json < piped
reply e999 x
reply e4
poll
poll --as nex
poll --as nex --json
poll --as kai --format json
poll --as nex --session other --format hook
poll --as nex --session other --format hook --always-block
poll --always-block
poll --as nobody --format hook
envelope wait --timeout 0.1s --as nex
envelope wait --timeout 0.1s --as nex --json
envelope wait --timeout nonsense
watch --timeout 0.1s
watch --timeout 0.1s --as nex --json
envelope ack e1 e2 --as kai
envelope ack --all --up-to e9 --as kai
envelope ack --all --as nex --json
envelope ack
envelope ack e999
envelope ack e1 --claim k99 --as kai
envelope wait --timeout 0.1s --as nex
envelope wait --timeout=0.1s --as=nex --json
envelope claim --as kai -n 1
envelope claim --as kai --lease 1m --json
envelope release e999 --as kai
envelope archive e4
envelope list --box archived
envelope restore e4 --json
envelope trash e5
envelope cancel e14 --as nex
envelope retry e14 --as nex
envelope read --all --up-to e6
envelope read e7
envelope thread e4
run get r1
run tail
run cancel r1 --json
inbox
inbox
inbox --help
inbox -h --json
envelope --help
envelope
inbox e4
inbox -n
inbox -n x --json
inbox -n5 --peek
inbox --unknown --json
envelope lst
read --id e4
read
--json inbox
--version
--help
-h
""".splitlines()[1:]


@pytest.mark.slow
def test_a_story_told_in_both_ways_is_the_same(pair: Pair) -> None:
    quick, statuses = 0, []
    for line in STORY:
        words, _, piped = line.partition(" < ")
        split = shlex.split(words.replace("\\n", "\n"))
        quick += parsing.read(split) is not None
        status, _, _ = pair.same(*split, stdin=b"from a pipe\n" if piped else b"")
        statuses.append(status)
    assert quick > 80 and statuses.count(0) > 60 and set(statuses) == {0, 1, 2, 4}


ENVIRONMENTS = [
    {"HIBOSS_TOKEN": "hba_wrong"},
    {"HIBOSS_TOKEN": " "},
    {"HIBOSS_TOKEN_FILE": "HOME/tokens/nex"},
    {"HIBOSS_TOKEN_FILE": "HOME/tokens/nobody"},
    {"HIBOSS_AGENT": "nex"},
    {"CLAUDECODE": "1"},
    {"HIBOSS_SESSION": "mine", "HIBOSS_TOKEN_FILE": "HOME/tokens/kai"},
    {"HIBOSS_HOME": "/nowhere"},
    {
        "_HIBOSS_COMPLETE": "complete_bash",
        "_TYPER_COMPLETE_ARGS": "hiboss inb",
        "COMP_WORDS": "hiboss inb",
    },
]


def test_the_environment_says_the_same_in_both_ways(pair: Pair) -> None:
    with sweep() as row:
        for env in ENVIRONMENTS:
            for line in ("inbox --peek", "poll --json", "team --json", "send kai x", "read e1"):
                with row((env, line)):
                    pair.same(*line.split(), **env)


def test_a_token_can_be_piped_in_both_ways(pair: Pair) -> None:
    pair.same("inbox", "--token", "-", "--peek", stdin=b"hba_wrong\n")
    pair.same("send", "kai", "-", "--token", "-", stdin=b"x")
    pair.same("send", "kai", "-", "--token=@/nowhere", stdin=b"x")
    pair.same("send", "kai", "-", stdin=b"\xff\xfe")


# --- how it ends -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Office]:
    """An office where a list is longer than what fits into a pipe."""
    with open_office(tmp_path_factory.mktemp("d")) as office:
        token = office.token("nex")
        for number in range(MANY):
            office.daemon.call("envelope.send", token=token, to="user:boss", text=f"{number} " * 500)
        yield office


LONG = ["envelope", "list", "-n", "100"]
SHORT = ["envelope", "list", "-n", "1"]
ENDS = {
    "nobody reads": "{} | true",
    "somebody reads a line": "{} | head -n 1",
    "no room on the disk": "{} > /dev/full",
    "standard output is closed": "{} >&-",
    "standard error is closed": "{} 2>&-",
    "both are closed": "{} >&- 2>&-",
    "standard input is closed": "{} <&-",
}


def ended(office: Office, program: list[str], words: list[str], script: str) -> tuple[int, str, str]:
    """Run a line of shell in which the command is `{}`; its status is that of the command."""
    line = script.format(subprocess.list2cmdline([*program, *words]))
    done = office.run(["bash", "-c", f"{line}; exit ${{PIPESTATUS[0]}}"])
    return done.rc, done.stdout, re.sub(r'File "[^"]*", line \d+, in .*\n.*\n', "", done.stderr)


@pytest.mark.slow
@pytest.mark.parametrize("script", ENDS.values(), ids=list(ENDS))
def test_a_stream_that_cannot_be_written_ends_both_ways_alike(full: Office, script: str) -> None:
    with sweep() as row:
        for words in (LONG, SHORT, [], ["--help"], ["inbox", "--as", "nobody"]):
            with row(words):
                quick, whole = (ended(full, program, words, script) for program in ([HIBOSS], WHOLE))
                assert quick[:2] == whole[:2] and bool(quick[2]) == bool(whole[2])
                assert quick[2].splitlines()[-1:] == whole[2].splitlines()[-1:]


@pytest.mark.parametrize("more", [[], ["--json"]], ids=["text", "json"])
def test_an_interrupt_ends_both_ways_alike(full: Office, more: list[str]) -> None:
    seen = []
    for program in ([HIBOSS], WHOLE):
        command = [*program, "envelope", "wait", "--as", "nex", "--timeout", "50s", *more]
        with subprocess.Popen(
            command, env=full.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            wait_until(lambda: waits(process.pid))
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=SECONDS)
        seen.append((process.returncode, out, err))
    assert seen[0] == seen[1] and seen[0][0] == 130


def waits(pid: int) -> bool:
    """Whether a process has a connection to the daemon."""
    files = f"/proc/{pid}/fd"
    with suppress(FileNotFoundError):  # one that was closed meanwhile
        return any(os.readlink(f"{files}/{one}").startswith("socket:") for one in os.listdir(files))
    return False


@pytest.mark.slow
def test_help_of_the_root_is_what_typer_prints_at_every_width(full: Office) -> None:
    for columns in ("", "x", "79", "80", "200"):
        for words in (["--help"], []):
            quick, whole = (
                full.run([*program, *words], env={"COLUMNS": columns}) for program in ([HIBOSS], WHOLE)
            )
            assert quick == whole, (columns, words)


# --- what it costs ---------------------------------------------------------------------


@contextmanager
def relayed(office: Office, directory: Path) -> Iterator[tuple[str, list[str]]]:
    """A home whose socket passes each request on to the daemon of an office, and the methods that were called."""
    (directory / "tokens").symlink_to(office.home.tokens)
    called: list[str] = []

    class Relay(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            request = json.loads(self.rfile.readline())
            called.append(request["method"])
            (answer,) = office.daemon.exchange(request, answers=1)
            self.wfile.write(json.dumps(answer).encode() + b"\n")

    with socketserver.ThreadingUnixStreamServer(str(directory / "daemon.sock"), Relay) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,)).start()
        try:
            yield str(directory), called
        finally:
            server.shutdown()


def test_a_send_is_one_call(full: Office, tmp_path: Path) -> None:
    with relayed(full, tmp_path) as (home, called):
        for words in (["send", "nex", "hi"], ["envelope", "send", "--to", "nex", "--text", "hi", "--json"]):
            assert full(*words, env={"HIBOSS_HOME": home}).rc == 0
    assert called == ["envelope.send", "envelope.send"]


@pytest.mark.parametrize("words", [["inbox"], ["send", "nex", "hi"], ["team"], ["--help"]], ids=" ".join)
def test_a_plain_command_imports_no_typer(full: Office, words: list[str]) -> None:
    """Each of these takes a tenth of the time that `python -c pass` takes, or more."""
    slow = ("typer", "typing", "dataclasses", "inspect", "socket", "subprocess", "importlib.util", "argparse")
    done = full.run([sys.executable, "-X", "importtime", HIBOSS, *words])
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert done.rc == 0 and "hiboss.cli.quick.program" in imported
    assert imported.isdisjoint(slow), imported.intersection(slow)
