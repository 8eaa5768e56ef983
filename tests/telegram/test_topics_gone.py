"""Topics of Telegram that were deleted: an agent's own one is made again, for any other the chat itself is used."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hiboss.routing.chat_setup import ChatSetup
from hiboss.testing.bot_api.bots import Bot
from hiboss.testing.bot_api.chats import Chat, Topic
from hiboss.testing.bot_api.groups import Group
from hiboss.testing.bot_api.messages import Message
from tests.support.crash_groups import groups_of
from tests.support.python_agents import PythonAgent
from tests.support.telegram_bots import TelegramDaemon, address, answer_to, own_topic, telegram_daemon
from tests.support.waits import wait_until

ANSWERS = 'print(f"heard {TEXTS[-1]}")'
LONG = "".join(f"{number:04}\n" for number in range(1_600))  # two posts, each as long as one can be


@pytest.fixture
def office(tmp_path: Path) -> Iterator[TelegramDaemon]:
    with telegram_daemon(tmp_path) as running:
        yield running


ON_ITS_WAY = """
    SELECT 1 FROM envelope WHERE status = 0 AND (binding IS NOT NULL OR held_by IS NOT NULL)
"""


class Desk:
    """An agent and its bot. Ada is the boss, and Bob is in the groups."""

    def __init__(self, office: TelegramDaemon, *, topic: bool = False) -> None:
        self.office = office
        self.ada = office.api.add_person("Ada", username="ada")
        self.bob = office.api.add_person("Bob", username="bob")
        self.kai: PythonAgent = office.team.hire(ANSWERS, "kai")
        self.bot: Bot = office.api.add_bot("kaibot", topics=True, privacy=False)
        office.bind(self.bot, "kai", topic=topic)
        self.his = office.pair(self.ada, self.bot)

    def forum(self) -> Group:
        group = self.office.api.add_group("Ops", [self.ada, self.bob, self.bot], forum=True)
        self.office.approve(group)
        return group

    def send(self, to: str, text: str, **params: Any) -> str:
        return str(self.kai.send(to, text=text, **params)["ids"][0])

    def wait_until_done(self, *envelopes: str) -> None:
        wait_until(lambda: {self.status(one) for one in envelopes} == {"done"})

    def status(self, envelope: str) -> str:
        return str(self.office.boss.call("envelope.get", id=envelope)["envelope"]["status"])

    def own(self, chat: Chat, topic: int | None) -> list[Message]:
        """Return what the bot posted in a topic, or in the chat itself."""
        found = [one for one in chat.messages if one.sender is self.bot and not one.service]
        return [one for one in found if one.topic == topic and "This chat is yours" not in one.text]

    def texts(self, chat: Chat, topic: int | None) -> list[str]:
        return [one.text for one in self.own(chat, topic)]

    def tries(self, topic: Topic) -> int:
        """Return how often something was to be posted in a topic."""
        calls = [one for one in self.office.api.calls if one.method.startswith("send")]
        return sum(str(one.params.get("message_thread_id")) == str(topic.id) for one in calls)


def delete(chat: Chat, topic: Topic) -> None:
    """Delete a topic with what is in it. Bots are not told."""
    with chat.changed:
        del chat.topics[topic.id]
        for message in chat.messages:
            if message.topic == topic.id:
                chat.delete(message)


def body(text: str) -> str:
    """Return a post in the boss's chat without the name of its sender."""
    return text.removeprefix("kai:\n")


# --- an agent's own topic in the chat of the boss --------------------------------------


