"""The contract of adapters (hiboss/core/contracts/adapter.py), tested with every adapter."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from hiboss.channels import folder
from hiboss.channels.registry import BUILT_IN
from hiboss.core.contracts.adapter import Adapter, Inbound, Receive
from hiboss.core.contracts.failures import EnvelopeError, LaneError, Refused
from hiboss.core.errors import StoreFull
from tests.channels.adapter_rigs import RIGS, Rig, letter

Story = Callable[[], Coroutine[Any, Any, None]]


@pytest.fixture(params=RIGS, ids=lambda rig: rig.__name__.removesuffix("Rig").lower())
def rig(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Rig:
    monkeypatch.setattr(folder, "POLL_SECONDS", 0.005)  # nothing here needs the longer pause
    made: Rig = request.param(tmp_path)
    return made


@asynccontextmanager
async def started(rig: Rig) -> AsyncIterator[Adapter]:
    adapter = rig.make()
    await adapter.start()
    yield adapter
    await adapter.stop()


@asynccontextmanager
async def listening(rig: Rig, receive: Receive) -> AsyncIterator[asyncio.Task[None]]:
    """Start an adapter and let it listen until the end of the block."""
    async with started(rig) as adapter:
        task = asyncio.create_task(adapter.listen(receive))
        try:
            yield task
        finally:
            task.cancel()
            await asyncio.wait([task], timeout=30)
            assert task.done()


async def until(condition: Callable[[], Any]) -> None:
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0.002)


async def some_polls() -> None:
    """Wait long enough for an adapter that wrongly hands over twice."""
    for _ in range(20):
        await asyncio.sleep(0.005)


class Receiver:
    """Collects what was handed over, and answers as it was told to."""

    def __init__(self, *answers: bool | Exception) -> None:
        self.arrivals: list[Inbound] = []
        self._answers = list(answers)

    async def __call__(self, arrival: Inbound) -> bool:
        self.arrivals.append(arrival)
        answer = self._answers.pop(0) if self._answers else True
        if isinstance(answer, Exception):
            raise answer
        return answer

    @property
    def texts(self) -> list[str]:
        return [arrival.text for arrival in self.arrivals]


def test_every_adapter_of_ours_is_held_against_the_contract(tmp_path: Path) -> None:
    made = []
    for number, rig in enumerate(RIGS):
        (tmp_path / f"{number}").mkdir()
        made.append(type(rig(tmp_path / f"{number}").make()))
    assert set(BUILT_IN.values()) <= set(made)


# --- bind, start, stop -----------------------------------------------------------------


def test_binding_gives_a_name_that_can_be_an_address_and_where_it_may_post(rig: Rig) -> None:
    name, settings, places = rig.make().bind(rig.good())
    assert name
    assert not set(name) & set(" :/\n")
    assert name in places
    assert "home" not in settings
    assert rig.make().bind(rig.good()) == (name, settings, places)


def test_what_cannot_be_bound_is_refused_with_a_reason(rig: Rig) -> None:
    for given in rig.bad():
        with pytest.raises(Refused) as caught:
            rig.make().bind(given)
        assert caught.value.why


def test_making_one_touches_nothing(rig: Rig, tmp_path: Path) -> None:
    before = sorted(tmp_path.rglob("*"))
    rig.make()
    assert sorted(tmp_path.rglob("*")) == before


def test_it_can_be_started_and_stopped_again_and_again(rig: Rig) -> None:
    async def story() -> None:
        for number in range(3):
            async with started(rig) as adapter:
                assert await adapter.post(letter(id=f"e{number}"), 0, "hello")

    asyncio.run(story())


def test_a_start_that_is_refused_is_a_lane_error_and_it_can_be_stopped_then(rig: Rig) -> None:
    async def story() -> None:
        rig.cannot_start()
        adapter = rig.make()
        with pytest.raises(LaneError) as caught:
            await adapter.start()
        assert caught.value.kind
        assert caught.value.text
        await adapter.stop()

    asyncio.run(story())


# --- what comes in -----------------------------------------------------------------------


def test_what_comes_in_is_handed_over_once_and_in_order(rig: Rig) -> None:
    async def story() -> None:
        receive = Receiver()
        for text in ("a", "b"):
            rig.comes_in(text)
        async with listening(rig, receive):
            await until(lambda: len(receive.arrivals) == 2)
            rig.comes_in("c")
            await until(lambda: len(receive.arrivals) == 3 and not rig.originals())
            await some_polls()
        assert receive.texts == ["a", "b", "c"]
        assert len({arrival.update for arrival in receive.arrivals}) == 3
        assert {arrival.place for arrival in receive.arrivals} == {"here"}

    asyncio.run(story())


def test_the_original_stays_until_it_was_received(rig: Rig) -> None:
    async def story() -> None:
        gate, entered = asyncio.Event(), asyncio.Event()

        async def receive(arrival: Inbound) -> bool:
            entered.set()
            await gate.wait()
            return True

        rig.comes_in("a")
        async with listening(rig, receive):
            await asyncio.wait_for(entered.wait(), 30)
            await some_polls()
            assert rig.originals() == 1
            gate.set()
            await until(lambda: rig.originals() == 0)

    asyncio.run(story())


def test_what_was_stored_before_is_taken_away_all_the_same(rig: Rig) -> None:
    async def story() -> None:
        receive = Receiver(False)
        rig.comes_in("a")
        async with listening(rig, receive):
            await until(lambda: receive.arrivals and not rig.originals())
            await some_polls()
        assert receive.texts == ["a"]

    asyncio.run(story())


def test_what_is_refused_is_not_handed_over_again_and_holds_up_nothing(rig: Rig) -> None:
    async def story() -> None:
        receive = Receiver(Refused("never"))
        for text in ("bad", "good"):
            rig.comes_in(text)
        async with listening(rig, receive) as task:
            await until(lambda: len(receive.arrivals) == 2 and not rig.originals())
            await some_polls()
            assert not task.done()
        assert receive.texts == ["bad", "good"]

    asyncio.run(story())


def test_what_could_not_be_stored_stays_and_comes_again_as_the_same_update(rig: Rig) -> None:
    async def story() -> None:
        receive = Receiver(StoreFull(path="/full"))
        rig.comes_in("a")
        rig.comes_in("b")
        async with listening(rig, receive) as task:
            await until(lambda: task.done() or len(receive.arrivals) > 1)
        assert task.done()
        if not task.cancelled():
            assert task.exception() is not None  # it raises, and the supervisor restarts it
        assert rig.originals() >= 1
        async with listening(rig, receive):
            await until(lambda: rig.originals() == 0)
        first = receive.arrivals[0]
        assert [arrival.update for arrival in receive.arrivals].count(first.update) == 2
        assert receive.texts == ["a", "a", "b"]

    asyncio.run(story())


def test_what_was_in_hand_at_a_cancel_comes_again_as_the_same_update(rig: Rig) -> None:
    async def story() -> None:
        seen: list[str] = []

        async def never(arrival: Inbound) -> bool:
            seen.append(arrival.update)
            await asyncio.Event().wait()
            return True

        rig.comes_in("a")
        async with listening(rig, never) as task:
            await until(lambda: seen)
        assert task.cancelled()
        receive = Receiver()
        async with listening(rig, receive):
            await until(lambda: rig.originals() == 0)
        assert [arrival.update for arrival in receive.arrivals] == seen

    asyncio.run(story())


def test_listening_to_silence_ends_when_cancelled(rig: Rig) -> None:
    async def story() -> None:
        receive = Receiver()
        async with listening(rig, receive) as task:
            await some_polls()
            assert not task.done()
        assert task.cancelled()
        assert receive.arrivals == []

    asyncio.run(story())


# --- what goes out -----------------------------------------------------------------------

TEXTS = ["", "hello", "line\nline\r\n", "ä€😀 " * 500, "x" * 20_000, "  leading and trailing  "]


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_chunks_are_the_same_every_time_and_leave_nothing_out(rig: Rig, text: str) -> None:
    async def story() -> None:
        found = []
        for _ in range(2):
            async with started(rig) as adapter:
                found += [adapter.chunks(letter(text)) for _ in range(2)]
        assert all(one == found[0] for one in found)
        assert found[0]
        assert "".join(found[0]) == text

    asyncio.run(story())


def test_a_post_that_is_confirmed_is_there_and_has_a_name(rig: Rig) -> None:
    async def story() -> None:
        async with started(rig) as adapter:
            names = [await adapter.post(letter(text, id=f"e{text}"), 0, text) for text in ("1", "2")]
            assert sorted(rig.posted()) == ["1", "2"]  # before the stop: a post is not buffered
            assert len(set(names)) == 2
            assert all(isinstance(name, str) and name for name in names)

    asyncio.run(story())


def test_the_same_chunk_may_come_again(rig: Rig) -> None:
    async def story() -> None:
        async with started(rig) as adapter:
            first, second = [await adapter.post(letter(), 0, "hello") for _ in range(2)]
            assert first
            assert second
            assert set(rig.posted()) == {"hello"}

    asyncio.run(story())


def test_a_platform_that_is_away_is_a_lane_error(rig: Rig) -> None:
    async def story() -> None:
        async with started(rig) as adapter:
            rig.cannot_post()
            with pytest.raises(LaneError) as caught:
                await adapter.post(letter(), 0, "hello")
            assert caught.value.kind
            assert caught.value.text

    asyncio.run(story())


def test_a_letter_that_can_never_be_posted_is_an_envelope_error_and_the_next_goes_on(rig: Rig) -> None:
    async def story() -> None:
        async with started(rig) as adapter:
            with pytest.raises(EnvelopeError) as caught:
                await adapter.post(rig.impossible(), 0, "hello")
            assert caught.value.kind
            assert caught.value.text
            assert await adapter.post(letter(id="e2"), 0, "next")
            assert "next" in rig.posted()

    asyncio.run(story())


def test_posting_goes_on_while_it_listens(rig: Rig) -> None:
    async def story() -> None:
        receive = Receiver()
        async with started(rig) as adapter:
            task = asyncio.create_task(adapter.listen(receive))
            rig.comes_in("in")
            await adapter.post(letter(), 0, "out")
            await until(lambda: receive.texts == ["in"])
            assert rig.posted() == ["out"]
            task.cancel()
            await asyncio.wait([task])

    asyncio.run(story())
