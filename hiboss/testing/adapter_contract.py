"""The contract of adapters (hiboss/core/contracts/adapter.py) as tests: write a rig, and subclass.

    class TestCourier(AdapterContract):
        rig_type = CourierRig

A rig (hiboss/testing/adapter_rig.py) plays the platform. `FullAdapterContract` tests edits, buttons, albums,
topics and replies in addition; its rig is a FullRig. They need the package pytest. See docs/adapters.md.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import ClassVar

import pytest

from ..channels.registry import what_is_wrong
from ..core.contracts.adapter import Taken
from ..core.contracts.failures import EnvelopeError, LaneError, Refused
from ..core.contracts.inbound import Digested, NotYet, Update, path_of
from ..core.errors import StoreFull
from ..core.option_models import load, split
from .adapter_platform_rules import FullPlatformRules, PlatformRules
from .adapter_rig import FullRig, Rig
from .adapter_steps import (
    Store,
    capabilities,
    check,
    digest_all,
    digested,
    heard,
    listening,
    posted,
    some_polls,
    started,
    until,
)

TEXTS = ["", "hello", "line\nline\r\n", "ä€😀 " * 500, "x" * 20_000, "  leading and trailing  "]


class AdapterContract(PlatformRules):
    """What every adapter must do. Subclass it with a name that begins with Test, and name the rig."""

    rig_type: ClassVar[type[Rig]]

    @pytest.fixture
    def rig(self, tmp_path: Path) -> Iterator[Rig]:
        made = self.rig_type(tmp_path)
        yield made
        made.close()

    def test_an_adapter_has_all_that_the_daemon_needs(self, rig: Rig) -> None:
        assert what_is_wrong(type(rig.make())) == []

    def test_a_check_gives_a_name_that_can_be_an_address_and_where_it_may_post(
        self, rig: Rig, tmp_path: Path
    ) -> None:
        checked = check(rig, rig.good(), tmp_path / "home")
        assert checked.account
        for name in (checked.account, *[chat.id for chat in checked.chats]):
            assert not set(name) & set(" :/\n")
        kind = type(rig.make())
        if getattr(kind, "open_to_all", False):  # else nobody may write before the boss has decided
            assert rig.chat in [chat.id for chat in checked.chats]
        if hasattr(kind, "unchecked"):
            assert kind.unchecked(checked.settings).account == checked.account
        assert isinstance(checked.settings, type(rig.make()).Settings)
        assert check(rig, rig.good(), tmp_path / "home") == checked

    def test_what_a_binding_stores_can_be_read_again(self, rig: Rig, tmp_path: Path) -> None:
        checked = check(rig, rig.good(), tmp_path / "home")
        settings, secrets, _ = split(checked.settings)
        assert load(type(rig.make()).Settings, json.loads(json.dumps(settings)), secrets) == checked.settings

    def test_what_cannot_be_bound_is_refused_with_a_reason(self, rig: Rig, tmp_path: Path) -> None:
        for given in rig.bad():
            with pytest.raises(Refused) as caught:
                check(rig, given, tmp_path / "home")
            assert caught.value.why

    def test_making_one_touches_nothing(self, rig: Rig, tmp_path: Path) -> None:
        before = sorted(tmp_path.rglob("*"))
        rig.make()
        assert sorted(tmp_path.rglob("*")) == before

    def test_it_can_be_started_and_stopped_again_and_again(self, rig: Rig) -> None:
        async def story() -> None:
            for number in range(3):
                async with started(rig) as adapter:
                    assert await adapter.post(rig.letter(id=f"e{number}"), 0, "hello")

        asyncio.run(story())

    def test_a_start_that_is_refused_is_a_lane_error_and_it_can_be_stopped_then(self, rig: Rig) -> None:
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

    def test_what_comes_in_is_handed_over_once_and_in_order(self, rig: Rig, tmp_path: Path) -> None:
        async def story() -> None:
            store = Store(rig)
            for text in ("a", "b"):
                rig.comes_in(text)
            async with started(rig) as adapter, heard(adapter, store):
                await until(lambda: len(store.taken) == 2)
                rig.comes_in("c")
                await until(lambda: len(store.taken) == 3)
                found = await store.digest(adapter, tmp_path / "downloads")
                await until(lambda: not rig.originals())
                await some_polls()
            assert [one.text for one in found] == ["a", "b", "c"]
            assert len({one.id for one in store.taken}) == 3
            assert {one.chat for one in store.taken} == {rig.chat} == {one.chat for one in found}

        asyncio.run(story())

    def test_the_original_stays_until_it_was_taken(self, rig: Rig) -> None:
        async def story() -> None:
            gate, entered = asyncio.Event(), asyncio.Event()

            async def take(
                updates: Sequence[Update], position: str | None = None, missed: object = None
            ) -> Taken:
                entered.set()
                await gate.wait()
                rig.position = position
                return Taken(new=frozenset(), digested={one.id: None for one in updates})

            rig.comes_in("a")
            async with listening(rig, take):
                await asyncio.wait_for(entered.wait(), 30)
                await some_polls()
                assert rig.originals() == 1
                gate.set()
                await until(lambda: rig.originals() == 0)

        asyncio.run(story())

    def test_what_was_digested_before_a_crash_is_taken_away_and_not_digested_again(
        self, rig: Rig, tmp_path: Path
    ) -> None:
        """The daemon died after the COMMIT and before the adapter knew."""

        async def story() -> None:
            store = Store(rig)
            rig.comes_in("a")
            async with listening(rig, store):
                await until(lambda: store.taken)
            store.digested[store.taken[0].id] = None
            rig.comes_in("b")
            assert [one.text for one in await digest_all(rig, store, tmp_path / "downloads", 2)] == ["b"]

        asyncio.run(story())

    def test_an_update_that_is_given_up_holds_up_nothing(self, rig: Rig, tmp_path: Path) -> None:
        async def story() -> None:
            store = Store(rig)
            for text in ("bad", "good"):
                rig.comes_in(text)
            async with started(rig) as adapter, heard(adapter, store) as task:
                await until(lambda: len(store.taken) == 2)
                await store.end(adapter, store.taken[0], "never")
                found = await store.digest(adapter, tmp_path / "downloads")
                await until(lambda: not rig.originals())
                assert not task.done()
            assert [one.text for one in found] == ["good"]

        asyncio.run(story())

    def test_the_same_update_can_be_digested_again(self, rig: Rig, tmp_path: Path) -> None:
        """The daemon died after the adapter had digested it, and before that was stored."""

        async def story() -> None:
            store = Store(rig)
            rig.comes_in("a")
            async with listening(rig, store):
                await until(lambda: store.taken)
            for number in range(2):
                directory = tmp_path / f"downloads-{number}"
                directory.mkdir()
                async with started(rig) as adapter:
                    answer = await adapter.digest(
                        store.taken, str(directory), waited=True, last_try=bool(number)
                    )
                assert isinstance(answer, Digested)
                assert answer.inbound.text == "a"

        asyncio.run(story())

    def test_what_could_not_be_stored_stays_and_comes_again_as_the_same_update(
        self, rig: Rig, tmp_path: Path
    ) -> None:
        async def story() -> None:
            store = Store(rig, StoreFull(path="/full"))
            rig.comes_in("a")
            rig.comes_in("b")
            async with listening(rig, store) as task:
                await until(lambda: task.done() or store.taken)
            assert task.done()
            if not task.cancelled():
                assert task.exception() is not None  # it raises, and the supervisor restarts it
            assert store.taken or rig.originals() >= 1  # taken: it has given them again by itself
            found = await digest_all(rig, store, tmp_path / "downloads", 2)
            assert store.given.count(store.given[0]) >= 2
            assert [one.text for one in found] == ["a", "b"]

        asyncio.run(story())

    def test_what_was_in_hand_at_a_cancel_comes_again_as_the_same_update(
        self, rig: Rig, tmp_path: Path
    ) -> None:
        async def story() -> None:
            seen: list[str] = []

            async def never(
                updates: Sequence[Update], position: str | None = None, missed: object = None
            ) -> Taken:
                seen.extend(one.id for one in updates)
                await asyncio.Event().wait()
                raise AssertionError

            rig.comes_in("a")
            async with listening(rig, never) as task:
                await until(lambda: seen)
            assert task.cancelled()
            store = Store(rig)
            await digest_all(rig, store, tmp_path / "downloads", 1)
            assert [one.id for one in store.taken] == seen

        asyncio.run(story())

    def test_listening_to_silence_ends_when_cancelled(self, rig: Rig) -> None:
        async def story() -> None:
            store = Store(rig)
            async with listening(rig, store) as task:
                await some_polls()
                assert not task.done()
            assert task.cancelled()
            assert store.given == []

        asyncio.run(story())

    # --- what goes out -----------------------------------------------------------------------

    @pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
    def test_chunks_are_the_same_every_time_and_leave_no_word_out(self, rig: Rig, text: str) -> None:
        async def story() -> None:
            found = []
            for _ in range(2):
                async with started(rig) as adapter:
                    found += [adapter.chunks(rig.letter(text)) for _ in range(2)]
            assert all(one == found[0] for one in found)
            assert found[0]
            assert "".join("".join(found[0]).split()) == "".join(text.split())

        asyncio.run(story())

    def test_a_post_that_is_confirmed_is_there_and_has_a_name(self, rig: Rig) -> None:
        async def story() -> None:
            async with started(rig) as adapter:
                names = [await posted(adapter, rig.letter(text, id=f"e{text}"), text) for text in ("1", "2")]
                assert sorted(rig.posted()) == ["1", "2"]  # before the stop: a post is not buffered
                assert len(set(names)) == 2
                assert all(isinstance(name, str) and name for name in names)

        asyncio.run(story())

    def test_the_same_chunk_may_come_again(self, rig: Rig) -> None:
        async def story() -> None:
            async with started(rig) as adapter:
                first, second = [await posted(adapter, rig.letter(), "hello") for _ in range(2)]
                assert first
                assert second
                assert set(rig.posted()) == {"hello"}

        asyncio.run(story())

    def test_a_platform_that_is_away_is_a_lane_error(self, rig: Rig) -> None:
        async def story() -> None:
            async with started(rig) as adapter:
                rig.cannot_post()
                with pytest.raises(LaneError) as caught:
                    await adapter.post(rig.letter(), 0, "hello")
                assert caught.value.kind
                assert caught.value.text

        asyncio.run(story())

    def test_a_letter_that_can_never_be_posted_is_an_envelope_error_and_the_next_goes_on(
        self, rig: Rig
    ) -> None:
        async def story() -> None:
            async with started(rig) as adapter:
                with pytest.raises(EnvelopeError) as caught:
                    await adapter.post(rig.impossible(), 0, "hello")
                assert caught.value.kind
                assert caught.value.text
                assert await adapter.post(rig.letter(id="e2"), 0, "next")
                assert "next" in rig.posted()

        asyncio.run(story())

    def test_posting_goes_on_while_it_listens(self, rig: Rig) -> None:
        async def story() -> None:
            store = Store(rig)
            async with started(rig) as adapter, heard(adapter, store):
                rig.comes_in("in")
                await adapter.post(rig.letter(), 0, "out")
                await until(lambda: store.taken)
                assert rig.posted() == ["out"]

        asyncio.run(story())

    # --- for those who declare it --------------------------------------------------------

    def test_an_edit_gives_a_post_another_text_also_in_another_life_of_the_adapter(self, rig: Rig) -> None:
        async def story() -> None:
            async with started(rig) as adapter:
                if not {"edit", "delete"} <= capabilities(adapter):
                    pytest.skip("it cannot edit and delete")
                names = [await posted(adapter, rig.letter(text, id=f"e{text}"), text) for text in ("1", "2")]
                await adapter.edit(rig.chat, names[0], "one", "home-e1.1")
                await adapter.edit(rig.chat, names[0], "one", "home-e1.1")  # it may come again
                assert sorted(rig.posted()) == ["2", "one"]
            async with started(rig) as adapter:
                await adapter.edit(rig.chat, names[1], "two", "home-e2.1")
                assert sorted(rig.posted()) == ["one", "two"]

        asyncio.run(story())

    def test_what_is_deleted_is_gone_cannot_be_edited_and_can_be_deleted_again(self, rig: Rig) -> None:
        async def story() -> None:
            async with started(rig) as adapter:
                if not {"edit", "delete"} <= capabilities(adapter):
                    pytest.skip("it cannot edit and delete")
                names = [await posted(adapter, rig.letter(text, id=f"e{text}"), text) for text in ("1", "2")]
                await adapter.delete(rig.chat, names[0])
                assert rig.posted() == ["2"]
                with pytest.raises(EnvelopeError):
                    await adapter.edit(rig.chat, names[0], "one", "home-e1.1")
                await adapter.delete(rig.chat, names[0])
                await adapter.delete(rig.chat, "was never there")
                assert rig.posted() == ["2"]

        asyncio.run(story())


class FullAdapterContract(FullPlatformRules, AdapterContract):
    """What an adapter must do besides, if its platform has edits, buttons, albums and topics."""

    rig_type: ClassVar[type[FullRig]]

    def test_an_edit_names_the_message_that_it_edits(self, rig: FullRig, tmp_path: Path) -> None:
        rig.comes_in("teh first")
        rig.edit("the first")
        message, edit = digested(rig, tmp_path, 2)
        assert (message.kind, edit.kind) == ("message", "edit")
        assert message.message is not None
        assert (edit.message, edit.text) == (message.message, "the first")

    def test_a_message_in_a_topic_names_the_chat_and_the_topic(self, rig: FullRig, tmp_path: Path) -> None:
        plans = rig.topic("plans")
        rig.in_topic(plans, "hello")
        (found,) = digested(rig, tmp_path, 1)
        assert (found.chat, found.topic, found.place) == (rig.chat, plans, f"{rig.chat}/{plans}")
        assert found.text == "hello"

    def test_a_post_in_a_topic_is_confirmed_too(self, rig: FullRig) -> None:
        async def story() -> None:
            async with started(rig) as adapter:
                assert "threads" in capabilities(adapter)
                assert await adapter.post(rig.letter(place=f"{rig.chat}/{plans}"), 0, "hello")
            assert rig.posted() == ["hello"]

        plans = rig.topic("plans")
        asyncio.run(story())

    def test_a_press_acts_at_once_and_names_the_post_the_value_and_who_pressed(self, rig: FullRig) -> None:
        async def story() -> None:
            store = Store(rig)
            async with started(rig) as adapter, heard(adapter, store):
                post = await posted(adapter, rig.letter(), "shall I?")
                rig.press(post, "yes")
                await until(lambda: store.taken)
            (act,) = store.acts
            assert (act.kind, act.message, act.button) == ("press", post, "yes")
            assert act.author.id

        asyncio.run(story())

    def test_an_album_waits_for_more_and_becomes_one_message_with_all_its_files(
        self, rig: FullRig, tmp_path: Path
    ) -> None:
        async def story() -> None:
            store, downloads = Store(rig), tmp_path / "downloads"
            downloads.mkdir()
            rig.album(("1.jpg", "one"), ("2.jpg", "two"))
            async with started(rig) as adapter, heard(adapter, store):
                await until(lambda: len(store.taken) == 2)
                first = await adapter.digest(store.taken[:1], str(downloads), waited=False, last_try=False)
                assert isinstance(first, NotYet)
                whole = await adapter.digest(store.taken, str(downloads), waited=True, last_try=False)
            assert isinstance(whole, Digested)
            assert whole.used(store.taken) == store.taken
            assert [Path(path).name for path in whole.inbound.files] == ["1.jpg", "2.jpg"]
            assert [Path(path).read_text() for path in whole.inbound.files] == ["one", "two"]

        asyncio.run(story())

    def test_the_wait_for_an_album_counts_from_its_own_parts_also_if_others_go_on_writing(
        self, rig: FullRig, tmp_path: Path
    ) -> None:
        async def story() -> None:
            store, downloads = Store(rig), tmp_path / "downloads"
            downloads.mkdir()
            rig.album(("1.jpg", "one"))
            rig.comes_in("somebody else")
            async with started(rig) as adapter, heard(adapter, store):
                await until(lambda: len(store.taken) == 2)
                answer = await adapter.digest(store.taken, str(downloads), waited=False, last_try=False)
            assert isinstance(answer, NotYet)
            assert answer.counts_from(store.taken) == 0

        asyncio.run(story())

    def test_files_of_one_name_do_not_overwrite_each_other(self, rig: FullRig, tmp_path: Path) -> None:
        rig.album(("p.txt", "one"), ("p.txt", "two"))
        files = [Path(path_of(path)) for one in digested(rig, tmp_path, 2) for path in one.files]
        assert [(file.name, file.read_text()) for file in files] == [("p.txt", "one"), ("p.txt", "two")]

    def test_a_file_whose_name_is_a_path_stays_in_the_directory_for_downloads(
        self, rig: FullRig, tmp_path: Path
    ) -> None:
        rig.album(("../../up.txt", "one"), ("/tmp/root.txt", "two"), ("..", "three"))
        files = [Path(path_of(path)) for one in digested(rig, tmp_path, 3) for path in one.files]
        assert [file.read_text() for file in files] == ["one", "two", "three"]
        assert all(file.resolve().is_relative_to(tmp_path / "downloads") for file in files)

    def test_what_comes_in_between_the_parts_of_an_album_is_not_lost(
        self, rig: FullRig, tmp_path: Path
    ) -> None:
        rig.album(("1.jpg", "one"))
        rig.comes_in("between them")
        rig.album(("2.jpg", "two"))
        rig.comes_in("after it")
        found = digested(rig, tmp_path, 4)
        assert sorted(Path(path_of(path)).name for one in found for path in one.files) == ["1.jpg", "2.jpg"]
        assert [one.text for one in found if not one.files] == ["between them", "after it"]
