"""Signs: drafts and their Stop button, how an answer grows, reactions, and answers to who presses a button."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from hiboss.channels.telegram import decode
from hiboss.channels.telegram.adapter import TelegramAdapter
from hiboss.channels.telegram.chunk_form import Chunk, encode
from hiboss.channels.telegram.message_facts import Me
from hiboss.channels.telegram.reactions import EMOJIS, spelled
from hiboss.core.contracts.adapter import Adapter, Live
from hiboss.core.contracts.failures import AccountError, EnvelopeError, LaneError, Refused
from hiboss.core.contracts.inbound import Author
from hiboss.testing.adapter_steps import Store, heard, started, until
from hiboss.testing.bot_api.methods_changing import REACTIONS
from tests.channels.telegram.telegram_rig import Taker, TelegramRig, polling_adapter

BOLD = ({"type": "bold", "offset": 0, "length": 3},)
DRAFT, EDIT, GROUP_EDIT, OFF = Live("draft", 1.0), Live("edit", 1.5), Live("edit", 6.0), Live("off")

# --- drafts ---------------------------------------------------------------------------------


async def test_a_draft_grows_and_is_gone_when_the_answer_is_posted(
    rig: TelegramRig, adapter: Adapter
) -> None:
    for text in ("hel", "hello"):
        await adapter.draft(rig.chat, 7, encode(Chunk(text, BOLD)))
    assert [(one.draft_id, one.text, one.can_stop) for one in rig.private.drafts] == [
        (7, "hel", True),
        (7, "hello", True),
    ]
    assert all("entities" in one.params for one in rig.api.calls_of("sendMessageDraft"))
    await adapter.post(rig.letter(), 0, "hello")
    assert (rig.private.draft, rig.posted()) == (None, ["hello"])


async def test_a_draft_is_in_the_topic_of_its_place(rig: TelegramRig, adapter: Adapter) -> None:
    plans = rig.topic("plans")
    await adapter.draft(f"{rig.chat}/{plans}", 7, "hel")
    assert rig.private.drafts[-1].topic == int(plans)


async def test_a_draft_whose_entities_are_refused_is_shown_plain(rig: TelegramRig, adapter: Adapter) -> None:
    rig.fault("sendMessageDraft", status=400, description="Bad Request: can't parse entities")
    await adapter.draft(rig.chat, 7, encode(Chunk("hel", BOLD)))
    assert (rig.private.drafts[-1].text, adapter.live(rig.chat)) == ("hel", DRAFT)


async def test_a_server_without_drafts_is_asked_once_for_all_chats(old_rig: TelegramRig) -> None:
    rig = old_rig
    other = rig.api.add_person("Bo")
    async with started(rig) as adapter:
        assert [adapter.live(one) for one in (rig.chat, str(other.id))] == [DRAFT, DRAFT]
        for place in (rig.chat, rig.chat, str(other.id)):
            with pytest.raises(Refused):
                await adapter.draft(place, 7, "hel")
        assert len(rig.api.calls_of("sendMessageDraft")) == 1
        assert [adapter.live(one) for one in (rig.chat, str(other.id))] == [EDIT, EDIT]
    async with started(rig) as again:
        assert again.live("7") == DRAFT


async def test_a_chat_that_takes_no_drafts_is_asked_once(rig: TelegramRig, adapter: Adapter) -> None:
    rig.fault("sendMessageDraft", status=400, description="Bad Request: TEXTDRAFT_PEER_INVALID")
    for _ in range(2):
        with pytest.raises(Refused):
            await adapter.draft(rig.chat, 7, "hel")
    assert (len(rig.api.calls_of("sendMessageDraft")), adapter.live(rig.chat)) == (1, EDIT)
    assert adapter.live("7") == DRAFT  # others are not affected


async def test_a_group_has_no_drafts(rig: TelegramRig, adapter: Adapter) -> None:
    group = rig.api.add_group("Team", [rig.ada, rig.bot])
    with pytest.raises(Refused):
        await adapter.draft(str(group.id), 7, "hel")
    assert rig.api.calls_of("sendMessageDraft") == []


@pytest.mark.parametrize(
    ("fault", "error", "kind"),
    [
        ({"retry_after": 9}, LaneError, "rate_limited"),
        ({"status": 500}, LaneError, "server_error"),
        ({"do": "drop"}, LaneError, "no_answer"),
        ({"status": 401}, AccountError, "unauthorized"),
        ({"status": 403}, EnvelopeError, "forbidden"),
        (
            {"status": 400, "description": "Bad Request: message thread not found"},
            EnvelopeError,
            "topic_not_found",
        ),
    ],
    ids=str,
)
async def test_any_other_failure_of_a_draft_says_nothing_about_drafts(
    rig: TelegramRig, fault: dict[str, Any], error: type[Exception], kind: str, adapter: Adapter
) -> None:
    rig.fault("sendMessageDraft", **fault)
    with pytest.raises((LaneError, EnvelopeError)) as caught:
        await adapter.draft(rig.chat, 7, "hel")
    assert (type(caught.value), getattr(caught.value, "kind", None)) == (error, kind)
    assert adapter.live(rig.chat) == DRAFT


@pytest.mark.parametrize(
    ("setting", "private", "group"),
    [("draft", DRAFT, GROUP_EDIT), ("edit", EDIT, GROUP_EDIT), ("off", OFF, OFF)],
)
async def test_the_setting_says_how_an_answer_grows(
    rig: TelegramRig, setting: str, private: Live, group: Live
) -> None:
    rig.configure(live=setting)
    async with started(rig) as adapter:
        assert [adapter.live(one) for one in ("7", "7/3", "-7", "-7/3")] == [private] * 2 + [group] * 2


# --- the Stop button ------------------------------------------------------------------------


@pytest.mark.parametrize("in_topic", [False, True])
async def test_the_stop_button_acts_at_once_and_names_the_draft_and_the_person(
    rig: TelegramRig, in_topic: bool
) -> None:
    topic = rig.topic("plans") if in_topic else None
    place = rig.chat if topic is None else f"{rig.chat}/{topic}"
    store = Store(rig)
    async with started(rig) as adapter, heard(adapter, store):
        await adapter.draft(place, 7, "hel")
        rig.ada.stops_generation(rig.private)
        await until(lambda: store.taken)
    (act,) = store.acts
    assert (act.kind, act.draft, act.place, act.chat_kind) == ("stop", 7, place, "private")
    assert act.author == Author(str(rig.ada.id), "Ada", "ada")


@pytest.mark.parametrize(
    "stopped",
    [
        {"chat": {"id": 7, "type": "private"}},
        {"chat": {"id": 7, "type": "private"}, "draft_id": "x"},
        {"draft_id": 7},
        {"chat": {"id": -7, "type": "group"}, "draft_id": 7},
        {"chat": 3, "draft_id": 7},
    ],
    ids=str,
)
def test_a_stop_that_is_not_understood_is_ignored(stopped: dict[str, Any]) -> None:
    found = decode.update({"update_id": 1, "stopped_message_generation": stopped}, 0, Me(1))
    assert found.act is None and found.about is not None
    assert found.about.kind == "ignored"


# --- reactions ------------------------------------------------------------------------------


async def test_a_reaction_takes_the_place_of_the_last_and_can_be_taken_back(
    rig: TelegramRig, adapter: Adapter
) -> None:
    rig.comes_in("hello")
    for emoji in ("👀", "👍", "❤️", None, None):
        await adapter.react(rig.chat, str(rig.last.id), emoji)
        expected = None if emoji is None else [spelled(emoji)]
        assert rig.last.reactions.get(rig.bot.id) == expected


async def test_a_reaction_that_cannot_be_is_an_envelope_error(rig: TelegramRig, adapter: Adapter) -> None:
    rig.comes_in("hello")
    with pytest.raises(EnvelopeError) as caught:
        await adapter.react(rig.chat, str(rig.last.id), "🪿")
    assert caught.value.kind == "reaction_invalid"
    for gone in ("999999", "x"):
        with pytest.raises(EnvelopeError) as caught:
            await adapter.react(rig.chat, gone, "👍")
        assert caught.value.kind == "not_found"


def test_every_emoji_that_telegram_has_is_known_in_all_spellings() -> None:
    assert {spelled(one) for one in EMOJIS} == REACTIONS
    assert REACTIONS <= EMOJIS
    assert {"❤", "❤️", "👍", "🤷‍♂", "🤷‍♂️", "⚡️", "❤‍🔥"} <= EMOJIS
    assert "🪿" not in EMOJIS
    assert TelegramAdapter.emojis == EMOJIS


# --- presses --------------------------------------------------------------------------


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
