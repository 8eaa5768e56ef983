"""The Responses API: POST /v1/responses, as Codex uses it."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping
from typing import Any

from .messages_api import holds_end, words_of
from .request import Request, is_made_by_harness
from .responses_checks import items_of, tools_of
from .script import Cut, Fail, Say, StreamFail, UseTool
from .wire import Wire

JSON = dict[str, Any]
# The type and the code of an error, by its status.
ERRORS = {
    400: ("invalid_request_error", None),
    401: ("invalid_request_error", "invalid_api_key"),
    403: ("invalid_request_error", "unsupported_country_region_territory"),
    404: ("invalid_request_error", "model_not_found"),
    429: ("requests", "rate_limit_exceeded"),
    500: ("server_error", None),
    503: ("server_error", "server_is_overloaded"),
}


def read(body: JSON, headers: Mapping[str, str]) -> Request:
    """Read a request that was checked."""
    system = [str(body.get("instructions") or "")]
    texts: list[str] = []
    results: list[str] = []
    for item in items_of(body):
        if item["type"].endswith("_output"):
            results.append(_text_of(item.get("output") or ""))
        elif item["type"] == "message" and item.get("role") in ("developer", "system"):
            system.append(_text_of(item["content"]))
        elif item["type"] == "message" and item.get("role") == "user":
            text = _text_of(item["content"])
            (system if is_made_by_harness(text) else texts).append(text)
    turn = (body.get("client_metadata") or {}).get("turn_id", "")
    session = headers.get("session-id", "")
    return Request(
        api="responses",
        model=body["model"],
        system="\n".join(system),
        texts=texts,
        tool_results=results,
        tools=tools_of(body),
        streams=bool(body.get("stream")),
        identity=("responses", session, turn, tuple(texts), tuple(results)),
        body=body,
        headers=headers,
    )


def error(kind: str, code: str | None, message: str, facts: Mapping[str, Any] | None = None) -> JSON:
    """Return an error as this API says it."""
    return {"error": {"message": message, "type": kind, "param": None, "code": code, **(facts or {})}}


def fail(step: Fail) -> JSON:
    """Return the body of a scripted fault. A given type is both the type and the code of the error."""
    kind, code = (step.type, step.type) if step.type else ERRORS.get(step.status, ("server_error", None))
    return error(kind, code, step.message or (code or kind).replace("_", " ").capitalize(), step.facts)


class Answer:
    """One answer to a request: a response that is streamed, or given at once."""

    def __init__(self, request: Request, wire: Wire) -> None:
        self._request = request
        self._wire = wire
        self._id = f"resp_{uuid.uuid4().hex}"
        self._number = 0  # of the next event

    def give(self, step: Say | UseTool) -> None:
        """Answer as the step says."""
        items = list(self._items(step))
        status = "incomplete" if isinstance(step, Say) and step.stop == "max_tokens" else "completed"
        response = self._response(status, items, _usage(step))
        if status == "incomplete":
            response["incomplete_details"] = {"reason": "max_output_tokens"}
        if not self._request.streams:
            self._wire.json(200, response)
            return
        self._begin()
        if step.hold or holds_end(step):
            self._wire.enter_hold(at_end=holds_end(step))
        for index, item in enumerate(items):
            self._item(index, item, in_words=not isinstance(step, Say) or step.words)
        self._wire.stay(at_end=True)
        self._event(f"response.{status}", response=response)
        self._wire.close_stream()

    def stream_fail(self, step: StreamFail) -> None:
        """Begin an answer and end it with an error."""
        message = step.message or step.type.replace("_", " ")
        failed = self._response("failed", [], None)
        failed["error"] = {"code": step.type, "message": message}
        if not self._request.streams:
            self._wire.json(200, failed)
            return
        self._begin()
        self._unfinished(step.after)
        self._event("response.failed", response=failed)
        self._wire.close_stream()

    def cut(self, step: Cut) -> None:
        """Begin an answer and close the connection."""
        if self._request.streams:
            self._begin()
            self._unfinished(step.after)
        self._wire.cut()

    def _items(self, step: Say | UseTool) -> Iterator[JSON]:
        if step.thinking:
            summary = [{"type": "summary_text", "text": step.thinking}]
            yield {"type": "reasoning", "id": _new("rs"), "summary": summary, "encrypted_content": "c2VhbGVk"}
        text = step.text if isinstance(step, Say) else step.say
        if text or isinstance(step, Say):
            part = {"type": "output_text", "text": text, "annotations": []}
            yield {"type": "message", "id": _new("msg"), "role": "assistant", "content": [part]}
        if isinstance(step, UseTool):
            for use in (step, *step.also):
                yield self._call(use)

    def _call(self, use: UseTool) -> JSON:
        """Return the call of a tool in the form that this tool has."""
        tool = self._request.tools.get(use.name, {})
        call: JSON = {"call_id": f"call_{uuid.uuid4().hex[:24]}"}
        if tool.get("namespace"):
            call["namespace"] = tool["namespace"]
        if tool.get("type") == "local_shell":
            return {
                "type": "local_shell_call",
                "id": _new("lsh"),
                "action": use.input,
                "status": "completed",
                **call,
            }
        if tool.get("type") == "tool_search":
            return {"type": "tool_search_call", "execution": "client", "arguments": use.input, **call}
        if tool.get("type") == "custom" or isinstance(use.input, str):
            return {
                "type": "custom_tool_call",
                "id": _new("ctc"),
                "name": use.name,
                "input": use.input,
                **call,
            }
        arguments = json.dumps(use.input)
        return {"type": "function_call", "id": _new("fc"), "name": use.name, "arguments": arguments, **call}

    def _response(self, status: str, output: list[JSON], usage: JSON | None) -> JSON:
        return {
            "id": self._id,
            "object": "response",
            "status": status,
            "model": self._request.model,
            "output": output,
            "usage": usage,
            "error": None,
            "incomplete_details": None,
        }

    def _event(self, kind: str, **facts: Any) -> None:
        self._wire.event({"type": kind, "sequence_number": self._number, **facts})
        self._number += 1

    def _begin(self) -> None:
        self._wire.open_stream({"x-request-id": f"req_{uuid.uuid4().hex}"})
        self._event("response.created", response=self._response("in_progress", [], None))
        self._event("response.in_progress", response=self._response("in_progress", [], None))

    def _item(self, index: int, item: JSON, *, in_words: bool) -> None:
        if item["type"] == "reasoning":
            self._reasoning(index, item)
        elif item["type"] == "message":
            text = item["content"][0]["text"]
            self._open_text(index, item["id"])
            for word in words_of(text) if in_words else [text]:
                self._text(index, item["id"], word)
                self._wire.stay()
            self._event("response.output_text.done", item_id=item["id"], output_index=index, text=text)
        else:
            self._wire.stay()
            self._event(
                "response.output_item.added", output_index=index, item={**item, "status": "in_progress"}
            )
        self._event("response.output_item.done", output_index=index, item={**item, "status": "completed"})

    def _reasoning(self, index: int, item: JSON) -> None:
        place = {"item_id": item["id"], "output_index": index, "summary_index": 0}
        self._event("response.output_item.added", output_index=index, item={**item, "summary": []})
        part = {"type": "summary_text", "text": ""}
        self._event("response.reasoning_summary_part.added", **place, part=part)
        for word in words_of(item["summary"][0]["text"]):
            self._event("response.reasoning_summary_text.delta", **place, delta=word)
        self._event("response.reasoning_summary_text.done", **place, text=item["summary"][0]["text"])

    def _unfinished(self, text: str) -> None:
        """Send a message that does not end."""
        name = _new("msg")
        self._open_text(0, name)
        for word in words_of(text):
            self._text(0, name, word)

    def _open_text(self, index: int, name: str) -> None:
        message = {"type": "message", "id": name, "role": "assistant", "status": "in_progress", "content": []}
        part = {"type": "output_text", "text": "", "annotations": []}
        self._event("response.output_item.added", output_index=index, item=message)
        place = {"item_id": name, "output_index": index, "content_index": 0}
        self._event("response.content_part.added", **place, part=part)

    def _text(self, index: int, name: str, word: str) -> None:
        place = {"item_id": name, "output_index": index, "content_index": 0}
        self._event("response.output_text.delta", **place, delta=word)


def _new(kind: str) -> str:
    return f"{kind}_{uuid.uuid4().hex}"


def _text_of(content: str | list[JSON]) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(part.get("text", "") for part in content)


def _usage(step: Say | UseTool) -> JSON:
    read_tokens = step.tokens_in + step.cached
    return {
        "input_tokens": read_tokens,
        "input_tokens_details": {"cached_tokens": step.cached},
        "output_tokens": step.tokens_out,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": read_tokens + step.tokens_out,
    }
