"""What people see in Telegram when no answer comes: why, once, and that work begins again after a restart."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from hiboss.testing.bot_api.bots import Bot
from hiboss.testing.bot_api.chats import Chat
from hiboss.testing.bot_api.messages import Message
from tests.support.python_agents import QUIET, PythonAgent, wait_until_idle
from tests.support.telegram_bots import TelegramDaemon, telegram_daemon
from tests.support.waits import wait_until

FAILS = 'sys.stderr.write("no disk\\n"); sys.exit(3)'
OTHER_NOTICES = ("This chat is yours now", "wants to write to", "This account answers only", "Commands of")
HANGS = 'note("hangs"); time.sleep(1000)'


@pytest.fixture
def office(tmp_path: Path) -> Iterator[TelegramDaemon]:
    with telegram_daemon(tmp_path, HIBOSS_RUNS_FINISH_SECONDS="0") as running:  # those that hang do not
        yield running


class Scene:
    """Ada, who is the boss, and Bob, whom she knows; an agent with a program, and its bot."""

    def __init__(self, office: TelegramDaemon, body: str, **fields: object) -> None:
        self.office = office
        self.ada = office.api.add_person("Ada", username="ada")
        self.bob = office.api.add_person("Bob", username="bob")
        self.kai: PythonAgent = office.team.hire(body, "kai", **fields)
        self.bot: Bot = office.bound_bot("kaibot", "kai", privacy=False)
        self.his = office.pair(self.ada, self.bot)

    def group(self) -> Chat:
        group = self.office.api.add_group("Ops", [self.ada, self.bob, self.bot])
        self.office.approve(group)
        return group

    def later(self) -> None:
        """Let the time of all retries come."""
        wait_until_idle(self.office.daemon)
        runs = len(self.kai.runs())
        self.office.daemon.stop()
        with self.office.daemon.database() as database:
            database.execute("UPDATE envelope SET wait_until = 1 WHERE waits = 1")
            database.execute("UPDATE lane SET wake_at = 1, not_before = NULL WHERE state = 'waiting'")
            database.commit()
        self.office.start()
        wait_until(lambda: len(self.kai.runs()) > runs)
        wait_until_idle(self.office.daemon)

    def is_posted(self) -> bool:
        """Tell whether nothing waits to be posted."""
        return not self.office.rows(
            "SELECT id FROM envelope WHERE binding IS NOT NULL AND status = 0 AND waits IS NULL"
        )

    def posts(self, chat: Chat) -> list[Message]:
        """Return what the bot posted in a chat about what was said there."""
        wait_until_idle(self.office.daemon)
        wait_until(self.is_posted)
        own = [one for one in chat.messages if one.sender is self.bot and not one.service]
        return [one for one in own if not any(words in one.text for words in OTHER_NOTICES)]

    def texts(self, chat: Chat) -> list[str]:
        return [one.text for one in self.posts(chat)]

    def box(self) -> list[str]:
        return [one for one in self.office.boss.told() if not any(words in one for words in OTHER_NOTICES)]


def wait_for_notes(agent: PythonAgent, number: int) -> None:
    wait_until(lambda: len(agent.program.notes()) == number)


def wait_for_turns(number: int, *agents: PythonAgent) -> None:
    wait_until(lambda: {len(one.turns()) for one in agents} == {number})


# --- failures --------------------------------------------------------------------------


def test_the_boss_is_told_where_he_asked_why_nothing_comes_and_that_it_is_tried_again(
    office: TelegramDaemon,
) -> None:
    scene = Scene(office, FAILS)
    asked = scene.ada.says(scene.his, "hello")
    office.wait_for_stored(scene.his, "hello")
    (post,) = scene.posts(scene.his)
    assert "⚠️ kai failed: " in post.text and "no disk" in post.text
    assert re.search(r"; tried again in \d+ s \(r\d+\)\.$", post.text) and post.reply_to is asked
    assert scene.box() == []  # it is no mail


def test_a_message_that_fails_five_times_is_told_of_twice_and_again_after_a_retry_by_hand(
    office: TelegramDaemon,
) -> None:
    scene = Scene(office, FAILS)
    asked = scene.ada.says(scene.his, "hello")
    office.wait_for_stored(scene.his, "hello")
    scene.posts(scene.his)
    for _ in range(4):
        scene.later()
    first, last = scene.posts(scene.his)
    (number,) = office.rows(
        "SELECT e.id FROM envelope e JOIN message m ON m.id = e.message WHERE m.text = 'hello'"
    )
    assert "⚠️ kai failed: " in first.text
    assert "⚠️ kai gave up on this after 5 tries: " in last.text
    assert f"To retry: hiboss envelope retry e{number['id']}" in last.text and last.reply_to is asked
    (notice,) = scene.box()  # in the box as before, and not in the chat a second time
    assert notice.startswith(f"Not delivered: e{number['id']} to agent:kai.")
    assert len(scene.kai.turns()) == 5
    office.boss.call("envelope.retry", ids=[f"e{number['id']}"])
    wait_until(lambda: len(scene.kai.turns()) == 6)
    assert ["failed" in one for one in scene.texts(scene.his)] == [True, False, True]
    scene.kai.program.write('print("well")', office.daemon.home.socket)
    scene.later()
    assert scene.texts(scene.his)[-1].endswith("well")


def test_other_people_learn_that_they_must_wait_and_no_more(office: TelegramDaemon) -> None:
    scene = Scene(office, FAILS, display="Kai K.")
    chat = office.approved(scene.bob, scene.bot)
    asked = scene.bob.says(chat, "hello")
    office.wait_for_stored(chat, "hello")
    (post,) = scene.posts(chat)
    assert post.text == "⚠️ Kai K. could not answer yet; it will be tried again."
    assert post.reply_to is asked
    for _ in range(4):
        scene.later()
    assert (scene.texts(chat)[1:], scene.texts(scene.his)) == (["⚠️ Kai K. could not answer this."], [])


def test_a_turn_with_several_messages_of_a_group_is_told_of_once(office: TelegramDaemon) -> None:
    scene = Scene(office, FAILS)
    group = scene.group()
    office.boss.call("agent.pause", name="kai")
    scene.bob.says(group, "@kai one")
    last = scene.ada.says(group, "@kai two")
    office.wait_for_stored(group, "@kai two")
    office.boss.call("agent.resume", name="kai")
    wait_until(lambda: scene.kai.turns())
    assert [one.text for one in scene.posts(group)][:1] == ["⏸ kai is paused. It reads this later."]
    (post,) = scene.posts(group)[1:]
    assert post.text == "⚠️ kai could not answer yet; it will be tried again."  # also the boss reads it there
    assert post.reply_to is last
    scene.later()  # each alone now, and each fails again
    assert (len(scene.kai.turns()), len(scene.posts(group))) == (3, 2)


def test_who_writes_while_everything_is_stopped_is_told_at_once(office: TelegramDaemon) -> None:
    scene = Scene(office, 'print("here")', display="Kai K.")
    chat = office.approved(scene.bob, scene.bot)
    office.boss.call("agent.pause", name="kai")
    for who, where in ((scene.bob, chat), (scene.ada, scene.his)):
        who.says(where, "before")  # it still waits when everything is stopped
        office.wait_for_stored(where, "before")
    office.boss.call("breaker.pull", reason="a fire")
    for text in ("first", "second"):
        for who, where in ((scene.bob, chat), (scene.ada, scene.his)):
            who.says(where, text)
            office.wait_for_stored(where, text)
    wait_until(scene.is_posted)
    assert [one for one in scene.texts(chat) if "stopped" in one] == [
        "⏹ Kai K. is stopped. It reads this later."
    ]
    assert [one for one in scene.texts(scene.his) if "stopped" in one] == [
        'system:\n⏹ Everything is stopped ("a fire"); /go lets everybody go on. Kai K. reads this then.'
    ]
    office.boss.call("agent.resume", name="kai")
    office.boss.call("breaker.release")
    wait_until(lambda: "here" in scene.texts(chat) and "kai:\nhere" in scene.texts(scene.his))


def test_when_no_turn_can_work_each_chat_is_told_once_and_the_boss_once_in_his(
    office: TelegramDaemon,
) -> None:
    scene = Scene(office, FAILS)
    chat = office.approved(scene.bob, scene.bot)
    office.boss.call("agent.set", name="kai", settings={"command": "/does/not/exist"})
    scene.bob.says(chat, "hello")
    scene.ada.says(scene.his, "one")
    office.wait_for_stored(chat, "hello")
    office.wait_for_stored(scene.his, "one")
    wait_until(lambda: len(scene.posts(scene.his)) + len(scene.posts(chat)) >= 1)
    for _ in range(2):
        scene.later()
    scene.ada.says(scene.his, "two")
    office.wait_for_stored(scene.his, "two")
    scene.later()
    (his,) = scene.texts(scene.his)
    assert "⚠️ kai failed: " in his and "/does/not/exist" in his
    assert scene.texts(chat) == ["⚠️ kai could not answer yet; it will be tried again."]
    (notice,) = scene.box()
    assert notice.startswith("Delivery to agent:kai has failed since ")


def test_mail_of_agents_and_of_the_terminal_is_told_of_in_no_chat_as_it_was_asked_in_none(
    office: TelegramDaemon,
) -> None:
    scene = Scene(office, FAILS)
    office.boss.call("boss.set", forward="off")
    office.boss.send("agent:kai", text="from the terminal", from_="user:boss")
    office.nex.send("agent:kai", text="from an agent")
    wait_until(lambda: len(scene.kai.turns()) >= 2)
    assert scene.texts(scene.his) == []


def test_who_says_no_reply_is_quiet(office: TelegramDaemon) -> None:
    scene = Scene(office, QUIET)
    chat = office.approved(scene.bob, scene.bot)
    for person, where in ((scene.ada, scene.his), (scene.bob, chat)):
        person.says(where, "hello")
        office.wait_for_stored(where, "hello")
    wait_until(lambda: len(scene.kai.turns()) == 2)
    assert scene.texts(scene.his) == scene.texts(chat) == []


def test_a_run_that_the_boss_cancels_is_told_of_to_others_and_not_to_him(office: TelegramDaemon) -> None:
    scene = Scene(office, HANGS, busy="followup")
    chat = office.approved(scene.bob, scene.bot)
    for person, where in ((scene.ada, scene.his), (scene.bob, chat)):
        runs = len(scene.kai.runs())
        person.says(where, "hello")
        office.wait_for_stored(where, "hello")
        wait_for_notes(scene.kai, runs + 1)
        office.boss.call("run.cancel", id=scene.kai.runs()[-1]["id"])
        wait_until_idle(office.daemon)
    assert scene.texts(scene.his) == []
    assert scene.texts(chat) == ["kai was stopped before it could answer this."]


# --- restarts --------------------------------------------------------------------------

RESTARTED = "hiboss was restarted while kai worked on this; it begins again."


@pytest.mark.parametrize("how", ["kill", "stop"])
def test_after_a_restart_each_chat_with_interrupted_work_gets_one_note(
    office: TelegramDaemon, how: str
) -> None:
    scene = Scene(office, HANGS)
    mia = office.team.hire(HANGS, "mia")
    office.bind(scene.bot, "mia")
    group = scene.group()
    scene.bob.says(group, "@kai one")
    last = scene.bob.says(group, "@mia two")
    wait_until(lambda: scene.kai.program.notes() and mia.program.notes())
    end = {"kill": office.daemon.kill, "stop": office.daemon.stop}[how]
    for turns in (2, 3):
        end()
        office.start()
        wait_for_turns(turns, scene.kai, mia)
        wait_until(scene.is_posted)
    posts = [one for one in group.messages if one.sender is scene.bot and not one.service]
    assert [one.text for one in posts] == [RESTARTED.replace("kai", "kai and mia")] * 2
    assert [one.reply_to for one in posts] == [last] * 2


def test_the_boss_is_told_which_run_begins_again_and_nothing_about_one_that_has_answered(
    office: TelegramDaemon,
) -> None:
    scene = Scene(office, 'print("well")')
    scene.ada.says(scene.his, "one")
    scene.his.wait_for_text("well")
    scene.kai.program.write(HANGS, office.daemon.home.socket)
    asked = scene.ada.says(scene.his, "two")
    wait_until(lambda: scene.kai.program.notes())
    run = scene.kai.runs()[-1]["id"]
    office.daemon.kill()
    scene.kai.program.write('print("well done")', office.daemon.home.socket)
    office.start()
    scene.his.wait_for_text("well done")
    (note,) = [one for one in scene.posts(scene.his) if "restarted" in one.text]
    assert note.text == f"system:\nhiboss was restarted while kai worked on this ({run}); it begins again."
    assert note.reply_to is asked
    office.daemon.kill()
    office.start()
    office.settle()
    assert len([one for one in scene.texts(scene.his) if "restarted" in one]) == 1


def test_a_task_in_the_background_that_is_interrupted_is_told_of_where_it_was_asked_for(
    office: TelegramDaemon,
) -> None:
    scene = Scene(
        office,
        """
