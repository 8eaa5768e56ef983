"""What the real programs give their models of the instructions and the memory of an agent."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hiboss.testing.model_server import ModelServer, Request
from hiboss.testing.running_daemon import RunningDaemon, running_daemon
from tests.real.programs import Programs
from tests.support.shell_agents import Boss
from tests.support.waits import wait_until


@pytest.fixture
def daemon(tmp_path: Path, server: ModelServer, programs: Programs) -> Iterator[RunningDaemon]:
    for name in ("codex", "home"):
        (tmp_path / name).mkdir()
    env = {
        "ANTHROPIC_BASE_URL": server.anthropic_url,
        "ANTHROPIC_API_KEY": "sk-ant-api03-memory",
        "CLAUDE_CONFIG_DIR": str(tmp_path / "claude"),
        "CODEX_HOME": str(tmp_path / "codex"),
        "HOME": str(tmp_path),  # without the profile of the user
        "MODEL_KEY": "sk-memory",
        "PATH": programs.path,
        "IS_SANDBOX": "1",  # with another value, claude-agent-acp starts a Claude Code that refuses root
    }
    with running_daemon(tmp_path / "home", **env) as running:
        yield running
        running.check()


def settings(kind: str, server: ModelServer, programs: Programs) -> dict[str, Any]:
    model = f'{{name="x",base_url="{server.openai_url}",env_key="MODEL_KEY",wire_api="responses"}}'
    return {
        "claude": {"program": programs.claude},
        "codex": {
            "program": programs.codex,
            "arguments": f"-c 'model_providers.x={model}' -c model_provider=x",
            "model": "gpt-5.1",
        },
        "acp": {"command": programs.claude_acp},
    }[kind]


@pytest.mark.parametrize("kind", ["claude", "codex", "acp"])
def test_the_model_reads_who_it_is_and_each_change_of_its_memory_once(
    daemon: RunningDaemon, server: ModelServer, programs: Programs, kind: str
) -> None:
    ada = Boss(daemon)
    rules = Path(daemon.home.boss_file)
    rules.write_text("Never deploy on a Friday.")
    ada.call("agent.set", name="nex", provider=kind, settings=settings(kind, server, programs))
    shown = ada.call("agent.instructions", name="nex")
    assert shown["given"] is True

    def turn(said: str) -> Request:
        """Let nex take a turn; return what its model read."""
        before = len(server.turns)
        number = ada.tell("agent:nex", text=said)
        wait_until(lambda: server.turns[before:] and ada.get(number)["status"] != "pending", 60)
        assert ada.get(number)["status"] == "done", ada.call("run.list")["runs"][0]
        return server.turns[before:][-1]

    first = turn("the first thing")
    assert shown["text"] in first.everything and shown["memory"] in first.everything
    assert "> the first thing" in first.last_user

    second = turn("the second thing")
    assert "> the first thing" in second.everything  # it is the same session
    assert second.everything.count("Never deploy on a Friday.") == 1
    assert "Friday" not in second.last_user

    rules.write_text("Never deploy on a Monday.")
    daemon.register("kai", role="builder")
    third = turn("the third thing")
    assert "> Never deploy on a Monday." in third.last_user and "agent:kai" in third.last_user
    given = ada.call("run.get", id=ada.call("run.list")["runs"][0]["id"], turn=True)["turn"]
    assert given in third.everything and given.startswith("instructions: they have changed")
    assert "Monday" not in turn("the fourth thing").last_user
