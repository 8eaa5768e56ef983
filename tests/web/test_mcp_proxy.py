"""/mcp: what the worker answers comes at once and piece by piece, and whoever ends first ends both."""

from __future__ import annotations

import asyncio
import select
import socket
import tempfile
from pathlib import Path

from hiboss.api.mcp_sockets import McpSockets, McpWorker
from tests.support.mcp_upstreams import CHUNKED, Asked, Place, PlayedWorker, proxied
from tests.support.web_clients import bearer

PING = {"jsonrpc": "2.0", "method": "ping", "id": 1}


async def begins(asked: Asked) -> None:
    """Answer with the beginning of a stream."""
    asked.write(CHUNKED)
    asked.chunk(b"data: 1\n\n")


# --- streams ------------------------------------------------------------------------------


@proxied()
async def test_the_first_piece_of_a_stream_arrives_while_the_worker_still_writes(place: Place) -> None:
    place.worker.answer = begins
    client = await place.begin("GET", "/mcp")
    head = await client.head()
    assert head.status == 200 and head.header("content-type") == "text/event-stream"
    assert await client.chunk() == b"data: 1\n\n"
    asked = await place.asked()
    for number in range(2, 5):
        asked.chunk(b"data: %d\n\n" % number)
        assert await client.chunk() == b"data: %d\n\n" % number
    asked.write(b"0\r\n\r\n")
    assert await client.chunk() == b""


@proxied()
async def test_the_head_of_a_stream_arrives_before_there_is_any_piece(place: Place) -> None:
    async def silent(asked: Asked) -> None:
        asked.write(CHUNKED)

    place.worker.answer = silent
    assert (await (await place.begin("POST", "/mcp", body=PING)).head()).status == 200


@proxied()
async def test_a_client_that_leaves_ends_its_request_at_the_worker(place: Place) -> None:
    place.worker.answer = begins
    client = await place.begin("GET", "/mcp")
    await client.head()
    await client.chunk()
    client.close()
    await (await place.asked()).gone.wait()


@proxied()
async def test_a_client_that_leaves_before_the_answer_begins_ends_its_request_too(place: Place) -> None:
    async def nothing(asked: Asked) -> None:
        pass

    place.worker.answer = nothing
    client = await place.begin("POST", "/mcp", body=PING)
    asked = await place.asked()
    assert not asked.gone.is_set()
    client.close()
    await asked.gone.wait()


@proxied()
async def test_a_worker_that_dies_in_the_middle_cuts_the_stream(place: Place) -> None:
    place.worker.answer = begins
    for method, body in (("GET", None), ("POST", PING)):
        client = await place.begin(method, "/mcp", body=body)
        await client.head()
        place.worker.asked[-1].writer.transport.abort()
        assert await client.is_cut()


