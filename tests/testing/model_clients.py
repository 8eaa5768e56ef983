"""Clients of the two APIs of the model server, as far as its tests need them."""

from __future__ import annotations

import json
import threading
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx

from hiboss.testing.model_server import ModelServer

JSON = dict[str, Any]


@dataclass
class Answered:
    """What came of a request, so far."""

    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    body: JSON = field(default_factory=dict)  # of an answer without a stream
    deltas: list[str] = field(default_factory=list)
    thinking: str = ""
    items: list[JSON] = field(default_factory=list)  # the blocks or items that are whole
    calls: list[tuple[str, Any]] = field(default_factory=list)
    tokens_in: int = 0
    tokens_out: int = 0
    error: tuple[str, str] | None = None  # of an event
    ended: bool = False

    @property
    def text(self) -> str:
        return "".join(self.deltas)


class Client(ABC):
    """A conversation with the model."""

    path: str

    def __init__(self, server: ModelServer, system: str = "", tools: list[JSON] | None = None) -> None:
        self._url = f"{server.anthropic_url}{self.path}"
        self.system = system
        self.tools = [self.tool()] if tools is None else tools
        self.answer = Answered()
        self.heard = threading.Event()  # set by the first word
        self.items: list[JSON] = []

    @abstractmethod
    def tool(self) -> JSON:
        """Return a tool named shell."""

    @abstractmethod
    def say(self, text: str) -> None:
        """Add a text of the user."""

    @abstractmethod
    def body(self, streams: bool) -> JSON:
        """Return the request."""

    @abstractmethod
    def headers(self) -> dict[str, str]:
        """Return the headers with credentials."""

    @abstractmethod
    def take(self, event: JSON) -> None:
        """Take an event into the answer."""

    @abstractmethod
    def take_whole(self, body: JSON) -> None:
        """Take an answer without a stream."""

    @abstractmethod
    def give_results(self, *results: str) -> Answered:
        """Send the results of the tools that were called."""

    def ask(self, text: str) -> Answered:
        self.say(text)
        return self.send()

    def ask_again(self, text: str) -> Answered:
        """Ask what was asked before, as a client does that repeats a request."""
        self.items.clear()
        return self.ask(text)

    def ask_at_once(self, text: str) -> Answered:
        self.say(text)
        found = httpx.post(self._url, json=self.body(streams=False), headers=self.headers(), timeout=30)
        self.answer = Answered(found.status_code, found.headers, found.json())
        self.take_whole(self.answer.body)
        return self.answer

    def send(self) -> Answered:
        self.answer = Answered()
        with httpx.stream(
            "POST", self._url, json=self.body(streams=True), headers=self.headers(), timeout=30
        ) as found:
            self.answer.status, self.answer.headers = found.status_code, found.headers
            if found.status_code != 200:
                self.answer.body = json.loads(found.read())
                return self.answer
            for line in found.iter_lines():
                if line.startswith("data: "):
                    self.take(json.loads(line.removeprefix("data: ")))
        return self.answer

    def _hear(self, delta: str) -> None:
        self.answer.deltas.append(delta)
        self.heard.set()


class MessagesClient(Client):
    """Speaks the Messages API."""

    path = "/v1/messages"

    def tool(self) -> JSON:
        return {"name": "shell", "input_schema": {"type": "object"}}

    def say(self, text: str) -> None:
        self.items.append({"role": "user", "content": text})

    def headers(self) -> dict[str, str]:
        return {"x-api-key": "k", "anthropic-version": "2023-06-01"}

    def body(self, streams: bool) -> JSON:
        return {
            "model": "claude-x",
            "max_tokens": 100,
            "system": self.system,
            "messages": self.items,
            "tools": self.tools,
            "thinking": {"type": "adaptive"},
            "stream": streams,
        }

    def take(self, event: JSON) -> None:
        answer = self.answer
        if event["type"] == "content_block_start":
            answer.items.append({**event["content_block"]})
        elif event["type"] == "content_block_delta":
            self._take_delta(event["delta"])
        elif event["type"] == "message_delta":
            answer.tokens_out = event["usage"]["output_tokens"]
        elif event["type"] == "message_start":
            usage = event["message"]["usage"]
            answer.tokens_in = usage["input_tokens"] + usage["cache_read_input_tokens"]
        elif event["type"] == "error":
            answer.error = (event["error"]["type"], event["error"]["message"])
        answer.ended = event["type"] == "message_stop"

    def _take_delta(self, delta: JSON) -> None:
        if delta["type"] == "text_delta":
            self._hear(delta["text"])
            self.answer.items[-1]["text"] += delta["text"]
        elif delta["type"] == "thinking_delta":
            self.answer.thinking += delta["thinking"]
            self.answer.items[-1]["thinking"] += delta["thinking"]
        elif delta["type"] == "signature_delta":
            self.answer.items[-1]["signature"] = delta["signature"]
        else:
            given = json.loads(delta["partial_json"])
            self.answer.items[-1]["input"] = given
            self.answer.calls.append((self.answer.items[-1]["name"], given))

    def take_whole(self, body: JSON) -> None:
        self.answer.deltas = [one["text"] for one in body["content"] if one["type"] == "text"]

    def give_results(self, *results: str) -> Answered:
        called = [one["id"] for one in self.answer.items if one["type"] == "tool_use"]
        self.items.append({"role": "assistant", "content": self.answer.items})
        blocks = [
            {"type": "tool_result", "tool_use_id": one, "content": result}
            for one, result in zip(called, results, strict=True)
        ]
        self.items.append({"role": "user", "content": blocks})
        return self.send()


class ResponsesClient(Client):
    """Speaks the Responses API."""

    path = "/v1/responses"

    def tool(self) -> JSON:
        return {"type": "function", "name": "shell", "parameters": {"type": "object"}}

    def say(self, text: str) -> None:
        part = {"type": "input_text", "text": text}
        self.items.append({"type": "message", "role": "user", "content": [part]})

    def headers(self) -> dict[str, str]:
        return {"authorization": "Bearer k"}

    def body(self, streams: bool) -> JSON:
        return {
            "model": "gpt-x",
            "instructions": self.system,
            "input": self.items,
            "tools": self.tools,
            "stream": streams,
        }

    def take(self, event: JSON) -> None:
        answer = self.answer
        if event["type"] == "response.output_text.delta":
            self._hear(event["delta"])
        elif event["type"] == "response.reasoning_summary_text.delta":
            answer.thinking += event["delta"]
        elif event["type"] == "response.output_item.done":
            answer.items.append(event["item"])
            if event["item"]["type"] == "function_call":
                answer.calls.append((event["item"]["name"], json.loads(event["item"]["arguments"])))
        elif event["type"] == "response.failed":
            error = event["response"]["error"]
            answer.error = (error["code"], error["message"])
        elif event["type"] == "response.completed":
            usage = event["response"]["usage"]
            answer.tokens_in, answer.tokens_out = usage["input_tokens"], usage["output_tokens"]
            answer.ended = True

    def take_whole(self, body: JSON) -> None:
        self.answer.deltas = [one["content"][0]["text"] for one in body["output"] if one["type"] == "message"]

    def give_results(self, *results: str) -> Answered:
        called = [one["call_id"] for one in self.answer.items if one["type"] == "function_call"]
        self.items += self.answer.items
        for one, result in zip(called, results, strict=True):
            self.items.append({"type": "function_call_output", "call_id": one, "output": result})
        return self.send()
