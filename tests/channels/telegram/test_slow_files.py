"""Files that take too long or are too many: they are left out and named, and the words come in."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from hiboss.channels.telegram import bot_client
from hiboss.channels.telegram.adapter import TelegramAdapter
from hiboss.core.contracts.failures import AccountError, LaneError
from hiboss.core.contracts.inbound import Digested
from tests.channels.telegram.telegram_rig import Taker, TelegramRig
from tests.channels.telegram.test_files import Story, after_intake, contents, digested, program

pytestmark = pytest.mark.slow


def configure(rig: TelegramRig, section: str, line: str) -> None:
    """Add a section to the configuration, which ends with that of Telegram."""
    config = rig.home / "config.toml"
    config.write_text(f"[{section}]\n{line}\n{config.read_text()}")


def with_little_time(rig: TelegramRig, seconds: float, story: Story) -> None:
    """Do something with what came in, while one digest has so many seconds."""
    configure(rig, "intake", f"digest_seconds = {seconds}")
    after_intake(rig, story)


# --- one file -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "fault"),
    [("file", {"bytes_per_second": 100}), ("file", {"do": "hang"}), ("getFile", {"do": "hang"})],
    ids=["trickles", "hangs", "has no path"],
)
def test_a_file_that_does_not_come_in_time_is_left_out_at_the_last_try_and_its_words_come(
    rig: TelegramRig, tmp_path: Path, method: str, fault: dict[str, Any]
) -> None:
    rig.ada.sends_document(rig.private, "slow.bin", b"x" * 5000, caption="important words")

    async def story(adapter: TelegramAdapter, take: Taker) -> None:
        failing = rig.fault(method, times=None, **fault)
        found = await adapter.digest(take.updates, str(tmp_path), waited=False, last_try=True)
        failing.clear()
        assert isinstance(found, Digested)
        assert (found.inbound.text, found.inbound.files) == ("important words", ())
        note = "the file slow.bin (4.9 KB) is missing: it did not come within "
        assert str(found.inbound.note).startswith(note)

    with_little_time(rig, 1, story)


def test_a_file_that_does_not_come_in_time_is_tried_again_before(rig: TelegramRig, tmp_path: Path) -> None:
    rig.ada.sends_document(rig.private, "slow.bin", b"x" * 5000)

    async def story(adapter: TelegramAdapter, take: Taker) -> None:
        slow = rig.fault("file", bytes_per_second=100)
        with pytest.raises(LaneError, match="did not come within") as caught:
            await adapter.digest(take.updates, str(tmp_path), waited=False, last_try=False)
        assert not isinstance(caught.value, AccountError)  # it counts as a try
        assert slow.hits == 1
        found = await adapter.digest(take.updates, str(tmp_path), waited=False, last_try=False)
        assert isinstance(found, Digested) and contents(found.inbound) == [("slow.bin", b"x" * 5000)]

    with_little_time(rig, 2, story)


def test_a_download_that_stalls_is_about_that_file_and_not_about_the_account(
    rig: TelegramRig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bot_client, "READ_SECONDS", 0.3)
    rig.ada.sends_document(rig.private, "stuck.bin", b"x", caption="words")

    async def story(adapter: TelegramAdapter, take: Taker) -> None:
        stuck = rig.fault("file", do="hang", times=None)
        with pytest.raises(LaneError, match="stopped sending it") as caught:
            await adapter.digest(take.updates, str(tmp_path), waited=False, last_try=False)
        assert not isinstance(caught.value, AccountError)
        found = await adapter.digest(take.updates, str(tmp_path), waited=False, last_try=True)
        stuck.clear()
        assert isinstance(found, Digested)
        assert (found.inbound.text, found.inbound.files) == ("words", ())
        assert "stuck.bin could not be fetched" in str(found.inbound.note)

    after_intake(rig, story)


def test_the_time_of_a_digest_holds_also_when_the_settings_cannot_be_read_any_more(
    rig: TelegramRig, tmp_path: Path
) -> None:
    rig.ada.sends_document(rig.private, "slow.bin", b"x" * 5000, caption="words")

    async def story(adapter: TelegramAdapter, take: Taker) -> None:
        (rig.home / "config.toml").write_text("broken")
        rig.fault("file", bytes_per_second=100)
        found = await adapter.digest(take.updates, str(tmp_path), waited=False, last_try=True)
        assert isinstance(found, Digested) and "did not come within" in str(found.inbound.note)

    with_little_time(rig, 1, story)


# --- albums ---------------------------------------------------------------------------------


@pytest.mark.parametrize("slow", [0, 1, 2])
def test_a_slow_part_of_an_album_does_not_cost_the_others(
    rig: TelegramRig, tmp_path: Path, slow: int
) -> None:
    album = rig.ada.begins_album(rig.private)
    files = [("one.bin", b"1" * 3000), ("two.bin", b"2" * 3000), ("three.bin", b"3" * 3000)]
    for number, one in enumerate(files):
        album.add(one, "our trip" if number == 0 else "")

    async def story(adapter: TelegramAdapter, take: Taker) -> None:
        for _ in range(slow):
            rig.fault("file", bytes_per_second=1_000_000)
        rig.fault("file", bytes_per_second=100)
        found = await adapter.digest(take.updates, str(tmp_path), waited=True, last_try=True)
        assert isinstance(found, Digested)
        assert (found.used(take.updates), found.inbound.text) == (take.updates, "our trip")
        missing = files.pop(slow)
        assert contents(found.inbound) == files
        assert f"the file {missing[0]} (2.9 KB) is missing: it did not come" in str(found.inbound.note)

    with_little_time(rig, 4, story)


def test_the_small_parts_of_an_album_are_fetched_first_and_all_stay_in_order(
    rig: TelegramRig, tmp_path: Path
) -> None:
    album = rig.ada.begins_album(rig.private)
    files = [("film.bin", b"f" * 5000), ("one.bin", b"1" * 10), ("two.bin", b"2" * 20)]
    for one in files:
        album.add(one)

    async def story(adapter: TelegramAdapter, take: Taker) -> None:
        found = await adapter.digest(take.updates, str(tmp_path), waited=True, last_try=False)
        assert isinstance(found, Digested) and contents(found.inbound) == files
        rig.fault("file", bytes_per_second=1_000, times=None)
        found = await adapter.digest(take.updates, str(tmp_path), waited=True, last_try=True)
        assert isinstance(found, Digested) and contents(found.inbound) == files[1:]
        assert "film.bin" in str(found.inbound.note)

    with_little_time(rig, 4, story)


def test_more_parts_than_an_album_can_have_are_another_message(rig: TelegramRig, tmp_path: Path) -> None:
    album = rig.ada.begins_album(rig.private)
    for number in range(13):
        album.add(str(number).encode(), {0: "first", 10: "second"}.get(number, ""))
    found = digested(rig, tmp_path, waited=True)
    assert [(one.text, len(one.files), one.note) for one in found] == [
        ("first", 10, None),
        ("second", 3, None),
    ]


def test_files_over_the_limit_of_attachments_are_named_in_the_note(rig: TelegramRig, tmp_path: Path) -> None:
    configure(rig, "limits", "attachments = 2")
    album = rig.ada.begins_album(rig.private)
    for number in range(4):
        album.add((f"{number}.txt", b"data" * (9 - number)), "caption" if number == 3 else "")
    (found,) = digested(rig, tmp_path, waited=True)
    assert (found.text, [name for name, _ in contents(found)]) == ("caption", ["0.txt", "1.txt"])
    why = "is missing: a message has at most 2 files (limits.attachments)"
    assert found.note == f"the file 2.txt (28 bytes) {why}; the file 3.txt (24 bytes) {why}"


def test_without_attachments_a_file_is_not_fetched(rig: TelegramRig, tmp_path: Path) -> None:
    configure(rig, "limits", "attachments = 0")
    rig.ada.sends_document(rig.private, "notes.txt", b"notes", caption="see")
    (found,) = digested(rig, tmp_path)
    assert (found.text, found.files) == ("see", ()) and "notes.txt" in str(found.note)
    assert list(tmp_path.rglob("notes.txt")) == []


# --- voice messages -------------------------------------------------------------------------


def test_a_program_that_hangs_longer_than_a_digest_may_take_leaves_the_voice_with_a_note(
    rig: TelegramRig, tmp_path: Path
) -> None:
    program(rig, tmp_path, "time.sleep(600)")
    rig.ada.sends_voice(rig.private, b"hello", caption="words")

    async def story(adapter: TelegramAdapter, take: Taker) -> None:
        found = await adapter.digest(take.updates, str(tmp_path), waited=False, last_try=False)
        assert isinstance(found, Digested) and found.inbound.text == "words"
        assert [data for _, data in contents(found.inbound)] == [b"hello"]
        assert f"{Path(sys.executable).name} did not end within" in str(found.inbound.note)

    with_little_time(rig, 1, story)
