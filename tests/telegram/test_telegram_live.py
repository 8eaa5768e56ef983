"""Nothing is silent: 👀, typing, drafts and live posts that become the answer, tools, Stop, notes about a queue."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from hiboss.testing.bot_api import BotApi
from hiboss.testing.bot_api.chats import Chat
from hiboss.testing.bot_api.messages import Message
from hiboss.testing.bot_api.people import Person
from tests.agents.test_busy_interrupt import HOLDS_OPEN
from tests.agents.test_steering import HEAD
from tests.support.forked_daemons import pauses
from tests.support.live_providers import staged
from tests.support.parties import agent
from tests.support.python_agents import PythonAgent
from tests.support.shell_agents import Program
from tests.support.telegram_bots import GROWTH, TelegramDaemon, telegram_daemon
from tests.support.waits import wait_until

MODULES = {"HIBOSS_PROVIDERS_MODULES": "tests.support.live_providers"}
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
    with telegram_daemon(
        tmp_path_factory.mktemp("old"), partial(BotApi, version="9.0"), **MODULES
    ) as running:
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
    with telegram_daemon(tmp_path, **pauses(GROWTH | {"agents.process_control.STEP_SECONDS": 0.2})) as office:
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
    for each in (chat, talk.chat):
        each.wait_for_text("and the end")


# --- what the turn under way takes ----------------------------------------------------------------


def test_words_that_the_turn_takes_are_marked_as_seen_and_wait_for_nothing(
    office: TelegramDaemon, tmp_path: Path
) -> None:
    talk = Talk(office, "steered")
    program = Program(tmp_path)
    program.becomes(HEAD + HOLDS_OPEN)
    takes_words = {"provider": "command", "settings": {"command": program.command, "input": "open"}}
    office.boss.call("agent.set", name="steered", busy="steer", **takes_words)
    first = talk.asks("begin")
    program.begins()
    [run] = talk.agent.runs()
    office.boss.call("run.pause", id=run["id"])
    second = talk.asks("and this")
    talk.chat.wait_for_text(f"Queued behind {run['id']}")  # so long as it cannot be given to the run
    assert talk.reactions(second) == []
    office.boss.call("run.resume", id=run["id"])
    office.api.wait_for(lambda: talk.posts() == [] and talk.reactions(second) == ["👀"])
    assert [one["status"] for one in talk.agent.runs()] == ["running"]
    third = talk.asks("go on")
    talk.chat.wait_for_text("done")
    (answer,) = talk.posts()
    assert answer.text == "steered:\ndone" and answer.reply_to is first
    assert talk.reactions(first) == talk.reactions(third) == ["👀"]
    wait_until(lambda: [one["status"] for one in talk.agent.runs()] == ["completed"])
    assert len(talk.agent.runs()[0]["envelopes"]) == 3


# --- tools and thoughts of a run, and when its turn is given up -----------------------------------


@pytest.fixture(scope="module")
def drafts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TelegramDaemon]:
    with telegram_daemon(tmp_path_factory.mktemp("d"), **MODULES) as running:
        yield running


@pytest.fixture(scope="module")
def posts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TelegramDaemon]:
    """A server on which answers grow as posts."""
    with telegram_daemon(tmp_path_factory.mktemp("p"), partial(BotApi, version="9.0"), **MODULES) as running:
        yield running


def talk_with(office: TelegramDaemon, name: str, directory: Path) -> Talk:
    talk = Talk(office, name)
    office.boss.call("agent.set", name=name, provider="staged", workspace=str(directory))
    return talk


def test_a_draft_shows_what_the_agent_does_and_the_answer_does_not(
    drafts: TelegramDaemon, tmp_path: Path
) -> None:
    talk = talk_with(drafts, "doer", tmp_path)
    secret = "it was " + "x" * 5_000
    waits = [("wait", name) for name in ("one", "two", "three")]
    staged(
        tmp_path,
        ("tool", "Bash git status\n--short"),
        waits[0],
        ("tool_result", secret),
        ("delta", "All is well"),
        ("tool", "Read a_file_name.py"),
        waits[1],
        ("thinking", secret),
        waits[2],
        ("final", "All is well."),
    )

    def shows(text: str) -> None:
        drafts.api.wait_for(lambda: talk.chat.draft is not None and talk.chat.draft.text == f"doer:\n{text}")

    talk.asks()
    shows("⚙️ Bash git status --short")
    (tmp_path / "one").touch()
    shows("All is well\n\n⚙️ Read a_file_name.py")
    (tmp_path / "two").touch()
    shows("All is well\n\n💭")
    (tmp_path / "three").touch()
    talk.chat.wait_for_text("All is well.")
    assert [one.text for one in talk.posts()] == ["doer:\nAll is well."]


def test_where_there_are_no_drafts_nobody_is_notified_of_a_tool(
    posts: TelegramDaemon, tmp_path: Path
) -> None:
    talk = talk_with(posts, "poster", tmp_path)
    words = ("tool", "Bash ls"), ("wait", "one"), ("delta", "I look."), ("tool", "Bash cat"), ("wait", "two")
    staged(tmp_path, *words, ("final", "I have looked."))
    talk.asks()
    wait_until((tmp_path / "turns").exists)
    (tmp_path / "one").touch()
    talk.chat.wait_for_text("I look.\n\n⚙️ Bash cat")
    (post,) = talk.posts()
    assert post.text == "poster:\nI look.\n\n⚙️ Bash cat"
    (tmp_path / "two").touch()
    talk.chat.wait_for_text("I have looked.")
    assert [one.text for one in talk.posts()] == ["poster:\nI have looked."]  # the same post
    assert talk.posts() == [post]


def test_others_see_the_words_of_the_answer_and_nothing_of_the_tools(
    drafts: TelegramDaemon, tmp_path: Path
) -> None:
    talk = talk_with(drafts, "discreet", tmp_path)
    bob = drafts.api.add_person("Bob")
    chat = drafts.approved(bob, talk.bot)
    staged(tmp_path, ("delta", "Well"), ("tool", "Bash cat /etc/passwd"), ("wait", "go"), ("final", "Well."))
    bob.says(chat, "hello")
    drafts.api.wait_for(lambda: chat.draft is not None)
    assert chat.draft is not None and chat.draft.text == "Well"
    (tmp_path / "go").touch()
    chat.wait_for_text("Well.")


def test_a_turn_that_is_given_up_is_told_once_and_comes_again_by_hand(
    drafts: TelegramDaemon, tmp_path: Path
) -> None:
    talk = talk_with(drafts, "spender", tmp_path)
    staged(tmp_path, ("fail", "over_budget", "it used 900 of its 500 tokens", False))
    asked = talk.asks("count everything")
    talk.chat.wait_for_text("gave up on this")
    (post,) = talk.posts()
    (row,) = drafts.rows(
        "SELECT e.id FROM envelope e JOIN message m ON m.id = e.message WHERE m.text = 'count everything'"
    )
    assert '⚠️ spender gave up on this: "it used 900 of its 500 tokens"' in post.text
    assert f"To retry: hiboss envelope retry e{row['id']}" in post.text and post.reply_to is asked
    staged(tmp_path, ("final", "Counted."))
    drafts.boss.call("envelope.retry", ids=[f"e{row['id']}"])
    talk.chat.wait_for_text("Counted.")
    assert len(talk.posts()) == 2


# --- runs that are set aside while their answer grows: what was shown of it goes, and one answer comes ---


HELD = """
if "hold" in TURN and "never mind" not in TURN:
    print("Half of it"); sys.stdout.flush()
    wait_for("{go}")
