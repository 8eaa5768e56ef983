"""The contract of an adapter: what it must do. The docstrings are the contract.

One contract test runs over every adapter (hiboss/testing/adapter_contract.py). To write your own
adapter, see docs/adapters.md. The values that come in are in hiboss/core/contracts/inbound.py.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, NamedTuple, Protocol

from ..option_models import Options
from .inbound import Digested, NotYet, Update

# What an adapter can do beyond posting. Each word has the method of the same name, but: `buttons` has
# `remove_buttons`, `topics` has `create_topic`, `menu` has `show_commands`, and `files` and `threads`
# (topics of a chat) have none.
CAPABILITIES = frozenset(
    {"edit", "delete", "react", "typing", "draft", "buttons", "files", "threads", "topics", "menu"}
)
METHOD_OF = {
    "buttons": "remove_buttons",
    "topics": "create_topic",
    "menu": "show_commands",
    "files": None,
    "threads": None,
}


class File(NamedTuple):
    """One attachment of a letter."""

    name: str  # as the sender named it, without a path
    path: str  # where to read it: absolute; do not change what is there
    mime: str  # its media type, like image/png, guessed from the name
    size: int = 0  # in bytes, as it was stored
    # What `Posted.files` said of it when this account posted it before, or the platform's id of it if it came
    # in there: whoever can posts it again by this. The platform may have forgotten it. None: it has none.
    platform_id: str | None = None


class Posted(NamedTuple):
    """What became of a chunk that was posted."""

    ids: Sequence[
        str
    ]  # the platform's ids of all posts that it made, like the pictures of an album; one at least
    # By the number of the file in `Letter.files`: how the account can post it again without the file itself.
    files: Mapping[int, str] = {}
    # What of it was not posted, with the reason, like a file that is too big: the sender is told.
    notes: Sequence[str] = ()


class Live(NamedTuple):
    """How a growing answer is shown in a place."""

    how: Literal["draft", "edit", "off"]  # as drafts, as a live post that is edited, or not at all
    seconds: float | None = None  # between two changes; None: `delivery.live_seconds`


class Pace(NamedTuple):
    """How fast an account may post. hiboss keeps to it: posts and edits count, signs do not."""

    chat_seconds: float  # between two in one chat
    group_each_minute: int  # in one group, at most
    account_each_second: int  # in all chats together, at most


class Command(NamedTuple):
    """A command that the boss can give in a chat."""

    name: str  # without the slash
    about: str  # what it does, in a few words


class Button(NamedTuple):
    """A button under a post."""

    value: str  # comes back as `Inbound.button` when it is pressed; at most 64 bytes
    text: str  # what people see


@dataclass(frozen=True, kw_only=True, slots=True)
class Letter:
    """One envelope to be posted to a place on a platform."""

    id: str  # of the envelope, like e81, or of the run whose answer grows, like r9: the same at every attempt
    key: str  # for `chunk_key`: ids repeat in other homes, this does not
    place: str  # the chat, and the topic if there is one: the part after `channel:<adapter>:`
    text: str  # what to post; in a chat of the boss its first line names the sender already
    type: str  # what the text is: text, markdown, json, html or event. Post as text what the platform lacks
    subject: str | None  # None: it has none; a platform without subjects may leave it out
    sender: str  # an address, like agent:nex
    sender_name: str | None  # of the sender, for people; None: it has none
    files: tuple[File, ...]  # to post with one of the chunks; who cannot raises EnvelopeError
    # The platform's id of the message it answers, in this chat. None: it answers nothing, or something
    # that was never there; then post it without a reference. The same if it was deleted there meanwhile:
    # a lost reference is no reason for an EnvelopeError.
    reply_to: str | None
    buttons: tuple[Button, ...] = ()  # to put under the last chunk, for whoever has the capability `buttons`
    # So many characters at the beginning of `text` are hiboss's own, like the name of the sender: they are
    # plain text, whatever the type says, which is that of the rest.
    front: int = 0

    @property
    def body(self) -> str:
        """What the sender wrote: the text without what hiboss put in front."""
        return self.text[self.front :]

    @property
    def chat(self) -> str:
        """The platform's id of the chat."""
        return self.place.partition("/")[0]

    @property
    def topic(self) -> str | None:
        """The topic of the chat; None: the chat has none, or none is meant."""
        return self.place.partition("/")[2] or None

    def chunk_key(self, number: int) -> str:
        """Return the idempotency key of a chunk: the same at every attempt, and no other chunk has it.

        `number` is the index of the chunk, as `post` gets it.
        """
        return f"{self.key}.{number}"


