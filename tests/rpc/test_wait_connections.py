"""Waits and those at the other end: order of answers, peers that die, the end of the daemon, a thousand."""

from __future__ import annotations

import functools
import json
import resource
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from hiboss.testing.running_daemon import RunningDaemon
from tests.support.daemons import code, line, notification, started
from tests.support.parties import Party, agent, agents, at_once
from tests.support.waiting_calls import WAIT, Line, begun, connected, many_begun, texts, waited
from tests.support.waits import wait_until

WATCH = "envelope.watch"
# A client that says when its watch is on its way, and then only waits to be killed.
CLIENT = """
import socket, sys
connection = socket.socket(socket.AF_UNIX)
connection.connect(sys.argv[1])
connection.sendall(sys.stdin.buffer.readline())
connection.sendall(b'{"jsonrpc": "2.0", "method": "daemon.ping", "id": "ping"}\\n')
print(connection.recv(65536).decode(), flush=True)
connection.recv(65536)
"""


def request(method: str, id_: Any, **params: Any) -> dict[str, Any]:
    return dict(json.loads(line(method, id_, **params)))


def write(one: Line, *documents: Any) -> None:
    one.connection.sendall(b"".join(json.dumps(document).encode() + b"\n" for document in documents))


def is_watched(party: Party) -> bool:
    """Whether somebody watches for this one; asked with a wrong cursor, so that it never watches itself."""
    return party.refusal(WATCH, after="none") == "already_watched"


# --- answers out of order ------------------------------------------------------------


def test_a_later_request_is_answered_while_a_wait_goes_on(two: tuple[Party, Party]) -> None:
    ada, bob = two
    with connected(bob.daemon) as one:
        one.ask("envelope.wait", "first", token=bob.token, timeout=WAIT)
        for number in range(5):
            one.ask("agent.self", number, token=bob.token)
        assert [one.next()["id"] for _ in range(5)] == list(range(5))  # these in their order
        one.ask("envelope.send", "send", token=ada.token, to=bob.address, text="myself")
        found = {answer["id"]: answer for answer in (one.next(), one.next())}
        assert found.keys() == {"first", "send"} and texts(found["first"]["result"]) == ["myself"]


def test_waits_of_several_on_one_connection_end_each_for_itself(daemon: RunningDaemon) -> None:
    ada, *others = agents(daemon, 5)
    with connected(daemon) as one:
        for other in others:
            one.ask("envelope.wait", other.name, token=other.token, timeout=WAIT)
        one.settled()
        for other in reversed(others):
            ada.tell(other, text=other.name)
            answer = one.next()
            assert (answer["id"], texts(answer["result"])) == (other.name, [other.name])


def test_a_batch_with_a_wait_in_it_holds_up_nobody(two: tuple[Party, Party]) -> None:
    ada, bob = two
    with connected(bob.daemon) as one:
        wait = request("envelope.wait", "wait", token=bob.token, timeout=WAIT)
        write(one, [wait, request("daemon.ping", "ping")])
        one.settled()
        write(one, [request("daemon.ping", "other")])
        assert [answer["id"] for answer in one.next()] == ["other"]
        ada.tell(bob, text="at last")
        answers = {answer["id"]: answer for answer in one.next()}
    assert answers.keys() == {"wait", "ping"} and texts(answers["wait"]["result"]) == ["at last"]


def test_a_batch_of_waits_is_answered_when_all_of_them_are(daemon: RunningDaemon) -> None:
    ada, bob, eve = agents(daemon, 3)
    with connected(daemon) as one:
        write(one, [request("envelope.wait", w.name, token=w.token, timeout=WAIT) for w in (bob, eve)])
        one.settled()
        ada.tell(eve)
        one.settled()
        ada.tell(bob)
        assert {answer["id"] for answer in one.next()} == {bob.name, eve.name}


def test_a_wait_as_a_notification_answers_nothing(two: tuple[Party, Party]) -> None:
    ada, bob = two
    with connected(bob.daemon) as one:
        write(one, notification("envelope.wait", token=bob.token, timeout=WAIT))
        one.settled()
        ada.tell(bob)
        one.settled()


# --- peers that go -------------------------------------------------------------------


def documents(party: Party) -> dict[str, Any]:
    watch = request(WATCH, "watch", token=party.token, timeout="1h")
    silent = notification(WATCH, token=party.token, timeout="1h")
    return {"request": watch, "batch": [watch], "notification": silent}


@pytest.mark.parametrize("form", ["request", "batch", "notification"])
def test_a_closed_connection_gives_its_watch_back(daemon: RunningDaemon, form: str) -> None:
    bob = agent(daemon)
    with connected(daemon) as one:
        write(one, documents(bob)[form])
        one.settled()
        assert is_watched(bob)
    wait_until(lambda: not is_watched(bob))


