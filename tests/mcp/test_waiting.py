"""Tools that wait: they end with what they wait for, with their limit, or with their caller. Asks as tasks."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, ClassVar

import anyio
import pytest
from mcp.client import advertise

from hiboss.mcp.mail_tools import wait_text
from tests.support.mcp_clients import WAYS, Chat, McpClient, Way, connections, portal
from tests.support.mcp_lines import HttpLine, NewWorkerLine, WorkerLine
from tests.support.waits import wait_until

TASKS = "io.modelcontextprotocol/tasks"


@contextmanager
def calling(chat: Chat, client: McpClient, tool: str, **arguments: Any) -> Iterator[Future[Any]]:
    """Call a tool in another thread; begins when the daemon waits."""
    before = connections(chat.daemon)
    with ThreadPoolExecutor(1) as threads:
        future = threads.submit(client.call, tool, **arguments)
        wait_until(lambda: connections(chat.daemon) != before)
        yield future


@pytest.fixture
def client(chat: Chat, way: Way) -> Iterator[McpClient]:
    with chat.client(way) as connected:
        connected.call("team")  # so that its connection to the daemon is there
        yield connected


def test_no_wait_is_longer_than_fifty_seconds() -> None:
    assert [wait_text(given) for given in (None, "1h", "99h", 70, "50s")] == ["50s"] * 5
    assert (wait_text("30s"), wait_text(2), wait_text("1m")) == ("30s", "2s", "50s")


def test_mail_that_comes_ends_a_wait(chat: Chat, client: McpClient) -> None:
    with calling(chat, client, "wait") as future:
        assert not future.done()
        number = chat.boss.tell(chat.agent, text="at last")
        found = future.result(30)
    assert [one["id"] for one in found["envelopes"]] == [number] and not found["timed_out"]


@pytest.mark.parametrize("way", WAYS[:1], ids="-".join)
def test_a_wait_ends_with_its_time(client: McpClient) -> None:
    assert client.call("wait", timeout="1s")["timed_out"] is True
    assert client.call("wait", timeout=1)["timed_out"] is True


def test_a_call_that_its_client_gives_up_frees_the_daemon(chat: Chat, client: McpClient) -> None:
    before = connections(chat.daemon)

    async def give_up() -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.client.call_tool, "wait", {})
            with anyio.fail_after(30):
                while await anyio.to_thread.run_sync(connections, chat.daemon) == before:
                    await anyio.sleep(0.02)
            tasks.cancel_scope.cancel()

    portal().call(give_up)
    wait_until(lambda: connections(chat.daemon) <= before)
    chat.boss.tell(chat.agent, text="nobody waits")
    assert client.call("inbox")["envelopes"][0]["text"] == "nobody waits"


@pytest.mark.parametrize("old", [True, False])
def test_a_client_that_is_gone_frees_the_daemon(chat: Chat, old: bool) -> None:
    kind = WorkerLine if old else NewWorkerLine
    with WorkerLine.of(chat.daemon, chat.agent.token) as keeper:
        keeper.initialize()
        before = connections(chat.daemon)
        with kind.of(chat.daemon, chat.agent.token) as line:
            if old:
                line.initialize()
            line.send("tools/call", name="wait", arguments={})
            wait_until(lambda: connections(chat.daemon) != before)
        wait_until(lambda: connections(chat.daemon) <= before)


def test_the_end_of_a_session_over_http_ends_its_waits(chat: Chat) -> None:
    line = HttpLine(chat.daemon, chat.agent.token)
    line.post("tools/call", name="team", arguments={})
    before = connections(chat.daemon)
    other = HttpLine.__new__(HttpLine)
    other.daemon, other.rest = chat.daemon, chat.daemon.rest(chat.agent.token)
    other.headers = line.headers
    with ThreadPoolExecutor(1) as threads:
        future = threads.submit(other.post, "tools/call", name="wait", arguments={})
        wait_until(lambda: connections(chat.daemon) != before)
        assert line.delete().status == 200
        assert future.result(30).status != 200
    wait_until(lambda: connections(chat.daemon) <= before)


# --- ask ---------------------------------------------------------------------------------


def test_an_answer_ends_an_ask(chat: Chat, client: McpClient) -> None:
    with calling(chat, client, "ask", question="Deploy?", options=["yes", "no"], timeout="1h") as future:
        (asked,) = chat.agent.call("ask.list")["asks"]
        chat.boss.call("ask.answer", id=asked["id"], choice="yes", comment="but slowly")
        found = future.result(30)
    assert (found["id"], found["state"], found["answer"]) == (asked["id"], "answered", "yes")
    assert found["comment"] == "but slowly" and "next" not in found


def test_an_ask_without_an_answer_is_a_handle_that_waits_on(chat: Chat, way: Way) -> None:
    with chat.client(way) as client:
        found = client.call("ask", question="Deploy?", wait="1s")
        assert found["state"] == "open" and found["id"] in found["next"]
    chat.boss.call("ask.answer", id=found["id"], choice="no")
    with chat.client(way) as client:  # days later
        again = client.call("ask", id=found["id"])
        assert (again["state"], again["answer"]) == ("answered", "no")
        assert len(chat.agent.call("ask.list", state="all")["asks"]) == 1


# --- tasks -------------------------------------------------------------------------------


class Tasked(NewWorkerLine):
    """A client of the new era that has tasks."""

    capabilities: ClassVar[dict[str, Any]] = {"extensions": {TASKS: {}}}


def test_an_ask_is_a_task_for_clients_that_have_tasks(chat: Chat) -> None:
    with Tasked.of(chat.daemon, chat.agent.token) as line:
        found = line.ask("tools/call", name="ask", arguments={"question": "Deploy?", "wait": "50s"})
        (asked,) = chat.agent.call("ask.list")["asks"]
        assert (found["resultType"], found["status"]) == ("task", "working")
        assert found["taskId"] == asked["id"] and found["pollIntervalMs"] > 0 and found["ttlMs"] is None
        assert line.ask("tasks/get", taskId=asked["id"])["status"] == "working"
        assert line.ask("tasks/update", taskId=asked["id"], inputResponses={}) is not None
        chat.boss.call("ask.answer", id=asked["id"], choice="yes")
        done = line.ask("tasks/get", taskId=asked["id"])
        assert (done["status"], done["result"]["structuredContent"]["answer"]) == ("completed", "yes")
        # Other tools answer at once.
        assert line.ask("tools/call", name="team", arguments={})["structuredContent"]["team"]


def test_a_task_is_cancelled(chat: Chat) -> None:
    with Tasked.of(chat.daemon, chat.agent.token) as line:
        number = line.ask("tools/call", name="ask", arguments={"question": "Deploy?"})["taskId"]
        line.ask("tasks/cancel", taskId=number)
        assert line.ask("tasks/get", taskId=number)["status"] == "cancelled"
        assert chat.boss.call("ask.get", id=number)["ask"]["state"] == "cancelled"


def test_an_unknown_task_and_one_of_another_agent_are_refused_with_a_code(chat: Chat) -> None:
    other = Chat(chat.daemon).agent.call("ask.create", question="Mine?")["ask"]["id"]
    with Tasked.of(chat.daemon, chat.agent.token) as line:
        for number, code in (("q999999", "not_found"), ("x", "bad_id"), (other, "not_found")):
            for method in ("tasks/get", "tasks/cancel"):
                error = line.answer(line.send(method, taskId=number))["error"]
                assert error["code"] == -32602 and error["data"]["code"] == code
        refused = line.ask("tools/call", name="ask", arguments={"question": "x", "nope": 1})
        assert (
            refused["isError"] and refused["structuredContent"]["error"]["data"]["code"] == "invalid_params"
        )


@pytest.mark.parametrize("way", [way for way in WAYS if way.is_old], ids="-".join)
def test_the_old_era_has_no_tasks(chat: Chat, way: Way) -> None:
    with chat.client(way, extensions=[advertise(TASKS)]) as client:
        assert client.call("ask", question="Deploy?", wait="1s")["state"] == "open"