class AdapterSettings(Options):
    """The settings of a binding: the base of `Adapter.Settings`.

    Each field is an option of `hiboss agent bind` and a key of `settings` in `agent.bind`: give it a
    description. A field of the type SecretStr is a secret: it is stored in a file that only the owner can
    read, and never shown. See hiboss/core/option_models.py.
    """


class Chat(NamedTuple):
    """A chat of an account."""

    id: str  # the platform's: no space, no colon and no slash
    kind: str = "private"  # private, group or channel
    name: str | None = None  # of the person, or the title of the group


@dataclass(frozen=True, kw_only=True, slots=True)
class Checked:
    """What a binding stores."""

    # The platform's name for the account, the same every time: no space, no colon and no slash. It says
    # whether two bindings are the same one.
    account: str
    settings: AdapterSettings  # as they were given, or completed
    # Those it may post to from the start. What comes in from another chat is held until the boss approves
    # it; if the adapter is `open_to_all` it becomes mail, but nothing can be posted there. Binding the
    # account again adds those that are new.
    chats: Sequence[Chat] = ()
    name: str | None = None  # the account as people know it, like @nexbot; None: as `account`
    # What the boss should know or do next, one sentence each: `hiboss agent bind` prints them.
    notes: Sequence[str] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Account:
    """The account that an adapter works for: one binding."""

    binding: int  # the number of the binding: 1 for b1
    name: str  # the name of the account, as `check` returned it
    settings: Any  # as `check` returned them: an instance of the adapter's Settings, with the secrets in it
    home: str  # the home directory of hiboss: no file may come from there or be written there
    # The last one given to `take`, by whichever instance: hiboss keeps it and does not read it. None:
    # none was ever given, so begin at what the platform has now, or at its beginning.
    position: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Taken:
    """What `take` answers. An update that is in neither was stored before and still waits."""

    new: frozenset[str]  # the ids of the updates that were not stored before
    # The ids of those that were digested before, or have acted now, so their originals can go; with the
    # reason if one was given up before, else None.
    digested: Mapping[str, str | None]
    # What to tell those who pressed a button, by the id of the update: show it to them for a moment. It is
    # done, whether they see it or not.
    answers: Mapping[str, str] = field(default_factory=dict)


class Take(Protocol):
    """Stores updates as they came. An adapter gets one when it listens."""

    def __call__(
        self,
        updates: Sequence[Update],
        position: str | None = None,
        missed: tuple[int, int] | None = None,
    ) -> Awaitable[Taken]:
        """Store these updates and the position in one transaction.

        `missed`: the platform may have dropped what came between these times (milliseconds since 1970),
        because nobody fetched it for too long. The boss is told, in the same transaction.

        When this returns they are on disk: only now advance the platform's offset or confirm them. An
        update with a known id changes nothing. Raises if they were not stored: give them again later.

        A call says that the platform answers: chats whose digestion raised AccountError are digested again.
        So call it also without updates when the platform answers again after a fault.
        """


