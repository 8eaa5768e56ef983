"""Which posts a letter becomes: captions, albums, buttons, and files that are too big."""

from __future__ import annotations

import pytest

from hiboss.channels.telegram import file_kinds
from hiboss.channels.telegram.chunk_form import Chunk, decode, encode
from hiboss.channels.telegram.letter_chunks import chunks
from hiboss.core.contracts.adapter import Button, File
from hiboss.testing.adapter_rig import letter

MEGABYTE = 1024 * 1024
BUTTONS = (Button("yes", "Yes"),)
PHOTO, VIDEO, AUDIO = ("a.png", "image/png"), ("a.mp4", "video/mp4"), ("a.mp3", "audio/mpeg")
VOICE, PDF, GIF = ("a.ogg", "audio/ogg"), ("a.pdf", "application/pdf"), ("a.gif", "image/gif")


def files(*given: tuple[str, str], size: int = 100) -> tuple[File, ...]:
    return tuple(File(name, f"/stored/{number}", mime, size) for number, (name, mime) in enumerate(given))


def planned(text: str, given: tuple[File, ...] = (), *, buttons: tuple[Button, ...] = ()) -> list[Chunk]:
    return [decode(one) for one in chunks(letter("7", text, files=given, buttons=buttons))]


def numbers(found: list[Chunk]) -> list[tuple[int, ...]]:
    return [one.files for one in found]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ((PHOTO,), [(0,)]),
        ((PHOTO, VIDEO, PHOTO), [(0, 1, 2)]),
        ((PDF, GIF, PDF), [(0, 1, 2)]),
        ((AUDIO, AUDIO), [(0, 1)]),
        ((VOICE, VOICE), [(0,), (1,)]),
        ((PHOTO, PDF, PHOTO), [(0,), (1,), (2,)]),
        ((PHOTO, PHOTO, PDF, PDF, AUDIO, VOICE), [(0, 1), (2, 3), (4,), (5,)]),
        ((PDF,) * 21, [tuple(range(10)), tuple(range(10, 20)), (20,)]),
    ],
    ids=str,
)
def test_neighbours_that_telegram_lets_be_together_are_an_album(
    given: tuple[tuple[str, str], ...], expected: list[tuple[int, ...]]
) -> None:
    assert numbers(planned("", files(*given))) == expected


def test_a_large_picture_is_a_document_also_among_others() -> None:
    small, large = files(PHOTO, PHOTO, size=100), files(PHOTO, PDF, size=11 * MEGABYTE)
    assert numbers(planned("", (*small, *large))) == [(0, 1), (2, 3)]


def test_an_album_is_no_larger_than_one_upload_can_be() -> None:
    assert numbers(planned("", files(PDF, PDF, PDF, size=20 * MEGABYTE))) == [(0, 1), (2,)]


def test_a_short_text_is_the_caption_of_the_first_file() -> None:
    found = planned("see", files(PDF, PHOTO))
    assert [(one.text, one.files) for one in found] == [("see", (0,)), ("", (1,))]


def test_a_text_that_is_too_long_for_a_caption_goes_apart_and_first() -> None:
    for text, apart in (("x" * 1024, False), ("x" * 1025, True), ("😀" * 512, False), ("😀" * 513, True)):
        found = planned(text, files(PHOTO, PHOTO))
        assert numbers(found) == ([(), (0, 1)] if apart else [(0, 1)])
        assert found[0].text == text


def test_files_without_a_text_have_no_caption() -> None:
    assert [one.text for one in planned(" \n ", files(PDF, PHOTO))] == ["", ""]


def test_a_letter_with_nothing_is_one_empty_post() -> None:
    assert planned(" ") == [Chunk()]


# --- buttons --------------------------------------------------------------------------------


def under(found: list[Chunk]) -> list[int]:
    return [number for number, one in enumerate(found) if one.buttons]


def test_the_buttons_are_under_the_last_text() -> None:
    assert under(planned("x" * 4000 + "\n\n" + "y" * 4000, files(PDF), buttons=BUTTONS)) == [1]
    assert under(planned("hello", buttons=BUTTONS)) == [0]


def test_the_buttons_are_under_the_file_that_has_the_text() -> None:
    found = planned("see", files(PDF, PHOTO), buttons=BUTTONS)
    assert (numbers(found), under(found)) == ([(0,), (1,)], [0])


def test_an_album_has_no_buttons_so_the_text_goes_apart() -> None:
    found = planned("see", files(PHOTO, PHOTO), buttons=BUTTONS)
    assert (numbers(found), under(found), found[0].text) == ([(), (0, 1)], [0], "see")


def test_without_a_text_the_last_file_stands_alone_for_the_buttons() -> None:
    found = planned("", files(PHOTO, PHOTO, PHOTO), buttons=BUTTONS)
    assert (numbers(found), under(found)) == ([(0, 1), (2,)], [1])


def test_a_letter_with_nothing_but_buttons_has_them_in_its_one_post() -> None:
    assert under(planned("", buttons=BUTTONS)) == [0]


# --- too big --------------------------------------------------------------------------------


def test_a_file_that_is_too_big_is_named_and_the_rest_goes() -> None:
    big = File("film.mkv", "/stored/film", "video/x-matroska", 51 * MEGABYTE)
    found = planned("see", (*files(PDF, PDF), big, *files(PDF)))
    assert numbers(found) == [(0, 1, 3), ()]
    assert (found[0].text, found[1].problem) == ("see", found[1].text)
    assert "film.mkv" in found[1].text and "51.0 MB" in found[1].text


def test_the_text_and_its_buttons_go_also_if_all_files_are_too_big() -> None:
    big = File("film.mkv", "/stored/film", "video/x-matroska", 51 * MEGABYTE)
    found = planned("see", (big,), buttons=BUTTONS)
    assert [one.text.partition(" ")[0] for one in found] == ["see", "film.mkv"]
    assert under(found) == [0]
    assert under(planned("", (big,), buttons=BUTTONS)) == [0]


def test_what_is_stored_is_read_as_it_was() -> None:
    bold = ({"type": "bold", "offset": 0, "length": 1},)
    for one in (
        Chunk("plain"),
        Chunk("\x1fodd"),
        Chunk("b", bold, "<b>b</b>"),
        Chunk("c", bold, files=(0, 3), buttons=True),
        Chunk("p", problem="p"),
    ):
        assert decode(encode(one)) == one
    assert encode(Chunk("plain")) == "plain"


def test_markup_that_shows_nothing_is_posted_as_it_was_written() -> None:
    assert [decode(one).text for one in chunks(letter("7", "<b></b>", type="html"))] == ["<b></b>"]


@pytest.mark.parametrize(
    ("name", "sent"),
    [("plan.pdf", "plan.pdf"), ('the "plan".pdf', "the 'plan'.pdf"), ("a\nb.txt", "a b.txt"), ("\n", "file")],
)
def test_a_file_is_uploaded_under_a_name_that_a_form_need_not_escape(name: str, sent: str) -> None:
    assert file_kinds.sent_name(name) == sent
