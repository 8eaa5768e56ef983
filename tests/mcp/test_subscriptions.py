"""Notices: who is told of what, in both eras; and how a subscription ends.

What must not be told is proved by what comes after it: facts of a chat are told in their order.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.support.mcp_clients import (
    HEAD,
    INBOX,
    STATUS,
    WAYS,
    Chat,
    Follower,
    McpClient,
    Way,
    connections,
    mcp_client,
    message,
)
from tests.support.mcp_lines import HttpLine, WorkerLine, notices
from tests.support.waits import wait_until
from tests.support.web_daemons import WebDaemon

OLD = [way for way in WAYS if way.is_old]
NEW = [way for way in WAYS if not way.is_old]


def take_until_status(chat: Chat, follower: Follower) -> list[str]:
    """Pause and resume the agent, and return what was told before both were told.

    The notice of the pause can come from a look at the chat that began earlier, that of the resume cannot.
    """
    for number, change in enumerate(("agent.pause", "agent.resume"), 1):
        chat.boss.call(change, name=chat.agent.name)
        follower.wait(STATUS, number)
    return [one for one in follower.take() if one != STATUS]


def test_an_agent_is_told_of_what_the_boss_says_and_of_nothing_else(chat: Chat, client: McpClient) -> None:
    with client.following(INBOX, HEAD, STATUS) as follower:
        chat.human("one")
        assert sorted(take_until_status(chat, follower)) == [HEAD, INBOX]
        chat.assistant("by another door")
        client.call("chat_assistant_post", content="by this one")
        assert take_until_status(chat, follower) == []
        chat.boss.tell(chat.agent, text="from the terminal")
        assert sorted(take_until_status(chat, follower)) == [HEAD, INBOX]


def test_others_who_write_to_the_agent_are_not_in_its_chat(chat: Chat, client: McpClient) -> None:
    other = Chat(chat.daemon)
    with client.following(INBOX, STATUS) as follower:
        other.agent.tell(chat.agent, text="psst")
        other.human("not for you")
        assert take_until_status(chat, follower) == []


def test_the_boss_hears_both_sides(chat: Chat, human: McpClient) -> None:
    with human.following(INBOX, STATUS) as follower:
        chat.assistant("one")
        assert take_until_status(chat, follower) == [INBOX]
        chat.human("from the terminal")
        assert take_until_status(chat, follower) == [INBOX]


@pytest.mark.parametrize("way", [way for way in WAYS if way != Way("http", "auto")], ids="-".join)
def test_nobody_hears_an_echo_of_what_it_posted(chat: Chat, way: Way) -> None:
    """In the new era over HTTP a client has no session, so its own posts are like those of others."""
    with chat.client(way, chat.boss) as human, human.following(INBOX, STATUS) as follower:
        human.call("chat_human_post", content="mine")
        assert take_until_status(chat, follower) == []
        human.call("chat.human.post", content="mine again")
        chat.assistant("heard")
        assert take_until_status(chat, follower) == [INBOX]


def test_another_client_of_the_same_boss_hears_the_post(chat: Chat, way: Way, human: McpClient) -> None:
    with chat.client(way, chat.boss) as other, other.following(INBOX, STATUS) as follower:
        human.call("chat_human_post", content="from the other window")
        assert take_until_status(chat, follower) == [INBOX]


def test_edits_and_deletions_are_told(chat: Chat, client: McpClient) -> None:
    posted, other = chat.human("teh plan"), chat.human("another")
    client.call("chat_ack", id=other["id"])
    with client.following(INBOX, STATUS, message(posted["id"]), message(other["id"])) as follower:
        chat.boss.call("message.edit", id=posted["message"], text="the plan")
        assert sorted(take_until_status(chat, follower)) == sorted([INBOX, message(posted["id"])])
        chat.boss.call("message.delete", id=posted["message"])
        assert sorted(take_until_status(chat, follower)) == sorted([INBOX, message(posted["id"])])


def test_what_happened_while_away_is_told_on_connect(chat: Chat, way: Way) -> None:
    first = chat.human("one")
    with chat.client(way) as client, client.following(INBOX, HEAD, STATUS) as follower:
        follower.wait(INBOX)
        follower.wait(HEAD)
        client.call("chat_ack", id=first["id"])
    with chat.client(way) as client, client.following(INBOX, STATUS) as follower:
        assert take_until_status(chat, follower) == []
    chat.assistant("only the assistant")
    with chat.client(way) as client, client.following(INBOX, STATUS) as follower:
        assert take_until_status(chat, follower) == []
    chat.boss.call("message.edit", id=chat.human("two")["message"], text="three")
    with chat.client(way) as client, client.following(INBOX, STATUS) as follower:
        follower.wait(INBOX)


@pytest.mark.parametrize("way", OLD, ids="-".join)
def test_what_happened_while_away_is_told_of_each_resource_when_it_is_followed(
    chat: Chat, client: McpClient
) -> None:
    chat.human("one")
    with client.following(STATUS) as follower:
        assert take_until_status(chat, follower) == []
        with client.following(HEAD):
            follower.wait(HEAD)
        with client.following(INBOX):
            follower.wait(INBOX)


@pytest.mark.parametrize("way", OLD, ids="-".join)
def test_nothing_is_told_after_the_end_of_a_subscription(chat: Chat, client: McpClient) -> None:
    with client.following(INBOX, STATUS) as follower:
        client.unsubscribe(INBOX)
        client.unsubscribe("ui://never/followed")
        chat.human("one")
        assert take_until_status(chat, follower) == []
        client.unsubscribe(STATUS)
        chat.human("two")
        client.subscribe(INBOX)
        follower.wait(INBOX)
        assert STATUS not in follower.take()


@pytest.mark.parametrize("way", NEW, ids="-".join)
def test_a_stream_tells_of_what_was_asked_for_alone(chat: Chat, client: McpClient) -> None:
    with client.following(STATUS) as status, client.following(INBOX) as inbox:
        chat.human("one")
        inbox.wait(INBOX)
        assert take_until_status(chat, status) == [] and inbox.notices == [INBOX]
    with client.following(INBOX) as inbox:
        inbox.wait(INBOX)


def test_an_unknown_resource_cannot_be_followed(chat: Chat, client: McpClient) -> None:
    if client.way.is_old:
        assert "no resource" in str(client.error(_subscribe, client, "ui://chat/nothing"))
    else:
        with client.following("ui://chat/nothing", STATUS) as follower:
            assert take_until_status(chat, follower) == []


async def _subscribe(client: McpClient, uri: str) -> None:
    import mcp_types as types

    asked = types.SubscribeRequest(params=types.SubscribeRequestParams(uri=uri))
    await client.client.session.send_request(asked, types.EmptyResult)


@pytest.mark.parametrize("way", OLD[:1], ids="-".join)
def test_there_is_a_limit_to_what_one_client_follows(client: McpClient) -> None:
    for number in range(100):
        client.subscribe(message(str(number)))
    client.subscribe(message("7"))  # it follows that already
    assert client.error(_subscribe, client, INBOX).error.data["code"] == "busy"
    client.unsubscribe(message("7"))
    client.subscribe(INBOX)


def test_new_entries_ride_along_in_the_old_era(daemon: WebDaemon, chat: Chat) -> None:
    with WorkerLine.of(daemon, chat.agent.token) as line:
        line.initialize()
        line.ask("resources/subscribe", uri=INBOX)
        chat.human("one")
        notice = line.notice(INBOX)
        (entry,) = chat.entries()
        assert notice == {"uri": INBOX, "messages": [entry]}
        chat.human("x" * 20_000)
        assert line.notice(INBOX) == {"uri": INBOX}


# --- ends --------------------------------------------------------------------------------


@contextmanager
def ends(chat: Chat, client: McpClient) -> Iterator[None]:
    """What happens in here ends the subscription of a client, and the client sees that."""
    with client.following(INBOX) as follower:
        chat.human("before")
        follower.wait(INBOX)
        yield
        if not client.way.is_old:
            wait_until(lambda: follower.ended is not None)
            return
        # The client is told by the end of its session: whatever it asks next is refused.
        wait_until(lambda: _is_refused(client))


def _is_refused(client: McpClient) -> bool:
    try:
        return bool(client.raw_call("chat_read_since", {}).is_error)
    except Exception:  # noqa: BLE001  # whichever way its transport has ended
        return True


def test_a_rotated_token_ends_a_subscription(chat: Chat, way: Way) -> None:
    with chat.client(way) as client, ends(chat, client):
        chat.agent.token = chat.boss.call("agent.token.rotate", name=chat.agent.name)["token"]


def test_the_end_of_an_agent_ends_its_subscription(chat: Chat, way: Way) -> None:
    with chat.client(way) as client, ends(chat, client):
        chat.boss.call("agent.delete", name=chat.agent.name)


def test_the_end_of_a_token_ends_the_connection_of_an_old_client_that_only_listens(chat: Chat) -> None:
    with WorkerLine.of(chat.daemon, chat.agent.token) as line:
        line.initialize()
        line.ask("resources/subscribe", uri=INBOX)
        chat.boss.call("agent.token.rotate", name=chat.agent.name)
        assert line.next() == {}


def test_the_end_of_a_token_ends_the_stream_of_an_old_client_over_http(chat: Chat) -> None:
    line = HttpLine(chat.daemon, chat.agent.token)
    with line.stream() as stream:
        assert line.post("resources/subscribe", uri=INBOX).status == 200
        posted = chat.human("one")
        told = notices(stream)
        assert next(told)["messages"][0]["id"] == posted["id"]
        chat.boss.call("agent.token.rotate", name=chat.agent.name)
        assert list(told) == []
    assert line.post("tools/list").code == "bad_token"


@pytest.mark.parametrize("era", ["legacy", "auto"])
def test_hiboss_mcp_takes_the_new_token_of_its_profile_when_the_old_one_ends(chat: Chat, era: str) -> None:
    name = chat.agent.name
    rotated = {"name": name, "profile": True}
    chat.boss.call("agent.token.rotate", **rotated)
    way = Way("stdio", era)
    with mcp_client(chat.daemon, way, None, words=["--as", name]) as client:
        with client.following(INBOX) as follower:
            chat.agent.token = chat.boss.call("agent.token.rotate", **rotated)["token"]
            if way.is_old:
                chat.human("after")
                follower.wait(INBOX)
            else:
                wait_until(lambda: follower.ended is not None)
        wait_until(lambda: not _is_refused(client))


def test_the_boss_is_told_that_an_agent_was_deleted(chat: Chat, human: McpClient) -> None:
    with human.following(STATUS) as follower:
        chat.boss.call("agent.delete", name=chat.agent.name)
        follower.wait(STATUS)
        assert human.read(STATUS)["state"] == "deleted"


def test_the_boss_hears_of_the_next_agent_that_has_the_name_of_a_deleted_one(
    chat: Chat, human: McpClient
) -> None:
    name = chat.agent.name
    with human.following(INBOX) as follower:
        chat.assistant("the old one")
        follower.wait(INBOX)
        chat.boss.call("agent.delete", name=name)
        token = chat.boss.call("agent.register", name=name)["token"]
        chat.daemon.call("chat.post", token=token, content="the new one")
        follower.wait(INBOX, 2)
    assert [one["content"] for one in chat.boss.call("chat.read", agent=name)["messages"]] == ["the new one"]


def test_a_client_that_leaves_leaves_nothing_behind(chat: Chat, way: Way) -> None:
    with chat.client(way) as first:
        first.call("team")
        before = connections(chat.daemon)
        with chat.client(way) as client:
            with client.following(INBOX, STATUS) as follower:
                chat.human("one")
                follower.wait(INBOX)
                assert connections(chat.daemon) != before
            if client.way.is_old:
                client.unsubscribe(INBOX)
                client.unsubscribe(STATUS)
            wait_until(lambda: connections(chat.daemon) <= before)
            with client.following(INBOX):
                wait_until(lambda: connections(chat.daemon) != before)
        wait_until(lambda: connections(chat.daemon) <= before)
