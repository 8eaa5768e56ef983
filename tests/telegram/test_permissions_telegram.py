"""Permissions in Telegram: a prompt has its options as buttons, and buttons that let the answer hold longer."""

from __future__ import annotations

from pathlib import Path

from hiboss.testing.bot_api.messages import Message
from tests.agents.test_permission_asks import PERMITS, does
from tests.support.cli import Shell
from tests.support.shell_agents import Worker
from tests.support.telegram_bots import TelegramDaemon
from tests.support.waits import wait_until


class Scene:
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
    scene = Scene(office, tmp_path, "rule")
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


def test_the_buttons_of_a_prompt_go_when_its_run_is_cancelled(office: TelegramDaemon, tmp_path: Path) -> None:
    scene = Scene(office, tmp_path, "late")
    scene.ada.says(scene.chat, "git pull")
    prompt = scene.prompt("git pull")
    scene.worker.order("run.cancel", id=scene.worker.under_way()["id"])
    wait_until(lambda: not prompt.buttons)
    [ask] = scene.worker.call("ask.list", state="cancelled")["asks"]
    assert office.boss.refusal("ask.answer", id=ask["id"], choice="allow") == "ask_settled"


def test_a_long_permission_is_shortened_in_the_chat_only(office: TelegramDaemon, tmp_path: Path) -> None:
    scene = Scene(office, tmp_path, "long")
    does(
        scene.worker,
        "say('ask', text='May I write this?', tool='Write', detail='x' * 100_000, subject='a')\nhear()\n",
    )
    before = len(scene.chat.messages)
    scene.ada.says(scene.chat, "write it")
    prompt = scene.prompt("May I write this?")
    parts = [one for one in scene.chat.messages[before:] if "xxx" in one.text]
    assert parts == [prompt] and "hiboss ask get q" in prompt.text
    [ask] = scene.worker.call("ask.list")["asks"]
    assert len(ask["question"]) > 100_000
    scene.presses(prompt, "deny")
    scene.worker.settled()


def test_what_nobody_sees_in_a_permission_is_written_out(office: TelegramDaemon, tmp_path: Path) -> None:
    scene = Scene(office, tmp_path, "hidden")
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


def test_the_buttons_of_a_settled_prompt_go_also_after_a_flood_wait(
    office: TelegramDaemon, tmp_path: Path
) -> None:
    scene = Scene(office, tmp_path, "flood")
    scene.ada.says(scene.chat, "git fetch")
    prompt = scene.prompt("git fetch")
    fault = office.api.fault("editMessageReplyMarkup", retry_after=1, times=2, chat=scene.chat.id)
    [ask] = scene.worker.call("ask.list")["asks"]
    office.boss.call("ask.answer", id=ask["id"], choice="deny")
    wait_until(lambda: not prompt.buttons)
    assert fault.hits == 2
    scene.worker.settled()
