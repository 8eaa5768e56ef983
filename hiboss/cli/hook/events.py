"""What is reported to the daemon for each event of a harness, and what the harness is answered."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Callable
from typing import Any, NamedTuple

from ...core.paths import Home
from . import daemon_calls, harness
from .daemon_calls import NoAnswer

PERMIT_SECONDS = 570.0  # for a person; the harness ends the hook after 600
SHORT_SECONDS = 2.0  # Codex gives its hooks for an interruption and an end three seconds
STEP_SECONDS = 4.0  # each tool waits for it, also while a daemon hangs
LATE_CHARACTERS = 2_000_000  # of a final text for the next daemon: over the limit of an answer
PROMPT_CHARACTERS = 100_000  # of a prompt: a nudge stands at its beginning


class Hook(NamedTuple):
    """One call of a hook."""

    home: Home
    client: str  # claude, codex
    agent: str | None  # that the hook was installed for
    event: dict[str, Any]  # as the harness gave it
    id: str  # of this report

    @property
    def session(self) -> str:
        return str(self.event.get("session_id") or "")

    @property
    def token(self) -> str | None:
        found = self.home.known_session(self.client, self.session).get("token")
        return str(found) if found else None


Answer = dict[str, Any]  # what the harness reads; empty: nothing is printed


def answer(hook: Hook) -> Answer:
    """Report an event, and return what the harness is to read. Raises NoAnswer."""
    name = str(hook.event.get("hook_event_name") or "")
    handler = _HANDLERS.get(name)
    return {} if handler is None else handler(hook)


def _start(hook: Hook) -> Answer:
    result = attach(hook)
    _export(hook, str(result["agent"]))
    return _context("SessionStart", str(result["briefing"]))


def attach(hook: Hook, *, again: bool = False) -> dict[str, Any]:
    """Attach the session: it has a token after this. `again`: it did not start just now."""
    process = harness.process(hook.client)
    if process is None:
        raise NoAnswer("no_harness")
    params: dict[str, Any] = {
        "client": hook.client,
        "session": hook.session,
        "pid": process.pid,
        "pid_started": process.started,
        "directory": str(hook.event.get("cwd") or os.getcwd()),
        "details": harness.details(hook.client, hook.event, process),
        "again": again,
    }
    if named := os.environ.get("HIBOSS_AGENT") or hook.agent:
        params["agent"] = named
    return daemon_calls.call(hook.home, "attached.start", params)


def _export(hook: Hook, agent: str) -> None:
    """Let the commands of the session know which agent it is, where the harness has a file for that."""
    path = os.environ.get("CLAUDE_ENV_FILE")
    if not path:
        return
    lines = [f"export HIBOSS_AGENT={shlex.quote(agent)}"]
    if os.environ.get("HIBOSS_HOME"):
        lines.append(f"export HIBOSS_HOME={shlex.quote(hook.home.path)}")
    try:
        with open(path, "w") as file:  # it is ours alone, and stays over a resume
            file.write("\n".join(lines) + "\n")
    except OSError:
        pass


def _prompt(hook: Hook) -> Answer:
    prompt = str(hook.event.get("prompt") or "")[:PROMPT_CHARACTERS]
    try:
        result = call(hook, "attached.prompt", {"event": hook.id, "prompt": prompt})
    except NoAnswer:
        daemon_calls.keep(hook.home, hook.client, hook.session, {"kind": "prompt", "event": hook.id})
        raise
    return _context("UserPromptSubmit", str(result.get("context") or ""))


def _step(hook: Hook) -> Answer:
    tool = str(hook.event.get("tool_name") or "")[:200]
    result = call(hook, "attached.step", {"tool": tool}, seconds=STEP_SECONDS)
    return _context("PostToolUse", str(result.get("context") or ""))


def _stop(hook: Hook) -> Answer:
    text = str(hook.event.get("last_assistant_message") or "")
    active = bool(hook.event.get("stop_hook_active"))
    try:
        result = call(hook, "attached.stop", {"event": hook.id, "text": text, "active": active}, seconds=13.0)
    except NoAnswer:
        report = {"kind": "stop", "event": hook.id, "text": text[:LATE_CHARACTERS], "active": active}
        daemon_calls.keep(hook.home, hook.client, hook.session, report)
        raise
    block = str(result.get("block") or "")
    return {"decision": "block", "reason": block} if block else {}


def _break(hook: Hook) -> Answer:
    call(hook, "attached.break", {"event": hook.id}, seconds=SHORT_SECONDS)
    return {}


def _permit(hook: Hook) -> Answer:
    """Ask the boss. Without an answer the harness asks in its terminal, as it does without this hook."""
    params = {
        "tool": str(hook.event.get("tool_name") or "a tool")[:200],
        "input": json.dumps(hook.event.get("tool_input"), ensure_ascii=False),
    }
    result = call(hook, "attached.permit", params, seconds=PERMIT_SECONDS)
    if result.get("decision") not in ("allow", "deny"):
        return {}
    decision = {"behavior": result["decision"]}
    if result["decision"] == "deny":
        decision["message"] = str(result.get("message") or "")
    return {"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": decision}}


def _end(hook: Hook) -> Answer:
    if hook.event.get("reason") != "clear":  # then the session goes on under another id
        call(hook, "attached.end", {"event": hook.id}, seconds=SHORT_SECONDS)
    return {}


def call(
    hook: Hook, method: str, params: dict[str, Any], seconds: float = daemon_calls.SECONDS
) -> dict[str, Any]:
    """Call an operation as the session. If its token is not valid any more, it is attached again."""
    token = hook.token
    if token is not None:
        try:
            return daemon_calls.call(hook.home, method, {**params, "token": token}, seconds)
        except NoAnswer as error:
            if error.code not in ("bad_token", "not_attached"):
                raise
    attach(hook, again=True)
    return daemon_calls.call(hook.home, method, {**params, "token": hook.token}, seconds)


def _context(event: str, text: str) -> Answer:
    if not text:
        return {}
    return {"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}}


_HANDLERS: dict[str, Callable[[Hook], Answer]] = {
    "SessionStart": _start,
    "UserPromptSubmit": _prompt,
    "PostToolUse": _step,
    "Stop": _stop,
    "StopFailure": _break,  # of Claude Code: the model failed
    "Interrupt": _break,  # of Codex: a person pressed Esc
    "PermissionRequest": _permit,
    "SessionEnd": _end,
}
