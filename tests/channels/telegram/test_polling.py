"""Polling: every update is handed over once, whatever happens to the server, the store or the adapter."""

from __future__ import annotations

import asyncio
import json

import pytest

from hiboss.channels.telegram import polling
from hiboss.channels.telegram.message_facts import Me
from hiboss.channels.telegram.polling import Position
from hiboss.core import clock
from hiboss.core.contracts.failures import AccountError
from hiboss.core.errors import StoreFull
from hiboss.testing.adapter_steps import until
from tests.channels.telegram.telegram_rig import Taker, TelegramRig, polling_adapter

HOUR = 3_600_000


def offsets(rig: TelegramRig) -> list[str | None]:
    return [call.params.get("offset") for call in rig.api.calls_of("getUpdates")]


async def test_nothing_that_waits_is_dropped_at_a_first_start(rig: TelegramRig) -> None:
    for number in range(250):  # more than one batch
        rig.comes_in(str(number))
    take = Taker(rig)
    async with polling_adapter(rig, take):
        await until(lambda: rig.originals() == 0)
    assert take.texts == [str(number) for number in range(250)]
    assert offsets(rig)[0] is None


async def test_it_asks_for_every_kind_of_update_that_it_knows(rig: TelegramRig) -> None:
    async with polling_adapter(rig, Taker(rig)):
        await asyncio.to_thread(rig.api.wait_for_call, "getUpdates")
    allowed = json.loads(rig.api.calls_of("getUpdates")[0].params["allowed_updates"])
    assert {"message", "edited_message", "message_reaction", "callback_query", "my_chat_member"} <= {*allowed}


async def test_the_offset_is_one_more_than_the_last_of_the_batch(rig: TelegramRig) -> None:
    take = Taker(rig)
    rig.bot.updates.next_id = 500
    async with polling_adapter(rig, take):
        for text in ("a", "b"):
            rig.comes_in(text)
            await until(lambda text=text: text in take.texts)
        await until(lambda: rig.originals() == 0)
    assert take.ids == ["500", "501"]
    assert [one.position["offset"] for one in take.calls if one.ids] == [501, 502]
    assert offsets(rig)[-1] == "502"


async def test_ids_that_restart_lower_begin_a_new_era_and_none_looks_like_an_old_one(
    rig: TelegramRig,
) -> None:
    take = Taker(rig)
    async with polling_adapter(rig, take):
        for first in (500_000, 1_000, 500_000, 300):  # 500,000 comes twice: in one era it is an old one
            rig.bot.updates.next_id = first
            rig.comes_in(f"at {first}")
            await until(lambda: rig.originals() == 0 and len(take.updates))
            await until(lambda first=first: take.ids[-1].endswith(str(first)))
    assert take.ids == ["500000", "1.1000", "1.500000", "2.300"]
    assert take.texts == ["at 500000", "at 1000", "at 500000", "at 300"]
    position = json.loads(rig.position or "")
    assert (position["offset"], position["era"]) == (301, 2)


async def test_a_quiet_week_loses_nothing(rig: TelegramRig) -> None:
    take = Taker(rig)
    async with polling_adapter(rig, take):
        for number in range(5):
            rig.comes_in(str(number))
            await until(lambda number=number: len(take.updates) == number + 1)
            rig.api.advance(days=8)
    assert (take.texts, len({*take.ids})) == (list("01234"), 5)


async def test_an_era_goes_on_after_a_restart(rig: TelegramRig) -> None:
    rig.position = str(Position(offset=70_000, era=3, at=clock.now()))
    rig.bot.updates.next_id = 100
    rig.comes_in("a")
    take = Taker(rig)
    async with polling_adapter(rig, take):
        await until(lambda: take.updates)
    assert take.ids == ["4.100"]


@pytest.mark.parametrize("stored", ["", "odd", "[]", '{"offset": "5"}', '"x"'])
def test_a_position_that_cannot_be_read_is_none(stored: str) -> None:
    assert Position.read(stored) == Position()


