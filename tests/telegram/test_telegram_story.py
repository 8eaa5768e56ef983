"""Stories in Telegram: two bots, two agents, topics, a group, a stranger, edits, a handoff."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from hiboss.testing.bot_api.chats import Chat, Topic
from hiboss.testing.bot_api.messages import Message
from hiboss.testing.bot_api.people import Person
from tests.support.parties import Party
from tests.support.python_agents import PythonAgent, wait_until_idle
from tests.support.telegram_bots import TelegramDaemon, address, answer_to, own_topic, telegram_daemon
from tests.support.waits import wait_until

# It says what it heard last; told to wait for a file, it does so first.
LISTENER = """
if TEXTS[-1].startswith("wait for "):
    wait_for(TEXTS[-1].split()[-1])
print(f"I heard: {TEXTS[-1]}")
"""
_gates = itertools.count(1)


class Story:
    """The office of the story, and Ada, who is the boss."""

    def __init__(self, office: TelegramDaemon) -> None:
        self.office = office
        self.kai = office.team.hire(LISTENER, "kai")
        self.mia = office.team.hire(LISTENER, "mia")
        self.deskbot = office.bound_bot("deskbot", "kai", topics=True, topic=True)
        office.bind(self.deskbot, "mia", topic=True)
        self.teambot = office.bound_bot("teambot", "kai", privacy=False)
        self.ada = office.api.add_person("Ada", username="ada")
        self.desk = office.pair(self.ada, self.deskbot)

    def person(self, name: str) -> Person:
        return self.office.api.add_person(name, username=name.lower())

    def topic_of(self, agent: PythonAgent) -> Topic:
        return own_topic(self.office, self.desk, agent)

    def approves(self, words: str) -> Message:
        """Let Ada press Approve under the notice with these words, as soon as she sees it; return the notice."""

        def asks(one: Message) -> bool:
            return words in one.text and bool(one.buttons)

        notice = next(filter(asks, self.desk.wait_for(lambda found: any(map(asks, found)))))
        (data,) = [one.data for one in notice.buttons if one.text == "Approve"]
        assert data is not None and self.ada.presses(notice, data).wait()["text"] == "Approved."
        return notice

    def keeps_busy(self, agent: PythonAgent) -> tuple[Message, Path]:
        """Give an agent, in its topic, a turn that ends when the file is there."""
        gate = self.office.team.place(f"gate-{next(_gates)}")
        before = len(agent.turns())
        asked = self.ada.says(self.desk, f"wait for {gate.name}", topic=self.topic_of(agent))
        wait_until(lambda: len(agent.turns()) == before + 1)
        return asked, gate


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    with telegram_daemon(tmp_path_factory.mktemp("story")) as office:
        yield Story(office)


def test_each_agent_has_a_topic_of_its_own_where_the_boss_talks_with_it(story: Story) -> None:
    for agent in (story.mia, story.kai):
        topic = story.topic_of(agent)
        asked = story.ada.says(story.desk, f"good morning, {agent.name}", topic=topic)
        answer = answer_to(story.desk, asked)
        assert answer.topic == topic.id
        assert answer.text == f"{agent.name}:\nI heard: good morning, {agent.name}"
        assert answer.reply_to is asked
        assert f"from: {address(story.desk, topic.id)}\n" in agent.turns()[-1]
        assert "from-name: Ada (@ada) [boss]\n" in agent.turns()[-1]
    made = [call.params["name"] for call in story.office.api.calls_of("createForumTopic")]
    assert sorted(made) == ["kai", "mia"]


def test_in_a_group_a_mention_starts_a_turn_and_the_rest_is_around_it(story: Story) -> None:
    bob, eve = story.person("Bob"), story.person("Eva")
    team = story.office.api.add_group("Lunch", [bob, eve, story.teambot])
    story.approves("Lunch")
    wait_until(lambda: story.office.contact(team)["state"] == "allowed")
    before = len(story.kai.turns())
    bob.says(team, "shall we have soup?")
    eve.says(team, "rather noodles")
    asked = bob.says(team, "@teambot what do you think?")
    answer = answer_to(team, asked)
    assert (answer.text, answer.reply_to) == ("I heard: @teambot what do you think?", asked)
    (turn,) = story.kai.turns()[before:]
    around, _, question = turn.partition("\nenvelope-id: ")
    assert "around: 2\n" in around and 'group: "Lunch"\n' in around
    assert around.index("> shall we have soup?") < around.index("> rather noodles")
    assert "from-name: Eva (@eva)\n" in around and "soup" not in question
    # What was shown once is not shown again.
    answer_to(team, eve.says(team, "@teambot and now?"))
    assert "around:" not in story.kai.turns()[-1]


def test_an_edit_before_the_turn_changes_what_the_agent_is_shown(story: Story) -> None:
    busy, gate = story.keeps_busy(story.mia)
    before = len(story.mia.turns())
    asked = story.ada.says(story.desk, "book a tabel", topic=story.topic_of(story.mia))
    story.office.wait_for_stored(story.desk, "book a tabel")
    story.ada.edits(asked, "book a table")
    story.office.wait_for_stored(story.desk, "book a table")
    gate.touch()
    assert answer_to(story.desk, busy, 2).text == "mia:\nI heard: book a table"
    wait_until_idle(story.office.daemon)
    (turn,) = story.mia.turns()[before:]
    assert "tabel" not in turn and "edited-at: " in turn


def test_an_edit_of_the_boss_after_the_turn_starts_a_new_one(story: Story) -> None:
    asked = story.ada.says(story.desk, "on monday", topic=story.topic_of(story.mia))
    assert answer_to(story.desk, asked).text.endswith("on monday")
    number = story.office.wait_for_stored(story.desk, "on monday")["id"]
    story.ada.edits(asked)  # a preview was added, for example: nothing that can be read has changed
    story.ada.edits(asked, "on tuesday")
    answer = answer_to(story.desk, asked, 2)
    assert (answer.text, answer.topic) == ("mia:\nI heard: on tuesday", asked.topic)
    assert f'note: "a new wording of m{number}"\n' in story.mia.turns()[-1]
    story.office.settle()
    wait_until_idle(story.office.daemon)
    assert sum("on monday" in one or "on tuesday" in one for one in story.mia.turns()) == 2


# --- a person talks with an agent, with Ann, with the boss, and with the agent again ---


ECHO = 'print("nex: " + [one for one in TEXTS if "onversation" not in one or "This" in one][-1])'


def posted(chat: Chat, text: str) -> Message:
    """Wait for a post with this text, and return it."""
    chat.wait_for_text(text)
    return [one for one in chat.messages if text in one.text][-1]


class Talk:
    """Bob in Telegram, the bot of an agent, the boss on his phone, and Ann, who has a box."""

    def __init__(self, office: TelegramDaemon) -> None:
        self.office = office
        self.nex = office.team.hire(ECHO, "helper")
        self.bot = office.bound_bot("helperbot", self.nex.name)
        self.ada, self.bob = office.api.add_person("Ada"), office.api.add_person("Bob")
        self.desk, self.chat = office.pair(self.ada, self.bot), office.approved(self.bob, self.bot)
        self.ann = Party(office.daemon, "user:ann", office.boss.call("user.register", name="ann")["token"])
        self.bob.says(self.chat, "first")
        posted(self.chat, "nex: first")
        [row] = office.rows("SELECT conversation FROM messages WHERE text = 'nex: first'")
        self.conversation = row["conversation"]

    def hand(self, to: str) -> None:
        """Hand the conversation over, and wait for the summary of the agent."""
        event = {"event": "stream.handoff", "conversation": self.conversation, "to": to}
        assert self.office.boss.call("control.send", **event)["outcome"] == "applied"
        wait_until_idle(self.office.daemon)

    def of_ann(self, text: str) -> str:
        """Wait until Ann has got a text; return the id of the envelope."""
        wait_until(lambda: any(one["text"] == text for one in self.ann.list()))
        return str(next(one["id"] for one in self.ann.list() if one["text"] == text))

    def said(self) -> list[tuple[str, str]]:
        rows = self.office.rows(
            """
            SELECT sender, text FROM messages WHERE conversation = ? AND type <> 'event'
              AND sender <> 'agent:system' ORDER BY seq
            """,
            self.conversation,
        )
        return [(one["sender"], one["text"]) for one in rows]


def test_one_chat_is_answered_by_ann_by_the_boss_on_his_phone_and_by_the_agent_again(
    office: TelegramDaemon,
) -> None:
    talk = Talk(office)
    bob, chat, ann, nex = talk.bob, talk.chat, talk.ann, talk.nex

    # Ann: her box, and her replies by the same bot in the same chat.
    talk.hand(ann.address)
    turns = len(nex.turns())
    bob.says(chat, "second")
    ann.send(text="ann: hello Bob", reply_to=talk.of_ann("second"))
    hello = posted(chat, "ann: hello Bob")
    assert hello.sender is talk.bot
    ann.send(address(chat), text="ann: one more thing")
    posted(chat, "ann: one more thing")
    bob.says(chat, "third", reply_to=hello)
    ann.call("envelope.read", ids=[talk.of_ann("third")])  # what she has not read, the agent would get again

    # The boss: on his phone, and from there.
    talk.hand("user:boss")
    bob.says(chat, "fourth")
    talk.ada.says(talk.desk, "the boss himself", reply_to=posted(talk.desk, "fourth"))
    posted(chat, "the boss himself")
    assert len(nex.turns()) == turns
    talk.ada.says(talk.desk, "something for the agent")
    posted(talk.desk, "nex: something for the agent")

    # The agent again: it is shown what was said.
    talk.hand(nex.address)
    bob.says(chat, "fifth")
    posted(chat, "nex: fifth")
    meanwhile = [
        (address(chat), "second"),
        ("user:ann", "ann: hello Bob"),
        ("user:ann", "ann: one more thing"),
        (address(chat), "third"),
        (address(chat), "fourth"),
        ("user:boss", "the boss himself"),
    ]
    assert all(f"> {text}\n" in nex.turns()[-1] for _, text in meanwhile)
    assert talk.said()[-8:] == [*meanwhile, (address(chat), "fifth"), (nex.address, "nex: fifth")]
    assert not any("onversation" in one.text for one in chat.messages)


def test_a_post_of_ann_is_edited_deleted_and_reacted_to_like_any_other(office: TelegramDaemon) -> None:
    bot = office.bound_bot("quietbot", office.team.hire('print("NO_REPLY")', "quiet").name)
    eve = office.api.add_person("Eve")
    chat = office.approved(eve, bot)
    bea = Party(office.daemon, "user:bea", office.boss.call("user.register", name="bea")["token"])
    eve.says(chat, "are you there?")
    wait_until(lambda: office.rows("SELECT 1 FROM messages WHERE text = 'are you there?'"))
    number = office.rows("SELECT conversation FROM messages WHERE text = 'are you there?'")[0]["conversation"]
    office.boss.call("control.send", event="stream.handoff", conversation=number, to=bea.address)
    sent = bea.send(address(chat), text="bea: yess")
    post = posted(chat, "bea: yess")
    bea.call("message.edit", id=sent["message"], text="bea: yes")
    chat.wait_for(lambda found: any(one.text == "bea: yes" for one in found))
    eve.reacts(post, "👍")
    wait_until(lambda: bea.get(sent["ids"][0])["reactions"])
    bea.call("message.delete", id=sent["message"])
    chat.wait_for(lambda found: all("bea:" not in one.text for one in found))
