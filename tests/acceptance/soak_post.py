"""A post office whose daemon dies: channels that remember every post, and what a death left behind.

`Post` is a home with agent nex, bound to a scripted place (three chats) and to a folder, and
agent ada, who fetches. `Death` is what lay in the database and on the platform when the
daemon was dead.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hiboss.core.errors import DaemonUnreachable
from hiboss.testing.running_daemon import Answered, RunningDaemon
from tests.support.daemons import set_up
from tests.support.waits import wait_until

PLACES = ("pigeon", "north", "south")
CHUNK = 40
MODULES = {"HIBOSS_ADAPTERS_MODULES": "hiboss.testing.scripted_adapter"}

Chunk = tuple[str, int]  # envelope and number, like ("e81", 0)
Row = dict[str, Any]


class Post:
    """The home, its daemon, and the directories of its platforms."""

    def __init__(self, directory: Path, chunk: int = CHUNK, **env: str) -> None:
        self._env = {**MODULES, **env}
        self.pigeon = directory / "pigeon"
        self.tray = directory / "tray"
        (self.pigeon / "inbox").mkdir(parents=True)
        (self.pigeon / "settings.json").write_text(json.dumps({"places": PLACES[1:], "chunk": chunk}))
        self.daemon = RunningDaemon(set_up(directory))
        self.start()
        self.daemon.register("ada")
        for kind, path in (("scripted", self.pigeon), ("folder", self.tray)):
            self.boss("agent.bind", name="nex", adapter_type=kind, settings={"path": str(path)})
        self.wait_for_adapters()

    def start(self, crash_at: str | None = None, **env: str) -> bool:
        """Whether it lives: one that is to crash may be dead before it could say that it is ready."""
        crash = {"HIBOSS_CRASH_AT": crash_at} if crash_at else {}
        self._posted_before = len(self.posts())
        try:
            self.daemon.start(**{**self._env, **crash, **env})
        except DaemonUnreachable:
            if crash_at is None:
                raise
            return False
        return True

    def wait_for_adapters(self) -> None:
        wait_until(lambda: all(one["state"] == "running" for one in self.boss("agent.bindings")["bindings"]))

    def boss(self, method: str, **params: Any) -> Any:
        return self.daemon.call(method, token=self.daemon.token("boss"), **params)

    def nex(self, method: str, **params: Any) -> Any:
        return self.daemon.call(method, token=self.daemon.token("nex"), **params)

    def ada(self, method: str, **params: Any) -> Any:
        return self.daemon.call(method, token=self.daemon.token("ada"), **params)

    def send(self, to: str, text: str, **params: Any) -> str:
        (number,) = self.nex("envelope.send", to=to, text=text, **params)["ids"]
        return str(number)

    def envelope(self, number: str) -> Row:
        found: Row = self.boss("envelope.get", id=number)["envelope"]
        return found

    @contextmanager
    def paused(self, *places: str) -> Iterator[None]:
        """Lanes that hold meanwhile; then they go on, which may be the daemon's death."""
        for place in places:
            self.boss("lane.pause", address=place)
        yield
        for place in places:
            try:
                self.boss("lane.resume", address=place)
            except DaemonUnreachable:
                return

    # --- the platforms -----------------------------------------------------------------

    def script(self, *steps: Row) -> None:
        """What the next posts meet; only while no post is made."""
        (self.pigeon / "script.jsonl").write_text("".join(f"{json.dumps(step)}\n" for step in steps))

    def posts(self, place: str | None = None) -> list[Row]:
        """What the scripted platform has confirmed, in order."""
        try:
            lines = (self.pigeon / "posts.jsonl").read_text().splitlines()
        except FileNotFoundError:
            return []
        found = [json.loads(line) for line in lines]
        return [one for one in found if place in (None, one["place"])]

    def posted(self, place: str = "pigeon") -> list[Chunk]:
        return [(one["id"], one["number"]) for one in self.posts(place)]

    def drop(self, name: str, content: str | bytes) -> None:
        """A file put into the folder's `in/`, whole at once."""
        (self.tray / "in").mkdir(parents=True, exist_ok=True)
        partial = self.tray / "in" / f".{name}.part"
        partial.write_bytes(content.encode() if isinstance(content, str) else content)
        partial.rename(self.tray / "in" / name)

    def out(self) -> dict[str, str]:
        """The posts of the folder: what begins with a dot is none yet."""
        directory = self.tray / "out"
        return {name: (directory / name).read_text() for name in os.listdir(directory) if name[0] != "."}

    def received(self, address: str = "folder:tray") -> list[Row]:
        """Every message that came in from a channel."""
        return self.rows(
            """
            SELECT m.id, m.text, m.attachments FROM message m JOIN address a ON a.id = m.sender
            WHERE a.kind = 'channel' AND a.name = ? ORDER BY m.seq
            """,
            address,
        )

    # --- looking -------------------------------------------------------------------------

    def rows(self, query: str, *values: Any) -> list[Row]:
        with self.daemon.database() as connection:
            return [dict(row) for row in connection.execute(query, values)]

    def on_the_way(self) -> str | None:
        """What is still to be done without anybody's help; None when all is quiet."""
        if names := os.listdir(self.tray / "in") + os.listdir(self.tray / ".taken"):
            return f"in the folder: {names}"
        if names := os.listdir(self.pigeon / "inbox"):
            return f"in the scripted inbox: {names}"
        if rows := self.rows("SELECT id, update_id FROM platform_update WHERE outcome IS NULL"):
            return f"updates: {rows[:5]}"
        rows = self.rows(
            """
            SELECT e.id, a.name, e.waits, e.wake_at, e.held_by FROM envelope e
            JOIN address a ON a.id = e.recipient
            WHERE e.status = 0 AND (a.kind = 'channel' OR e.waits = 0 OR e.held_by IS NOT NULL)
              AND a.name NOT LIKE 'rough:%'  -- its platform may ask to wait (soak_rough.py)
            """
        )
        return f"envelopes: {rows[:5]}" if rows else None

    def quiet(self, seconds: float = 60) -> None:
        """Wait until everything has ended that can end by itself."""
        try:
            wait_until(lambda: self.on_the_way() is None, seconds)
        except AssertionError:
            raise AssertionError(f"stuck: {self.on_the_way()}") from None

    def dead(self) -> Death:
        """What the dead one left, read from a copy: its successor must find it as it was."""
        with tempfile.TemporaryDirectory(prefix="hiboss-dead-") as directory:
            copy = os.path.join(directory, "copy.db")
            for ending in ("", "-wal"):
                if os.path.exists(self.daemon.home.database + ending):
                    shutil.copyfile(self.daemon.home.database + ending, copy + ending)
            with closing(sqlite3.connect(copy)) as connection:
                recorded = connection.execute(
                    "SELECT 'e' || envelope, chunk FROM post WHERE posted_at IS NOT NULL"
                ).fetchall()
                held = connection.execute(
                    "SELECT 'e' || id FROM envelope WHERE held_by IS NOT NULL"
                ).fetchall()
                arrived = connection.execute(
                    "SELECT 'e' || id FROM envelope WHERE arrived IS NOT NULL ORDER BY arrived"
                ).fetchall()
                told = connection.execute(
                    """
                    SELECT ifnull(a.name, b.adapter), l.not_before FROM lane l JOIN binding b ON b.id = l.binding
                    LEFT JOIN address a ON a.id = l.address WHERE l.not_before IS NOT NULL
                    """
                ).fetchall()
        confirmed = {(one["id"], one["number"]) for one in self.posts()[self._posted_before :]}
        return Death(
            window=frozenset(confirmed - set(recorded)),
            recorded=frozenset(recorded),
            held=frozenset(row[0] for row in held),
            arrived=tuple(row[0] for row in arrived),
            told=dict(told),
        )

    def die(self, seconds: float = 30) -> Death:
        """Wait until a crash point has ended it, and look."""
        self.wait_for_death(seconds)
        return self.dead()

    def wait_for_death(self, seconds: float = 30) -> None:
        """Wait until a crash point has ended it; it may have been too early to be seen alive."""
        if self.daemon.process is not None:
            status = self.daemon.wait_for_death(seconds)
            assert status == -9, f"the daemon ended with {status}, not at its crash point"

    def kill(self) -> Death:
        self.daemon.kill()
        return self.dead()

    def empty_box(self) -> list[Row]:
        """Ada takes and acknowledges everything there is, also what she had claimed before."""
        leased = "SELECT 1 FROM envelope WHERE waits = 2"
        wait_until(lambda: not self.rows(leased))
        found: list[Row] = []
        while some := self.ada("envelope.claim", limit=100, lease="1h")["envelopes"]:
            self.ada("envelope.ack", ids=[one["id"] for one in some])
            found += some
        return found


@dataclass(frozen=True, kw_only=True)
class Death:
    """What the daemon left behind when it died."""

    window: frozenset[Chunk]  # confirmed by the scripted platform since its start, and not recorded
    recorded: frozenset[Chunk]  # as posted, on any platform
    held: frozenset[str]
    arrived: tuple[str, ...]  # in the order of arrival
    told: Mapping[str, int]  # until when to wait, by the name of a channel, or of an adapter for its account


def ignoring_death(post: Post, method: str, **params: Any) -> Any:
    """Call as ada, of a daemon that may die of it; None when it did."""
    try:
        return post.ada(method, **params)
    except DaemonUnreachable:
        return None
    except Answered as error:
        return {"error": error.stable_code}
