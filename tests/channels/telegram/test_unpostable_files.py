"""Files that cannot go out: they are named with the reason, and nothing else of the letter is lost."""

from __future__ import annotations

import errno
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hiboss.core.contracts.adapter import Adapter, File, Posted
from hiboss.core.contracts.failures import AccountError, ChatMoved, EnvelopeError, LaneError
from hiboss.core.file_guard import FileGuard
from tests.channels.telegram.posted_letters import kinds_of, made_file, post_all, posts
from tests.channels.telegram.telegram_rig import TelegramRig

MEGABYTE = 1024 * 1024
PNG, PDF, MP3, MP4, OGG = "image/png", "application/pdf", "audio/mpeg", "video/mp4", "audio/ogg"


def unpostable(rig: TelegramRig, directory: Path, why: str) -> File:
    if why == "home":
        return File("config.toml", str(rig.home / "config.toml"), "text/plain", 10)
    file = made_file(directory, f"{why}.zip", "application/zip", 10)
    if why == "missing":
        Path(file.path).unlink()
    elif why == "large":
        with open(file.path, "wb") as opened:
            opened.truncate(51 * MEGABYTE)
    elif why == "empty":
        Path(file.path).write_bytes(b"")
    elif why == "directory":
        Path(file.path).unlink()
        Path(file.path).mkdir()
    return file


WORDS = {
    "missing": "does not exist",
    "home": "home directory of hiboss",
    "large": "51.0 MB",
    "empty": "empty",
    "directory": "not a regular file",
}


@pytest.mark.parametrize("why", WORDS)
@pytest.mark.parametrize("text", ["", "see it"])
async def test_in_place_of_a_file_that_cannot_go_the_text_names_it_with_the_reason(
    rig: TelegramRig, tmp_path: Path, why: str, text: str, adapter: Adapter
) -> None:
    file = unpostable(rig, tmp_path, why)
    (answer,) = await post_all(adapter, rig.letter(text, files=(file,)))
    (post,) = posts(rig)
    assert (kinds_of([post]), answer.ids) == (["text"], (str(post.id),))
    assert post.text.startswith(text)
    (note,) = answer.notes
    assert note in post.text and f"{file.name} was not posted" in note
    assert WORDS[why] in note
    assert str(tmp_path) not in note  # a group need not know the paths of this machine


@pytest.mark.parametrize("count", [1, 2])
async def test_an_album_goes_without_the_files_that_cannot_go(
    rig: TelegramRig, tmp_path: Path, count: int, adapter: Adapter
) -> None:
    files = [made_file(tmp_path, f"{n}.pdf", PDF) for n in range(count)]
    given = rig.letter("see it", files=(unpostable(rig, tmp_path, "missing"), *files))
    (answer,) = await post_all(adapter, given)
    found = posts(rig)
    assert kinds_of(found) == ["document"] * count
    (note,) = answer.notes
    assert found[0].text == f"see it\n\n{note}"
    assert list(answer.files) == list(range(1, count + 1))


async def test_a_note_that_does_not_fit_into_the_caption_of_an_album_is_told_to_the_sender_alone(
    rig: TelegramRig, tmp_path: Path, adapter: Adapter
) -> None:
    file = made_file(tmp_path, "a.pdf", PDF)
    given = rig.letter("x" * 1020, files=(unpostable(rig, tmp_path, "missing"), file))
    (answer,) = await post_all(adapter, given)
    assert [one.text for one in posts(rig)] == ["x" * 1020]
    assert len(answer.notes) == 1


async def test_an_album_of_which_nothing_can_go_is_a_text_that_names_all(
    rig: TelegramRig, tmp_path: Path, adapter: Adapter
) -> None:
    files = tuple(unpostable(rig, tmp_path, why) for why in ("missing", "empty"))
    (answer,) = await post_all(adapter, rig.letter("see", files=files))
    (post,) = posts(rig)
    assert post.text == "\n\n".join(("see", *answer.notes))
    assert [note.partition(" ")[0] for note in answer.notes] == ["missing.zip", "empty.zip"]


