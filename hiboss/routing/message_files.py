"""The files that come with a message: paths and uploads. Both are copied into `media/`, by the same rules."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeVar

from ..core.contracts.inbound import ReceivedFile
from ..core.crashpoint import UPLOAD_USED, crashpoint
from ..core.envelope import Draft
from ..core.errors import AttachmentMissing
from ..core.paths import Home
from ..core.settings import Settings
from ..store import media_files, uploads
from ..store.group_commit import Tx
from ..store.store import Store
from ..store.uploads import Handed, Upload
from .attachments import Media, NamedFiles
from .uploads import Uploads

T = TypeVar("T")


class Prepared(NamedTuple):
    """A draft whose files are copied, and the uploads that they came from."""

    draft: Draft
    handed: Handed | None = None
    uploaded: Sequence[Upload] = ()

    def use(self, tx: Tx) -> None:
        """Remove the uploads, in the transaction that stores the draft; raise NotFound if one is gone."""
        if self.handed is not None:
            uploads.use(tx, self.handed)


class MessageFiles:
    """Copies files for messages. Whatever a message comes by, its files come by here."""

    def __init__(self, store: Store, home: Home, settings: Settings) -> None:
        self._store = store
        self.media = Media(home, settings, lambda: store.read(media_files.last_message))
        self.uploads = Uploads(store, home, settings)

    async def prepare(
        self, draft: Draft, files: NamedFiles, handed: Handed | None, uploaded: Sequence[Upload]
    ) -> Prepared:
        """Copy paths and uploads into media/; raise NotFound if an upload is gone. Then call `settle`."""
        own = [self.uploads.received(one) for one in uploaded]
        given: list[str | ReceivedFile] = [*files.paths, *own]
        try:
            kept = await self.media.keep(given, roots=files.roots)
        except AttachmentMissing as error:
            for upload, file in zip(uploaded, own, strict=True):
                if file.path == error.path:
                    raise uploads.unknown(upload.id) from error
            raise
        types = [one.mime for one in kept[: len(files.paths)]] + [one.mime for one in uploaded]
        attachments = tuple(replace(one, mime=mime) for one, mime in zip(kept, types, strict=True))
        return Prepared(draft._replace(attachments=attachments), handed, uploaded)

    async def settle(
        self,
        prepared: Prepared,
        writing: Awaitable[T],
        is_stored: Callable[[T], bool] = lambda result: True,
    ) -> T:
        """Await what stores a draft; delete the copies if it does not, else the uploads that it has used."""
        result = await self.media.settle(prepared.draft.attachments, writing, is_stored)
        if prepared.uploaded and is_stored(result):
            crashpoint(UPLOAD_USED)
            await self.uploads.delete_files([one.file for one in prepared.uploaded])
        return result

    def clean_up(self) -> None:
        """Delete the copies and the uploads that a crash left behind. Call it at start."""
        self.media.clean_up(
            lambda file, after: self._store.read(lambda c: media_files.is_used(c, file, after))
        )
        self.uploads.clean_up()
