"""A round trip: Ada asks on her phone, an agent answers there live, and her terminal shows the same conversation.

Chapters of one story. The agent sends with the installed `hiboss` command. What is posted keeps to the rates,
which the server checks. The story is told on a new server, and its live parts once more on an old one, which
knows no drafts, no Stop and no rich messages. How long a stop takes is measured in bench/stops.py.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from time import time
from typing import NamedTuple

import pytest

from hiboss.testing.bot_api import BotApi
from hiboss.testing.bot_api.bots import Bot
from hiboss.testing.bot_api.chats import Chat
from hiboss.testing.bot_api.messages import Message
from hiboss.testing.bot_api.people import Person
from tests.support.cli import Shell, gone
from tests.support.python_agents import PythonAgent, wait_until_idle
from tests.support.talk import talking
from tests.support.telegram_bots import TelegramDaemon, address, telegram_daemon
from tests.support.waits import wait_until

pytestmark = pytest.mark.slow

# What every program has: `hiboss` runs the installed command with the token of the run, `say` writes a part
# of the answer, `step` waits for the test, and ENVELOPE is the last envelope of the turn.
HEAD = """
ENVELOPE = re.findall(r"(?m)^envelope-id: (?:e[0-9]+, )*(e[0-9]+)$", TURN)[-1]


def hiboss(*words):
    done = subprocess.run(["hiboss", *words], capture_output=True, text=True)
    note({"words": words, "status": done.returncode, "errors": done.stderr})
    return done.stdout


def say(text):
    print(text, flush=True)


def step(number):
    wait_for(f"{STORY}.{number}")


"""
# A tree of three: the program, its child, and a grandchild in a session of its own, without an environment.
# INT and TERM end none of them, and two go on writing.
STUBBORN_TREE = """
import signal

for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, signal.SIG_IGN)
if os.fork() == 0 and os.fork() == 0:
    os.setsid()
    note({"pid": os.getpid()})
    os.execve("/bin/sleep", ["sleep", "1000"], {})
note({"pid": os.getpid()})
while True:
    say("still at it")
    time.sleep(0.1)
