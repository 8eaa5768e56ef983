"""Uploads: taken in piece by piece, on disk before the answer, bounded, used once, and gone when they expire."""

from __future__ import annotations

import asyncio
import hashlib
import os
import stat
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from hiboss.api.auth import NOBODY
from hiboss.api.uploads import store_upload
from hiboss.core import errors
from tests.support.in_process_daemon import InProcessDaemon, frozen
from tests.support.uploaded_files import context_of, directory, files, in_chunks, media, upload

LARGE = os.urandom(3 * 1024 * 1024 + 17)


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


async def shown(daemon: InProcessDaemon, who: str = "nex") -> list[str]:
    return [one["id"] for one in (await daemon.ask("upload.list", who))["uploads"]]


async def refused(error: type[Exception], daemon: InProcessDaemon, **given: Any) -> str:
    """Expect that an upload is refused and leaves nothing; return the message."""
    before = files(daemon), daemon.rows("SELECT * FROM upload")
    with pytest.raises(error) as caught:
        await upload(daemon, **given)
    assert (files(daemon), daemon.rows("SELECT * FROM upload")) == before
    return str(caught.value)


# --- taking it in --------------------------------------------------------------------


@frozen()
async def test_an_upload_is_on_disk_under_a_secret_name_that_only_its_owner_can_read(
    daemon: InProcessDaemon,
) -> None:
    made = await upload(daemon, LARGE, name="plan.pdf", mime="application/pdf; x=1")
    assert made == {
        "id": "u1",
        "name": "plan.pdf",
        "size": len(LARGE),
        "sha256": digest(LARGE),
        "mime": "application/pdf",
        "expires_at": "2030-06-02T12:00:00.000Z",
    }
    [file] = files(daemon)
    path = directory(daemon) / file
    assert path.read_bytes() == LARGE and len(file) == 32
    assert [stat.S_IMODE(one.stat().st_mode) for one in (path, path.parent)] == [0o600, 0o700]
    assert (await daemon.ask("upload.list", "nex"))["uploads"] == [made] and await shown(daemon, "boss") == []


@frozen(attachment_bytes=1_000)
async def test_one_that_is_too_large_ends_as_soon_as_that_is_known(daemon: InProcessDaemon) -> None:
    read = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal read
        while True:
            read += 1
            yield b"x" * 100

    assert "1000" in await refused(errors.TooLarge, daemon, chunks=endless())
    assert read == 11
    assert (await upload(daemon, b"x" * 1_000))["size"] == 1_000


@frozen(caller_uploads=2, caller_bytes=1_000)
async def test_a_caller_can_have_so_many_and_so_much_at_most(daemon: InProcessDaemon) -> None:
    first = await upload(daemon, b"x" * 600)
    assert "uploads.caller_bytes" in await refused(errors.TooLarge, daemon, content=b"x" * 401)
    await upload(daemon, b"x" * 400)
    assert "uploads.caller_uploads" in await refused(errors.TooLarge, daemon, content=b"")
    await upload(daemon, b"x" * 1_000, who="boss")  # the others have their own
    await daemon.ask("upload.delete", "nex", ids=[first["id"]])
    await upload(daemon, b"x" * 600)


@frozen(caller_uploads=3, caller_bytes=2_000)
async def test_what_comes_in_at_the_same_time_counts_together(daemon: InProcessDaemon) -> None:
    gate = asyncio.Event()

    async def slow(first: bytes = b"x" * 900, last: bytes = b"") -> AsyncIterator[bytes]:
        yield first
        await gate.wait()
        yield last

    def so_far() -> int:
        [own] = context_of(daemon).router.uploads._coming.values() or [[]]
        return sum(one.size for one in own)

    coming = [asyncio.create_task(upload(daemon, chunks=slow())) for _ in range(2)]
    await daemon.until(lambda: so_far() == 1_800)
    with pytest.raises(errors.TooLarge, match=r"uploads\.caller_bytes"):
        await upload(daemon, b"x" * 300)
    third = asyncio.create_task(upload(daemon, chunks=slow(b"")))
    await daemon.until(lambda: len(files(daemon)) == 3)
    with pytest.raises(errors.TooLarge, match=r"uploads\.caller_uploads"):
        await upload(daemon, b"")
    gate.set()
    await asyncio.gather(*coming, third)
    assert len(files(daemon)) == len(await shown(daemon)) == 3


@frozen()
async def test_a_place_that_cannot_be_written_is_said(daemon: InProcessDaemon) -> None:
    directory(daemon).write_text("a file, and no directory")
    with pytest.raises(errors.HomeUnusable):
        await upload(daemon)
    assert daemon.rows("SELECT * FROM upload") == []


