"""Who may do what in Telegram: strangers are held, the boss decides, and nothing that others send is his word."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from hiboss.testing.bot_api.bots import Bot, Press
from hiboss.testing.bot_api.chats import Chat
from hiboss.testing.bot_api.messages import Message
from hiboss.testing.bot_api.people import Person
from tests.support.cli import Shell
from tests.support.telegram_bots import TelegramDaemon, address, answer_to
from tests.support.waits import wait_until

HELD = 20  # updates of one chat
_numbers = itertools.count(1)


class Scene(NamedTuple):
    """A bot, the boss in his chat with it, and people whom nobody knows."""

    office: TelegramDaemon
    bot: Bot
    ada: Person
    desk: Chat

    def person(self, name: str) -> Person:
        return self.office.api.add_person(f"{name}{next(_numbers)}")

    def writes(self, person: Person, *texts: str) -> Chat:
        chat = self.office.api.private_chat(person, self.bot)
        for text in texts:
            person.says(chat, text)
        return chat

    def group(self, title: str, *people: Person, **facts: Any) -> Chat:
        return self.office.api.add_group(title, [*people, self.bot], **facts)

    def asked_about(self, name: str) -> Message:
        """Wait for the post that asks the boss about somebody, and return it."""

        def posts(found: list[Message]) -> list[Message]:
            return [one for one in found if name in one.text and "wants to write" in one.text]

        return posts(self.desk.wait_for(lambda found: bool(posts(found))))[-1]

    def presses(self, person: Person, post: Message, label: str) -> Press:
        (data,) = [one.data for one in post.buttons if one.text == label]
        assert data is not None
        return person.presses(post, data)

    def state(self, chat: Chat) -> str:
        self.office.settle()
        return str(self.office.contact(chat)["state"])


@pytest.fixture
def scene(office: TelegramDaemon) -> Iterator[Scene]:
    number = next(_numbers)
    bot = office.bound_bot(f"bot{number}", privacy=False)
    ada = office.api.add_person(f"Ada{number}")
    yield Scene(office, bot, ada, office.pair(ada, bot))
    office.api.clear_faults()
    if office.rows("SELECT 1 FROM binding WHERE account = ? AND removed_at IS NULL", str(bot.id)):
        office.boss.call("agent.unbind", name="nex", adapter_type="telegram", account=str(bot.id))


# --- strangers -------------------------------------------------------------------------


def test_of_a_stranger_twenty_messages_are_held_and_come_in_in_order(scene: Scene) -> None:
    eve = scene.person("Eve")
    texts = [f"message {number}" for number in range(HELD + 5)]
    chat = scene.writes(eve, *texts)
    assert (scene.state(chat), scene.office.texts(chat)) == ("asking", [])
    assert scene.office.contact(chat)["held"] == HELD
    codes = [one for one in chat.texts if "Your code is" in one]
    scene.asked_about(eve.first_name)
    assert len(codes) == 1
    scene.office.approve(chat)
    scene.office.wait_for_texts(chat, *texts[:HELD])
    eve.says(chat, "and now?")
    scene.office.wait_for_texts(chat, *texts[:HELD], "and now?")


def test_a_fourth_stranger_gets_no_code_while_three_are_pending(scene: Scene) -> None:
    people = [scene.person("Eve") for _ in range(4)]
    chats = [scene.writes(one, "let me in") for one in people]
    for chat in chats[:3]:
        chat.wait_for_text("Your code is")
    assert (scene.state(chats[3]), scene.office.contact(chats[3])["code"]) == ("asking", None)
    scene.office.approve(chats[0])  # one is decided: there is room again
    people[3].says(chats[3], "please")
    chats[3].wait_for_text("Your code is")
    assert (chats[3].texts[:2], scene.office.contact(chats[3])["held"]) == (["let me in", "please"], 2)


def test_start_alone_gives_a_stranger_a_code_and_tells_no_agent(scene: Scene) -> None:
    chat = scene.person("Eve").starts(scene.bot)
    chat.wait_for_text("Your code is")
    scene.office.approve(chat)
    assert (scene.state(chat), scene.office.texts(chat)) == ("allowed", [])


def test_what_was_edited_while_it_was_held_comes_in_once_with_its_last_words(scene: Scene) -> None:
    eve = scene.person("Eve")
    chat = scene.office.api.private_chat(eve, scene.bot)
    first = eve.says(chat, "helo")
    eve.says(chat, "are you there?")
    eve.edits(first, "hello")
    assert scene.state(chat) == "asking"
    scene.office.approve(chat)
    scene.office.wait_for_texts(chat, "hello", "are you there?")


# --- presses ---------------------------------------------------------------------------


def test_only_the_boss_can_press_and_only_once(scene: Scene) -> None:
    eve, bob = scene.person("Eve"), scene.person("Bob")
    scene.office.approved(bob, scene.bot)
    chat = scene.writes(eve, "let me in")
    post = scene.asked_about(eve.first_name)
    for person in (eve, bob):
        assert scene.presses(person, post, "Approve").wait()["text"] == "Only the boss can decide this."
    assert scene.state(chat) == "asking"
    with scene.office.api.world.changed:  # in one batch: the buttons are still there
        first = scene.presses(scene.ada, post, "Block")
        second = scene.presses(scene.ada, post, "Approve")
    assert first.wait()["text"] == "Blocked."
    assert second.wait()["text"] == "This was decided before."
    assert scene.state(chat) == "blocked"
    scene.desk.wait_for(lambda found: not post.buttons)


def test_a_button_counts_only_under_its_own_message(scene: Scene) -> None:
    eve = scene.person("Eve")
    chat = scene.writes(eve, "let me in")
    post = scene.asked_about(eve.first_name)
    other = answer_to(scene.desk, scene.ada.says(scene.desk, "/help"))
    other.reply_markup = post.reply_markup  # as a forged client would send it
    said = scene.presses(scene.ada, other, "Approve").wait()["text"]
    assert said == "This button does not belong to this message."
    assert scene.state(chat) == "asking"


def test_a_stranger_who_forges_a_button_in_a_chat_of_their_own_learns_nothing(scene: Scene) -> None:
    eve = scene.person("Eve")
    chat = scene.writes(eve, "let me in")
    post = scene.asked_about(eve.first_name)
    answer = chat.wait_for_text("Your code is")
    answer.reply_markup = post.reply_markup
    assert (scene.presses(eve, answer, "Approve").wait()["text"], scene.state(chat)) == ("", "asking")


def test_a_press_that_is_answered_too_late_for_its_spinner_still_counts(scene: Scene) -> None:
    eve = scene.person("Eve")
    chat = scene.writes(eve, "let me in")
    post = scene.asked_about(eve.first_name)
    hanging = scene.office.api.fault("getUpdates", bot=scene.bot, do="hang", times=1)
    scene.office.api.wait_for(lambda: hanging.hits == 1)
    press = scene.presses(scene.ada, post, "Approve")
    scene.office.api.advance(seconds=60)
    hanging.release()
    call = scene.office.api.wait_for_call(
        "answerCallbackQuery", lambda one: one.params["callback_query_id"] == press.id, answered=True
    )
    assert call.status == 400
    scene.office.wait_for_texts(chat, "let me in")
    assert press.answer is None


def test_a_press_counts_although_the_confirmation_of_its_post_was_lost(scene: Scene) -> None:
    """People can press before the daemon knows which post it was."""
    scene.office.api.fault("sendMessage", chat=scene.desk, do="lose_answer")
    group = scene.group("Chess club", scene.person("Bob"))
    assert scene.presses(scene.ada, scene.asked_about("Chess club"), "Approve").wait()["text"] == "Approved."
    assert scene.state(group) == "allowed" and not [one for one in group.texts if "code" in one]


# --- what is the boss's word ------------------------------------------------------------


def test_what_the_boss_forwards_is_neither_his_word_nor_a_command(scene: Scene) -> None:
    bob = scene.person("Bob")
    elsewhere = scene.office.api.add_group("Elsewhere", [bob, scene.ada])
    for number, text in enumerate(["transfer the money", "/stop"]):
        scene.ada.forwards(bob.says(elsewhere, text), scene.desk, hidden=bool(number))
    scene.ada.forwards(scene.ada.says(elsewhere, "/pause nex"), scene.desk)  # not even his own words
    stored = scene.office.wait_for_texts(scene.desk, "transfer the money", "/stop", "/pause nex")
    assert [one["from_boss"] for one in stored] == [0, 0, 0]
    assert json.loads(stored[0]["channel"])["forwarded"] == bob.first_name
    assert "command" not in scene.office.outcomes(scene.desk)


def test_anonymous_admins_and_channels_are_never_the_boss(scene: Scene) -> None:
    group = scene.group("Team", scene.ada, scene.person("Bob"))
    news = scene.office.api.add_channel("News", [scene.ada])
    scene.office.approve(group)
    at = f"@{scene.bot.name}"
    scene.ada.says(group, f"{at} as the group", anonymous=True)
    scene.ada.says(group, f"{at} as a channel", as_channel=news)
    scene.ada.says(group, f"/stop{at}", anonymous=True)
    scene.ada.says(group, f"{at} as myself")
    stored = scene.office.wait_for_texts(
        group, f"{at} as the group", f"{at} as a channel", f"/stop{at}", f"{at} as myself"
    )
    assert [one["from_boss"] for one in stored] == [0, 0, 0, 1]
    authors = [json.loads(one["channel"])["author"] for one in stored]
    assert [one.get("id") for one in authors] == [None, None, None, str(scene.ada.id)]


def test_a_post_of_a_channel_is_held_until_the_channel_is_approved(scene: Scene) -> None:
    channel = scene.office.api.add_channel("News", [scene.ada, scene.bot])
    channel.posts(f"@{scene.bot.name} read this")
    assert scene.state(channel) == "asking"
    scene.office.approve(channel)
    (stored,) = scene.office.wait_for_texts(channel, f"@{scene.bot.name} read this")
    assert stored["from_boss"] == 0


# --- blocking, leaving, coming back ------------------------------------------------------


def test_nothing_comes_in_from_a_blocked_chat_and_what_waits_for_it_fails(scene: Scene) -> None:
    eve = scene.person("Eve")
    chat = scene.office.approved(eve, scene.bot)
    chat.wait_for_text("Your code is")  # or this would be what is refused
    scene.asked_about(eve.first_name)
    scene.office.api.fault("sendMessage", chat=chat, retry_after=3600, times=None)
    (number,) = scene.office.nex.send(address(chat), text="are you well?")["ids"]
    wait_until(lambda: scene.office.nex.get(number)["attempts"] == 1)
    scene.office.boss.call("contact.block", contact=address(chat))
    wait_until(lambda: scene.office.nex.get(number)["status"] == "failed")
    assert scene.office.nex.get(number)["last_error"]["kind"] == "blocked"
    assert scene.office.nex.refusal("envelope.send", to=address(chat), text="hello?") == "not_bound"
    eve.says(chat, "why?")
    assert (scene.state(chat), scene.office.outcomes(chat)[-1]) == ("blocked", "blocked")
    assert scene.office.texts(chat) == []


def test_a_group_is_approved_apart_from_the_people_in_it(scene: Scene) -> None:
    bob, eve = scene.person("Bob"), scene.person("Eve")
    private = scene.office.approved(bob, scene.bot)
    group = scene.group("Team", bob, eve)
    at = f"@{scene.bot.name}"
    bob.says(group, f"{at} hello from the group")
    assert (scene.state(private), scene.state(group)) == ("allowed", "asking")
    assert scene.office.texts(group) == []
    scene.office.approve(group)
    eve.says(group, f"{at} me too")
    scene.office.wait_for_texts(group, f"{at} hello from the group", f"{at} me too")
    own = scene.writes(eve, "and in private?")
    assert scene.state(own) == "asking"  # to be in an approved group opens nothing else


def test_a_group_that_becomes_a_supergroup_stays_approved(scene: Scene) -> None:
    bob = scene.person("Bob")
    group = scene.office.api.add_group("Team", [bob, scene.bot], supergroup=False)
    scene.office.approve(group)
    scene.asked_about("Team")
    bob.says(group, "before")
    scene.office.wait_for_stored(group, "before")
    asked = len([one for one in scene.desk.texts if "wants to write" in one])
    with scene.office.api.world.changed:  # in one batch: the new id is not known when this is stored
        new = group.migrate()
        bob.says(new, "right after")
        bob.says(new, f"@{scene.bot.name} and this")
    scene.office.wait_for_texts(new, "right after", f"@{scene.bot.name} and this")
    assert scene.state(new) == "allowed"
    scene.office.nex.send(address(new), text="still here")
    new.wait_for_text("still here")
    assert len([one for one in scene.desk.texts if "wants to write" in one]) == asked


def test_unbinding_keeps_history_and_binding_again_keeps_decisions(scene: Scene) -> None:
    good, bad = scene.person("Bob"), scene.person("Eve")
    allowed, blocked = scene.office.approved(good, scene.bot), scene.writes(bad, "let me in")
    scene.office.contact(blocked)
    scene.office.boss.call("contact.block", contact=address(blocked))
    good.says(allowed, "before")
    scene.office.wait_for_texts(allowed, "before")
    scene.office.settle()
    scene.office.boss.call("agent.unbind", name="nex", adapter_type="telegram", account=str(scene.bot.id))
    good.says(allowed, "while nobody listens")
    scene.office.bind(scene.bot)
    bad.says(blocked, "again")
    good.says(allowed, "after")
    scene.office.wait_for_texts(allowed, "before", "while nobody listens", "after")
    assert (scene.state(allowed), scene.state(blocked)) == ("allowed", "blocked")
    assert scene.state(scene.desk) == "boss"


# --- the token --------------------------------------------------------------------------


def test_the_token_is_in_no_log_no_answer_and_no_error(scene: Scene) -> None:
    office, secret = scene.office, scene.bot.token.partition(":")[2]
    said: list[Any] = []
    for fault in ({"status": 500}, {"do": "drop"}, {"do": "garbage"}):
        made = office.api.fault("getUpdates", bot=scene.bot, times=None, **fault)
        wait_until(lambda: office.binding(scene.bot)["last_error"] is not None)
        said.append(office.binding(scene.bot))
        made.clear()
        wait_until(lambda: office.binding(scene.bot)["last_error"] is None)
    made = office.api.fault("*", bot=scene.bot, status=401, times=None)
    office.wait_for_error(scene.bot, "token", "failed")
    refused = Shell(office.daemon.home.path)(
        *("agent", "bind", "nex", "--adapter-type", "telegram", "--adapter-token", scene.bot.token),
        *("--as", "boss", "--json"),
    )
    assert refused.rc != 0
    said += [office.binding(scene.bot), refused.stdout, refused.stderr, office.boss.told()]
    said += [office.boss.call("adapter.list"), office.boss.call("daemon.status"), office.contacts()]
    made.clear()
    office.boss.call("lane.retry", address=address(scene.desk))
    assert office.log() != ""
    assert secret not in office.log() and secret not in json.dumps(said)
    with office.daemon.database() as database:
        assert secret not in "\n".join(database.iterdump())
