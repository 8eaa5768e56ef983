"""How much a bot may send, what happens to who goes on, and what a test can see of it."""

from __future__ import annotations

from typing import Any

import pytest

from hiboss.testing.bot_api import BotApi
from hiboss.testing.bot_api.bots import Bot
from hiboss.testing.bot_api.chats import Chat
from hiboss.testing.bot_api.people import Person

from .conftest import Raw


def wait(raw: Raw, chat_id: int, method: str = "sendMessage", **params: Any) -> int:
    """Send a message; return for how many seconds it was refused, 0 if it was sent."""
    answer = raw.post(method, chat_id=chat_id, **{"text": "hi", **params}).json()
    return int(answer.get("parameters", {}).get("retry_after", 0))


def test_who_keeps_to_the_limits_is_never_refused(api: BotApi, raw: Raw, ada: Person, chat: Chat) -> None:
    api.limit()
    for _ in range(30):
        assert wait(raw, ada.id) == 0
        api.advance(seconds=1)
    assert api.floods == []


def test_who_goes_on_waits_longer_each_time(api: BotApi, raw: Raw, ada: Person, bot: Bot, chat: Chat) -> None:
    api.limit()
    for _ in range(3):
        assert wait(raw, ada.id) == 0
    first = wait(raw, ada.id)
    second = wait(raw, ada.id)
    third = wait(raw, ada.id)
    assert 0 < first < second < third
    assert [one.during_wait for one in api.floods] == [False, True, True]
    assert {(one.method, one.bot, one.chat, one.bot_wide) for one in api.floods} == {
        ("sendMessage", bot.id, ada.id, False)
    }
    api.advance(seconds=third)
    assert wait(raw, ada.id) == 0
    assert len(chat.texts) == 1 + 4


def test_another_chat_need_not_wait(api: BotApi, raw: Raw, bot: Bot, ada: Person, chat: Chat) -> None:
    bob = api.add_person("Bob")
    bob.starts(bot)
    api.limit()
    while not wait(raw, ada.id):
        pass
    assert wait(raw, bob.id) == 0


def test_a_wait_of_the_whole_bot_holds_in_every_chat(api: BotApi, raw: Raw, bot: Bot) -> None:
    people = [api.add_person(f"P{number}") for number in range(40)]
    for person in people:
        person.starts(bot)
    api.limit()
    api.world.clock.now = lambda: 1_000_000.0  # type: ignore[method-assign]  # all within one moment
    waits = [wait(raw, person.id) for person in people[:31]]
    assert waits == [0] * 30 + [1]
    assert wait(raw, people[35].id) > 1
    assert [(one.bot_wide, one.during_wait) for one in api.floods] == [(True, False), (True, True)]
    api.world.clock.now = lambda: 1_000_003.0  # type: ignore[method-assign]
    assert wait(raw, people[35].id) == 0


def test_a_group_takes_twenty_a_minute_with_edits(api: BotApi, raw: Raw, ada: Person, bot: Bot) -> None:
    group = api.add_group("Team", [ada, bot])
    api.limit()
    sent = raw("sendMessage", chat_id=group.id, text="0")["message_id"]
    for number in range(19):
        api.advance(seconds=2)
        assert wait(raw, group.id, "editMessageText", message_id=sent, text=str(number + 1)) == 0
    api.advance(seconds=2)
    seconds = wait(raw, group.id, "editMessageText", message_id=sent, text="more")
    assert 15 <= seconds <= 21
    api.advance(seconds=seconds)
    assert wait(raw, group.id, "editMessageText", message_id=sent, text="more") == 0


def test_each_part_of_an_album_counts_in_a_group(api: BotApi, raw: Raw, ada: Person, bot: Bot) -> None:
    group = api.add_group("Team", [ada, bot])
    photo = ada.sends_photo(group, caption="@nexbot").files[-1].id
    album = [{"type": "photo", "media": photo}] * 7
    api.limit()
    for expected in (False, False, True):
        assert (wait(raw, group.id, "sendMediaGroup", media=album) > 0) is expected
        api.advance(seconds=3)


def test_reactions_drafts_and_actions_do_not_count(api: BotApi, raw: Raw, ada: Person, chat: Chat) -> None:
    message = ada.says(chat, "hello")
    api.limit()
    for number in range(40):
        raw("sendChatAction", chat_id=ada.id, action="typing")
        raw("sendMessageDraft", chat_id=ada.id, draft_id=1, text=str(number))
        emoji = [{"type": "emoji", "emoji": "👀"}]
        raw("setMessageReaction", chat_id=ada.id, message_id=message.id, reaction=emoji)
    assert api.floods == []


def test_a_scripted_wait_for_a_draft_says_nothing_about_messages(
    api: BotApi, raw: Raw, ada: Person, chat: Chat
) -> None:
    api.fault("sendMessageDraft", everywhere=True, retry_after=5)
    assert wait(raw, ada.id, "sendMessageDraft", draft_id=1) == 5
    assert wait(raw, ada.id) == 0
    assert [(one.method, one.scripted) for one in api.floods] == [("sendMessageDraft", True)]


@pytest.mark.parametrize("limits", [False, True])
def test_a_call_into_a_scripted_wait_is_seen(
    api: BotApi, raw: Raw, ada: Person, chat: Chat, limits: bool
) -> None:
    api.limit(limits)
    api.fault("sendMessage", everywhere=True, retry_after=5)
    assert wait(raw, ada.id) == 5
    assert wait(raw, ada.id) == (10 if limits else 0)
    assert [(one.scripted, one.during_wait, one.retry_after) for one in api.floods] == [
        (True, False, 5),
        (False, True, 10 if limits else 0),
    ]
    api.advance(seconds=10)
    assert wait(raw, ada.id) == 0
    assert len(api.floods) == 2