print("the end of", ", ".join(TEXTS))
"""


@pytest.fixture(scope="module", params=["drafts", "posts"])
def either(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[TelegramDaemon]:
    """A server that knows drafts, and one on which answers grow as posts."""
    make = BotApi if request.param == "drafts" else partial(BotApi, version="9.0")
    with telegram_daemon(tmp_path_factory.mktemp("e"), make) as running:
        yield running


def grows(office: TelegramDaemon, talk: Talk) -> None:
    """Wait until the answer grows in the chat, as a draft or as a post."""
    office.api.wait_for(
        lambda: (
            (talk.chat.draft is not None and "Half of it" in talk.chat.draft.text)
            or any("Half of it" in text for text in talk.texts())
        )
    )


def statuses(talk: Talk) -> list[tuple[str, str | None]]:
    return [(one["status"], one["error_kind"]) for one in talk.agent.runs()]


def test_a_person_who_writes_again_gets_one_answer_to_both(either: TelegramDaemon) -> None:
    talk = Talk(either, "again", HELD, busy="interrupt")
    first = talk.asks("hold this")
    grows(either, talk)
    second = talk.asks("never mind")
    talk.chat.wait_for_text("the end of")
    wait_until(lambda: statuses(talk) == [("interrupted", "preempted"), ("completed", None)])
    either.api.wait_for(lambda: len(talk.posts()) == 1 and talk.chat.draft is None)
    (answer,) = talk.posts()
    assert answer.text == "again:\nthe end of hold this, never mind" and answer.reply_to is second
    assert talk.reactions(first) == talk.reactions(second) == ["👀"]


def test_critical_mail_takes_the_growing_answer_away_and_it_comes_later(either: TelegramDaemon) -> None:
    talk = Talk(either, "urgent", HELD)
    asked = talk.asks("hold this")
    grows(either, talk)
    agent(either.daemon).tell(talk.agent, text="fire", priority="critical")
    wait_until(lambda: len(talk.agent.turns()) == 3)
    assert ["text:\n> fire" in turn for turn in talk.agent.turns()] == [False, True, False]
    talk.goes_on()
    talk.chat.wait_for_text("the end of")
    wait_until(lambda: statuses(talk) == [("interrupted", "preempted"), *[("completed", None)] * 2])
    either.api.wait_for(lambda: len(talk.posts()) == 1 and talk.chat.draft is None)
    (answer,) = talk.posts()
    assert answer.text == "urgent:\nHalf of it\nthe end of hold this" and answer.reply_to is asked
