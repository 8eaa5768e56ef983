"""The rig of the provider `acp` with a scripted agent (acp_agent.py)."""

from __future__ import annotations

import asyncio
import base64
import json
import shlex
import sys
from pathlib import Path
from typing import Any

from hiboss.agents.providers.acp.provider import Acp
from hiboss.agents.providers.acp.settings import AcpSettings
from hiboss.core.contracts.failures import LaneError, TurnError
from hiboss.core.contracts.provider import Answer, Provider
from hiboss.testing.provider_contract import Turn
from hiboss.testing.recorded_run import RecordedRun
from tests.agents.provider_rigs import CommandRig
from tests.support.raising import raised

AGENT = Path(__file__).with_name("acp_agent.py")


def chunk(text: str, message: str | None = None) -> dict[str, Any]:
    """Return the step in which the agent says a piece of its answer."""
    more = {} if message is None else {"messageId": message}
    content = {"type": "text", "text": text}
    return {"update": {"sessionUpdate": "agent_message_chunk", "content": content, **more}}


def ended(**result: Any) -> dict[str, Any]:
    """Return the last step: what the prompt is answered with."""
    return {"result": {"stopReason": "end_turn", **result}}


def permission(call: dict[str, Any], *kinds: str) -> dict[str, Any]:
    """Return a request for a permission whose options have these kinds; each has its kind as id too."""
    options = [{"optionId": one, "name": one.replace("_", " "), "kind": one} for one in kinds]
    given = {"sessionId": "s-new", "toolCall": {"toolCallId": "t1", **call}, "options": options}
    return {"method": "session/request_permission", "params": given}


def form(message: str, **fields: Any) -> dict[str, Any]:
    """Return a request for the fields of a form."""
    schema = {"type": "object", "properties": fields}
    given = {"mode": "form", "sessionId": "s-new", "message": message, "requestedSchema": schema}
    return {"method": "elicitation/create", "params": given}


class AcpRig(CommandRig):
    """An agent that follows a plan."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self._command = shlex.join([sys.executable, "-I", "-S", str(AGENT), "plan.json"])
        self.settings: dict[str, Any] = {}

    def good(self) -> dict[str, Any]:
        return {"command": self._command, **self.settings}

    def bad(self) -> list[dict[str, Any]]:
        return [*super().bad(), {"command": "x", "autonomy": "full"}, {"command": "x", "model": " "}]

    def make(self) -> Provider:
        return Acp(AcpSettings(**self.good()))

    def plan(self, *steps: dict[str, Any], **methods: Any) -> None:
        """Set what the agent does with each prompt, and how it answers other methods (`session_new=…`)."""
        self.plan_prompts(list(steps), **methods)

    def plan_prompts(self, *prompts: list[dict[str, Any]], **methods: Any) -> None:
        """Set what it does with the first prompt of a turn, the second, and so on."""
        named = {name.replace("_", "/", 1): content for name, content in methods.items()}
        (self.directory / "plan.json").write_text(json.dumps({"session/prompt": prompts, **named}))

    def answers_bytes(self, answer: bytes) -> None:
        line = {"method": "session/update", "params": {"sessionId": "s-new", **chunk("HERE")}}
        text = b"".join(b"\\u%04x" % one if one < 32 else bytes([one]) for one in answer)
        raw = json.dumps(line).encode().replace(b"HERE", text) + b"\n"
        self.plan({"raw": base64.b64encode(raw).decode()})

    def answers(self, text: str) -> None:
        self.plan(*(chunk(text[place : place + 3000]) for place in range(0, len(text), 3000)))

    def answers_for(self, text: str, **usage: Any) -> None:
        names = {"tokens_in": "inputTokens", "tokens_out": "outputTokens"}
        counted = {names[name]: value for name, value in usage.items() if name in names}
        cost = {"amount": usage.get("cost"), "currency": "USD"}
        told = [{"update": {"sessionUpdate": "usage_update", "cost": cost}}] if "cost" in usage else []
        self.plan(chunk(text), *told, ended(usage=counted or None))

    def says_nothing(self) -> None:
        self.plan()

    def hangs(self) -> None:
        self.plan({"children": 2}, {"hang": True})

    def floods(self) -> None:
        self.plan({"flood": "something to say "})

    def refuses_this_one(self) -> None:
        self.plan({"error": {"code": -32603, "message": "Internal error: cannot do this one"}})

    def answers_in(self, session: str) -> None:
        opened = {"result": {"sessionId": session}}
        methods = {"session_new": opened, "session_resume": opened}
        (self.directory / "session").write_text("")
        self.plan(chunk("You said: well"), **methods)

    def waits_for_interrupt(self) -> None:
        self.plan(tool("waiting"), {"wait": "session/cancel"}, {"result": {"stopReason": "cancelled"}})

    def asks(self, *questions: str) -> None:
        yes_no = {"type": "string", "enum": ["yes", "no"]}
        self.plan({"ask": [[form(one, **{one: yes_no}) for one in questions], "{chosen}"]})

    def asks_for_tool(self, tool: str, detail: str, subject: str) -> None:
        call = {"name": tool, "title": subject, "rawInput": {"command": detail}}
        self.plan({"ask": [[permission(call, "allow_once", "reject_once")], "{chosen}"]})

    # --- what it was given -----------------------------------------------------------------

    def received(self, method: str) -> list[dict[str, Any]]:
        """Return what the agent got with each call of a method."""
        lines = (self.directory / "received").read_text().splitlines()
        return [one["params"] for one in map(json.loads, lines) if one.get("method") == method]

    def told(self) -> list[Any]:
        """Return what the agent's own requests were answered with."""
        return json.loads((self.directory / "answers").read_text())


def tool(title: str, status: str = "in_progress", number: str = "t1", **more: Any) -> dict[str, Any]:
    """Return the step in which the agent begins to use a tool."""
    content = {"sessionUpdate": "tool_call", "toolCallId": number, "title": title, "status": status}
    return {"update": {**content, **more}}


def tool_update(number: str = "t1", **more: Any) -> dict[str, Any]:
    """Return the step in which the agent tells more of a tool."""
    return {"update": {"sessionUpdate": "tool_call_update", "toolCallId": number, **more}}


def take(rig: AcpRig, choices: tuple[str, ...] = (), **facts: Any) -> tuple[Answer, RecordedRun]:
    """Take a turn and return its answer, and what was reported."""

    async def story() -> tuple[Answer, RecordedRun]:
        turn = Turn(rig, choices, **facts)
        return await turn.ends(), turn.run

    return asyncio.run(story())


def take_planned(
    rig: AcpRig, *steps: dict[str, Any], choices: tuple[str, ...] = (), **methods: Any
) -> tuple[Answer, RecordedRun]:
    """Take a turn in which the agent follows these steps; `session_new=…`: how it answers another method."""
    rig.plan(*steps, **methods)
    return take(rig, choices)


def fails(rig: AcpRig, **facts: Any) -> Any:
    """Take a turn that fails; return its error."""
    return raised((LaneError, TurnError), take, rig, **facts)


def fails_planned(rig: AcpRig, *steps: dict[str, Any], **methods: Any) -> Any:
    """Take a turn that fails in which the agent follows these steps; return its error."""
    rig.plan(*steps, **methods)
    return fails(rig)


def told(run: RecordedRun, kind: str) -> list[str]:
    return [one.text for one in run.heard if one.kind == kind]
