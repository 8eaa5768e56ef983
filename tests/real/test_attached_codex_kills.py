"""kill -9 of the real Codex, of its daemon, and of hiboss: nothing is lost, and each question has one answer."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from hiboss.core.crashpoint import (
    ATTACHED_SEEN,
    ATTACHED_SUBMITTED,
    ATTACHED_TOLD,
    RUN_ANSWERED,
    RUN_SETTLED,
)
from hiboss.testing.model_server import ModelServer, Request, Say
from tests.real.codex_desk import NAMES, WAYS, CodexDesk, open_desk
from tests.real.programs import Programs
from tests.support.waits import wait_until

POINTS = [ATTACHED_SUBMITTED, ATTACHED_TOLD, ATTACHED_SEEN, RUN_ANSWERED, RUN_SETTLED]
BOTH = pytest.mark.parametrize("desk", WAYS, ids=NAMES, indirect=True)
DAEMON = pytest.mark.parametrize("desk", WAYS[:1], ids=NAMES[:1], indirect=True)


@pytest.fixture
def desk(
    request: pytest.FixtureRequest, tmp_path: Path, programs: Programs, server: ModelServer
) -> Iterator[CodexDesk]:
    with open_desk(tmp_path, programs, server, request.param) as made:
        yield made
        wait_until(lambda: not made.office.rows("SELECT id FROM run WHERE status = 'running'"))
        assert made.answers() == ["All is green."]
        runs = made.office.rows("SELECT started_at, ended_at FROM run ORDER BY id")
        assert all(before["ended_at"] <= after["started_at"] for before, after in pairwise(runs)), runs
        made.office.daemon.check()


def has_the_mail(request: Request) -> bool:
    return "How is the build?" in request.everything


@BOTH
@pytest.mark.parametrize("point", POINTS)
def test_hiboss_dies_at_a_point(desk: CodexDesk, server: ModelServer, point: str, tmp_path: Path) -> None:
    desk.office.daemon.stop()
    armed = tmp_path / "armed"
    desk.office.start(HIBOSS_CRASH_AT=f"{point}@{armed}")
    server.when(has_the_mail, *[Say("All is green.")] * 3)
    armed.touch()
    desk.ada.says(desk.chat, "How is the build?")
    assert desk.office.daemon.wait_for_death(60) == -9
    desk.office.start()
    desk.wait_answer("All is green.")
    desk.wait_for_state("idle")


@BOTH
def test_hiboss_dies_while_the_model_answers(desk: CodexDesk, server: ModelServer) -> None:
    server.script(Say("All is green.", hold=True))
    desk.asks("How is the build?")
    server.wait_held()
    desk.office.daemon.kill()
    server.go_on()
    desk.codex.wait_for("All is green.")
    desk.codex.wait_for("Worked for")
    desk.office.start()
    desk.wait_answer("All is green.")


@DAEMON
def test_the_terminal_dies_and_the_daemon_of_codex_goes_on(desk: CodexDesk, server: ModelServer) -> None:
    server.script(Say("All is green.", hold=True))
    desk.asks("How is the build?")
    server.wait_held()
    desk.codex.kill()
    server.go_on()
    desk.wait_answer("All is green.")
    desk.wait_for_state("idle")


@BOTH
@pytest.mark.parametrize("also_hiboss", [False, True], ids=["codex", "both"])
def test_codex_dies_and_the_mail_waits_until_it_is_resumed(
    desk: CodexDesk, server: ModelServer, also_hiboss: bool
) -> None:
    server.script(Say("Let me think about it.", hold=True))
    envelope = desk.asks("How is the build?")
    server.wait_held()
    thread = desk.codex.thread_id
    if also_hiboss:
        desk.office.daemon.kill()
    desk.codex.kill(desk.codex.daemon_pid)
    desk.codex.close()
    if also_hiboss:
        desk.office.start()
    desk.wait_receipt(envelope, "returned")
    assert desk.attached() == []
    server.go_on()
    server.when(has_the_mail, *[Say("All is green.")] * 3)
    desk.codex.start(*desk.way, "resume", thread)
    desk.codex.enter("go on")
    desk.wait_answer("All is green.")
    desk.wait_receipt(envelope, "done")
    desk.wait_for_state("idle")
    assert [(one["agent"], one["session"]) for one in desk.attached()] == [("nex", thread)]