if "agent:background" in TURN or "dig" in TEXTS[-1] and "please" not in TEXTS[-1]:
    note("digs"); time.sleep(1000)
send("agent:background", "dig")
print("NO_REPLY")
""",
    )
    asked = scene.ada.says(scene.his, "please dig")
    wait_until(lambda: scene.kai.program.notes())
    office.daemon.kill()
    scene.kai.program.write(QUIET, office.daemon.home.socket)
    office.start()
    (note,) = scene.his.wait_for(lambda found: any("restarted" in one.text for one in found))[-1:]
    assert "hiboss was restarted while kai worked on this (r" in note.text and note.reply_to is asked


def test_what_is_given_up_after_three_crashes_has_no_note_that_it_begins_again(
    office: TelegramDaemon,
) -> None:
    scene = Scene(office, HANGS)
    chat = office.approved(scene.bob, scene.bot)
    scene.bob.says(chat, "hello")
    for number in (1, 2, 3):
        wait_for_notes(scene.kai, number)
        wait_until(scene.is_posted)  # a kill between a post and its confirmation would double the note
        office.daemon.kill()
        office.start()
    wait_until(lambda: any("crashed 3 times in a row" in one for one in scene.box()))
    assert scene.texts(chat) == [RESTARTED] * 2


@pytest.mark.parametrize(
    ("point", "notes"),
    [("runner.answered", ["restarted", "⚠️"]), ("runner.settled", ["⚠️"]), ("delivery.claimed", ["⚠️"])],
)
def test_killed_around_a_failure_the_note_comes_once(
    office: TelegramDaemon, tmp_path: Path, point: str, notes: list[str]
) -> None:
    scene = Scene(office, FAILS)
    office.daemon.stop()
    armed = tmp_path / "armed"
    office.start(HIBOSS_CRASH_AT=f"{point}@{armed}")
    armed.touch()
    scene.ada.says(scene.his, "hello")
    office.daemon.wait_for_death()
    office.start()
    wait_until(lambda: len(scene.texts(scene.his)) >= len(notes))
    texts = scene.texts(scene.his)
    assert [words in text for words, text in zip(notes, texts, strict=True)] == [True] * len(notes)
