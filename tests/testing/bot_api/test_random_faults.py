"""Faults of every sending method, faults at random, and which calls were carried out all the same."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from hiboss.testing.bot_api import BotApi
from hiboss.testing.bot_api.bots import Bot
from hiboss.testing.bot_api.chats import Chat
from hiboss.testing.bot_api.people import Person

from .conftest import Raw
from .sending_calls import EVERY, Sender

pytestmark = pytest.mark.slow

NOT_DONE: list[Any] = [
    {"status": 500},
    {"status": 502},
    {"retry_after": 3},
    {"do": "drop"},
    {"do": "garbage"},
]
DONE: list[Any] = [
    {"do": "lose_answer"},
    {"status": 500, "carry_out": True},
    {"do": "drop", "carry_out": True},
    {"do": "garbage", "carry_out": True},
]


@pytest.fixture
def sender(api: BotApi, bot: Bot) -> Iterator[Sender]:
    calls = Sender(api, bot)
    yield calls
    calls.client.close()


def succeeds(sender: Sender, method: str, chat: int, **params: Any) -> bool:
    """Call, and return whether a client takes it for a success."""
    try:
        return bool(sender(method, chat, **params).json()["ok"])
    except (httpx.HTTPError, ValueError):
        return False


def seen(chat: Chat) -> Any:
    """Return all that can change before the eyes of people."""
    reactions = [dict(one.reactions) for one in chat.messages]
    return chat.visible(), list(chat.drafts), list(chat.actions), reactions


@pytest.mark.parametrize("method", EVERY)
def test_every_method_meets_faults_and_nothing_is_done(
    api: BotApi, sender: Sender, ada: Person, chat: Chat, method: str
) -> None:
    for what in NOT_DONE:
        message = sender.prepare(method, ada.id)
        before = seen(chat)
        api.fault(method, everywhere=True, **what)
        assert not succeeds(sender, method, ada.id, **message)
        assert seen(chat) == before
    assert api.carried_out == []
    assert succeeds(sender, method, ada.id, **message)


@pytest.mark.parametrize("method", EVERY)
def test_every_method_is_carried_out_though_the_caller_sees_an_error(
    api: BotApi, sender: Sender, ada: Person, chat: Chat, method: str
) -> None:
    for number, what in enumerate(DONE, 1):
        message = sender.prepare(method, ada.id)
        before = seen(chat)
        api.fault(method, everywhere=True, **what)
        assert not succeeds(sender, method, ada.id, **message)
        assert seen(chat) != before
        assert len(api.carried_out) == number
        done = api.carried_out[-1]
        assert done.call.method == method
        if message:
            assert done.message_ids == (message["message_id"],)
        elif "Draft" not in method and method != "sendChatAction":
            count = 2 if method == "sendMediaGroup" else 1
            assert done.message_ids == tuple(one.id for one in chat.messages[-count:])


@pytest.mark.parametrize("method", EVERY)
@pytest.mark.parametrize("carry_out", [False, True])
def test_every_method_can_hang(
    api: BotApi, sender: Sender, ada: Person, chat: Chat, method: str, carry_out: bool
) -> None:
    message = sender.prepare(method, ada.id)
    before = seen(chat)
    fault = api.fault(method, everywhere=True, do="hang", carry_out=carry_out)
    thread = threading.Thread(target=sender, args=(method, ada.id), kwargs=message)
    thread.start()
    api.wait_for(lambda: fault.hits == 1 and (not carry_out or len(api.carried_out) == 1))
    assert (seen(chat) != before) is carry_out
    fault.release()
    thread.join()
    assert seen(chat) != before
    assert api.carried_out == []  # it was waited for


def test_a_refused_call_was_not_carried_out(api: BotApi, sender: Sender, ada: Person, chat: Chat) -> None:
    api.fault("sendMessage", everywhere=True, do="lose_answer")
    assert not succeeds(sender, "sendMessage", ada.id, old="")
    assert api.carried_out == []


def test_random_faults_are_attributed_exactly(api: BotApi, sender: Sender, ada: Person, chat: Chat) -> None:
    faults = api.random_faults(0.5, seed=3)
    heard: list[str] = []
    for number in range(120):
        if succeeds(sender, "sendMessage", ada.id, old=f"m{number}"):
            heard.append(f"m{number}")
    api.clear_faults()
    unheard = [one.call.params["text"] for one in api.carried_out]
    assert sorted(chat.visible()[1:]) == sorted(heard + unheard)
    assert len(heard) == 120 - faults.hits.total()
    assert len(unheard) == sum(count for kind, count in faults.hits.items() if kind.endswith("_done"))
    assert len(faults.hits) == 9  # each of them came
    assert succeeds(sender, "sendMessage", ada.id)


def test_random_faults_repeat_with_their_seed_and_keep_to_their_methods(
    api: BotApi, sender: Sender, raw: Raw, ada: Person, chat: Chat
) -> None:
    outcomes = []
    for _ in range(2):
        faults = api.random_faults(0.5, seed=9, methods=["sendMessage"], kinds=["error", "error_done"])
        outcomes.append([succeeds(sender, "sendMessage", ada.id) for _ in range(20)])
        assert set(faults.hits) == {"error", "error_done"}
        for _ in range(20):
            raw("sendChatAction", chat_id=ada.id, action="typing")
        api.clear_faults()
    assert outcomes[0] == outcomes[1]
    assert Counter(outcomes[0]).keys() == {True, False}
    with pytest.raises(AssertionError, match="not juggle"):
        api.random_faults(0.5, seed=1, kinds=["juggle"])


def test_a_caller_that_is_gone_before_the_answer_is_noted(
    api: BotApi, bot: Bot, ada: Person, chat: Chat
) -> None:
    api.delay = 60
    with httpx.Client(timeout=httpx.Timeout(30, read=0.05)) as client, pytest.raises(httpx.ReadTimeout):
        client.post(f"{api.url}/bot{bot.token}/sendMessage", json={"chat_id": ada.id, "text": "unheard"})
    api.delay = 0
    api.wait_for(lambda: len(api.carried_out) == 1)
    assert (api.carried_out[0].why, api.carried_out[0].message_ids) == (
        "caller gone",
        (chat.messages[-1].id,),
    )


def test_a_server_that_takes_time_lets_other_calls_pass(
    api: BotApi, raw: Raw, bot: Bot, ada: Person, chat: Chat
) -> None:
    api.delay = 60
    thread = threading.Thread(
        target=raw.post, args=("sendMessage",), kwargs={"chat_id": ada.id, "text": "slow"}
    )
    thread.start()
    chat.wait_for_text("slow")  # it is done, but not answered
    other = Raw(api, bot)
    assert other("getMe")["id"] == bot.id
    assert thread.is_alive()
    api.delay = 0
    thread.join()
    assert api.carried_out == []
    other.close()
