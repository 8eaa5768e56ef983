"""Tests of the contract of adapters for what platforms say and have: limits, places, replies, lost files.

They are part of `AdapterContract` and `FullAdapterContract` (hiboss/testing/adapter_contract.py). Those whose
situation the rig cannot play are skipped: `pytest -rs` names them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

import pytest

from ..core.contracts.adapter import Adapter
from ..core.contracts.failures import AccountError, EnvelopeError, LaneError, Refused
from ..core.contracts.inbound import Digested
from .adapter_rig import FullRig, Post, Rig
from .adapter_steps import Store, capabilities, digest_all, heard, posted, started, until
from .blocking_guard import what_blocks

TOPIC = "plans"
T = TypeVar("T")


def played(situation: Callable[..., T], *given: Any) -> T:
    """Let the rig play a situation; skip the test if it cannot."""
    try:
        return situation(*given)
    except NotImplementedError:
        pytest.skip(f"the rig has no {situation.__name__}")


def with_adapter(rig: Rig, story: Callable[[Adapter], Coroutine[Any, Any, None]]) -> None:
    async def whole() -> None:
        async with started(rig) as adapter:
            await story(adapter)

    asyncio.run(whole())


class PlatformRules:
    """What every adapter must do, if the rig can play it."""

    def test_a_wait_that_the_platform_names_for_a_chat_is_a_lane_error_with_that_wait(self, rig: Rig) -> None:
        async def story(adapter: Adapter) -> None:
            played(rig.limited, 30)
            with pytest.raises(LaneError) as caught:
                await adapter.post(rig.letter(), 0, "hello")
            assert not isinstance(caught.value, AccountError)  # other chats go on
            assert caught.value.retry_after is not None
            assert 29 <= caught.value.retry_after <= 31

        with_adapter(rig, story)

    def test_an_account_that_is_accepted_no_more_is_an_account_error(self, rig: Rig) -> None:
        async def story(adapter: Adapter) -> None:
            played(rig.locked_out)
            with pytest.raises(AccountError) as caught:
                await adapter.post(rig.letter(), 0, "hello")
            assert caught.value.text

        with_adapter(rig, story)

    def test_typing_drafts_and_reactions_go_out_or_are_refused_by_the_platform(self, rig: Rig) -> None:
        """An error of another kind is a defect of the adapter, which nobody would see."""

        async def story(adapter: Adapter) -> None:
            can = capabilities(adapter)
            post = await posted(adapter, rig.letter(), "hello")
            signs: list[tuple[str, tuple[Any, ...]]] = [
                ("typing", ()),
                ("draft", (7, "hel")),
                ("draft", (7, "hello")),
                ("react", (post, "👍")),
                ("react", (post, None)),
            ]
            for place in (rig.chat, f"{rig.chat}/{TOPIC}") if "threads" in can else (rig.chat,):
                for word, given in signs:
                    if word in can:
                        await _sign(getattr(adapter, word)(place, *given))
            if "buttons" in can:
                await _sign(adapter.remove_buttons(rig.chat, post))

        with_adapter(rig, story)

    def test_a_command_acts_at_once_and_is_still_a_command_when_it_is_digested(
        self, rig: Rig, tmp_path: Path
    ) -> None:
        played(rig.command, "stop", "now")
        store = Store(rig)
        (found,) = asyncio.run(digest_all(rig, store, tmp_path / "downloads", 1))
        assert len(store.acts) == 1
        for one in (store.acts[0], found):  # it is digested if it is not the boss's
            assert (one.kind, one.chat) == ("command", rig.chat)
            assert (one.command, one.arguments) == ("stop", "now")

    def test_it_never_blocks_the_event_loop(self, rig: Rig, tmp_path: Path) -> None:
        async def story() -> None:
            store = Store(rig)
            rig.comes_in("a")
            if isinstance(rig, FullRig):
                rig.album(("1.jpg", "one"))
            number = 2 if isinstance(rig, FullRig) else 1
            adapter = rig.make()
            with what_blocks() as blocking:
                await adapter.start()
                async with heard(adapter, store):
                    await until(lambda: len(store.taken) == number)
                    await store.digest(adapter, tmp_path / "downloads")
                    await adapter.post(rig.letter(), 0, "hello")
                await adapter.stop()
            assert blocking == []

        asyncio.run(story())


class FullPlatformRules:
    """What an adapter must do besides, if its platform has topics, replies and files."""

    def test_a_post_is_in_the_place_of_its_letter(self, rig: FullRig) -> None:
        async def story(adapter: Adapter) -> None:
            names = [
                await posted(adapter, rig.letter(place, id=f"e{number}", place=place), place)
                for number, place in enumerate(places)
            ]
            found = {post.id: (post.place, post.text) for post in played(rig.posts)}
            assert found == {name: (place, place) for name, place in zip(names, places, strict=True)}

        places = [rig.chat, *[f"{rig.chat}/{rig.topic(name)}" for name in (TOPIC, "trips")]]
        with_adapter(rig, story)

    def test_what_is_in_a_topic_can_be_edited_and_deleted(self, rig: FullRig) -> None:
        async def story(adapter: Adapter) -> None:
            if not {"edit", "delete"} <= capabilities(adapter):
                pytest.skip("it cannot edit and delete")
            names = [await posted(adapter, rig.letter(id=id_, place=place), id_) for id_ in ("e1", "e2")]
            await adapter.edit(place, names[0], "edited", "home-e1.1")
            await adapter.delete(place, names[1])
            assert rig.posted() == ["edited"]

        place = f"{rig.chat}/{rig.topic(TOPIC)}"

        with_adapter(rig, story)

    def test_a_letter_that_answers_a_message_is_posted_as_its_reply(
        self, rig: FullRig, tmp_path: Path
    ) -> None:
        rig.comes_in("how are you?")
        (asked,) = asyncio.run(digest_all(rig, Store(rig), tmp_path / "downloads", 1))
        assert asked.message

        async def story(adapter: Adapter) -> None:
            name = await posted(adapter, rig.letter(reply_to=asked.message), "fine")
            assert played(rig.posts) == [Post(name, rig.chat, "fine", asked.message)]

        with_adapter(rig, story)

    def test_a_letter_that_answers_a_message_that_was_deleted_is_posted_without_it(
        self, rig: FullRig
    ) -> None:
        async def story(adapter: Adapter) -> None:
            gone = played(rig.deleted)
            assert await adapter.post(rig.letter(reply_to=gone), 0, "fine")
            assert rig.posted() == ["fine"]

        with_adapter(rig, story)

    def test_a_reply_names_the_post_that_it_replies_to(self, rig: FullRig, tmp_path: Path) -> None:
        async def story(adapter: Adapter) -> None:
            store = Store(rig)
            name = await posted(adapter, rig.letter(), "shall I?")
            played(rig.reply, name, "yes")
            async with heard(adapter, store):
                await until(lambda: store.taken)
                (found,) = await store.digest(adapter, tmp_path / "downloads")
            assert (found.kind, found.text, found.reply_to) == ("message", "yes", name)

        with_adapter(rig, story)

    def test_a_message_whose_file_is_lost_comes_without_it_at_the_last_try(
        self, rig: FullRig, tmp_path: Path
    ) -> None:
        async def story(adapter: Adapter) -> None:
            store = Store(rig)
            played(rig.lost_file, "look at this")
            async with heard(adapter, store):
                await until(lambda: store.taken)
                first = adapter.digest(store.taken, _new(tmp_path), waited=True, last_try=False)
                [found] = await asyncio.gather(first, return_exceptions=True)
                if isinstance(found, Exception):  # it is tried again, but for these
                    assert not isinstance(found, Refused | AccountError)
                    found = await adapter.digest(store.taken, _new(tmp_path), waited=True, last_try=True)
            assert isinstance(found, Digested)
            assert (found.inbound.text, list(found.inbound.files)) == ("look at this", [])
            assert found.inbound.note

        with_adapter(rig, story)


async def _sign(call: Coroutine[Any, Any, None]) -> None:
    try:
        await call
    except (LaneError, EnvelopeError, Refused):
        pass  # the platform has its reasons


def _new(directory: Path) -> str:
    """Return a new directory for downloads."""
    made = directory / f"downloads-{len(list(directory.iterdir()))}"
    made.mkdir()
    return str(made)
