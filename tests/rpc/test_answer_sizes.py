"""Answers are bounded in bytes: a page ends early and the next one continues, and a batch stops."""

from __future__ import annotations

import asyncio
import json
import shlex
import sys
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any

import pytest

from hiboss.core.settings import DEFAULTS
from hiboss.rpc.server import Server
from hiboss.testing.running_daemon import RunningDaemon
from tests.support.cli import Shell
from tests.support.daemons import code, daemon_fixture
from tests.support.in_process_daemon import InProcessDaemon, frozen
from tests.support.parties import Party, agent, agents, boss
from tests.support.waits import wait_until

PAGE, ANSWER = 32 * 1024, 128 * 1024
LARGE = 10_000  # bytes in JSON: three of them are a page
CONTROL = "\x01"  # in JSON it has six bytes: \u0001
NUMBER = 20


daemon = daemon_fixture(page_bytes=PAGE, answer_bytes=ANSWER)


@pytest.fixture(params=["0" * LARGE, CONTROL * (LARGE // 6)], ids=["letters", "control characters"])
def two(daemon: RunningDaemon, request: pytest.FixtureRequest) -> tuple[Party, Party]:
    """The second has messages from the first that are large in an answer."""
    ada, bob = agents(daemon, 2)
    first = ada.tell(bob, text=request.param)
    for _ in range(1, NUMBER):
        ada.tell(bob, text=request.param, reply_to=first)
    return ada, bob


def size(answer: Any) -> int:
    return len(json.dumps(answer).encode())


def everything(ask: Callable[..., Any], **params: Any) -> list[str]:
    """Walk from page to page; return the ids in the order shown. Each page is bounded."""
    found: list[str] = []
    while True:
        page = ask(**params)
        assert size(page) < 2 * PAGE and 1 <= len(page["envelopes"]) <= 3
        found += [one["id"] for one in page["envelopes"]]
        if page["next"] is None:
            return found
        params["after"] = page["next"]


def test_a_page_of_large_messages_ends_early_and_the_next_one_continues(two: tuple[Party, Party]) -> None:
    ada, bob = two
    small = {"page_size": 1}
    for party, params in (
        (bob, {}),
        (bob, {"oldest_first": True}),
        (bob, {"unread": True}),
        (bob, {"from": ada.address}),
        (bob, {"status": "pending", "count": True}),
        (ada, {"box": "outbox"}),
        (ada, {"box": "outbox", "oldest_first": True}),
        (boss(ada.daemon), {"address": bob.address}),
    ):
        one_by_one = [number for page in party.walk(**params, **small) for number in page]
        assert len(one_by_one) == NUMBER
        found = everything(
            lambda party=party, **more: party.call("envelope.list", **more), **params, page_size=100
        )
        assert found == one_by_one


def test_a_thread_and_other_boxes_of_large_messages_end_early_too(two: tuple[Party, Party]) -> None:
    _, bob = two
    numbers = bob.ids(oldest_first=True, page_size=1)
    found = everything(lambda **more: bob.call("envelope.list", **more), thread=numbers[0], page_size=100)
    assert len(set(found)) == len(found) == NUMBER
    for start in range(0, NUMBER, 5):
        bob.call("envelope.archive", ids=found[start : start + 5])
    assert (
        len(everything(lambda **more: bob.call("envelope.list", **more), box="archived", page_size=100))
        == NUMBER
    )


def test_a_message_larger_than_a_page_is_shown_alone(daemon: RunningDaemon) -> None:
    ada, bob = agents(daemon, 2)
    for number in range(3):
        ada.tell(bob, text=f"{number}" * (PAGE + 1))
    assert [len(page) for page in bob.walk(page_size=100)] == [1, 1, 1]
    assert [len(bob.call("envelope.claim")["envelopes"]) for _ in range(4)] == [1, 1, 1, 0]


def test_a_conversation_of_large_messages_is_shown_from_its_end(two: tuple[Party, Party]) -> None:
    ada, bob = two
    found: list[int] = []
    before, more = None, True
    while more:
        params = {} if before is None else {"before": before}
        page = bob.call("conversation.messages", **{"with": ada.address}, page_size=100, **params)
        assert size(page) < 2 * PAGE and page["envelopes"]
        numbers = [one["seq"] for one in page["envelopes"]]
        assert numbers == sorted(numbers)
        found, before, more = numbers + found, numbers[0], page["more"]
    assert found == list(range(1, NUMBER + 1))


def test_the_news_of_a_conversation_of_large_messages_miss_none(two: tuple[Party, Party]) -> None:
    ada, bob = two
    found: list[int] = []
    last, more = 0, True
    while more:
        news = bob.call("conversation.news", **{"with": ada.address}, after=last)
        assert size(news) < 2 * PAGE and news["envelopes"]
        found += [one["seq"] for one in news["envelopes"]]
        last, more = news["last"], news["more"]
    assert found == list(range(1, NUMBER + 1))


@pytest.mark.parametrize("verb", ["wait", "watch", "poll"])
def test_waiting_for_large_messages_misses_none(two: tuple[Party, Party], verb: str) -> None:
    """Also the point of the review: envelope.watch with ten texts of 1 MiB stopped everybody for 2 s."""
    _, bob = two
    found: list[str] = []
    params: dict[str, Any] = {} if verb == "poll" else {"timeout": "10s"}
    while len(found) < NUMBER:
        answer = bob.call(f"envelope.{verb}", **params)
        assert size(answer) < 2 * PAGE and not answer["timed_out"]
        assert len(answer.get("digest", "")) <= 3 * 2_002
        found += [one["id"] for one in answer["envelopes"]]
        if verb != "poll":
            params["after"] = answer["next"]
    assert found == [number for page in bob.walk(oldest_first=True) for number in page]


def test_no_more_is_claimed_than_is_shown(two: tuple[Party, Party]) -> None:
    _, bob = two
    found: list[str] = []
    while claimed := bob.call("envelope.claim", limit=100)["envelopes"]:
        assert sum(size(one) for one in claimed) < 2 * PAGE
        found += [one["id"] for one in claimed]
        with bob.daemon.database() as database:
            leased = database.execute(
                "SELECT count(*) FROM envelope WHERE waits = 2 AND recipient = (SELECT id FROM address WHERE name = ?)",
                (bob.name,),
            ).fetchone()[0]
        assert leased == len(found)
    assert len(set(found)) == NUMBER


def test_of_more_than_one_answer_can_show_nothing_is_marked_as_read(two: tuple[Party, Party]) -> None:
    _, bob = two
    numbers = [number for page in bob.walk() for number in page]
    assert bob.refusal("envelope.read", ids=numbers) == "too_large"
    assert (
        len(everything(lambda **more: bob.call("envelope.list", **more), unread=True, page_size=100))
        == NUMBER
    )
    assert bob.call("envelope.read", ids=numbers[:3])["changed"] == 3


def test_of_what_others_have_not_even_the_size_is_told(two: tuple[Party, Party]) -> None:
    _, bob = two
    (eve,) = agents(bob.daemon, 1)
    assert eve.refusal("envelope.read", ids=[number for page in bob.walk() for number in page]) == "not_found"


def test_the_preview_of_an_agent_that_fetches_ends_early_and_says_so(two: tuple[Party, Party]) -> None:
    _, bob = two
    found = bob.call("turn.preview")
    assert found["due"] == NUMBER and len(found["envelopes"]) == 3 and size(found) < 2 * PAGE
    assert "more-due: true" in found["text"] and "the first 3 are shown" in found["text"]


def test_the_preview_of_a_turn_with_large_messages_ends_early_and_says_so(daemon: RunningDaemon) -> None:
    worker = agent(daemon, settings={"command": "true"})
    boss(daemon).call("agent.pause", name=worker.name)
    for _ in range(10):
        boss(daemon).tell(worker, text=CONTROL * (LARGE // 4))
    found = worker.call("turn.preview")
    assert len(found["envelopes"]) == 2 and size(found) < 2 * PAGE
    assert "the turn has 10 envelopes; the first 2 are shown here" in found["text"]


def test_runs_that_ended_with_control_characters_are_shown_in_pages(daemon: RunningDaemon) -> None:
    program = f"print({CONTROL!r} * {ANSWER // 24})"  # five of them are more than an answer
    worker = agent(daemon, settings={"command": shlex.join([sys.executable, "-c", program])})

    def ended() -> list[str]:
        found: list[str] = []
        page: dict[str, Any] = {"next": None}
        while True:
            page = worker.call("run.list", page_size=100, after=page["next"])
            found += [run["id"] for run in page["runs"] if run["status"] == "completed"]
            if page["next"] is None:
                return found

    for number in range(1, 6):
        boss(daemon).tell(worker)
        wait_until(lambda number=number: len(ended()) == number)  # type: ignore[misc]


@pytest.mark.parametrize("text", ["0" * LARGE, CONTROL * (LARGE // 6)], ids=["letters", "control characters"])
def test_schedules_with_large_texts_are_listed_in_pages(daemon: RunningDaemon, text: str) -> None:
    """Seventeen of one agent with 1 MiB each locked everybody out of the list, also the boss."""
    ada, bob = agents(daemon, 2)
    boss(daemon).call("cron.create", to=bob.address, text="before", every="1h")
    made = [ada.call("cron.create", to=bob.address, text=text, at="+1h")["id"] for _ in range(NUMBER)]
    boss(daemon).call("cron.create", to=bob.address, text="after", every="1h")
    for party in (ada, boss(daemon)):
        found: list[str] = []
        page: dict[str, Any] = {"next": None}
        while not found or page["next"]:
            page = party.call("cron.list", after=page["next"])
            assert size(page) < 2 * PAGE and page["schedules"]
            found += [one["id"] for one in page["schedules"]]
        assert len(set(found)) == len(found) and set(made) <= set(found)
    done = Shell(daemon.home.path)("cron", "list", "--json")  # it shows all pages
    assert [one["id"] for one in done.json["schedules"]] == found


def test_an_answer_over_the_limit_is_refused_with_what_to_do(daemon: RunningDaemon) -> None:
    ada, bob = agents(daemon, 2)
    number = ada.tell(bob, text="x" * ANSWER)
    (answer,) = daemon.exchange(request("envelope.get", token=bob.token, id=number), answers=1)
    assert code(answer) == "answer_too_large"
    assert str(ANSWER) in answer["error"]["message"] and "limits.answer_bytes" in answer["error"]["message"]
    (answer,) = daemon.exchange(request("daemon.ping"), answers=1)
    assert code(answer) == "ok"


# --- all clients together --------------------------------------------------------------

MANY = 12  # clients


async def _clients(path: str, sent: bytes) -> list[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """Open connections that send this and read nothing."""
    found = [await asyncio.open_unix_connection(path, limit=1) for _ in range(MANY)]
    for _, writer in found:
        writer.write(sent)
    return found


@frozen(quiet=False)
async def test_what_waits_for_all_clients_together_is_bounded_and_who_reads_is_served(
    daemon: InProcessDaemon,
) -> None:
    """200 connections that asked for a page of large texts and did not read it took 830 MB."""
    for _ in range(4):
        await daemon.ask("envelope.send", to="nex", text="x" * 1_000_000)
    one = request("envelope.list", token=daemon.token("nex"))
    limit, asked = 16 * 2**20, json.dumps(one).encode() + b"\n"
    for sent in (asked, json.dumps([one] * 3).encode() + b"\n", b"x" * 3_500_000):
        server, path = Server(daemon.daemon.dispatcher, replace(DEFAULTS, waiting_bytes=limit)), "test.sock"
        await server.listen(path := f"{daemon.home.path}/{path}")
        clients = await _clients(path, sent)
        try:
            for _ in range(3):
                reader, writer = await asyncio.open_unix_connection(path, limit=2**24)
                writer.write(asked)
                assert len(json.loads(await reader.readline())["result"]["envelopes"]) == 4
                writer.close()
            while not 1 <= len(server.connections) < MANY:
                await asyncio.sleep(0)
            assert limit // 2 < sum(one.measure() for one in server.connections) <= limit
            assert server.waiting_bytes.total <= limit
        finally:
            for _, writer in clients:
                writer.close()
            await server.close()
        assert server.waiting_bytes.total == 0


class Held:
    """Operations that take until they are released."""

    def __init__(self) -> None:
        self.started = 0
        self.released = asyncio.Event()

    async def call(
        self, method: str, params: Any, token: str | None = None, *, door: str = "socket", reader: Any = None
    ) -> Any:
        self.started += 1
        await self.released.wait()
        return {}

    def start(self, method: str, params: Any, token: str | None, *given: Any) -> Coroutine[Any, Any, Any]:
        return self.call(method, params, token)

    def check_token(self, token: Any) -> None: ...

    def may_wait(self, method: str) -> bool:
        return False

    def may_run_together(self, method: str) -> bool:
        return False


@frozen()
async def test_large_requests_of_one_connection_are_not_all_processed_at_the_same_time(
    daemon: InProcessDaemon,
) -> None:
    """512 of them may be in flight, whatever their size: half a gigabyte of texts."""
    held = Held()
    server, path = Server(held, DEFAULTS), f"{daemon.home.path}/test.sock"
    await server.listen(path)
    reader, writer = await asyncio.open_unix_connection(path, limit=2**24)
    try:
        writer.write((json.dumps(request("envelope.send", text="x" * 1_000_000)).encode() + b"\n") * 30)
        while not held.started:
            await asyncio.sleep(0)
        [one] = server.connections
        while held.started < 30 and one._transport.is_reading():
            await asyncio.sleep(0)
        assert held.started == 5  # the first that are more than the largest request
        held.released.set()
        for _ in range(30):
            assert "result" in json.loads(await reader.readline())
    finally:
        writer.close()
        await server.close()


# --- batches ---------------------------------------------------------------------------


def request(method: str, id_: Any = 1, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": method, "params": params, "id": id_}


def test_the_requests_of_a_batch_run_one_after_another(daemon: RunningDaemon) -> None:
    """Each sees what the one before it did."""
    ada, bob = agents(daemon, 2)
    batch = []
    for number in range(10):
        batch.append(request("envelope.send", token=ada.token, to=bob.address, text=f"{number}"))
        batch.append(request("envelope.list", token=bob.token, count=True))
    (answers,) = daemon.exchange(batch, answers=1)
    assert [one["result"]["total"] for one in answers[1::2]] == list(range(1, 11))


def test_sends_in_a_row_share_a_commit_and_keep_their_order(daemon: RunningDaemon) -> None:
    ada, bob = agents(daemon, 2)
    sends = [request("envelope.send", n, token=ada.token, to=bob.address, text=f"{n}") for n in range(100)]
    count = request("envelope.list", "count", token=bob.token, count=True)
    (answers,) = daemon.exchange([count, *sends[:50], count, *sends[50:], count], answers=1)
    assert [one["result"]["total"] for one in answers if one["id"] == "count"] == [0, 50, 100]
    assert [one["id"] for one in answers if one["id"] != "count"] == list(range(100))
    assert [one["text"] for one in bob.list(oldest_first=True, page_size=100)] == [f"{n}" for n in range(100)]


@frozen()
async def test_others_have_their_turn_between_the_requests_of_a_batch(daemon: InProcessDaemon) -> None:
    server = Server(daemon.daemon.dispatcher, DEFAULTS)
    await server.listen(f"{daemon.home.path}/test.sock")
    reader, writer = await asyncio.open_unix_connection(f"{daemon.home.path}/test.sock", limit=2**24)
    try:
        writer.write(json.dumps([request("daemon.ping", number) for number in range(100)]).encode() + b"\n")
        answer = asyncio.ensure_future(reader.readline())
        turns = 0
        while not answer.done():
            turns += 1
            await asyncio.sleep(0)
        assert turns >= 100 and len(json.loads(answer.result())) == 100
    finally:
        writer.close()
        await server.close()


def test_a_batch_of_lists_over_large_messages_has_a_bounded_answer(two: tuple[Party, Party]) -> None:
    """Ten lists of 40 messages of 1 MB took 1.2 GB. What does not fit any more is not run, and told so."""
    ada, bob = two
    lists = [request("envelope.list", number, token=bob.token, page_size=100) for number in range(100)]
    sends = [request("envelope.send", "late", token=ada.token, to=bob.address, text="late")]
    (answers,) = bob.daemon.exchange(lists + sends, answers=1)
    assert [one["id"] for one in answers] == [*range(100), "late"]
    run = [one for one in answers if code(one) == "ok"]
    assert ANSWER < sum(size(one) for one in run) < ANSWER + 2 * PAGE
    assert {code(one) for one in answers[len(run) :]} == {"batch_too_large"}
    assert "not run" in answers[-1]["error"]["message"] and "another batch" in answers[-1]["error"]["message"]
    assert bob.call("envelope.list", page_size=1)["envelopes"][0]["text"] != "late"


def test_in_a_batch_that_is_full_malformed_requests_still_get_their_own_error(
    two: tuple[Party, Party],
) -> None:
    _, bob = two
    lists = [request("envelope.list", number, token=bob.token, page_size=100) for number in range(10)]
    (answers,) = bob.daemon.exchange([*lists, 7], answers=1)
    assert code(answers[-1]) == "invalid_request" and code(answers[-2]) == "batch_too_large"
