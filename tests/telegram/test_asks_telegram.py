"""Asks and permissions in Telegram: buttons, replies and /answer; from a program to the phone and back; and edits of answers."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from hiboss.testing.bot_api.bots import Bot
from hiboss.testing.bot_api.chats import Chat
from hiboss.testing.bot_api.messages import Message
from tests.agents.test_permission_asks import PERMITS, does
from tests.support.cli import Shell
from tests.support.python_agents import PythonAgent, wait_until_idle
from tests.support.shell_agents import Worker, end_all
from tests.support.telegram_bots import Stage, TelegramDaemon, opened
from tests.support.waits import wait_until

_numbers = itertools.count(1)
# It asks, ends its turn, and says what it was answered.
ENDER = """
if "Answer to" in TEXTS[-1]:
    print("I was told: " + TEXTS[-1].partition("): ")[2])
else:
    made = call("ask.create", question=TEXTS[-1], options=["Yes", "Not today", "y" * 200], timeout="1h")
    note(made["ask"]["id"])
    print("I asked.")
"""
WAITER = """
ask = call("ask.create", question="Deploy?", options=["yes", "no"])["ask"]
note(ask["id"])
answer = call("ask.wait", id=ask["id"], timeout="1m")["ask"]["answer"]
call("ask.wait", id=ask["id"], received=True)
print("I deploy: " + answer)
"""


class Scene:
    """An agent that asks, its bot, and Ada's chat with it."""

    def __init__(self, theatre: Stage, body: str = ENDER) -> None:
        number = next(_numbers)
        self._asked = 0
        self.office, self.ada = theatre.office, theatre.ada
        self.agent: PythonAgent = self.office.team.hire(body, f"asker{number}")
        self.bot: Bot = self.office.bound_bot(f"asker{number}bot", self.agent.name)
        self.office.bind(self.bot, "nex")  # so the bot stays when the agent goes
        self.chat: Chat = self.ada.starts(self.bot)
        self.chat.wait_for_text("Commands of hiboss")

    def asks(self, question: str = "Deploy?") -> Message:
        """Let Ada say something; return the question that comes of it, with its buttons."""
        self._asked += 1
        self.ada.says(self.chat, question)
        return self.posted(question)

    def posted(self, words: str) -> Message:
        def is_it(one: Message) -> bool:
            return words in one.text and bool(one.buttons)

        return next(filter(is_it, self.chat.wait_for(lambda found: any(map(is_it, found)))))

    @property
    def number(self) -> str:
        """The id of the ask. Its question can be posted before the program was told the id."""
        wait_until(lambda: len(self.agent.program.notes()) >= self._asked)
        return str(self.agent.program.notes()[-1])

    def state(self) -> tuple[str, str | None]:
        ask = self.office.boss.call("ask.get", id=self.number)["ask"]
        return ask["state"], ask["answer"]

    def press(self, post: Message, label: str) -> str:
        """Let Ada press a button; return what she is told."""
        (data,) = [one.data for one in post.buttons if one.text == label]
        assert data is not None
        return str(self.ada.presses(post, data).wait()["text"])

    def loses_buttons(self, post: Message) -> None:
        self.chat.wait_for(lambda found: not next(one for one in found if one.id == post.id).buttons)


@pytest.fixture
def scene(theatre: Stage) -> Scene:
    return Scene(theatre)


def test_an_ask_travels_from_a_program_to_a_button_and_the_answer_back_into_its_run(theatre: Stage) -> None:
    scene = Scene(theatre, WAITER)
    post = scene.asks("Deploy?")
    assert [one.text for one in post.buttons] == ["yes", "no"] and "1. yes\n2. no" in post.text
    assert scene.press(post, "yes") == f"{scene.number}: yes"
    scene.chat.wait_for_text("I deploy: yes")
    scene.loses_buttons(post)
    wait_until_idle(scene.office.daemon)
    assert len(scene.agent.runs()) == 1


def test_an_ask_is_answered_by_a_button_after_the_turn_and_the_next_turn_answers_in_that_chat(
    scene: Scene,
) -> None:
    post = scene.asks()
    scene.chat.wait_for_text("I asked.")
    assert [one.text for one in post.buttons] == ["Yes", "Not today", "y" * 39 + "…"]
    assert f"3. {'y' * 200}" in post.text
    scene.press(post, "Not today")
    scene.chat.wait_for_text("I was told: Not today")
    scene.loses_buttons(post)


