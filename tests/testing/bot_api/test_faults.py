"""Things that go wrong on purpose, as the library meets them; and how much a bot may send."""

from __future__ import annotations

import threading
from contextlib import closing
from typing import Any

import httpx
import pytest
from telegram import Bot as Library
from telegram.error import Conflict, InvalidToken, NetworkError, RetryAfter, TelegramError, TimedOut

from hiboss.testing.bot_api import BotApi
from hiboss.testing.bot_api.bots import Bot
from hiboss.testing.bot_api.chats import Chat
from hiboss.testing.bot_api.people import Person

from .conftest import Raw


@pytest.mark.parametrize(
    ("what", "error"),
    [
        ({"status": 401}, InvalidToken),
        ({"status": 409}, Conflict),
        ({"retry_after": 3}, RetryAfter),
        ({"status": 500}, NetworkError),
        ({"status": 502}, NetworkError),
        ({"do": "drop"}, NetworkError),
        ({"do": "garbage"}, TelegramError),
    ],
)
async def test_the_library_meets_a_fault_once_and_nothing_is_sent(
    api: BotApi, bot: Bot, ada: Person, chat: Chat, what: Any, error: type[Exception], client: Library
) -> None:
    fault = api.fault("sendMessage", everywhere=True, **what)
    with pytest.raises(error):
        await client.send_message(ada.id, "one")
    assert chat.texts == ["/start"]
    await client.send_message(ada.id, "two")
    assert chat.texts == ["/start", "two"]
    assert fault.hits == 1


async def test_a_hanging_call_times_out_at_the_library(
    api: BotApi, bot: Bot, ada: Person, chat: Chat, client: Library
) -> None:
    api.fault("sendMessage", everywhere=True, do="hang", times=None)
    with pytest.raises(TimedOut):
        await client.send_message(ada.id, "one", read_timeout=0.05)


def test_a_fault_for_all_methods_lasts_until_it_is_cleared(
    api: BotApi, ada: Person, chat: Chat, raw: Raw
) -> None:
    fault = api.fault(everywhere=True, status=500, times=None)
    assert raw.refused("getMe")[0] == raw.refused("sendMessage", chat_id=ada.id, text="x")[0] == 500
    fault.clear()
    raw("getMe")


def test_a_poll_that_waits_ends_so_that_the_next_meets_the_fault(api: BotApi, bot: Bot, raw: Raw) -> None:
    thread = threading.Thread(target=raw.post, args=("getUpdates",), kwargs={"timeout": 30})
    thread.start()
    api.wait_for_call("getUpdates")
    api.fault("getUpdates", everywhere=True, status=409)
    thread.join()
    assert raw.refused("getUpdates")[0] == 409


def test_nobody_listens_for_a_while(api: BotApi, ada: Person, chat: Chat, raw: Raw) -> None:
    url = api.url
    api.stop_listening()
    with pytest.raises(httpx.ConnectError):
        raw("getMe")
    ada.says(chat, "are you there?")
    api.listen_again()
    assert api.url == url
    assert [one["text"] for one in raw.messages()] == ["are you there?"]


def test_a_poll_that_waits_is_cut_when_nobody_listens(api: BotApi, bot: Bot, raw: Raw) -> None:
    errors: list[Exception] = []

    def poll() -> None:
        try:
            raw.post("getUpdates", timeout=30)
        except httpx.HTTPError as error:
            errors.append(error)

    thread = threading.Thread(target=poll)
    thread.start()
    api.wait_for_call("getUpdates")
    api.stop_listening()
    thread.join()
    assert len(errors) == 1


def test_a_download_is_slow_or_fails(api: BotApi, bot: Bot, ada: Person, chat: Chat, raw: Raw) -> None:
    sent = ada.sends_document(chat, "a.bin", b"0123456789" * 10)
    path = raw("getFile", file_id=sent.files[0].id)["file_path"]
    url = f"{api.url}/file/bot{bot.token}/{path}"
    api.fault("file", everywhere=True, status=404)
    assert httpx.get(url).status_code == 404
    api.fault("file", everywhere=True, bytes_per_second=10_000)
    assert httpx.get(url).content == b"0123456789" * 10
    api.fault("file", everywhere=True, bytes_per_second=1)
    with pytest.raises(httpx.ReadTimeout):
        httpx.get(url, timeout=0.2)
    sent.files[0].vanish()
    assert httpx.get(url).status_code == 404
    assert httpx.get(f"{api.url}/file/bot1:wrong_token/{path}").status_code == 401


def test_a_fault_can_be_of_one_bot_or_one_chat_only(
    api: BotApi, bot: Bot, ada: Person, chat: Chat, raw: Raw
) -> None:
    bob, other = api.add_person("Bob"), api.add_bot("otherbot")
    for person, its_bot in ((bob, bot), (ada, other)):
        person.starts(its_bot)
    with closing(Raw(api, other)) as raw_other:
        api.fault("sendMessage", status=500, times=None, bot=bot.id, chat=ada.id)
        assert raw("sendMessage", chat_id=bob.id, text="one")
        assert raw_other("sendMessage", chat_id=ada.id, text="two")
        assert raw.refused("sendMessage", chat_id=ada.id, text="three")[0] == 500
        api.clear_faults()
        api.fault("*", status=500, times=None, bot=other.id)
        assert raw("getMe") and raw_other.refused("getMe")[0] == 500


def test_an_upload_can_be_slow_until_the_test_has_seen_enough(
    api: BotApi, ada: Person, chat: Chat, raw: Raw
) -> None:
    api.upload_pace = 1  # so it would take hours
    sending = threading.Thread(target=lambda: raw("sendMessage", chat_id=ada.id, text="x", pad="y" * 100_000))
    sending.start()
    ada.says(chat, "meanwhile")
    sending.join(0.1)
    assert sending.is_alive() and "x" not in chat.texts
    api.upload_pace = None
    sending.join(30)
    assert chat.texts[-1] == "x"


def test_what_is_waited_for_in_vain_is_told_with_what_is_there(
    api: BotApi, bot: Bot, ada: Person, chat: Chat
) -> None:
    ada.says(chat, "hello")
    with pytest.raises(AssertionError, match="hello"):
        chat.wait_for(lambda messages: False, seconds=0.01)
    with pytest.raises(AssertionError, match="sendMessage not seen"):
        api.wait_for_call("sendMessage", seconds=0.01)
    assert bot.token not in repr(bot) + repr(api.calls)


# --- floods ---------------------------------------------------------------------------


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
    assert [wait(raw, person.id) for person in people[:31]] == [0] * 30 + [1]
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