def test_an_own_topic_that_was_deleted_is_made_again_and_what_waited_goes_there_in_order(
    office: TelegramDaemon,
) -> None:
    desk = Desk(office, topic=True)
    first = own_topic(office, desk.his, desk.kai)
    desk.send("user:boss", "before")
    desk.his.wait_for_text("before")
    delete(desk.his, first)
    hangs = office.api.fault("sendMessage", chat=desk.his, do="hang")  # until all of them wait
    for number in range(5):
        desk.send("user:boss", f"message {number}")
    hangs.release()
    desk.his.wait_for_text("message 4")
    new = own_topic(office, desk.his, desk.kai)
    assert new is not first
    assert [body(one) for one in desk.texts(desk.his, new.id)] == [f"message {number}" for number in range(5)]
    assert desk.texts(desk.his, None) == []
    assert desk.tries(first) == 2  # one that was there, and one by which it was found out
    assert answer_to(desk.his, desk.ada.says(desk.his, "and here?", topic=new)).topic == new.id


def test_what_is_partly_posted_goes_on_in_the_new_topic(office: TelegramDaemon) -> None:
    desk = Desk(office, topic=True)
    first = own_topic(office, desk.his, desk.kai)
    late = office.api.fault("sendMessage", chat=desk.his, do="hang", carry_out=True)
    envelope = desk.send("user:boss", LONG)
    words = desk.his.wait_for_text("0000").text
    delete(desk.his, first)
    late.release()
    wait_until(lambda: _boss_forward(office, envelope) == "done")
    new = own_topic(office, desk.his, desk.kai)
    assert new is not first
    assert "\n".join(body(one) for one in [words, *desk.texts(desk.his, new.id)]).split() == LONG.split()
    assert desk.texts(desk.his, None) == []


def _boss_forward(office: TelegramDaemon, envelope: str) -> str:
    """Return the status of the post of something in the boss's box."""
    rows = office.rows("SELECT f.status FROM envelope f WHERE f.forwards = ?", int(envelope[1:]))
    return "done" if [one["status"] for one in rows] == [1] else str(rows)


def test_if_an_own_topic_cannot_be_made_again_the_chat_gets_what_waited_with_a_line_in_front(
    office: TelegramDaemon,
) -> None:
    desk = Desk(office, topic=True)
    topic = own_topic(office, desk.his, desk.kai)
    delete(desk.his, topic)
    office.api.fault(
        "createForumTopic",
        chat=desk.his,
        status=400,
        description="Bad Request: the chat is not a forum",
        times=None,
    )
    desk.send("user:boss", "one")
    desk.his.wait_for_text("one")
    desk.his.wait_for_text("agent:kai has no topic of its own")
    desk.send("user:boss", "two")
    desk.his.wait_for_text("two")
    found = [one for one in desk.texts(desk.his, None) if "no topic of its own" not in one]
    assert found == [f"(for the topic {topic.id}, which is gone)\nkai:\none", "kai:\ntwo"]
    assert desk.tries(topic) == 1


@pytest.mark.slow
@pytest.mark.parametrize("point", ["delivery.claimed:2", "delivery.settled:2", "store.after_commit"])
def test_killed_after_an_own_topic_was_lost_nothing_is_lost_or_doubled(
    office: TelegramDaemon, tmp_path: Path, point: str
) -> None:
    desk = Desk(office, topic=True)
    first = own_topic(office, desk.his, desk.kai)
    office.daemon.stop()
    armed = tmp_path / "armed"
    delete(desk.his, first)
    office.start(HIBOSS_CRASH_AT=f"{point}@{armed}", **groups_of(ChatSetup._make_topic))
    hangs = office.api.fault("sendMessage", chat=desk.his, do="hang")
    for number in range(3):
        desk.send("user:boss", f"message {number}")
    wait_until(lambda: hangs.hits)
    armed.touch()
    hangs.release()
    office.daemon.wait_for_death()
    office.start()
    wait_until(lambda: desk.his.topics and len(desk.texts(desk.his, max(desk.his.topics))) >= 3)
    new = own_topic(office, desk.his, desk.kai)
    wait_until(lambda: not office.rows("SELECT id FROM envelope WHERE status = 0 AND binding IS NOT NULL"))
    assert [body(one) for one in desk.texts(desk.his, new.id)] == [f"message {number}" for number in range(3)]
    assert desk.texts(desk.his, None) == []


# --- any other topic -------------------------------------------------------------------


def gone(topic: Topic) -> str:
    return f"(for the topic {topic.id}, which is gone)\n"