def test_a_second_press_is_told_who_was_first_and_changes_nothing(scene: Scene) -> None:
    post = scene.asks()
    wait_until(lambda: scene.agent.program.notes())
    scene.office.api.fault("editMessageReplyMarkup", status=500, bot=scene.bot.id, times=None)
    try:
        scene.press(post, "Yes")
        assert scene.press(post, "Not today") == "Settled before: user:boss answered Yes."
    finally:
        scene.office.api.clear_faults()
    assert scene.state() == ("answered", "Yes")


@pytest.mark.parametrize("text", ["not  today", "2", "NOT TODAY"])
def test_a_reply_to_the_question_whose_whole_text_is_an_option_answers_it(scene: Scene, text: str) -> None:
    post = scene.asks()
    scene.ada.says(scene.chat, text, reply_to=post)
    scene.chat.wait_for_text("I was told: Not today")
    scene.loses_buttons(post)
    assert scene.state() == ("answered", "Not today")


def test_a_reply_that_says_more_than_an_option_is_a_message(scene: Scene) -> None:
    post = scene.asks()
    scene.chat.wait_for_text("I asked.")
    first = scene.number
    scene.ada.says(scene.chat, "Yes, but why?", reply_to=post)
    scene.posted("Yes, but why?")  # the agent asks that
    assert scene.office.boss.call("ask.get", id=first)["ask"]["state"] == "open"


def test_a_reply_that_comes_too_late_is_a_message_and_ada_is_told_who_was_first(scene: Scene) -> None:
    post = scene.asks()
    wait_until(lambda: scene.agent.program.notes())
    number = scene.number
    scene.office.boss.call("ask.answer", id=number, choice="Yes")
    scene.ada.says(scene.chat, "not today", reply_to=post)
    scene.chat.wait_for_text(f"{number} was settled before: user:boss answered Yes")
    scene.posted("not today")


def test_the_command_answers_with_a_comment_and_says_what_is_wrong(scene: Scene) -> None:
    post = scene.asks()
    wait_until(lambda: scene.agent.program.notes())
    scene.ada.says(scene.chat, f"/answer {scene.number} perhaps")
    scene.chat.wait_for_text("perhaps is no option of")
    scene.ada.says(scene.chat, "/answer q99999 yes")
    scene.chat.wait_for_text("there is no ask q99999")
    scene.ada.says(scene.chat, "/answer")
    scene.chat.wait_for_text("Write for example: /answer q2 yes")
    scene.ada.says(scene.chat, f"/answer {scene.number} not today it rains")
    scene.chat.wait_for_text(f"{scene.number} is answered: Not today.")
    scene.chat.wait_for_text("I was told: Not today\nit rains")
    scene.loses_buttons(post)
    scene.ada.says(scene.chat, f"/answer {scene.number} yes")
    scene.chat.wait_for_text("was settled before: user:boss answered Not today")


def test_others_cannot_answer_by_a_command_or_a_reply(scene: Scene) -> None:
    post = scene.asks()
    wait_until(lambda: scene.agent.program.notes())
    bob = scene.office.api.add_person("Bob")
    chat = scene.office.approved(bob, scene.bot)
    bob.says(chat, f"/answer {scene.number} yes")
    scene.office.wait_for_stored(chat, f"/answer {scene.number} yes")
    group = scene.office.api.add_group("Both", [scene.ada, bob, scene.bot])
    scene.office.approve(group)
    bob.says(group, f"/answer@{scene.bot.name} {scene.number} yes")
    scene.office.settle()
    assert scene.state() == ("open", None)
    assert post.buttons


@pytest.mark.parametrize("way", ["ask.answer", "ask.cancel", "message.delete", "agent.delete"])
def test_the_buttons_go_whatever_settles_an_ask(scene: Scene, way: str) -> None:
    post = scene.asks()
    scene.chat.wait_for_text("I asked.")
    ask = scene.office.boss.call("ask.get", id=scene.number)["ask"]
    params = {
        "ask.answer": {"id": ask["id"], "choice": "1"},
        "ask.cancel": {"id": ask["id"]},
        "message.delete": {"id": ask["message"]},
        "agent.delete": {"name": scene.agent.name},
    }
    scene.office.boss.call(way, **params[way])
    scene.chat.wait_for(
        lambda found: not any(one.id == post.id and one.buttons and not one.deleted for one in found)
    )
    assert scene.state()[0] in ("answered", "cancelled")