@frozen(quiet=False, lock_wait_seconds=0.1)
async def test_a_store_that_is_locked_refuses_it_and_keeps_no_file(daemon: InProcessDaemon) -> None:
    with daemon.locked():
        await refused(errors.StoreLocked, daemon)
    assert (await upload(daemon))["id"] == "u1"


@frozen()
async def test_who_may_not_send_may_not_upload(daemon: InProcessDaemon) -> None:
    context = context_of(daemon)
    with pytest.raises(errors.NoToken):
        await store_upload(context, NOBODY, "a.txt", "", in_chunks(b"x"))
    await daemon.ask("agent.permission.set", name="nex", level="restricted")
    await refused(errors.Forbidden, daemon)
    await daemon.ask("agent.permission.set", name="nex", level="standard")
    await daemon.ask("permission.policy.set", policy={"envelope.send": "privileged"})
    await refused(errors.Forbidden, daemon)


@frozen()
async def test_who_loses_the_right_while_it_uploads_gets_nothing(daemon: InProcessDaemon) -> None:
    async def slow() -> AsyncIterator[bytes]:
        yield b"x"
        await daemon.ask("agent.token.revoke", name="nex")
        yield b"y"

    await refused(errors.BadToken, daemon, chunks=slow())


# --- using it ------------------------------------------------------------------------


@frozen()
async def test_uploads_and_paths_go_together_in_this_order_up_to_the_limit(daemon: InProcessDaemon) -> None:
    path = Path(daemon.home.workspace("nex"), "path.txt")
    path.parent.mkdir(parents=True)
    path.write_text("by path")
    ids = [one["id"] for one in [await upload(daemon, name=f"{n}.txt") for n in range(20)]]
    with pytest.raises(errors.TooLarge, match="21 attachments"):
        await daemon.send("agent:nex", attachments=[str(path)], uploads=ids)
    (number,) = await daemon.send("agent:nex", attachments=[str(path)], uploads=[*ids[:19], ids[0]])
    names = [one["name"] for one in (await daemon.get(number))["attachments"]]
    assert names == ["path.txt", *(f"{n}.txt" for n in range(19))]
    assert await shown(daemon) == ids[19:]


@frozen()
async def test_nobody_else_can_use_list_or_delete_it(daemon: InProcessDaemon) -> None:
    await daemon.register("ada")
    made = await upload(daemon, who="ada")
    await upload(daemon)
    for who in ("nex", "boss"):
        with pytest.raises(errors.NotFound):
            await daemon.send("agent:nex", who=who, uploads=[made["id"]])
        with pytest.raises(errors.NotFound):
            await daemon.ask("upload.delete", who, ids=[made["id"]])
    with pytest.raises(errors.NotFound):
        await daemon.ask("upload.delete", "ada", ids=[made["id"], "u2"])
    with pytest.raises(errors.NotFound):
        await daemon.send("agent:nex", who="ada", uploads=[made["id"], "u2"])
    assert len(files(daemon)) == 2 and media(daemon) == []


@frozen()
async def test_a_later_agent_of_the_same_name_does_not_inherit_it(daemon: InProcessDaemon) -> None:
    await daemon.register("ada")
    made = await upload(daemon, who="ada")
    await daemon.ask("agent.delete", name="ada")
    await daemon.register("ada")
    assert await shown(daemon, "ada") == []
    with pytest.raises(errors.NotFound):
        await daemon.send("agent:nex", who="ada", uploads=[made["id"]])


@frozen(quiet=False, lock_wait_seconds=0.1)
async def test_a_send_that_is_refused_leaves_the_upload(daemon: InProcessDaemon) -> None:
    made = await upload(daemon)
    for wrong in ({"to": "agent:nobody"}, {"to": "agent:nex", "deliver_at": "x"}, {"to": []}):
        with pytest.raises(errors.HibossError):
            await daemon.ask("envelope.send", "nex", text="x", uploads=[made["id"]], **wrong)
    assert await shown(daemon) == [made["id"]] and media(daemon) == []
    with daemon.locked(), pytest.raises(errors.StoreLocked):
        await daemon.send("agent:nex", uploads=[made["id"]])
    assert await shown(daemon) == [made["id"]]
    await daemon.send("agent:nex", uploads=[made["id"]])


@frozen()
async def test_a_repeated_send_gets_its_first_answer_also_when_the_upload_is_gone(
    daemon: InProcessDaemon,
) -> None:
    made, other = await upload(daemon), await upload(daemon)
    sending = {"to": "agent:nex", "text": "x", "key": "once"}
    first = await daemon.ask("envelope.send", "nex", **sending, uploads=[made["id"]])
    await daemon.move(days=2)
    again = await daemon.ask("envelope.send", "nex", **sending, uploads=[made["id"][1:]])
    assert again == {**first, "duplicate": True}
    for changed in ([], [other["id"]], [made["id"], other["id"]]):
        with pytest.raises(errors.KeyReused):
            await daemon.ask("envelope.send", "nex", **sending, uploads=changed)


