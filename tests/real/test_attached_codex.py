"""Mail for the real Codex that is open in a terminal: from Ada's phone, and answered there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hiboss.testing.model_server import Fail, ModelServer, Say
from tests.real.codex_desk import NAMES, WAYS, CodexDesk, open_desk, shell
from tests.real.programs import Programs


@pytest.fixture(params=WAYS, ids=NAMES)
def desk(
    request: pytest.FixtureRequest, tmp_path: Path, programs: Programs, server: ModelServer
) -> Iterator[CodexDesk]:
    with open_desk(tmp_path, programs, server, request.param) as made:
        yield made


def test_an_idle_session_answers_a_question_from_the_phone(desk: CodexDesk, server: ModelServer) -> None:
    server.script(Say("All is green."))
    envelope = desk.asks("How is the build?")
    desk.wait_answer("All is green.")
    receipt = desk.receipt(envelope)
    assert receipt["state"] == "done"
    assert receipt["submitted_at"] <= receipt["seen_at"] <= receipt["done_at"]
    assert "> How is the build?" in server.turns[-1].everything
    assert "How is the build?" not in "".join(desk.nudges())
    desk.wait_for_state("idle")
    server.script(Say("Still green."))
    desk.asks("And now?")
    desk.wait_answer("Still green.")
    assert desk.answers() == ["All is green.", "Still green."]
    assert len(desk.nudges()) == 2
    by_socket = desk.codex.rollouts[-1].read_text().count('"client_id":"hiboss r')
    assert by_socket == (0 if desk.way else 2)


def test_a_busy_session_answers_when_it_is_done_with_its_person(desk: CodexDesk, server: ModelServer) -> None:
    server.script(shell("until [ -e go ]; do sleep 0.1; done"), Say("The tests pass."), Say("All is green."))
    desk.codex.enter("run the tests")
    desk.wait_for_state("busy")
    envelope = desk.asks("How is the build?")
    (desk.codex.workspace / "go").touch()
    desk.codex.wait_for("The tests pass.")
    desk.wait_answer("All is green.")
    assert desk.wait_receipt(envelope, "done")["seen_at"]
    desk.wait_for_state("idle")
    assert desk.answers() == ["All is green."]


def test_escape_in_a_turn_with_mail_lets_it_be_told_again(desk: CodexDesk, server: ModelServer) -> None:
    server.script(Say("Let me think about it.", hold=True))
    envelope = desk.asks("How is the build?")
    server.wait_held()
    desk.wait_receipt(envelope, "seen")
    desk.codex.wait_for("Let")
    server.script(Say("All is green."))
    desk.codex.press("esc")
    desk.codex.wait_for("Conversation interrupted")
    server.go_on()
    if desk.way:  # Codex keeps its queue back until its person says something
        desk.wait_for_state("idle")
        server.script(Say("All is green."))
        desk.says("go on", "All is green.")
    desk.wait_answer("All is green.")
    desk.wait_receipt(envelope, "done")
    desk.wait_for_state("idle")
    assert desk.answers() == ["All is green."]


def test_mail_in_a_turn_whose_model_failed_is_told_again(desk: CodexDesk, server: ModelServer) -> None:
    server.script(Fail(400, message="no herons today"), Say("All is green."))
    envelope = desk.asks("How is the build?")
    desk.codex.wait_for("no herons today")
    desk.wait_answer("All is green.")
    desk.wait_receipt(envelope, "done")
    assert desk.answers() == ["All is green."]
