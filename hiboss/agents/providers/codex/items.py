"""The items of a turn (commands, edits, tool calls, …) as lines for people."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping
from typing import Any

from ....core.quoting import shortened
from .messages import fields, objects, text

Item = Mapping[str, Any]
CALL_CHARACTERS = 200
RESULT_CHARACTERS = 400
SHELL_OPTIONS = ("-c", "-lc")
# Shown in another way, or not for people.
SILENT = frozenset(("userMessage", "hookPrompt", "agentMessage", "reasoning", "plan", "functionCallOutput"))


def call(item: Item) -> str:
    """Return what it does now, in a line; empty: nothing to show."""
    kind = text(item.get("type"))
    if kind in SILENT:
        return ""
    known = CALLS.get(kind)
    return shortened(" ".join((known(item) if known else spaced(kind)).split()), CALL_CHARACTERS)


def result(item: Item) -> str:
    """Return what came of it, shortened; empty: nothing to show."""
    known = RESULTS.get(text(item.get("type")))
    return shortened(known(item).strip(), RESULT_CHARACTERS) if known else ""


def command_line(command: str) -> str:
    """Return a command without the shell around it: `ls -l` for `/bin/bash -c 'ls -l'`."""
    try:
        words = shlex.split(command)
    except ValueError:
        return command
    return words[2] if len(words) == 3 and words[1] in SHELL_OPTIONS else command


def patch(changes: Any) -> str:
    """Return the changes of files in full: what is done to each, and its diff."""
    parts = [
        f"{_done_to(one)} {text(one.get('path'))}\n{text(one.get('diff')).rstrip()}"
        for one in objects(changes)
    ]
    return "\n\n".join(parts)


def spaced(word: str) -> str:
    """Return a name of the protocol in plain words: `image view` for `imageView`."""
    return "".join(f" {one.lower()}" if one.isupper() else one for one in word).strip()


def _done_to(change: Item) -> str:
    kind = fields(change.get("kind"))
    moved = text(kind.get("move_path"))
    return f"move to {moved}:" if moved else text(kind.get("type")) or "change"


def _command(item: Item) -> str:
    return command_line(text(item.get("command")))


def _command_result(item: Item) -> str:
    output = text(item.get("aggregatedOutput")).strip()
    if item.get("status") == "declined":
        return "denied"
    status = item.get("exitCode")
    return f"exit status {status}: {output}" if isinstance(status, int) and status != 0 else output


def _edit(item: Item) -> str:
    paths = [text(one.get("path")) for one in objects(item.get("changes"))]
    return f"edit {', '.join(paths)}"


def _edit_result(item: Item) -> str:
    words = {"completed": "done", "declined": "denied"}
    return words.get(text(item.get("status")), text(item.get("status")))


def _tool(item: Item) -> str:
    server = text(item.get("server")) or text(item.get("namespace"))
    name = f"{server}.{text(item.get('tool'))}" if server else text(item.get("tool"))
    given = item.get("arguments")
    return f"{name} {json.dumps(given, ensure_ascii=False)}" if given else name


def _tool_result(item: Item) -> str:
    error, found = item.get("error"), item.get("result")
    if isinstance(error, dict):
        return text(error.get("message"))
    content = found.get("content") if isinstance(found, dict) else item.get("contentItems")
    parts = [text(one.get("text")) for one in objects(content)]
    return "\n".join(filter(None, parts))


def _agent(item: Item) -> str:
    return f"agent {text(item.get('tool'))} {text(item.get('prompt'))}"


CALLS: dict[str, Callable[[Item], str]] = {
    "commandExecution": _command,
    "fileChange": _edit,
    "mcpToolCall": _tool,
    "dynamicToolCall": _tool,
    "collabAgentToolCall": _agent,
    "webSearch": lambda item: f"search the web: {text(item.get('query'))}",
    "imageView": lambda item: f"look at {text(item.get('path'))}",
    "contextCompaction": lambda item: "summarize the conversation, to make room",
}
RESULTS: dict[str, Callable[[Item], str]] = {
    "commandExecution": _command_result,
    "fileChange": _edit_result,
    "mcpToolCall": _tool_result,
    "dynamicToolCall": _tool_result,
}
