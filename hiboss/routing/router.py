"""The router accepts messages: everything that comes in through a door or an adapter goes through it.

It checks what does not depend on the state of the store (sizes, forms, times), copies attachments
into `media/`, and hands the draft to the store. What depends on the state (names, permissions, keys) is
checked there, in the transaction that writes it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Any

from ..core import clock
from ..core.contracts.adapter import Inbound
from ..core.contracts.failures import Refused
from ..core.envelope import Accepted, Attachment, Draft, measure
from ..core.errors import (
    AttachmentForbidden,
    AttachmentMissing,
    AttachmentUnreadable,
    BadText,
    EmptyMessage,
    HibossError,
    NoRecipient,
    TooLarge,
)
from ..core.paths import Home
from ..core.settings import Settings
from ..store import messages, platform_updates
from ..store.group_commit import Tx
from ..store.store import Store
from . import attachments


class Router:
    """Accepts drafts of doors (`accept`, `prepare`) and messages of platforms (`receive`)."""

    def __init__(self, store: Store, home: Home, settings: Settings) -> None:
        self._store = store
        self._home = home
        self._settings = settings
        self.accepted: Callable[[Accepted], None] = lambda accepted: None  # set in hiboss/daemon/wiring.py

    async def accept(
        self, draft: Draft, files: Sequence[str] = (), check: Callable[[Tx], None] | None = None
    ) -> Accepted:
        """Store a draft; when this returns it is on disk.

        `files` are paths to attach; `check` may still refuse, inside the transaction.
        """
        self._check(draft, bool(files))
        if len(files) > self._settings.attachments:
            _too_many("a message", len(files), "attachments", self._settings.attachments)
        if files:
            if first := await self._repeated(draft):
                return first  # a repeated send: its files may not exist any more
            draft = draft._replace(attachments=await self._keep(files))
        now = clock.now()

        def insert(tx: Tx) -> Accepted:
            if check is not None:
                check(tx)
            return messages.insert(tx, draft, now)

        accepted = await self._store.write(insert)
        self.accepted(accepted)
        return accepted

    async def receive(self, binding: int, adapter: str, inbound: Inbound) -> bool:
        """Store a message of a platform; when this returns, the platform's offset may advance.

        Return False if it was stored before. Raises Refused for what can never be accepted.
        """
        self._check_inbound(inbound)
        if inbound.files:  # a repeated update: its files may not exist any more
            known: bool = await self._store.write(
                lambda tx: platform_updates.known(tx, binding, inbound.update)
            )
            if known:
                return False
        try:
            files = await self._keep(inbound.files)
        except (TooLarge, BadText, AttachmentMissing, AttachmentUnreadable, AttachmentForbidden) as error:
            raise Refused(error.message) from error
        now = clock.now()
        accepted = await self._store.write(
            lambda tx: platform_updates.receive(tx, binding, adapter, inbound, files, now)
        )
        if accepted is not None:
            self.accepted(accepted)
        return accepted is not None

    def _check_inbound(self, inbound: Inbound) -> None:
        limits = self._settings
        if not inbound.files and (not inbound.text or inbound.text.isspace()):
            raise Refused("it is empty")
        try:
            measure("text", inbound.text, limits.text_bytes)
            measure("subject", inbound.subject or "", limits.subject_bytes)
            for value in (*inbound.author.values(), inbound.group or "", inbound.reply_to or ""):
                measure("author, group or reply_to", value, limits.word_bytes)
        except HibossError as error:
            raise Refused(error.message) from error

    async def prepare(self, draft: Draft, files: Sequence[str], *, kept_files: bool = False) -> Draft:
        """Check a draft as if it were sent now and copy its files; return it, to be sent later."""
        self._check(draft, bool(files) or kept_files)
        if len(files) > self._settings.attachments:
            _too_many("a message", len(files), "attachments", self._settings.attachments)
        return draft._replace(attachments=await self._keep(files)) if files else draft

    def _check(self, draft: Draft, has_files: bool) -> None:
        limits = self._settings
        if not draft.to and draft.reply_to is None:
            raise NoRecipient()
        if len(draft.to) > limits.recipients:
            _too_many("a message", len(draft.to), "recipients", limits.recipients)
        if not has_files and (not draft.text or draft.text.isspace()):
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

    async def _repeated(self, draft: Draft) -> Accepted | None:
        key = draft.key
        if key is None:
            return None
        return await self._store.write(lambda tx: messages.repeated(tx, draft.caller, key, draft.digest))

    async def _keep(self, files: Sequence[str]) -> tuple[Attachment, ...]:
        return tuple(
            [await asyncio.to_thread(attachments.keep, self._home, path, self._settings) for path in files]
        )


def _too_many(what: str, number: int, things: str, limit: int) -> None:
    raise TooLarge(what=what, size=f"{number} {things}", limit=str(limit), advice="")


def _as_json(value: dict[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False)
