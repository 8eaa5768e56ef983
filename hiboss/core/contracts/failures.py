"""The exceptions that adapters and providers raise. The class says how much is affected.

In all of them `kind` is a short stable code, like `timed_out`, and `text` is one sentence for people.
"""

from __future__ import annotations

from typing import NamedTuple

from ..quoting import storable

KIND_CHARACTERS = 50
# The kind of an EnvelopeError for a topic that was deleted: what is for the boss then goes to his chat.
TOPIC_NOT_FOUND = "topic_not_found"
TOPIC_CLOSED = "topic_closed"  # the account may not post there any more: the same
# The kinds of a LaneError after which nobody knows whether the post was made: no answer, or one like a 502.
UNSURE = frozenset(("no_answer", "not_understood", "server_error"))
LONGEST_NAMED = 86_400  # seconds to wait that a platform can name
ERROR_CHARACTERS = 1_000  # every lane has one: a list of many lanes must not get too large


class LaneError(Exception):
    """Nothing can be delivered to this place now, whichever envelope it is: 5xx, 429 of a chat.

    The lane waits, keeps its order, and is retried. `retry_after` (seconds, up to a day) replaces
    the usual delay.
    """

    def __init__(self, kind: str, text: str, retry_after: float | None = None) -> None:
        super().__init__(text)
        self.kind = kind
        self.text = text
        self.retry_after = retry_after


def named_seconds(given: object) -> float | None:
    """Return the seconds that a platform or an adapter said to wait; None: none that can be meant."""
    if isinstance(given, (int, float)) and 0 <= given <= LONGEST_NAMED:
        return float(given)
    return None


class AccountError(LaneError):
    """Nothing can be posted with this account now, to whichever place: 401, 409, network, 429 of the bot.

    All lanes of the binding wait. One of them tries again later, and its success opens them all.
    """


class ChatMoved(LaneError):
    """The chat has another id now, like a group that became a larger one. What waits for it goes there."""

    def __init__(self, chat: str, text: str) -> None:
        super().__init__("chat_moved", text)
        self.chat = chat  # the platform's new id of it


class EnvelopeError(Exception):
    """This envelope can never be posted: too big, malformed, unknown chat. It fails; the lane continues."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind
        self.text = text


class TurnError(Exception):
    """This turn failed: an exit status, an error that the program reported, a limit.

    Its envelopes are given again, one at a time; one that fails alone too often is given up.
    A failure that would stop every turn (program or workspace missing, network, account
    refused) is a LaneError. `repeat` False: its envelopes are given up at once, since another try would
    only cost the same again (a budget per run); people can still retry them.
    """

    def __init__(self, kind: str, text: str, *, repeat: bool = True) -> None:
        super().__init__(text)
        self.kind = kind
        self.text = text
        self.repeat = repeat


class SessionLost(TurnError):
    """The provider cannot resume the session that it was given: it is unknown there, expired, or full.

    The session is not given again. The same turn is given once more, in a new session; a second loss fails
    it.
    """

    def __init__(self, text: str) -> None:
        super().__init__("session_lost", text)


class SessionEnded(Exception):
    """The open session that had a turn is gone, or was detached. Its envelopes are due again."""


class LeftOpen(Exception):
    """The daemon stops, and an open session goes on with its turn: the next daemon takes its answer."""


class Refused(Exception):
    """Options or a message that can never be accepted. `why` gives the reason, for people."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


class Failure(NamedTuple):
    """A failure as it is stored: its kind and its text."""

    kind: str
    text: str

    @classmethod
    def reported(cls, kind: object, text: object) -> Failure:
        """Return a failure that can be stored and shown, whatever an adapter or a provider gave."""
        return cls(storable(kind, KIND_CHARACTERS), storable(text, ERROR_CHARACTERS))
