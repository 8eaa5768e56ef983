"""`hiboss hooks status`: what is installed, what a hook last did, and whether Codex trusts the hooks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hiboss.cli.harness_settings import codex_trust
from hiboss.cli.harness_settings.codex_hooks import CODEX
from hiboss.core.paths import Home
from tests.support.cli import HIBOSS
from tests.support.hook_desks import Desk


def test_status_shows_both_programs_and_what_a_hook_last_did(desk: Desk) -> None:
    desk.install()
    assert desk("status").blocks == [
        {
            "client": "claude",
            "settings-file": str(desk.claude),
            "installed": "yes",
            "program": HIBOSS,
            "program-exists": "true",
            "home": desk.shell.home.path,
            "asks": "false",
            "last": "no hook has run yet",
        },
        {
            "client": "codex",
            "settings-file": str(desk.codex),
            "installed": "no",
            "advice": "hiboss hooks install --client codex",
            "last": "no hook has run yet",
        },
    ]


LAST = [
    ({"event": "Stop", "at": "2026-01-28T12:08:45Z", "agent": "nex", "outcome": "2 new"}, "Stop for nex at 2026-01-28T12:08:45Z: 2 new"),
    ({"event": "Stop", "error": "no daemon"}, "Stop (error: no daemon)"),
    ({}, "a hook"),
    ([], "no hook has run yet"),
    ("{", "no hook has run yet"),
]  # fmt: skip


@pytest.mark.parametrize(("noted", "shown"), LAST, ids=lambda value: str(value)[:20])
def test_the_note_of_the_last_hook_may_be_incomplete(desk: Desk, noted: Any, shown: str) -> None:
    note = Path(Home(desk.shell.home.path).path, "sessions", "last-hook-claude.json")
    note.parent.mkdir(parents=True)
    note.write_text(noted if isinstance(noted, str) else json.dumps(noted))
    assert desk("status", "--client", "claude").record["last"] == shown


def test_status_tells_that_the_program_is_gone_and_that_hooks_are_switched_off(desk: Desk) -> None:
    desk.claude.write_text('{"disableAllHooks": true}')
    desk.install()
    desk.claude.write_text(desk.claude.read_text().replace(HIBOSS, "/gone/hiboss"))
    found = desk.status()
    assert found["program"] == "/gone/hiboss" and found["program_exists"] is False
    assert found["installed"] == "yes" and "disableAllHooks" in found["problem"]


# --- the trust of Codex --------------------------------------------------------------------

ANSWERING = """#!/bin/sh
read initialize; echo '{{"id":1,"result":{{}}}}'; echo '{{"method":"configWarning"}}'
read initialized; read list
echo '{answer}'
exec sleep 60
"""


def listed(desk: Desk, **states: str) -> str:
    """What the app-server of Codex answers about our hooks and one of somebody else's."""
    ours = {"command": f"{HIBOSS} hook codex", "sourcePath": str(desk.codex), "enabled": True}
    hooks = [{**ours, "eventName": event, "trustStatus": state} for event, state in states.items()]
    foreign = {**ours, "command": "other", "eventName": "stop", "trustStatus": "untrusted"}
    return json.dumps({"id": 2, "result": {"data": [{"cwd": "/", "hooks": [*hooks, foreign]}]}})


def with_codex(desk: Desk, script: str) -> dict[str, Any]:
    program = desk.home / "bin" / "codex"
    program.parent.mkdir()
    program.write_text(script)
    program.chmod(0o700)
    desk.install("codex")
    return desk.status("codex", PATH=f"{program.parent}:/usr/bin:/bin")


def test_hooks_that_codex_does_not_trust_are_shown_with_what_to_do(desk: Desk) -> None:
    script = ANSWERING.format(answer=listed(desk, sessionStart="trusted", stop="untrusted"))
    found = with_codex(desk, script)
    assert (found["installed"], found["trust"]) == ("installed, not trusted", "not trusted")
    assert found["trust_reason"] == "not reviewed: stop" and "/hooks" in found["advice"]


def test_hooks_that_codex_trusts_are_installed(desk: Desk) -> None:
    found = with_codex(desk, ANSWERING.format(answer=listed(desk, sessionStart="trusted", stop="managed")))
    assert (found["installed"], found["trust"]) == ("yes", "trusted")


NO_ANSWER = {
    "ends": ("#!/bin/sh\nexit 1\n", "codex did not answer"),
    "refuses": (ANSWERING.format(answer='{"id":2,"error":{"message":"unknown method"}}'), "unknown method"),
    "talks": ("#!/bin/sh\necho hello\nsleep 60\n", "codex did not answer"),
    "lists nothing": (ANSWERING.format(answer='{"id":2,"result":{"data":[]}}'), "codex does not list"),
}


@pytest.mark.parametrize(("script", "says"), NO_ANSWER.values(), ids=list(NO_ANSWER))
def test_without_an_answer_of_codex_the_trust_is_unknown(desk: Desk, script: str, says: str) -> None:
    found = with_codex(desk, script)
    assert (found["installed"], found["trust"]) == ("yes", "unknown")
    assert says in found["trust_reason"]


def test_a_codex_that_is_silent_is_not_waited_for(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    program = desk.home / "codex"
    program.write_text("#!/bin/sh\nexec sleep 60\n")
    program.chmod(0o700)
    monkeypatch.setenv("PATH", f"{desk.home}:/usr/bin:/bin")
    trust = codex_trust.ask(CODEX, str(desk.codex), seconds=0.2)
    assert trust == codex_trust.Trust(state="unknown", why="codex did not answer within 0.2 seconds")


def test_without_codex_the_trust_is_unknown(desk: Desk) -> None:
    desk.install("codex")
    assert desk.status("codex")["trust_reason"] == "the program codex is not on the PATH"
