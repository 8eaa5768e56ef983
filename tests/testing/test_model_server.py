"""The model server follows its script, for both APIs, and refuses what the real APIs refuse."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from hiboss.testing.model_server import Cut, Fail, Hold, ModelServer, Say, StreamFail, UseTool
from hiboss.testing.model_server.holds import Holds
from tests.testing.model_clients import Client, MessagesClient, ResponsesClient

BOTH = pytest.mark.parametrize("kind", [MessagesClient, ResponsesClient], ids=["messages", "responses"])


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as running:
        yield running
        assert not running.defects


@BOTH
def test_a_text_comes_word_by_word_with_its_usage(server: ModelServer, kind: type[Client]) -> None:
    server.script(Say("hello dear boss", tokens_in=20, cached=300, tokens_out=4))
    answer = kind(server).ask("good morning")
    assert (answer.deltas, answer.text) == (["hello", " dear", " boss"], "hello dear boss")
    assert (answer.tokens_in, answer.tokens_out, answer.ended) == (320, 4, True)


@BOTH
def test_a_text_may_come_as_a_whole_and_without_a_stream(server: ModelServer, kind: type[Client]) -> None:
    server.script(Say("two words", words=False), Say("two words"))
    assert kind(server).ask("one").deltas == ["two words"]
    assert kind(server).ask_at_once("two").text == "two words"


@BOTH
def test_thinking_comes_before_the_answer(server: ModelServer, kind: type[Client]) -> None:
    server.script(Say("four", thinking="two and two"))
    answer = kind(server).ask("how much")
    assert (answer.thinking, answer.text) == ("two and two", "four")


@BOTH
def test_a_tool_is_called_and_its_result_is_kept_with_the_next_request(
    server: ModelServer, kind: type[Client]
) -> None:
    server.script(UseTool("shell", {"command": "ls"}, say="let me look"), Say("two files"))
    client = kind(server)
    assert client.ask("look").text == "let me look"
    assert client.answer.calls == [("shell", {"command": "ls"})]
    assert client.give_results("a\nb").text == "two files"
    request = server.requests[-1]
    assert request.tool_results == ["a\nb"] and request.texts == ["look"]
    assert request.last_user == "look" and list(request.tools) == ["shell"]


@BOTH
def test_several_tools_are_called_in_one_answer(server: ModelServer, kind: type[Client]) -> None:
    server.script(UseTool("shell", {"n": 1}, also=(UseTool("shell", {"n": 2}),)))
    client = kind(server)
    client.ask("look")
    assert client.answer.calls == [("shell", {"n": 1}), ("shell", {"n": 2})]
    client.give_results("one", "two")
    assert server.requests[-1].tool_results == ["one", "two"]


def test_a_custom_tool_gets_free_text_and_one_of_a_namespace_names_it(server: ModelServer) -> None:
    space = {"type": "namespace", "name": "own", "tools": [{"type": "custom", "name": "patch"}]}
    server.script(UseTool("patch", "*** Begin"))
    client = ResponsesClient(server, tools=[space])
    client.ask("patch it")
    (item,) = client.answer.items
    assert (item["type"], item["name"], item["input"], item["namespace"]) == (
        "custom_tool_call",
        "patch",
        "*** Begin",
        "own",
    )


def test_tools_that_the_input_adds_make_a_request_one_of_a_turn(server: ModelServer) -> None:
    server.script(Say("main"))
    client = ResponsesClient(server, tools=[])
    client.items.append({"type": "additional_tools", "role": "developer", "tools": [{"type": "local_shell"}]})
    assert client.ask("hello").text == "main"
    assert list(server.turns[0].tools) == ["local_shell"]


def test_tools_that_a_search_found_can_be_called(server: ModelServer) -> None:
    search = {"type": "tool_search", "execution": "client"}
    server.script(UseTool("tool_search", {"query": "mail"}), UseTool("send", {"to": "boss"}), Say("sent"))
    client = ResponsesClient(server, tools=[search])
    client.ask("send it")
    (called,) = client.answer.items
    assert (called["type"], called["arguments"]) == ("tool_search_call", {"query": "mail"})
    space = {"type": "namespace", "name": "mcp__hiboss", "tools": [{"type": "function", "name": "send"}]}
    found = {"type": "tool_search_output", "call_id": called["call_id"], "tools": [space]}
    client.items += [called, found]
    (sent,) = client.send().items
    assert (sent["type"], sent["name"], sent["namespace"]) == ("function_call", "send", "mcp__hiboss")
    assert list(server.turns[-1].tools) == ["tool_search", "send"]


@BOTH
def test_a_request_without_tools_uses_up_nothing(server: ModelServer, kind: type[Client]) -> None:
    queue = server.script(Say("for the turn"))
    assert kind(server, tools=[]).ask("a title, please").text == "A title"
    assert queue.left == [Say("for the turn")] and not server.turns
    assert kind(server).ask("hello").text == "for the turn"
    assert not queue.left and len(server.requests) == 2


@BOTH
def test_an_empty_script_repeats_the_last_line(server: ModelServer, kind: type[Client]) -> None:
    assert kind(server).ask("first line\nlast line\n").text == "You said: last line"


@BOTH
def test_matching_requests_have_a_queue_of_their_own(server: ModelServer, kind: type[Client]) -> None:
    common = server.script(Say("for all"))
    special = server.when(lambda request: "kai" in request.system, Say("for kai"))
    assert kind(server, system="you are kai").ask("hello").text == "for kai"
    assert not special.left and common.left
    assert kind(server, system="you are kai").ask("hello").text == "for all"


@BOTH
def test_what_the_harness_adds_is_not_what_the_user_said(server: ModelServer, kind: type[Client]) -> None:
    client = kind(server, system="be short")
    client.say("<system-reminder>it is late</system-reminder>")
    client.ask("hello")
    request = server.requests[-1]
    assert request.texts == ["hello"]
    assert "be short" in request.system and "it is late" in request.system
    assert "hello" in request.everything and "it is late" in request.everything


# --- faults ----------------------------------------------------------------------------------


@BOTH
def test_a_fault_is_repeated_for_the_same_request_and_not_for_the_next(
    server: ModelServer, kind: type[Client]
) -> None:
    queue = server.script(Fail(529), Say("well"))
    client = kind(server)
    assert [client.ask_again("hello").status for _ in range(4)] == [529] * 4
    assert queue.left == [Say("well")]
    assert kind(server).ask("another one").text == "well"


@BOTH
def test_a_fault_may_end_after_some_times(server: ModelServer, kind: type[Client]) -> None:
    server.script(Fail(500, times=2), Say("well"))
    client = kind(server)
    assert [client.ask_again("hello").status for _ in range(3)] == [500, 500, 200]
    assert client.answer.text == "well"


@BOTH
def test_a_fault_has_its_words_and_headers(server: ModelServer, kind: type[Client]) -> None:
    server.script(
        Fail(429, "usage_limit_reached", "no more today", 7, {"x-plan": "plus"}, {"resets_in_seconds": 60})
    )
    answer = kind(server).ask("hello")
    assert answer.status == 429
    assert answer.headers["retry-after"] == "7" and answer.headers["x-plan"] == "plus"
    error = answer.body["error"]
    assert (error["type"], error["message"]) == ("usage_limit_reached", "no more today")
    assert error["resets_in_seconds"] == 60


@pytest.mark.parametrize(
    ("status", "word"),
    [(401, "authentication_error"), (429, "rate_limit_error"), (529, "overloaded_error"), (500, "api_error")],
)
def test_a_fault_of_the_messages_api_has_the_type_of_its_status(
    server: ModelServer, status: int, word: str
) -> None:
    server.script(Fail(status))
    body = MessagesClient(server).ask("hello").body
    assert body["type"] == "error" and body["error"]["type"] == word


@BOTH
def test_a_stream_may_end_with_an_error(server: ModelServer, kind: type[Client]) -> None:
    server.script(StreamFail("overloaded_error", "too many", after="some words"))
    answer = kind(server).ask("hello")
    assert answer.text == "some words" and answer.error == ("overloaded_error", "too many")


@BOTH
def test_a_stream_may_be_cut(server: ModelServer, kind: type[Client]) -> None:
    server.script(Cut("some words"))
    client = kind(server)
    with pytest.raises(httpx.RemoteProtocolError):
        client.ask("hello")
    assert client.answer.text == "some words" and not client.answer.ended


@BOTH
def test_an_answer_waits_after_its_first_word(server: ModelServer, kind: type[Client]) -> None:
    server.script(Say("one two", hold=True))
    client = kind(server)
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(client.ask, "hello")
        server.wait_held()
        client.heard.wait(30)
        assert client.answer.deltas == ["one"] and not asked.done()
        server.go_on()
        assert asked.result(30).deltas == ["one", " two"]


@BOTH
def test_a_whole_text_waits_for_the_end_of_its_answer(server: ModelServer, kind: type[Client]) -> None:
    server.script(Say("one two", hold_end=True))
    client = kind(server)
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(client.ask, "hello")
        server.wait_held()
        while client.answer.deltas != ["one", " two"]:
            assert not asked.done()
            time.sleep(0.01)
        assert not client.answer.ended and not asked.done()
        server.go_on()
        assert asked.result(30).ended


@BOTH
def test_nothing_at_all_is_answered_until_it_goes_on(server: ModelServer, kind: type[Client]) -> None:
    server.script(Hold(then=Say("late")))
    client = kind(server)
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(client.ask, "hello")
        server.wait_held()
        assert client.answer.status is None and not asked.done()
        server.go_on()
        assert asked.result(30).text == "late"


@BOTH
def test_who_goes_away_holds_nothing(server: ModelServer, kind: type[Client]) -> None:
    server.script(Hold())
    client = kind(server)
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(client.ask, "hello")
        server.wait_held()
        server.unplug()
        assert isinstance(asked.exception(30), httpx.TransportError)
    server.plug()
    assert kind(server).ask("hello again").text == "You said: hello again"


def test_without_network_connections_are_refused_until_it_is_back(server: ModelServer) -> None:
    server.unplug()
    with pytest.raises(httpx.ConnectError):
        MessagesClient(server).ask("hello")
    server.plug()
    assert MessagesClient(server).ask("hello").text == "You said: hello"
    assert ResponsesClient(server).ask("hello").text == "You said: hello"


def test_the_end_of_the_server_ends_what_is_held() -> None:
    before = set(threading.enumerate())
    with ThreadPoolExecutor(1) as pool:
        with ModelServer() as server:
            server.script(Hold())
            asked = pool.submit(MessagesClient(server).ask, "hello")
            server.wait_held()
        asked.exception(30)
    for thread in set(threading.enumerate()) - before:
        thread.join(30)
        assert not thread.is_alive()


def test_waiting_for_what_never_comes_ends(server: ModelServer) -> None:
    with pytest.raises(TimeoutError):
        server.wait_held(seconds=0.01)
    with pytest.raises(TimeoutError):
        server.wait_turns(1, seconds=0.01)
    MessagesClient(server).ask("hello")
    server.wait_turns(1)


# --- refusals -------------------------------------------------------------------------


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
def refusing() -> Iterator[ModelServer]:
    with ModelServer() as running:
        yield running
        assert not running.defects


def post(refusing: ModelServer, path: str, body: object, **headers: str | None) -> httpx.Response:
    given = {**KEYS, **{name.replace("_", "-"): value for name, value in headers.items()}}
    kept = {name: value for name, value in given.items() if value is not None}
    return httpx.post(f"{refusing.anthropic_url}{path}", json=body, headers=kept, timeout=30)


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
    refusing: ModelServer, change: dict[str, Any], reason: str
) -> None:
    body = {name: value for name, value in {**MESSAGES, **change}.items() if value is not None}
    before = len(refusing.requests)
    found = post(refusing, "/v1/messages?beta=true", body)
    assert (found.status_code, found.json()["error"]["type"]) == (400, "invalid_request_error")
    assert reason in found.json()["error"]["message"]
    assert len(refusing.requests) == before and reason in refusing.refused[-1].message


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
def test_the_messages_api_takes_what_is_right(refusing: ModelServer, messages: list[Any]) -> None:
    assert post(refusing, "/v1/messages", {**MESSAGES, "messages": messages}).status_code == 200


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
    refusing: ModelServer, change: dict[str, Any], reason: str
) -> None:
    body = {name: value for name, value in {**RESPONSES, **change}.items() if value is not None}
    found = post(refusing, "/v1/responses", body, anthropic_version=None, x_api_key=None)
    assert found.status_code == 400 and reason in found.json()["error"]["message"]


@pytest.mark.parametrize("given", ["hello", [SAID, CALLED, OUTPUT], [SAID, {"type": "web_search_call"}]])
def test_the_responses_api_takes_what_is_right(refusing: ModelServer, given: Any) -> None:
    body = {**RESPONSES, "input": given}
    assert post(refusing, "/v1/responses", body, anthropic_version=None).status_code == 200


@pytest.mark.parametrize(("path", "body"), [("/v1/messages", MESSAGES), ("/v1/responses", RESPONSES)])
def test_nobody_gets_an_answer_without_a_key(refusing: ModelServer, path: str, body: Any) -> None:
    version = KEYS["anthropic-version"] if path == "/v1/messages" else None
    found = post(refusing, path, body, x_api_key=None, authorization=None, anthropic_version=version)
    assert found.status_code == 401 and found.json()["error"]["message"]
    assert "retry-after" not in found.headers


def test_only_the_right_key_is_taken_where_one_is_set() -> None:
    with ModelServer(key="right") as refusing:
        assert post(refusing, "/v1/messages", MESSAGES, authorization=None).status_code == 401
        assert post(refusing, "/v1/messages", MESSAGES, x_api_key="right").status_code == 200
        assert post(refusing, "/v1/responses", RESPONSES, anthropic_version=None).status_code == 401
        given = {"authorization": "Bearer right", "anthropic_version": None, "x_api_key": None}
        assert post(refusing, "/v1/responses", RESPONSES, **given).status_code == 200


@pytest.mark.parametrize("path", ["/v1/nothing", "/", "/v1/messages/batches", "/v1/responses/compact"])
def test_an_unknown_path_is_not_found(refusing: ModelServer, path: str) -> None:
    assert post(refusing, path, MESSAGES).status_code == 404
    assert httpx.get(f"{refusing.anthropic_url}{path}", headers=KEYS).status_code == 404


@pytest.mark.parametrize("path", ["/v1/messages", "/v1/responses"])
def test_what_is_no_json_is_refused(refusing: ModelServer, path: str) -> None:
    assert [
        httpx.post(f"{refusing.anthropic_url}{path}", content=content, headers=KEYS).status_code
        for content in (b"", b"{", b"[]", b"\xff")
    ] == [400] * 4


def test_a_version_must_be_named(refusing: ModelServer) -> None:
    found = post(refusing, "/v1/messages", MESSAGES, anthropic_version=None)
    assert found.status_code == 400 and "anthropic-version" in found.json()["error"]["message"]


def test_models_are_listed_and_tokens_counted(refusing: ModelServer) -> None:
    assert httpx.get(f"{refusing.openai_url}/models", headers={"authorization": "Bearer k"}).json()["data"]
    assert httpx.get(f"{refusing.openai_url}/models").status_code == 401
    counted = {name: value for name, value in MESSAGES.items() if name != "max_tokens"}
    assert post(refusing, "/v1/messages/count_tokens", counted).json()["input_tokens"] > 0
    assert post(refusing, "/v1/messages/count_tokens", {**counted, "messages": []}).status_code == 400


# --- answers that are held ------------------------------------------------------------------------


def test_an_answer_that_goes_on_is_held_no_more_also_before_its_thread_runs_again() -> None:
    holds = Holds()
    hold = holds.enter()
    holds.wait(1, 0)
    holds.go_on()
    with pytest.raises(TimeoutError):
        holds.wait(1, 0)
    assert holds.stay(hold, lambda: False)
    holds.enter()
    holds.wait(1, 0)
