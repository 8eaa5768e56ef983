"""The asks of a conversation, and those of others to us: which were shown, and which have ended since.

Nothing here prints.
"""

from __future__ import annotations

import re
from typing import Any

from ..client import Answered
from .conversation import ConversationClient, Envelope

_ID = re.compile("q[0-9]{1,15}")
LISTED = 10  # open asks shown at the start

Ask = dict[str, Any]


class Asks:
    """Knows which asks were shown open, and finds those that have ended."""

    def __init__(self, client: ConversationClient) -> None:
        self._client = client
        self._open: set[str] = set()
        self._told: set[str] = set()  # whose end was shown

    def of(self, one: Envelope) -> Ask | None:
        """Return the ask that a message is the question or the answer of; None: it is neither.

        Everybody can write metadata: what counts is what the daemon knows of the ask.
        """
        number = (one["metadata"] or {}).get("ask")
        if not isinstance(number, str) or not _ID.fullmatch(number):
            return None
        ask = self._get(number)
        return ask if ask is not None and one["message"] in (ask["message"], ask["reply"]) else None

    def note(self, ask: Ask) -> None:
        """Note that an ask is shown, or that it is about to be answered here."""
        if ask["state"] == "open":
            self._open.add(ask["id"])
        else:
            self._tell(ask)

    def is_told(self, ask: Ask) -> bool:
        """Tell whether it was shown how this ask ended."""
        return ask["id"] in self._told

    def waiting(self) -> list[Ask]:
        """Return the open asks to us that were not shown yet, oldest first: at the start."""
        try:
            found = self._client.call("ask.list", state="open", page_size=LISTED)["asks"]
        except Answered:  # not for us
            return []
        ours = [one for one in found if one["asked"] == self._client.own and one["id"] not in self._open]
        return ours[::-1]

    def ended(self) -> list[Ask]:
        """Return those that were shown and have ended since, each once."""
        client = self._client
        numbers, client.settled_asks = client.settled_asks, []
        if client.asks_missed:
            client.asks_missed = False
            numbers += sorted(self._open)
        known = [one for one in dict.fromkeys(numbers) if one in self._open]
        found = [ask for one in known if (ask := self._get(one)) is not None and ask["state"] != "open"]
        for ask in found:
            self._tell(ask)
        return [ask for ask in found if not self._has_notice(ask)]

    def _tell(self, ask: Ask) -> None:
        self._open.discard(ask["id"])
        self._told.add(ask["id"])

    def _has_notice(self, ask: Ask) -> bool:
        """Tell whether a notice to us tells of it: somebody else has ended what we were asked."""
        own = self._client.own
        if ask["kind"] != "question" or ask["asked"] != own or ask["answered_by"] == own:
            return False
        return ask["reply"] is not None or ask["answered_by"] == ask["asker"]

    def _get(self, number: str) -> Ask | None:
        try:
            found: Ask = self._client.call("ask.get", id=number)["ask"]
        except Answered:  # there is none, or it is not for us
            return None
        return found
