"""The tools, with the official client in all four ways: the list, each tool once, and what they refuse."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from mcp_types import INVALID_PARAMS

from hiboss.api.operation import REGISTRY
from hiboss.mcp import tools
from hiboss.mcp.tools import TABLE
from tests.support.mcp_clients import Chat, McpClient, Way, mcp_client
from tests.support.parties import agent
from tests.support.web_daemons import WebDaemon

NAMES = [
    *("chat_read_since", "chat_human_post", "chat_assistant_post", "chat_ack"),
    *("send", "inbox", "claim", "ack", "reply", "wait", "team", "schedule", "ask"),
]
DOTTED = ["chat.human.post", "chat.assistant.post"]
MEBIBYTE = 1 << 20


def listed(client: McpClient) -> Any:
    return client.run(client.client.list_tools, cache_mode="bypass")


# --- the list ----------------------------------------------------------------------------


def test_the_tools_are_listed_without_dots_and_in_few_bytes(client: McpClient) -> None:
    found = listed(client)
    assert [one.name for one in found.tools] == NAMES
    whole = found.model_dump_json(by_alias=True, exclude_none=True)
    assert len(whole.encode()) <= 7_000
    # Also written with blanks, as some servers do.
    assert len(json.dumps(json.loads(whole)).encode()) <= 7_000
    for one in found.tools:
        assert one.description and one.input_schema["type"] == "object"
        assert set(one.input_schema.get("required", [])) <= set(one.input_schema["properties"])


def test_hints_say_what_the_operations_do(client: McpClient) -> None:
    for one in listed(client).tools:
        effects = {REGISTRY[name].effect for name in tools.find(one.name).operations}
        hints = one.annotations
        assert bool(hints.read_only_hint) == (effects == {"read"}), one.name
        if effects != {"read"}:
            assert hints.destructive_hint == ("destructive" in effects), one.name
            assert bool(hints.idempotent_hint) == (effects <= {"read", "idempotent"}), one.name
    hints = {one.name: one.annotations for one in listed(client).tools}
    assert hints["inbox"].read_only_hint and hints["chat_read_since"].read_only_hint
    assert not hints["send"].read_only_hint and not hints["claim"].read_only_hint


@pytest.mark.parametrize("era", ["legacy", "auto"])
def test_dotted_names_are_listed_where_that_was_asked_for(chat: Chat, era: str) -> None:
    with chat.client(Way("stdio", era), words=["--dotted"]) as client:
        assert [one.name for one in listed(client).tools] == NAMES + DOTTED
        assert client.call("chat.assistant.post", content="dotted")["id"]


def test_dotted_names_are_taken_in_calls(chat: Chat, client: McpClient, human: McpClient) -> None:
    assert client.call("chat.assistant.post", content="one")["id"] == "1"
    assert human.call("chat.human.post", content="two")["id"] == "2"
    assert chat.said() == [("assistant", "one"), ("user", "two")]


# --- each tool ---------------------------------------------------------------------------


def test_both_say_something_in_the_chat_and_read_it(chat: Chat, client: McpClient, human: McpClient) -> None:
    asked = human.call("chat_human_post", content="ready?", mime="text/plain")
    answer = client.call("chat_assistant_post", content="*yes*", reply_to=asked["id"])
    one, other = chat.entries()
    assert (one["id"], one["ts"], one["mime"]) == (asked["id"], asked["ts"], "text/plain")
    assert (other["id"], other["reply_to"], other["mime"]) == (answer["id"], asked["id"], "text/markdown")
    for reader in (client, human):
        page = reader.call("chat_read_since")
        assert page == {"messages": [one, other], "last_id": answer["id"], "more": False}
        assert reader.call("chat_read_since", after_id=asked["id"])["messages"] == [other]
        assert reader.call("chat_read_since", after_id=int(asked["id"]), limit=1)["messages"] == [other]
    assert client.call("chat_ack", id=asked["id"]) == {"id": asked["id"], "changed": True}
    assert client.call("chat_read_since")["messages"] == [other]
    assert chat.agent.call("chat.status")["acknowledged"] == asked["id"]
    assert len(human.call("chat_read_since")["messages"]) == 2


def test_mail_is_sent_seen_claimed_answered_and_acknowledged(
    daemon: WebDaemon, chat: Chat, client: McpClient
) -> None:
    other = agent(daemon)
    sent = client.call("send", to=[other.address], text="please look", subject="draft", key="k1")
    assert client.call("send", to=[other.address], text="please look", subject="draft", key="k1")["duplicate"]
    assert [(one["id"], one["subject"]) for one in other.list()] == [(sent["ids"][0], "draft")]
    number = other.tell(chat.agent, text="I looked")
    for _ in range(2):  # it marks nothing
        (seen,) = client.call("inbox")["envelopes"]
        assert (seen["id"], seen["text"], seen["from"]) == (number, "I looked", other.address)
    claimed = client.call("claim", limit=5, lease="10m")
    assert [one["id"] for one in claimed["envelopes"]] == [number]
    assert client.call("claim")["envelopes"] == []
    replied = client.call("reply", id=number, text="thank you", type="text")
    assert other.get(replied["ids"][0])["text"] == "thank you"
    assert chat.agent.ids(unread=True) == []
    client.call("ack", ids=[number], claim=claimed["claim"])
    assert chat.agent.get(number)["status"] == "done"
    assert client.call("inbox", unread=False, limit=1)["envelopes"][0]["id"] == number


def test_the_team_is_shown(chat: Chat, client: McpClient) -> None:
    team = {one["name"]: one for one in client.call("team")["team"]}
    assert {"nex", chat.agent.name} <= set(team) and team[chat.agent.name]["state"]


def test_a_schedule_is_made_listed_and_ended(chat: Chat, client: McpClient) -> None:
    made = client.call("schedule", every="2h", to=[chat.agent.address], text="stretch", name="legs")
    (known,) = chat.agent.call("cron.list")["schedules"]
    assert known["id"] == made["id"] and known["name"] == "legs"
    assert [one["id"] for one in client.call("schedule")["schedules"]] == [known["id"]]
    assert client.refusal("schedule", delete=known["id"], text="x") == "invalid_params"
    client.call("schedule", delete=known["id"])
    assert chat.agent.call("cron.list")["schedules"] == []


def test_waiting_returns_what_is_there(chat: Chat, client: McpClient) -> None:
    number = chat.boss.tell(chat.agent, text="there")
    found = client.call("wait", timeout="30s")
    assert [one["id"] for one in found["envelopes"]] == [number] and not found["timed_out"]
    assert chat.agent.ids(unread=True) == [number]


# --- what is refused ---------------------------------------------------------------------


WRONG: list[tuple[str, dict[str, Any], str]] = [
    ("send", {"to": ["agent:nobody-here"], "text": "x"}, "unknown_recipient"),
    ("send", {"to": ["user:boss"]}, "invalid_params"),
    ("send", {"to": ["user:boss"], "text": 7}, "invalid_params"),
    ("send", {"to": ["user:boss"], "text": "x", "txet": "y"}, "invalid_params"),
    ("send", {"to": ["user:boss"], "text": "a\x00b"}, "bad_text"),
    ("chat_assistant_post", {"content": "a\x00b"}, "bad_text"),
    ("chat_assistant_post", {"content": " "}, "empty_message"),
    ("chat_assistant_post", {}, "invalid_params"),
    ("chat_assistant_post", {"content": "x", "mime": "image/png"}, "invalid_params"),
    ("chat_assistant_post", {"content": "x", "reply_to": "77"}, "not_found"),
    ("chat_human_post", {"content": "x"}, "invalid_params"),
    ("chat_read_since", {"after_id": "77"}, "not_found"),
    ("chat_read_since", {"after_id": "e1"}, "bad_id"),
    ("chat_read_since", {"limit": 0}, "invalid_params"),
    ("chat_read_since", {"subscriber": "a\x00b"}, "bad_text"),
    ("chat_read_since", {"agent": "nex"}, "boss_only"),
    ("chat_ack", {"id": "77"}, "not_found"),
    ("chat_ack", {}, "invalid_params"),
    ("ack", {"ids": ["e999999"]}, "not_found"),
    ("ack", {"ids": ["x"]}, "bad_id"),
    ("reply", {"id": "e999999", "text": "x"}, "not_found"),
    ("claim", {"lease": "soon"}, "bad_duration"),
    ("wait", {"timeout": "soon"}, "bad_duration"),
    ("wait", {"after": "nowhere"}, "bad_cursor"),
    ("ask", {}, "invalid_params"),
    ("ask", {"id": "q999999"}, "not_found"),
    ("ask", {"id": "q1", "question": "again?"}, "invalid_params"),
    ("ask", {"question": "what?", "nope": 1}, "invalid_params"),
    ("schedule", {"delete": "s999999"}, "not_found"),
    ("team", {"colour": "red"}, "invalid_params"),
]


def test_what_is_wrong_has_a_stable_code_and_says_what_to_do(chat: Chat, client: McpClient) -> None:
    assert [(tool, given, client.refusal(tool, **given)) for tool, given, _ in WRONG] == WRONG
    assert chat.entries() == []


def test_who_posts_as_the_other_is_refused(chat: Chat, client: McpClient, human: McpClient) -> None:
    assert client.refusal("chat_human_post", content="x") == "invalid_params"
    assert human.refusal("chat_assistant_post", content="x") == "invalid_params"
    assert client.refusal("chat.human.post", content="x", author="assistant") == "invalid_params"
    assert chat.entries() == []


def test_an_unknown_tool_is_an_error_of_the_protocol_that_names_a_near_one(client: McpClient) -> None:
    error = client.error(client.client.call_tool, "chat_read_sinc", {})
    assert error.code == INVALID_PARAMS and "chat_read_since" in str(error)
    assert error.error.data["code"] == "unknown_tool"


def test_a_huge_limit_is_a_page(chat: Chat, client: McpClient) -> None:
    chat.boss.flood(chat.agent, 105)
    page = client.call("chat_read_since", limit=10**12)
    assert len(page["messages"]) == 100 and page["more"]
    assert len(client.call("chat_read_since", after_id=page["last_id"])["messages"]) == 5
    assert client.refusal("inbox", limit=10**12) == client.refusal("inbox", limit=10**30) == "invalid_params"
    assert client.refusal("claim", limit=10**12) == "invalid_params"


def test_a_text_has_a_mebibyte_and_not_a_byte_more(chat: Chat, client: McpClient) -> None:
    assert client.refusal("chat_assistant_post", content="x" * (MEBIBYTE + 1)) == "too_large"
    assert client.refusal("send", to=["user:boss"], text="ä" * (MEBIBYTE // 2) + "x") == "too_large"
    assert chat.entries() == []
    client.call("chat_assistant_post", content="x" * MEBIBYTE)
    assert client.call("chat_read_since")["messages"][0]["content"] == "x" * MEBIBYTE
    assert chat.entries()[0]["content"] == "x" * MEBIBYTE


def test_other_letters_arrive_as_they_are(chat: Chat, client: McpClient) -> None:
    text = 'emoji 🙂, "quotes", \\, \x7f, \u2028, \r\n, 中文, é'
    client.call("chat_assistant_post", content=text)
    assert chat.said() == [("assistant", text)]
    assert client.call("chat_read_since")["messages"][0]["content"] == text


def test_the_agent_of_a_boss_is_needed_for_the_chat_and_for_nothing_else(
    daemon: WebDaemon, chat: Chat, way: Way
) -> None:
    with mcp_client(daemon, way, chat.boss.token) as client:
        assert client.refusal("chat_read_since") == "invalid_params"
        assert client.refusal("chat_human_post", content="x") == "invalid_params"
        client.call("send", to=[chat.agent.address], text="from the boss")
        assert chat.said() == [("user", "from the boss")]


# --- schemas ------------------------------------------------------------------------


def types_in(schema: Any) -> Iterator[Any]:
    if isinstance(schema, list):
        for one in schema:
            yield from types_in(one)
    elif isinstance(schema, dict):
        yield from (schema[name] for name in ("type",) if name in schema)
        for one in schema.values():
            yield from types_in(one)


@pytest.mark.parametrize("name", TABLE)
def test_each_value_has_one_type(name: str) -> None:
    for one in TABLE[name].schema["properties"].values():
        assert all(isinstance(kind, str) for kind in types_in(one)), one
        assert "type" in one