def test_what_is_for_a_deleted_topic_of_a_group_goes_to_the_chat_with_a_line_in_front(
    office: TelegramDaemon,
) -> None:
    desk = Desk(office)
    forum = desk.forum()
    topic, other = forum.create_topic("Deploys"), forum.create_topic("Lunch")
    there = address(forum, topic.id)
    desk.wait_until_done(desk.send(there, "before"), desk.send(address(forum, other.id), "lunch"))
    delete(forum, topic)
    desk.wait_until_done(*(desk.send(there, f"message {number}") for number in range(3)))
    assert desk.texts(forum, None) == [f"{gone(topic)}message {number}" for number in range(3)]
    assert desk.tries(topic) == 2  # the one before, and one by which it was found out
    desk.wait_until_done(desk.send(address(forum, other.id), "more lunch"))
    assert desk.texts(forum, other.id) == ["lunch", "more lunch"]
    # Somebody writes in it: it is there again.
    with forum.changed:
        forum.topics[topic.id] = topic
    assert answer_to(forum, desk.bob.says(forum, "@kai hello", topic=topic)).topic == topic.id
    desk.wait_until_done(desk.send(there, "after"))
    assert desk.texts(forum, topic.id) == ["heard @kai hello", "after"]


def test_a_closed_topic_is_like_one_that_is_gone(office: TelegramDaemon) -> None:
    desk = Desk(office)
    forum = desk.forum()
    topic = forum.create_topic("Deploys")
    topic.closed = True
    desk.wait_until_done(desk.send(address(forum, topic.id), "one"))
    assert desk.texts(forum, None) == [f"{gone(topic)}one"]


def test_what_is_left_of_a_long_text_is_posted_behind_such_a_line(office: TelegramDaemon) -> None:
    desk = Desk(office)
    forum = desk.forum()
    topic = forum.create_topic("Deploys")
    late = office.api.fault("sendMessage", chat=forum, do="hang", carry_out=True)
    envelope = desk.send(address(forum, topic.id), LONG)
    begun = forum.wait_for_text("0000").text
    delete(forum, topic)
    late.release()
    desk.wait_until_done(envelope)
    line, *rest = desk.texts(forum, None)
    assert line == gone(topic).strip()
    assert "\n".join([begun, *rest]).split() == LONG.split()


def test_a_long_text_of_which_nothing_was_posted_has_the_line_in_its_first_post(
    office: TelegramDaemon,
) -> None:
    desk = Desk(office)
    forum = desk.forum()
    topic = forum.create_topic("Deploys")
    delete(forum, topic)
    desk.wait_until_done(desk.send(address(forum, topic.id), LONG))
    first, *rest = desk.texts(forum, None)
    assert first.startswith(gone(topic))
    assert "\n".join([first.removeprefix(gone(topic)), *rest]).split() == LONG.split()


def test_an_answer_to_what_was_written_in_a_topic_that_is_deleted_meanwhile_is_not_lost(
    office: TelegramDaemon,
) -> None:
    desk = Desk(office)
    forum = desk.forum()
    topic = forum.create_topic("Deploys")
    desk.kai.program.write('wait_for("go"); print("well")', office.daemon.home.socket)
    desk.bob.says(forum, "@kai deploy", topic=topic)
    wait_until(lambda: desk.kai.turns())
    delete(forum, topic)
    office.team.place("go").touch()
    post = forum.wait_for_text("well")
    assert (post.text, post.topic, post.reply_to) == (f"{gone(topic)}well", None, None)


# --- what cannot be posted at all ------------------------------------------------------


