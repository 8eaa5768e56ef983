"""Requests of one connection begin in order and are answered in order, whatever kinds are mixed in one write."""

from __future__ import annotations

import asyncio
import json
import random
import socket
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from hiboss.rpc.session import STARTED_AT_ONCE
from tests.support.daemons import all_answers
from tests.support.failures import seeded
from tests.support.in_process_connections import Streams, connected
from tests.support.in_process_daemon import InProcessDaemon, frozen
from tests.support.web_daemons import WebDaemon, web_fixture

ROUNDS = range(3)


# --- what is asked ---------------------------------------------------------------------------


def read(number: int, token: str) -> dict[str, Any]:
    """It is answered at once: there is no such envelope."""
    return request("envelope.get", number, token=token, id=f"e{900_000 + number}")


def send(number: int, token: str) -> dict[str, Any]:
    """It is answered after one write, and needs no task."""
    return request("envelope.send", number, token=token, to="agent:nex", text=f"{number}")


def in_thread(number: int, token: str) -> dict[str, Any]:
    """It is a coroutine: it needs a task."""
    return request("envelope.list", number, token=token, text=f"{number}")


def written(number: int, token: str) -> dict[str, Any]:
    """A coroutine that writes: nobody has such an envelope."""
    return request("envelope.archive", number, token=token, ids=[f"e{900_000 + number}"])


def waits(number: int, token: str) -> dict[str, Any]:
    """It may wait, so its answer has no place in the order; it is refused at once."""
    return request("envelope.poll", number, token=token, after=f"{number}", timeout_ms=-1)


def notified(number: int, token: str) -> dict[str, Any]:
    asked = send(number, token)
    del asked["id"]
    return asked


def malformed(number: int, token: str) -> dict[str, Any]:
    return {"jsonrpc": "1.0", "method": "daemon.ping", "id": number}


def batch(number: int, token: str) -> list[dict[str, Any]]:
    """The first one has the number of the batch; the others begin when they can."""
    kinds = (send, read, send, in_thread)
    return [kinds[place](number + place * 10_000, token) for place in range(4)]


KINDS: tuple[Callable[[int, str], Any], ...] = (
    read,
    send,
    in_thread,
    written,
    waits,
    notified,
    malformed,
    batch,
)


