"""Channels for the tests of delivery: each is a directory with a scripted adapter in place of a platform."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self

from hiboss.testing.running_daemon import RunningDaemon, running_daemon
from tests.support.daemons import set_up
from tests.support.parties import Party, agent, boss
from tests.support.waits import wait_until

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
SCRIPTED = {
    "HIBOSS_ADAPTERS_MODULES": "hiboss.testing.scripted_adapter,tests.support.faulty_adapters",
    "PYTHONPATH": str(Path(__file__).parents[2]),
    "HIBOSS_DELIVERY_DRAIN_SECONDS": "0.2",  # some posts hang on purpose: do not wait for them
}
_numbers = itertools.count(1)

Step = dict[str, Any]
OK: Step = {"do": "ok"}
HANG: Step = {"do": "hang"}
CRASH: Step = {"do": "crash"}


def lane_error(**facts: Any) -> Step:
    """Return a step that makes the lane wait, for an hour unless `retry_after` is given."""
    return {"do": "lane_error", "retry_after": 3600, **facts}


def account_error(**facts: Any) -> Step:
    """Return a step that makes all lanes of the account wait, for an hour unless `retry_after` is given."""
    return {"do": "account_error", "retry_after": 3600, **facts}


def envelope_error(**facts: Any) -> Step:
    return {"do": "envelope_error", **facts}


@contextmanager
def daemon_with_channels(directory: Path, **env: str) -> Iterator[RunningDaemon]:
    """Start a daemon with the scripted adapters; check the invariants of its store at the end."""
    set_up(directory)
    with running_daemon(directory, set_up=False, **{**SCRIPTED, **env}) as daemon:
        yield daemon
        daemon.check()


class Place:
    """A channel: a directory in place of a platform account, and the agent that posts there."""

    def __init__(self, root: Path, *, kind: str = "scripted", name: str | None = None) -> None:
        self.kind = kind
        self.name = name or f"place-{next(_numbers)}"
        self.root = root / self.name
        self.root.mkdir(parents=True)
        self.address = f"channel:{kind}:{self.name}"
        self.owner: Party  # the agent that was bound last
        self.binding = 0

    def bound(self, daemon: RunningDaemon, owner: Party | None = None) -> Self:
        """Bind it to an agent (a new one unless given), and wait until its adapter runs."""
        self.bind(owner or agent(daemon))
        self.wait_for_state("running")
        return self

    def bind(self, owner: Party) -> Any:
        """Bind it to an agent; `send` then sends as this agent."""
        answer = boss(owner.daemon).call(
            "agent.bind", name=owner.name, adapter_type=self.kind, settings={"path": str(self.root)}
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

    # --- what the platform does ------------------------------------------------------

    def settings(self, **facts: Any) -> Self:
        """Write the settings that the adapter reads at its next start."""
        (self.root / "settings.json").write_text(json.dumps(facts))
        return self

    def script(self, *steps: Step) -> None:
        """Say what happens to the next posts. In one step, since the adapter may read it at any time."""
        new = self.root / "script.written"
        new.write_text("".join(json.dumps(step) + "\n" for step in steps))
        os.replace(new, self.root / "script.jsonl")

    def gated(self, **facts: Any) -> Step:
        """Return a step that happens when the test has called `open_gate`."""
        return {"do": "ok", "until": str(self.root / "gate"), **facts}

    def open_gate(self) -> None:
        (self.root / "gate").touch()

    def life(self) -> list[str]:
        """Return the starts and stops that an adapter of faulty_adapters wrote down."""
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
        """Wait until exactly these texts were posted, in this order."""
        wait_until(lambda: len(self.texts()) >= len(texts))
        assert self.texts() == list(texts)

    def comes_in(self, update: str, **facts: Any) -> None:
        """Let an update come in; return when it was digested, or has acted."""
        self.put_in_inbox(update, **facts)
        wait_until(lambda: not (self.root / "inbox" / f"{update}.json").exists())
        if not facts.get("act"):
            wait_until(lambda: update in self.digested())

    def digested(self) -> dict[str, str | None]:
        """Return the updates that were digested; why it failed, if it did."""
        file = self.root / "digested.jsonl"
        lines = map(json.loads, file.read_text().splitlines()) if file.exists() else ()
        return {one["update"]: one["problem"] for one in lines}

    def put_in_inbox(self, update: str, **facts: Any) -> Path:
        """Let a message come in, without waiting for anybody to receive it."""
        inbox = self.root / "inbox"
        inbox.mkdir(exist_ok=True)
        (inbox / f"{update}.part").write_text(json.dumps(facts))
        return (inbox / f"{update}.part").replace(inbox / f"{update}.json")

    def flood(self, number: int, address: str | None = None) -> list[str]:
        """Send many numbered posts over one connection, to its address unless given; return their ids."""
        to = SimpleNamespace(address=address or self.address)
        return self.owner.flood(to, number)  # type: ignore[arg-type] # it only needs an address

    # --- what hiboss does ------------------------------------------------------------

    def send(self, text: str = "hello", **params: Any) -> str:
        """Send as the agent it is bound to; return the envelope's id."""
        (number,) = self.owner.send(self.address, text=text, **params)["ids"]
        return str(number)

    def send_failing(self, text: str, *steps: Step, account: bool = False, **params: Any) -> str:
        """Send what meets these steps; return its id when its lane waits, or its account."""
        self.script(*steps)
        number = self.send(text, **params)
        (self.wait_for_account if account else self.wait_for_failures)(1)
        return number

    def goes_on(self, verb: str, *texts: str) -> None:
        """Retry or resume its lane, and wait until exactly these texts were posted."""
        self.steer(verb)
        self.wait_for(*texts)

    def shown(self) -> dict[str, Any]:
        """Return the binding as daemon.status shows it."""
        adapters = boss(self.daemon).call("daemon.status")["adapters"]
        (found,) = [one for one in adapters if one["binding"] == f"b{self.binding}"]
        return dict(found)

    def wait_for_state(self, state: str) -> None:
        wait_until(lambda: self.shown()["state"] == state)

    def lane(self) -> dict[str, Any]:
        """Return the row of its lane; empty when there is none."""
        with self.daemon.database() as database:
            row = database.execute(
                """
                SELECT l.* FROM lane l JOIN address a ON a.id = l.address
                WHERE a.fold = ? AND l.binding = ?
                """,
                (self.address.lower(), self.binding),
            ).fetchone()
        return dict(row) if row else {}

    def account(self) -> dict[str, Any]:
        """Return the row of its account; empty when there is none."""
        with self.daemon.database() as database:
            row = database.execute(
                "SELECT * FROM lane WHERE address IS NULL AND binding = ?", (self.binding,)
            ).fetchone()
        return dict(row) if row else {}

    def wait_for_account(self, failures: int) -> dict[str, Any]:
        """Wait until the account waits after so many failures; return its row."""

        def waits() -> bool:
            account = self.account()
            return bool(account) and account["failures"] == failures and account["state"] == "waiting"

        wait_until(waits)
        return self.account()

    def wait_for_failures(self, number: int) -> dict[str, Any]:
        """Wait until the lane waits after so many failures; return its row."""

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
        """Move all times of the lane's failures back."""
        written(self.daemon)  # sends before this must have seen the old times
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
    """Return the row of an envelope."""
    with daemon.database() as database:
        found = database.execute("SELECT * FROM envelope WHERE id = ?", (int(number[1:]),)).fetchone()
    return dict(found)


def age(daemon: RunningDaemon, number: str, ms: int) -> None:
    """Move the arrival and the first failure of an envelope back."""
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
    """Return the notices of agent:system to somebody, oldest first."""
    found = party.list(**{"oldest_first": True, "page_size": 100, **filters})
    # Not by a filter of the list: it has no address before its first notice.
    return [one for one in found if one["from"] == "agent:system"]


def written(daemon: RunningDaemon) -> None:
    """Return when the writer has written everything that was asked for before."""
    boss(daemon).call("agent.set", name="nex", role="barrier")
