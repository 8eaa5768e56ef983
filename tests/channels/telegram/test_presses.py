"""Whoever presses a button gets an answer, and nothing waits for it."""

from __future__ import annotations

import asyncio

import pytest

from hiboss.testing.adapter_steps import until
from tests.channels.telegram.taken_updates import Taker, polling_adapter
from tests.channels.telegram.telegram_rig import TelegramRig


async def test_whoever_presses_a_button_gets_the_answer(rig: TelegramRig) -> None:
    take = Taker(rig)
    take.answers = {"yes": "Done. " * 50}
    async with polling_adapter(rig, take) as (adapter, _):
        post = await adapter.post(rig.letter(), 0, "shall I?")
        for value in ("yes", "no"):
            rig.press(post, value)
        await until(lambda: len(rig.api.calls_of("answerCallbackQuery")) == 2)
        presses = list(rig.bot.presses.values())
        found = [await asyncio.to_thread(one.wait) for one in presses]
    assert [one["text"] for one in found] == [("Done. " * 50)[:200].strip(), ""]


@pytest.mark.parametrize("fault", [{"status": 500}, {"do": "drop"}, {"do": "hang"}, {"status": 401}], ids=str)
async def test_an_answer_that_fails_or_hangs_keeps_nothing_from_coming_in(
    rig: TelegramRig, fault: dict[str, object]
) -> None:
    take = Taker(rig)
    failing = rig.fault("answerCallbackQuery", times=None, **fault)
    async with polling_adapter(rig, take) as (adapter, task):
        rig.press(await adapter.post(rig.letter(), 0, "shall I?"), "yes")
        await until(lambda: failing.hits)
        rig.comes_in("more")
        await until(lambda: "more" in take.texts)
        assert not task.done()
    failing.release()


async def test_a_press_that_is_too_old_to_be_answered_counts_all_the_same(rig: TelegramRig) -> None:
    take = Taker(rig)
    async with polling_adapter(rig, take) as (adapter, task):
        post = await adapter.post(rig.letter(), 0, "shall I?")
    rig.press(post, "yes")
    rig.api.advance(60)
    async with polling_adapter(rig, take) as (_, task):
        await asyncio.to_thread(rig.api.wait_for_call, "answerCallbackQuery", answered=True)
        await until(lambda: rig.originals() == 0)
        assert not task.done()
    (act,) = [one.act for one in take.updates if one.act]
    assert act.button == "yes"
