"""A session of the provider `acp` that is open in another program: the turn goes on in a copy, or it is lost."""

from __future__ import annotations

import json
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hiboss.agents import process_control
from hiboss.agents.providers.acp import resumption
from hiboss.core.contracts.failures import LaneError, SessionLost
from tests.agents.acp_rig import AcpRig, chunk, take
from tests.agents.test_claude_sessions import WAITS, begun
from tests.support.raising import raised

SESSION = str(uuid.uuid4())
WRITER = {"error": {"code": -32600, "message": f"thread {SESSION} already has an active writer"}}


@pytest.fixture
def holder(tmp_path: Path) -> Iterator[int]:
    """A process that has noted SESSION as its own, as Claude Code does it."""
    with begun([sys.executable, "-c", WAITS]) as process:
        noted = {"sessionId": SESSION, "procStart": process_control.started_at(process.pid)}
        notes = tmp_path / "config" / "sessions"
        notes.mkdir(parents=True)
        (notes / f"{process.pid}.json").write_text(json.dumps(noted))
        yield process.pid


def hello(name: str, **can: Any) -> dict[str, Any]:
    about = {"name": name, "version": "2"}
    capabilities = {"sessionCapabilities": {"resume": {}, **can}}
    return {"result": {"protocolVersion": 1, "agentInfo": about, "agentCapabilities": capabilities}}


def facts(rig: AcpRig) -> dict[str, Any]:
    environment = {**rig.task().environment, "CLAUDE_CONFIG_DIR": str(rig.directory / "config")}
    return {"session": SESSION, "environment": environment}


def test_a_session_that_claude_has_open_goes_on_in_a_copy(rig: AcpRig, holder: int) -> None:
    copied = {"result": {"sessionId": "the-copy"}}
    rig.plan(chunk("beside"), initialize=hello("@x/claude-agent-acp", fork={}), session_fork=copied)
    answer, run = take(rig, **facts(rig))
    assert (answer.text, run.sessions) == ("beside", ["the-copy"])
    assert answer.note and f"is open in claude (pid {holder})" in answer.note and "the-copy" in answer.note
    assert not rig.received("session/resume")
    assert [one["sessionId"] for one in rig.received("session/fork")] == [SESSION]
    assert [one["sessionId"] for one in rig.received("session/prompt")] == ["the-copy"]


def test_without_copies_a_session_that_claude_has_open_is_lost(rig: AcpRig, holder: int) -> None:
    rig.plan(chunk("beside"), initialize=hello("claude-agent-acp"))
    for _ in range(resumption.MOST_FAILURES + 1):
        caught = raised(SessionLost, take, rig, says="is open in claude", **facts(rig))
    assert "until hiboss restarts" not in caught.text
    assert not rig.received("session/resume") and not rig.received("session/prompt")


def test_sessions_of_other_agents_are_their_own_matter(rig: AcpRig, holder: int) -> None:
    rig.plan(chunk("again"), initialize=hello("another"))
    assert take(rig, **facts(rig))[1].sessions == [SESSION]


@pytest.mark.parametrize("forks", [False, True])
def test_a_session_that_the_agent_says_is_open_is_not_one_that_it_cannot_resume(
    rig: AcpRig, forks: bool
) -> None:
    can = {"fork": {}} if forks else {}
    copied = {"result": {"sessionId": "the-copy"}}
    rig.plan(
        chunk("beside"), initialize=hello("codex-acp", **can), session_resume=WRITER, session_fork=copied
    )
    for _ in range(resumption.MOST_FAILURES + 1):
        if forks:
            answer, run = take(rig, session=SESSION)
            assert run.sessions == ["the-copy"] and "is open in another program" in (answer.note or "")
            continue
        raised(SessionLost, take, rig, says=r"is open in another program$", session=SESSION)


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        ({"error": {"code": -32603, "message": "cannot copy it"}}, SessionLost),
        ({"result": {"sessionId": SESSION}}, SessionLost),
        ({"result": {}}, SessionLost),
        ({"error": {"code": -32000, "message": "Authentication required"}}, LaneError),
    ],
)
def test_a_copy_that_fails_loses_the_session_unless_every_turn_would_fail(
    rig: AcpRig, holder: int, reply: dict[str, Any], error: type[Exception]
) -> None:
    rig.plan(chunk("no"), initialize=hello("claude-agent-acp", fork={}), session_fork=reply)
    raised(error, take, rig, **facts(rig))
    assert not rig.received("session/prompt")
