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
    (file,) = json.loads(desk.office.wait_for_stored(desk.chat, "keep this")["attachments"])
    path = Path(desk.office.daemon.home.path) / "media" / file["file"]
    assert path.read_bytes() == b"my notes"
    (post,) = desk.delivered(desk.send(text="yours", attachments=[str(path)]))
    assert post.files[0].data == b"my notes"
