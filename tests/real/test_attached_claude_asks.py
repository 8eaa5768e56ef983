"""Permission dialogs of the real Claude Code as questions on Ada's phone (`hiboss hooks install --asks`)."""

from __future__ import annotations

import pytest

from hiboss.testing.model_server import Say
from tests.real.attached_desk import Desk
from tests.support.waits import wait_until

DIALOG = "Do you want to proceed?"
COMMAND = "touch heron.txt"


DESK = {"install": ("--agent", "nex", "--asks"), "settings": {}}


def begin(desk: Desk) -> None:
    desk.server.script(desk.tool(COMMAND), Say("it is over"))
    desk.claude.enter("make the file")


def made(desk: Desk) -> bool:
    return (desk.claude.workspace / "heron.txt").exists()


def asks(desk: Desk) -> list[str]:
    """Return how far the questions got."""
    return [str(one["state"]) for one in desk.office.rows("SELECT state FROM ask ORDER BY id")]


def posts(desk: Desk) -> list[str]:
    """Return the ids of the posts that the daemon has noted."""
    return [str(one["platform_id"]) for one in desk.office.rows("SELECT platform_id FROM post")]


def test_allow_on_the_phone_lets_the_tool_run(desk: Desk) -> None:
    begin(desk)
    question = desk.question(COMMAND)
    assert not made(desk)
    desk.presses(question, "allow")
    desk.claude.wait_for("it is over")
    assert made(desk)
    assert DIALOG not in desk.claude.screen()
    assert asks(desk) == ["answered"]


def test_deny_on_the_phone_denies_it_and_the_model_reads_why(desk: Desk) -> None:
    begin(desk)
    question = desk.question(COMMAND)
    [number] = [one["id"] for one in desk.office.rows("SELECT id FROM ask")]
    desk.office.boss.call("ask.answer", id=f"q{number}", choice="deny", comment="the lake is closed")
    desk.claude.wait_for("it is over")
    assert not made(desk)
    assert "the lake is closed" in desk.server.turns[-1].everything
    wait_until(lambda: not question.buttons, 30)


def test_an_answer_in_the_terminal_withdraws_the_question(desk: Desk) -> None:
    begin(desk)
    question = desk.question(COMMAND)
    desk.claude.decide(DIALOG, "enter")
    desk.claude.wait_for("it is over")
    assert made(desk)
    wait_until(lambda: asks(desk) != ["open"], 30)
    wait_until(lambda: not question.buttons, 30)


@pytest.mark.parametrize("key", ["esc", "3"])
def test_a_no_in_the_terminal_withdraws_the_question(desk: Desk, key: str) -> None:
    begin(desk)
    question = desk.question(COMMAND)
    desk.claude.decide(DIALOG, key)
    wait_until(lambda: asks(desk) != ["open"], 30)
    wait_until(lambda: not question.buttons, 30)
    assert not made(desk)
    desk.says("How is the build?", "All is green.")
    desk.check_done(desk.asks("How is the build?"))


@pytest.mark.parametrize("office", [{"HIBOSS_ATTACHED_ASK_SECONDS": "2"}], indirect=True)
def test_without_an_answer_the_dialog_stays_and_works(desk: Desk) -> None:
    begin(desk)
    wait_until(
        lambda: asks(desk) not in ([], ["open"]), 60
    )  # on the phone it may stand too shortly to be seen
    wait_until(lambda: not any(one.buttons for one in desk.chat.messages if COMMAND in one.text))
    desk.claude.wait_for(DIALOG)
    assert not made(desk)
    desk.claude.decide(DIALOG, "enter")
    desk.claude.wait_for("it is over")
    assert made(desk)


def test_without_a_daemon_the_dialog_works(desk: Desk) -> None:
    desk.office.daemon.stop()
    begin(desk)
    desk.claude.wait_for(DIALOG)
    assert not made(desk)
    desk.claude.decide(DIALOG, "enter")
    desk.claude.wait_for("it is over")
    assert made(desk)
    desk.office.start()


def test_a_daemon_that_dies_while_it_asks_leaves_the_dialog(desk: Desk) -> None:
    begin(desk)
    question = desk.question(COMMAND)
    desk.claude.wait_for(DIALOG)
    # If it died before it noted the id of the post, it would post the question again, and forget this post.
    wait_until(lambda: str(question.id) in posts(desk), 30)
    desk.office.daemon.kill()
    desk.office.start()
    assert not made(desk)
    desk.claude.decide(DIALOG, "enter")
    desk.claude.wait_for("it is over")
    assert made(desk)
    desk.wait_idle()
    wait_until(lambda: asks(desk) != ["open"], 30)
    wait_until(lambda: not question.buttons, 30)


def test_a_dialog_in_a_turn_with_mail_is_asked_and_the_mail_is_answered(desk: Desk) -> None:
    desk.answers("How is the build?", desk.tool(COMMAND))
    desk.server.script(Say("All is green."))
    envelope = desk.asks("How is the build?")
    desk.presses(desk.question(COMMAND), "allow")
    desk.wait_answer("All is green.")
    desk.check_done(envelope)
    assert made(desk)
