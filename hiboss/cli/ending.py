"""How a command ends: every kind of end becomes an exit status, and is reported in the format that was asked for."""

from __future__ import annotations

import os
import sys

from ..core.errors import HibossError
from . import output

TYPE_CHECKING = False  # importing typing would cost every command 3 ms
if TYPE_CHECKING:
    from collections.abc import Callable

INTERRUPTED = 130


def run_to_end(run: Callable[[], int | None]) -> int:
    """Run a command and return its exit status."""
    try:
        status = run() or 0
        if sys.stdout:
            sys.stdout.flush()  # here, where a closed pipe can still be caught
        if status == INTERRUPTED:  # how Typer reports Ctrl-C
            raise KeyboardInterrupt
        return status
    except HibossError as error:
        return output.fail(error)
    except BrokenPipeError:
        # The reader of our output is gone (`| head`): print nothing more, also not at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 1
    except KeyboardInterrupt:
        return output.ended("interrupted; the request may still be carried out", INTERRUPTED)
    except Exception as error:
        if not output.Mode.json:
            raise  # a defect of ours: the traceback is all we know
        return output.ended(f"hiboss failed, a defect of ours: {error!r}", 1)
