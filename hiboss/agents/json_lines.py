"""A program that speaks JSON lines: one object a line on its standard output, and on its input."""

from __future__ import annotations

import json
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from ..core.contracts.failures import LaneError, TurnError
from ..core.contracts.provider import LiveRun, Progress, TurnInput
from .child_process import Process, ProcessResult

LINE_BYTES = 32 * 1024 * 1024  # a tool may return a large file in one line

Line = dict[str, Any]


class JsonLines:
    """One program, started once. Its lines go to `on_line`; other output is ignored."""

    def __init__(self, arguments: Sequence[str], turn: TurnInput, environment: Mapping[str, str]) -> None:
        self._program = arguments[0]
        self._workspace = turn.workspace
        self._output_bytes = turn.output_bytes
        self._process = Process(arguments, turn.workspace, environment, turn.output_bytes)
        self._run: LiveRun | None = None
        self._on_line: Callable[[Line], Awaitable[None] | None] = lambda line: None
        self._rest: list[bytes] = []  # of the line that has not ended yet
        self._rest_bytes = 0

    async def start(self, run: LiveRun) -> None:
        """Start it and report it. Raises LaneError if it cannot be started."""
        try:
            await self._process.start()
        except OSError as error:
            raise cannot_start(self._program, self._workspace, error) from None
        await self._process.report(run.started)
        self._run = run

    async def converse(
        self, first: Sequence[Line], on_line: Callable[[Line], Awaitable[None] | None]
    ) -> ProcessResult:
        """Give it its first lines and read it until it ends, and all it started. If cancelled, end it first.

        What `on_line` raises ends the program, and is raised here. Call `close` when it has no more to do.
        """
        self._on_line = on_line
        given = b"".join(_encoded(one) for one in first)
        result = await self._process.run_to_end(given, self._read, keep_input=True)
        if result.too_much_output:
            raise TurnError("too_long", f"it wrote more than {self._output_bytes} bytes and was ended")
        if self._rest:  # a last line without a line break
            await self._take(b"".join(self._rest))
        return result

    def write(self, line: Line) -> bool:
        """Give it a line, without waiting until it is read. Return False if it takes no more."""
        return self._process.write(_encoded(line))

    def close(self) -> None:
        """Close its standard input: it ends then, if it has nothing more to do."""
        self._process.close_input()

    async def end(self) -> None:
        """End it and all it started, if it does not end by itself."""
        await self._process.end()

    async def _read(self, part: bytes) -> None:
        assert self._run is not None
        self._run.progress(Progress("alive"))
        *ended, rest = part.split(b"\n")
        for piece in ended:
            line = b"".join([*self._rest, piece])
            self._rest, self._rest_bytes = [], 0
            await self._take(line)
        if rest:
            self._rest.append(rest)
            self._rest_bytes += len(rest)
            if self._rest_bytes > LINE_BYTES:
                raise TurnError("too_long", f"it wrote a line of more than {LINE_BYTES} bytes")

    async def _take(self, line: bytes) -> None:
        try:
            found = json.loads(line.decode("utf-8", "replace"))
        except (ValueError, RecursionError):  # a warning in plain text
            return
        if isinstance(found, dict) and (taken := self._on_line(found)) is not None:
            await taken


def cannot_start(program: str, workspace: str, error: OSError) -> LaneError:
    """Return the error for a program that could not be started."""
    if not os.path.isdir(workspace):
        return no_workspace(workspace)
    if isinstance(error, FileNotFoundError):
        return LaneError("no_program", f"the program {program} was not found (started in {workspace})")
    return LaneError("no_program", f"the program {program} cannot be run: {error.strerror or error}")


def no_workspace(workspace: str) -> LaneError:
    """Return the error for a workspace in which no program can be started."""
    wrong = "is not a directory" if os.path.lexists(workspace) else "does not exist"
    return LaneError("no_workspace", f"its workspace {workspace} {wrong}")


def _encoded(line: Line) -> bytes:
    return json.dumps(line).encode() + b"\n"
