"""Files and albums: what is fetched, what is missing and why, and what belongs together."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from hiboss.channels.telegram import digestion, transcription
from hiboss.channels.telegram.adapter import TelegramAdapter
from hiboss.core.contracts.failures import AccountError, LaneError
from hiboss.core.contracts.inbound import Digested, Inbound, NotYet, ReceivedFile
from hiboss.testing.adapter_steps import until
from tests.channels.telegram.telegram_rig import Taker, TelegramRig, polling_adapter

Story = Callable[[TelegramAdapter, Taker], Coroutine[Any, Any, None]]


def after_intake(rig: TelegramRig, story: Story) -> None:
    """Let all that waits be taken, and then do something with it."""

    async def whole() -> None:
        take = Taker(rig)
        async with polling_adapter(rig, take) as (adapter, _):
            await until(lambda: take.updates and rig.originals() == 0)
            await story(adapter, take)

    asyncio.run(whole())


def digested(
    rig: TelegramRig, downloads: Path, *, waited: bool = False, last_try: bool = False
) -> list[Inbound]:
    found: list[Inbound] = []

    async def story(adapter: TelegramAdapter, take: Taker) -> None:
        left = take.updates
        while left:
            answer = await adapter.digest(left, str(downloads), waited=waited, last_try=last_try)
            assert isinstance(answer, Digested)
            found.append(answer.inbound)
            used = {one.id for one in answer.used(left)}
            left = [one for one in left if one.id not in used]

    after_intake(rig, story)
    return found


def contents(inbound: Inbound) -> list[tuple[str | None, bytes]]:
    files = [one for one in inbound.files if isinstance(one, ReceivedFile)]
    return [(one.name, Path(one).read_bytes()) for one in files]


# --- one file -------------------------------------------------------------------------------


def test_every_kind_of_file_is_fetched_with_its_name_and_its_id(rig: TelegramRig, tmp_path: Path) -> None:
    ada, chat = rig.ada, rig.private
    sent = [
        ada.sends_photo(chat, b"a photo that is large enough to have sizes" * 10, "look"),
        ada.sends_document(chat, "notes.txt", b"notes"),
        ada.sends_voice(chat, b"OggS"),
        ada.sends_audio(chat, b"ID3", "song.mp3"),
        ada.sends_video(chat, b"ftyp", "clip.mp4"),
    ]
    found = digested(rig, tmp_path)
    names = [f"photo_{sent[0].id}.jpg", "notes.txt", f"voice_{sent[2].id}.ogg", "song.mp3", "clip.mp4"]
    assert [contents(one) for one in found] == [
        [(name, one.files[-1].data)] for name, one in zip(names, sent, strict=True)
    ]
    assert [one.text for one in found] == ["look", "", "", "", ""]
    ids = [file.platform_id for one in found for file in one.files if isinstance(file, ReceivedFile)]
    assert ids == [one.files[-1].id for one in sent]


def test_a_sticker_is_its_emoji_and_a_file(rig: TelegramRig, tmp_path: Path) -> None:
    rig.ada.sends_sticker(rig.private, b"RIFF", "😀")
    (found,) = digested(rig, tmp_path)
    assert (found.text, len(found.files)) == ("😀", 1)


def test_a_large_file_is_written_whole(rig: TelegramRig, tmp_path: Path) -> None:
    data = bytes(range(256)) * 4096 * 15  # 15 MB
    rig.ada.sends_document(rig.private, "large.bin", data)
    (found,) = digested(rig, tmp_path)
    assert contents(found) == [("large.bin", data)]


@pytest.mark.parametrize("declared", [True, False])
def test_a_file_over_20_mb_is_left_out_and_the_note_says_why(
    rig: TelegramRig, tmp_path: Path, declared: bool
) -> None:
    message = rig.ada.sends_document(rig.private, "film.mkv", b"x", caption="see", size=21 * 1024 * 1024)
    if not declared:  # then getFile refuses it
        del message.media["document"]["file_size"]
        rig.bot.updates.clear()
        rig.bot.inject({"message": message.as_json()})
    (found,) = digested(rig, tmp_path)
    assert (found.text, found.files) == ("see", ())
    assert found.note is not None and "film.mkv" in found.note
    assert ("21.0 MB" if declared else "more than 20 MB") in found.note


def test_a_file_that_is_larger_than_the_server_says_is_not_fetched_to_its_end(
    rig: TelegramRig, tmp_path: Path
) -> None:
    rig.ada.sends_document(rig.private, "liar.bin", b"x" * (21 * 1024 * 1024), size=5)
    (found,) = digested(rig, tmp_path)
    assert found.files == () and "liar.bin" in str(found.note)
    assert [one for one in tmp_path.rglob("liar.bin")] == []


def test_a_file_that_vanished_is_tried_again_and_left_out_at_the_last_try(
    rig: TelegramRig, tmp_path: Path
) -> None:
    rig.lost_file("look")

    async def story(adapter: TelegramAdapter, take: Taker) -> None:
        with pytest.raises(LaneError) as caught:
            await adapter.digest(take.updates, str(tmp_path), waited=False, last_try=False)
        assert not isinstance(caught.value, AccountError)
        found = await adapter.digest(take.updates, str(tmp_path), waited=False, last_try=True)
        assert isinstance(found, Digested) and (found.inbound.text, found.inbound.files) == ("look", ())
        assert "notes.txt could not be fetched" in str(found.inbound.note)

    after_intake(rig, story)


def test_a_file_that_the_server_does_not_know_is_left_out_at_the_last_try(
    rig: TelegramRig, tmp_path: Path
) -> None:
    rig.lost_file("look")
    rig.fault("getFile", status=400, description="Bad Request: wrong file_id", times=None)
    (found,) = digested(rig, tmp_path, last_try=True)
    assert "wrong file_id" in str(found.note)


@pytest.mark.parametrize("method", ["getFile", "file"])
@pytest.mark.parametrize(
    "fault", [{"status": 500}, {"status": 502}, {"retry_after": 3}, {"do": "drop"}], ids=str
)
def test_a_server_in_trouble_is_no_try(
    rig: TelegramRig, tmp_path: Path, method: str, fault: dict[str, Any]
) -> None:
    rig.ada.sends_document(rig.private, "notes.txt", b"notes")

    async def story(adapter: TelegramAdapter, take: Taker) -> None:
        failing = rig.fault(method, times=None, **fault)
        with pytest.raises(AccountError):  # also at the last try: the file may be there
            await adapter.digest(take.updates, str(tmp_path), waited=False, last_try=True)
        failing.clear()
        found = await adapter.digest(take.updates, str(tmp_path), waited=False, last_try=True)
        assert isinstance(found, Digested) and contents(found.inbound) == [("notes.txt", b"notes")]

    after_intake(rig, story)


def test_a_slow_file_holds_up_no_other_and_no_poll(rig: TelegramRig, tmp_path: Path) -> None:
    rig.ada.sends_document(rig.private, "slow.bin", b"x" * 100_000)

    async def story(adapter: TelegramAdapter, take: Taker) -> None:
        fault = rig.fault("file", bytes_per_second=1000)
        slow = asyncio.create_task(adapter.digest(take.updates, str(tmp_path), waited=False, last_try=False))
        await until(lambda: fault.hits)
        rig.ada.sends_document(rig.private, "quick.txt", b"quick")
        rig.command("stop", "")
        await until(lambda: len(take.updates) == 3)
        found = await adapter.digest(take.updates[1:], str(tmp_path), waited=False, last_try=False)
        assert isinstance(found, Digested) and contents(found.inbound) == [("quick.txt", b"quick")]
        assert not slow.done()
        slow.cancel()
        await asyncio.wait([slow])
        assert slow.cancelled()

    after_intake(rig, story)


def test_an_edit_with_a_file_brings_the_file(rig: TelegramRig, tmp_path: Path) -> None:
    message = rig.ada.sends_document(rig.private, "notes.txt", b"notes", caption="tpyo")
    rig.ada.edits(message, "typo")
    found = digested(rig, tmp_path)
    assert [(one.kind, one.text, contents(one)) for one in found] == [
        ("message", "tpyo", [("notes.txt", b"notes")]),
        ("edit", "typo", [("notes.txt", b"notes")]),
    ]


# --- albums ---------------------------------------------------------------------------------


def test_an_album_with_words_of_others_between_its_parts_is_one_message(
    rig: TelegramRig, tmp_path: Path
) -> None:
    album = rig.ada.begins_album(rig.private)
    first = album.add(b"one", "our trip")
    rig.comes_in("between")
    album.add(b"two")
    album.add(b"three", "the lake")
    found = digested(rig, tmp_path, waited=True)
    assert [(one.text, len(one.files)) for one in found] == [("our trip\n\nthe lake", 3), ("between", 0)]
    assert found[0].message == str(first.id)
    assert [data for _, data in contents(found[0])] == [b"one", b"two", b"three"]


def test_an_album_waits_after_its_last_part_and_not_when_it_is_full(rig: TelegramRig, tmp_path: Path) -> None:
    album = rig.ada.begins_album(rig.private)
    album.add(b"one")
    rig.comes_in("between")
    album.add(b"two")

    async def story(adapter: TelegramAdapter, take: Taker) -> None:
        wait = await adapter.digest(take.updates, str(tmp_path), waited=False, last_try=False)
        assert wait == NotYet(digestion.ALBUM_SECONDS, last=take.updates[2])
        for number in range(8):
            album.add(str(number).encode())
        await until(lambda: len(take.updates) == 11)
        whole = await adapter.digest(take.updates, str(tmp_path), waited=False, last_try=False)
        assert isinstance(whole, Digested) and len(whole.inbound.files) == 10

    after_intake(rig, story)


def test_a_late_part_is_a_message_of_its_own(rig: TelegramRig, tmp_path: Path) -> None:
    album = rig.ada.begins_album(rig.private)
    album.add(b"one", "first")

    async def story(adapter: TelegramAdapter, take: Taker) -> None:
        first = await adapter.digest(take.updates, str(tmp_path), waited=True, last_try=False)
        album.add(b"two", "late")
        await until(lambda: len(take.updates) == 2)
        late = await adapter.digest(take.updates[1:], str(tmp_path), waited=True, last_try=False)
        assert isinstance(first, Digested) and isinstance(late, Digested)
        assert [first.inbound.text, late.inbound.text] == ["first", "late"]

    after_intake(rig, story)


def test_an_album_keeps_what_can_be_fetched_and_says_what_is_missing(
    rig: TelegramRig, tmp_path: Path
) -> None:
    album = rig.ada.begins_album(rig.private)
    album.add(("one.txt", b"one"))
    album.add(("two.txt", b"two")).files[-1].vanish()
    (found,) = digested(rig, tmp_path, waited=True, last_try=True)
    assert contents(found) == [("one.txt", b"one")] and "two.txt" in str(found.note)


def test_an_edit_of_a_caption_of_an_album_leaves_its_files_alone(rig: TelegramRig, tmp_path: Path) -> None:
    album = rig.ada.begins_album(rig.private)
    first, second = album.add(b"one", "tpyo"), album.add(b"two")
    rig.ada.edits(first, "typo")
    rig.ada.edits(second)  # a change that nobody sees
    found = digested(rig, tmp_path, waited=True)
    assert [(one.kind, one.text, len(one.files)) for one in found] == [
        ("message", "tpyo", 2),
        ("edit", "typo", 0),
        ("ignored", "", 0),
    ]


# --- voice messages -------------------------------------------------------------------------


def program(rig: TelegramRig, directory: Path, body: str) -> None:
    """Let this be the program that writes down voice messages."""
    path = directory / "transcribe.py"
    path.write_text(f"import os, sys, time, subprocess\n{body}\n")
    config = rig.home / "config.toml"
    config.write_text(config.read_text() + f'transcribe_command = "{sys.executable} {path}"\n')


def test_what_the_program_prints_is_the_text_and_the_voice_stays(rig: TelegramRig, tmp_path: Path) -> None:
    program(rig, tmp_path, "print('you said', open(sys.argv[-1]).read()); print(sys.stdin.read())")
    rig.ada.sends_voice(rig.private, b"hello")
    rig.ada.sends_voice(rig.private, b"more", caption="note")
    rig.ada.sends_audio(rig.private, b"ID3", "song.mp3")
    found = digested(rig, tmp_path)
    assert [one.text for one in found] == ["you said hello", "note\n\nyou said more", ""]
    assert ([one.note for one in found], contents(found[0])[0][1]) == ([None] * 3, b"hello")


def test_the_program_gets_no_secret_of_hiboss(
    rig: TelegramRig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HIBOSS_TOKEN", "hba_secret")
    program(rig, tmp_path, "print('seen:', [name for name in os.environ if name.startswith('HIBOSS')])")
    rig.ada.sends_voice(rig.private, b"hello")
    (found,) = digested(rig, tmp_path)
    assert found.text == "seen: []"


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("sys.exit('no model')", "status 1: no model"),
        ("pass", "printed nothing"),
        ("print('x' * 70_000)", "more than 64 KiB"),
        ("print('x' * 70_000, flush=True); time.sleep(600)", "more than 64 KiB"),
    ],
)
def test_a_program_that_fails_leaves_the_voice_with_a_note(
    rig: TelegramRig, tmp_path: Path, body: str, why: str
) -> None:
    program(rig, tmp_path, body)
    rig.ada.sends_voice(rig.private, b"hello")
    (found,) = digested(rig, tmp_path)
    assert (found.text, len(found.files)) == ("", 1) and why in str(found.note)


@pytest.mark.parametrize(
    ("command", "why"),
    [("/no/such/program", "cannot be started"), ("'unfinished", "cannot be read")],
)
def test_a_program_that_is_not_there_leaves_the_voice_with_a_note(
    rig: TelegramRig, tmp_path: Path, command: str, why: str
) -> None:
    config = rig.home / "config.toml"
    config.write_text(config.read_text() + f'transcribe_command = "{command}"\n')
    rig.ada.sends_voice(rig.private, b"hello")
    (found,) = digested(rig, tmp_path)
    assert why in str(found.note)


def test_a_program_that_hangs_is_ended(
    rig: TelegramRig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transcription, "SECONDS", 0.05)
    program(rig, tmp_path, "time.sleep(600)")
    rig.ada.sends_voice(rig.private, b"hello")
    (found,) = digested(rig, tmp_path)
    assert "did not end within 0.05 seconds" in str(found.note) and len(found.files) == 1


async def test_what_the_program_started_ends_with_it(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    script = tmp_path / "transcribe.py"
    script.write_text(
        "import os, subprocess, time\n"
        "child = subprocess.Popen(['sleep', '600'])\n"
        f"open({str(pids)!r} + '.new', 'w').write(str(child.pid))\n"
        f"os.rename({str(pids)!r} + '.new', {str(pids)!r})\n"
        "time.sleep(600)\n"
    )
    task = asyncio.create_task(transcription.transcribe(f"{sys.executable} {script}", "voice.ogg", 600))
    await until(pids.exists)
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()
    await until(lambda: not _runs(int(pids.read_text())))


@pytest.mark.parametrize("leaves", ["", "start_new_session=True"])
def test_a_program_that_leaves_another_one_behind_is_not_waited_for(
    rig: TelegramRig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, leaves: str
) -> None:
    monkeypatch.setattr(transcription, "END_SECONDS", 0.3)
    program(rig, tmp_path, f"print('done', flush=True); subprocess.Popen(['sleep', '5'], {leaves})")
    rig.ada.sends_voice(rig.private, b"hello")
    (found,) = digested(rig, tmp_path)
    assert found.text == "done"


def _runs(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return status not in "ZX"
