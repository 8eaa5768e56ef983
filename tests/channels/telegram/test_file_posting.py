"""Files that go out: as what, in albums, with captions, again by their ids, and edited; and those that cannot."""

from __future__ import annotations

import errno
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hiboss.channels.telegram.chunk_form import Chunk, encode
from hiboss.core.contracts.adapter import Adapter, File, Posted
from hiboss.core.contracts.failures import AccountError, ChatMoved, EnvelopeError, LaneError
from hiboss.core.file_guard import FileGuard
from tests.channels.telegram.telegram_rig import TelegramRig, kinds_of, made_file, post_all, posts

MEGABYTE = 1024 * 1024
PNG, JPEG, PDF, MP3, MP4, OGG = (
    *("image/png", "image/jpeg", "application/pdf"),
    *("audio/mpeg", "video/mp4", "audio/ogg"),
)


def uploads(rig: TelegramRig) -> list[list[str]]:
    """Return the names of the files that came with each call that posted something."""
    return [list(one.uploads.values()) for one in rig.api.calls if one.method.startswith("send")]


# --- as what --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "mime", "size", "kind"),
    [
        ("a.png", PNG, 100, "photo"),
        ("a.jpg", JPEG, 100, "photo"),
        ("a.webp", "image/webp", 100, "photo"),
        ("large.jpg", JPEG, 11 * MEGABYTE, "document"),
        ("a.gif", "image/gif", 100, "document"),
        ("a.svg", "image/svg+xml", 100, "document"),
        ("a.mp3", MP3, 100, "audio"),
        ("a.m4a", "audio/mp4", 100, "audio"),
        ("a.ogg", OGG, 100, "voice"),
        ("a.mp4", MP4, 100, "video"),
        ("a.mkv", "video/x-matroska", 100, "document"),
        ("ä b.pdf", PDF, 3 * MEGABYTE, "document"),
    ],
)
async def test_a_file_is_posted_as_what_it_is_with_the_text_as_its_caption(
    rig: TelegramRig, tmp_path: Path, name: str, mime: str, size: int, kind: str, adapter: Adapter
) -> None:
    file = made_file(tmp_path, name, mime, size)
    (answer,) = await post_all(adapter, rig.letter("see", files=(file,)))
    (post,) = posts(rig)
    assert (kinds_of([post]), post.text) == ([kind], "see")
    assert post.files[-1].data == Path(file.path).read_bytes()
    assert uploads(rig) == [[name]]
    assert answer == Posted((str(post.id),), {0: f"{kind}:{post.files[-1].id}"}, ())


async def test_the_size_is_that_of_the_file_now_not_that_of_the_letter(
    rig: TelegramRig, tmp_path: Path, adapter: Adapter
) -> None:
    file = made_file(tmp_path, "a.png", PNG, 11 * MEGABYTE)
    await post_all(adapter, rig.letter("", files=(file._replace(size=0),)))
    assert kinds_of(posts(rig)) == ["document"]


@pytest.mark.parametrize("words", ["PHOTO_INVALID_DIMENSIONS", "IMAGE_PROCESS_FAILED"])
async def test_a_picture_that_cannot_be_a_photo_goes_as_a_document(
    rig: TelegramRig, tmp_path: Path, words: str, adapter: Adapter
) -> None:
    file = made_file(tmp_path, "long.png", PNG)
    rig.fault("sendPhoto", status=400, description=f"Bad Request: {words}")
    (answer,) = await post_all(adapter, rig.letter("see", files=(file,)))
    (post,) = posts(rig)
    assert (post.media["document"]["file_name"], post.text) == ("long.png", "see")
    assert post.files[-1].data == Path(file.path).read_bytes()
    assert (answer.files, answer.notes) == ({0: f"document:{post.files[-1].id}"}, ())


async def test_a_voice_goes_as_a_document_to_somebody_who_wants_no_voices(
    rig: TelegramRig, tmp_path: Path, adapter: Adapter
) -> None:
    rig.fault("sendVoice", status=400, description="Bad Request: VOICE_MESSAGES_FORBIDDEN")
    await post_all(adapter, rig.letter("", files=(made_file(tmp_path, "a.ogg", OGG),)))
    assert kinds_of(posts(rig)) == ["document"]


