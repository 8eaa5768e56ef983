"""Mail of other conversations that comes while one talks. Nothing here prints."""

from __future__ import annotations

from collections.abc import Iterator

from ..client import Answered
from .conversation import ConversationClient, Envelope


class OtherMail:
    """What has arrived since the conversation was opened, and is not read yet."""

    def __init__(self, client: ConversationClient) -> None:
        self._client = client
        self._cursor = ""

    def new(self) -> Iterator[list[Envelope]]:
        """Give the mail that came since the last time, some at a time."""
        self._cursor = self._cursor or self._client.facts.arrived
        try:
            while envelopes := self._next():
                yield [one for one in envelopes if not self._known(one)]
        except Answered as error:
            if error.stable_code != "gap":
                raise
            self._cursor = ""  # the store was replaced
        self._client.mail_came = False

    def _next(self) -> list[Envelope]:
        found = self._client.call("envelope.wait", after=self._cursor, timeout_="0.001s")
        self._cursor = found["next"]
        envelopes: list[Envelope] = found["envelopes"]
        return envelopes

    def _known(self, one: Envelope) -> bool:
        """Whether it belongs to the conversation that is shown."""
        if one["sender"] != self._client.other.address:
            return False
        if self._client.conversation is None:  # its first message
            messages = self._client.call(
                "conversation.messages", with_=self._client.other.address, page_size=1
            )
            return bool(one["conversation"] == messages["conversation"])
        return bool(one["conversation"] == self._client.conversation)