"""


class PhoneTalk:
    """Ada talks with an agent of her own bot. The bot keeps to the rates, and the server insists on them."""

    def __init__(self, office: TelegramDaemon, name: str) -> None:
        self.office = office
        self.agent: PythonAgent = office.team.hire("", name)
        self.bot: Bot = office.bound_bot(f"{name}bot", name)
        self.ada: Person = office.api.add_person("Ada", username="ada")
        self.chat: Chat = office.pair(self.ada, self.bot)
        self.shell = Shell(office.daemon.home.path)
        self._stories = itertools.count(1)
        self._story = ""
        self.look_from_here()

    # --- the agent -----------------------------------------------------------------------

    def works_so(self, body: str) -> None:
        """Give the agent the program of its next turns, and wait until the last one is over."""
        wait_until_idle(self.office.daemon)
        self._story = f"{self.agent.name}-{next(self._stories)}"
        self.agent.program.write(f"STORY = {self._story!r}\n{HEAD}" + body, self.office.daemon.home.socket)

    def file(self, name: str) -> Path:
        """Return the path of a file beside the program."""
        return self.office.team.place(name)

    def steps(self, number: int) -> None:
        """Let the program go on behind its step of this number."""
        self.file(f"{self._story}.{number}").touch()

    def commands(self) -> list[list[str]]:
        """Return the commands that the program ran; none of them failed."""
        ran = [one for one in self.agent.program.notes() if "words" in one]
        assert [one["errors"] for one in ran if one["status"] != 0] == []
        return [one["words"] for one in ran]

    def tree(self) -> list[int]:
        """Wait until the three processes of STUBBORN_TREE are there, and return their ids."""

        def last() -> list[int]:
            found = [one["pid"] for one in self.agent.program.notes() if "pid" in one]
            return [pid for pid in found if not gone(pid)]

        wait_until(lambda: len(last()) == 3)
        return last()

    # --- what people see -------------------------------------------------------------------

    def asks(self, text: str, reply_to: Message | None = None) -> Message:
        self.look_from_here()
        return self.ada.says(self.chat, text, reply_to=reply_to)

    def look_from_here(self) -> None:
        """Do not look at what was posted until now."""
        self._posted = max(self.chat.history, default=0)

    def posts(self) -> list[Message]:
        """Return what people see of the bot."""
        own = [one for one in self.chat.messages if one.sender is self.bot and not one.service]
        return [one for one in own if one.id > self._posted]

    def wait_for_eyes(self, message: Message) -> None:
        """Wait until the agent has begun to work on a message."""
        self.office.api.wait_for(lambda: message.reactions_of(self.bot) == ["👀"])

    def growth(self, text: str) -> str:
        """Wait until so much of an answer is shown, as a draft or as a post; return all that is shown of it."""
        shown: list[str] = []

        def look() -> bool:
            draft = self.chat.draft
            shown[:] = [one for one in [*self.texts(), draft.text if draft else ""] if text in one]
            return bool(shown)

        self.office.api.wait_for(look)
        return shown[0]

    def texts(self) -> list[str]:
        return [one.text for one in self.posts()]

    def wait_for_post(self, text: str) -> Message:
        """Wait for the one post with this text."""
        self.chat.wait_for(lambda found: any(text in one.text for one in self.posts()))
        (found,) = [one for one in self.posts() if text in one.text]
        return found

    def wait_for_live_post(self) -> None:
        """Wait until the daemon knows which post grows; a draft is no post."""
        if self.chat.draft is None:
            wait_until(lambda: self.office.rows("SELECT run FROM live_post WHERE platform_id IS NOT NULL"))

    def quiet(self) -> None:
        """Wait until no run is under way, and nothing waits to be posted or taken back."""
        wait_until_idle(self.office.daemon)
        unsent = """
            SELECT id FROM envelope WHERE binding IS NOT NULL AND status = 0 AND waits IS NULL
            UNION ALL SELECT run FROM live_post
        """
        wait_until(lambda: not self.office.rows(unsent))


@contextmanager
def phone_talk(directory: Path, version: str) -> Iterator[PhoneTalk]:
    """Start a server of this version, and a daemon with an agent; at the end check what the server saw."""
    with telegram_daemon(
        directory, partial(BotApi, version=version, limits=True), HIBOSS_DELIVERY_PACING="on"
    ) as office:
        yield PhoneTalk(office, "kai")
        assert (office.api.complaints, office.api.floods) == ([], [])


# --- the story ------------------------------------------------------------------------------------


PNG = b"\x89PNG\r\n\x1a\nthe garden"
GROWS = """
say("I have *looked* at it.")
step(1)
say("There are two steps:")
step(2)
say("\\n| step | day |\\n|---|---:|\\n| dig | Monday |\\n| plant | Friday |")
"""
SENDS = """
if TEXTS[-1] == "remind Ada":
    say("It is time to dig.")
    sys.exit()
