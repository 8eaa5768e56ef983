"""The program behind `hiboss mcp`. It starts in milliseconds, so it reads its few options without Typer."""

from __future__ import annotations

import gc
import os

from ...core.errors import HibossError, UnreadableFile
from ...core.paths import Home
from . import speaker
from .pump import Pump
from .speaker import Options
from .worker_link import WorkerLink, connect

_VALUES = {"--token": "token", "--as": "as_", "--or-as": "or_as", "--agent": "agent"}
_SWITCHES = {"--as-boss": "as_boss", "--dotted": "dotted", "--json": "json"}
INTERRUPTED = 130
TERMINAL = (
    "hiboss mcp is made for MCP clients, which start it themselves: hiboss mcp install --client claude."
    " It reads MCP from this terminal now; Ctrl-D ends it."
)


def main(words: list[str]) -> int | None:
    """Serve a client; return the exit status. None: these words are for Typer (help, a verb, wrong usage)."""
    options = read_options(words)
    return None if options is None else serve(options)


def read_options(words: list[str]) -> Options | None:
    """Return what the words say; None where they are not the plain options."""
    options, given = Options(), set()
    rest = iter(words)
    for word in rest:
        name, sign, value = word.partition("=")
        if word in _SWITCHES:
            setattr(options, _SWITCHES[word], True)
        elif name not in _VALUES or name in given:
            return None
        else:
            value = value if sign else next(rest, "--")
            if value.startswith("--"):
                return None
            setattr(options, _VALUES[name], value)
            given.add(name)
    return options


def serve(options: Options) -> int:
    """Carry MCP until the client ends; return the exit status."""
    try:
        speaker.check(options)
        stdin, stdout = _streams()
        if os.isatty(stdin):
            _note(TERMINAL)
        home = Home()
        pump = Pump(stdin, stdout, lambda: _link(home, options, pump), _note)
        gc.enable()  # it can run for weeks
        pump.run()
    except HibossError as error:
        return _fail(error, options)
    except KeyboardInterrupt:
        return INTERRUPTED
    return 0


def _link(home: Home, options: Options, pump: Pump) -> WorkerLink:
    # Each time anew: a token that was rotated meanwhile is in its profile.
    wait = pump.check_client if pump.is_starting else None
    token = speaker.find_token(home, options, wait)
    greeting = {"token": token, "agent": options.agent, "dotted": options.dotted}
    return connect(home, greeting, pump.check_client)


def _streams() -> tuple[int, int]:
    """Return standard input and output. Whatever is printed by mistake goes to standard error from now on."""
    for number, name in ((0, "standard input"), (1, "standard output")):
        try:
            os.fstat(number)
        except OSError:
            raise UnreadableFile(path=name, why="it is closed") from None
    stdout = os.dup(1)
    try:
        os.dup2(2, 1)
    except OSError:  # standard error is closed
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return 0, stdout


def _note(text: str) -> None:
    from .. import output

    output.note(text)


def _fail(error: HibossError, options: Options) -> int:
    from .. import output

    output.prepare()
    output.Mode.json = output.Mode.json or options.json
    return output.fail(error)
