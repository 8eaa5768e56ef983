"""Who the boss is in Telegram: by a code that he sends, or by his id; and who is not, whatever they send."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from hiboss.testing.bot_api.bots import Bot
from hiboss.testing.bot_api.chats import Chat
from hiboss.testing.bot_api.people import Person
from tests.support.telegram_bots import TelegramDaemon, address, answer_to

_numbers = itertools.count(1)


class Scene(NamedTuple):
    """A bot that knows nobody, and two people who write to it."""

    office: TelegramDaemon
    bot: Bot
    ada: Person
    eve: Person

    def chat(self, person: Person) -> Chat:
        return self.office.api.private_chat(person, self.bot)

    def says(self, person: Person, text: str) -> Chat:
        chat = self.chat(person)
        person.says(chat, text)
        return chat

    def state(self, chat: Chat) -> str:
        """Return what a chat is, when all that came in is stored."""
        self.office.settle()
        return str(self.office.contact(chat)["state"])

    def is_of_boss(self, chat: Chat, text: str) -> bool:
        """Return whether the words of a chat came in as those of the boss."""
        message = self.office.wait_for_stored(chat, text)
        (sender,) = self.office.rows("SELECT kind, name FROM address WHERE id = ?", message["sender"])
        boss = sender == {"kind": "user", "name": "boss"}
        assert boss == bool(message["from_boss"])
        return boss

    def code(self) -> str:
        return str(self.office.boss.call("boss.pair")["code"])

    def is_boss(self, person: Person | None) -> None:
        self.office.boss.call("boss.set", ids={"telegram": str(person.id) if person else ""})


@pytest.fixture
def scene(office: TelegramDaemon) -> Iterator[Scene]:
    number = next(_numbers)
    bot = office.bound_bot(f"bot{number}")
    found = Scene(office, bot, office.api.add_person(f"Ada{number}"), office.api.add_person(f"Eve{number}"))
    found.is_boss(None)
    yield found
    office.boss.call("agent.unbind", name="nex", adapter_type="telegram", account=str(bot.id))


def test_whoever_sends_the_code_in_a_private_chat_is_the_boss(scene: Scene) -> None:
    chat = scene.says(scene.ada, scene.code().lower())
    chat.wait_for_text("This chat is yours now")
    scene.says(scene.ada, "it is me")
    assert scene.is_of_boss(chat, "it is me")
    assert scene.office.boss.call("boss.get")["ids"] == {"telegram": str(scene.ada.id)}
    assert scene.office.texts(chat) == ["it is me"]  # the code went to no agent


def test_a_wrong_code_is_what_a_stranger_writes(scene: Scene) -> None:
    code = scene.code()
    chat = scene.says(scene.eve, code[:-1] + ("A" if code[-1] != "A" else "B"))
    assert (scene.state(chat), scene.office.outcomes(chat)) == ("asking", ["held"])
    assert scene.office.boss.call("boss.get")["ids"] == {}


def test_a_code_that_is_an_hour_old_does_not_count(scene: Scene) -> None:
    code = scene.code()
    with scene.office.daemon.database() as database:
        database.execute(
            "UPDATE config SET value = json_set(value, '$.until', json_extract(value, '$.until') - 3600001) "
            "WHERE key = 'boss_pairing'"
        )
        database.commit()
    assert scene.state(scene.says(scene.ada, code)) == "asking"


def test_a_code_counts_once(scene: Scene) -> None:
    code = scene.code()
    assert scene.state(scene.says(scene.ada, code)) == "boss"
    assert scene.state(scene.says(scene.eve, code)) == "asking"
    assert scene.state(scene.chat(scene.ada)) == "boss"


def test_of_two_codes_only_the_later_one_counts(scene: Scene) -> None:
    first, second = scene.code(), scene.code()
    assert scene.state(scene.says(scene.eve, first)) == "asking"
    assert scene.state(scene.says(scene.ada, second)) == "boss"


def test_a_code_that_was_forwarded_does_not_count(scene: Scene) -> None:
    elsewhere = scene.office.api.add_group("Elsewhere", [scene.ada, scene.eve])
    sent = scene.ada.says(elsewhere, scene.code())
    chat = scene.chat(scene.eve)
    scene.eve.forwards(sent, chat)
    assert scene.state(chat) == "asking"


def test_a_code_in_a_group_does_not_count_for_anybody(scene: Scene) -> None:
    group = scene.office.api.add_group("Team", [scene.ada, scene.eve, scene.bot])
    code = scene.code()
    scene.ada.says(group, f"@{scene.bot.name} {code}")
    scene.ada.says(group, f"/start@{scene.bot.name} {code}")
    assert (scene.state(group), scene.office.boss.call("boss.get")["ids"]) == ("asking", {})
    assert scene.state(scene.says(scene.ada, code)) == "asking"  # others have read it: it is over
    assert scene.state(scene.says(scene.ada, scene.code())) == "boss"


def test_an_id_that_is_set_before_he_writes_makes_his_first_words_his(scene: Scene) -> None:
    scene.is_boss(scene.ada)
    assert scene.is_of_boss(scene.says(scene.ada, "good morning"), "good morning")


def test_an_id_that_is_set_later_lets_in_what_was_held_as_his_words(scene: Scene) -> None:
    chat = scene.says(scene.ada, "good morning")
    scene.says(scene.ada, "anybody there?")
    assert scene.state(chat) == "asking"
    scene.is_boss(scene.ada)
    assert scene.is_of_boss(chat, "good morning")
    scene.office.wait_for_texts(chat, "good morning", "anybody there?")
    assert scene.state(chat) == "boss"


def test_a_wrong_id_is_mended_by_the_right_one(scene: Scene) -> None:
    scene.is_boss(scene.eve)
    wrong = scene.says(scene.eve, "I am the boss")
    assert scene.is_of_boss(wrong, "I am the boss")
    scene.is_boss(scene.ada)
    right = scene.says(scene.ada, "no, I am")
    assert scene.is_of_boss(right, "no, I am")
    scene.says(scene.eve, "let me in again")
    assert (scene.state(wrong), scene.office.texts(wrong)) == ("asking", ["I am the boss"])
    stop = scene.eve.says(wrong, "/stop")
    scene.office.settle()
    assert scene.office.outcomes(wrong)[-1] == "held", stop
    assert scene.office.boss.call("boss.get")["reach"] == address(right)


def test_two_bots_have_one_boss_and_each_his_own_chat(scene: Scene) -> None:
    second = scene.office.bound_bot(f"second{scene.bot.id}")
    first_chat = scene.office.pair(scene.ada, scene.bot)
    second_chat = scene.office.api.private_chat(scene.ada, second)
    answer = answer_to(second_chat, scene.ada.says(second_chat, "/status"))
    assert answer.sender is second and "nex" in answer.text
    assert answer_to(first_chat, scene.ada.says(first_chat, "/status")).sender is scene.bot
    known = {one["account"] for one in scene.office.contacts(state="boss")}
    assert known == {f"@{scene.bot.name}", f"@{second.name}"}
    scene.office.boss.call("agent.unbind", name="nex", adapter_type="telegram", account=str(second.id))


def test_no_agent_can_pair_or_decide_about_contacts(scene: Scene) -> None:
    chat = scene.says(scene.eve, "let me in")
    code = scene.office.contact(chat)["code"]
    nex = scene.office.nex
    assert (nex.refusal("boss.pair"), nex.refusal("contact.list")) == ("forbidden", "forbidden")
    assert {nex.refusal(f"contact.{verb}", contact=code) for verb in ("approve", "block")} == {"forbidden"}
    assert nex.refusal("contact.route", contact=address(chat), agent="nex") == "forbidden"
    assert nex.refusal("boss.set", ids={"telegram": str(scene.eve.id)}) == "forbidden"
    assert scene.state(chat) == "asking"