async def test_a_crash_after_the_take_gives_nothing_twice(rig: TelegramRig) -> None:
    take = Taker(rig)
    for text in "abc":
        rig.comes_in(text)
    async with polling_adapter(rig, take) as (_, task):
        take.after = task.cancel  # before the next poll
        await until(task.done)
    assert rig.originals() == 3  # the server does not know yet
    take.after = lambda: None
    rig.comes_in("d")
    async with polling_adapter(rig, take):
        await until(lambda: rig.originals() == 0)
    assert take.texts == list("abcd")
    assert [one.ids for one in take.calls if one.ids] == [take.ids[:3], take.ids[3:]]


async def test_a_crash_before_the_take_gives_the_same_again(rig: TelegramRig) -> None:
    take = Taker(rig)
    rig.comes_in("a")
    take.errors = [RuntimeError("the adapter crashes")]
    async with polling_adapter(rig, take) as (_, task):
        await until(task.done)
        assert isinstance(task.exception(), RuntimeError)
    assert rig.position is None
    async with polling_adapter(rig, take):
        await until(lambda: rig.originals() == 0)
    assert take.calls[0].ids == take.ids


async def test_what_cannot_be_stored_is_given_again_and_nothing_is_fetched_before(rig: TelegramRig) -> None:
    take = Taker(rig)
    rig.position = str(Position(offset=1, at=clock.now() - 30 * HOUR))
    rig.bot.updates.next_id = 10
    rig.comes_in("a")
    take.errors = [StoreFull(path="/full"), StoreFull(path="/full"), StoreFull(path="/full")]
    polls: list[int] = []
    take.after = lambda: polls.append(len(rig.api.calls_of("getUpdates")))
    async with polling_adapter(rig, take) as (adapter, _):
        await until(lambda: rig.originals() == 0)
        assert adapter.trouble is None
    assert take.calls[:3] == [take.calls[3]] * 3  # the same position, and what was missed too
    assert polls[0] == 1
    assert take.texts == ["a"]


# --- the server in trouble ------------------------------------------------------------------


@pytest.mark.parametrize(
    "fault",
    [
        {"status": 500},
        {"status": 502},
        {"status": 400, "description": "Bad Request: odd"},
        {"retry_after": 0},
        {"do": "garbage"},
        {"do": "drop"},
        {"do": "lose_answer"},
        {"status": 200, "body": "null"},
        {"status": 200, "body": {"ok": True}},
        {"status": 200, "body": {"ok": True, "result": {"update_id": 5}}},
        {"status": 200, "body": {"ok": True, "result": ["odd"]}},
        {"status": 200, "body": "[" * 100_000},
        {"status": 401, "body": "<html>log in to the network first</html>"},
        {"status": 302, "body": ""},
    ],
    ids=lambda fault: str(fault)[:60],
)
async def test_a_server_in_trouble_is_asked_again_until_it_answers(
    rig: TelegramRig, fault: dict[str, object]
) -> None:
    take = Taker(rig)
    failing = rig.fault("getUpdates", times=None, **fault)
    rig.comes_in("a")
    async with polling_adapter(rig, take) as (adapter, task):
        await until(lambda: failing.hits >= 3 and adapter.trouble)
        assert not task.done()
        assert take.calls == []
        failing.clear()
        await until(lambda: take.updates)
        assert adapter.trouble is None
    assert take.texts == ["a"]


async def test_the_intake_is_told_when_the_server_answers_again_although_nothing_comes_in(
    rig: TelegramRig,
) -> None:
    take = Taker(rig)
    async with polling_adapter(rig, take) as (adapter, _):
        failing = rig.fault("getUpdates", times=None, status=502)
        await until(lambda: failing.hits >= 2 and adapter.trouble)
        told = len(take.calls)
        failing.clear()
        await until(lambda: len(take.calls) > told)
    assert [one.ids for one in take.calls[told:]] == [[]]


