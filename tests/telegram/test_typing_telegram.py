"""`presence.typing` in Telegram: the sign in the chats where a message would be posted, and nowhere else."""

from __future__ import annotations

from hiboss.testing.bot_api.chats import Chat
from tests.support.parties import Party, agent
from tests.support.telegram_bots import TelegramDaemon, address
from tests.support.waits import wait_until


def conversation(one: Party, other: str) -> str:
    return str(one.call("conversation.messages", **{"with": other})["conversation"])


def talk(office: TelegramDaemon, person: str) -> tuple[Party, Chat, str]:
    """Let somebody write to an agent by a bot; return the agent, the chat and the conversation."""
    kai = agent(office.daemon)
    bot = office.bound_bot(f"{person}sbot", kai.name)
    one = office.api.add_person(person)
    chat = office.pair(one, bot) if person == "Ada" else office.approved(one, bot)
    one.says(chat, f"it is {person}")
    wait_until(lambda: any(mail["text"] == f"it is {person}" for mail in kai.list(page_size=100)))
    return kai, chat, conversation(kai, "user:boss" if person == "Ada" else address(chat))


def test_an_agent_that_types_shows_it_in_the_chat_of_the_other_side(office: TelegramDaemon) -> None:
    kai, chat, number = talk(office, "Bob")
    assert kai.call("presence.typing", conversation=number)["changed"] is True
    office.api.wait_for(lambda: chat.actions == ["typing"])
    for _ in range(20):  # however often it is said
        kai.call("presence.typing", conversation=number)
    kai.call("presence.typing", conversation=number, on=False)
    kai.send(address(chat), text="yes")
    chat.wait_for_text("yes")
    assert chat.actions == ["typing"]


def test_an_agent_that_types_to_the_boss_shows_it_where_he_wrote(office: TelegramDaemon) -> None:
    kai, chat, number = talk(office, "Ada")
    office.boss.call("breaker.pull")  # to the boss it may always
    try:
        kai.call("presence.typing", conversation=number)
        office.api.wait_for(lambda: "typing" in chat.actions)
    finally:
        office.boss.call("breaker.release")
    assert office.boss.call("presence.get", address="boss")["presence"] == "online"  # he wrote a moment ago


def test_a_person_who_was_given_a_conversation_types_by_the_account_of_the_agent(
    office: TelegramDaemon,
) -> None:
    _, chat, number = talk(office, "Gus")
    ann = Party(office.daemon, "user:ann", office.boss.call("user.register", name="ann")["token"])
    assert ann.refusal("presence.typing", conversation=number) == "not_found"
    office.boss.call("control.send", event="stream.handoff", conversation=number, to=ann.address)
    assert ann.call("presence.typing", conversation=number)["changed"] is True
    office.api.wait_for(lambda: "typing" in chat.actions)


def test_nothing_is_shown_where_the_one_who_types_may_not_post(office: TelegramDaemon) -> None:
    zoe, (kai, chat, number) = agent(office.daemon), talk(office, "Eve")
    assert zoe.refusal("presence.typing", conversation=number) == "not_found"
    zoe.send(kai)
    zoe.call("presence.typing", conversation=conversation(zoe, kai.address))  # between the two of them
    office.boss.call("contact.block", contact=address(chat))
    kai.call("presence.typing", conversation=number)
    office.boss.call("contact.approve", contact=address(chat))
    kai.send(address(chat), text="now")
    chat.wait_for_text("now")
    assert chat.actions == []


def test_while_the_breaker_is_pulled_agents_type_to_nobody_but_the_boss(office: TelegramDaemon) -> None:
    kai, chat, number = talk(office, "Dan")
    office.boss.call("breaker.pull")
    try:
        assert kai.call("presence.typing", conversation=number)["changed"] is True
    finally:
        office.boss.call("breaker.release")
    kai.send(address(chat), text="again")
    chat.wait_for_text("again")
    assert chat.actions == []
