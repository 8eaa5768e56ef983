"""What a client reads: the inbox, its head, the state of the agent, single entries; a page; the briefing."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

import pytest
from mcp.client import advertise
from mcp_types import INVALID_PARAMS

from tests.support.mcp_clients import HEAD, INBOX, STATUS, Chat, McpClient, Way, mcp_client, message
from tests.support.parties import agent, boss
from tests.support.waits import wait_until
from tests.support.web_daemons import WebDaemon

PAGE = "text/html;profile=mcp-app"
HOSTILE = "</pre><script>alert(1)</script><img src=x onerror=alert(2)>&lt;b&gt; \"'` {{x}} <!-- ]]>"


def test_the_resources_are_listed(client: McpClient) -> None:
    assert [(one.uri, one.mime_type) for one in client.run(client.client.list_resources).resources] == [
        (uri, "application/json") for uri in (INBOX, HEAD, STATUS)
    ]
    (template,) = client.run(client.client.list_resource_templates).resource_templates
    assert template.uri_template == "ui://chat/message/{id}"


def test_the_inbox_has_the_newest_fifty_entries(chat: Chat, client: McpClient) -> None:
    assert client.read(INBOX) == {"last_id": "0", "messages": []}
    chat.boss.flood(chat.agent, 60)
    found = client.read(INBOX)
    assert [one["content"] for one in found["messages"]] == [str(number) for number in range(10, 60)]
    assert found["last_id"] == found["messages"][-1]["id"]
    assert set(found["messages"][0]) >= {"id", "ts", "author", "mime", "content"}
    assert client.call("chat_read_since")["messages"][0]["content"] == "0"  # reading moved nothing


def test_the_head_says_where_the_chat_ends_and_how_far_one_came(chat: Chat, client: McpClient) -> None:
    assert client.read(HEAD) == {"last_id": "0", "acknowledged": "0"}
    first, last = chat.human("one"), chat.assistant("two")
    client.call("chat_ack", id=first["id"])
    assert client.read(HEAD) == {"last_id": last["id"], "acknowledged": first["id"]}


def test_an_entry_is_read_by_its_id_and_so_is_an_edit(
    chat: Chat, client: McpClient, human: McpClient
) -> None:
    posted = chat.human("teh plan")
    chat.boss.call("message.edit", id=posted["message"], text="the plan")
    for one in chat.entries():
        assert client.read(message(one["id"])) == human.read(message(one["id"])) == one
    assert chat.entries()[1]["edits"] == posted["id"]


@pytest.mark.parametrize(
    ("uri", "code"),
    [
        (message("77"), "not_found"),
        (message("x"), "bad_id"),
        (message(""), "bad_id"),
        (message("1/2"), "bad_id"),
        ("ui://chat/nothing", "not_found"),
        ("ui://chat/inbox/", "not_found"),
        ("file:///etc/passwd", "not_found"),
    ],
)
def test_an_unknown_resource_is_an_error_with_a_code(client: McpClient, uri: str, code: str) -> None:
    error = client.error(client.client.read_resource, uri)
    assert error.error.data["code"] == code and str(error)


def test_the_status_says_why_an_agent_is_not_ready(chat: Chat, client: McpClient, human: McpClient) -> None:
    ready = client.read(STATUS)
    assert ready["agent"] == chat.agent.name and ready["type"] == "local" and ready["ui"] == {"ready": True}
    chat.pause()
    paused = client.read(STATUS)
    assert (paused["state"], paused["ui"]) == ("paused", {"ready": False}) and "lunch" in paused["why"]
    chat.boss.call("agent.resume", name=chat.agent.name)
    assert client.read(STATUS) == ready
    chat.boss.call("agent.delete", name=chat.agent.name)
    deleted = human.read(STATUS)
    assert (deleted["state"], deleted["ui"]) == ("deleted", {"ready": False})


def test_the_status_says_why_an_agent_waits_and_followers_are_told(daemon: WebDaemon, way: Way) -> None:
    one, chief = agent(daemon, settings={"command": "/nowhere/program"}), boss(daemon)
    with (
        mcp_client(daemon, way, chief.token, agent=one.name) as client,
        client.following(STATUS) as follower,
    ):
        assert client.read(STATUS)["ui"] == {"ready": True}
        chief.tell(one, text="hello")
        follower.wait(STATUS)
        wait_until(lambda: client.read(STATUS)["state"] == "waiting")
        found = client.read(STATUS)
        assert found["ui"] == {"ready": False} and "/nowhere/program" in found["why"]


# --- the page ----------------------------------------------------------------------------


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}


def with_apps(*types: str) -> Any:
    return [advertise("io.modelcontextprotocol/ui", {"mimeTypes": list(types)})]


def test_a_client_that_shows_apps_gets_a_page_of_the_same_inbox(chat: Chat, way: Way) -> None:
    chat.human(HOSTILE, mime="text/html")
    chat.assistant("*fine*")
    chat.boss.call("message.delete", id=chat.human("a secret")["message"])
    with chat.client(way, extensions=with_apps(PAGE)) as client:
        page, data = client.contents(INBOX)
        assert (page.mime_type, data.mime_type) == (PAGE, "application/json")
        found = _Tags()
        found.feed(page.text)
        assert not found.tags & {"script", "img", "b", "iframe", "link"}
        assert found.attributes <= {"lang", "charset", "class"}
        assert "&lt;script&gt;" in page.text and "*fine*" in page.text and "a secret" not in page.text
        assert HOSTILE in str(chat.entries()[0]["content"])
        assert client.read(HEAD)["last_id"]  # the others stay JSON


@pytest.mark.parametrize("types", [[], ["text/html"]])
def test_a_client_that_shows_other_apps_gets_json(chat: Chat, way: Way, types: list[str]) -> None:
    with chat.client(way, extensions=with_apps(*types)) as client:
        assert client.read(INBOX)["messages"] == []


# --- the prompt --------------------------------------------------------------------------


def test_the_briefing_is_the_prompt(daemon: WebDaemon, way: Way) -> None:
    one = agent(daemon, role="reviewer")
    with mcp_client(daemon, way, one.token) as client:
        assert [prompt.name for prompt in client.run(client.client.list_prompts).prompts] == ["briefing"]
        (said,) = client.run(client.client.get_prompt, "briefing").messages
        assert said.role == "user" and said.content.text == one.call("agent.briefing")["text"]
        error = client.error(client.client.get_prompt, "story")
        assert error.code == INVALID_PARAMS and "briefing" in str(error)
