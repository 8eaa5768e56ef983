"""The command line of the daemon process.

`python -m hiboss.daemon` serves until it is stopped. With `--ready-fd N` it reports on that file
descriptor whether its start succeeded. `python -m hiboss.daemon --once` answers one request from
standard input and ends; the CLI uses it to set up a home while no daemon runs. With `--check` it
loads the modules that the settings name, as a start does, and ends. With `--end-runs` it ends all runs
while the daemon does not answer.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys

from ..core.errors import HibossError
from ..core.paths import Home
from ..rpc import codec
from .end_runs import end_runs
from .lifecycle import check, log, once, report_start, run, serve


def main(arguments: list[str]) -> int:
    home = Home()
    if arguments in (["--once"], ["--check"], ["--end-runs"]):
        with os.fdopen(os.dup(1), "wb") as answers:
            os.dup2(2, 1)  # what a module prints is no answer
            try:
                answer = _answer(home, arguments[0])
            except HibossError as error:
                answer = codec.failure(1, error)
            answers.write(answer + b"\n")
        return 0
    ready = int(arguments[1]) if arguments[:1] == ["--ready-fd"] else None
    try:
        if run(serve(home, ready)):
            logging.shutdown()
            os._exit(0)  # an adapter or a provider ignores that it should end; everything is stored
    except HibossError as error:
        log.error("The daemon could not start: %s", error, extra={"action": "start"})
        report_start(ready, {"ready": False, "message": error.message, **error.payload()})
        if ready is None:
            sys.stderr.write(f"error: {error.message}\n")
        return error.exit
    return 0


def _answer(home: Home, option: str) -> bytes:
    if option == "--check":
        return check(home)
    request = sys.stdin.buffer.readline()
    return end_runs(home, request) if option == "--end-runs" else asyncio.run(once(home, request))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
