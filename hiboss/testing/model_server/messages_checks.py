"""What the Messages API refuses: a request that is not well-formed gets 400, with the reason."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from .request import Refusal

JSON = dict[str, Any]
TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
CACHE_MARKS = 4  # blocks with cache_control in a request


def check(body: JSON, headers: Mapping[str, str]) -> None:
    """Raise Refusal if the real API would refuse the request."""
    if "anthropic-version" not in headers:
        raise _bad("anthropic-version: header is required")
    for name, kind in (("model", str), ("messages", list)):
        if not isinstance(body.get(name), kind) or not body[name]:
            raise _bad(f"{name}: Field required")
    check_limit(body)
    for index, message in enumerate(body["messages"]):
        _check_message(index, message)
    spoken = [one for one in body["messages"] if one["role"] != "system"]
    if not spoken or spoken[0]["role"] != "user":
        raise _bad("messages: first message must use the user role")
    _check_tool_calls(spoken)
    _check_tools(body.get("tools") or [])
    if (marks := _count_marks(body)) > CACHE_MARKS:
        raise _bad(f"A maximum of {CACHE_MARKS} blocks with cache_control may be provided. Found {marks}.")


def check_limit(body: JSON) -> None:
    """Raise Refusal if the number of tokens to write is not there, or cannot be."""
    limit = body.get("max_tokens")
    if limit is None:
        raise _bad("max_tokens: Field required")
    if not isinstance(limit, int) or limit < 1:
        raise _bad("max_tokens: Input should be greater than or equal to 1")
    thinking = body.get("thinking") or {}
    if thinking.get("type") == "enabled" and thinking.get("budget_tokens", 0) >= limit:
        raise _bad("max_tokens must be greater than thinking.budget_tokens")


def blocks_of(message: JSON) -> list[JSON]:
    """Return the content of a message as blocks."""
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def text_of(content: str | list[JSON]) -> str:
    """Return the text of a content."""
    if isinstance(content, str):
        return content
    return "\n".join(block.get("text", "") for block in content if isinstance(block, dict))


def _bad(message: str) -> Refusal:
    return Refusal(400, "invalid_request_error", message)


def _check_message(index: int, message: Any) -> None:
    if not isinstance(message, dict) or message.get("role") not in ("user", "assistant", "system"):
        raise _bad(f"messages.{index}.role: Input should be 'user' or 'assistant'")
    if not isinstance(message.get("content"), str | list):
        raise _bad(f"messages.{index}.content: Field required")
    if not message["content"]:
        raise _bad(f"messages.{index}: all messages must have non-empty content")
    for place, block in enumerate(blocks_of(message)):
        where = f"messages.{index}.content.{place}"
        if not isinstance(block, dict) or not isinstance(block.get("type"), str):
            raise _bad(f"{where}.type: Field required")
        if block["type"] == "text" and not (isinstance(block.get("text"), str) and block["text"].strip()):
            raise _bad("messages: text content blocks must contain non-whitespace text")
        if block["type"] == "thinking" and not block.get("signature"):
            raise _bad(f"{where}.thinking.signature: Field required")
        if block["type"] == "tool_use" and message["role"] != "assistant":
            raise _bad(f"{where}: tool_use blocks can only be in assistant messages")
        if block["type"] == "tool_result" and message["role"] != "user":
            raise _bad(f"{where}: tool_result blocks can only be in user messages")


def _check_tool_calls(messages: list[JSON]) -> None:
    """Each tool_use is answered at once by a tool_result, and no tool_result stands without its tool_use."""
    called: list[str] = []
    before: str | None = None
    for index, (role, blocks) in enumerate(_turns(messages)):
        answered = [one.get("tool_use_id") for one in blocks if one["type"] == "tool_result"]
        if missing := [one for one in called if one not in answered]:
            raise _bad(
                f"messages.{index}: `tool_use` ids were found without `tool_result` blocks immediately after:"
                f" {', '.join(missing)}. Each `tool_use` block must have a corresponding `tool_result`"
                " block in the next message."
            )
        for one in answered:
            if one not in called:
                raise _bad(
                    f"messages.{index}: unexpected `tool_use_id` found in `tool_result` blocks: {one}. Each"
                    " `tool_result` block must have a corresponding `tool_use` block in the previous message."
                )
        called = [one["id"] for one in blocks if one["type"] == "tool_use"]
        if len(set(called)) < len(called):
            raise _bad("messages: `tool_use` ids must be unique")
        before = role
    if called and before == "assistant":
        raise _bad(f"messages: `tool_use` ids were found without `tool_result` blocks: {', '.join(called)}")


def _turns(messages: list[JSON]) -> list[tuple[str, list[JSON]]]:
    """Return the messages with neighbours of one role joined, as the API joins them."""
    turns: list[tuple[str, list[JSON]]] = []
    for message in messages:
        if turns and turns[-1][0] == message["role"]:
            turns[-1][1].extend(blocks_of(message))
        else:
            turns.append((message["role"], list(blocks_of(message))))
    return turns


def _check_tools(tools: Any) -> None:
    if not isinstance(tools, list) or not all(isinstance(one, dict) for one in tools):
        raise _bad("tools: Input should be a valid list")
    names = [str(one.get("name", "")) for one in tools]
    for index, name in enumerate(names):
        if not TOOL_NAME.fullmatch(name):
            raise _bad(f"tools.{index}.custom.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'")
        if tools[index].get("type", "custom") == "custom" and "input_schema" not in tools[index]:
            raise _bad(f"tools.{index}.custom.input_schema: Field required")
    if len(set(names)) < len(names):
        raise _bad("tools: Tool names must be unique.")


def _count_marks(given: Any) -> int:
    if isinstance(given, list):
        return sum(map(_count_marks, given))
    if not isinstance(given, dict):
        return 0
    own = 1 if given.get("cache_control") else 0
    return own + sum(_count_marks(one) for key, one in given.items() if key not in ("input", "input_schema"))