# --- albums ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mimes", "kinds"),
    [
        ([PNG, JPEG, PNG], ["photo"] * 3),
        ([PNG, MP4, PNG], ["photo", "video", "photo"]),
        ([PDF, "text/plain"], ["document"] * 2),
        ([MP3, MP3], ["audio"] * 2),
        ([PDF] * 10, ["document"] * 10),
    ],
    ids=str,
)
async def test_an_album_is_one_call_and_all_its_ids_are_kept(
    rig: TelegramRig, tmp_path: Path, mimes: list[str], kinds: list[str], adapter: Adapter
) -> None:
    files = tuple(made_file(tmp_path, f"file {n}", mime, 50 + n) for n, mime in enumerate(mimes))
    (answer,) = await post_all(adapter, rig.letter("see", files=files))
    found = posts(rig)
    assert (kinds_of(found), len({one.more["media_group_id"] for one in found})) == (kinds, 1)
    assert [one.files[-1].data for one in found] == [Path(one.path).read_bytes() for one in files]
    assert [one.text for one in found] == ["see", *[""] * (len(files) - 1)]
    assert list(answer.ids) == [str(one.id) for one in found]
    known = [f"{kind}:{one.files[-1].id}" for kind, one in zip(kinds, found, strict=True)]
    assert answer.files == dict(enumerate(known))


async def test_mixed_files_are_albums_and_single_posts_in_order(
    rig: TelegramRig, tmp_path: Path, adapter: Adapter
) -> None:
    mimes = [PNG, MP4, PDF, OGG, MP3, MP3]
    files = tuple(made_file(tmp_path, f"file {n}", mime) for n, mime in enumerate(mimes))
    answers = await post_all(adapter, rig.letter("see", files=files))
    assert kinds_of(posts(rig)) == ["photo", "video", "document", "voice", "audio", "audio"]
    assert [len(one.ids) for one in answers] == [2, 1, 1, 2]
    assert sorted(number for one in answers for number in one.files) == list(range(6))


async def test_an_album_whose_photo_is_refused_goes_as_documents(
    rig: TelegramRig, tmp_path: Path, adapter: Adapter
) -> None:
    good, bad = made_file(tmp_path, "a.png", PNG), made_file(tmp_path, "b.png", PNG)
    Path(bad.path).write_bytes(b"this is no picture")
    (answer,) = await post_all(adapter, rig.letter("see", files=(good, bad)))
    assert kinds_of(posts(rig)) == ["document"] * 2
    assert [one.files[-1].data for one in posts(rig)][1] == b"this is no picture"
    assert (len(answer.ids), answer.notes) == (2, ())


async def test_a_photo_that_has_grown_too_large_takes_its_album_with_it(
    rig: TelegramRig, tmp_path: Path, adapter: Adapter
) -> None:
    files = (made_file(tmp_path, "a.png", PNG), made_file(tmp_path, "b.png", PNG, 11 * MEGABYTE))
    await post_all(adapter, rig.letter("see", files=tuple(one._replace(size=0) for one in files)))
    assert kinds_of(posts(rig)) == ["document"] * 2
    assert len(rig.api.calls_of("sendMediaGroup")) == 1  # photos and documents were never tried together


async def test_an_album_is_a_reply_in_its_topic(rig: TelegramRig, tmp_path: Path, adapter: Adapter) -> None:
    plans = rig.topic("plans")
    rig.in_topic(plans, "question")
    files = (made_file(tmp_path, "a.pdf", PDF), made_file(tmp_path, "b.pdf", PDF))
    given = rig.letter("see", place=f"{rig.chat}/{plans}", reply_to=str(rig.last.id), files=files)
    await post_all(adapter, given)
    found = [one for one in posts(rig) if one.media]
    assert [one.topic for one in found] == [int(plans)] * 2 and found[0].reply_to is rig.last


# --- captions -------------------------------------------------------------------------------

BOLD = ({"type": "bold", "offset": 0, "length": 3},)