def test_the_buttons_go_when_an_ask_is_settled_before_its_post_is_confirmed(scene: Scene) -> None:
    unconfirmed = scene.office.api.fault("sendMessage", do="hang", carry_out=True, chat=scene.chat.id)
    post = scene.asks()
    wait_until(lambda: scene.agent.program.notes())
    scene.office.boss.call("ask.answer", id=scene.number, choice="Yes")
    assert post.buttons
    unconfirmed.release()
    scene.loses_buttons(post)


def test_the_end_of_an_ask_is_told_in_the_chat_where_it_was_asked(theatre: Stage) -> None:
    scene = Scene(theatre, ENDER.replace('timeout="1h"', 'timeout="1s", default="Not today"'))
    scene.loses_buttons(scene.asks())
    scene.chat.wait_for_text("so the answer is Not today")
    assert scene.state() == ("expired", "Not today")


def test_an_ask_of_a_turn_that_no_chat_began_goes_where_the_boss_is_reached(theatre: Stage) -> None:
    cast, chat = opened(theatre)
    with cast.reached_in(chat):
        cast.kai.call("ask.create", question="Shall I?")
        post = chat.wait_for_text("Shall I?")
        assert [one.text for one in post.buttons] == ["yes", "no"]
        data = post.buttons[1].data
        assert data is not None
        cast.ada.presses(post, data).wait()
    # It had no turn: what it says to the answer goes to where that was given.
    chat.wait_for_text("heard Answer to")


# --- what the boss edits --------------------------------------------------------------


PERMIT = """
say("ask", text="May I run this?", tool="Bash", detail="rm x", subject="rm x")
say("final", text="You said " + hear()["option"])
"""


def revisions(scene: Scene) -> int:
    return len(scene.office.rows("SELECT * FROM revision"))


@pytest.mark.parametrize("way", ["reply", "command"])
def test_an_answer_that_is_edited_later_stays_as_it_was_and_ada_is_told(scene: Scene, way: str) -> None:
    post = scene.asks()
    scene.chat.wait_for_text("I asked.")
    before = revisions(scene)
    written = {"reply": "{}", "command": f"/answer {scene.number} {{}}"}[way]
    said = scene.ada.says(scene.chat, written.format("Yes"), reply_to=post if way == "reply" else None)
    scene.chat.wait_for_text("I was told: Yes")
    scene.ada.edits(said, written.format("Not today"))
    scene.chat.wait_for_text(f"{scene.number} was answered before: Yes.")
    assert scene.state() == ("answered", "Yes") and revisions(scene) == before
    scene.ada.edits(said, written.format("no, I said"))  # again
    told = f"{scene.number} was answered before: Yes."
    scene.chat.wait_for(lambda found: sum(one.text.endswith(told) for one in found) == 2)
    assert len(scene.agent.turns()) == 2


def test_a_permission_that_was_given_stays_when_its_answer_is_edited(theatre: Stage, tmp_path: Path) -> None:
    office, ada = theatre.office, theatre.ada
    worker = Worker(office.daemon, tmp_path)
    worker.change(settings={"input": "open"})
    does(worker, PERMIT)
    chat = ada.starts(office.bound_bot("permitbot", worker.name))
    chat.wait_for_text("Commands of hiboss")
    for way in ("{}", "/answer {ask} {}"):
        ada.says(chat, "go")
        found = chat.wait_for(lambda posts: any(one.buttons for one in posts))
        post = next(one for one in found if one.buttons)
        ask = office.boss.call("ask.list")["asks"][0]
        assert "\nTool: Bash\nFor exactly: rm x\n\nMay I run this?\n\n1. allow" in post.text
        said = ada.says(chat, way.format("allow", ask=ask["id"]), reply_to=post)
        chat.wait_for(lambda posts: not any(one.buttons for one in posts))
        ada.edits(said, way.format("deny", ask=ask["id"]))
        chat.wait_for_text(f"{ask['id']} was answered before: allow.")
        [question] = office.rows("SELECT * FROM message WHERE id = ?", int(ask["message"][1:]))
        assert question["edited_at"] is None and question["text"].startswith("Tool: Bash")
        assert office.boss.call("ask.get", id=ask["id"])["ask"]["answer"] == "allow"
    end_all(office.daemon)


