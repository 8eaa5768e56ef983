"""The model server follows its script, for both APIs, and does what tests of real programs rely on."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from hiboss.testing.model_server import Cut, Fail, Hold, ModelServer, Say, StreamFail, UseTool
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
