"""What agents send to Telegram: how its text is read, files that are posted again by their id, what is too big."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hiboss.testing.bot_api.bots import Bot
from hiboss.testing.bot_api.chats import Chat
from hiboss.testing.bot_api.messages import Message
from hiboss.testing.bot_api.people import Person
from tests.support.telegram_bots import TelegramDaemon, address, telegram_daemon
from tests.support.waits import wait_until

PNG = b"\x89PNG\r\n\x1a\n" + b"picture" * 20


class Desk:
    """An agent that sends, its bot, and people whose chats are approved."""

    def __init__(self, office: TelegramDaemon, name: str) -> None:
        self.office = office
        self.bot: Bot = office.bound_bot(name)
        self.bob: Person = office.api.add_person("Bob")
        self.chat: Chat = office.approved(self.bob, self.bot)

    def send(self, *, chat: Chat | None = None, **params: Any) -> str:
        sent = self.office.nex.call("envelope.send", to=address(chat or self.chat), **params)
        return str(sent["ids"][0])

    def delivered(self, envelope: str, chat: Chat | None = None) -> list[Message]:
        """Wait until an envelope is done, and return its posts in its chat."""
        wait_until(lambda: self.state(envelope)["status"] != "pending")
        assert self.state(envelope)["status"] == "done", self.state(envelope)
        rows = self.office.rows(
            """
            SELECT platform_id FROM post WHERE envelope = ?1
            UNION ALL SELECT platform_id FROM post_part WHERE envelope = ?1
            """,
            int(envelope[1:]),
        )
        ids = {int(row["platform_id"]) for row in rows}
        return [one for one in (chat or self.chat).messages if one.id in ids and one.sender is self.bot]

    def state(self, envelope: str) -> Any:
        return self.office.boss.call("envelope.get", id=envelope)["envelope"]

    def uploads(self) -> int:
        calls = [one for one in self.office.api.calls if one.bot is self.bot]
        return sum(len(one.uploads) for one in calls)


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TelegramDaemon]:
    with telegram_daemon(tmp_path_factory.mktemp("out")) as running:
        yield running
        assert running.api.complaints == []


@pytest.fixture
def desk(office: TelegramDaemon, request: pytest.FixtureRequest) -> Desk:
    return Desk(office, f"desk{abs(hash(request.node.name)) % 10**8}bot")


@pytest.mark.parametrize(
    ("params", "text", "entities"),
    [
        ({"text": "**a** <b>b</b>"}, "**a** <b>b</b>", []),
        ({"text": "**a** `c`", "type": "markdown"}, "a c", ["bold", "code"]),
        ({"text": "**a**", "type": "markdown", "parse_mode": "plain"}, "**a**", []),
        ({"text": "**a**", "parse_mode": "markdown"}, "a", ["bold"]),
        ({"text": "<i>a</i> & b", "type": "html"}, "a & b", ["italic"]),
        ({"text": "<i>a</i>", "parse_mode": "html", "type": "markdown"}, "a", ["italic"]),
        ({"text": '{"a":1}', "type": "json"}, '{\n  "a": 1\n}', ["pre"]),
        ({"text": '{"a":1}', "type": "json", "parse_mode": "plain"}, '{"a":1}', []),
        ({"text": "words", "subject": "The *subject*"}, "The *subject*\n\nwords", ["bold"]),
    ],
)
def test_the_type_says_how_a_text_is_read_and_the_parse_mode_overrides_it(
    desk: Desk, params: dict[str, Any], text: str, entities: list[str]
) -> None:
    (post,) = desk.delivered(desk.send(**params))
    assert post.text == text
    assert [one["type"] for one in post.entities] == entities


def test_an_unknown_parse_mode_is_refused_with_nothing_stored(desk: Desk) -> None:
    before = desk.office.rows("SELECT count(*) AS n FROM message")
    with pytest.raises(Exception, match="parse_mode"):
        desk.send(text="x", parse_mode="bbcode")
    assert desk.office.rows("SELECT count(*) AS n FROM message") == before


def test_a_file_is_uploaded_once_for_all_chats_of_a_bot(desk: Desk, tmp_path: Path) -> None:
    picture = tmp_path / "plan.png"
    picture.write_bytes(PNG)
    (first,) = desk.delivered(desk.send(text="the plan", attachments=[str(picture)]))
    assert first.text == "the plan" and "photo" in first.media and desk.uploads() == 1
    other = desk.office.approved(desk.office.api.add_person("Eve"), desk.bot)
    (again,) = desk.delivered(desk.send(chat=other, text="see", attachments=[str(picture)]), other)
    assert again.media["photo"][-1]["file_unique_id"] == first.media["photo"][-1]["file_unique_id"]
    assert desk.uploads() == 1


def test_another_name_is_another_file(desk: Desk, tmp_path: Path) -> None:
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text("the same")
        (post,) = desk.delivered(desk.send(attachments=[str(tmp_path / name)]))
        assert post.media["document"]["file_name"] == name
    assert desk.uploads() == 2


def test_a_file_that_came_in_is_posted_again_by_its_id(desk: Desk) -> None:
    desk.bob.sends_document(desk.chat, "notes.txt", b"my notes", caption="keep this")
    stored = desk.office.wait_for_stored(desk.chat, "keep this")
    (file,) = json.loads(stored["attachments"])
    path = Path(desk.office.daemon.home.path) / "media" / file["file"]
    assert path.read_bytes() == b"my notes"
    (post,) = desk.delivered(desk.send(text="yours", attachments=[str(path)]))
    assert post.files[0].data == b"my notes"


def test_an_album_is_one_chunk_and_a_reply_to_any_of_its_pictures_is_one_to_it(
    desk: Desk, tmp_path: Path
) -> None:
    files = [tmp_path / f"{number}.png" for number in range(3)]
    for number, file in enumerate(files):
        file.write_bytes(PNG + bytes([number]))
    sent = desk.send(text="three", attachments=[str(file) for file in files])
    posts = desk.delivered(sent)
    assert len(posts) == 3 and len({one.more["media_group_id"] for one in posts}) == 1
    desk.bob.says(desk.chat, "the third?", reply_to=posts[2])
    stored = desk.office.wait_for_stored(desk.chat, "the third?")
    assert f"m{stored['reply_to']}" == desk.state(sent)["message"]


def test_of_a_file_that_is_too_big_the_text_goes_and_the_sender_is_told(desk: Desk, tmp_path: Path) -> None:
    huge = tmp_path / "film.bin"
    with huge.open("wb") as file:
        file.truncate(50 * 1024 * 1024)  # what hiboss takes; Telegram takes as much without its headers
    desk.office.api.fault("sendDocument", chat=desk.chat, status=413)
    sent = desk.send(text="look", attachments=[str(huge)])
    texts = "\n".join(one.text for one in desk.delivered(sent))
    assert "look" in texts and "film.bin" in texts

    def told() -> list[str]:
        found = desk.office.nex.call("envelope.list", page_size=50)["envelopes"]
        return [one["text"] for one in found if f"Not all of {sent} " in one["text"]]

    wait_until(lambda: len(told()) == 1)
    assert "film.bin" in told()[0]


def test_a_reply_quotes_the_message_there_and_only_on_the_first_chunk(desk: Desk) -> None:
    desk.bob.says(desk.chat, "how?")
    asked = desk.office.wait_for_stored(desk.chat, "how?")
    sent = desk.send(text="so. " * 2_000, reply_to=f"m{asked['id']}")
    posts = desk.delivered(sent)
    assert len(posts) == 2
    assert [one.reply_to.text if one.reply_to else None for one in posts] == ["how?", None]
