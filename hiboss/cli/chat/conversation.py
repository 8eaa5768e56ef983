"""A conversation, as the daemon knows it: send, follow, mark as read.

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

HISTORY = 10  # messages shown at the start
LIVE_TEXT = 4_000  # characters kept of what an agent writes while it works
PAGE = 100  # ids in one call
STARTING = 1.0  # seconds a run may take to start
AWAY = ("stopping", "busy")  # errors of a daemon after which the same request can be sent again

Envelope = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Other:
    """The other side of the conversation."""

    address: str
    name: str  # as it is shown and typed
    fetches: bool = False  # an agent in pull mode: it gets no turns

    @property
    def is_agent(self) -> bool:
        return self.address.startswith("agent:")


class LiveRun:
    """The run that works for this conversation now."""

    def __init__(self, found: dict[str, Any]) -> None:
        self.id: str = found["id"]
        self.began = time.monotonic()
        self.paused = False
        self.next = 0
        self.text = ""
        self.tool = ""

    def update(self, found: dict[str, Any]) -> None:
        self.paused, self.next = found["paused"], found["next"]
        for part in found["parts"]:
            if part["kind"] == "delta":
                self.text = (self.text + part["text"])[-LIVE_TEXT:]
            elif part["kind"] == "tool":
                self.tool = part["text"]

    @property
    def seconds(self) -> int:
        return int(time.monotonic() - self.began)


class ConversationClient:
    """One conversation, seen from one side: what came of it, and up to which message."""

    def __init__(self, home: Home, token: str | None) -> None:
        self.home = home
        self._token = token
        self.own = ""
        self.timezone = "UTC"
        self.other = Other(address="", name="")
        self.conversation: str | None = None
        self.after = 0
        self.live: LiveRun | None = None
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
        """Find out who talks with whom; returns whether the other side was chosen for you."""
        me = self.call("agent.self")
        self.own, self.timezone = me["address"], me["timezone"]
        agents = [one for one in self.call("agent.list")["agents"] if one["address"] != self.own]
        self.other = choose(named, agents) or self._person(named or "")
        return named is None and len(agents) > 1

    def _person(self, named: str) -> Other:
        """A person by name or address; what nobody has is for the daemon to refuse."""
        people = self.call("user.list")["users"]
        found = [
            one["address"] for one in people if named.lower() in (one["name"].lower(), one["address"].lower())
        ]
        address = found[0] if found else named
        return Other(address=address, name=address.removeprefix("agent:"))

    def history(self, number: int = HISTORY) -> list[Envelope]:
        """Return the last messages; `follow` continues after them."""
        messages = self.call("conversation.messages", with_=self.other.address, page_size=number)
        self.conversation, self.after, self.timezone = (
            messages["conversation"],
            messages["last"],
            messages["timezone"],
        )
        found: list[Envelope] = messages["envelopes"]
        return found

    def follow(self, seconds: float, waiting: Any = None) -> list[Envelope]:
        """Wait for new messages, at most this long, and return them; `live` and `state` are updated too."""
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
        same = self.conversation in (None, found["conversation"])  # else the name belongs to a new agent
        self.conversation, self.after = found["conversation"], found["last"] if same else 0
        self.timezone, self.state, self.why = found["timezone"], found["state"], found["why"]
        messages: list[Envelope] = found["envelopes"] if same else []
        self._update_live(found["run"], messages)
        elsewhere = self.state == "running" and self.live is None
        self._elsewhere_since = (self._elsewhere_since or time.monotonic()) if elsewhere else None
        return messages

    @property
    def is_elsewhere(self) -> bool:
        """Whether the other side works on something else; a run that is just starting looks the same."""
        return self._elsewhere_since is not None and time.monotonic() - self._elsewhere_since > STARTING

    def _update_live(self, run: dict[str, Any] | None, messages: list[Envelope]) -> None:
        if run is None:
            self.live = None
            return
        live = self.live if self.live is not None and self.live.id == run["id"] else LiveRun(run)
        live.update(run)
        if any(one["run"] == live.id and one["from"] != self.own for one in messages):
            live.text = ""  # it is a message now
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
        """Mark messages to us as read; when the daemon is away, later."""
        with self._marking:
            self._unmarked += [one["id"] for one in shown if one["to"] == self.own and one["read_at"] is None]
            try:
                while self._unmarked:
                    self.call("envelope.read", ids=self._unmarked[:PAGE])
                    del self._unmarked[:PAGE]
            except HibossError as error:
                if not is_away(error):
                    self._unmarked.clear()  # they are gone: no reason to end the conversation

    def envelope(self, number: str) -> Envelope:
        found: Envelope = self.call("envelope.get", id=number)["envelope"]
        return found


class OtherMail:
    """Mail of other conversations that comes meanwhile."""

    def __init__(self, client_: ConversationClient) -> None:
        self._client = client_
        self._cursor: str | None = None
        self._at_end = False

    def wait(self, seconds: float) -> list[Envelope]:
        """Wait for new unread mail of other conversations; what was there before is skipped."""
        try:
            while not self._at_end:
                self._at_end = not self._next(0.001)
            found = self._next(seconds)
        except Answered as error:
            if error.stable_code != "gap":
                raise
            self._cursor, self._at_end = None, False  # the store was replaced
            return []
        return [one for one in found if not self._known(one)]

    def _next(self, seconds: float) -> list[Envelope]:
        place = {} if self._cursor is None else {"after": self._cursor}
        limit = seconds + client.TIMEOUT
        found = self._client.call("envelope.wait", timeout=limit, timeout_=f"{seconds:.3f}s", **place)
        self._cursor = found["next"] or self._cursor
        envelopes: list[Envelope] = found["envelopes"]
        return envelopes

    def _known(self, one: Envelope) -> bool:
        """Whether it belongs to the conversation that is shown."""
        if one["from"] != self._client.other.address:
            return False
        if self._client.conversation is None:  # its first message
            messages = self._client.call(
                "conversation.messages", with_=self._client.other.address, page_size=1
            )
            return bool(one["conversation"] == messages["conversation"])
        return bool(one["conversation"] == self._client.conversation)


def choose(named: str | None, agents: list[dict[str, Any]]) -> Other | None:
    """The agent that was named, None if no agent has that name; without a name the oldest that gets turns."""
    if named is not None:
        wanted = (named.lower(), f"agent:{named}".lower())
        return next((_agent(one) for one in agents if one["address"].lower() in wanted), None)
    if not agents:
        raise InvalidParams(
            detail="there is no agent yet; create one: hiboss agent register nex --provider demo"
        )
    first = first_answering(agents)
    if len(agents) == 1 or first["provider"] is not None:
        return _agent(first)
    names = ", ".join(one["name"] for one in agents)
    detail = (
        f"name one of {names}; none of them has a provider, so each answers only when it fetches its mail"
    )
    raise InvalidParams(detail=detail)


def first_answering(agents: list[dict[str, Any]]) -> dict[str, Any]:
    """The oldest agent that has a provider, else the oldest; there must be one."""
    return min(agents, key=lambda one: (one["provider"] is None, one["created_at"]))


def _agent(one: dict[str, Any]) -> Other:
    return Other(address=one["address"], name=one["name"], fetches=one["mode"] == "pull")


def is_away(error: HibossError) -> bool:
    """Whether the daemon is only away for now, so that the same request can be sent again."""
    if isinstance(error, Answered):
        return error.stable_code in AWAY
    return isinstance(error, (DaemonUnreachable, TimedOut))