@proxied()
async def test_half_of_an_answer_with_a_length_is_never_taken_for_all_of_it(place: Place) -> None:
    async def half(asked: Asked) -> None:
        asked.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{")
        asked.writer.close()

    place.worker.answer = half
    client = await place.begin("POST", "/mcp", body=PING)
    assert (await client.head()).header("content-length") == "100" and await client.is_cut()


@proxied()
async def test_a_worker_that_ends_before_it_answers_is_an_error_with_a_code(place: Place) -> None:
    async def ends(asked: Asked) -> None:
        asked.writer.close()

    async def talks_nonsense(asked: Asked) -> None:
        asked.write(b"hello\r\n\r\n")

    for answer in (ends, talks_nonsense):
        place.worker.answer = answer
        for path in ("/mcp", "/api/tools/team"):
            answered = await place.request("POST", path, body={})
            assert (answered.status, answered.code) == (503, "mcp_unavailable")
    assert len(place.worker.asked) == 4  # what may have been done is not tried again


@proxied()
async def test_what_the_client_does_not_take_stays_with_the_worker(place: Place) -> None:
    """Else a slow client would fill the memory of the daemon."""
    block, blocks, sent = b"x" * 65536, 1024, 0

    async def much(asked: Asked) -> None:
        nonlocal sent
        asked.write(CHUNKED)
        for _ in range(blocks):
            asked.chunk(block)
            await asked.writer.drain()
            sent += 1
        asked.write(b"0\r\n\r\n")

    place.worker.answer = much
    client = await place.begin("POST", "/mcp", body=PING)
    await client.head()
    before = -1
    while before != sent:  # until nothing moves
        before = sent
        await asyncio.sleep(0.3)
    assert sent < blocks
    received = 0
    while part := await client.chunk():
        received += len(part)
    assert received == len(block) * blocks and sent == blocks


# --- stopping -----------------------------------------------------------------------------


@proxied()
async def test_a_stop_ends_a_stream_that_tells_what_may_come(place: Place) -> None:
    place.worker.answer = begins
    client = await place.begin("GET", "/mcp")
    await client.head()
    await client.chunk()
    closing = asyncio.create_task(place.daemon.daemon._close_doors())
    assert await client.chunk() == b""  # as it should end
    await closing
    await (await place.asked()).gone.wait()


@proxied(stop_seconds=0.1)
async def test_a_stop_does_not_wait_for_an_answer_that_never_ends(place: Place) -> None:
    place.worker.answer = begins
    client = await place.begin("POST", "/mcp", body=PING)
    await client.head()
    await place.daemon.daemon._close_doors()
    assert await client.is_cut()


# --- finding the worker -------------------------------------------------------------------


@proxied()
async def test_the_first_request_starts_the_worker_and_later_ones_find_it(place: Place) -> None:
    for _ in range(3):
        assert (await place.request("POST", "/mcp", body=PING)).status == 200
    assert place.worker.starts == 1


@proxied()
async def test_a_worker_that_has_just_ended_is_started_again(place: Place) -> None:
    await place.request("POST", "/mcp", body=PING)
    place.worker.end()  # the daemon believes that it still runs
    assert (await place.request("POST", "/mcp", body=PING)).status == 200 and place.worker.starts == 2


@proxied()
async def test_a_request_that_an_ending_worker_did_not_read_is_made_again(place: Place) -> None:
    with socket.socket(socket.AF_UNIX) as listener, tempfile.TemporaryDirectory(prefix="hb") as directory:
        listener.setblocking(False)
        listener.bind(f"{directory}/old.sock")
        listener.listen()
        path = f"{directory}/old.sock"
        place.worker.sockets = McpSockets(socket=path, http_socket=path, pid=1)
        client = await place.begin("POST", "/mcp", body=PING)
        taken, _ = await asyncio.get_running_loop().sock_accept(listener)
        with taken:
            await place.until(lambda: select.select([taken], [], [], 0)[0])  # there is something to read
        assert (await client.answer()).status == 200
    assert place.worker.starts == 1 and len(place.worker.asked) == 1


@proxied()
async def test_a_worker_that_takes_no_connections_at_all_is_an_error(place: Place) -> None:
    sockets = await place.worker.start()
    place.worker.end()

    async def start() -> object:
        place.worker.starts += 1
        return sockets

    place.worker.start = start  # type: ignore[method-assign, assignment]
    answer = await place.request("POST", "/mcp", body=PING)
    assert (answer.status, answer.code) == (503, "mcp_unavailable")
    assert place.worker.starts < 10


@proxied()
async def test_a_worker_that_cannot_be_started_is_an_error_that_says_why(place: Place) -> None:
    place.worker.refuses = "the worker did not start: it ended with status 1"
    answer = await place.request("POST", "/mcp", body=PING)
    assert (answer.status, answer.code) == (503, "mcp_unavailable")
    assert "ended with status 1" in answer.json["error"]["message"]


@proxied()
async def test_a_client_that_leaves_while_the_worker_starts_asks_it_nothing(place: Place) -> None:
    place.worker.may_start.clear()
    client = await place.begin("POST", "/mcp", body=PING)
    await place.until(lambda: place.worker.starts)
    client.close()
    (server,) = place.daemon.daemon.gateway._servers
    await place.until(lambda: not server._state.tasks)
    place.worker.may_start.set()
    assert (await place.request("POST", "/mcp", body=PING)).status == 200 and len(place.worker.asked) == 1


@proxied()
async def test_a_hundred_requests_at_once_are_all_answered(place: Place) -> None:
    async def one(number: int) -> str:
        answer = await place.request("POST", f"/mcp?agent=a{number}", body={"id": number})
        assert answer.status == 200 and answer.json["body"] == f'{{"id": {number}}}'
        return str(answer.json["target"])

    found = await asyncio.gather(*(one(number) for number in range(100)))
    assert found == [f"/mcp?agent=a{number}" for number in range(100)]


@proxied()
async def test_no_token_is_in_the_log(place: Place) -> None:
    async def ends(asked: Asked) -> None:
        asked.writer.close()

    place.worker.answer = ends
    await place.request("POST", "/mcp", [*bearer(place.token), ("Mcp-Session-Id", "x")], PING)
    assert place.token not in Path(place.daemon.home.log_file).read_text()


def test_the_played_worker_is_what_the_daemon_expects(tmp_path: Path) -> None:
    async def make() -> McpWorker:
        return PlayedWorker(str(tmp_path))

    assert asyncio.run(make()).running is None
