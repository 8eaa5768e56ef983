"""Places to post to in the tests of delivery: a scripted platform in a directory of its own."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hiboss.testing.running_daemon import RunningDaemon, running_daemon
from tests.support.daemons import set_up, wait_until
from tests.support.office import Party, agent, boss

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
SCRIPTED = {
    "HIBOSS_ADAPTERS_MODULES": "hiboss.testing.scripted_adapter,tests.support.odd_adapters",
    "PYTHONPATH": str(Path(__file__).parents[2]),
    "HIBOSS_DELIVERY_DRAIN_SECONDS": "0.2",  # what hangs on purpose need not be waited for
}
_numbers = itertools.count(1)

Step = dict[str, Any]
OK: Step = {"do": "ok"}
HANG: Step = {"do": "hang"}
CRASH: Step = {"do": "crash"}


def lane_error(**facts: Any) -> Step:
    """A step that makes the lane wait; an hour unless `retry_after` says otherwise."""
    return {"do": "lane_error", "retry_after": 3600, **facts}


def envelope_error(**facts: Any) -> Step:
    return {"do": "envelope_error", **facts}


@contextmanager
def post_office(directory: Path, **env: str) -> Iterator[RunningDaemon]:
    """A daemon that knows scripted platforms, whose store is looked through at the end."""
    set_up(directory)
    with running_daemon(directory, set_up=False, **{**SCRIPTED, **env}) as daemon:
        yield daemon
        daemon.check()


class Place:
    """A directory that stands for a platform account, with the agent that posts there."""

    def __init__(self, root: Path, *, kind: str = "scripted", name: str | None = None) -> None:
        self.kind = kind
        self.name = name or f"place-{next(_numbers)}"
        self.root = root / self.name
        self.root.mkdir(parents=True)
        self.address = f"channel:{kind}:{self.name}"
        self.owner: Party  # who was bound last
        self.binding = 0

    def bound(self, daemon: RunningDaemon, owner: Party | None = None) -> Place:
        """Bind it to an agent, a new one unless one is given, and wait until it runs."""
        self.bind(owner or agent(daemon))
        self.wait_for_state("running")
        return self

    def bind(self, owner: Party) -> Any:
        """Let an agent post there; it is the one `send` speaks for."""
        answer = boss(owner.daemon).call(
            "agent.bind", name=owner.name, adapter_type=self.kind, path=str(self.root)
        )
        self.owner = owner
        self.binding = int(answer["binding"][1:])
        return answer

    def unbind(self, owner: Party | None = None) -> Any:
        name = (owner or self.owner).name
        return boss(self.daemon).call("agent.unbind", name=name, adapter_type=self.kind, account=self.name)

    @property
    def daemon(self) -> RunningDaemon:
        return self.owner.daemon

    # --- the platform's side ---------------------------------------------------------

    def settings(self, **facts: Any) -> Place:
        """What the adapter finds at its next start."""
        (self.root / "settings.json").write_text(json.dumps(facts))
        return self

    def script(self, *steps: Step) -> None:
        """What the next posts meet; put in place whole, since the adapter reads it at any time."""
        new = self.root / "script.written"
        new.write_text("".join(json.dumps(step) + "\n" for step in steps))
        os.replace(new, self.root / "script.jsonl")

    def life(self) -> list[str]:
        """The starts and stops an odd adapter wrote down."""
        file = self.root / "life.txt"
        return file.read_text().split() if file.exists() else []

    def steps_left(self) -> int:
        script = self.root / "script.jsonl"
        return len(script.read_text().splitlines()) if script.exists() else 0

    def posts(self) -> list[dict[str, Any]]:
        file = self.root / "posts.jsonl"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    def texts(self) -> list[str]:
        return [one["chunk"] for one in self.posts()]

    def wait_for(self, *texts: str) -> None:
        """Wait until exactly this was posted, in this order."""
        wait_until(lambda: len(self.texts()) >= len(texts))
        assert self.texts() == list(texts)

    def comes_in(self, update: str, **facts: Any) -> None:
        """Somebody says something there; returns when it was taken."""
        self.lies_there(update, **facts)
        wait_until(lambda: not (self.root / "inbox" / f"{update}.json").exists())

    def lies_there(self, update: str, **facts: Any) -> Path:
        """Somebody says something, whether or not anybody listens."""
        inbox = self.root / "inbox"
        inbox.mkdir(exist_ok=True)
        (inbox / f"{update}.part").write_text(json.dumps(facts))
        return (inbox / f"{update}.part").replace(inbox / f"{update}.json")

    def flood(self, number: int) -> list[str]:
        """Many posts, numbered, sent over one connection."""
        return self.owner.flood(self, number)  # type: ignore[arg-type] # it only needs an address

    # --- our side --------------------------------------------------------------------

    def send(self, text: str = "hello", **params: Any) -> str:
        """Post as the agent it is bound to; the envelope's id."""
        (number,) = self.owner.send(self.address, text=text, **params)["ids"]
        return str(number)

    def shown(self) -> dict[str, Any]:
        """The binding, as the status shows it."""
        adapters = self.daemon.call("daemon.status")["adapters"]
        (found,) = [one for one in adapters if one["binding"] == f"b{self.binding}"]
        return dict(found)

    def wait_for_state(self, state: str) -> None:
        wait_until(lambda: self.shown()["state"] == state)

    def lane(self) -> dict[str, Any]:
        """The lane as the database has it; empty when it has nothing to say."""
        with self.daemon.database() as database:
            row = database.execute(
                """
                SELECT l.* FROM lane l JOIN address a ON a.id = l.address
                WHERE a.fold = ? AND l.binding = ?
                """,
                (self.address.lower(), self.binding),
            ).fetchone()
        return dict(row) if row else {}

    def wait_for_failures(self, number: int) -> dict[str, Any]:
        """Wait until the lane has met so many errors and waits; the lane then."""

        def waits() -> bool:
            lane = self.lane()
            return bool(lane) and lane["failures"] == number and lane["state"] == "waiting"

        wait_until(waits)
        return self.lane()

    def steer(self, verb: str) -> int:
        """lane.retry, lane.pause or lane.resume."""
        return int(boss(self.daemon).call(f"lane.{verb}", address=self.address)["changed"])

    def wait_for_status(self, number: str, status: str) -> dict[str, Any]:
        wait_until(lambda: boss(self.daemon).get(number)["status"] == status)
        return boss(self.daemon).get(number)

    # --- time ------------------------------------------------------------------------

    def lane_ages(self, ms: int) -> None:
        """Let everything the lane has met lie further back."""
        written(self.daemon)  # what was sent has looked at the lane as it was
        with self.daemon.database() as database:
            database.execute(
                """
                UPDATE lane SET first_failed_at = first_failed_at - ?1, tried_at = tried_at - ?1,
                       error_at = error_at - ?1 WHERE binding = ?2
                """,
                (ms, self.binding),
            )
            database.commit()


def row(daemon: RunningDaemon, number: str) -> dict[str, Any]:
    """An envelope as the database has it."""
    with daemon.database() as database:
        found = database.execute("SELECT * FROM envelope WHERE id = ?", (int(number[1:]),)).fetchone()
    return dict(found)


def age(daemon: RunningDaemon, number: str, ms: int) -> None:
    """Let an envelope have come, and failed first, so much earlier."""
    with daemon.database() as database:
        database.execute(
            "UPDATE message SET arrived_at = arrived_at - ? WHERE id = (SELECT message FROM envelope WHERE id = ?)",
            (ms, int(number[1:])),
        )
        database.execute(
            "UPDATE envelope SET first_failed_at = first_failed_at - ? WHERE id = ?", (ms, int(number[1:]))
        )
        database.commit()


def notices(party: Party, **filters: Any) -> list[dict[str, Any]]:
    """What agent:system wrote to somebody, oldest first."""
    return party.list(**{"from": "agent:system", "oldest_first": True, "page_size": 100, **filters})


def written(daemon: RunningDaemon) -> None:
    """Return after everything asked for so far has been through the writer."""
    boss(daemon).call("agent.set", name="nex", role="barrier")