def test_a_chat_that_blocks_the_bot_is_a_dead_letter_with_the_reason_and_can_be_retried(
    office: TelegramDaemon,
) -> None:
    desk = Desk(office)
    chat = office.approved(desk.bob, desk.bot)
    wait_until(lambda: not office.rows(ON_ITS_WAY))  # like the code that the chat was approved with
    for status, why in (
        (403, "Forbidden: bot was blocked by the user"),
        (400, "Bad Request: chat not found"),
    ):
        office.api.fault("sendMessage", status=status, description=why, chat=chat.id)
    blocked, unknown = desk.send(address(chat), "one"), desk.send(address(chat), "two")
    wait_until(lambda: desk.status(unknown) == "failed")
    letters = office.boss.call("envelope.list", address=address(chat), status="failed")["envelopes"]
    reasons = {one["id"]: one["last_error"]["text"] for one in letters}
    assert "bot was blocked by the user" in reasons[blocked] and "chat not found" in reasons[unknown]
    notices = [one["text"] for one in desk.kai.list() if one["from"] == "agent:system"]
    assert any(f"hiboss envelope retry {blocked}" in one for one in notices)
    office.boss.call("envelope.retry", ids=[blocked, unknown])
    desk.wait_until_done(blocked, unknown)
    assert [one.text for one in chat.messages if one.text in ("one", "two")] == ["one", "two"]


# --- replies ---------------------------------------------------------------------------


def test_a_reply_quotes_only_in_the_same_chat_and_topic_and_with_its_first_post(
    office: TelegramDaemon,
) -> None:
    desk = Desk(office)
    desk.kai.program.write('print("NO_REPLY")', office.daemon.home.socket)
    forum = desk.forum()
    topic, other = forum.create_topic("Deploys"), forum.create_topic("Lunch")
    asked = desk.bob.says(forum, "@kai hello", topic=topic)
    wait_until(lambda: desk.kai.turns())
    (number,) = office.rows(
        "SELECT e.id FROM envelope e JOIN message m ON m.id = e.message WHERE m.text = '@kai hello'"
    )
    reply_to = f"e{number['id']}"
    for place in (topic.id, other.id, None):
        desk.wait_until_done(desk.send(address(forum, place), LONG, reply_to=reply_to))
    quoted = [[one.reply_to for one in desk.own(forum, place)] for place in (topic.id, other.id, None)]
    assert quoted == [[asked, None], [None, None], [None, None]]
    # A reply to what it posted itself quotes the first of its posts.
    (first, *_) = desk.own(forum, other.id)
    sent = office.rows("SELECT envelope FROM post WHERE platform_id = ? AND chunk = 0", str(first.id))
    for place in (topic.id, other.id):
        desk.wait_until_done(desk.send(address(forum, place), "more", reply_to=f"e{sent[0]['envelope']}"))
    assert desk.own(forum, topic.id)[-1].reply_to is None
    assert desk.own(forum, other.id)[-1].reply_to is first


def test_whoever_replies_to_any_picture_of_an_album_replies_to_its_writer(
    office: TelegramDaemon, tmp_path: Path
) -> None:
    desk = Desk(office)
    group = office.api.add_group("Ops", [desk.ada, desk.bob, desk.bot], admins=[desk.bot])
    office.approve(group)
    mia = office.team.hire(ANSWERS, "mia")
    office.bind(desk.bot, "mia")
    pictures = [tmp_path / f"{number}.png" for number in range(3)]
    for number, picture in enumerate(pictures):
        picture.write_bytes(b"\x89PNG\r\n\x1a\n" + bytes([number]) * 100)
    sent = mia.send(address(group), text="look", attachments=[str(one) for one in pictures])["ids"][0]
    desk.wait_until_done(sent)
    album = [one for one in desk.own(group, None) if one.media]
    assert len(album) == 3
    for post in album:
        asked = desk.bob.says(group, f"nice {post.id}", reply_to=post)
        assert answer_to(group, asked).text.endswith(f"heard nice {post.id}")
    assert len(mia.turns()) == 3 and not desk.kai.turns()
    desk.bob.reacts(album[2], "👍")
    wait_until(lambda: office.rows("SELECT emoji FROM reaction"))
    (row,) = office.rows(
        "SELECT e.id FROM reaction r JOIN envelope e ON e.message = r.message WHERE r.emoji = '👍'"
    )
    assert f"e{row['id']}" == sent
