"""The line to the daemon that a conversation hangs on: saying, hearing, and holding one's place.

Plain blocking calls, one connection each. Nothing here prints.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import Any

from ...core.errors import BadText, DaemonUnreachable, HibossError, InvalidParams, TimedOut
from ...core.paths import Home
from .. import client
from ..client import Answered

HISTORY = 10  # messages shown at the beginning
HEARD = 4_000  # characters kept of what an agent says while it works
PAGE = 100  # ids in one call
BEGINNING = 1.0  # seconds a run may take to begin
AWAY = ("stopping", "busy")  # answers of a daemon to whom the same may be said again

Envelope = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Other:
    """Whom one talks with."""

    address: str
    name: str  # as it is shown, and typed
    fetches: bool = False  # an agent without provider: nobody gives it turns

    @property
    def is_agent(self) -> bool:
        return self.address.startswith("agent:")


class Live:
    """What the other one does for this conversation just now."""

    def __init__(self, found: dict[str, Any]) -> None:
        self.id: str = found["id"]
        self.began = time.monotonic()
        self.paused = False
        self.next = 0
        self.said = ""
        self.tool = ""

    def hear(self, found: dict[str, Any]) -> None:
        self.paused, self.next = found["paused"], found["next"]
        for part in found["parts"]:
            if part["kind"] == "delta":
                self.said = (self.said + part["text"])[-HEARD:]
            elif part["kind"] == "tool":
                self.tool = part["text"]

    @property
    def seconds(self) -> int:
        return int(time.monotonic() - self.began)


class Line:
    """One conversation, seen from one end: what was heard of it, and up to where."""

    def __init__(self, home: Home, token: str | None) -> None:
        self.home = home
        self._token = token
        self.own = ""
        self.timezone = "UTC"
        self.other = Other(address="", name="")
        self.conversation: str | None = None
        self.after = 0
        self.live: Live | None = None
        self.state: str | None = None
        self.why: str | None = None
        self._elsewhere_since: float | None = None
        self._unmarked: list[str] = []
        self._marking = threading.Lock()

    def call(
        self, method: str, *, timeout: float = client.TIMEOUT, waiting: Any = None, **params: Any
    ) -> Any:
        wanted = {name.rstrip("_"): value for name, value in params.items()}
        if self._token is not None:
            wanted["token"] = self._token
        return client.call(self.home, method, wanted, timeout=timeout, waiting=waiting)

    def open(self, named: str | None) -> bool:
        """Find out who speaks with whom; whether the other one was chosen for want of a name."""
        me = self.call("agent.self")
        self.own, self.timezone = me["address"], me["timezone"]
        team = [one for one in self.call("agent.team")["team"] if one["address"] != self.own]
        self.other = choose(named, team)
        return named is None and len(team) > 1

    def history(self, number: int = HISTORY) -> list[Envelope]:
        """The last of what was said; from here on it can be followed."""
        said = self.call("conversation.messages", with_=self.other.address, page_size=number)
        self.conversation, self.after, self.timezone = said["conversation"], said["last"], said["timezone"]
        found: list[Envelope] = said["envelopes"]
        return found

    def follow(self, seconds: float, waiting: Any = None) -> list[Envelope]:
        """Wait for what comes next, at most so long; what was said, and `live` and `state` as they are."""
        place: dict[str, Any] = {"after": self.after}
        if self.live is not None:
            place |= {"run": self.live.id, "parts": self.live.next}
        if self.state is not None:
            place["state"] = self.state
        found = self.call(
            "conversation.follow",
            timeout=seconds + client.TIMEOUT,
            waiting=waiting,
            with_=self.other.address,
            timeout_=f"{max(seconds, 0.001):.3f}s",
            **place,
        )
        same = self.conversation in (None, found["conversation"])  # else the name has a new owner
        self.conversation, self.after = found["conversation"], found["last"] if same else 0
        self.timezone, self.state, self.why = found["timezone"], found["state"], found["why"]
        said: list[Envelope] = found["envelopes"] if same else []
        self._hear(found["run"], said)
        elsewhere = self.state == "running" and self.live is None
        self._elsewhere_since = (self._elsewhere_since or time.monotonic()) if elsewhere else None
        return said

    @property
    def is_elsewhere(self) -> bool:
        """Whether the other one is at work on something else; a run that only begins looks so too."""
        return self._elsewhere_since is not None and time.monotonic() - self._elsewhere_since > BEGINNING

    def _hear(self, run: dict[str, Any] | None, said: list[Envelope]) -> None:
        if run is None:
            self.live = None
            return
        live = self.live if self.live is not None and self.live.id == run["id"] else Live(run)
        live.hear(run)
        if any(one["run"] == live.id and one["from"] != self.own for one in said):
            live.said = ""  # it has become a message
        self.live = live

    def send(self, text: str, files: list[str], key: str) -> dict[str, Any]:
        try:
            text.encode()
        except UnicodeEncodeError:
            raise BadText(field="text", why="it is no UTF-8 text") from None
        sent: dict[str, Any] = self.call(
            "envelope.send", from_=self.own, to=self.other.address, text=text, attachments=files, key=key
        )
        return sent

    def mark_read(self, shown: list[Envelope]) -> None:
        """What was shown is read, as far as it was for us; a daemon that is away hears of it later."""
        with self._marking:
            self._unmarked += [one["id"] for one in shown if one["to"] == self.own and one["read_at"] is None]
            try:
                while self._unmarked:
                    self.call("envelope.read", ids=self._unmarked[:PAGE])
                    del self._unmarked[:PAGE]
            except HibossError as error:
                if not is_away(error):
                    self._unmarked.clear()  # somebody has taken them away: no reason to stop talking

    def envelope(self, number: str) -> Envelope:
        found: Envelope = self.call("envelope.get", id=number)["envelope"]
        return found


class Box:
    """What else comes into one's box while one talks."""

    def __init__(self, line: Line) -> None:
        self._line = line
        self._cursor: str | None = None
        self._at_end = False

    def wait(self, seconds: float) -> list[Envelope]:
        """Unread mail of other conversations that came since; what lay there before is passed over."""
        try:
            while not self._at_end:
                self._at_end = not self._next(0.001)
            found = self._next(seconds)
        except Answered as error:
            if error.stable_code != "gap":
                raise
            self._cursor, self._at_end = None, False  # the store is another one now
            return []
        return [one for one in found if not self._known(one)]

    def _next(self, seconds: float) -> list[Envelope]:
        place = {} if self._cursor is None else {"after": self._cursor}
        patience = seconds + client.TIMEOUT
        found = self._line.call("envelope.wait", timeout=patience, timeout_=f"{seconds:.3f}s", **place)
        self._cursor = found["next"] or self._cursor
        envelopes: list[Envelope] = found["envelopes"]
        return envelopes

    def _known(self, one: Envelope) -> bool:
        """Whether it belongs to the conversation that is shown anyway."""
        if one["from"] != self._line.other.address:
            return False
        if self._line.conversation is None:  # the first word of it
            said = self._line.call("conversation.messages", with_=self._line.other.address, page_size=1)
            return bool(one["conversation"] == said["conversation"])
        return bool(one["conversation"] == self._line.conversation)


