"""Where a bot may not write, and what is not there any more; the server as a process of its own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from hiboss.testing.bot_api import BotApi
from hiboss.testing.bot_api.bots import Bot
from hiboss.testing.bot_api.chats import Chat
from hiboss.testing.bot_api.people import Person

from .conftest import Raw
from .sending_calls import CHANGING, EVERY, NEW, SHOWN_ONLY, Sender

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
    blocked = said(sender(method, ada.id, **before))
    assert blocked == (403, "Forbidden: bot was blocked by the user", None)
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
    assert control(url, "floods") == []
    assert control(url, "messages", **who)[-1]["texts"] == ["abc"]


def test_curl_needs_no_header_for_the_control_door(url: str) -> None:
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    answer = httpx.post(
        f"{url}/control/messages", content=b'{"person": "ada", "bot": "nexbot"}', headers=form
    )
    assert answer.json()["result"][0]["text"] == "/start"
    unreadable = httpx.post(f"{url}/control/messages", content=b"person=ada", headers=form)
    assert unreadable.status_code == 400


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
