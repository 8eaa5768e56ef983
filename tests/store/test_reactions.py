"""Reactions: what people have on a message, and what the agent that wrote it is shown of them."""

from __future__ import annotations

from typing import Any

import pytest

from hiboss.core.contracts.inbound import Author
from hiboss.core.events import MessageReacted
from hiboss.store import posts, reactions
from tests.store.chat_scene import HIS, NEX, PRIVATE, Scene

BOB, ADA = PRIVATE["author"], HIS["author"]
CARA = Author(id="9", name="Cara")


class Answered:
    """Bob has asked nex, who answered in a run: m2, on the platform p1."""

    def __init__(self, scene: Scene) -> None:
        self.chat = scene
        self.message = self.answer("the build is green")

    def answer(self, text: str, **asked: Any) -> int:
        self.chat.comes_in(**{**PRIVATE, "text": "well?", "message": f"q-{text}", **asked})
        message = self.chat.complete(self.chat.begin(), text)
        assert message is not None
        [envelope] = self.chat.execute("SELECT id FROM envelope WHERE message = ?", message)
        self.chat.write(lambda tx: posts.note_post(tx, envelope["id"], 0, text, [f"p-{text}"], self.chat.now))
        return message

    def react(self, text: str = "the build is green", author: Author = BOB, **facts: Any) -> str:
        where = {"chat": "7", "author": author, "kind": "reaction", "message": f"p-{text}"}
        self.chat.comes_in(**{**where, **facts})
        return self.chat.outcome()

    def on(self, message: int | None = None) -> list[tuple[str, str | None, bool]]:
        number = message or self.message
        found = reactions.of_messages(self.chat.connection, [number]).get(number, [])
        return [(one["emoji"], one["name"], one["from_boss"]) for one in found]


@pytest.fixture
def answered(scene: Scene) -> Answered:
    return Answered(scene)


# --- what people have on a message -----------------------------------------------------


def test_a_reaction_is_stored_once_for_each_person_and_starts_no_turn(answered: Answered) -> None:
    assert answered.react(emoji="👍") == "reacted"
    assert answered.react(emoji="👍") == "ignored"
    assert answered.react(emoji="👍", author=CARA) == "reacted"
    assert answered.on() == [("👍", "Bob", False), ("👍", "Cara", False)] and answered.chat.begins() is None


def test_one_that_is_taken_back_is_gone(answered: Answered) -> None:
    answered.react(emoji="👍")
    answered.react(emoji="🎉")
    assert answered.react(emoji="👍", removed=True) == "reacted"
    assert answered.react(emoji="👍", removed=True) == "ignored" and answered.on() == [("🎉", "Bob", False)]


def test_all_that_a_person_has_now_replace_those_of_before_and_each_change_is_a_fact(
    answered: Answered,
) -> None:
    answered.react(emoji="👀", author=CARA)
    answered.react(emojis=("👍", "🎉"))
    answered.chat.facts()
    assert answered.react(emojis=["🎉", "❤", "❤"]) == "reacted"
    told = [one for one in answered.chat.facts() if isinstance(one, MessageReacted)]
    assert [(one.emoji, one.removed) for one in told] == [("👍", True), ("❤", False)]
    assert sorted(answered.on()) == sorted([("👀", "Cara", False), ("🎉", "Bob", False), ("❤", "Bob", False)])
    assert answered.react(emojis=["❤", "🎉"]) == "ignored"
    answered.react(emojis=())
    assert answered.on() == [("👀", "Cara", False)]


def test_a_reaction_of_the_boss_is_marked(answered: Answered) -> None:
    answered.react(emoji="👍", author=ADA)
    assert answered.on() == [("👍", "Ada", True)]


def test_a_person_without_an_id_is_known_by_the_name(answered: Answered) -> None:
    for author in (Author(name="Dan"), Author(name="Eve"), Author(name="Dan")):
        answered.react(emoji="👍", author=author)
    assert answered.on() == [("👍", "Dan", False), ("👍", "Eve", False)]


def test_a_channel_named_like_the_boss_s_id_does_not_replace_his_reaction(answered: Answered) -> None:
    assert ADA.id is not None
    answered.react(emojis=("👍",), author=ADA)
    answered.react(emojis=("👎",), author=Author(name=ADA.id))
    assert sorted(answered.on()) == sorted([("👍", "Ada", True), ("👎", ADA.id, False)])
    answered.react(emojis=(), author=Author(name=ADA.id))
    assert answered.on() == [("👍", "Ada", True)]


