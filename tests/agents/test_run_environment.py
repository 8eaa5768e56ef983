"""The environment of a run: what the daemon has, without anything secret of hiboss."""

from __future__ import annotations

from pathlib import Path

import pytest

from hiboss.agents import turn_input
from hiboss.core.paths import Home
from hiboss.testing.running_daemon import RunningDaemon
from tests.support.daemons import set_up, wait_until
from tests.support.shell_agents import Boss, Worker

OLD_TOKEN = "hbb_" + "x" * 43


def test_a_program_gets_no_variable_with_a_token_or_a_secret_in_it_and_none_that_is_denied(
    tmp_path: Path,
) -> None:
    home = set_up(tmp_path)
    secret = home.keep_secrets({"bot_token": "123456:AAE-of-a-bot"}, "8f3a")
    daemon = RunningDaemon(home)
    variables = {
        "PLAIN": "fine",
        "HIBOSS_TOKEN": OLD_TOKEN,
        "NOTE": f"the token is {OLD_TOKEN}.",
        "BOT_URL": "https://example.org/bot123456:AAE-of-a-bot/send",
        "SIGNED": "whsec_c2VjcmV0c2VjcmV0",
        "ANTHROPIC_API_KEY": "sk-not-of-hiboss",
        "AWS_SECRET_KEY": "of somebody else",
        "DEPLOY_KEY": "of somebody else",
        "HIBOSS_RUNS_ENVIRONMENT_DENY": "AWS_*, DEPLOY_KEY",
    }
    daemon.start(**variables)
    try:
        worker = Worker(daemon, tmp_path / "w")
        worker.program.does('env > "$D/env.new"; mv "$D/env.new" "$D/env"')
        Boss(daemon).tell(worker)
        file = worker.program.directory / "env"
        wait_until(file.exists)
        found = dict(line.split("=", 1) for line in file.read_text().splitlines() if "=" in line)
    finally:
        daemon.stop()
        home.forget_secrets(secret)
    assert (found["PLAIN"], found["ANTHROPIC_API_KEY"]) == ("fine", "sk-not-of-hiboss")
    assert not {"NOTE", "BOT_URL", "SIGNED", "AWS_SECRET_KEY", "DEPLOY_KEY"} & found.keys()
    assert found["HIBOSS_TOKEN"].startswith("hbr_")
    assert OLD_TOKEN not in file.read_text() and "AAE-of-a-bot" not in file.read_text()


def test_a_short_secret_leaves_out_only_the_variable_that_is_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Home(str(tmp_path / "home"))
    home.create()
    home.keep_secrets({"a": "1", "b": "longer-secret"}, "8f3a")
    monkeypatch.setenv("HARMLESS", "v1.0")
    monkeypatch.setenv("HARMFUL", "v1.0 longer-secret")
    monkeypatch.setenv("PIN", "1")
    found = turn_input.environment(home, "nex", "mark", "hbr_new")
    assert "HARMLESS" in found and not {"HARMFUL", "PIN"} & found.keys()
    assert found["HIBOSS_TOKEN"] == "hbr_new"
