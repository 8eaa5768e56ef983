"""Stand in for the `hiboss` command in a shell: a server forks it, with what this process has, and this ends as it ends.

That takes a fifth of the time. This is run by `python -IS`, so it imports nothing but the standard library.
"""

import json
import os
import signal
import socket
import sys
from pathlib import Path
from types import FrameType

FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
SCRIPT = """#!{python} -IS
import sys
sys.path.insert(0, {here!r})
from forked_launcher import main
main({real!r}, {commands!r}, {daemons!r})
"""


def install(directory: Path, real: str, commands: str, daemons: str) -> None:
    """Write a `hiboss` there that lets these servers fork commands, and the daemons that they start."""
    script = directory / "hiboss"
    here = os.path.dirname(__file__)
    script.write_text(
        SCRIPT.format(python=sys.executable, here=here, real=real, commands=commands, daemons=daemons)
    )
    script.chmod(0o700)


def main(real: str, commands: str, daemons: str) -> None:
    """Run the command; one that stays in the foreground, and one inside a run, is the real one."""
    words = sys.argv[1:]
    own = os.path.dirname(os.path.abspath(sys.argv[0]))
    places = os.environ["PATH"].split(":")
    os.environ["PATH"] = ":".join(os.path.dirname(real) if place == own else place for place in places)
    if "HIBOSS_RUN" in os.environ or (words[:1] == ["up"] and "--detach" not in words):
        os.execv(real, [real, *words])
    asked = {
        "words": [real, *words],
        "cwd": os.getcwd(),
        "env": dict(os.environ),
        "daemons": daemons,
    }
    status = _run(commands, json.dumps(asked).encode() + b"\n")
    if status < 0:
        signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    os._exit(status)


def _run(address: str, asked: bytes) -> int:
    """Return its exit status, minus the number of the signal that ended it."""
    child = 0
    early: list[int] = []

    def forward(number: int, _: FrameType | None) -> None:
        if child:
            os.kill(child, number)
        else:
            early.append(number)

    for number in FORWARDED:
        signal.signal(number, forward)
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(address)
        socket.send_fds(connection, [asked[:1]], [0, 1, 2])
        connection.sendall(asked[1:])
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nothing, stream)  # whoever reads from it waits for the command alone
        answers = connection.makefile("r")
        child = int(answers.readline())
        for number in early:
            os.kill(child, number)
        return int(answers.readline())