def test_a_reaction_to_an_unknown_message_is_ignored(answered: Answered) -> None:
    assert answered.react("no such post", emoji="👍") == answered.react(emoji=None) == "ignored"
    assert answered.chat.execute("SELECT * FROM reaction") == []


# --- in turns --------------------------------------------------------------------------


def asks(scene: Scene, **facts: Any) -> None:
    scene.comes_in(**{**PRIVATE, "text": "and now?", **facts})


def test_the_next_turn_in_the_conversation_shows_new_ones_with_a_quote(
    scene: Scene, answered: Answered
) -> None:
    answered.react(emoji="👍", author=ADA)
    answered.react(emojis=["🎉", "[boss]"])
    asks(scene)
    shown = scene.preview()
    turn = scene.begin()
    assert scene.shown(turn) == shown
    quote = "the build is green"
    assert scene.read(turn).reactions == [
        ((f"m{answered.message}", "[boss]", "Bob", "bob", None), quote),
        ((f"m{answered.message}", "🎉", "Bob", "bob", None), quote),
        ((f"m{answered.message}", "👍", "Ada", "ada", "boss"), quote),
    ]


def test_those_that_a_completed_turn_has_shown_are_not_shown_again(scene: Scene, answered: Answered) -> None:
    answered.react(emoji="👍")
    asks(scene)
    turn = scene.begin()
    answered.react(emoji="🎉")  # too late for this one
    scene.complete(turn)
    answered.react(emojis=["👍", "🎉"])
    asks(scene)
    turn = scene.begin()
    assert [one[0][1] for one in scene.read(turn).reactions] == ["🎉"]
    scene.complete(turn)
    asks(scene)
    assert "reactions:" not in scene.preview()


def test_a_failed_and_a_crashed_run_show_them_again(scene: Scene, answered: Answered) -> None:
    answered.react(emoji="👍")
    asks(scene)
    scene.fail(scene.begin())
    assert len(scene.read(scene.begin()).reactions) == 1
    scene.crash()
    turn = scene.begin()
    assert len(scene.read(turn).reactions) == 1
    scene.complete(turn)
    assert scene.execute("SELECT shown FROM reaction") == [{"shown": 1}]


def test_one_taken_back_before_the_turn_or_while_it_begins_is_not_shown(
    scene: Scene, answered: Answered
) -> None:
    answered.react(emoji="👍")
    answered.react(emoji="👍", removed=True)
    answered.react(emoji="🎉")
    asks(scene)
    turn = scene.begin()
    answered.react(emoji="🎉", removed=True)
    assert "reactions:" not in scene.shown(turn)
    scene.complete(turn)
    answered.react(emoji="🎉")  # and given again: it is new
    asks(scene)
    assert [one[0][1] for one in scene.read(scene.begin()).reactions] == ["🎉"]


def test_those_of_another_conversation_or_to_what_people_wrote_are_not_shown(
    scene: Scene, answered: Answered
) -> None:
    scene.comes_in(**PRIVATE, text="a question", message="q1")
    scene.complete(scene.begin())
    assert answered.react(message="q1", emoji="👍") == "reacted"
    answered.react(emoji="🎉")
    scene.comes_in(chat="8", author=CARA, text="from somebody else")
    turn = scene.begin()
    assert scene.read(turn).reactions == []
    scene.complete(turn)
    asks(scene)
    assert [one[0][1] for one in scene.read(scene.begin()).reactions] == ["🎉"]


def test_at_most_twenty_are_shown_and_the_others_counted_and_shown_later(
    scene: Scene, answered: Answered
) -> None:
    for number in range(25):
        answered.react(emoji="👍", author=Author(id=f"p{number}", name=f"P{number}"))
    asks(scene)
    turn = scene.begin()
    read = scene.read(turn)
    assert (len(read.reactions), read.more_reactions) == (20, 5)
    scene.complete(turn)
    asks(scene)
    read = scene.read(scene.begin())
    assert (len(read.reactions), read.more_reactions) == (5, 0)


def test_a_list_names_at_most_a_hundred_of_one_message(scene: Scene, answered: Answered) -> None:
    for number in range(reactions.LISTED + 1):
        answered.react(emoji="👍", author=Author(id=f"p{number}", name=f"P{number}"))
    assert len(answered.on()) == reactions.LISTED
    assert reactions.of_messages(scene.connection, []) == {}
    assert scene.execute("SELECT DISTINCT agent FROM reaction") == [{"agent": NEX}]
