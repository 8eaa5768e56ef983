"""Everything there is on the server: accounts, chats, files, the clock and the calls, behind one lock."""

from __future__ import annotations

import secrets
import threading
from dataclasses import dataclass, field
from typing import Any

from .bots import Bot
from .chats import Chat
from .files import FileStore
from .flood_limits import FloodLimits
from .identities import Account, ChatIdentity
from .messages import Message
from .server_clock import ServerClock


@dataclass(kw_only=True, eq=False)
class Call:
    """One call of a bot. `answer` comes when it is answered; a call can be lost before that."""

    method: str
    params: dict[str, Any]
    bot: Bot
    at: float
    uploads: dict[str, str] = field(default_factory=dict)  # field and file name
    status: int | None = None
    answer: Any = None

    def __repr__(self) -> str:
        return f"<{self.method} {self.params} -> {self.status}>"


@dataclass(frozen=True, kw_only=True)
class CarriedOut:
    """A call that was carried out although its caller saw an error, or was gone: it may do it again."""

    call: Call
    why: str  # the kind of fault, or "caller gone"
    message_ids: tuple[int, ...]  # of the messages it made or changed


class World:
    """The state of the server. Whoever changes it holds `changed`, and notifies."""

    def __init__(self, version: str, *, limits: bool) -> None:
        self.version = numbers(version)
        self.clock = ServerClock()
        self.changed = threading.Condition()  # its lock can be taken again by the thread that has it
        self.files = FileStore()
        self.limits = FloodLimits(self.clock, on=limits)
        self.people: dict[int, Account] = {}
        self.bots: dict[str, Bot] = {}  # by token
        self.groups: dict[int, Chat] = {}  # groups, supergroups and channels
        self.private: dict[tuple[int, int], Chat] = {}  # by person and bot
        self.started: set[tuple[int, int]] = set()  # person and bot
        self.blocked: set[tuple[int, int]] = set()
        self.deactivated: set[int] = set()  # people whose account is deleted
        self.calls: list[Call] = []
        self.carried_out: list[CarriedOut] = []
        self.strict = True
        self.complaints: list[str] = []  # about what the platform silently drops, mends or ignores
        self._last_message = 0
        self._last_account = 100_000_000

    def note_unheard(self, call: Call, why: str) -> None:
        """Note that a call was carried out and that its caller does not know."""
        with self.changed:
            made = call.answer if isinstance(call.answer, list) else [call.answer]
            numbers = tuple(one["message_id"] for one in made if isinstance(one, dict))
            numbers = numbers or tuple(filter(None, [int(call.params.get("message_id") or 0)]))
            self.carried_out.append(CarriedOut(call=call, why=why, message_ids=numbers))
            self.changed.notify_all()

    def complain(self, call: Call, remarks: list[str]) -> None:
        """Write down what the platform would not have told the caller."""
        if self.strict:
            self.complaints += [f"{call.method} {_extract(call)}: {remark}" for remark in remarks]

    def has(self, version: str) -> bool:
        """Return whether this server is of that version or later."""
        return self.version >= numbers(version)

    def new_account_id(self) -> int:
        with self.changed:
            self._last_account += secrets.randbelow(1000) + 1
            return self._last_account

    def new_message_id(self, chat: Chat) -> int:
        """Return the next id: a supergroup or channel counts its own, all other chats count together."""
        if chat.counts_its_own_ids:
            chat.last_id += 1
            return chat.last_id
        self._last_message += 1
        return self._last_message

    def private_chat(self, person: Account, bot: Bot) -> Chat:
        """Return the chat of a person and a bot."""
        with self.changed:
            key = (person.id, bot.id)
            if key not in self.private:
                identity = ChatIdentity(
                    id=person.id,
                    kind="private",
                    username=person.username,
                    first_name=person.first_name,
                    last_name=person.last_name,
                )
                chat = Chat(identity, self.changed, self.clock)
                chat.statuses = {person.id: "member", bot.id: "member"}
                chat.accounts = {person.id: person, bot.id: bot}
                self.private[key] = chat
            return self.private[key]

    def chat_of(self, message: Message) -> Chat:
        """Return the chat a message lies in."""
        if message.chat.kind != "private":
            return self.groups[message.chat.id]
        return next(chat for chat in self.private.values() if chat.history.get(message.id) is message)

    def bots_in(self, chat: Chat) -> list[Bot]:
        return [bot for bot in self.bots.values() if chat.holds(bot)]


def numbers(version: str) -> tuple[int, ...]:
    """Return a version so that 10.3 comes after 9.5."""
    return tuple(int(part) for part in version.split("."))


def _extract(call: Call) -> str:
    """Return the beginning of what a call says, to find it again."""
    said = call.params.get("text") or call.params.get("caption") or call.params.get("rich_message") or ""
    return repr(str(said)[:60])
