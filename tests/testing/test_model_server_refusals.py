"""The model server refuses what the real APIs refuse, so that a mistake of ours shows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from hiboss.testing.model_server import ModelServer

USER = {"role": "user", "content": "hello"}
CALL = {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "shell", "input": {}}]}
RESULT = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "a"}]}
TOOL = {"name": "shell", "input_schema": {"type": "object"}}
MARK = {"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}
MESSAGES = {"model": "claude-x", "max_tokens": 10, "messages": [USER]}
SAID = {"type": "message", "role": "user", "content": "hello"}
CALLED = {"type": "function_call", "call_id": "c1", "name": "shell", "arguments": "{}"}
SEARCH = {"type": "tool_search_call", "call_id": "c1", "execution": "client", "arguments": {"query": "mail"}}
OUTPUT = {"type": "function_call_output", "call_id": "c1", "output": "a"}
RESPONSES = {"model": "gpt-x", "input": [SAID]}
KEYS = {"x-api-key": "k", "anthropic-version": "2023-06-01", "authorization": "Bearer k"}


@pytest.fixture(scope="module")
def server() -> Iterator[ModelServer]:
    with ModelServer() as running:
        yield running
        assert not running.defects


def post(server: ModelServer, path: str, body: object, **headers: str | None) -> httpx.Response:
    given = {**KEYS, **{name.replace("_", "-"): value for name, value in headers.items()}}
    kept = {name: value for name, value in given.items() if value is not None}
    return httpx.post(f"{server.anthropic_url}{path}", json=body, headers=kept, timeout=30)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"model": None}, "model"),
        ({"max_tokens": None}, "max_tokens: Field required"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"thinking": {"type": "enabled", "budget_tokens": 10}}, "budget_tokens"),
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "assistant", "content": "hi"}]}, "first message must use the user role"),
        ({"messages": [{"role": "robot", "content": "hi"}]}, "role"),
        ({"messages": [{"role": "user"}]}, "content: Field required"),
        ({"messages": [{"role": "user", "content": ""}]}, "non-empty content"),
        ({"messages": [{"role": "user", "content": [{"type": "text", "text": " "}]}]}, "non-whitespace"),
        ({"messages": [{"role": "user", "content": [{"text": "x"}]}]}, "type: Field required"),
        ({"messages": [USER, RESULT]}, "unexpected `tool_use_id`"),
        ({"messages": [USER, CALL]}, "without `tool_result`"),
        ({"messages": [USER, CALL, USER, RESULT, CALL, USER]}, "immediately after"),
        ({"messages": [USER, CALL, USER]}, "immediately after"),
        ({"messages": [{**CALL, "role": "user"}]}, "assistant messages"),
        ({"messages": [USER, {**RESULT, "role": "assistant"}]}, "user messages"),
        (
            {"messages": [USER, {"role": "assistant", "content": [{"type": "thinking", "thinking": "x"}]}]},
            "signature",
        ),
        ({"messages": [USER, {"role": "assistant", "content": [{"type": "tool_use"}]}]}, "malformed"),
        ({"tools": [TOOL, TOOL]}, "unique"),
        ({"tools": [{**TOOL, "name": "two words"}]}, "pattern"),
        ({"tools": [{"name": "shell"}]}, "input_schema"),
        ({"messages": [{"role": "user", "content": [MARK] * 5}]}, "cache_control"),
    ],
)
def test_the_messages_api_refuses_what_is_malformed(
    server: ModelServer, change: dict[str, Any], reason: str
) -> None:
    body = {name: value for name, value in {**MESSAGES, **change}.items() if value is not None}
    before = len(server.requests)
    found = post(server, "/v1/messages?beta=true", body)
    assert found.status_code == 400
    assert found.json()["error"]["type"] == "invalid_request_error"
    assert reason in found.json()["error"]["message"]
    assert len(server.requests) == before and reason in server.refused[-1].message


@pytest.mark.parametrize(
    "messages",
    [
        [USER, CALL, RESULT],
        [USER, USER],
        [USER, {"role": "system", "content": "be short"}],
        [USER, CALL, {"role": "system", "content": "be short"}, RESULT],
        [USER, CALL, RESULT, {"role": "assistant", "content": "well"}, USER],
    ],
)
def test_the_messages_api_takes_what_is_right(server: ModelServer, messages: list[Any]) -> None:
    assert post(server, "/v1/messages", {**MESSAGES, "messages": messages}).status_code == 200


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"model": None}, "'model'"),
        ({"input": None}, "'input'"),
        ({"input": []}, "'input'"),
        ({"input": ["text"]}, "input[0]"),
        ({"input": [{"type": "message", "role": "robot", "content": "x"}]}, "robot"),
        ({"input": [{"type": "message", "role": "user"}]}, "content"),
        ({"input": [SAID, OUTPUT]}, "No tool call found"),
        ({"input": [SAID, CALLED]}, "No tool output found"),
        ({"input": [SAID, SEARCH]}, "No tool output found"),
        ({"input": [SAID, {**CALLED, "call_id": ""}]}, "call_id"),
        ({"previous_response_id": "resp_1"}, "not found"),
    ],
)
def test_the_responses_api_refuses_what_is_malformed(
    server: ModelServer, change: dict[str, Any], reason: str
) -> None:
    body = {name: value for name, value in {**RESPONSES, **change}.items() if value is not None}
    found = post(server, "/v1/responses", body, anthropic_version=None, x_api_key=None)
    assert found.status_code == 400
    assert reason in found.json()["error"]["message"]


@pytest.mark.parametrize("given", ["hello", [SAID, CALLED, OUTPUT], [SAID, {"type": "web_search_call"}]])
def test_the_responses_api_takes_what_is_right(server: ModelServer, given: Any) -> None:
    body = {**RESPONSES, "input": given}
    assert post(server, "/v1/responses", body, anthropic_version=None).status_code == 200


@pytest.mark.parametrize(("path", "body"), [("/v1/messages", MESSAGES), ("/v1/responses", RESPONSES)])
def test_nobody_gets_an_answer_without_a_key(server: ModelServer, path: str, body: Any) -> None:
    version = KEYS["anthropic-version"] if path == "/v1/messages" else None
    found = post(server, path, body, x_api_key=None, authorization=None, anthropic_version=version)
    assert found.status_code == 401 and found.json()["error"]["message"]
    assert "retry-after" not in found.headers


def test_only_the_right_key_is_taken_where_one_is_set() -> None:
    with ModelServer(key="right") as server:
        assert post(server, "/v1/messages", MESSAGES, authorization=None).status_code == 401
        assert post(server, "/v1/messages", MESSAGES, x_api_key="right").status_code == 200
        assert post(server, "/v1/responses", RESPONSES, anthropic_version=None).status_code == 401
        given = {"authorization": "Bearer right", "anthropic_version": None, "x_api_key": None}
        assert post(server, "/v1/responses", RESPONSES, **given).status_code == 200


@pytest.mark.parametrize("path", ["/v1/nothing", "/", "/v1/messages/batches", "/v1/responses/compact"])
def test_an_unknown_path_is_not_found(server: ModelServer, path: str) -> None:
    assert post(server, path, MESSAGES).status_code == 404
    assert httpx.get(f"{server.anthropic_url}{path}", headers=KEYS).status_code == 404


@pytest.mark.parametrize("path", ["/v1/messages", "/v1/responses"])
def test_what_is_no_json_is_refused(server: ModelServer, path: str) -> None:
    for content in (b"", b"{", b"[]", b"\xff"):
        found = httpx.post(f"{server.anthropic_url}{path}", content=content, headers=KEYS)
        assert found.status_code == 400


def test_a_version_must_be_named(server: ModelServer) -> None:
    found = post(server, "/v1/messages", MESSAGES, anthropic_version=None)
    assert found.status_code == 400 and "anthropic-version" in found.json()["error"]["message"]


def test_models_are_listed_and_tokens_counted(server: ModelServer) -> None:
    listed = httpx.get(f"{server.openai_url}/models", headers={"authorization": "Bearer k"})
    assert listed.json()["data"]
    assert httpx.get(f"{server.openai_url}/models").status_code == 401
    counted = {name: value for name, value in MESSAGES.items() if name != "max_tokens"}
    assert post(server, "/v1/messages/count_tokens", counted).json()["input_tokens"] > 0
    assert post(server, "/v1/messages/count_tokens", {**counted, "messages": []}).status_code == 400
