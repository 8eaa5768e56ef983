"""A conversation, as the daemon knows it: send, follow, mark as read.

Facts tell when there is something new, and then it is read: after a gap or a lost connection it is
the same reading. Plain blocking calls, one connection each; the facts have their own. Nothing here prints.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...core.address import BOSS
from ...core.errors import BadText, HibossError, InvalidParams
from ...core.paths import Home
from .. import client
from ..client import Answered, FactStream, is_away

if TYPE_CHECKING:
    from ..client import Fact

HISTORY = 10  # messages shown at the start
THINKS = "it thinks"  # what is shown of it instead of a tool
LIVE_TEXT = 4_000  # characters kept of what an agent writes while it works
PAGE = 100  # ids in one call
STARTING = 1.0  # seconds a run may take to start
TYPING = 7.0  # seconds that the other side types after it was told; the daemon tells sooner when it ends
TOPICS = (
    *(f"envelope.{what}" for what in ("arrived", "waits", "settled", "cancelled", "retried")),
    *(f"run.{what}" for what in ("started", "progress", "paused", "ended")),
    *("message.edited", "message.deleted", "message.restored", "ask.settled"),
    *("presence", "presence.typing"),
)

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
        self.tool = ""  # that it uses, or that it thinks
        self.questions = 0  # that wait for an answer
        self.untold: list[str] = []  # of those, which nobody was shown yet

    def update(self, found: dict[str, Any]) -> None:
        self.paused, self.next = found["paused"], found["next"]
        for part in found["parts"]:
            self._add(part)

    def progress(self, fact: Fact) -> bool:
        """Add the part that a fact tells of; False if one before it is missing."""
        if fact["part"] <= self.next:
            return True
        if fact["part"] > self.next + 1:
            return False
        self.next = fact["part"]
        self._add(fact)
        return True

    def _add(self, part: dict[str, Any]) -> None:
        if part["kind"] == "delta":
            self.text = (self.text + part["text"])[-LIVE_TEXT:]
            self.tool = "" if self.tool == THINKS else self.tool
        elif part["kind"] in ("tool", "thinking"):
            self.tool = part["text"] if part["kind"] == "tool" else THINKS
        elif part["kind"] == "ask":
            self.questions += 1
            self.untold.append(part["text"])
        elif part["kind"] == "answer":
            self.questions -= 1
            if self.questions <= 0:  # what was answered before it could be shown is over
                self.questions, self.untold = 0, []

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
        self.mail_came = False  # something may have arrived for us in other conversations
        self.edited: list[str] = []  # messages of this conversation that have another wording
        self.edits_missed = False  # there may be more of them
        self.settled_asks: list[str] = []  # ids of asks that have ended
        self.asks_missed = False  # there may be more of them
        self.facts = FactStream(home, {})
        self._stale = True  # the news must be read
        self._types_until = 0.0  # the other side
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
        self.facts = FactStream(self.home, self._wanted())
        return named is None and len(agents) > 1

    def _wanted(self) -> dict[str, Any]:
        """What to subscribe to: the boss sees everything, others what they are a party of."""
        wanted: dict[str, Any] = {"topics": TOPICS}
        if self.own == str(BOSS):
            wanted["addresses"] = [self.own, self.other.address]
        return wanted if self._token is None else wanted | {"token": self._token}

    def _person(self, named: str) -> Other:
        """A person by name or address; what nobody has is for the daemon to refuse."""
        people = self.call("user.list")["users"]
        found = [
            one["address"] for one in people if named.lower() in (one["name"].lower(), one["address"].lower())
        ]
        if not found and self._is_group(named):
            name = named.removeprefix("group:")
            how = f'write to it with hiboss send {name} "…", and read it with hiboss conversation messages {name}'
            raise InvalidParams(detail=f"{named} is a group, and a chat is with one agent or person; {how}")
        address = found[0] if found else named
        return Other(address=address, name=address.removeprefix("agent:"))

    def _is_group(self, named: str) -> bool:
        try:
            return bool(self.call("conversation.get", conversation=named)["conversation"]["type"] == "group")
        except Answered:
            return False

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
        """Wait for news, at most this long; return new messages, and update `live` and `state`.

        The first call, and the first after a lost connection, does not wait.
        """
        if not self.facts.is_open:
            self.facts.open()
            self._stale = self.mail_came = self.edits_missed = self.asks_missed = True
        if not self._stale:
            facts = self.facts.wait(seconds, waiting)
            self._stale = any([self._note(one) for one in facts])
        try:
            return self._news() if self._stale else []
        except HibossError:
            self.facts.close()  # the daemon that it belongs to may be gone
            raise

    def _note(self, fact: Fact) -> bool:
        """Note what happened; returns whether the news must be read."""
        topic = fact["topic"]
        if topic == "gap":
            self.mail_came = self.edits_missed = self.asks_missed = True
            return True
        ours = self.conversation is not None and fact.get("conversation") == self.conversation
        if topic == "presence.typing":
            if ours and fact["who"] == self.other.address:
                self._types_until = time.monotonic() + TYPING if fact["on"] else 0.0
            return False
        if topic in ("message.edited", "message.deleted", "message.restored"):
            self.edited += [fact["message"]] if ours else []
            return False
        if topic == "ask.settled":
            self.settled_asks.append(fact["ask"])
            return False
        if topic == "run.progress":
            if self.live is None or self.live.id != fact["run"]:
                return ours
            return not self.live.progress(fact)
        to = [one["to"] for one in fact.get("envelopes", [])]
        if self.own in to and not ours:
            self.mail_came = True
        return ours or self.other.address in (fact.get("agent"), fact.get("from"), *to)

    def _news(self) -> list[Envelope]:
        """Read what is new since the last time."""
        place: dict[str, Any] = {"after": self.after}
        if self.live is not None:
            place |= {"run": self.live.id, "parts": self.live.next}
        found = self.call("conversation.news", with_=self.other.address, **place)
        same = self.conversation in (None, found["conversation"])
        if not same:  # the name belongs to a new agent
            self.facts.close()
        self.conversation, self.after = found["conversation"], found["last"] if same else 0
        self.timezone, self.state, self.why = found["timezone"], found["state"], found["why"]
        self._stale = found["more"] or not same
        messages: list[Envelope] = found["envelopes"] if same else []
        self._update_live(found["run"], messages)
        if any(one["sender"] == self.other.address for one in messages):
            self._types_until = 0.0  # it is a message now
        elsewhere = self.state in ("running", "stuck", "asks") and self.live is None
        self._elsewhere_since = (self._elsewhere_since or time.monotonic()) if elsewhere else None
        return messages

    def new_questions(self) -> list[str]:
        """What the run that works for this conversation asks, each only once."""
        if self.live is None:
            return []
        found, self.live.untold = self.live.untold, []
        return found

    @property
    def other_types(self) -> bool:
        """Whether the other side types a message; what an agent writes while it works is in `live`."""
        return self.live is None and time.monotonic() < self._types_until

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
        if any(one["run"] == live.id and one["sender"] != self.own for one in messages):
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
