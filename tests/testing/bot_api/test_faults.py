"""Things that go wrong on purpose, as the library meets them; refusals; and how much a bot may send."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
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
from .sending_calls import CHANGING, EVERY, NEW, SHOWN_ONLY, Sender


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
    assert [wait(raw, ada.id) for _ in range(3)] == [0] * 3
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
    album = [{"type": "photo", "media": ada.sends_photo(group, caption="@nexbot").files[-1].id}] * 7
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
    assert (wait(raw, ada.id, "sendMessageDraft", draft_id=1), wait(raw, ada.id)) == (5, 0)
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


# --- refusals -------------------------------------------------------------------------------------


DRAFTS = ("sendMessageDraft", "sendRichMessageDraft")
IN_GROUPS = tuple(method for method in EVERY if method not in DRAFTS)


@pytest.fixture
def sender(api: BotApi, bot: Bot) -> Iterator[Sender]:
    calls = Sender(api, bot)
    yield calls
    calls.client.close()


def said(response: httpx.Response) -> tuple[int, str, Any]:
    answer = response.json()
    assert response.status_code == answer.get("error_code", 200)
    return response.status_code, answer.get("description", ""), answer.get("parameters")


@pytest.mark.parametrize("method", EVERY)
def test_a_good_call_is_carried_out(
    api: BotApi, sender: Sender, ada: Person, chat: Chat, method: str
) -> None:
    assert said(sender(method, ada.id, **sender.prepare(method, ada.id)))[0] == 200
    assert api.complaints == []
    if method in NEW:
        assert "new" in chat.visible()


@pytest.mark.parametrize("method", EVERY)
def test_who_blocked_the_bot_or_is_gone_cannot_be_written_to(
    sender: Sender, bot: Bot, ada: Person, chat: Chat, method: str
) -> None:
    before = sender.prepare(method, ada.id)
    ada.blocks(bot)
    assert said(sender(method, ada.id, **before)) == (403, "Forbidden: bot was blocked by the user", None)
    ada.deletes_account()
    assert said(sender(method, ada.id, **before)) == (403, "Forbidden: user is deactivated", None)


@pytest.mark.parametrize("method", EVERY)
def test_nobody_writes_first(sender: Sender, ada: Person, method: str) -> None:
    answer = said(sender(method, ada.id, message_id=1))
    assert answer == (403, "Forbidden: bot can't initiate conversation with a user", None)


@pytest.mark.parametrize("method", IN_GROUPS)
def test_a_group_that_moved_tells_where_to_every_method(
    api: BotApi, sender: Sender, bot: Bot, ada: Person, method: str
) -> None:
    group = api.add_group("Team", [ada, bot], supergroup=False)
    before = sender.prepare(method, group.id)
    new = group.migrate()
    answer = said(sender(method, group.id, **before))
    words = "Bad Request: group chat was upgraded to a supergroup chat"
    assert answer == (400, words, {"migrate_to_chat_id": new.id})


@pytest.mark.parametrize("method", IN_GROUPS)
def test_a_group_that_is_deleted_or_left_cannot_be_written_to(
    api: BotApi, sender: Sender, bot: Bot, ada: Person, method: str
) -> None:
    group, other = api.add_group("Team", [ada, bot]), api.add_group("Other", [ada, bot])
    before, before_other = sender.prepare(method, group.id), sender.prepare(method, other.id)
    group.dissolve()
    other.remove(bot)
    assert said(sender(method, group.id, **before)) == (403, "Forbidden: the group chat was deleted", None)
    answer = said(sender(method, other.id, **before_other))
    assert answer == (403, "Forbidden: bot was kicked from the supergroup chat", None)


@pytest.mark.parametrize("method", [*NEW, *SHOWN_ONLY])
def test_a_topic_that_was_deleted_is_not_found_by_any_method(api: BotApi, ada: Person, method: str) -> None:
    bot = api.add_bot("topicbot", topics=True)
    ada.starts(bot)
    sender, raw = Sender(api, bot), Raw(api, bot)
    topic = raw("createForumTopic", chat_id=ada.id, name="Here")["message_thread_id"]
    assert said(sender(method, ada.id, message_thread_id=topic))[0] == 200
    raw("deleteForumTopic", chat_id=ada.id, message_thread_id=topic)
    answer = said(sender(method, ada.id, message_thread_id=topic))
    assert answer == (400, "Bad Request: message thread not found", None)
    sender.client.close()
    raw.close()


@pytest.mark.parametrize("method", CHANGING)
def test_what_was_deleted_can_no_longer_be_changed(
    sender: Sender, ada: Person, chat: Chat, method: str
) -> None:
    before = sender.prepare(method, ada.id)
    ada.deletes(chat.messages[-1])
    status, words, _ = said(sender(method, ada.id, **before))
    verb = {"deleteMessage": "delete", "setMessageReaction": "react"}.get(method, "edit")
    assert (status, words) == (400, f"Bad Request: message to {verb} not found")


def test_a_text_or_caption_that_is_too_long_is_refused_in_an_edit_too(
    sender: Sender, ada: Person, chat: Chat
) -> None:
    text = sender.prepare("editMessageText", ada.id)
    caption = sender.prepare("editMessageCaption", ada.id)
    assert (
        said(sender("editMessageText", ada.id, **text, old="x" * 4097))[1]
        == "Bad Request: message is too long"
    )
    words = said(sender("editMessageCaption", ada.id, **caption, old="x" * 1025))[1]
    assert words == "Bad Request: message caption is too long"


def test_the_same_text_with_the_same_entities_is_no_edit(raw: Raw, ada: Person, chat: Chat) -> None:
    bold, italic = ({"type": kind, "offset": 0, "length": 3} for kind in ("bold", "italic"))
    sent = raw("sendMessage", chat_id=ada.id, text="abc", entities=[bold, italic])
    here = {"chat_id": ada.id, "message_id": sent["message_id"], "text": "abc"}
    assert "not modified" in raw.refused("editMessageText", **here, entities=[italic, bold])[1]
    assert raw("editMessageText", **here, entities=[italic])["entities"] == [italic]
    assert "not modified" in raw.refused("editMessageText", **here, entities=[italic])[1]


# --- a process of its own -------------------------------------------------------------


TOKEN = "123456:abc_DEF"


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    command = [sys.executable, "-m", "hiboss.testing.bot_api", "--bot-token", TOKEN]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert TOKEN not in line
        yield line.split(" at ")[1].split()[0]
        process.terminate()
        assert process.wait(timeout=30) == 0


def control(url: str, verb: str, **given: Any) -> Any:
    answer = httpx.post(f"{url}/control/{verb}", json=given).json()
    assert answer["ok"], answer
    return answer["result"]


def test_a_conversation_through_the_control_door(url: str) -> None:
    root = f"{url}/bot{TOKEN}"
    control(url, "says", text="hello")
    updates = httpx.get(f"{root}/getUpdates").json()["result"]
    assert [one["message"]["text"] for one in updates] == ["/start", "hello"]
    markup = {"inline_keyboard": [[{"text": "Yes", "callback_data": "y"}]]}
    ada = updates[0]["message"]["chat"]["id"]
    httpx.post(f"{root}/sendMessage", json={"chat_id": ada, "text": "sure?", "reply_markup": markup})
    shown = control(url, "wait_for_text", text="sure?")
    assert (shown["from"], shown["buttons"]) == ("nexbot", [{"text": "Yes", "data": "y"}])
    control(url, "presses", message=shown["id"], data="y")
    control(url, "reacts", message=shown["id"], emoji="👍")
    control(url, "edits", message=control(url, "says", text="oen", reply_to=shown["id"])["id"], text="one")
    assert [one["text"] for one in control(url, "messages")][-1] == "one"
    kinds = [sorted(one)[0] for one in control(url, "pending")][2:]
    assert kinds == ["callback_query", "message", "edited_message"]
    assert control(url, "calls", method="sendMessage")[0]["status"] == 200


def test_groups_faults_and_time_through_the_control_door(url: str) -> None:
    control(url, "add_person", first_name="Bob", username="bob")
    group = control(url, "add_group", title="Team", members=["ada", "bob", "nexbot"], forum=True)["id"]
    topic = control(url, "create_topic", person="ada", chat=group, name="Plans")["message_thread_id"]
    assert control(url, "says", person="bob", chat=group, text="hi", topic=topic)["topic"] == topic
    control(url, "fault", method="getMe", retry_after=7)
    assert httpx.get(f"{url}/bot{TOKEN}/getMe").json()["parameters"] == {"retry_after": 7}
    control(url, "advance", days=2)
    assert control(url, "pending") == []
    other = control(url, "add_bot", username="otherbot")
    assert httpx.get(f"{url}/bot{other['token']}/getMe").json()["result"]["username"] == "otherbot"


def test_what_was_wrong_and_what_was_ever_seen_through_the_control_door(url: str) -> None:
    root, person = f"{url}/bot{TOKEN}", control(url, "add_person", first_name="Eve", username="eve")["id"]
    who = {"person": "eve", "bot": "nexbot"}
    control(url, "starts", **who)
    httpx.post(
        f"{root}/sendMessageDraft", json={"chat_id": person, "draft_id": 4, "text": "a", "can_stop": True}
    )
    control(url, "stops_generation", **who)
    assert [one["draft_id"] for one in control(url, "drafts", **who)] == [4]
    empty = [{"type": "bold", "offset": 0, "length": 0}]
    control(url, "random_faults", rate=1, seed=1, kinds=["error_done"])
    httpx.post(f"{root}/sendMessage", json={"chat_id": person, "text": "abc", "entities": empty})
    control(url, "clear_faults")
    assert [one["params"]["text"] for one in control(url, "carried_out")] == ["abc"]
    assert control(url, "complaints") == ["sendMessage 'abc': an empty bold at 0 is dropped"]
    assert [(one["kind"], one["text"]) for one in control(url, "log", **who)][1:] == [("sent", "abc")]
    assert (control(url, "floods"), control(url, "messages", **who)[-1]["texts"]) == ([], ["abc"])


def test_curl_needs_no_header_for_the_control_door(url: str) -> None:
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    answer = httpx.post(
        f"{url}/control/messages", content=b'{"person": "ada", "bot": "nexbot"}', headers=form
    )
    assert answer.json()["result"][0]["text"] == "/start"
    assert httpx.post(f"{url}/control/messages", content=b"person=ada", headers=form).status_code == 400


@pytest.mark.parametrize(
    ("verb", "given", "status"),
    [
        ("dances", {}, 404),
        ("says", {"person": "nobody", "text": "x"}, 400),
        ("presses", {"person": "ada", "bot": "nexbot", "message": 999, "data": "y"}, 400),
        ("add_person", {"shoe_size": 43}, 400),
    ],
)
def test_what_makes_no_sense_is_refused(url: str, verb: str, given: dict[str, Any], status: int) -> None:
    assert httpx.post(f"{url}/control/{verb}", json=given).status_code == status
