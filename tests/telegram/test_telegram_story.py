"""A story in Telegram: two bots, two agents, topics, a group, a stranger, an album, a voice, edits, /stop.

@deskbot has topics and serves kai and mia, who have one each in the boss's private chat. @teambot serves
kai alone, reads everything in groups, and is the one that strangers find.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from hiboss.testing.bot_api.chats import Topic
from hiboss.testing.bot_api.messages import Message
from hiboss.testing.bot_api.people import Person
from tests.support.python_agents import PythonAgent, wait_until_idle
from tests.support.telegram_bots import TelegramDaemon, address, answer_to, hash_of, telegram_daemon
from tests.support.telegram_casts import own_topic
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
        assert data is not None
        assert self.ada.presses(notice, data).wait()["text"] == "Approved."
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
    directory = tmp_path_factory.mktemp("story")
    script = directory / "listen"
    script.write_text('#!/bin/sh\nprintf "the words of "; cat "$1"\n')
    script.chmod(0o700)
    with telegram_daemon(directory, HIBOSS_TELEGRAM_TRANSCRIBE_COMMAND=str(script)) as office:
        yield Story(office)


def files_in(turn: str) -> list[bytes]:
    """Return what is in the files that a turn shows, in order."""
    lines = turn.rpartition("attachments:\n")[2].splitlines()
    paths = [Path(line.rpartition(" (")[2].removesuffix(")")) for line in lines if line.startswith("- [")]
    return [one.read_bytes() for one in paths]


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


def test_an_album_is_one_message_with_all_its_files(story: Story) -> None:
    before = len(story.mia.turns())
    parts: list[bytes | tuple[str, bytes]] = [b"\xff\xd8one", b"\xff\xd8two", ("notes.txt", b"three")]
    sent = story.ada.sends_album(story.desk, parts, "from the trip", topic=story.topic_of(story.mia))
    assert answer_to(story.desk, sent[0]).text == "mia:\nI heard: from the trip"
    (turn,) = story.mia.turns()[before:]
    assert files_in(turn) == [b"\xff\xd8one", b"\xff\xd8two", b"three"]
    assert '[image] "' in turn and '[file] "notes.txt"' in turn


def test_a_voice_note_comes_as_words_with_the_recording(story: Story) -> None:
    sent = story.ada.sends_voice(story.desk, b"OggS of Ada", topic=story.topic_of(story.mia))
    assert answer_to(story.desk, sent).text == "mia:\nI heard: the words of OggS of Ada"
    assert files_in(story.mia.turns()[-1]) == [b"OggS of Ada"]
    row = story.office.wait_for_stored(story.desk, "the words of OggS of Ada")
    (file,) = json.loads(row["attachments"])
    assert file["sha256"] == hash_of(b"OggS of Ada")


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


def test_stop_ends_the_turn_that_works_for_the_topic_and_no_other(story: Story) -> None:
    wait_until_idle(story.office.daemon)
    _, others = story.keeps_busy(story.kai)
    story.keeps_busy(story.mia)
    stop = story.ada.says(story.desk, "/stop", topic=story.topic_of(story.mia))
    said = answer_to(story.desk, stop)
    assert said.topic == stop.topic
    wait_until(lambda: story.mia.runs(status="cancelled"))
    (run,) = story.mia.runs(status="cancelled")
    assert said.text == f"system:\nStopped {run['id']} of agent:mia."
    assert story.kai.runs()[-1]["status"] == "running"
    others.touch()
    wait_until_idle(story.office.daemon)
    assert story.kai.runs()[-1]["status"] == "completed"
    assert not any("/stop" in one for one in story.mia.turns() + story.kai.turns())