def test_a_client_killed_by_force_gives_its_watch_back(daemon: RunningDaemon) -> None:
    bob = agent(daemon)
    with subprocess.Popen(
        [sys.executable, "-c", CLIENT, daemon.home.socket], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as client:
        assert client.stdin and client.stdout
        client.stdin.write(line(WATCH, "watch", token=bob.token, timeout="1h"))
        client.stdin.close()
        assert json.loads(client.stdout.readline())["id"] == "ping"
        assert is_watched(bob)
        client.send_signal(signal.SIGKILL)
    wait_until(lambda: not is_watched(bob))


def test_one_that_only_writes_no_more_still_gets_its_answer(two: tuple[Party, Party]) -> None:
    ada, bob = two
    with begun(bob, WATCH) as wait:
        wait.connection.shutdown(socket.SHUT_WR)
        assert is_watched(bob)
        ada.tell(bob, text="to a listener")
        assert wait.texts() == ["to a listener"]
        assert wait.next() == {}  # and then the daemon hangs up, as after any last answer
    assert not is_watched(bob)


def test_one_that_wrote_no_more_and_then_goes_is_noticed_too(daemon: RunningDaemon) -> None:
    bob = agent(daemon)
    with begun(bob, WATCH) as wait:
        wait.connection.shutdown(socket.SHUT_WR)
        assert is_watched(bob)
    wait_until(lambda: not is_watched(bob))


def test_a_peer_with_more_waits_than_are_worked_on_is_missed_too(daemon: RunningDaemon) -> None:
    """More than the daemon reads of one connection: its end lies behind what is not read."""
    bob = agent(daemon)
    with connected(daemon) as one:
        wait = line("envelope.wait", "wait", token=bob.token, timeout="1h")
        one.connection.sendall(line(WATCH, "watch", token=bob.token, timeout="1h") + wait * 600)
        wait_until(lambda: is_watched(bob))
    wait_until(lambda: not is_watched(bob))


def test_of_many_watches_at_once_one_is_armed_and_the_next_follows(daemon: RunningDaemon) -> None:
    ada, bob, eve = agents(daemon, 3)

    def watch(one: Line) -> str:
        one.ask(WATCH, "watch", token=bob.token, timeout="1h")
        one.ask("daemon.ping", "ping")
        return code(one.next())  # its own refusal, or for the watching one the ping's answer

    with ExitStack() as stack:
        lines = [stack.enter_context(connected(daemon)) for _ in range(6)]
        outcomes = at_once([functools.partial(watch, one) for one in lines])
        assert sorted(outcomes) == ["already_watched"] * 5 + ["ok"]
    wait_until(lambda: not is_watched(bob))
    with begun(bob, WATCH) as wait, begun(eve, WATCH):  # another's watch is no hindrance
        assert texts(waited(bob)) == []  # nor is a watch one to a wait
        ada.tell(bob, text="digested")
        answer = wait.answer()
    assert texts(answer) == ["digested"] and "digested" in answer["digest"]
    assert bob.call(WATCH)["timed_out"] is False


# --- the end of the daemon -----------------------------------------------------------


def test_a_daemon_that_stops_tells_all_who_wait(tmp_path: Path) -> None:
    with started(tmp_path) as daemon, ExitStack() as stack:
        bob = Party(daemon, "agent:nex", daemon.token("nex"))
        waits = [
            stack.enter_context(begun(bob, method)) for method in ("envelope.wait", WATCH, "envelope.poll")
        ]
        batch = stack.enter_context(connected(daemon))
        write(batch, [documents(bob)["request"] | {"method": "envelope.wait"}])
        batch.settled()
        assert daemon.stop() == 0
        assert [wait.refusal() for wait in waits] == ["stopping"] * 3
        assert [code(one) for one in batch.next()] == ["stopping"]
        assert [wait.next() for wait in waits] == [{}] * 3


# --- a thousand ----------------------------------------------------------------------


@pytest.fixture
def many_files() -> Iterator[None]:
    """A thousand connections need as many descriptors; the usual soft limit is 1,024."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 4_096)), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.fixture(scope="module")
def crowd(daemon: RunningDaemon) -> Iterator[list[Party]]:
    names = [f"crowd-{number}" for number in range(100)]
    chief = daemon.token("boss")
    found: list[Party] = []
    with connected(daemon) as one:
        for name in names:
            one.ask("agent.register", name, token=chief, name=name)
        for name in names:
            found.append(Party(daemon, f"agent:{name}", one.next()["result"]["token"]))
    yield found


@pytest.mark.usefixtures("many_files")
def test_of_a_thousand_waiters_the_right_ones_wake(daemon: RunningDaemon, crowd: list[Party]) -> None:
    """Ten for each of a hundred agents; a send wakes the ten it is for, and not one of the others."""
    ada = agent(daemon)
    with many_begun(crowd * 10) as waits:
        assert len(waits) == 1_000
        chosen = crowd[7]
        ada.tell(chosen, text="for one")
        meant = [wait for place, wait in enumerate(waits) if place % 100 == 7]
        assert [wait.texts() for wait in meant] == [["for one"]] * 10
        others = [wait for place, wait in enumerate(waits) if place % 100 != 7]
        assert sum(wait.quiet() for wait in others) == 990
        rest = [one for one in crowd if one is not chosen]
        ada.send(*rest[:50], text="for fifty")
        ada.send(*rest[50:], text="for the rest")
        found = [text for wait in others for text in wait.texts()]
    assert (found.count("for fifty"), found.count("for the rest")) == (500, 490)