hiboss("envelope", "send", "--reply-to", ENVELOPE, "--attachment", f"{HERE}/plan.png", "--text", "the garden")
hiboss("envelope", "send", "--to", "agent:kai", "--deliver-at", "+2s", "--text", "remind Ada")
"""
CHANGES = """
(answer,) = re.findall("(?m)^- (m[0-9]+) 👍 Ada .*looked", TURN)
hiboss("reaction", "set", ENVELOPE, "🔥")
hiboss("message", "edit", answer, "In one step:\\n\\n| step | day |\\n|---|---|\\n| all | today |")
say("It is changed.")
"""
BEGINNING = "kai:\nI have looked at it."
MIDDLE = f"{BEGINNING}\nThere are two steps:"
ALL = f"{MIDDLE}\nstep | day\ndig | Monday\nplant | Friday"
ALL_ALIGNED = f"{MIDDLE}\n\nstep  |    day\n------+-------\ndig   | Monday\nplant | Friday"


@pytest.fixture(scope="module")
def new(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PhoneTalk]:
    with phone_talk(tmp_path_factory.mktemp("new"), "10.3") as talk:
        yield talk


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PhoneTalk]:
    with phone_talk(tmp_path_factory.mktemp("old"), "9.0") as talk:
        yield talk


# --- a question and its answer -------------------------------------------------------------


class Plan(NamedTuple):
    """What Ada asked for, and what she got."""

    asked: Message
    photo: Message
    answer: Message
    reminder: Message


def planned(new: PhoneTalk) -> Plan:
    """Let Ada ask for the plan; check how the answer grows."""
    new.file("plan.png").write_bytes(PNG)
    new.works_so(SENDS + GROWS)
    asked = new.asks("what is the plan?")
    assert new.growth("looked") == BEGINNING
    assert asked.reactions_of(new.bot) == ["👀"] and "typing" in new.chat.actions
    new.steps(1)
    assert new.growth("two steps") == MIDDLE
    new.steps(2)
    new.wait_for_post("It is time to dig.")
    new.quiet()
    return Plan(asked, *new.posts())


def test_a_question_gets_a_photo_and_a_table_and_the_talk_goes_on_at_the_terminal_and_by_reply(
    tmp_path: Path,
) -> None:
    with phone_talk(tmp_path, "10.3") as talk:
        plan = planned(talk)
        _is_one_post_with_a_table(talk, plan)
        _has_a_photo_and_a_reminder(talk, plan)
        _is_shown_and_goes_on_at_the_terminal(talk, plan)
        _goes_on_by_a_reply_and_a_reaction(talk, plan)


def _is_one_post_with_a_table(new: PhoneTalk, plan: Plan) -> None:
    """The answer; it quotes the question."""
    assert plan.answer.text == ALL and "<table>" in (plan.answer.rich_source or "")
    drafts = [one for one in new.chat.drafts if "looked" in one.text]
    assert len(drafts) >= 2 and all(ALL.startswith(one.text) and one.can_stop for one in drafts)
    assert plan.answer.reply_to is plan.asked and not plan.answer.texts[1:]


def _has_a_photo_and_a_reminder(new: PhoneTalk, plan: Plan) -> None:
    """What the agent sends by command."""
    assert plan.photo.text == "kai:\nthe garden" and "photo" in plan.photo.media
    assert PNG in [one.data for one in plan.photo.files]
    assert plan.reminder.text == "kai:\nIt is time to dig."
    assert plan.photo.reply_to is plan.reminder.reply_to is plan.asked
    assert [words[:2] for words in new.commands()[:2]] == [["envelope", "send"]] * 2


def _is_shown_and_goes_on_at_the_terminal(new: PhoneTalk, plan: Plan) -> None:
    """The terminal shows the same conversation, and its answers come to the phone."""
    new.works_so('say(f"You ask: {TEXTS[-1]}")')
    new.look_from_here()
    told = [f"you ({address(new.chat)})", plan.asked.text, "the garden", '[image] "plan.png"']
    told += ["I have *looked* at it.", "| plant | Friday |", "It is time to dig."]
    with talking(new.shell, "kai", rows=100) as terminal:
        terminal.ready()
        begin = terminal.text.index(plan.asked.text)
        found = [terminal.text.index(one, begin) for one in told[1:]]
        assert found == sorted(found) and told[0] in terminal.text[:begin]
        assert [terminal.text.count(one) for one in told[1:]] == [1] * 6
        terminal.press("and who digs?\r")
        terminal.see("  You ask: and who digs?")
    assert new.wait_for_post("You ask").text == "kai:\nYou ask: and who digs?"
    new.quiet()
    assert len(new.posts()) == 1  # a bot cannot say there what Ada said herself


def _goes_on_by_a_reply_and_a_reaction(new: PhoneTalk, plan: Plan) -> None:
    """The agent is shown them, reacts and edits."""
    new.works_so(CHANGES)
    new.ada.reacts(plan.answer, "👍")
    new.office.settle()
    asked = new.asks("can it be sooner?", reply_to=plan.photo)
    assert new.wait_for_post("It is changed.").reply_to is asked
    assert '"the garden"\n' in new.agent.turns()[-1].partition("\nin-reply-to: m")[2]
    new.office.api.wait_for(lambda: asked.reactions_of(new.bot) == ["🔥"])
    new.office.api.wait_for(lambda: plan.answer.edited)
    assert plan.answer.text == "kai:\nIn one step:\nstep | day\nall | today"
    assert "<table>" in (plan.answer.rich_source or "") and plan.answer.reactions_of(new.ada) == ["👍"]
    new.quiet()
    assert len(new.posts()) == 1 and len(new.commands()) >= 2


# --- no answer -----------------------------------------------------------------------------


def test_silence_leaves_the_eyes_and_nothing_else(new: PhoneTalk) -> None:
    new.works_so('step(1); say("NO_REPLY")')
    asked = new.asks("thank you")
    new.wait_for_eyes(asked)
    new.steps(1)
    wait_until(lambda: new.agent.runs()[-1]["status"] == "completed")
    new.quiet()
    assert new.posts() == [] and asked.reactions_of(new.bot) == ["👀"]


def test_a_failure_is_told_of_with_its_reason(new: PhoneTalk) -> None:
    new.office.team.hire('sys.stderr.write("no spade\\n"); sys.exit(3)', "mia")
    new.office.bind(new.bot, "mia")
    asked = new.asks("@mia dig")
    told = new.wait_for_post("⚠️")
    assert "mia failed: " in told.text and "no spade" in told.text and told.reply_to is asked
    new.quiet()
    assert new.posts() == [told]


# --- a restart -----------------------------------------------------------------------------


def is_killed_while_it_grows(talk: PhoneTalk) -> Message:
    """Let the daemon be killed in the middle of an answer, and start again; return the question."""
    talk.works_so(GROWS)
    asked = talk.asks("once more?")
    assert talk.growth("looked") == BEGINNING
    talk.wait_for_live_post()
    talk.office.daemon.kill()
    talk.office.start()
    return asked


def test_after_a_kill_there_is_one_note_and_one_answer(new: PhoneTalk) -> None:
    asked = is_killed_while_it_grows(new)
    new.steps(1)
    new.steps(2)
    new.wait_for_post("Friday")
    new.quiet()
    note, answer = new.posts()
    assert "hiboss was restarted while kai worked on this" in note.text and answer.text == ALL
    assert note.reply_to is answer.reply_to is asked and new.chat.draft is None


def test_on_an_old_server_a_post_grows_again_after_a_kill_and_becomes_the_answer(old: PhoneTalk) -> None:
    asked = is_killed_while_it_grows(old)
    old.wait_for_post("hiboss was restarted")
    old.steps(1)
    assert old.growth("two steps") == MIDDLE
    old.steps(2)
    old.wait_for_post("Friday")
    old.quiet()
    _, answer = old.posts()
    assert len(answer.texts) >= 2 and all(ALL_ALIGNED.startswith(text) for text in answer.texts)
    assert answer.text == ALL_ALIGNED and answer.reply_to is asked
    assert [one["type"] for one in answer.entities] == ["italic", "pre"]


# --- stopping ------------------------------------------------------------------------------


def works_long(talk: PhoneTalk) -> list[int]:
    """Let the agent begin a work that INT and TERM do not end; return its processes."""
    talk.works_so('if TEXTS[-1] == "next": say("I am here."); sys.exit()\n' + STUBBORN_TREE)
    talk.asks("do something long")
    return talk.tree()


def stops(talk: PhoneTalk, tree: list[int], press: Callable[[], Message | None]) -> str:
    """Let Ada stop such a work: she is told before it has ended, and then all processes are gone.

    Return what she is told.
    """
    (run,) = talk.agent.runs(status="running")
    told = f"Stopped {run['id']} of agent:kai."
    begun = time()
    command = press()
    if command is None:
        heard = talk.office.api.wait_for_call("sendMessage", lambda call: told in call.params["text"])
    else:
        heard = talk.office.api.wait_for_call(
            "setMessageReaction", lambda call: call.params["message_id"] == str(command.id)
        )
        talk.office.api.wait_for(lambda: command.reactions_of(talk.bot) == ["👌"])
    wait_until(lambda: all(map(gone, tree)))
    sys.stdout.write(f"Heard after {heard.at - begun:.2f} s, all gone after {time() - begun:.2f} s.\n")
    talk.quiet()
    (row,) = talk.office.rows("SELECT status, ended_at FROM run WHERE id = ?", int(run["id"][1:]))
    assert row["status"] == "cancelled" and heard.at * 1000 < row["ended_at"]
    assert talk.chat.draft is None
    return f"system:\n{told}"


def test_what_waits_is_noted_and_comes_when_the_stop_button_has_ended_every_process(new: PhoneTalk) -> None:
    tree = works_long(new)
    new.growth("still at it")  # which it goes on writing
    waiting = new.ada.says(new.chat, "next")
    note = new.wait_for_post("Queued behind r")
    assert waiting.reactions_of(new.bot) == []
    new.office.api.wait_for(lambda: new.chat.draft is not None)
    told = stops(new, tree, lambda: new.ada.stops_generation(new.chat))
    new.wait_for_post("I am here.")
    new.quiet()
    assert new.texts() == [told, "kai:\nI am here."] and note.deleted
    assert new.posts()[-1].reply_to is waiting and waiting.reactions_of(new.bot) == ["👀"]


def test_stop_is_acknowledged_and_ends_every_process(new: PhoneTalk) -> None:
    told = stops(new, works_long(new), lambda: new.ada.says(new.chat, "/stop"))
    assert new.texts() == [told]


def test_on_an_old_server_stop_also_takes_the_post_back_that_grew(old: PhoneTalk) -> None:
    tree = works_long(old)
    old.growth("still at it")
    told = stops(old, tree, lambda: old.ada.says(old.chat, "/stop"))
    assert old.texts() == [told]
