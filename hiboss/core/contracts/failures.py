"""What adapters and providers raise when something goes wrong; the class says how far it reaches."""

from __future__ import annotations

from typing import NamedTuple


class LaneError(Exception):
    """Nothing can be posted there now, by no envelope: network, 5xx, 429, account refused.

    The lane waits and keeps its order. `retry_after` seconds win over our own patience.
    """

    def __init__(self, kind: str, text: str, retry_after: float | None = None) -> None:
        super().__init__(text)
        self.kind = kind
        self.text = text
        self.retry_after = retry_after


class EnvelopeError(Exception):
    """This one can never be posted: too big, malformed, unknown chat. The next one goes on."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind
        self.text = text


class TurnError(Exception):
    """This turn did not go well: an exit status, an error it reported, a limit.

    Its envelopes come again, one at a time; one that never goes well fails, alone. What would
    stop every turn (program or workspace missing, network, account refused) is a LaneError.
    """

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind
        self.text = text


class Refused(Exception):
    """What came in cannot be taken and never will be; it says why."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


class Failure(NamedTuple):
    """What went wrong, in words that stay."""

    kind: str
    text: str
