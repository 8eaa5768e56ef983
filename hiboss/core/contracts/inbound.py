"""What comes in from a platform: the values of the intake (see hiboss/core/contracts/adapter.py).

An update is first stored as it came, and later digested: several can become one message.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

Kind = Literal["message", "edit", "reaction", "press", "command", "membership", "stop", "ignored"]


class Author(NamedTuple):
    """Who wrote, pressed or reacted."""

    # The platform's id of the person. In a private chat of a person most platforms give the chat the same
    # id: so hiboss knows the boss in a group too.
    id: str | None = None
    name: str | None = None  # as people see it
    username: str | None = None  # the short name on the platform, without @
    bot: bool = False  # a program, not a person

    def facts(self) -> dict[str, object]:
        """Return what is known, for JSON."""
        return {key: value for key, value in self._asdict().items() if value}


NOBODY = Author()


class ReceivedFile(NamedTuple):
    """A file of a message that came in, with what its platform says of it."""

    path: str  # absolute, without links
    name: str | None = None  # as its sender named it; None: that of the path
    platform_id: str | None = None  # the platform's id of the file: whoever posts it again may use it

    def __fspath__(self) -> str:
        """Return the path, so that it can be used like one."""
        return self.path


def path_of(file: str | ReceivedFile) -> str:
    """Return where a file of a message is."""
    return file if isinstance(file, str) else file.path


@dataclass(frozen=True, kw_only=True, slots=True)
class Inbound:
    """What one update means, or several together."""

    # message, edit, reaction, press, command, membership, stop or ignored; docs/adapters.md says what becomes
    # of each, and which fields it needs.
    kind: Kind = "message"
    # Where.
    chat: str  # the platform's id of the chat, the same as of its update: no space, no colon and no slash
    chat_kind: Literal["private", "group", "channel"] = "private"  # private: with one person
    title: str | None = None  # of a group or channel; a private chat is called as its author
    topic: str | None = None  # the platform's id of it: no space, no colon and no slash; None: no topic
    # Who.
    author: Author = NOBODY  # NOBODY: the platform does not say it
    forwarded: str | None = None  # the name of the person who first wrote it; None: it is the author's own
    # Which message.
    message: str | None = None  # the platform's id of it; of an edit, reaction or press: the one it is about
    reply_to: str | None = None  # the platform's id of the message it replies to, of anybody in this chat
    # The words that it quotes, of the message that it replies to: shown to the agents, also if hiboss does
    # not know that message. They are never taken for the author's own.
    quote: str | None = None
    mentioned: bool = False  # the account is named in it: in a group it is then for its agents (`groups`)
    replied: bool = False  # it replies to a post of the account, which counts like `mentioned`
    sent_at: int | None = None  # milliseconds since 1970, by the platform's clock; kept in `channel`
    # What: message, edit, command.
    text: str = ""  # as it was written; a message without text, files and note is ignored
    subject: str | None = None  # on platforms that have subjects, like mail
    # Absolute paths without links, each once, or ReceivedFile; they are copied at once.
    files: Sequence[str | ReceivedFile] = ()
    type: Literal["text", "markdown", "json"] = "text"  # what the text is; of a message alone
    # A machine made it, and nobody waits there for an answer: the agent gets a turn, but its final text is
    # not sent there, and nobody is told there what becomes of it.
    auto: bool = False
    note: str | None = None  # what is missing, like a file that could not be fetched: the agents are shown it
    # The other kinds.
    button: str | None = None  # press: the value of the button
    emoji: str | None = None  # reaction: which one
    removed: bool = False  # reaction: it was taken back
    # reaction, in place of `emoji`: all that the author has on the message now; none: all were taken back.
    emojis: Sequence[str] | None = None
    command: str | None = None  # command: its name, without the slash and without the name of the account
    arguments: str = ""  # command: what follows it
    # membership: what happened to the account in the chat, or to the chat.
    membership: Literal["joined", "left", "renamed"] | None = None
    renamed_to: str | None = None  # membership renamed: the new id of the chat
    draft: int | None = None  # stop: the number of the drafts of the answer that is to end

    @property
    def says_something(self) -> bool:
        """Whether it has words or files, or a note about a file that is missing."""
        return bool(self.files or self.text.strip() or self.note)

    @property
    def place(self) -> str:
        """The chat, and the topic if there is one: the part after `channel:<adapter>:`."""
        return self.chat if self.topic is None else f"{self.chat}/{self.topic}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Update:
    """One update as it came, before it is digested."""

    # The platform's id of the update: the same at every delivery of it, and no other one of the account
    # has it. It is stored once.
    id: str
    chat: str  # the platform's id of the chat: updates of one chat are digested in order
    # What `digest` needs, of types that JSON has, up to 1 MiB: it gets it back, also after a restart.
    raw: Any
    message: str | None = None  # the platform's id of the message, if it is known already
    # Of the kind press, membership, command or stop: it acts at once, before updates of this chat that still
    # wait, and the update is not digested. What does not act (another kind, a command that hiboss does not
    # know or that is not the boss's) is left to `digest`.
    act: Inbound | None = None
    # Who wrote it, where, its text and whether the account is named: what can be said without fetching
    # anything. hiboss looks at it before the boss has approved the chat. Not needed for adapters that are
    # `open_to_all`.
    about: Inbound | None = None


@dataclass(frozen=True, slots=True)
class Digested:
    """These updates mean this. All others still wait, and come again with the next call of `digest`."""

    inbound: Inbound  # what they mean; its chat is that of the updates
    # Of those that were given, the first and any others (an album, also with messages of others between
    # its parts); empty: the first alone.
    uses: Sequence[Update] = ()

    def used(self, given: Sequence[Update]) -> list[Update]:
        """Return those of the given updates that it is made of; raise ValueError if they cannot be."""
        uses = [one.id if isinstance(one, Update) else None for one in self.uses] or [given[0].id]
        used = [one for one in given if one.id in uses]
        if len(used) != len(uses) or used[0] is not given[0]:
            raise ValueError(
                "uses must be updates that digest was given, each once, and the first among them"
            )
        return used


class NotYet(NamedTuple):
    """More updates may belong to the first one: wait for them, so long after an update of it was stored."""

    seconds: float  # 60 at most
    # The last that belongs to it so far, of those that were given: the time counts from the moment when it
    # was stored, also before a restart, whatever else comes in. None: the first.
    last: Update | None = None

    def counts_from(self, given: Sequence[Update]) -> int:
        """Return which of the given updates the time counts from; raise ValueError if it is none of them."""
        if self.last is None:
            return 0
        for number, update in enumerate(given):
            if isinstance(self.last, Update) and update.id == self.last.id:
                return number
        raise ValueError("the last of NotYet must be an update that digest was given")


def download_path(downloads: str, name: str) -> str:
    """Return where to write a file with this name of its sender: in a new directory inside `downloads`.

    So files with one name do not overwrite each other, and a name like ../x leads nowhere else.
    """
    return os.path.join(tempfile.mkdtemp(dir=downloads), file_name(name))


def file_name(name: str) -> str:
    """Return the name that a file gets here: that of its sender without directories, and not too long."""
    last = name.replace("\x00", "").replace("\\", "/").rstrip("/").rpartition("/")[2]
    while len(last.encode("utf-8", "replace")) > 200:  # the limit of most systems is 255 bytes
        last = last[1:]  # the ending says what it is
    return "file" if last in ("", ".", "..") else last.encode("utf-8", "replace").decode()
