"""Lines that codex 0.166.0 printed, by what was done (codex_recorded.jsonl), and a stand-in that prints such.

The stand-in is a program of its own: for each request it prints the lines of its plan, and it keeps what it got.
"""

from __future__ import annotations

import json
import os
import sys
import textwrap
from pathlib import Path
from typing import Any

from hiboss.agents.providers.codex.provider import Codex
from hiboss.core.contracts.provider import TurnInput
from hiboss.core.option_models import load
from hiboss.testing.recorded_run import sample_turn

Line = dict[str, Any]
THREAD = "01a1e3db-bfae-7823-bac7-e23daa0bd8b5"
FIRST, WITH_TOOL, APPROVALS = "first turn", "tool and words", "approvals"
STAND_IN = """
    import json, pathlib, sys
    here = pathlib.Path(__file__).parent
    if "--version" in sys.argv:
        print("codex-cli", (here / "version").read_text())
        sys.exit()
    plan = json.loads((here / "plan.json").read_text())
    with open(here / "got.jsonl", "a") as got:
        for text in sys.stdin:
            line = json.loads(text)
            got.write(text)
            got.flush()
            for said in plan.get(line.get("method") or "answer", []):
                if "error" in said or "result" in said:
                    said = {**said, "id": line["id"]}
                print(json.dumps(said), flush=True)
    while plan.get("stays"):
        import time
        time.sleep(60)
"""


def recorded(name: str) -> list[Line]:
    """Return the recorded lines of one thing that was done."""
    found = map(json.loads, Path(__file__).with_suffix(".jsonl").read_text().splitlines())
    return [one["line"] for one in found if one["of"] == name]


def turn_of(lines: list[Line]) -> str:
    """Return the id of the turn of recorded lines."""
    return next(str(one["params"]["turn"]["id"]) for one in lines if one["method"] == "turn/started")


def error_line(message: str, info: Any = "other", *, retried: bool = False) -> Line:
    error = {"message": message, "codexErrorInfo": info, "additionalDetails": None, "misalignment": None}
    return {"method": "error", "params": {"error": error, "willRetry": retried, "threadId": THREAD}}


class StandIn:
    """A program that prints lines of a plan; by default it takes the recorded first turn."""

    def __init__(self, directory: Path, version: str = "0.169.0") -> None:
        self.directory = directory
        self.workspace = directory / "workspace"
        self.workspace.mkdir()
        self.program = directory / "codex"
        self.program.write_text(f"#!{sys.executable} -IS\n{textwrap.dedent(STAND_IN)}")
        self.program.chmod(0o755)
        (directory / "version").write_text(version)
        turn = recorded(FIRST)
        self.plan: dict[str, Any] = {
            "initialize": [{"result": {"userAgent": "hiboss/0.169.0"}}],
            "account/read": [{"result": {"account": {"type": "apiKey"}, "requiresOpenaiAuth": True}}],
            "thread/start": [{"result": {"thread": {"id": THREAD, "name": None}, "model": "gpt-5.5"}}],
            "turn/start": [{"result": {"turn": {"id": turn_of(turn)}}}, *turn],
        }

    def make(self, **settings: Any) -> Codex:
        """Return a provider for it, with the plan as it is now."""
        (self.directory / "plan.json").write_text(json.dumps(self.plan))
        return Codex(load(Codex.Settings, {"program": str(self.program), **settings}, {}))

    def turn(self, **facts: Any) -> TurnInput:
        environment = {"PATH": os.defpath, "HOME": str(self.directory)}
        return sample_turn("hello", **{"workspace": str(self.workspace), "environment": environment, **facts})

    def got(self, method: str | None = None) -> list[Line]:
        """Return what it got: of a method, or all."""
        path = self.directory / "got.jsonl"
        lines = [json.loads(one) for one in path.read_text().splitlines()] if path.exists() else []
        return [one for one in lines if method in (None, one.get("method"))]