def test_a_reply_that_becomes_an_option_by_an_edit_answers(scene: Scene) -> None:
    post = scene.asks()
    scene.chat.wait_for_text("I asked.")
    said = scene.ada.says(scene.chat, "maybe", reply_to=post)
    scene.posted("maybe")  # it was no answer, and is what the next question says
    scene.ada.edits(said, "Yes")
    scene.chat.wait_for_text("I was told: Yes")
    first = scene.agent.program.notes()[0]
    assert scene.office.boss.call("ask.get", id=first)["ask"]["answer"] == "Yes"
    scene.ada.edits(said, "Not today")
    scene.chat.wait_for_text(f"{first} was answered before: Yes.")
    assert scene.office.boss.call("ask.get", id=first)["ask"]["answer"] == "Yes"


def test_a_command_that_becomes_right_by_an_edit_answers(scene: Scene) -> None:
    scene.asks()
    scene.chat.wait_for_text("I asked.")
    said = scene.ada.says(scene.chat, f"/answer {scene.number} maybe")
    scene.chat.wait_for_text("maybe is no option")
    scene.ada.edits(said, f"/answer {scene.number} perhaps")
    scene.chat.wait_for_text("perhaps is no option")
    scene.ada.edits(said, f"/answer {scene.number}\nYes")
    scene.chat.wait_for_text(f"{scene.number} is answered: Yes.")
    scene.chat.wait_for_text("I was told: Yes")
    assert not any("/answer" in turn for turn in scene.agent.turns())


# --- permissions ----------------------------------------------------------------------


class PermissionScene:
    """The boss, who writes to a worker from a phone; each has an account of its own."""

    def __init__(self, office: TelegramDaemon, directory: Path, name: str) -> None:
        self.worker = Worker(office.daemon, directory)
        self.worker.change(settings={"input": "open"})
        does(self.worker, PERMITS)
        self.ada = office.api.add_person(f"Ada {name}")
        self.bot = office.bound_bot(f"{name}bot", self.worker.name)
        self.chat = office.pair(self.ada, self.bot)

    def prompt(self, text: str, number: int = 1) -> Message:
        """Wait until so many prompts with this text have buttons; return the last one."""

        def found() -> list[Message]:
            return [one for one in self.chat.messages if text in one.text and one.buttons]

        wait_until(lambda: len(found()) == number)
        return found()[-1]

    def presses(self, prompt: Message, label: str) -> str:
        [button] = [one for one in prompt.buttons if one.text == label]
        return str(self.ada.presses(prompt, str(button.data)).wait()["text"])


def test_a_permission_is_answered_and_remembered_by_a_button(office: TelegramDaemon, tmp_path: Path) -> None:
    scene = PermissionScene(office, tmp_path, "rule")
    scene.ada.says(scene.chat, "git push\ngit push\nls")
    prompt = scene.prompt("git push")
    labels = [one.text for one in prompt.buttons]
    assert labels == ["allow", "deny", "allow for this session", "always allow exactly this"]
    assert "allow" in scene.presses(prompt, "allow for this session")
    wait_until(lambda: not prompt.buttons)
    second = scene.prompt("ls")
    [rule] = scene.worker.call("ask.rules")["rules"]
    assert (rule["subject"], rule["session"], rule["answer"]) == ("git push", "s-1", "allow")
    scene.presses(second, "deny")
    scene.chat.wait_for_text(f"allow; allow by rule {rule['number']}; deny")


def test_what_nobody_sees_in_a_permission_is_written_out(office: TelegramDaemon, tmp_path: Path) -> None:
    scene = PermissionScene(office, tmp_path, "hidden")
    hidden = "touch \\u202eevil\\u202c x\\u200by\\n\\x1b[8mrm -rf z"
    does(scene.worker, f"say('ask', text='May I do this?', tool='Bash', detail='{hidden}')\nhear()\n")
    scene.ada.says(scene.chat, "do it")
    prompt = scene.prompt("May I do this?")
    assert "touch \\u202eevil\\u202c x\\u200by\n\\u001b[8mrm -rf z" in prompt.text
    [ask] = scene.worker.call("ask.list")["asks"]
    assert ask["question"].endswith("touch \u202eevil\u202c x\u200by\n\x1b[8mrm -rf z")  # as it was asked
    shown = Shell(office.daemon.home.path)("ask", "get", ask["id"], "--as", "boss").stdout
    assert "touch \\u202eevil\\u202c x\\u200by" in shown and "\x1b" not in shown
    scene.presses(prompt, "deny")
    scene.worker.settled()
