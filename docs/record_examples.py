"""Makes the examples of the reference: calls every operation of a daemon and keeps the answers.

python -m docs.record_examples   writes hiboss/api/examples.json; then run python -m docs.generate

The daemon is a real one with its socket, and its clock stands still, so two recordings are the same.
What differs between two homes (tokens, paths, process ids) is replaced.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

from hiboss import __version__
from hiboss.api.discovery import EXAMPLES
from hiboss.api.uploads import store_upload
from hiboss.testing.frozen_clock import FrozenDaemon, frozen_daemon

from .example_calls import tell

MORNING = datetime(2026, 1, 27, 8, tzinfo=UTC)
LONGEST_LINE = 16 * 1024 * 1024  # bytes of one answer
LIST_ENTRIES = 2  # shown of a list of objects
WORDS = 10  # shown of a list of words: a shorter one looks as if it were all
POLICY_ENTRIES = 3
BRIEFING = 300  # characters shown
BOOT = 81904177263  # of facts
REAL_SECONDS = 60  # a limit for every wait
HOME, FILES = "/home/ada/.hiboss", "/home/ada"
URL = "http://127.0.0.1:9999"  # of the HTTP door, which listens here on any free port
FIXED: dict[str, Any] = {
    "pid": 4711,
    "mcp_pid": 4712,
    "pid_started": "1203477",
    "pull": "106efaf52f7f8972",
    "code": "K7QM2XPA",  # of a pairing
    "version": "1.0.0",
    "connections": 1,
    "writes_waiting": 0,
    "database_bytes": 262144,
    "next_wake_at": "2026-01-27T08:10:00.000Z",  # it is planned a moment later than a call is answered
    "default_boss_name": "ada",
    "default_timezone": "Europe/Berlin",
}
_TOKEN = re.compile(r"\b(hb[a-z]_)[\w-]{20,}|\b(whsec_)[\w+/=]{20,}")
_LOGIN = re.compile(r"(/login#)[\w-]{20,}")
_WORKER = re.compile(r"(/mcp-)[0-9a-f]{6}")
_NUDGE = re.compile(r"(\[hiboss r\d+)\.[0-9a-f]{8}\]")
_EPOCH = re.compile(r"^[0-9a-f]{8}(?=-[a-z]\d+|$)")


class Recorder:
    """Calls the operations over the socket, and keeps the first call of each and its answer."""

    def __init__(self, daemon: FrozenDaemon, directory: Path) -> None:
        self.directory = directory
        self.url = ""  # where the daemon serves HTTP
        self.examples: dict[str, dict[str, Any]] = {}
        self._daemon = daemon
        self._tokens: dict[str, str] = {}
        self._connections: dict[str | None, tuple[asyncio.StreamReader, asyncio.StreamWriter]] = {}
        self._numbers = count(1)

    async def __call__(self, method: str, who: str | None = "boss", **params: Any) -> Any:
        given = {name.removesuffix("_"): value for name, value in params.items()}
        result = await self.answer(method, who, given)
        if method not in self.examples:
            shown = {"token": self._tokens["boss"]} if method == "auth.login" else given
            self.examples[method] = {"params": self.plain(shown), "result": self.shown(method, result)}
        self._learn(method, result)
        return result

    async def answer(self, method: str, who: str | None, params: dict[str, Any]) -> Any:
        """Return the answer to one call; an error fails."""
        answer = await self.raw(method, who, params)
        if "error" in answer:
            raise AssertionError(f"{method} {params}: {answer['error']['message']}")
        return answer["result"]

    async def raw(self, method: str, who: str | None, params: dict[str, Any]) -> Any:
        """Call over the connection of this caller, and return the answer as it comes."""
        proof = {} if who is None else {"token": self._tokens[who]}
        request = {"jsonrpc": "2.0", "method": method, "params": params | proof, "id": next(self._numbers)}
        if who not in self._connections:
            opening = asyncio.open_unix_connection(self._daemon.home.socket, limit=LONGEST_LINE)
            self._connections[who] = await opening
        reader, writer = self._connections[who]
        writer.write(json.dumps(request).encode() + b"\n")
        async with asyncio.timeout(REAL_SECONDS):
            while (answer := json.loads(await reader.readline())).get("id") != request["id"]:
                pass  # a notification
        return answer

    def close(self) -> None:
        for _, writer in self._connections.values():
            writer.close()

    async def upload(self, who: str, name: str, content: bytes) -> None:
        context = self._daemon.daemon.dispatcher._context
        caller = context.auth.authenticate(self._tokens[who], "envelope.send")

        async def chunks() -> AsyncIterator[bytes]:
            yield content

        await store_upload(context, caller, name, "", chunks())

    async def until(self, found: Callable[[Any], Any], method: str, **params: Any) -> Any:
        async with asyncio.timeout(REAL_SECONDS):
            while not (wanted := found(await self.answer(method, "boss", params))):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        return wanted

    async def listening(self) -> None:
        """Wait until the daemon serves HTTP."""
        async with asyncio.timeout(REAL_SECONDS):
            while not (url := (await self.answer("daemon.status", None, {}))["web"]["url"]):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        self.url = url

    async def move(self, **by: float) -> None:
        await self._daemon.move(**by)

    def _learn(self, method: str, result: Any) -> None:
        """Remember the tokens that an answer shows."""
        if method == "setup.execute" and result["changed"]:
            self._tokens |= {"boss": result["boss_token"], result["agent_name"]: result["agent_token"]}
        elif method in ("agent.register", "user.register"):
            self._tokens[result[method.partition(".")[0]]["name"]] = result["token"]
        elif method == "attached.start":  # its token is in a file
            (known,) = self._daemon.home.known_sessions()
            self._tokens |= dict.fromkeys(("desk", "desk asks"), str(known["token"]))
        elif method.endswith("token.rotate"):
            self._tokens[result.get("name", "boss")] = result["token"]

    def shown(self, method: str, result: Any) -> Any:
        """Return an answer as the reference shows it."""
        if method == "rpc.discover":
            (ping,) = [one for one in result["methods"] if one["name"] == "daemon.ping"]
            brief = {name: ping[name] for name in ("name", "summary", "x-level", "x-effect", "x-door")}
            result = {**result, "methods": [brief], "components": {}}
        if method == "attached.start":
            result = {**result, "briefing": result["briefing"][:BRIEFING] + "…"}
        if method == "event.subscribe":
            result = {**result, "boot": BOOT}
        if "policy" in result:
            result = {**result, "policy": dict(list(result["policy"].items())[:POLICY_ENTRIES])}
        return self.plain(result)

    def plain(self, value: Any) -> Any:
        """Replace what differs between two homes, and cut lists."""
        if isinstance(value, dict):
            return {key: FIXED[key] if _is_fixed(key, one) else self.plain(one) for key, one in value.items()}
        if isinstance(value, list):
            shown = WORDS if all(isinstance(one, str) for one in value) else LIST_ENTRIES
            return [self.plain(one) for one in value[:shown]]
        if not isinstance(value, str):
            return value
        home = self._daemon.home
        for path, instead in (
            (home.socket, f"{HOME}/daemon.sock"),
            (str(home), HOME),
            (str(self.directory), FILES),
            (self.url or URL, URL),
            (__version__, FIXED["version"]),
        ):
            value = value.replace(path, instead)
        value = _WORKER.sub(r"\g<1>3f9a1c", _LOGIN.sub(r"\1…", value))
        return _EPOCH.sub(
            "5e9c2d71",
            _TOKEN.sub(lambda found: (found[1] or found[2]) + "…", _NUDGE.sub(r"\1.4f2a90c1]", value)),
        )


def _is_fixed(key: str, value: Any) -> bool:
    """A null stays as it is, like the pid of a run that is over."""
    return key in FIXED and (value is not None or key == "next_wake_at")


@asynccontextmanager
async def example_daemon(
    directory: Path, make: Callable[[FrozenDaemon, Path], Recorder] = Recorder
) -> AsyncIterator[Recorder]:
    """Start a daemon for the story, in an empty home."""
    web = {"HIBOSS_WEB_ENABLED": "on", "HIBOSS_WEB_PORT": "0"}
    async with frozen_daemon(directory, at=MORNING, set_up=False, **web) as daemon:
        await daemon.daemon.open_doors()
        recorder = make(daemon, directory)
        try:
            await recorder.listening()
            yield recorder
        finally:
            recorder.close()


async def record(directory: Path) -> dict[str, dict[str, Any]]:
    """Return an example of every operation that the story calls."""
    async with example_daemon(directory) as recorder:
        await tell(recorder)
        return recorder.examples


def text(examples: dict[str, dict[str, Any]]) -> str:
    """Return the content of the file."""
    return json.dumps(dict(sorted(examples.items())), indent=1, ensure_ascii=False) + "\n"


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="hiboss-") as directory:
        made = text(asyncio.run(record(Path(directory))))
    EXAMPLES.write_text(made, encoding="utf-8")
    sys.stdout.write(f"wrote {EXAMPLES}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