def choose(named: str | None, team: list[dict[str, Any]]) -> Other:
    """The agent named, or the one there is, or the first that is given turns."""
    if named is not None:
        address = named if ":" in named else f"agent:{named}"
        return next(
            (_agent(one) for one in team if one["address"].lower() == address.lower()), _else(address)
        )
    if not team:
        detail = (
            "there is no agent to talk with yet; make one: hiboss agent register --name nex --provider demo"
        )
        raise InvalidParams(detail=detail)
    thinking = [one for one in team if one["provider"] is not None]
    if len(team) == 1 or thinking:
        return _agent((thinking or team)[0])
    names = ", ".join(one["name"] for one in team)
    detail = (
        f"say with whom: {names}; none of them has a provider, so any answers only when it fetches its mail"
    )
    raise InvalidParams(detail=detail)


def _agent(one: dict[str, Any]) -> Other:
    return Other(address=one["address"], name=one["name"], fetches=one["mode"] == "pull")


def _else(address: str) -> Other:
    """Somebody who is no agent of ours: the daemon will say whether there is such a one."""
    kind, _, name = address.partition(":")
    return Other(address=address, name=name if kind == "agent" else address)


def is_away(error: HibossError) -> bool:
    """Whether the daemon only is not there just now, so that the same may be asked again."""
    if isinstance(error, Answered):
        return error.stable_code in AWAY
    return isinstance(error, (DaemonUnreachable, TimedOut))
