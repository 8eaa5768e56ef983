"""A reader with a terminal: run the blocks of a page, in order, against a real daemon.

A command that ends with `# refused: CODE` must fail with that error. Every other command must succeed without a
warning. A `text` block shows what the command before it printed; `…` in it stands for anything. After `hiboss chat`
it shows the screen, and the lines below `you` are typed.
"""

from __future__ import annotations

import os
import re
import select
import shlex
import signal
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing, suppress
from pathlib import Path

from hiboss.core.errors import exit_status
from hiboss.core.paths import Home
from tests.support import forked_launcher
from tests.support.cli import HIBOSS, SECONDS, Shell, gone
from tests.support.forked_programs import COMMAND, DAEMON, address
from tests.support.talk import talking
from tests.support.waits import wait_until

from .pages import ROOT, Block, Page

BIN = os.path.dirname(sys.executable)
_FOREGROUND = re.compile(r"(make up|hiboss up)(?! *(ARGS=)?--detach)(?!.* --detach)")
_TALK = re.compile(r"(\S*/)?hiboss chat( [\w:-]+)?( --as \w+)?")
_TYPED = re.compile(r"^you  \S+\n  (.+)$", re.MULTILINE)
# What differs from reader to reader in a conversation: times, the time zone, the name.
_DIFFERS = re.compile(r"\d\d:\d\d(?::\d\d \([\w/]+\))?|(?<=Hello )\w+(?=!)")
_REFUSED = re.compile(r"# refused: (\w+)$")
_WARNED = re.compile(r"^(error|warning|Usage|Traceback)\b", re.MULTILINE)
LAST_STEP = '--command "'  # in the last line that `hiboss up` prints
_HOME = re.compile(r"(export HIBOSS_HOME=|unset HIBOSS_HOME)")
_EMPTY = re.compile(r"no-[a-z]+: true\n")


class Drifted(AssertionError):
    """A block does something else than its page says."""


