"""The files that a request brings: named by their paths, or uploaded by callers who cannot name a path.

A door hands over the bytes of an upload, and a message uses it. `store_upload` is called by doors that take
bytes; the operations are for every door.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from ..core import clock, errors, ids
from ..routing.attachments import NamedFiles
from ..store import agents, attached_sessions, uploads
from ..store.group_commit import Tx
from ..store.uploads import Handed, Upload
from .auth import SENDING, Caller, check_level
from .context import Context
from .operation import ChangedCount, Ids, Level, Nothing, Params, operation


class UploadJson(TypedDict):
    id: Annotated[str, Field(description="like u7: give it as one of the `uploads` of a message")]
    name: Annotated[str, Field(description="the file's name, without directories and control characters")]
    size: Annotated[int, Field(description="in bytes")]
    sha256: Annotated[str, Field(description="of its content, in hexadecimal")]
    mime: Annotated[str, Field(description="its media type: as it was given, or guessed from its name")]
    expires_at: Annotated[str, Field(description="when it is deleted if nothing has used it")]


class UploadList(TypedDict):
    uploads: Annotated[
        list[UploadJson], Field(description="what you uploaded and did not use, the oldest first")
    ]


class Delete(Params):
    ids: Ids = Field(description="uploads, like u7; all of them, or with one wrong id none")


async def store_upload(
    context: Context, caller: Caller, name: str, mime: str, chunks: AsyncIterator[bytes]
) -> UploadJson:
    """Store a file that a caller uploads; it is on disk when this answers.

    Who may send may upload. `name` and `mime` as the client gave them; an empty `mime` is guessed. What
    `chunks` raises ends it, and nothing is left. It raises NoToken, Forbidden, InvalidParams, TooLarge and
    StoreFull.
    """
    check_level(caller, context.policy.needs(SENDING))

    def check(tx: Tx) -> None:
        context.auth.check(tx, caller)

    return to_json(await context.router.uploads.keep(caller.id, name, mime, chunks, check))


def to_json(upload: Upload) -> UploadJson:
    """Return an upload as it is shown."""
    return {
        "id": f"u{upload.id}",
        "name": upload.name,
        "size": upload.size,
        "sha256": upload.sha256,
        "mime": upload.mime,
        "expires_at": clock.iso(upload.expires_at),
    }


@operation("upload.list", level=Level.RESTRICTED, params=Nothing, result=UploadList)
def listed(context: Context, caller: Caller, params: Nothing) -> UploadList:
    """List the files that you uploaded and that no message or schedule has used yet."""
    now = clock.now()
    found = context.store.read(lambda c: uploads.listed(c, caller.id, now))
    return {"uploads": [to_json(one) for one in found]}


@operation(
    "upload.delete",
    level=Level.RESTRICTED,
    effect="destructive",
    params=Delete,
    result=ChangedCount,
    errors=(errors.NotFound, errors.BadId),
)
async def delete(context: Context, caller: Caller, params: Delete) -> ChangedCount:
    """Delete files that you uploaded and that nothing has used."""
    numbers = [ids.number(one, "upload") for one in params.ids]
    handed, now = Handed(caller.id, tuple(dict.fromkeys(numbers))), clock.now()
    files = await context.write(caller, lambda tx: uploads.delete(tx, handed, now))
    await context.router.uploads.delete_files(files)
    return {"changed": len(files)}


# --- what a request names ------------------------------------------------------------


def files_of(context: Context, caller: Caller, paths: Sequence[str]) -> NamedFiles:
    """Return the files that a request names, with the directories of its caller: the boss reads everywhere.

    The daemon opens them with its own rights, and a caller may have fewer, as in a sandbox.
    """
    if caller.is_boss or not paths:
        return NamedFiles(paths)
    if (session := caller.attached) is not None:
        return NamedFiles(
            paths, [context.store.read(lambda c: attached_sessions.get(c, session))["directory"]]
        )
    agent = context.store.read(lambda c: agents.by_id(c, caller.id))
    if agent is None:
        return NamedFiles(paths, [])
    return NamedFiles(paths, [agent["workspace"] or context.home.workspace(agent["name"])])


def handed_by(caller: Caller, given: Sequence[str]) -> Handed | None:
    """Return the uploads that a request names; None: none."""
    numbers = [ids.number(one, "upload") for one in given]
    return Handed(caller.id, tuple(dict.fromkeys(numbers))) if numbers else None
