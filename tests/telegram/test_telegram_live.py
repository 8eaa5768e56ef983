"""Nothing is silent: 👀, typing, drafts and live posts that become the answer, Stop, notes about a queue."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from hiboss.testing.bot_api import BotApi
from hiboss.testing.bot_api.chats import Chat
from hiboss.testing.bot_api.messages import Message
from hiboss.testing.bot_api.people import Person
from tests.support.forked_daemons import pauses
from tests.support.python_agents import PythonAgent
from tests.support.telegram_bots import GROWTH, TelegramDaemon, telegram_daemon
from tests.support.waits import wait_until

GROWS = """
print("**First** words"); sys.stdout.flush()
wait_for("{go}")
print("and the end")
"""


class Talk:
    """Ada, the boss, talks with an agent of her own bot."""

    def __init__(self, office: TelegramDaemon, name: str, body: str = GROWS, **fields: object) -> None:
        self.office = office
        self.go = office.team.place(f"{name}.go")
        self.agent: PythonAgent = office.team.hire(body.replace("{go}", f"{name}.go"), name=name, **fields)
        self.bot = office.bound_bot(f"{name}bot", name)
        self.ada: Person = office.api.add_person("Ada")
        self.chat: Chat = office.pair(self.ada, self.bot)

    def asks(self, text: str = "how far?") -> Message:
        return self.ada.says(self.chat, text)

    def goes_on(self) -> None:
        self.go.touch()

    def posts(self) -> list[Message]:
        """Return what people see of the bot, without the answers of the pairing."""
        own = [one for one in self.chat.messages if one.sender is self.bot and not one.service]
        return [one for one in own if "yours now" not in one.text]

    def texts(self) -> list[str]:
        return [one.text for one in self.posts()]

    def reactions(self, message: Message) -> list[str]:
        return message.reactions.get(self.bot.id, [])


@pytest.fixture(scope="module")
def new(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TelegramDaemon]:
    with telegram_daemon(tmp_path_factory.mktemp("new")) as running:
        yield running


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TelegramDaemon]:
    """Return one whose server knows no drafts, no Stop and no rich messages."""
    with telegram_daemon(tmp_path_factory.mktemp("old"), partial(BotApi, version="9.0")) as running:
        yield running


def test_an_answer_grows_as_a_draft_and_becomes_one_post(new: TelegramDaemon) -> None:
    talk = Talk(new, "drafter")
    asked = talk.asks()
    new.api.wait_for(lambda: talk.chat.draft is not None)
    assert talk.chat.draft is not None
    assert talk.chat.draft.text == "drafter:\nFirst words" and talk.chat.draft.can_stop
    assert talk.posts() == [] and talk.reactions(asked) == ["👀"] and "typing" in talk.chat.actions
    talk.goes_on()
    talk.chat.wait_for_text("and the end")
    (answer,) = talk.posts()
    assert answer.text == "drafter:\nFirst words\nand the end"
    assert [(one["type"], one["offset"], one["length"]) for one in answer.entities] == [("bold", 9, 5)]
    assert answer.reply_to is asked and talk.chat.draft is None


def test_where_there_are_no_drafts_it_grows_as_a_post_that_becomes_the_answer(old: TelegramDaemon) -> None:
    talk = Talk(old, "editor")
    talk.asks()
    talk.chat.wait_for_text("First words")
    (live,) = talk.posts()
    talk.goes_on()
    talk.chat.wait_for_text("and the end")
    (answer,) = talk.posts()
    assert answer is live and answer.text == "editor:\nFirst words\nand the end"
    assert answer.entities[0]["type"] == "bold"


@pytest.mark.parametrize("server", ["new", "old"])
def test_silence_leaves_nothing_but_the_eyes(server: str, request: pytest.FixtureRequest) -> None:
    office: TelegramDaemon = request.getfixturevalue(server)
    talk = Talk(office, f"quiet-{server}", 'wait_for("{go}"); print("NO_REPLY")')
    asked = talk.asks()
    office.api.wait_for(lambda: talk.reactions(asked) == ["👀"])
    talk.goes_on()
    wait_until(lambda: [run["status"] for run in talk.agent.runs()] == ["completed"])
    assert talk.texts() == []


def test_the_stop_of_a_draft_cancels_the_run(new: TelegramDaemon) -> None:
    talk = Talk(new, "stopped")
    asked = talk.asks()
    new.api.wait_for(lambda: talk.chat.draft is not None)
    talk.ada.stops_generation(talk.chat)
    new.api.wait_for(lambda: talk.reactions(asked) == ["👌"])
    talk.chat.wait_for_text("Stopped r")
    wait_until(lambda: talk.agent.runs()[-1]["status"] == "cancelled")
    assert len(talk.agent.runs()) == 1 and "stopped it in channel:telegram:" in talk.agent.runs()[-1]["error"]


def test_the_stop_of_an_answer_that_is_finished_stops_no_other(new: TelegramDaemon) -> None:
    talk = Talk(new, "finished")
    talk.goes_on()
    talk.asks("first")
    talk.chat.wait_for_text("and the end")
    (run,) = talk.agent.runs()
    talk.go.unlink()
    talk.asks("second")
    wait_until(lambda: len(talk.agent.runs()) == 2)
    for draft in (int(run["id"][1:]), 2**70, -1, 0):
        stop = {"chat": talk.chat.identity.as_json(), "draft_id": draft}
        talk.bot.updates.put("stopped_message_generation", stop)
    new.settle()
    assert talk.agent.runs()[-1]["status"] == "running"
    talk.goes_on()
    wait_until(lambda: talk.agent.runs()[-1]["status"] == "completed")


def test_whoever_asked_can_stop_the_answer_and_nobody_else_can(new: TelegramDaemon) -> None:
    talk = Talk(new, "shared")
    bob, eve = new.api.add_person("Bob"), new.api.add_person("Eve")
    chat, other = new.approved(bob, talk.bot), new.approved(eve, talk.bot)
    bob.says(chat, "for me")
    new.api.wait_for(lambda: chat.draft is not None)
    assert chat.draft is not None
    stop = {"chat": other.identity.as_json(), "draft_id": chat.draft.draft_id}
    talk.bot.updates.put("stopped_message_generation", stop)
    new.settle()
    assert talk.agent.runs()[-1]["status"] == "running"
    bob.stops_generation(chat)
    chat.wait_for_text("Stopped.")
    wait_until(lambda: talk.agent.runs()[-1]["status"] == "cancelled")
    assert not [one for one in chat.messages if "⚠️" in one.text]  # he knows why nothing comes


def test_one_429_ends_the_growth_and_the_post_becomes_the_answer(old: TelegramDaemon) -> None:
    talk = Talk(
        old,
        "limited",
        """