def request(method: str, number: int, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": method, "params": params, "id": number}


def mixed(chance: random.Random, count: int, token: str) -> tuple[list[Any], list[int]]:
    """Return so many requests of all kinds, and the numbers of the answers that come in order."""
    asked, ordered = [], []
    for number in range(count):
        kind = chance.choice(KINDS)
        asked.append(kind(number, token))
        if kind not in (waits, notified):
            ordered.append(number)
    return asked, ordered


def numbers(found: list[Any], ordered: list[int]) -> list[int]:
    """Return the numbers of answers, without those that have no place in the order."""
    every = [one[0]["id"] if isinstance(one, list) else one["id"] for one in found]
    return [one for one in every if one in set(ordered)]


# --- in this process, where it is seen when each begins ----------------------------------------


class Door:
    """Connections to a daemon in this process, which notes what begins."""

    def __init__(self, daemon: InProcessDaemon) -> None:
        self.dispatcher = daemon.daemon.dispatcher
        self.token = daemon.token("nex")
        self.begun: list[int] = []
        self._begin = self.dispatcher._begin
        self.dispatcher._begin = self._note  # type: ignore[method-assign]

    def _note(self, method: str, params: Any, *more: Any) -> Any:
        if "text" in params:
            self.begun.append(int(params["text"]))
        elif "page_size" in params:
            self.begun.append(0)
        elif method == "envelope.poll":
            self.begun.append(int(params["after"]))
        elif "ids" in params:
            self.begun.append(int(params["ids"][0][1:]) - 900_000)
        else:
            self.begun.append(int(params["id"][1:]) - 900_000)
        return self._begin(method, params, *more)

    def connect(self, *, small: bool = False) -> AbstractAsyncContextManager[Streams]:
        return connected(self.dispatcher, small=small)


def lines(asked: list[Any]) -> bytes:
    return b"".join(json.dumps(one).encode() + b"\n" for one in asked)


@frozen(at=None)
async def test_each_begins_after_the_one_before_and_is_answered_in_order(daemon: InProcessDaemon) -> None:
    door = Door(daemon)
    for seed in ROUNDS:
        asked, ordered = mixed(seeded(seed), 100, door.token)
        door.begun.clear()
        async with door.connect() as (reader, writer):
            writer.write(lines(asked))
            writer.write_eof()
            found = [json.loads(one) async for one in reader]
        assert numbers(found, ordered) == ordered
        first = [one for one in door.begun if one < 10_000]
        expected = [n for n, one in enumerate(asked) if isinstance(one, list) or one["jsonrpc"] == "2.0"]
        assert first == expected
        assert len(door.begun) == len(expected) + 3 * sum(isinstance(one, list) for one in asked)
        assert len(found) == len(asked) - sum(isinstance(one, dict) and "id" not in one for one in asked)


@frozen(at=None)
async def test_those_that_come_in_pieces_begin_in_order_too(daemon: InProcessDaemon) -> None:
    door, chance = Door(daemon), seeded(5)
    asked, ordered = mixed(chance, 120, door.token)
    data = lines(asked)
    async with door.connect() as (reader, writer):
        while data:
            size = chance.randrange(1, 2_000)
            writer.write(data[:size])
            data = data[size:]
            await asyncio.sleep(0)
        writer.write_eof()
        found = [json.loads(one) async for one in reader]
    assert numbers(found, ordered) == ordered
    first = [one for one in door.begun if one < 10_000]
    assert first == sorted(first)


@frozen(at=None)
async def test_one_with_many_requests_lets_another_have_its_turn(daemon: InProcessDaemon) -> None:
    door = Door(daemon)
    many = 20 * STARTED_AT_ONCE
    async with door.connect() as (busy, greedy), door.connect() as (reader, writer):
        greedy.write(lines([read(number, door.token) for number in range(many)]))
        writer.write(lines([read(5_000, door.token)]))
        await reader.readline()
        for _ in range(many):
            await busy.readline()
    assert len(door.begun) == many + 1 and door.begun.index(5_000) <= 2 * STARTED_AT_ONCE


@frozen(at=None)
async def test_no_more_is_begun_for_one_that_does_not_read_large_answers(daemon: InProcessDaemon) -> None:
    for _ in range(20):
        await daemon.send("agent:nex", text="t" * 20_000)
    door = Door(daemon)
    asked = [request("envelope.list", n, token=door.token, page_size=20) for n in range(200)]
    async with door.connect(small=True) as (reader, writer):
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        writer.write(lines(asked))
        before = -1
        while before != len(door.begun):
            before = len(door.begun)
            for _ in range(200):
                await asyncio.sleep(0)
        assert 0 < before < STARTED_AT_ONCE  # each is larger than what is kept for a peer
        writer.transport.resume_reading()  # type: ignore[attr-defined]
        found = [json.loads(await reader.readline()) for _ in asked]
    assert [one["id"] for one in found] == list(range(200))
    assert {len(one["result"]["envelopes"]) for one in found} == {20}
    assert len(door.begun) == 200


# --- through the doors of a daemon -------------------------------------------------------------


daemon = web_fixture()


def sent_in_order(found: list[Any]) -> bool:
    """Tell whether messages were stored in the order in which they were asked for."""
    every = [one for some in found for one in (some if isinstance(some, list) else [some])]
    stored = [int(one["result"]["message"][1:]) for one in every if "message" in one.get("result", {})]
    return len(stored) > 5 and stored == sorted(stored)


@pytest.mark.parametrize("seed", ROUNDS)
def test_one_that_sends_no_more_gets_all_its_answers_in_order(daemon: WebDaemon, seed: int) -> None:
    asked, ordered = mixed(seeded(seed), 150, daemon.token("nex"))
    with daemon.connect() as connection:
        connection.sendall(lines(asked))
        connection.shutdown(socket.SHUT_WR)
        found = all_answers(connection)
    assert numbers(found, ordered) == ordered
    assert len(found) == sum(isinstance(one, list) or "id" in one for one in asked)
    assert sent_in_order([one for one in found if not isinstance(one, list)])


@pytest.mark.parametrize("seed", ROUNDS)
def test_it_is_the_same_over_a_websocket(daemon: WebDaemon, seed: int) -> None:
    asked, ordered = mixed(seeded(seed), 100, daemon.token("nex"))
    wanted = sum(isinstance(one, list) or "id" in one for one in asked)
    with daemon.websocket(daemon.token("nex")) as client:
        found = client.exchange(*asked, answers=wanted)
    assert numbers(found, ordered) == ordered
    assert sent_in_order([one for one in found if not isinstance(one, list)])
