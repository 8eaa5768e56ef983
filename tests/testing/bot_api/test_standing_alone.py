"""The server as a process of its own, and the door through which other processes act as people."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

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