async def test_the_intake_is_told_when_what_came_in_meanwhile_is_stored(rig: TelegramRig) -> None:
    """An album is digested only then, and waits until then."""
    for number in range(polling.BATCH + 1):
        rig.comes_in(str(number))
    take = Taker(rig)
    caught_up: list[bool] = []
    async with polling_adapter(rig, take) as (adapter, _):
        assert adapter._poller is not None
        take.after = lambda: caught_up.append(adapter._poller.caught_up)  # type: ignore[union-attr]
        await until(lambda: any(caught_up))
    assert caught_up == [False, False, True]
    assert [len(one.ids) for one in take.calls] == [polling.BATCH, 1, 0]


async def test_a_call_that_succeeds_ends_the_pause_after_a_failed_poll(
    rig: TelegramRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(polling, "PAUSES", (0.001, 3600.0))
    take = Taker(rig)
    failing = rig.fault("getUpdates", times=2, status=502)
    async with polling_adapter(rig, take) as (adapter, _):
        await until(lambda: failing.hits == 2)
        while not take.calls:  # one that succeeds before the failure has come here wakes nobody
            await adapter.typing(rig.chat)


async def test_a_wait_that_the_server_names_is_kept(
    rig: TelegramRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []
    real = asyncio.sleep

    async def sleep(seconds: float) -> None:
        waits.append(seconds)
        await real(0)

    take = Taker(rig)
    rig.fault("getUpdates", retry_after=17)
    rig.comes_in("a")
    monkeypatch.setattr(polling.asyncio, "sleep", sleep)  # type: ignore[attr-defined]
    async with polling_adapter(rig, take):
        while not take.updates:
            await real(0.001)
    assert 17 in waits


async def test_a_server_that_is_away_for_long_is_no_crash_and_nothing_is_lost(rig: TelegramRig) -> None:
    take = Taker(rig)
    async with polling_adapter(rig, take) as (adapter, task):
        await asyncio.to_thread(rig.api.wait_for_call, "getUpdates")
        rig.api.stop_listening()
        await until(lambda: adapter.trouble)
        assert "127.0.0.1 cannot be reached" in str(adapter.trouble)
        rig.comes_in("a")
        rig.api.listen_again()
        await until(lambda: take.updates)
        assert adapter.trouble is None
        assert not task.done()


@pytest.mark.parametrize(
    ("fault", "kind", "advice"),
    [
        ({"status": 401}, "unauthorized", "@BotFather"),
        ({"status": 404}, "unauthorized", "@BotFather"),
        ({"status": 409}, "other_poller", "another program fetches"),
        (
            {"status": 409, "description": "Conflict: can't use getUpdates method while webhook is active"},
            "webhook",
            "deleteWebhook",
        ),
    ],
)
async def test_what_stops_the_account_is_raised_with_what_to_do(
    rig: TelegramRig, fault: dict[str, object], kind: str, advice: str
) -> None:
    async with polling_adapter(rig, Taker(rig)) as (_, task):
        rig.fault("getUpdates", **fault)
        await until(task.done)
        error = task.exception()
        assert isinstance(error, AccountError) and error.kind == kind
        assert advice in error.text


@pytest.mark.parametrize(
    "odd",
    [
        {"message": "a text"},
        {"message": {"message_id": "x", "chat": None, "text": 5}},
        {"message": {"message_id": 1, "chat": {"id": "a/b c"}, "date": "today"}},
        {"of_the_future": {"deep": [1, 2]}},
        {},
    ],
    ids=str,
)
async def test_one_update_that_nobody_understands_holds_up_no_other(
    rig: TelegramRig, odd: dict[str, object]
) -> None:
    take = Taker(rig)
    rig.comes_in("before")
    number = rig.bot.inject(odd)
    rig.comes_in("after")
    async with polling_adapter(rig, take) as (adapter, _):
        await until(lambda: rig.originals() == 0)
        assert take.texts == ["before", "", "after"]
        update = take.updates[1]
        assert (update.id, update.chat) == (str(number), "unknown")
        assert update.raw == {"update_id": number, **odd}
        found = await adapter.digest([update], str(rig.home), waited=False, last_try=False)
        assert found.inbound.kind == "ignored"  # type: ignore[union-attr]


async def test_a_poll_ends_at_once_when_it_is_cancelled(rig: TelegramRig) -> None:
    async with polling_adapter(rig, Taker(rig)) as (_, task):
        await asyncio.to_thread(rig.api.wait_for_call, "getUpdates")
        task.cancel()
        await asyncio.wait([task], timeout=10)  # the poll itself would take 50 seconds
        assert task.cancelled()


# --- what the platform may have dropped -----------------------------------------------------


async def test_a_gap_of_more_than_a_day_is_told_once(rig: TelegramRig) -> None:
    before = clock.now() - 25 * HOUR
    rig.position = str(Position(offset=5, at=before))
    take = Taker(rig)
    async with polling_adapter(rig, take):
        await asyncio.to_thread(rig.api.wait_for_call, "getUpdates")
        rig.fault("getUpdates", status=200, body={"ok": True, "result": []})  # nothing came in
        await until(lambda: take.calls)
        rig.comes_in("a")
        await until(lambda: take.updates)
    first, *others = take.calls
    assert first.missed is not None and first.missed[0] == before
    assert first.missed[1] == first.position["at"]
    assert [one.missed for one in others] == [None] * len(others)
    async with polling_adapter(rig, take):
        rig.comes_in("b")
        await until(lambda: "b" in take.texts)
    assert take.calls[-1].missed is None


@pytest.mark.parametrize(
    ("at", "missed"),
    [(None, False), (0, True), (24 * HOUR, False), (24 * HOUR - 1, True), (99 * HOUR, False)],
)
def test_only_a_gap_that_the_platform_does_not_bridge_is_told(at: int | None, missed: bool) -> None:
    found = polling.batch([], Position(offset=5, at=at), Me(1), 48 * HOUR)
    assert found.missed == ((at, 48 * HOUR) if missed else None)


async def test_an_outage_of_a_day_is_told_when_it_is_over(
    rig: TelegramRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [clock.now()]
    monkeypatch.setattr(clock, "now", lambda: now[0])
    take = Taker(rig)
    rig.comes_in("a")
    async with polling_adapter(rig, take) as (adapter, _):
        await until(lambda: rig.originals() == 0)
        last = now[0]
        rig.api.stop_listening()
        await until(lambda: adapter.trouble)
        now[0] += 30 * HOUR
        rig.comes_in("b")
        rig.api.listen_again()
        await until(lambda: "b" in take.texts)
        assert take.calls[-1].missed == (last, now[0])


async def test_the_position_is_stored_now_and_then_although_nothing_comes_in(
    rig: TelegramRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = clock.now()
    now = [start]
    monkeypatch.setattr(clock, "now", lambda: now[0])

    class Quiet:
        """A server that answers with nothing, after so many minutes."""

        minutes = iter((0, 9, 1, 5, 6))

        async def call(self, method: str, **given: object) -> list[object]:
            now[0] += next(self.minutes, 0) * 60_000
            if now[0] == start + 21 * 60_000 and take.calls[2:]:
                await asyncio.Event().wait()
            return []

    take = Taker(rig)
    poller = polling.Poller(Quiet(), Me(1), None)  # type: ignore[arg-type]
    task = asyncio.create_task(poller.run(take, lambda updates, taken: None))
    await until(lambda: len(take.calls) == 3)
    task.cancel()
    await asyncio.wait([task])
    assert [one.ids for one in take.calls] == [[]] * 3
    stored = [{"offset": None, "era": 0, "at": start + minutes * 60_000} for minutes in (0, 10, 21)]
    assert [one.position for one in take.calls] == stored
