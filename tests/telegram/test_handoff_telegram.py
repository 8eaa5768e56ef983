"""A person in Telegram talks with an agent, then with Ann, then with the boss on his phone, then with the agent."""

from __future__ import annotations

from hiboss.testing.bot_api.chats import Chat
from hiboss.testing.bot_api.messages import Message
from tests.support.parties import Party
from tests.support.python_agents import wait_until_idle
from tests.support.telegram_bots import TelegramDaemon, address
from tests.support.waits import wait_until

ECHO = 'print("nex: " + [one for one in TEXTS if "onversation" not in one or "This" in one][-1])'


def posted(chat: Chat, text: str) -> Message:
    """Wait for a post with this text, and return it."""
    chat.wait_for_text(text)
    return [one for one in chat.messages if text in one.text][-1]


class Talk:
    """Bob in Telegram, the bot of an agent, the boss on his phone, and Ann, who has a box."""

    def __init__(self, office: TelegramDaemon) -> None:
        self.office = office
        self.nex = office.team.hire(ECHO, "helper")
        self.bot = office.bound_bot("helperbot", self.nex.name)
        self.ada, self.bob = office.api.add_person("Ada"), office.api.add_person("Bob")
        self.desk, self.chat = office.pair(self.ada, self.bot), office.approved(self.bob, self.bot)
        token = office.boss.call("user.register", name="ann")["token"]
        self.ann = Party(office.daemon, "user:ann", token)
        self.bob.says(self.chat, "first")
        posted(self.chat, "nex: first")
        [row] = office.rows("SELECT conversation FROM messages WHERE text = 'nex: first'")
        self.conversation = row["conversation"]

    def hand(self, to: str) -> None:
        """Hand the conversation over, and wait for the summary of the agent."""
        event = {"event": "stream.handoff", "conversation": self.conversation, "to": to}
        assert self.office.boss.call("control.send", **event)["outcome"] == "applied"
        wait_until_idle(self.office.daemon)

    def of_ann(self, text: str) -> str:
        """Wait until Ann has got a text; return the id of the envelope."""
        wait_until(lambda: any(one["text"] == text for one in self.ann.list()))
        return str(next(one["id"] for one in self.ann.list() if one["text"] == text))

    def said(self) -> list[tuple[str, str]]:
        rows = self.office.rows(
            """
            SELECT sender, text FROM messages WHERE conversation = ? AND type <> 'event'
              AND sender <> 'agent:system' ORDER BY seq
            """,
            self.conversation,
        )
        return [(one["sender"], one["text"]) for one in rows]


def test_one_chat_is_answered_by_ann_by_the_boss_on_his_phone_and_by_the_agent_again(
    office: TelegramDaemon,
) -> None:
    talk = Talk(office)
    bob, chat, ann, nex = talk.bob, talk.chat, talk.ann, talk.nex

    # Ann: her box, and her replies by the same bot in the same chat.
    talk.hand(ann.address)
    turns = len(nex.turns())
    bob.says(chat, "second")
    ann.send(text="ann: hello Bob", reply_to=talk.of_ann("second"))
    hello = posted(chat, "ann: hello Bob")
    assert hello.sender is talk.bot
    ann.send(address(chat), text="ann: one more thing")
    posted(chat, "ann: one more thing")
    bob.says(chat, "third", reply_to=hello)
    ann.call("envelope.read", ids=[talk.of_ann("third")])  # what she has not read, the agent would get again

    # The boss: on his phone, and from there.
    talk.hand("user:boss")
    bob.says(chat, "fourth")
    talk.ada.says(talk.desk, "the boss himself", reply_to=posted(talk.desk, "fourth"))
    posted(chat, "the boss himself")
    assert len(nex.turns()) == turns
    talk.ada.says(talk.desk, "something for the agent")
    posted(talk.desk, "nex: something for the agent")

    # The agent again: it is shown what was said.
    talk.hand(nex.address)
    bob.says(chat, "fifth")
    posted(chat, "nex: fifth")
    meanwhile = [
        (address(chat), "second"),
        ("user:ann", "ann: hello Bob"),
        ("user:ann", "ann: one more thing"),
        (address(chat), "third"),
        (address(chat), "fourth"),
        ("user:boss", "the boss himself"),
    ]
    assert all(f"> {text}\n" in nex.turns()[-1] for _, text in meanwhile)
    assert talk.said()[-8:] == [*meanwhile, (address(chat), "fifth"), (nex.address, "nex: fifth")]
    assert not any("onversation" in one.text for one in chat.messages)


def test_the_phone_of_the_boss_shows_edits_and_goes_on_when_a_reply_cannot_be_posted(
    office: TelegramDaemon,
) -> None:
    lost = office.team.hire('print("NO_REPLY")', "lost")
    here = office.team.hire('print("here: " + TEXTS[-1])', "here")
    lostbot, herebot = office.bound_bot("lostbot", lost.name), office.bound_bot("herebot", here.name)
    ada, dan = office.api.add_person("Ada too"), office.api.add_person("Dan")
    desk, chat = office.pair(ada, herebot), office.approved(dan, lostbot)
    dan.says(chat, "one")
    query = "SELECT conversation FROM messages WHERE text = 'one'"
    wait_until(lambda: office.rows(query))
    number = office.rows(query)[0]["conversation"]
    office.boss.call("control.send", event="stream.handoff", conversation=number, to="user:boss")
    second = dan.says(chat, "twoo")
    post = posted(desk, "twoo")
    dan.edits(second, "two, edited")
    desk.wait_for(lambda found: any(one.id == post.id and "two, edited" in one.text for one in found))
    office.boss.call("agent.unbind", name=lost.name, adapter_type="telegram", account=str(lostbot.id))
    ada.says(desk, "never posted", reply_to=post)
    ada.says(desk, "for my agent")
    posted(desk, "here: for my agent")
    assert 'You wrote: "never posted"' in posted(desk, "No account may post to").text


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
