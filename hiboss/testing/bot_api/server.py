"""The server as a test uses it: bots, people and chats on it, the calls it got, and faults."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Any

from .bots import Bot
from .call_handling import CallHandler
from .call_watch import CallWatch
from .chats import Chat
from .faults import ALL, USUAL_KINDS, Fault, FaultBook, RandomFaults, make_fault
from .groups import Group
from .http_server import HOST, Control, HttpServer
from .identities import Account, ChatIdentity
from .method_table import SENDING
from .people import Person
from .world import World


class BotApi(CallWatch):
    """A Bot API server on 127.0.0.1. `with BotApi() as api:` starts and stops it.

    `version` is that of the Bot API; an older one does not know the newer methods. `limits` switches on
    the limits of how much a bot may send.
    """

    def __init__(self, version: str = "10.3", *, port: int = 0, limits: bool = False) -> None:
        super().__init__(World(version, limits=limits))
        self.control: Control | None = None  # see control_door.py
        self.defects: list[str] = []  # mistakes of this server
        self._faults = FaultBook(self.world.changed)
        self._handler = CallHandler(self.world, self._faults)
        self._port = port
        self._server: HttpServer | None = None
        self._place: socket.socket | None = None  # keeps the port while the server does not listen

    def __enter__(self) -> BotApi:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
        if self.defects and error is None:
            raise AssertionError("the Bot API server itself failed:\n" + "\n".join(self.defects))

    def start(self) -> None:
        self.listen_again()

    def close(self) -> None:
        self.stop_listening()
        if self._place is not None:
            self._place.close()
            self._place = None
        self._faults.clear()  # what hangs ends, and finds its connection cut
        self.delay = 0

    @property
    def url(self) -> str:
        """Return the root, to which a client adds /bot<token>/<method>."""
        return f"http://{HOST}:{self._port}"

    # --- who and where -------------------------------------------------------------------

    def add_bot(
        self,
        username: str = "nexbot",
        token: str | None = None,
        *,
        name: str | None = None,
        privacy: bool = True,
        topics: bool = False,
    ) -> Bot:
        """Add a bot. `topics`: people can have topics in the private chat with it."""
        number = int(token.partition(":")[0]) if token else self.world.new_account_id()
        token = token or f"{number}:{secrets.token_urlsafe(26)}"
        account = Account(id=number, first_name=name or username, username=username)
        bot = Bot(account, token, self.world.clock, self.world.changed, privacy=privacy, topics=topics)
        with self.world.changed:
            self.world.bots[token] = bot
        return bot

    def add_person(
        self,
        first_name: str = "Ada",
        username: str | None = None,
        id: int | None = None,
        *,
        last_name: str | None = None,
        language_code: str | None = "en",
    ) -> Person:
        account = Account(
            id=id or self.world.new_account_id(),
            first_name=first_name,
            last_name=last_name,
            username=username,
            language_code=language_code,
        )
        person = Person(self.world, account)
        with self.world.changed:
            self.world.people[person.id] = person
        return person

    def private_chat(self, person: Person, bot: Bot) -> Chat:
        """Return the chat of a person and a bot. Until the person starts or writes, the bot cannot."""
        return self.world.private_chat(person, bot)

    def add_group(
        self,
        title: str = "Team",
        members: Sequence[Account] = (),
        *,
        forum: bool = False,
        supergroup: bool = True,
        admins: Sequence[Account] = (),
    ) -> Group:
        """Add a group. The first person created it; bots are told that they were added."""
        kind = "supergroup" if supergroup or forum else "group"
        return self._add_chat(kind, title, members, admins, is_forum=forum)

    def add_channel(
        self, title: str = "News", members: Sequence[Account] = (), *, username: str | None = None
    ) -> Group:
        """Add a channel; bots are admins in it."""
        return self._add_chat("channel", title, members, (), username=username)

    def _add_chat(
        self, kind: str, title: str, members: Sequence[Account], admins: Sequence[Account], **facts: Any
    ) -> Group:
        number = self.world.new_account_id()
        number = -number if kind == "group" else -1_000_000_000_000 - number
        group = Group(self.world, ChatIdentity(id=number, kind=kind, title=title, **facts))
        with self.world.changed:
            self.world.groups[group.id] = group
            creator = next((one for one in members if not one.is_bot), None)
            if creator is not None:
                group.accounts[creator.id] = creator
                group.statuses[creator.id] = "creator"
            for member in dict.fromkeys([*members, *admins]):
                if member is not creator:
                    group.add(member, admin=member in admins)
        return group

    # --- time and trouble ----------------------------------------------------------------

    def advance(self, seconds: float = 0, *, minutes: float = 0, hours: float = 0, days: float = 0) -> None:
        """Move the server's clock forward."""
        with self.world.changed:
            self.world.clock.advance(seconds + 60 * (minutes + 60 * (hours + 24 * days)))
            self.world.changed.notify_all()

    @property
    def delay(self) -> float:
        """Say how many seconds pass between what a sending method does and its answer.

        Setting it answers those that wait.
        """
        return self._handler.delay

    @delay.setter
    def delay(self, seconds: float) -> None:
        self._handler.delay = seconds

    @property
    def upload_pace(self) -> float | None:
        """Say how many bytes of a file that a bot sends are read in a second; None: as many as come."""
        return self._handler.upload_pace

    @upload_pace.setter
    def upload_pace(self, bytes_per_second: float | None) -> None:
        self._handler.upload_pace = bytes_per_second

    def limit(self, on: bool = True) -> None:
        """Switch the limits of sending on or off."""
        self.world.limits.on = on

    def fault(
        self,
        method: str = ALL,
        *,
        bot: Bot | int | None = None,
        chat: Chat | int | None = None,
        everywhere: bool = False,
        **what: Any,
    ) -> Fault:
        """Let the next calls of a method go wrong; "*" is any method, "file" a download.

        bot, chat (or their ids): only calls of this bot, about this chat; everywhere=True: any calls. One of
        these must be said: on a server with several bots a fault for all meets calls that it is not for.
        times=N (None: until cleared), and one of:
        status=500 (with description=… or body=…), retry_after=N (429), status=502 (HTML),
        do="hang" (until fault.release()), do="drop" (before it is handled),
        do="lose_answer" (it is carried out, then the connection ends), do="garbage" (no JSON),
        bytes_per_second=N (downloads). carry_out=True: it is carried out, and then answered so.
        A getUpdates that waits ends at once, so that the next one meets the fault.
        """
        if everywhere is (bot is not None or chat is not None):
            raise TypeError("a fault names its bot or its chat, or says everywhere=True")
        fault = self._faults.add(make_fault(method, bot=_id(bot), chat=_id(chat), **what))
        if method == ALL or method.lower() == "getupdates":
            self.interrupt_polls()
        return fault

    def random_faults(
        self,
        rate: float,
        seed: int,
        methods: Iterable[str] = SENDING,
        kinds: Iterable[str] = USUAL_KINDS,
    ) -> RandomFaults:
        """Let calls go wrong at random until the faults are cleared; `carried_out` has those that were done.

        kinds: drop, error (500), bad_gateway (502), garbage, hang, each also as …_done (carried out first),
        and flood (429). What hangs does so until the faults are cleared.
        """
        faults = RandomFaults(rate, seed, methods, kinds)
        with self.world.changed:
            self._faults.random.append(faults)
        return faults

    def clear_faults(self) -> None:
        self._faults.clear()

    def interrupt_polls(self) -> None:
        """Let every getUpdates that waits end now, with nothing."""
        for bot in list(self.world.bots.values()):
            bot.updates.interrupt()

    def stop_listening(self) -> None:
        """Refuse connections from now on, and cut those there are."""
        if self._server is not None:
            self._server.close()
            self.defects += self._server.defects
            self._server = None
            self.interrupt_polls()  # the port stays taken, by a socket that does not listen

    def listen_again(self) -> None:
        """Listen on the same port as before."""
        if self._place is None:
            self._place = socket.socket()
            self._place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self._place.bind((HOST, self._port))
            self._port = self._place.getsockname()[1]
        if self._server is None:
            self._server = HttpServer(self._port, self._handler, self.control)


def _id(named: Bot | Chat | int | None) -> int | None:
    return named if named is None or isinstance(named, int) else named.id