async def test_a_long_text_is_posted_before_the_files(
    rig: TelegramRig, tmp_path: Path, adapter: Adapter
) -> None:
    await post_all(adapter, rig.letter("x" * 1025, files=(made_file(tmp_path, "a.pdf", PDF),)))
    assert [(kind, one.text) for kind, one in zip(kinds_of(posts(rig)), posts(rig), strict=True)] == [
        ("text", "x" * 1025),
        ("document", ""),
    ]


@pytest.mark.parametrize("count", [1, 2])
async def test_a_caption_has_its_entities_or_is_plain_if_they_are_refused(
    rig: TelegramRig, tmp_path: Path, count: int, adapter: Adapter
) -> None:
    files = tuple(made_file(tmp_path, f"{n}.pdf", PDF) for n in range(count))
    chunk = encode(Chunk("see it", BOLD, files=tuple(range(count))))
    method = "sendDocument" if count == 1 else "sendMediaGroup"
    await adapter.post(rig.letter(files=files), 0, chunk)
    rig.fault(method, status=400, description="Bad Request: can't parse entities: too many")
    await adapter.post(rig.letter(files=files), 0, chunk)
    found = [one for one in posts(rig) if one.text]
    assert [one.text for one in found] == ["see it"] * 2
    assert [[mark["type"] for mark in one.entities] for one in found] == [["bold"], []]
    assert kinds_of(posts(rig)) == ["document"] * 2 * count


async def test_markdown_is_a_caption_with_entities_and_a_table_stays_apart(
    rig: TelegramRig, tmp_path: Path, adapter: Adapter
) -> None:
    file = made_file(tmp_path, "a.pdf", PDF)
    await post_all(adapter, rig.letter("**see** it", type="markdown", files=(file,)))
    await post_all(adapter, rig.letter("| a | b |\n|---|---|\n| 1 | 2 |\n", type="markdown", files=(file,)))
    found = posts(rig)
    assert kinds_of(found) == ["document", "text", "document"]
    assert (found[0].text, [mark["type"] for mark in found[0].entities]) == ("see it", ["bold"])
    assert ["rich_message" in one.more for one in found] == [False, True, False]


# --- again, by id ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "mimes", [[PNG], [PDF], [MP3], [OGG], [MP4], [PNG, MP4, PNG], [PDF, PDF], [MP3, MP3]], ids=str
)
async def test_what_was_posted_is_posted_again_without_the_file(
    rig: TelegramRig, tmp_path: Path, mimes: list[str], adapter: Adapter
) -> None:
    files = tuple(made_file(tmp_path, f"file {n}", mime) for n, mime in enumerate(mimes))
    (first,) = await post_all(adapter, rig.letter("see", files=files))
    again = tuple(one._replace(platform_id=first.files[n]) for n, one in enumerate(files))
    for one in files:
        Path(one.path).unlink()  # it is not even looked at
    (second,) = await post_all(adapter, rig.letter("see", files=again))
    assert (second.files, second.notes) == (first.files, ())
    found = posts(rig)
    assert kinds_of(found[: len(files)]) == kinds_of(found[len(files) :])
    assert uploads(rig)[-1] == []


async def test_a_picture_that_went_as_a_document_goes_so_again(
    rig: TelegramRig, tmp_path: Path, adapter: Adapter
) -> None:
    file = made_file(tmp_path, "a.png", PNG)
    Path(file.path).write_bytes(b"no picture")
    (first,) = await post_all(adapter, rig.letter("", files=(file,)))
    await post_all(adapter, rig.letter("", files=(file._replace(platform_id=first.files[0]),)))
    assert kinds_of(posts(rig)) == ["document"] * 2
    assert [one.method for one in rig.api.calls if one.method.startswith("send")][2:] == ["sendDocument"]
    assert uploads(rig)[-1] == []


async def test_what_came_in_goes_out_by_its_id(rig: TelegramRig, tmp_path: Path, adapter: Adapter) -> None:
    sent = rig.ada.sends_photo(rig.private, b"\xff\xd8picture")
    file = made_file(tmp_path, "photo.jpg", JPEG, platform_id=sent.files[-1].id)
    await post_all(adapter, rig.letter("", files=(file,)))
    (post,) = posts(rig)
    assert post.files[-1].id == sent.files[-1].id
    assert uploads(rig) == [[]]