class Terminal:
    """One shell in a copy of the repository (made of links), with its own home and no network."""

    def __init__(self, directory: Path, *, installed: bool, web: bool = False, forked: bool = True) -> None:
        """Open it. `installed`: `hiboss` is on the PATH already. Without `forked`, it is the real command."""
        self.home = Home(str(directory / ".hiboss"))
        self._homes = [self.home]  # a page may choose another one
        # Not below `directory`: the path of a socket must be short.
        self._temporary = tempfile.TemporaryDirectory(prefix="reader_")
        self.place = directory / "repository"
        self.place.mkdir()
        for entry in ROOT.iterdir():
            if entry.name != ".venv":
                (self.place / entry.name).symlink_to(entry)
        (self.place / ".venv").mkdir()
        (self.place / ".venv/bin").symlink_to(BIN)
        (self.place / ".venv/users").touch()  # so make believes that everything is installed
        self._files = [directory / name for name in ("stdout", "stderr")]
        self._foreground: list[subprocess.Popen[str]] = []
        self.seconds: float = SECONDS  # that a command may take
        self.printed = ""  # by the last command
        self._expected = ""  # what the page shows below this block
        path = os.environ["PATH"]
        if forked:
            forked_launcher.install(directory, HIBOSS, address(COMMAND), address(DAEMON))
        if installed:
            path = f"{directory}:{BIN}:{path}"
        elif forked:
            self._install_forked(directory / "hiboss")
        self.environment = {
            "PATH": path,
            "HOME": str(directory),
            "HIBOSS_HOME": str(self.home),
            "TMPDIR": self._temporary.name,
            "LANG": "C.UTF-8",
            "HIBOSS_WEB_ENABLED": "on" if web else "off",
            "HIBOSS_WEB_PORT": "0",  # the pages are followed at the same time
            "PIP_NO_INDEX": "1",  # tests install nothing
        }
        self._shell = self._open_shell()

    def _install_forked(self, launcher: Path) -> None:
        """Let `.venv/bin/hiboss` be that; the other programs stay."""
        own = self.place / ".venv/bin"
        own.unlink()
        own.mkdir()
        for program in Path(BIN).iterdir():
            (own / program.name).symlink_to(launcher if program.name == "hiboss" else program)

    def _open_shell(self) -> subprocess.Popen[str]:
        return subprocess.Popen(
            ["bash", "--norc", "-o", "pipefail"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=self.environment,
            cwd=self.place,
            text=True,
            start_new_session=True,
        )

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        """End every process that this terminal started, by its pid."""
        try:
            self._shell.communicate(timeout=SECONDS)
            for process in self._foreground:
                os.killpg(process.pid, signal.SIGINT)  # as Ctrl-C does
                process.communicate(timeout=SECONDS)
        finally:
            for home in self._homes:
                stop_daemon(home)
            with suppress(ProcessLookupError):  # what a page started beside it, if it was not read to its end
                os.killpg(self._shell.pid, signal.SIGTERM)
            self._temporary.cleanup()

    # --- blocks --------------------------------------------------------------------------

    def read(self, page: Page) -> None:
        """Run all blocks of a page, as a reader would."""
        blocks = page.blocks("sh", "python", "text", "sql")
        for block, after in zip(blocks, [*blocks[1:], None], strict=True):
            self._expected = after.body if after and after.language == "text" else ""
            try:
                self.follow(block)
            except Drifted as error:
                raise Drifted(f"{page.path}:{block.line}: {error}") from None

    def follow(self, block: Block) -> None:
        if block.language == "text":
            compare(block.body, self.printed)
        elif block.language == "python":
            self._run_python(block.body)
        elif block.language == "sql":
            self._query(block.body)
        else:
            for command in commands(block.body):
                self.type(command)

    def type(self, command: str) -> None:
        """Run one command and check how it ends."""
        if _FOREGROUND.match(command.removeprefix(".venv/bin/")):
            self._start(command)
            return
        if _TALK.fullmatch(command):
            self._talk(command)
            return
        status, self.printed, said = self._run(command)
        refused = _REFUSED.search(command)
        if refused:
            if status != exit_status(refused[1]) or f"code: {refused[1]}" not in said.splitlines():
                raise Drifted(f"{command}\nended with {status}, not refused as {refused[1]}:\n{said}")
        elif status != 0 or _WARNED.search(said):
            raise Drifted(f"{command}\nended with {status}:\n{said or self.printed}")
        elif _EMPTY.fullmatch(self.printed):
            raise Drifted(f"{command}\nshows the reader nothing: {self.printed}")
        if _HOME.match(command):
            self._change_home()

    def _change_home(self) -> None:
        """Use the home that the shell now uses, also for programs, queries and conversations."""
        _, path, _ = self._run('printf %s "${HIBOSS_HOME:-$HOME/.hiboss}"')
        self.home = Home(path)
        self._homes.append(self.home)
        self.environment["HIBOSS_HOME"] = path

    def _run(self, command: str) -> tuple[int, str, str]:
        assert self._shell.stdin and self._shell.stdout
        out, err = self._files
        self._shell.stdin.write(f"{{\n{command}\n}} >'{out}' 2>'{err}' </dev/null\necho $?\n")
        self._shell.stdin.flush()
        if not select.select([self._shell.stdout], [], [], self.seconds)[0]:
            self._end_shell()
            raise Drifted(f"{command}\ndid not end:\n{out.read_text()}{err.read_text()}")
        answer = self._shell.stdout.readline().strip()
        if not answer:
            self._shell.communicate(timeout=SECONDS)
            self._shell = self._open_shell()
            raise Drifted(f"{command}\nended the shell:\n{err.read_text()}")
        return int(answer), out.read_text(), err.read_text()

    def _end_shell(self) -> None:
        """Kill the shell with everything in it, and open another."""
        os.killpg(self._shell.pid, signal.SIGKILL)
        self._shell.communicate(timeout=SECONDS)
        self._shell = self._open_shell()

    def _run_python(self, program: str) -> None:
        done = subprocess.run(
            [sys.executable, "-c", program], env=self.environment, capture_output=True, text=True, check=False
        )
        self.printed = done.stdout
        if done.returncode or not done.stdout.strip() or '"error"' in done.stdout:
            raise Drifted(f"the program ended with {done.returncode}:\n{done.stdout}{done.stderr}")

    def _query(self, statement: str) -> None:
        with closing(sqlite3.connect(f"file:{self.home.database}?mode=ro", uri=True)) as connection:
            try:
                found = connection.execute(statement).fetchall()
            except sqlite3.Error as error:
                raise Drifted(f"{statement}\nfailed: {error}") from None
        if not found:
            raise Drifted(f"{statement}\nfinds nothing")

    def _start(self, command: str) -> None:
        """Run a command that stays in the foreground, until it has printed the next steps."""
        process = subprocess.Popen(
            ["bash", "--norc", "-c", command],
            env=self.environment,
            cwd=self.place,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self._foreground.append(process)
        assert process.stdout
        self.printed = ""
        while LAST_STEP not in self.printed:
            line = process.stdout.readline()
            if not line:
                raise Drifted(f"{command}\nended at once:\n{self.printed}")
            self.printed += line

    def _talk(self, command: str) -> None:
        """Type the lines that the page shows, one after another, until the screen shows all of it."""
        shown = _DIFFERS.sub("…", self._expected)
        with talking(Shell(self.home.path), *shlex.split(command)[2:]) as screen:
            try:
                screen.ready()
                for number, sentence in enumerate(_TYPED.findall(self._expected), start=1):
                    screen.press(f"{sentence}\r")
                    screen.until(lambda number=number: len(_answers(screen.lines)) >= number, sentence)
                if shown:
                    screen.until(lambda: matches(shown, _said(screen.lines)), shown)
                screen.press("/quit\r")
                status = screen.ended()
            except AssertionError as error:
                raise Drifted(f"{command}\n{error}") from None
        if status:
            raise Drifted(f"{command}\nended with {status}:\n{screen.text}")
        self.printed = self._expected


def stop_daemon(home: Home) -> None:
    try:
        pid = int(Path(home.pid_file).read_text().split()[0])
    except (FileNotFoundError, IndexError):
        return
    if not gone(pid):
        os.kill(pid, signal.SIGTERM)
        wait_until(lambda: gone(pid))


def _answers(lines: list[str]) -> list[str]:
    return [line for line in lines if re.fullmatch(r"(?!you  )\S+  \d\d:\d\d", line)]


def _said(lines: list[str]) -> str:
    """The lines of the screen without the prompt."""
    return "\n".join(lines[:-1] if lines[-1].startswith(">") else lines)


def commands(script: str) -> list[str]:
    """The complete commands of a block: a here-document stays together, comment lines are left out."""
    found, begun = [], ""
    for line in script.splitlines():
        begun += line
        if _complete(begun):
            if begun.strip() and not begun.lstrip().startswith("#"):
                found.append(begun.strip())
            begun = ""
        else:
            begun += "\n"
    if begun:
        raise Drifted(f"{begun}\nis not a complete command")
    return found


def _complete(text: str) -> bool:
    if not re.search(r"[\\{(]$|<<|['\"]|\b(do|then)\b", text):
        return True
    done = subprocess.run(["bash", "-n"], input=text, capture_output=True, text=True, check=False)
    return done.returncode == 0 and not done.stderr and not text.endswith("\\")


def compare(claimed: str, printed: str) -> None:
    """Raise if the page shows something else than what was printed."""
    if not matches(claimed, printed):
        raise Drifted(f"the page shows:\n{claimed}\nand what was printed is:\n{printed}")


def matches(claimed: str, printed: str) -> bool:
    pattern = ".*".join(re.escape(part) for part in claimed.strip().split("…"))
    return re.fullmatch(pattern, printed.strip()) is not None
