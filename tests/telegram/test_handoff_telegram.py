"""A person in Telegram talks with an agent, then with Ann, then with the boss on his phone, then with the agent."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hiboss.testing.bot_api.chats import Chat
from hiboss.testing.bot_api.messages import Message
from tests.support.daemons import wait_until
from tests.support.parties import Party
from tests.support.python_agents import wait_until_idle
from tests.support.telegram_bots import TelegramDaemon, address, telegram_daemon

ECHO = 'print("nex: " + [one for one in TEXTS if "onversation" not in one or "This" in one][-1])'


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TelegramDaemon]:
    with telegram_daemon(tmp_path_factory.mktemp("d")) as running:
        yield running


def posted(chat: Chat, text: str) -> Message:
    """Wait for a post with this text, and return it."""
    chat.wait_for_text(text)
    return [one for one in chat.messages if text in one.text][-1]


def test_one_chat_is_answered_by_ann_by_the_boss_on_his_phone_and_by_the_agent_again(
    office: TelegramDaemon,
) -> None:
    nex = office.team.hire(ECHO, "helper")
    bot = office.bound_bot("helperbot", nex.name)
    ada, bob = office.api.add_person("Ada"), office.api.add_person("Bob")
    desk, chat = office.pair(ada, bot), office.approved(bob, bot)
    ann = Party(office.daemon, "user:ann", office.boss.call("user.register", name="ann")["token"])
    bob.says(chat, "first")
    posted(chat, "nex: first")
    number = office.rows("SELECT conversation FROM messages WHERE text = 'nex: first'")[0]["conversation"]

    def hand(to: str) -> None:
        done = office.boss.call("control.send", event="stream.handoff", conversation=number, to=to)
        assert done["outcome"] == "applied"
        wait_until_idle(office.daemon)

    # Ann: her box, and her replies by the same bot in the same chat.
    hand(ann.address)
    turns = len(nex.turns())
    bob.says(chat, "second")
    wait_until(lambda: any(one["text"] == "second" for one in ann.list()))
    [got] = [one for one in ann.list() if one["text"] == "second"]
    ann.send(text="ann: hello Bob", reply_to=got["id"])
    of_ann = posted(chat, "ann: hello Bob")
    assert of_ann.sender is bot
    ann.send(address(chat), text="ann: one more thing")
    posted(chat, "ann: one more thing")
    bob.says(chat, "third", reply_to=of_ann)
    wait_until(lambda: any(one["text"] == "third" for one in ann.list()))
    assert len(nex.turns()) == turns

    # The boss: on his phone, and from there.
    hand("user:boss")
    bob.says(chat, "fourth")
    ada.says(desk, "the boss himself", reply_to=posted(desk, "fourth"))
    posted(chat, "the boss himself")
    assert len(nex.turns()) == turns
    ada.says(desk, "something for the agent")
    posted(desk, "nex: something for the agent")

    # The agent again: it is shown what was said.
    hand(nex.address)
    bob.says(chat, "fifth")
    posted(chat, "nex: fifth")
    last = nex.turns()[-1]
    for text in ("second", "ann: hello Bob", "ann: one more thing", "third", "fourth", "the boss himself"):
        assert f"> {text}\n" in last
    said = office.rows(
        """
        SELECT sender, text FROM messages WHERE conversation = ? AND type <> 'event'
          AND sender <> 'agent:system' ORDER BY seq
        """,
        number,
    )
    assert [(one["sender"], one["text"]) for one in said][-10:] == [
        (address(chat), "first"),
        (nex.address, "nex: first"),
        (address(chat), "second"),
        ("user:ann", "ann: hello Bob"),
        ("user:ann", "ann: one more thing"),
        (address(chat), "third"),
        (address(chat), "fourth"),
        ("user:boss", "the boss himself"),
        (address(chat), "fifth"),
        (nex.address, "nex: fifth"),
    ]
    assert not any("onversation" in one.text for one in chat.messages)


def test_a_post_of_ann_is_edited_deleted_and_reacted_to_like_any_other(office: TelegramDaemon) -> None:
    nex = office.team.hire('print("NO_REPLY")', "quiet")
    bot = office.bound_bot("quietbot", nex.name)
    eve = office.api.add_person("Eve")
    chat = office.approved(eve, bot)
    bea = Party(office.daemon, "user:bea", office.boss.call("user.register", name="bea")["token"])
    eve.says(chat, "are you there?")
    wait_until(lambda: office.rows("SELECT 1 FROM messages WHERE text = 'are you there?'"))
    number = office.rows("SELECT conversation FROM messages WHERE text = 'are you there?'")[0]["conversation"]
    office.boss.call("control.send", event="stream.handoff", conversation=number, to=bea.address)
    sent = bea.send(address(chat), text="bea: yess")
    post = posted(chat, "bea: yess")
    bea.call("message.edit", id=sent["message"], text="bea: yes")
    chat.wait_for(lambda found: any(one.text == "bea: yes" for one in found))
    eve.reacts(post, "👍")
    wait_until(lambda: bea.get(sent["ids"][0])["reactions"])
    bea.call("message.delete", id=sent["message"])
    chat.wait_for(lambda found: all("bea:" not in one.text for one in found))
