"""What is sent to Telegram, edited, deleted or reacted to: what people see there in the end."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hiboss.testing.bot_api.chats import Chat
from hiboss.testing.bot_api.messages import Message
from hiboss.testing.running_daemon import Answered
from tests.support.telegram_bots import TelegramDaemon, address, telegram_daemon
from tests.support.waits import wait_until

PNG = b"\x89PNG\r\n\x1a\n" + b"picture" * 20
LONG = "word " * 1_500  # two posts


class Desk:
    """An agent that sends, its bot, and the chat of somebody who is approved."""

    def __init__(self, office: TelegramDaemon, name: str) -> None:
        self.office = office
        self.bot = office.bound_bot(name)
        self.bob = office.api.add_person("Bob")
        self.chat: Chat = office.approved(self.bob, self.bot)

    def send(self, text: str, *files: Path, **params: Any) -> str:
        """Send something, and return its envelope when it is posted."""
        given = {"to": address(self.chat), "text": text, "attachments": [str(file) for file in files]}
        (number,) = self.office.nex.call("envelope.send", **{**given, **params})["ids"]
        wait_until(lambda: self.office.boss.get(number)["status"] == "done")
        return str(number)

    def edit(self, number: str, text: str) -> None:
        assert self.office.nex.call("message.edit", id=number, text=text)["changed"]
        self.settle()

    def delete(self, number: str) -> None:
        assert self.office.nex.call("message.delete", id=number)["changed"]
        self.settle()

    def settle(self) -> None:
        wait_until(lambda: not self.office.rows("SELECT * FROM post_change"))

    def posts(self) -> list[Message]:
        """Return what the bot posted and is still there, without what hiboss itself said."""
        rows = self.office.rows(
            """
            SELECT p.platform_id FROM post p JOIN envelope e ON e.id = p.envelope
            JOIN message m ON m.id = e.message JOIN address a ON a.id = m.sender WHERE a.name = 'nex'
            UNION ALL SELECT platform_id FROM post_part
            """
        )
        ids = {row["platform_id"] for row in rows}
        return [one for one in self.chat.messages if one.sender is self.bot and str(one.id) in ids]

    def uploads(self) -> int:
        calls = [one for one in self.office.api.calls if one.bot is self.bot]
        return sum(len(one.uploads) for one in calls)

    def notices(self) -> list[str]:
        return [one["text"] for one in self.office.nex.list(page_size=100) if one["from"] == "agent:system"]


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TelegramDaemon]:
    with telegram_daemon(tmp_path_factory.mktemp("d")) as running:
        yield running
        assert running.api.complaints == []


@pytest.fixture
def desk(office: TelegramDaemon, request: pytest.FixtureRequest) -> Desk:
    return Desk(office, f"change{abs(hash(request.node.name)) % 10**8}bot")


def picture(directory: Path, name: str) -> Path:
    file = directory / name
    file.write_bytes(PNG + name.encode())
    return file


# --- what is sent ----------------------------------------------------------------------------


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
    desk.send(**params)
    (post,) = desk.posts()
    assert (post.text, [one["type"] for one in post.entities]) == (text, entities)


def test_a_file_is_uploaded_once_for_all_chats_of_a_bot(desk: Desk, tmp_path: Path) -> None:
    file = picture(tmp_path, "plan.png")
    desk.send("the plan", file)
    (first,) = desk.posts()
    assert first.text == "the plan" and "photo" in first.media and desk.uploads() == 1
    other = desk.office.approved(desk.office.api.add_person("Eve"), desk.bot)
    desk.send("see", file, to=address(other))
    again = other.wait_for_text("see")
    assert again.media["photo"][-1]["file_unique_id"] == first.media["photo"][-1]["file_unique_id"]
    assert desk.uploads() == 1


def test_another_name_is_another_file(desk: Desk, tmp_path: Path) -> None:
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text("the same")
        desk.send("", tmp_path / name)
    assert [one.media["document"]["file_name"] for one in desk.posts()] == ["a.txt", "b.txt"]
    assert desk.uploads() == 2


def test_a_file_that_came_in_can_be_attached_from_the_media(desk: Desk) -> None:
    desk.bob.sends_document(desk.chat, "notes.txt", b"my notes", caption="keep this")
    (file,) = json.loads(desk.office.wait_for_stored(desk.chat, "keep this")["attachments"])
    path = Path(desk.office.daemon.home.path) / "media" / file["file"]
    assert path.read_bytes() == b"my notes"
    desk.send("yours", path)
    (post,) = desk.posts()
    assert post.files[0].data == b"my notes"


# --- edits -----------------------------------------------------------------------------------


def test_an_edited_message_edits_its_post_with_its_markup(desk: Desk) -> None:
    number = desk.send("**one**", type="markdown")
    [post] = desk.posts()
    desk.edit(number, "two *and* three")
    assert (post.text, [one["type"] for one in post.entities]) == ("two and three", ["italic"])
    assert post.revision == 1 and desk.posts() == [post]


def test_a_longer_text_adds_a_post_and_a_shorter_one_takes_it_back(desk: Desk) -> None:
    number = desk.send("short")
    desk.edit(number, LONG)
    assert len(desk.posts()) == 2
    assert " ".join(one.text.strip() for one in desk.posts()).split() == LONG.split()
    desk.edit(number, "short again")
    assert [one.text for one in desk.posts()] == ["short again"]


def test_the_caption_of_a_file_is_edited_and_moves_out_when_it_is_too_long(
    desk: Desk, tmp_path: Path
) -> None:
    number = desk.send("the plan", picture(tmp_path, "plan.png"))
    [post] = desk.posts()
    desk.edit(number, "the new plan")
    assert desk.posts() == [post] and post.text == "the new plan"
    words = "word " * 300  # too long for a caption
    desk.edit(number, words)
    assert [one.text.split() for one in desk.posts()] == [[], words.split()]
    desk.edit(number, "short")
    assert desk.posts() == [post] and post.text == "short"
    assert not [one for one in desk.notices() if number in one]


def test_the_caption_of_an_album_is_edited_and_its_pictures_stay(desk: Desk, tmp_path: Path) -> None:
    number = desk.send("three", *[picture(tmp_path, f"{name}.png") for name in "abc"])
    before = desk.posts()
    assert len(before) == 3
    desk.edit(number, "the same three")
    assert desk.posts() == before and [one.text for one in before] == ["the same three", "", ""]


def test_a_post_that_somebody_deleted_is_not_posted_again_and_the_sender_is_told(desk: Desk) -> None:
    number = desk.send("one")
    [post] = desk.posts()
    desk.bob.deletes(post)
    desk.edit(number, "two")
    assert desk.posts() == []
    [told] = [one for one in desk.notices() if number in one]
    assert f"{number} was not changed in {address(desk.chat)}" in told and "not found" in told


# --- deletions -------------------------------------------------------------------------------


def test_a_deleted_message_is_taken_back_with_its_album(desk: Desk, tmp_path: Path) -> None:
    number = desk.send(LONG, *[picture(tmp_path, f"{name}.png") for name in "abc"])
    assert len(desk.posts()) == 5
    desk.delete(number)
    assert desk.posts() == [] and not [one for one in desk.notices() if number in one]


# --- reactions -------------------------------------------------------------------------------


def received(desk: Desk, text: str = "hello") -> tuple[Message, str]:
    """Let Bob say something; return his message, and the envelope of nex."""
    said = desk.bob.says(desk.chat, text)
    stored = desk.office.wait_for_stored(desk.chat, text)
    [row] = desk.office.rows("SELECT id FROM envelope WHERE message = ?", stored["id"])
    return said, f"e{row['id']}"


def test_the_bot_shows_the_reaction_of_its_agent_and_takes_it_back(desk: Desk) -> None:
    said, number = received(desk)
    assert desk.office.nex.call("reaction.set", id=number, emoji="👍")["shown_in"] == [address(desk.chat)]
    wait_until(lambda: said.reactions_of(desk.bot) == ["👍"])
    desk.office.nex.call("reaction.set", id=number, emoji="❤️")
    wait_until(lambda: said.reactions_of(desk.bot) == ["❤"])
    desk.office.nex.call("reaction.remove", id=number)
    wait_until(lambda: said.reactions_of(desk.bot) == [])


def test_an_emoji_that_telegram_does_not_take_is_refused_with_some_that_it_takes(desk: Desk) -> None:
    _, number = received(desk)
    with pytest.raises(Answered) as refused:
        desk.office.nex.call("reaction.set", id=number, emoji="🦜")
    assert refused.value.stable_code == "emoji_refused"
    assert "telegram shows no 🦜" in str(refused.value) and "👍" in str(refused.value)
    assert desk.office.nex.get(number)["reactions"] == []


def test_a_group_shows_it_too_and_what_the_boss_sets_by_command_it_does_not(desk: Desk) -> None:
    office = desk.office
    group = office.api.add_group("Team", [desk.bob, desk.bot])
    said = desk.bob.says(group, f"@{desk.bot.username} hello team")
    office.approve(group)
    stored = office.wait_for_stored(group, f"@{desk.bot.username} hello team")
    [row] = office.rows("SELECT id FROM envelope WHERE message = ?", stored["id"])
    office.boss.call("reaction.set", id=f"e{row['id']}", emoji="🔥")
    office.nex.call("reaction.set", id=f"e{row['id']}", emoji="👍")
    wait_until(lambda: said.reactions_of(desk.bot) == ["👍"])


# --- trouble ---------------------------------------------------------------------------------


def test_who_deletes_what_was_posted_without_an_answer_is_told_that_it_may_be_there(desk: Desk) -> None:
    office = desk.office
    fault = office.api.fault("sendMessage", do="lose_answer", chat=desk.chat.id)
    (number,) = office.nex.send(address(desk.chat), text="the secret plan")["ids"]
    wait_until(lambda: fault.hits == 1 and office.boss.get(number)["attempts"] == 1)
    assert office.nex.call("message.delete", id=number)["posts"] == 1
    desk.settle()
    assert office.boss.get(number)["status"] == "cancelled"
    assert "the secret plan" in [one.text for one in desk.chat.messages]
    told = [one for one in desk.notices() if one.startswith(f"{number} may still be in {address(desk.chat)}")]
    assert len(told) == 1


def test_a_retry_by_an_account_that_was_bound_again_posts_what_it_could_not_before(desk: Desk) -> None:
    office = desk.office
    fault = office.api.fault("sendMessage", retry_after=3600, times=None, chat=desk.chat.id)
    (number,) = office.nex.send(address(desk.chat), text="one")["ids"]
    wait_until(lambda: office.boss.get(number)["attempts"] == 1)
    office.boss.call("agent.unbind", name="nex", adapter_type="telegram", account=str(desk.bot.id))
    fault.clear()
    assert "not bound any more" in refusal(office, number)
    office.bind(desk.bot)
    office.nex.call("message.edit", id=number, text="two")
    assert office.nex.call("envelope.retry", ids=[number]) == {"changed": 1}
    wait_until(lambda: office.boss.get(number)["status"] == "done")
    assert [one.text for one in desk.posts()] == ["two"]


def refusal(office: TelegramDaemon, number: str) -> str:
    with pytest.raises(Answered) as refused:
        office.nex.call("envelope.retry", ids=[number])
    return str(refused.value)


def test_in_a_group_that_became_a_supergroup_old_posts_stay_and_the_sender_is_told(desk: Desk) -> None:
    office = desk.office
    group = office.api.add_group("Team", [desk.bob, desk.bot], supergroup=False)
    desk.bob.says(group, f"@{desk.bot.username} hello")
    office.approve(group)
    number = desk.send("one", to=address(group))
    new = group.migrate()
    wait_until(lambda: address(new) in [one["address"] for one in office.contacts()])
    office.nex.call("message.edit", id=number, text="two")
    desk.settle()
    wait_until(lambda: any(number in one and "another id now" in one for one in desk.notices()))
    assert [one.text for one in group.messages if one.sender is desk.bot] == ["one"]
