"""Messages that were edited or deleted after they were shown. Nothing here prints."""

from __future__ import annotations

from .conversation import HISTORY, ConversationClient, Envelope

KEPT = 1_000  # of the messages that were shown last


class EditedMessages:
    """Knows which wording of each message was shown, and finds newer ones."""

    def __init__(self, client: ConversationClient) -> None:
        self._client = client
        # By message: an envelope of it, when it was edited, and whether it was deleted.
        self._shown: dict[str, tuple[str, str | None, bool]] = {}

    def note(self, envelopes: list[Envelope]) -> None:
        """Note what is shown."""
        for one in envelopes:
            self._shown[one["message"]] = (one["id"], *_wording(one))
        for message in [*self._shown][:-KEPT]:
            del self._shown[message]

    def new(self) -> list[Envelope]:
        """Return what was shown in another wording; each wording only once."""
        client = self._client
        numbers, client.edited = client.edited, []
        found = [client.envelope(self._shown[one][0]) for one in dict.fromkeys(numbers) if one in self._shown]
        if client.edits_missed:
            last = client.call("conversation.messages", with_=client.other.address, page_size=HISTORY)
            found += last["envelopes"]
            client.edits_missed = False
        changed = [one for one in found if self._is_new(one)]
        self.note(changed)
        return changed

    def _is_new(self, one: Envelope) -> bool:
        known = self._shown.get(one["message"])
        return known is not None and known[1:] != _wording(one)


def _wording(one: Envelope) -> tuple[str | None, bool]:
    """Return which wording of a message this is."""
    return one["edited_at"], bool(one.get("deleted"))
