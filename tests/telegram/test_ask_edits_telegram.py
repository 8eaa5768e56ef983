"""What the boss edits in Telegram after he answered an ask changes nothing; before, it may be the answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.agents.test_permission_asks import does
from tests.support.shell_agents import Worker, end_all
from tests.support.telegram_casts import Stage
from tests.telegram.test_asks_telegram import Scene

PERMIT = """
say("ask", text="May I run this?", tool="Bash", detail="rm x", subject="rm x")
say("final", text="You said " + hear()["option"])
"""


@pytest.fixture
def scene(theatre: Stage) -> Scene:
    return Scene(theatre)


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


def test_the_command_takes_its_option_from_another_line_too(scene: Scene) -> None:
    scene.asks()
    scene.ada.says(scene.chat, f"/answer {scene.number}\nYes")
    scene.chat.wait_for_text(f"{scene.number} is answered: Yes.")
