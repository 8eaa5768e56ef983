"""The whole story with the real programs: Ada's phone, nex (Claude Code), kai (Codex), and a restart.

Ada asks nex from her phone. nex asks kai with `hiboss send`, which it may do when Ada presses Allow. kai answers
nex, and nex answers Ada, who sees it while it is written. After a restart both go on in their sessions.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hiboss.testing.bot_api.messages import Message
from hiboss.testing.model_server import ModelServer, Request, Say, UseTool
from tests.real.programs import Programs
from tests.support.telegram_bots import TelegramDaemon, telegram_daemon
from tests.support.waits import wait_until

FIRST, SECOND = "How is the build?", "And the tests?"


@pytest.fixture
def office(tmp_path: Path, server: ModelServer, programs: Programs) -> Iterator[TelegramDaemon]:
    codex_home = tmp_path / "codex"
    codex_home.mkdir()
    env = {
        "ANTHROPIC_BASE_URL": server.anthropic_url,
        "ANTHROPIC_API_KEY": "sk-ant-api03-story",
        "CLAUDE_CONFIG_DIR": str(tmp_path / "claude"),
        "CODEX_HOME": str(codex_home),
        "HOME": str(
            tmp_path
        ),  # claude runs commands in a login shell: nothing of the user's profile may be in it
        "MODEL_KEY": "sk-story",
    }
    place = tmp_path / "home"
    place.mkdir()
    with telegram_daemon(place, **env) as made:
        yield made


class Phone:
    """Ada's phone: her chat with the bot of nex."""

    def __init__(self, office: TelegramDaemon) -> None:
        self._ada = office.api.add_person("Ada", username="ada")
        self.chat = office.pair(self._ada, office.bound_bot("nexbot"))

    def says(self, text: str) -> None:
        self._ada.says(self.chat, text)

    def allows(self, words: str) -> None:
        """Wait for a question with these words, and press its button that allows it once."""

        def is_it(one: Message) -> bool:
            return words in one.text and bool(one.buttons)

        found = self.chat.wait_for(lambda messages: any(map(is_it, messages)), seconds=60)
        question = next(filter(is_it, found))
        data = next(one.data for one in question.buttons if one.text.lower().startswith("allow"))
        assert data is not None
        told = self._ada.presses(question, data).wait()["text"]
        assert "allow" in told, told


@pytest.fixture
def phone(office: TelegramDaemon, server: ModelServer, programs: Programs) -> Phone:
    """Hire nex and kai, and let Ada open her chat with nex."""
    boss = office.boss
    claude = {"program": str(programs.claude)}
    boss.call("agent.set", name="nex", provider="claude", settings=claude)
    model = f'{{name="x",base_url="{server.openai_url}",env_key="MODEL_KEY",wire_api="responses"}}'
    codex = {
        "program": str(programs.codex),
        "arguments": f"-c 'model_providers.x={model}' -c model_provider=x",
        "model": "gpt-5.1",
    }
    boss.call("agent.register", name="kai", role="builder", provider="codex", settings=codex)
    return Phone(office)


def of_nex(request: Request) -> bool:
    return request.api == "messages"


def of_kai(request: Request) -> bool:
    return request.api == "responses"


def ask_kai(question: str) -> UseTool:
    return UseTool("Bash", {"command": f"hiboss send kai '{question}'", "description": "ask kai"})


def round_of_questions(
    office: TelegramDaemon, server: ModelServer, phone: Phone, question: str, news: str
) -> None:
    """Let Ada ask, allow what nex asks for, and see the answer while it is written."""
    server.when(
        of_nex,
        ask_kai(question),
        Say("I asked kai."),
        Say(f"{news} all is green", hold=True),
    )
    server.when(of_kai, Say(f"All green ({question})."))
    phone.says(question)
    phone.allows(f"hiboss send kai '{question}'")
    phone.chat.wait_for_text("I asked kai.", seconds=60)
    phone.chat.wait_for_draft(news, seconds=60)  # nex answers live: the rest is held back
    server.go_on()
    phone.chat.wait_for_text(f"{news} all is green", seconds=60)
    wait_until(lambda: not any(run["status"] == "running" for run in runs(office)))


def runs(office: TelegramDaemon, agent: str | None = None) -> list[dict[str, Any]]:
    found = office.boss.call("run.list", page_size=100, **({"agent": agent} if agent else {}))["runs"]
    return list(found)


def test_the_boss_asks_nex_who_asks_kai_and_both_remember_after_a_restart(
    office: TelegramDaemon, server: ModelServer, phone: Phone
) -> None:
    round_of_questions(office, server, phone, FIRST, "Built:")
    sessions = {name: {run["session"] for run in runs(office, name)} for name in ("nex", "kai")}
    assert all(len(ids) == 1 and None not in ids for ids in sessions.values()), sessions

    office.daemon.stop()
    office.start()
    before = len(server.requests)
    round_of_questions(office, server, phone, SECOND, "Tested:")

    # Both went on in the sessions of before: what was said then is in what their models read now.
    for name, mine in (("nex", of_nex), ("kai", of_kai)):
        assert {run["session"] for run in runs(office, name)} == sessions[name]
        first = next(one for one in server.requests[before:] if one.is_main and mine(one))
        assert FIRST in "\n".join(first.texts) and SECOND in "\n".join(first.texts)

    # What it used stands with each run: tokens of both, and what nex cost.
    for run in runs(office):
        assert run["status"] == "completed" and run["model"], run
        assert run["tokens_in"] > 0 and run["tokens_out"] > 0 and not run["usage_estimated"], run
        assert (run["cost"] is not None) == (run["agent"] == "nex"), run
    assert len(runs(office, "nex")) == 4 and len(runs(office, "kai")) == 2
    office.daemon.check()
