"""What the contract test of adapters (hiboss/testing/adapter_contract.py) needs from their author: a rig.

A rig plays the platform of one account. It brings the adapter into the situations of the contract.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, NamedTuple

from ..core.contracts.adapter import Adapter, Letter


def letter(place: str, text: str = "hello", **facts: Any) -> Letter:
    """Return a letter; another `id` makes it another one, with keys of its own."""
    number = facts.get("id", "e1")
    known: dict[str, Any] = {
        "id": number,
        "key": f"home-{number}",
        "place": place,
        "text": text,
        "type": "text",
        "subject": None,
        "sender": "agent:nex",
        "sender_name": None,
        "files": (),
        "reply_to": None,
    }
    return Letter(**{**known, **facts})


class Post(NamedTuple):
    """A post of ours, as the platform has it."""

    id: str  # what `post` returned
    place: str  # the chat, and the topic if it is in one: -100/7
    text: str
    reply_to: str | None = None  # the platform's id of the message it is a reply to


class Rig(ABC):
    """One account on a platform of its own, new for each test, with one chat.

    Adapters are made for it many times, one after the other: what the platform knows must be in the rig or
    in files in its directory, not in an adapter. Nothing of it may outlive the test: stop a server that you
    started in `close`. The platform may be a fake one, with the rules of the real one: if that recognizes
    idempotency keys, so does this.

    A method that is not abstract plays a situation that not every platform has: a test that needs it is
    skipped if the rig does not define it. Define all that your platform has.
    """

    chat: str  # the platform's id of the chat; `check` with `good` must list it
    # The last one that `take` was given, for `Account.position`: the test sets it.
    position: str | None = None

    @abstractmethod
    def __init__(self, directory: Path) -> None:
        """Make the account. `directory` is empty, and only this test uses it; its `home` is hiboss's."""

    @abstractmethod
    def good(self) -> dict[str, Any]:
        """Return the settings that the boss gives to bind it, as `agent.bind` gets them: plain JSON."""

    @abstractmethod
    def bad(self) -> list[dict[str, Any]]:
        """Return settings each of which must be refused: an option left out, misspelt, with a wrong value."""

    @abstractmethod
    def make(self) -> Adapter:
        """Return a new adapter of this account, not started, as the daemon makes one for every start.

        Give it an Account: its `home` is the directory's `home`, its position `self.position`. Making one
        must touch nothing.
        """

    @abstractmethod
    def comes_in(self, text: str) -> None:
        """Let a message with this text come in, in the chat. Later ones come behind earlier ones.

        It may be called before an adapter listens, and while it does.
        """

    @abstractmethod
    def originals(self) -> int:
        """Return how many of the updates the platform would deliver again to a new adapter.

        At least those that no `take` has confirmed. It must come down to 0 when all are digested.
        """

    @abstractmethod
    def cannot_start(self) -> None:
        """Let the platform refuse the next start: `start` must raise a LaneError or an AccountError."""

    @abstractmethod
    def cannot_post(self) -> None:
        """Let the platform be unreachable for the next post. It is called after a start."""

    @abstractmethod
    def impossible(self) -> Letter:
        """Return a letter (`self.letter(...)`) that can never be posted; the one after it can."""

    @abstractmethod
    def posted(self) -> list[str]:
        """Return the texts of the posts that are there now, in any order: edited ones as edited."""

    def limited(self, seconds: int) -> None:
        """Let the platform refuse the next post into the chat: too many; wait so many seconds (429)."""
        raise NotImplementedError

    def locked_out(self) -> None:
        """Let the platform accept the account no more, as with a token that was revoked (401).

        It is called after a start.
        """
        raise NotImplementedError

    def command(self, name: str, arguments: str) -> None:
        """Let a command come in, in the chat, like /stop now: name and arguments."""
        raise NotImplementedError

    def close(self) -> None:  # noqa: B027 - most have nothing to stop
        """Stop what the rig started. Called after the test."""

    def letter(self, text: str = "hello", **facts: Any) -> Letter:
        """Return a letter to the chat; another `id` makes it another letter, with keys of its own."""
        return letter(facts.pop("place", self.chat), text, **facts)


class FullRig(Rig):
    """Of a platform that has edits, buttons, albums, topics and replies too, for `FullAdapterContract`."""

    @abstractmethod
    def edit(self, text: str) -> None:
        """Let the last message that came in be edited: this is its new text."""

    @abstractmethod
    def press(self, post: str, value: str) -> None:
        """Let somebody whose id is known press a button under a post of ours. `post` is what `post` returned.

        The button need not be there: nothing sends one yet.
        """

    @abstractmethod
    def album(self, *files: tuple[str, str]) -> None:
        """Let files come in that belong together, one update each: names and contents.

        Names may be equal. Called once more, the files belong to the same album.
        """

    def topic(self, name: str) -> str:
        """Return the platform's id of a topic of the chat that is called so; make it if it must be made."""
        return name

    @abstractmethod
    def in_topic(self, topic: str, text: str) -> None:
        """Let a message come in, in a topic of the chat, which `topic` returned."""

    def posts(self) -> list[Post]:
        """Return the posts of ours that are there now, in any order, with where they are."""
        raise NotImplementedError

    def deleted(self) -> str:
        """Return the platform's id of a message in the chat that was deleted."""
        raise NotImplementedError

    def reply(self, post: str, text: str) -> None:
        """Let a reply to a post of ours come in. `post` is what `post` returned."""
        raise NotImplementedError

    def lost_file(self, text: str) -> None:
        """Let a message come in with this text and one file, which can never be fetched."""
        raise NotImplementedError