@pytest.mark.parametrize(
    "fault",
    [
        {"status": 400, "description": "Bad Request: SOMETHING_NEW"},
        {"status": 400, "description": "Bad Request: not enough rights to send documents to the chat"},
        {"status": 413, "description": "Request Entity Too Large"},
    ],
    ids=str,
)
@pytest.mark.parametrize("count", [1, 2])
async def test_files_that_the_server_refuses_are_named_with_its_reason(
    rig: TelegramRig, tmp_path: Path, fault: dict[str, Any], count: int, adapter: Adapter
) -> None:
    files = tuple(made_file(tmp_path, f"{n}.png", PNG) for n in range(count))
    for method in ("sendPhoto", "sendDocument", "sendMediaGroup"):
        rig.fault(method, times=None, **fault)
    (answer,) = await post_all(adapter, rig.letter("see", files=files))
    (post,) = posts(rig)
    assert post.text == "\n\n".join(("see", *answer.notes))
    assert [note.partition(" ")[0] for note in answer.notes] == [one.name for one in files]
    assert all(fault["description"] in note for note in answer.notes)


FAILURES: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"retry_after": 40}, LaneError, "rate_limited"),
    ({"status": 401}, AccountError, "unauthorized"),
    ({"status": 404}, AccountError, "unauthorized"),
    ({"status": 403, "description": "Forbidden: bot was kicked"}, EnvelopeError, "forbidden"),
    ({"status": 400, "description": "Bad Request: chat not found"}, EnvelopeError, "chat_not_found"),
    (
        {"status": 400, "description": "Bad Request: message thread not found"},
        EnvelopeError,
        "topic_not_found",
    ),
    (
        {
            "status": 400,
            "body": {"ok": False, "description": "moved", "parameters": {"migrate_to_chat_id": -7}},
        },
        ChatMoved,
        "chat_moved",
    ),
    ({"status": 500}, LaneError, "server_error"),
    ({"do": "garbage"}, LaneError, "not_understood"),
    ({"do": "drop"}, LaneError, "no_answer"),
    ({"do": "lose_answer"}, LaneError, "no_answer"),
]


@pytest.mark.parametrize(("fault", "error", "kind"), FAILURES, ids=lambda one: str(one)[:60])
@pytest.mark.parametrize("mimes", [[PNG], [PDF], [MP3], [OGG], [MP4], [PDF, PDF]], ids=str)
async def test_a_failure_that_is_not_about_the_file_is_that_of_the_post(
    rig: TelegramRig,
    tmp_path: Path,
    mimes: list[str],
    fault: dict[str, Any],
    error: type[Exception],
    kind: str,
    adapter: Adapter,
) -> None:
    files = tuple(made_file(tmp_path, f"file {n}", mime) for n, mime in enumerate(mimes))
    rig.fault(**fault)
    with pytest.raises((LaneError, EnvelopeError)) as caught:
        await post_all(adapter, rig.letter("see", files=files))
    assert (type(caught.value), getattr(caught.value, "kind", None)) == (error, kind)
    assert len([one for one in rig.api.calls if one.method.startswith("send")]) == 1  # nothing else was tried


async def test_a_file_that_cannot_be_read_now_is_a_lane_error(
    rig: TelegramRig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, adapter: Adapter
) -> None:
    def fail(self: FileGuard, path: str, private: object = ()) -> None:
        raise OSError(errno.EMFILE, "Too many open files", path)

    given = rig.letter("see", files=(made_file(tmp_path, "a.pdf", PDF),))
    with monkeypatch.context() as broken:
        broken.setattr(FileGuard, "open_file", fail)
        with pytest.raises(LaneError) as caught:
            await post_all(adapter, given)
    assert (caught.value.kind, posts(rig)) == ("file_unreadable", [])
    await post_all(adapter, given)
    assert kinds_of(posts(rig)) == ["document"]


async def test_a_file_that_the_letter_has_no_more_is_named(
    rig: TelegramRig, tmp_path: Path, adapter: Adapter
) -> None:
    given = rig.letter("see", files=(made_file(tmp_path, "a.pdf", PDF), made_file(tmp_path, "b.pdf", PDF)))
    (chunk,) = adapter.chunks(given)
    answer = await adapter.post(replace(given, files=given.files[:1]), 0, chunk)
    assert isinstance(answer, Posted)
    assert (kinds_of(posts(rig)), len(answer.notes)) == (["document"], 1)
    assert "file 2" in answer.notes[0]
