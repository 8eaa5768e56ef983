"""The Messages API: POST /v1/messages, as Claude Code uses it."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping
from typing import Any

from .messages_checks import blocks_of, text_of
from .request import Request, is_made_by_harness
from .script import Cut, Fail, Say, StreamFail, UseTool
from .wire import Wire

TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}
STATUS = {kind: status for status, kind in TYPES.items()}
JSON = dict[str, Any]


def read(body: JSON, headers: Mapping[str, str]) -> Request:
    """Read a request that was checked."""
    system = [text_of(body.get("system") or "")]
    texts: list[str] = []
    results: list[str] = []
    for message in body["messages"]:
        for block in blocks_of(message):
            if block["type"] == "tool_result":
                results.append(text_of(block.get("content") or ""))
            elif message["role"] == "user" and block["type"] == "text":
                (system if is_made_by_harness(block["text"]) else texts).append(block["text"])
            elif message["role"] == "system":
                system.append(block.get("text", ""))
    session = headers.get("x-claude-code-session-id", "")
    return Request(
        api="messages",
        model=body["model"],
        system="\n".join(system),
        texts=texts,
        tool_results=results,
        tools={tool["name"]: tool for tool in body.get("tools") or []},
        streams=bool(body.get("stream")),
        identity=("messages", session, tuple(texts), tuple(results)),
        body=body,
        headers=headers,
    )


def error(kind: str, message: str, facts: Mapping[str, Any] | None = None) -> JSON:
    """Return an error as this API says it."""
    return {
        "type": "error",
        "error": {"type": kind, "message": message, **(facts or {})},
        "request_id": f"req_{uuid.uuid4().hex[:24]}",
    }


def fail(step: Fail) -> JSON:
    """Return the body of a scripted fault."""
    kind = step.type or TYPES.get(step.status, "api_error")
    return error(kind, step.message or kind.replace("_", " ").capitalize(), step.facts)


class Answer:
    """One answer to a request: a message that is streamed, or given at once."""

    def __init__(self, request: Request, wire: Wire) -> None:
        self._request = request
        self._wire = wire

    def give(self, step: Say | UseTool) -> None:
        """Answer as the step says."""
        blocks = list(self._blocks(step))
        stop = "tool_use" if isinstance(step, UseTool) else step.stop
        if not self._request.streams:
            usage = {**_usage_in(step), "output_tokens": step.tokens_out}
            self._wire.json(200, self._message(blocks, stop, usage))
            return
        self._begin(step)
        if step.hold or holds_end(step):
            self._wire.enter_hold(at_end=holds_end(step))
        for index, block in enumerate(blocks):
            self._block(index, block, in_words=not isinstance(step, Say) or step.words)
        self._wire.stay(at_end=True)
        self._wire.event(
            {
                "type": "message_delta",
                "delta": {"stop_reason": stop, "stop_sequence": None},
                "usage": {**_usage_in(step), "output_tokens": step.tokens_out},
            }
        )
        self._wire.event({"type": "message_stop"})
        self._wire.close_stream()

    def stream_fail(self, step: StreamFail) -> None:
        """Begin an answer and end it with an error."""
        if not self._request.streams:
            self._wire.json(STATUS.get(step.type, 500), error(step.type, step.message or step.type))
            return
        self._begin(Say(step.after))
        self._unfinished(step.after)
        self._wire.event(error(step.type, step.message or step.type))
        self._wire.close_stream()

    def cut(self, step: Cut) -> None:
        """Begin an answer and close the connection."""
        if self._request.streams:
            self._begin(Say(step.after))
            self._unfinished(step.after)
        self._wire.cut()

    def _blocks(self, step: Say | UseTool) -> Iterator[JSON]:
        if step.thinking and (self._request.body.get("thinking") or {}).get("type") in (
            "adaptive",
            "enabled",
        ):
            # A client can ask for thinking without its text: then it is signed and empty.
            omitted = self._request.body["thinking"].get("display") == "omitted"
            yield {"type": "thinking", "thinking": "" if omitted else step.thinking, "signature": "c2lnbmVk"}
        text = step.text if isinstance(step, Say) else step.say
        if text:
            yield {"type": "text", "text": text}
        for use in (step, *step.also) if isinstance(step, UseTool) else ():
            yield {
                "type": "tool_use",
                "id": f"toolu_{uuid.uuid4().hex[:24]}",
                "name": use.name,
                "input": use.input,
            }

    def _message(self, content: list[JSON], stop: str | None, usage: JSON) -> JSON:
        return {
            "id": f"msg_{uuid.uuid4().hex[:24]}",
            "type": "message",
            "role": "assistant",
            "model": self._request.model,
            "content": content,
            "stop_reason": stop,
            "stop_sequence": None,
            "usage": usage,
        }

    def _begin(self, step: Say | UseTool) -> None:
        self._wire.open_stream({"request-id": f"req_{uuid.uuid4().hex[:24]}"})
        message = self._message([], None, {**_usage_in(step), "output_tokens": 1})
        self._wire.event({"type": "message_start", "message": message})
        self._wire.event({"type": "ping"})

    def _block(self, index: int, block: JSON, *, in_words: bool) -> None:
        empty = {"thinking": "", "signature": ""} if block["type"] == "thinking" else {"text": ""}
        start = {"type": block["type"], **empty}
        if block["type"] == "tool_use":
            start = {**block, "input": {}}
            self._wire.stay()
        self._wire.event({"type": "content_block_start", "index": index, "content_block": start})
        for delta in _deltas(block, in_words):
            self._wire.event({"type": "content_block_delta", "index": index, "delta": delta})
            if delta["type"] == "text_delta":
                self._wire.stay()
        self._wire.event({"type": "content_block_stop", "index": index})

    def _unfinished(self, text: str) -> None:
        """Send a block of text that does not end."""
        block = {"type": "text", "text": ""}
        self._wire.event({"type": "content_block_start", "index": 0, "content_block": block})
        for word in words_of(text):
            delta = {"type": "text_delta", "text": word}
            self._wire.event({"type": "content_block_delta", "index": 0, "delta": delta})


def holds_end(step: Say | UseTool) -> bool:
    """Tell whether the answer waits before its end."""
    return isinstance(step, Say) and step.hold_end


def words_of(text: str) -> list[str]:
    """Return the words of a text, each with the space before it: together they are the text."""
    words: list[str] = []
    for part in text.split(" "):
        words.append(part if not words else f" {part}")
    return [word for word in words if word]


def _deltas(block: JSON, in_words: bool) -> Iterator[JSON]:
    if block["type"] == "thinking":
        for word in words_of(block["thinking"]):
            yield {"type": "thinking_delta", "thinking": word}
        yield {"type": "signature_delta", "signature": block["signature"]}
    elif block["type"] == "text":
        for word in words_of(block["text"]) if in_words else [block["text"]]:
            yield {"type": "text_delta", "text": word}
    else:
        yield {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}


def _usage_in(step: Say | UseTool) -> JSON:
    return {
        "input_tokens": step.tokens_in,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": step.cached,
    }
