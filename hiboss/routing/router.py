"""The router accepts messages: everything that comes in through a door or an adapter goes through it.

It checks what does not depend on the state of the store (sizes, forms, times), copies attachments
into `media/`, and hands the draft to the store. What depends on the state (names, permissions, keys) is
checked there, in the transaction that writes it.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, TypeVar

from ..core import clock
from ..core.contracts.failures import Refused
from ..core.contracts.inbound import Inbound
from ..core.envelope import Accepted, Attachment, Draft, measure
from ..core.errors import (
    AttachmentForbidden,
    AttachmentMissing,
    AttachmentUnreadable,
    BadText,
    EmptyMessage,
    HibossError,
    NoRecipient,
    NotFound,
    TooLarge,
)
from ..core.paths import Home
from ..core.settings import Settings
from ..store import destinations, messages, sent_keys, uploads
from ..store.group_commit import Tx
from ..store.intake import Meaning
from ..store.planned_writes import PlannedWrite
from ..store.store import Store
from ..store.uploads import Handed, Upload
from .attachments import NamedFiles
from .inbound_text import OverLimit, tidy
from .message_files import MessageFiles, Prepared

T = TypeVar("T")
NO_FILES = NamedFiles()
TYPES = ("text", "markdown", "json")  # of what comes in


class Router:
    """Accepts drafts of doors (`accept`, `prepare`) and what intake makes of updates (`receive`)."""

    def __init__(self, store: Store, home: Home, settings: Settings) -> None:
        self._store = store
        self._settings = settings
        self._files = MessageFiles(store, home, settings)
        self.uploads = self._files.uploads
        self.accepted: Callable[[Accepted], None] = lambda accepted: None  # set in hiboss/daemon/wiring.py

    async def accept(
        self,
        draft: Draft,
        files: NamedFiles = NO_FILES,
        check: Callable[[Tx], None] | None = None,
        handed: Handed | None = None,
    ) -> Accepted:
        """Store a draft; when this returns it is on disk.

        `files` are to attach, `handed` uploads; `check` may still refuse, inside the transaction.
        """
        if not (files.paths or handed):
            return await self._write(self.plan(draft, check))
        self._check(draft, len(files.paths) + _number(handed))

        def begin(tx: Tx) -> Accepted | list[Upload]:
            return _check_before_copying(tx, draft, check, handed)

        found = await self._store.write(begin)
        if isinstance(found, Accepted):
            return found  # a repeated send: its files may not exist any more
        try:
            prepared = await self._files.prepare(draft, files, handed, found)
        except NotFound:  # an upload that another request has used meanwhile; perhaps the same one
            found = await self._store.write(begin)
            if isinstance(found, Accepted):
                return found
            raise
        writing = self._write(self.plan(prepared.draft, check, prepared.use))
        return await self._files.settle(prepared, writing, lambda one: not one.duplicate)

    def plan(
        self,
        draft: Draft,
        check: Callable[[Tx], None] | None = None,
        use: Callable[[Tx], None] | None = None,
    ) -> PlannedWrite[Accepted]:
        """Return the write that stores a draft whose files, if it has some, are here: `use` takes them."""
        if use is None:
            self._check(draft, 0)
        now = clock.now()

        def insert(tx: Tx) -> Accepted:
            if check is not None:
                check(tx)
            accepted = messages.insert(tx, draft, now)
            if use is not None and not accepted.duplicate:
                use(tx)
            return accepted

        return PlannedWrite(insert, self._stored)

    async def _write(self, planned: PlannedWrite[T]) -> T:
        return planned.then(await self._store.write(planned.change))

    def _stored(self, accepted: Accepted) -> Accepted:
        self.accepted(accepted)
        return accepted

    async def receive(
        self,
        adapter: str,
        inbound: Inbound,
        write: Callable[[Tx, Inbound, tuple[Attachment, ...], int], Meaning],
    ) -> Meaning:
        """Check what came in by this type of adapter, copy its files, and store it with `write`.

        Raises Refused for what can never be accepted; OverLimit if that is because of our limits.
        """
        checked = self.check_inbound(inbound)
        try:
            files = await self._files.media.keep(checked.files, source=adapter) if checked.files else ()
        except TooLarge as error:
            raise OverLimit(error.message) from error
        except (BadText, AttachmentMissing, AttachmentUnreadable, AttachmentForbidden) as error:
            raise Refused(error.message) from error
        now = clock.now()
        writing = self._store.write(lambda tx: write(tx, checked, files, now))
        return await self._files.media.settle(files, writing, lambda meaning: meaning.stored_files)

    def check_inbound(self, inbound: Inbound) -> Inbound:
        """Return what came in with names that can be stored; raise Refused if it can never be accepted."""
        if inbound.kind == "command" and inbound.command and not inbound.files and not inbound.text.strip():
            inbound = replace(inbound, text=f"/{inbound.command} {inbound.arguments}".strip())
        if inbound.kind in ("message", "command") and not inbound.says_something:
            raise Refused("it is empty")
        if inbound.type not in TYPES:
            raise Refused(f"its type must be one of {', '.join(TYPES)}")
        most = self._settings.attachments
        if len(inbound.files) > most:
            raise OverLimit(f"it has {len(inbound.files)} files, and the limit is {most}")
        checked = tidy(inbound, self._settings)
        try:
            measure("text", checked.text, self._settings.text_bytes)
            measure("button", checked.button or "", self._settings.text_bytes)
            measure("arguments", checked.arguments, self._settings.text_bytes)
        except HibossError as error:
            raise OverLimit(error.message) from error
        return checked

    async def prepare(
        self, draft: Draft, files: NamedFiles, handed: Handed | None = None, *, kept_files: bool = False
    ) -> Prepared:
        """Check a draft as if it were sent now and copy its files; return it, to be sent later.

        Store it with `store_prepared`.
        """
        self._check(draft, len(files.paths) + _number(handed), kept_files=kept_files)
        if not (files.paths or handed):
            return Prepared(draft)

        def begin(tx: Tx) -> list[Upload]:  # before anything is copied
            destinations.check(tx, draft)
            return [] if handed is None else uploads.find(tx, handed, clock.now())

        return await self._files.prepare(draft, files, handed, await self._store.write(begin))

    async def store_prepared(self, prepared: Prepared, write: Callable[[], Awaitable[T]]) -> T:
        """Call what stores a prepared draft; if that fails, delete the copies of its files.

        In its transaction it calls `prepared.use`.
        """

        async def writing() -> T:
            return await write()

        return await self._files.settle(prepared, writing())

    def clean_up(self) -> None:
        """Delete the copies of files that a crash left behind. Call it at start."""
        self._files.clean_up()

    def _check(self, draft: Draft, files: int, *, kept_files: bool = False) -> None:
        """Raise if this can never be sent. `files`: how many it brings; `kept_files`: it has some."""
        limits = self._settings
        if not draft.to and draft.reply_to is None and draft.conversation is None:
            raise NoRecipient()
        if len(draft.to) > limits.recipients:
            _too_many("a message", len(draft.to), "recipients", limits.recipients)
        if files > limits.attachments:
            _too_many("a message", files, "attachments", limits.attachments)
        if not (files or kept_files) and (not draft.text or draft.text.isspace()):
            raise EmptyMessage()
        advice = "; send long content as an attachment"
        measure("text", draft.text, limits.text_bytes, advice)
        if draft.subject is not None:
            measure("subject", draft.subject, limits.subject_bytes)
        if draft.from_name is not None:
            measure("from_name", draft.from_name, limits.word_bytes)
        if draft.trace is not None:
            measure("trace_id", draft.trace, limits.word_bytes)
        if draft.key is not None:
            measure("key", draft.key, limits.word_bytes)
        if draft.metadata:
            measure("metadata", _as_json(draft.metadata), limits.metadata_bytes)


def _number(handed: Handed | None) -> int:
    return 0 if handed is None else len(handed.numbers)


def _check_before_copying(
    tx: Tx, draft: Draft, check: Callable[[Tx], None] | None, handed: Handed | None
) -> Accepted | list[Upload]:
    """Return the uploads that go with a draft, or the first answer to a repeated send.

    Raise the error that would refuse this one.
    """
    if check is not None:
        check(tx)
    if draft.key is not None and (first := sent_keys.repeated(tx, draft)):
        return first
    destinations.check(tx, draft)
    return [] if handed is None else uploads.find(tx, handed, clock.now())


def _too_many(what: str, number: int, things: str, limit: int) -> None:
    raise TooLarge(what=what, size=f"{number} {things}", limit=str(limit), advice="")


def _as_json(value: dict[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False)
