"""A text that names a file with an @: Claude Code would read it, wherever it is, and ask nobody."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hiboss.core.contracts.provider import STEER
from hiboss.testing.model_server import ModelServer, Say
from hiboss.testing.running_daemon import RunningDaemon, running_daemon
from tests.real.acp_rigs import ClaudeAcpRig, CodexAcpRig
from tests.real.claude_rig import ClaudeRig
from tests.real.codex_rig import CodexRig
from tests.real.harness_rig import HarnessRig, Turn
from tests.real.programs import Programs
from tests.support.shell_agents import Boss
from tests.support.waits import wait_until

RIGS = {"claude": ClaudeRig, "claude-acp": ClaudeAcpRig, "codex": CodexRig, "codex-acp": CodexAcpRig}
SECRET = "a-secret-of-somebody-else"


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """A file outside of the workspace."""
    path = tmp_path / "elsewhere" / "secret.txt"
    path.parent.mkdir()
    path.write_text(f"{SECRET}\n")
    return path


@pytest.fixture(params=RIGS)
def rig_class(request: pytest.FixtureRequest) -> type[HarnessRig]:
    return RIGS[request.param]


def reached_the_model(server: ModelServer, word: str) -> bool:
    return any(word in str(one.body) for one in server.requests)


async def test_a_turn_that_names_a_file_does_not_give_it_to_the_model(rig: HarnessRig, secret: Path) -> None:
    (rig.workspace / "own.txt").write_text("a-secret-of-its-own\n")
    said = f'see @{secret} and @own.txt and @"{secret}" and @{secret}#L1 and @{secret.parent}/'
    await Turn(rig, said, autonomy="low").answer()
    assert reached_the_model(rig.server, f"see @{secret} and @own.txt")  # as it was said
    assert not reached_the_model(rig.server, SECRET)
    assert not reached_the_model(rig.server, "a-secret-of-its-own")


async def test_words_during_a_turn_that_name_a_file_do_not_give_it_to_the_model(
    rig: HarnessRig, secret: Path
) -> None:
    rig.server.script(Say("a long story", hold=True), Say("well"))
    turn = Turn(rig, "tell me a story", autonomy="low")
    await turn.until(lambda: turn.run.shown)
    taken = await turn.provider.steer(f"read @{secret} first")
    rig.server.go_on()
    await turn.answer()
    assert taken == (STEER in turn.provider.capabilities)
    assert reached_the_model(rig.server, f"read @{secret} first") == taken
    assert not reached_the_model(rig.server, SECRET)


# --- with a daemon -------------------------------------------------------------------------


@pytest.fixture
def daemon(tmp_path: Path, server: ModelServer, programs: Programs) -> Iterator[RunningDaemon]:
    (tmp_path / "home").mkdir()
    env = {
        "ANTHROPIC_BASE_URL": server.anthropic_url,
        "ANTHROPIC_API_KEY": "sk-ant-api03-mentions",
        "CLAUDE_CONFIG_DIR": str(tmp_path / "claude"),
        "PATH": programs.path,
        "IS_SANDBOX": "yes",  # claude-agent-acp would start a Claude Code that refuses root
        "CLAUDE_CODE_DISABLE_FILE_MENTIONS": "0",
    }
    with running_daemon(tmp_path / "home", **env) as running:
        yield running
        running.check()


@pytest.mark.parametrize("kind", ["claude", "acp"])
def test_neither_a_subject_nor_a_file_of_memory_gives_a_file_to_the_model(
    daemon: RunningDaemon, server: ModelServer, programs: Programs, secret: Path, tmp_path: Path, kind: str
) -> None:
    ada = Boss(daemon)
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    token = Path(daemon.home.path) / "tokens" / "boss"
    assert token.read_text().strip() == daemon.token("boss")
    for name in ("SOUL.md", "MEMORY.md"):
        (workspace / name).write_text(f"{name} says: @{secret} and @{token}\n")
    Path(daemon.home.boss_file).write_text(f"BOSS.md says: @{secret}\n")
    settings = {"claude": {"program": programs.claude}, "acp": {"command": programs.claude_acp}}[kind]
    ada.call(
        "agent.set", name="nex", provider=kind, settings=settings, workspace=str(workspace), description="x"
    )
    number = ada.tell("agent:nex", subject=f"about @{secret}", text=f"the token is in @{token}")
    wait_until(lambda: ada.get(number)["status"] != "pending", 60)
    assert ada.get(number)["status"] == "done", ada.call("run.list")["runs"][0]
    for said in ("BOSS.md says: @", "SOUL.md says: @", "MEMORY.md says: @", "about @", "the token is in @"):
        assert reached_the_model(server, said), said
    assert not reached_the_model(server, SECRET)
    assert not reached_the_model(server, daemon.token("boss"))
