"""Which agent the real Codex is: over /clear, a new start, two terminals; and which threads are nobody's."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from hiboss.testing.model_server import ModelServer, Say
from tests.real.codex_desk import NAMES, SECONDS, WAYS, CodexDesk, office_of, shell
from tests.real.programs import Programs
from tests.support.waits import wait_until


@pytest.fixture(params=WAYS, ids=NAMES)
def desk(
    request: pytest.FixtureRequest, tmp_path: Path, programs: Programs, server: ModelServer
) -> Iterator[CodexDesk]:
    """Return a desk whose agent has the name of its directory. Codex is not open yet."""
    with office_of(tmp_path, request.param) as office:
        made = CodexDesk(office, tmp_path / "desk", programs, server, way=request.param, agent=None)
        made.codex.trust_all()
        with made.codex:
            yield made


def test_it_stays_the_same_agent_after_clear_and_after_a_new_start(
    desk: CodexDesk, server: ModelServer
) -> None:
    desk.open()
    first = desk.attached()[0]["session"]
    desk.codex.enter("/clear")
    desk.codex.until(lambda: "Codex hears hello." not in desk.codex.screen(), "cleared screen")
    desk.says("once more", "Codex hears you.")
    wait_until(lambda: [one["session"] for one in desk.attached()] not in ([], [first]), SECONDS)
    desk.wait_for_state("idle")
    second = desk.attached()[0]["session"]
    desk.codex.close()
    desk.open(hello="a new day")
    wait_until(lambda: [one["session"] for one in desk.attached()] not in ([], [second]), SECONDS)
    desk.wait_for_state("idle")
    assert [one["agent"] for one in desk.attached()] == ["workspace"]
    desk.pair()
    server.script(Say("All is green."))
    desk.asks("How is the build?")
    desk.wait_answer("All is green.")
    desk.codex.wait_for("All is green.")
    assert desk.answers() == ["All is green."]


def test_two_terminals_in_one_directory_are_two_agents(desk: CodexDesk, server: ModelServer) -> None:
    desk.open()
    other = desk.codex.another()
    other.start(*desk.way)
    server.script(Say("The other one hears you."))
    other.enter("hello there")
    other.wait_for("The other one hears you.")
    desk.wait_for_state("idle", 2)
    assert sorted(one["agent"] for one in desk.attached()) == ["workspace", "workspace-2"]
    desk.says("still there?", "It is.")
    desk.wait_for_state("idle", 2)
    other.close()


def test_threads_that_no_person_has_open_are_not_attached(desk: CodexDesk, server: ModelServer) -> None:
    codex = desk.codex
    words = [codex.programs.codex, "exec", "--skip-git-repo-check", "say hi"]
    server.script(Say("Hi."))
    done = subprocess.run(
        words, cwd=codex.workspace, env=codex.env, capture_output=True, text=True, stdin=subprocess.DEVNULL
    )
    assert "Hi." in done.stdout, done.stderr
    server.script(Say("Hi, editor."))
    with codex.app_server("some_editor") as editor:
        thread = editor.ask("thread/start", cwd=str(codex.workspace))["thread"]["id"]
        editor.ask("turn/start", threadId=thread, input=[{"type": "text", "text": "from an editor"}])
        editor.wait_for("method", "turn/completed")
    assert server.turns[-1].last_user == "from an editor"
    assert desk.attached() == []
    desk.open()
    assert len(desk.attached()) == 1


def test_a_stopped_daemon_is_not_noticed(desk: CodexDesk, server: ModelServer) -> None:
    desk.open()
    desk.office.daemon.stop()
    server.script(shell("echo done"), Say("The turn goes on."))
    desk.codex.enter("go on")
    desk.codex.wait_for("The turn goes on.")
    screen = desk.codex.wait_for("Worked for")
    assert "hook" not in screen.lower() and "hiboss" not in screen.lower(), screen
    server.script(Say("Let me think.", hold=True))
    desk.codex.enter("think")
    server.wait_held()
    desk.codex.wait_for("Let")
    desk.codex.press("esc")
    desk.codex.wait_for("Conversation interrupted")
    server.go_on()
    assert "hook" not in desk.codex.screen().lower()
    desk.office.start()
    desk.wait_for_state("idle")


def test_the_status_says_whether_its_person_has_trusted_the_hooks(
    tmp_path: Path, programs: Programs, server: ModelServer
) -> None:
    with office_of(tmp_path) as office:
        desk = CodexDesk(office, tmp_path / "desk", programs, server, agent=None)
        assert "installed: installed, not trusted" in desk.hiboss("hooks", "status", "--client", "codex")
        desk.codex.trust_all()
        assert "trust: trusted" in desk.hiboss("hooks", "status", "--client", "codex")
        with desk.codex:
            desk.open()
            assert "Stop for workspace" in desk.hiboss("hooks", "status", "--client", "codex")