class Adapter(Protocol):
    """Code connected to a platform, for one account there. Each start makes a new instance.

    It need not inherit from this class. The first line of its own docstring is its summary in
    `hiboss agent adapters`.

    An adapter posts the letters it is given, passes on the updates that come in, and raises
    typed errors when something fails. It never retries by itself and never decides what is
    delivered: the daemon does both.
    """

    # What a binding of it needs: each field is an option. Its validators refuse with a ValueError.
    Settings: ClassVar[type[AdapterSettings]] = AdapterSettings
    type: ClassVar[str]  # the name of the adapter, as in channel:<type>:<place>
    # What it can do beyond posting, of: edit, delete, react, typing, draft, buttons, files, threads, topics,
    # menu.
    capabilities: ClassVar[frozenset[str]] = frozenset()
    # True: everybody who can write there may, like in a directory. False: what comes in from a chat that
    # nobody has approved is held; the person gets a code, and the boss decides (docs/telegram.md).
    open_to_all: ClassVar[bool] = False
    # Optional: a regular expression for the ids of persons there. As the boss's id no other is taken.
    person_id: ClassVar[str | None] = None
    # Optional: how fast an account may post; None: as fast as it can.
    pace: ClassVar[Pace | None] = None
    # Optional: the emojis that can be put on a message there; None: any.
    emojis: ClassVar[frozenset[str] | None] = None
    # Optional: what is wrong while it listens and goes on trying, like no network; None: nothing is.
    # `hiboss agent bindings` shows it.
    trouble: str | None = None

    def __init__(self, account: Account) -> None:
        """Store the account. Do no I/O here."""

    @classmethod
    async def check(cls, given: Any, home: str) -> Checked:
        """Check the settings of a new binding, and return what it stores.

        `given` is an instance of Settings, `home` the home directory of hiboss. It may connect to the
        platform to find out who the account is. Raise Refused, with the reason, if this cannot work, or
        AccountError if the platform cannot be reached now. It has 60 seconds.
        """

    @classmethod
    def unchecked(cls, given: Any) -> Checked:
        """Return what a binding stores, without connecting to the platform (`--no-check`). Optional.

        The account must be the same that `check` returns.
        """

    async def start(self) -> None:
        """Connect to the platform. Return when `post` and `digest` can be called.

        Raise AccountError if the platform cannot be reached now or refuses the account. Any
        other exception is a crash and is logged. In both cases a new instance is started
        later, with growing pauses. The same happens when `start` takes longer than 60 seconds.
        """

    async def listen(self, take: Take) -> None:
        """Hand over every update that comes in, until cancelled: the first stage of the intake.

        Be quick: decode only what `Update` asks for, and download nothing. If `listen` returns or
        raises, that is a crash, and a new instance is started. When it is cancelled, it ends at once.
        """

    async def digest(
        self, updates: Sequence[Update], downloads: str, *, waited: bool, last_try: bool
    ) -> Digested | NotYet:
        """Say what the first of these updates mean: the second stage of the intake.

        `updates` are the first that wait in one chat, in order, at most 50 (not those that had `act`).
        Chats are digested at the same time, so one slow download holds up no other chat. Download files
        into the directory `downloads`, which is new, empty and deleted afterwards; `download_path` (in
        inbound.py) makes the path of each.

        Return Digested, or NotYet if more updates may belong to the first one (an album): it is called
        again whenever one more comes in this chat, and, with `waited`, when the time is over.

        An exception, or `intake.digest_seconds` without an answer, is a failure, and it is called again
        later. The third time is the last, with `last_try`: leave out what cannot be fetched, and say so
        in `Inbound.note`. If that fails too, the first update is given up and the boss is told. Two
        exceptions differ: AccountError (the platform cannot be reached) counts as no try, and Refused
        (this can never become anything) gives it up at once.
        """

    async def digested(self, update: Update, problem: str | None) -> None:
        """Clean up after an update that was digested, or given up (`problem` says why). Optional.

        Called after COMMIT, once for each update; not if the daemon died in between. Whoever needs to be
        sure gives the update to `take` again after a start: `Taken.digested` names it then.
        """

    async def stop(self) -> None:
        """Disconnect and free all resources, within 5 seconds.

        Called once for each instance, also when `start` failed.
        """

    def chunks(self, letter: Letter) -> list[str]:
        """Return the parts to post, one platform message each; at least one.

        Do no I/O, and return the same chunks for the same letter every time. A long one is given to it in
        another thread.
        """

    async def post(self, letter: Letter, number: int, chunk: str) -> str | Posted:
        """Post one chunk; return the platform's id of it after the platform has confirmed it.

        Return Posted if there is more to say than one id. `number` is the index of the chunk, from 0.
        Raise LaneError if nothing can be posted there now, ChatMoved if the chat has another id now,
        AccountError if nothing can be posted anywhere with this account, or EnvelopeError if this letter
        can never be posted; any other exception counts as a LaneError. Each chunk has
        `delivery.post_seconds`.

        The same chunk can come again: the platform took it, but the daemon died before that was
        stored, or its answer was lost or came too late. Give `letter.chunk_key(number)` to a
        platform that recognizes repeated posts: then nothing is doubled.
        """

    # --- only for those who declare it: each raises the errors of `post` -----------------

    async def edit(self, place: str, platform_id: str, chunk: str, key: str) -> None:
        """Give a post another text (capability `edit`): a live post that grows, or becomes the answer.

        Also a post whose message was edited. `chunk` is one that `chunks` returned, `key` its idempotency
        key, as in `post`. The same edit can come again: to give a post the text that it has succeeds. Raise
        EnvelopeError if the post is not there any more or cannot be edited. Any error ends a live post, and
        the answer is posted; after one that names a wait it grows no more, and becomes the answer later. It
        has 10 seconds.
        """

    def can_become(self, shown: str, chunk: str) -> bool:
        """Say whether an edit can make one chunk of another. Optional, and it does no I/O.

        Both are of one letter, before and after its message was edited. By default: always. Whoever posts
        files with chunks of their own says no for a text and a file.
        """

    async def delete(self, place: str, platform_id: str) -> None:
        """Delete a post (capability `delete`). One that is not there any more counts as deleted.

        After a LaneError it is tried again later; after any other error the post stays there.
        """

    async def remove_buttons(self, place: str, platform_id: str) -> None:
        """Take the buttons from a post (capability `buttons`). One that has none succeeds. This is a sign."""

    async def create_topic(self, chat: str, name: str) -> str:
        """Make a topic in a chat (capability `topics`) and return the platform's id of it.

        Raise Refused if that chat cannot have topics; the text says what the boss can do about it. It has
        10 seconds.
        """

    async def show_commands(self, chat: str, commands: Sequence[Command]) -> None:
        """Offer these commands in the menu of a private chat (capability `menu`). This is a sign."""

    async def typing(self, place: str) -> None:
        """Show for some seconds that an answer is being written (capability `typing`).

        This is a sign, and so are `react` and `draft`: dropped when it cannot go now, never queued. It has
        5 seconds, and its errors change nothing. Only one that names a wait keeps further signs and
        changes of live posts out of its chat for so long.
        """

    async def react(self, place: str, platform_id: str, emoji: str | None) -> None:
        """Put an emoji on a message (capability `react`), in place of the one that the account has there.

        None: take it back. Raise EnvelopeError if the message is not there any more or takes no such emoji.
        What a run does with a message is shown by a sign (👀); what an agent sets is tried again.
        """

    def live(self, place: str) -> Live:
        """Say how a growing answer is shown in a place. Optional, and it does no I/O.

        By default: by edits, for who can `edit` and `delete`; else by drafts, for who can `draft`.
        """

    async def draft(self, place: str, number: int, chunk: str) -> None:
        """Show an answer that grows, as no post yet (capability `draft`). This is a sign.

        `number` is the same for all drafts of one answer, and no other has it there. `chunk` is the first
        that `chunks` returns for all of it so far. It must vanish by itself soon, and at the next post. If
        people can stop the answer there, that comes in as an Inbound of the kind `stop` with this number.
        Raise Refused if there can be no drafts in this place: then it is asked for `live` again.
        """