@pytest.mark.parametrize("known", ["photo:forgotten", "forgotten", "document:forgotten", "photo:", "odd:x"])
@pytest.mark.parametrize("count", [1, 2])
async def test_an_id_that_the_server_does_not_know_means_an_upload(
    rig: TelegramRig, tmp_path: Path, known: str, count: int, adapter: Adapter
) -> None:
    files = tuple(made_file(tmp_path, f"{n}.png", PNG, platform_id=known) for n in range(count))
    (answer,) = await post_all(adapter, rig.letter("see", files=files))
    assert (kinds_of(posts(rig)), uploads(rig)[-1]) == (["photo"] * count, [one.name for one in files])
    assert len(answer.files) == count


async def test_an_id_of_another_kind_means_an_upload(
    rig: TelegramRig, tmp_path: Path, adapter: Adapter
) -> None:
    sent = rig.ada.sends_document(rig.private, "a.png", b"\x89PNG as a file")
    file = made_file(tmp_path, "a.png", PNG, platform_id=sent.files[-1].id)
    await post_all(adapter, rig.letter("", files=(file,)))
    assert (kinds_of(posts(rig)), uploads(rig)) == (["photo"], [[], ["a.png"]])


async def test_an_album_of_known_and_new_files_uploads_only_the_new_ones(
    rig: TelegramRig, tmp_path: Path, adapter: Adapter
) -> None:
    one, two = made_file(tmp_path, "1.pdf", PDF), made_file(tmp_path, "2.pdf", PDF)
    (first,) = await post_all(adapter, rig.letter("", files=(one,)))
    await post_all(adapter, rig.letter("", files=(one._replace(platform_id=first.files[0]), two)))
    assert uploads(rig) == [["1.pdf"], ["2.pdf"]]
    assert [post.files[-1].name for post in posts(rig)] == ["1.pdf", "1.pdf", "2.pdf"]


# --- edits ----------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 2])
async def test_an_edit_changes_the_caption(
    rig: TelegramRig, tmp_path: Path, count: int, adapter: Adapter
) -> None:
    files = tuple(made_file(tmp_path, f"{n}.pdf", PDF) for n in range(count))
    numbers = tuple(range(count))
    (answer,) = await post_all(adapter, rig.letter("teh text", files=files))
    for _ in range(2):  # the second time it has that text already
        await adapter.edit(rig.chat, answer.ids[0], encode(Chunk("the text", BOLD, files=numbers)), "key")
    found = posts(rig)
    assert [one.text for one in found] == ["the text", *[""] * (count - 1)]
    assert [mark["type"] for mark in found[0].entities] == ["bold"]
    rig.fault("editMessageCaption", status=400, description="Bad Request: ENTITY_BOUNDS_INVALID")
    await adapter.edit(rig.chat, answer.ids[0], encode(Chunk("plain", BOLD, files=numbers)), "key")
    assert (posts(rig)[0].text, posts(rig)[0].entities) == ("plain", [])
    await adapter.edit(rig.chat, answer.ids[0], encode(Chunk(files=numbers)), "key")
    assert [one.text for one in posts(rig)] == [""] * count


async def test_the_album_that_goes_out_names_what_it_sends(
    rig: TelegramRig, tmp_path: Path, adapter: Adapter
) -> None:
    files = (made_file(tmp_path, "a.png", PNG), made_file(tmp_path, "b.mp4", MP4))
    await post_all(adapter, rig.letter("see", files=files))
    (call,) = rig.api.calls_of("sendMediaGroup")
    media = json.loads(call.params["media"])
    assert [(one["type"], one.get("caption")) for one in media] == [("photo", "see"), ("video", None)]
    assert [call.uploads[one["media"].removeprefix("attach://")] for one in media] == ["a.png", "b.mp4"]


# --- files that cannot go out ---------------------------------------------------------------------


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
    assert (kinds_of([post]), answer.ids) == (["text"], (str(post.id),)) and post.text.startswith(text)
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
    assert isinstance(answer, Posted) and (kinds_of(posts(rig)), len(answer.notes)) == (["document"], 1)
    assert "file 2" in answer.notes[0]
