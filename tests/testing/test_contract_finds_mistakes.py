"""An adapter with one mistake fails the contract test that is meant for it."""

from __future__ import annotations

import asyncio
import inspect
import socket
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hiboss.core.contracts.adapter import Letter
from hiboss.core.contracts.failures import EnvelopeError, LaneError
from hiboss.core.contracts.inbound import Digested
from hiboss.testing.adapter_contract import FullAdapterContract
from hiboss.testing.blocking_guard import what_blocks
from hiboss.testing.scripted_adapter import ScriptedAdapter as Right
from tests.channels.adapter_rigs import ScriptedRig

Wrong = tuple[str, Callable[..., Any]]
post, digest, edit = Right.post, Right.digest, Right.edit


def posts_another(**changes: Any) -> Wrong:
    async def wrong(self: Right, letter: Letter, number: int, chunk: str) -> str:
        return await post(self, replace(letter, **changes), number, chunk)

    return "post", wrong


def ignores_the_topic() -> Wrong:
    async def wrong(self: Right, letter: Letter, number: int, chunk: str) -> str:
        return await post(self, replace(letter, place=letter.chat), number, chunk)

    return "post", wrong


def raises_instead(error: Exception) -> Wrong:
    async def wrong(self: Right, letter: Letter, number: int, chunk: str) -> str:
        try:
            return await post(self, letter, number, chunk)
        except LaneError:
            raise error from None

    return "post", wrong


def blocks() -> Wrong:
    async def wrong(self: Right, letter: Letter, number: int, chunk: str) -> str:
        time.sleep(0.001)
        return await post(self, letter, number, chunk)

    return "post", wrong


def needs_what_it_answers() -> Wrong:
    async def wrong(self: Right, letter: Letter, number: int, chunk: str) -> str:
        if letter.reply_to == "m0":
            raise EnvelopeError("refused", "reply to what?")
        return await post(self, letter, number, chunk)

    return "post", wrong


def edits_nothing_in_topics() -> Wrong:
    async def wrong(self: Right, place: str, platform_id: str, chunk: str, key: str) -> None:
        if "/" not in place:
            await edit(self, place, platform_id, chunk, key)

    return "edit", wrong


def forgets_what_it_replies_to() -> Wrong:
    async def wrong(self: Right, updates: Any, downloads: str, **more: bool) -> Digested:
        found = await digest(self, updates, downloads, **more)  # type: ignore[arg-type]
        assert isinstance(found, Digested)
        return replace(found, inbound=replace(found.inbound, reply_to=None))

    return "digest", wrong


def insists_on_files() -> Wrong:
    async def wrong(self: Right, updates: Any, downloads: str, *, waited: bool, last_try: bool) -> Any:
        return await digest(self, updates, downloads, waited=waited, last_try=False)

    return "digest", wrong


def types_with_a_mistake() -> Wrong:
    async def wrong(self: Right, place: str) -> None:
        raise NameError("plaze")

    return "typing", wrong


RULES = [
    ("a_post_is_in_the_place_of_its_letter", ignores_the_topic()),
    ("a_letter_that_answers_a_message_is_posted_as_its_reply", posts_another(reply_to=None)),
    ("a_letter_that_answers_a_message_that_was_deleted_is_posted_without_it", needs_what_it_answers()),
    ("an_account_that_is_accepted_no_more_is_an_account_error", raises_instead(LaneError("lane", "401"))),
    ("it_never_blocks_the_event_loop", blocks()),
    ("what_is_in_a_topic_can_be_edited_and_deleted", edits_nothing_in_topics()),
    ("a_reply_names_the_post_that_it_replies_to", forgets_what_it_replies_to()),
    ("a_message_whose_file_is_lost_comes_without_it_at_the_last_try", insists_on_files()),
    ("typing_drafts_and_reactions_go_out_or_are_refused_by_the_platform", types_with_a_mistake()),
    *[
        ("a_wait_that_the_platform_names_for_a_chat_is_a_lane_error_with_that_wait", raises_instead(error))
        for error in (EnvelopeError("refused", "429"), LaneError("lane", "429"))
    ],
]


@pytest.mark.parametrize(("rule", "mistake"), RULES, ids=[rule for rule, _ in RULES])
def test_an_adapter_with_this_mistake_fails_and_without_it_passes(
    rule: str, mistake: Wrong, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "right").mkdir()
    held_against(rule, tmp_path / "right")
    monkeypatch.setattr(Right, *mistake)
    (tmp_path / "wrong").mkdir()
    with pytest.raises((Exception, pytest.fail.Exception)):
        held_against(rule, tmp_path / "wrong")


def held_against(rule: str, directory: Path) -> None:
    test = getattr(FullAdapterContract(), f"test_{rule}")
    more = (directory,) if "tmp_path" in inspect.signature(test).parameters else ()
    test(ScriptedRig(directory), *more)


def test_only_what_keeps_the_loop_waiting_counts_as_blocking() -> None:
    async def story(server: socket.socket) -> list[str]:
        with what_blocks() as found, socket.socket() as client, socket.socket() as waiting:
            await asyncio.to_thread(time.sleep, 0.001)
            await asyncio.sleep(0.001)
            client.setblocking(False)
            await asyncio.get_running_loop().sock_connect(client, server.getsockname())
            assert found == []
            waiting.connect(server.getsockname())
            time.sleep(0.001)
        time.sleep(0.001)
        return found

    with socket.create_server(("127.0.0.1", 0)) as server:
        connected, slept = asyncio.run(story(server))
    assert connected.startswith(f"connect in {__file__}:") and slept.startswith(f"sleep in {__file__}:")