word = 0
while not os.path.exists(os.path.join(HERE, "{go}")):
    word += 1; print(word); sys.stdout.flush(); time.sleep(0.2)
print("done")
""",
    )
    talk.asks()
    old.api.wait_for(lambda: len(talk.posts()) == 1)
    fault = old.api.fault("editMessageText", chat=talk.chat, retry_after=1)
    old.api.wait_for(lambda: fault.hits > 0)
    edits = len(old.api.calls_of("editMessageText"))
    talk.goes_on()
    talk.chat.wait_for_text("done")
    (answer,) = talk.posts()
    assert answer.text.endswith("done")
    assert len(old.api.calls_of("editMessageText")) == edits + 1  # the one that made it the answer


def test_what_waits_for_a_run_is_noted_and_the_note_goes(new: TelegramDaemon) -> None:
    talk = Talk(new, "busy")
    talk.asks("first")
    wait_until(lambda: talk.agent.runs() != [])
    bob = new.api.add_person("Bob")
    chat = new.approved(bob, talk.bot)
    waiting = bob.says(chat, "me too")
    chat.wait_for_text("Queued behind r")
    assert talk.reactions(waiting) == []
    talk.goes_on()
    chat.wait_for_text("and the end")
    new.api.wait_for(lambda: not [one for one in chat.messages if "Queued" in one.text])
    assert talk.reactions(waiting) == ["👀"]


@pytest.mark.slow
def test_a_note_of_a_daemon_that_was_killed_goes_at_the_next_start(tmp_path: Path) -> None:
    with telegram_daemon(tmp_path) as office:
        talk = Talk(office, "killed")
        talk.asks("first")
        bob = office.api.add_person("Bob")
        chat = office.approved(bob, talk.bot)
        bob.says(chat, "me too")
        chat.wait_for_text("Queued behind r")
        wait_until(lambda: office.rows("SELECT 1 FROM live_post WHERE note AND platform_id IS NOT NULL"))
        office.daemon.kill()
        talk.goes_on()
        office.start()
        chat.wait_for_text("and the end")
        office.api.wait_for(lambda: not [one for one in chat.messages if "Queued" in one.text])


def test_live_off_shows_only_the_answer(tmp_path: Path) -> None:
    quick = pauses({"routing.live_posts.TYPING_SECONDS": 0.4})
    with telegram_daemon(tmp_path, HIBOSS_TELEGRAM_LIVE="off", **quick) as office:
        talk = Talk(office, "plain")
        talk.asks()
        office.api.wait_for(lambda: len(office.api.calls_of("sendChatAction")) >= 2)
        assert talk.chat.draft is None and talk.posts() == []
        talk.goes_on()
        talk.chat.wait_for_text("and the end")
        assert office.api.calls_of("sendMessageDraft") == []


@pytest.mark.parametrize("way", ["/stop", "Stop", "run.cancel"])
def test_what_was_stopped_does_not_begin_again_after_a_kill(tmp_path: Path, way: str) -> None:
    stubborn = """
