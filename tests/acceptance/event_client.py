"""A client that follows what happens, written from docs/events.md alone, without the code of hiboss.

It keeps what it knows of every envelope and every run that it may see. It can be killed at any moment:
what it keeps is then all that is left of it, as if it were in a file.
"""

from __future__ import annotations

import json
import socket
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]
BOXES = ("inbox", "archived", "trash", "outbox")

CHANGES: dict[str, Json] = {
    "envelope.read": {"read": True},
    "envelope.acknowledged": {"read": True, "acked": True, "status": "done", "waits": None},
    "envelope.claimed": {"waits": "lease"},
    "envelope.due": {"waits": None},
    "envelope.cancelled": {"status": "cancelled", "waits": None},
    "envelope.retried": {"status": "pending", "box": "inbox", "waits": None},
}


@dataclass
class Kept:
    """What the client knows, and how far it has followed."""

    envelopes: dict[str, Json] = field(default_factory=dict)  # status, waits, box, read, acked, edited
    runs: dict[str, str] = field(default_factory=dict)  # their status
    boot: int | None = None
    number: int | None = None
    epoch: str | None = None
    gaps: int = 0  # found when it came back
    told_gaps: int = 0  # told while it followed


class EventClient:
    """One life of the client: from a connection to its end."""

    def __init__(self, path: str, token: str, kept: Kept, *, is_boss: bool = False) -> None:
        self.kept = kept
        self._token = token
        self._boxes = ("all",) if is_boss else BOXES
        self._facts: list[Json] = []
        self._id = 0
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(60)
        self._socket.connect(path)
        self._stream = self._socket.makefile("rb")
        self._subscribe()

    def close(self) -> None:
        self._stream.close()
        self._socket.close()

    def follow_until(self, message: str) -> None:
        """Apply what comes until this message has arrived, by a fact or by reading."""
        while not any(one["message"] == message for one in self.kept.envelopes.values()):
            self._apply(self._facts.pop(0) if self._facts else self._read_line())

    # --- subscribe first, then read, then apply ----------------------------------------

    def _subscribe(self) -> None:
        position = {} if self.kept.boot is None else {"boot": self.kept.boot, "after": self.kept.number}
        begun = self._call("event.subscribe", **position)
        if self.kept.boot is not None and not begun["gap"]:
            return  # all that was missed comes
        self.kept.epoch, self.kept.boot, self.kept.number = begun["epoch"], begun["boot"], begun["number"]
        self.kept.gaps += begun["gap"]
        self._read_everything()

    def _read_everything(self) -> None:
        """Let what the store has replace what the client has."""
        self.kept.envelopes.clear()
        self.kept.runs.clear()
        for box in self._boxes:
            self._read_box(box)
        before: Json = {}
        while True:
            page = self._call("run.list", page_size=100, **before)
            self.kept.runs |= {one["id"]: one["status"] for one in page["runs"]}
            if page["next"] is None:
                return
            before = {"after": page["next"]}

    def _read_box(self, box: str) -> None:
        params: Json = {"box": box, "page_size": 100}
        while True:
            page = self._call("envelope.list", **params)
            for one in page["envelopes"]:
                self._note(one)
            if page["next"] is None:
                return
            params["after"] = page["next"]

    def _note(self, one: Json) -> None:
        self.kept.envelopes[one["id"]] = {
            "message": one["message"],
            "status": one["status"],
            "waits": one["waits"],
            "box": one["box"],
            "read": one["read_at"] is not None,
            "acked": one["acked_at"] is not None,
            "edited": one["edited_at"] is not None,
        }

    # --- facts -------------------------------------------------------------------------

    def _apply(self, fact: Json) -> None:
        topic = fact["topic"]
        self.kept.number = fact["number"]
        if topic == "gap":
            self.kept.told_gaps += 1
            self._read_everything()
        elif topic in ("envelope.arrived", "envelope.deferred"):
            for one in fact["envelopes"]:
                self._came(topic, fact, one)
        elif topic.startswith("envelope."):
            self._changed(topic, fact)
        elif topic == "message.edited":
            for known in self.kept.envelopes.values():
                known["edited"] = known["edited"] or known["message"] == fact["message"]
        elif topic == "run.started":
            self.kept.runs[fact["run"]] = "running"
        elif topic == "run.ended":
            self.kept.runs[fact["run"]] = fact["status"]

    def _came(self, topic: str, fact: Json, one: Json) -> None:
        arrived = topic == "envelope.arrived"
        done = arrived and one["to"].startswith("user:")
        known = self.kept.envelopes.setdefault(
            one["id"],
            {"message": fact["message"], "box": "inbox", "read": False, "acked": False, "edited": False},
        )
        known |= {"status": "done" if done else "pending", "waits": None if arrived else "deferred"}

    def _changed(self, topic: str, fact: Json) -> None:
        known = self.kept.envelopes.get(fact["envelope"])
        if known is None:
            self._note(self._call("envelope.get", id=fact["envelope"])["envelope"])
            return
        known |= CHANGES.get(topic, {})
        if topic == "envelope.waits":
            known["waits"] = None if fact["until"] is None else "retry"
        elif topic == "envelope.settled":
            known |= {"status": fact["status"], "waits": None}
        elif topic == "envelope.moved":
            known["box"] = fact["box"]

    # --- the connection ------------------------------------------------------------------

    def _call(self, method: str, **params: Any) -> Any:
        self._id += 1
        request = {"jsonrpc": "2.0", "id": self._id, "method": method}
        self._socket.sendall(
            json.dumps({**request, "params": {**params, "token": self._token}}).encode() + b"\n"
        )
        while True:
            answer = json.loads(self._line())
            if "method" in answer:
                self._facts.append(answer["params"])
            elif answer["id"] == self._id:
                return answer["result"]

    def _read_line(self) -> Json:
        return json.loads(self._line())["params"]

    def _line(self) -> bytes:
        line = self._stream.readline()
        if not line.endswith(b"\n"):
            raise ConnectionError("the daemon is gone")
        return line
