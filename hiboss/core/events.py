"""Facts: what has changed, in the past tense, for whoever follows (docs/events.md).

The store collects them inside the transaction that makes them true (`tx.facts`). They are published
after its COMMIT, and numbered then (routing/facts.py). No delivery depends on them: everything that
must happen follows from the store. A fact names what changed and has no text of a message; who wants
that reads it, and his right is checked there.

A fact carries only what is known where it happens. Who may see it (its parties) and its conversation
are looked up when somebody follows (store/fact_parties.py), so that a change which nobody follows
costs next to nothing. Fields are numbers of rows and milliseconds; routing/fact_json.py shows them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count
from typing import NamedTuple

# --- mail ------------------------------------------------------------------------------


class Arrival(NamedTuple):
    """One envelope that arrived."""

    envelope: int
    recipient: int  # address id
    arrived: int  # its arrival number


class EnvelopesArrived(NamedTuple):
    """The envelopes of a message are in the boxes of their recipients now."""

    at: int
    message: int
    conversation: int
    seq: int
    sender: int  # address id
    numbers: Sequence[int]  # of the envelopes
    recipients: Sequence[int]  # address ids, in the same order
    last: int  # the arrival number of the last one; those before it have the numbers before it

    @property
    def envelopes(self) -> list[Arrival]:
        first = self.last - len(self.numbers) + 1
        return list(map(Arrival, self.numbers, self.recipients, count(first)))


class EnvelopesDeferred(NamedTuple):
    """A message was accepted that arrives later. Only its sender knows of it."""

    at: int
    message: int
    conversation: int
    sender: int
    numbers: Sequence[int]  # of the envelopes
    until: int


class EnvelopeForwarded(NamedTuple):
    """Mail for the boss is also posted to a chat of his, by an envelope of its own."""

    at: int
    envelope: int
    forwards: int  # the envelope in his box
    arrived: int  # the arrival number of the new one


class EnvelopeRead(NamedTuple):
    at: int
    envelope: int


class EnvelopeAcknowledged(NamedTuple):
    """Its recipient has acknowledged it; if it was pending, it is done with that."""

    at: int
    envelope: int


class EnvelopeOverdue(NamedTuple):
    """It was not acknowledged until the time that its sender had set."""

    at: int
    envelope: int


class EnvelopeSnoozed(NamedTuple):
    """Its recipient has hidden it until a time. Then it is due again."""

    at: int
    envelope: int
    until: int


class EnvelopeClaimed(NamedTuple):
    """A session of its recipient has claimed it until a time."""

    at: int
    envelope: int
    until: int


class EnvelopeDue(NamedTuple):
    """It is due again: a lease, a snooze or the wait for a retry is over."""

    at: int
    envelope: int


class EnvelopeWaits(NamedTuple):
    """An attempt to deliver it failed; the next one comes later."""

    at: int
    envelope: int
    until: int | None  # None: when its lane may go on


class EnvelopeSettled(NamedTuple):
    """It was delivered (done) or given up (failed)."""

    at: int
    envelope: int
    status: str  # done, failed


class EnvelopeCancelled(NamedTuple):
    at: int
    envelope: int


class EnvelopeRetried(NamedTuple):
    """Somebody made a failed envelope pending again."""

    at: int
    envelope: int


class EnvelopeRouted(NamedTuple):
    """Somebody gave it to another recipient, in whose box it is now."""

    at: int
    envelope: int
    routed_from: int  # the address id of who had it


class EnvelopeMoved(NamedTuple):
    """Its recipient put it into another box. A pending one that leaves the inbox is settled with that."""

    at: int
    envelope: int
    box: str  # inbox, archived, trash


class MessageEdited(NamedTuple):
    at: int
    message: int


class MessageDeleted(NamedTuple):
    """Its author or the boss deleted it: its content is not shown any more."""

    at: int
    message: int


class MessageRestored(NamedTuple):
    """It was deleted, and is not any more: its content is shown again."""

    at: int
    message: int


class MessageReacted(NamedTuple):
    """Somebody reacted to a message, or took the reaction back."""

    at: int
    message: int
    emoji: str
    removed: bool


class ChatRenamed(NamedTuple):
    """A chat has another id: its addresses are others, and its conversations if two chats became one.

    Who follows one of its parties or conversations is told of a gap, and reads again; what they became is
    followed from then on.
    """

    at: int
    parties: Sequence[int]  # address ids, also of those that went
    conversations: Sequence[int]  # also of those that went
    became: Mapping[int, int]  # address ids that went, with what they are now
    merged: Mapping[int, int]  # conversations that went, with what they are now


# --- conversations ---------------------------------------------------------------------


class ConversationChanged(NamedTuple):
    """A conversation was created, changed, archived, opened again or deleted."""

    at: int
    conversation: int
    change: str  # created, changed, archived, reopened, deleted
    by: int | None  # address id; None: hiboss itself
    parties: Sequence[int]  # address ids of those who are in it, or were until now


class ParticipantChanged(NamedTuple):
    """Somebody came to a group, left it, or has another role there."""

    at: int
    conversation: int
    who: int  # address id
    change: str  # joined, left, changed
    role: str | None  # None: it is not there any more
    by: int | None  # address id; None: hiboss itself
    parties: Sequence[int]  # address ids of those who are in it, and of who left


# --- runs, agents ----------------------------------------------------------------------


class RunStarted(NamedTuple):
    at: int
    run: int
    agent: int  # address id
    conversation: (
        int | None
    )  # where its answer goes, if its output is for the parties there; None: for nobody


class RunProgress(NamedTuple):
    """A part of the output of a run. A reader that is too slow may miss it."""

    at: int
    run: int
    agent: int
    conversation: int | None
    part: int  # its place in the output, from 1: a reader knows which it has, and whether one is missing
    kind: str
    text: str


class RunPaused(NamedTuple):
    at: int
    run: int
    agent: int
    conversation: int | None
    paused: bool  # False: it goes on


class RunHandedOver(NamedTuple):
    """An open session was told of a turn, its harness holds it back, or it has it."""

    at: int
    run: int
    agent: int
    conversation: int | None
    step: str  # submitted, held, seen


class RunEnded(NamedTuple):
    at: int
    run: int
    agent: int
    conversation: int | None
    status: str  # completed, failed, cancelled, interrupted


class AgentChanged(NamedTuple):
    """The state of an agent may be another one. Which one is read when the fact is shown."""

    at: int
    agent: int


class UserChanged(NamedTuple):
    """A person came, went, or does nothing for some time."""

    at: int
    user: int
    presence: str  # online, away, offline


class TypingChanged(NamedTuple):
    """Somebody types in a conversation, or not any more. It is for the others there."""

    at: int
    who: int  # address id
    conversation: int
    on: bool


# --- asks ------------------------------------------------------------------------------


class AskCreated(NamedTuple):
    """Somebody was asked, and an answer is awaited."""

    at: int
    ask: int


class AskSettled(NamedTuple):
    """An ask was answered, or cancelled, or its time is over."""

    at: int
    ask: int
    state: str  # answered, expired, cancelled


# --- controls --------------------------------------------------------------------------


class ControlSent(NamedTuple):
    """Somebody ordered something about what runs or waits. Its text and its reason are in the message."""

    at: int
    control: int
    event: str  # stream.pause, …
    outcome: str  # applied, too-late, refused
    actor: int  # address id
    agent: int | None  # whom it is about
    run: int | None
    envelope: int | None
    message: int  # of the type event


# --- the breaker -----------------------------------------------------------------------


class BreakerPulled(NamedTuple):
    """Nobody gets a turn from now on, and what agents post holds."""

    at: int
    by: int | None  # address id; None: the command line, while the daemon did not answer


class BreakerReleased(NamedTuple):
    at: int
    by: int | None


# --- channels --------------------------------------------------------------------------


class LaneWaits(NamedTuple):
    """A lane, or all lanes of an account, had a failure and is retried later."""

    at: int
    address: int | None  # None: all lanes of the binding
    binding: int | None
    until: int | None  # None: it is paused, until somebody resumes it


class LaneOpen(NamedTuple):
    """A lane that waited or was paused may deliver again."""

    at: int
    address: int | None
    binding: int | None


class AdapterRunning(NamedTuple):
    at: int
    binding: int
    account: str


class AdapterFailed(NamedTuple):
    at: int
    binding: int
    account: str
    error: str


class BindingRemoved(NamedTuple):
    """An account no longer serves an agent. With its last agent it ends, and so do its adapter and lanes."""

    at: int
    binding: int
    account: str
    agent: int
    ended: bool  # this was its last agent


OfEnvelope = (
    EnvelopeForwarded
    | EnvelopeRead
    | EnvelopeAcknowledged
    | EnvelopeOverdue
    | EnvelopeSnoozed
    | EnvelopeClaimed
    | EnvelopeDue
    | EnvelopeWaits
    | EnvelopeSettled
    | EnvelopeCancelled
    | EnvelopeRetried
    | EnvelopeRouted
    | EnvelopeMoved
)
OfMessage = MessageEdited | MessageDeleted | MessageRestored | MessageReacted
OfConversation = ConversationChanged | ParticipantChanged
OfRun = RunStarted | RunProgress | RunPaused | RunHandedOver | RunEnded
OfAsk = AskCreated | AskSettled
OfBreaker = BreakerPulled | BreakerReleased
OfLane = LaneWaits | LaneOpen
OfAdapter = AdapterRunning | AdapterFailed
Fact = (
    EnvelopesArrived
    | EnvelopesDeferred
    | OfEnvelope
    | OfMessage
    | OfConversation
    | ChatRenamed  # it has no topic of its own: it is a gap
    | OfRun
    | AgentChanged
    | UserChanged
    | TypingChanged
    | OfAsk
    | ControlSent
    | OfBreaker
    | OfLane
    | OfAdapter
    | BindingRemoved
)
TOPICS: dict[type[Fact], str] = {
    EnvelopesArrived: "envelope.arrived",
    EnvelopesDeferred: "envelope.deferred",
    EnvelopeForwarded: "envelope.forwarded",
    EnvelopeRead: "envelope.read",
    EnvelopeAcknowledged: "envelope.acknowledged",
    EnvelopeOverdue: "envelope.overdue",
    EnvelopeSnoozed: "envelope.snoozed",
    EnvelopeClaimed: "envelope.claimed",
    EnvelopeDue: "envelope.due",
    EnvelopeWaits: "envelope.waits",
    EnvelopeSettled: "envelope.settled",
    EnvelopeCancelled: "envelope.cancelled",
    EnvelopeRetried: "envelope.retried",
    EnvelopeRouted: "envelope.routed",
    EnvelopeMoved: "envelope.moved",
    MessageEdited: "message.edited",
    MessageDeleted: "message.deleted",
    MessageRestored: "message.restored",
    MessageReacted: "message.reacted",
    ConversationChanged: "conversation.changed",
    ParticipantChanged: "participant.changed",
    RunStarted: "run.started",
    RunProgress: "run.progress",
    RunPaused: "run.paused",
    RunHandedOver: "run.handed_over",
    RunEnded: "run.ended",
    AgentChanged: "presence",
    UserChanged: "presence",
    TypingChanged: "presence.typing",
    AskCreated: "ask.created",
    AskSettled: "ask.settled",
    ControlSent: "control",
    BreakerPulled: "breaker.pulled",
    BreakerReleased: "breaker.released",
    LaneWaits: "lane.waiting",
    LaneOpen: "lane.open",
    AdapterRunning: "adapter.running",
    AdapterFailed: "adapter.failed",
    BindingRemoved: "binding.removed",
}