import signal
signal.signal(signal.SIGINT, signal.SIG_IGN); signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("words"); sys.stdout.flush()
while True: time.sleep(0.05)
"""
    quick = pauses(GROWTH | {"agents.process_control.STEP_SECONDS": 0.2})
    with telegram_daemon(tmp_path, **quick) as office:
        talk = Talk(office, "stubborn", stubborn)
        talk.asks()
        office.api.wait_for(lambda: talk.chat.draft is not None)
        if way == "run.cancel":
            assert office.boss.call("run.cancel", id=talk.agent.runs()[0]["id"])["changed"]
        else:
            _ = talk.ada.says(talk.chat, way) if way == "/stop" else talk.ada.stops_generation(talk.chat)
            wait_until(lambda: office.rows("SELECT 1 FROM run WHERE cancelled_why IS NOT NULL"))
        office.daemon.kill()
        office.start()
        wait_until(lambda: [run["status"] for run in talk.agent.runs()] == ["cancelled"])
        (mail,) = office.rows(
            "SELECT e.status, e.error_kind FROM run_envelope x JOIN envelope e ON e.id = x.envelope"
        )
        assert (mail["status"], mail["error_kind"]) == (3, "cancelled")
        assert not [one for one in talk.texts() if "restarted" in one]


def test_who_writes_to_a_paused_agent_is_told_once(new: TelegramDaemon) -> None:
    talk = Talk(new, "resting")
    bob = new.api.add_person("Bob")
    chat = new.approved(bob, talk.bot)
    new.boss.call("agent.pause", name="resting", reason="lunch")
    bob.says(chat, "hello")
    assert chat.wait_for_text("⏸").text == "⏸ resting is paused. It reads this later."
    bob.says(chat, "hello?")
    talk.asks()
    assert "lunch" in talk.chat.wait_for_text("⏸").text
    new.settle()
    assert len([one for one in chat.messages if "⏸" in one.text]) == 1
    talk.goes_on()
    new.boss.call("agent.resume", name="resting")
    chat.wait_for_text("and the end")