@frozen()
async def test_of_two_that_use_it_at_once_one_gets_it_and_with_a_key_both_get_the_answer(
    daemon: InProcessDaemon,
) -> None:
    async def both(**more: Any) -> list[Any]:
        sending = {"to": "agent:nex", "text": "x", "uploads": [(await upload(daemon, LARGE))["id"]], **more}
        calls = [daemon.ask("envelope.send", "nex", **sending) for _ in range(2)]
        return await asyncio.gather(*calls, return_exceptions=True)

    assert sum(isinstance(one, errors.NotFound) for one in (await both())) == 1
    first, second = await both(key="same")
    assert first["ids"] == second["ids"] and {first["duplicate"], second["duplicate"]} == {False, True}
    assert files(daemon) == []


@frozen()
async def test_an_upload_whose_file_is_lost_is_not_found(daemon: InProcessDaemon) -> None:
    made = await upload(daemon)
    (directory(daemon) / files(daemon)[0]).unlink()
    with pytest.raises(errors.NotFound, match="upload u1"):
        await daemon.send("agent:nex", uploads=[made["id"]])


@frozen()
async def test_a_schedule_uses_uploads_too(daemon: InProcessDaemon) -> None:
    first, second = await upload(daemon, b"one"), await upload(daemon, b"two", name="other.txt")
    made = await daemon.ask("cron.create", "nex", to="agent:nex", text="", every="1h", uploads=[first["id"]])
    assert made["attachments"] == ["plan.txt"] and await shown(daemon) == [second["id"]]
    with pytest.raises(errors.NotFound):
        await daemon.ask("cron.set", "nex", id=made["id"], uploads=[first["id"]])
    changed = await daemon.ask("cron.set", "nex", id=made["id"], uploads=[second["id"]])
    assert changed["attachments"] == ["other.txt"] and files(daemon) == []
    await daemon.move(hours=1)
    [got] = (await daemon.ask("envelope.list", "nex"))["envelopes"]
    assert Path(got["attachments"][0]["path"]).read_bytes() == b"two"


@frozen()
async def test_a_schedule_that_is_refused_leaves_the_upload(daemon: InProcessDaemon) -> None:
    made = await upload(daemon)
    for wrong in ({"to": "agent:nobody"}, {"timezone": "Nowhere"}):
        sending = {"to": "agent:nex", "text": "x", "every": "1h", "uploads": [made["id"]], **wrong}
        with pytest.raises(errors.HibossError):
            await daemon.ask("cron.create", "nex", **sending)
    assert await shown(daemon) == [made["id"]] and media(daemon) == []


@frozen()
async def test_the_boss_cannot_give_the_uploads_of_an_agent_to_its_schedule(daemon: InProcessDaemon) -> None:
    made = await upload(daemon)
    cron = await daemon.ask("cron.create", "nex", to="agent:nex", text="x", every="1h")
    with pytest.raises(errors.NotFound):
        await daemon.ask("cron.set", "boss", id=cron["id"], uploads=[made["id"]])
    own = await upload(daemon, who="boss", name="his.txt")
    changed = await daemon.ask("cron.set", "boss", id=cron["id"], uploads=[own["id"]])
    assert changed["attachments"] == ["his.txt"]


# --- its end -------------------------------------------------------------------------


@frozen(keep_seconds=3_600)
async def test_what_nobody_uses_in_time_is_not_found_and_then_deleted(daemon: InProcessDaemon) -> None:
    made = await upload(daemon)
    await daemon.move(minutes=59)
    late = await upload(daemon)
    await daemon.move(minutes=1)
    assert await shown(daemon) == [late["id"]] and len(files(daemon)) == 2
    for call in (
        daemon.send("agent:nex", uploads=[made["id"]]),
        daemon.ask("upload.delete", "nex", ids=["u1"]),
    ):
        with pytest.raises(errors.NotFound):
            await call
    await daemon.daemon.wiring._heartbeat()
    assert len(files(daemon)) == 1 and len(daemon.rows("SELECT * FROM upload")) == 1


@frozen()
async def test_a_restart_keeps_uploads_and_deletes_files_without_one(daemon: InProcessDaemon) -> None:
    made = await upload(daemon, b"kept")
    (directory(daemon) / "left").write_bytes(b"by a crash")
    await daemon.restart(hours=1)
    assert len(files(daemon)) == 1
    (number,) = await daemon.send("agent:nex", uploads=[made["id"]])
    [file] = (await daemon.get(number))["attachments"]
    assert Path(file["path"]).read_bytes() == b"kept"
