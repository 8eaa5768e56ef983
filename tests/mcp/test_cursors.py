"""Positions of readers, and clients that go on: after kill -9 of the client, the worker and the daemon."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.mcp_clients import INBOX, STATUS, WAYS, Chat, McpClient, Way, worker_pid
from tests.support.mcp_lines import HttpLine, notices
from tests.support.waits import wait_until
from tests.support.web_daemons import WebDaemon, kept_port, web_daemon

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebDaemon]:
    """One that has the same port after a restart."""
    shortened = {"daemon.mcp_worker.DEATH_SECONDS": 0.0}  # the tests kill more than three workers in a minute
    place = tmp_path_factory.mktemp("d")
    with kept_port() as port, web_daemon(place, shortened, web_port=port) as running:
        yield running


def kill_worker(daemon: WebDaemon) -> None:
    pid = worker_pid(daemon)
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: worker_pid(daemon) != pid)


def kill_daemon(daemon: WebDaemon) -> None:
    pid = worker_pid(daemon)
    assert pid is not None
    daemon.kill()
    wait_until(lambda: not Path(f"/proc/{pid}").exists())  # it goes with its daemon
    daemon.start()


KILLS = {"worker": kill_worker, "daemon": kill_daemon}


@pytest.fixture(params=KILLS)
def kill(request: pytest.FixtureRequest, daemon: WebDaemon) -> Callable[[], None]:
    """Kill the worker, or the daemon, which is started again."""
    return lambda: KILLS[request.param](daemon)


def read(client: McpClient, **params: object) -> list[str]:
    """Return what the boss said."""
    entries = client.call("chat_read_since", **params)["messages"]
    return [one["content"] for one in entries if one["author"] == "user"]


def test_two_subscribers_are_apart(chat: Chat, client: McpClient, human: McpClient) -> None:
    ids = [chat.human(str(number))["id"] for number in range(4)]
    client.call("chat_ack", id=ids[0])
    client.call("chat_ack", id=ids[2], subscriber="loop")
    assert read(client) == ["1", "2", "3"] and read(client, subscriber="loop") == ["3"]
    assert read(client, subscriber="page") == read(human) == read(human, subscriber="loop") == list("0123")
    assert client.call("chat_ack", id=ids[1], subscriber="loop") == {"id": ids[2], "changed": False}
    assert read(client, after_id=ids[0], limit=2, subscriber="loop") == ["1", "2"]


def test_nothing_is_lost_between_reading_and_processing_and_nothing_comes_twice(chat: Chat, way: Way) -> None:
    """A reader that is killed after each step finds what it had not acknowledged, and only that."""
    for number in range(5):
        chat.human(str(number))
    processed: list[str] = []
    while len(processed) < 5:
        with chat.client(way) as client:  # it reads, and dies
            page = client.call("chat_read_since", limit=2, subscriber="loop")
            if way.transport == "stdio":
                os.kill(client.pid, signal.SIGKILL)
        with chat.client(way) as client:
            again = client.call("chat_read_since", limit=2, subscriber="loop")
            assert again == page
            processed += [one["content"] for one in again["messages"]]
            client.call("chat_ack", id=again["last_id"], subscriber="loop")
    assert processed == list("01234")
    with chat.client(way) as client:
        assert read(client, subscriber="loop") == []


def test_a_position_is_kept_when_worker_and_daemon_are_killed(chat: Chat, kill: Callable[[], None]) -> None:
    ids = [chat.human(str(number))["id"] for number in range(3)]
    asks: dict[Way, str] = {}
    for number, way in enumerate(WAYS):
        with chat.client(way) as client:
            assert read(client, subscriber=way.era + way.transport) == list("012")
            client.call("chat_ack", id=ids[number % 3], subscriber=way.era + way.transport)
            asks[way] = chat.agent.call("ask.create", question="Deploy?")["ask"]["id"]
    kill()
    for number, way in enumerate(WAYS):
        with chat.client(way) as client:
            assert read(client, subscriber=way.era + way.transport) == list("012")[number % 3 + 1 :]
            assert read(client) == list("012")
    for way in WAYS:
        chat.boss.call("ask.answer", id=asks[way], choice="yes")
        with chat.client(way) as client:
            assert client.call("ask", id=asks[way])["answer"] == "yes"


def test_clients_go_on_after_the_worker_and_the_daemon_were_killed(
    chat: Chat, kill: Callable[[], None]
) -> None:
    """By hiboss mcp in both eras: a subscription is restored, a stream is opened again; and in the new era by HTTP."""
    ways = [way for way in WAYS if way != Way("http", "legacy")]
    with ExitStack() as stack:
        clients = [stack.enter_context(chat.client(way)) for way in ways]
        with ExitStack() as inner:
            followers = [inner.enter_context(client.following(INBOX, STATUS)) for client in clients]
            chat.human("before")
            for follower in followers:
                follower.wait(INBOX)
                follower.take()
            kill()
            chat.human("meanwhile")
            for client, follower in zip(clients, followers, strict=True):
                if client.way.is_old:
                    follower.wait(INBOX)
                else:
                    wait_until(lambda: follower.ended is not None)  # noqa: B023
        for client in clients:
            assert read(client) == ["before", "meanwhile"]
        clients[0].call("chat_ack", id=chat.entries()[-1]["id"])
        for client in clients:
            with client.following(INBOX) as follower:
                follower.take()
                last = chat.human("after")["id"]
                follower.wait(INBOX)
            assert read(client) == ["after"]
            client.call("chat_ack", id=last)


def test_a_session_over_http_that_is_gone_is_opened_again(chat: Chat, kill: Callable[[], None]) -> None:
    """The protocol says how: 404, and the client initializes."""
    line = HttpLine(chat.daemon, chat.agent.token)
    assert line.post("resources/subscribe", uri=INBOX).status == 200
    kill()
    posted = chat.human("meanwhile")
    assert line.post("tools/list").status == 404
    again = HttpLine(chat.daemon, chat.agent.token)
    with again.stream() as stream:
        assert again.post("resources/subscribe", uri=INBOX).status == 200
        assert next(notices(stream))["messages"][0]["id"] == posted["id"]
