"""`presence.typing` in Telegram: the sign in the chats where a message would be posted, and nowhere else."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.daemons import wait_until
from tests.support.parties import Party, agent
from tests.support.telegram_bots import TelegramDaemon, address, telegram_daemon


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TelegramDaemon]:
    with telegram_daemon(tmp_path_factory.mktemp("d")) as running:
        yield running


def conversation(one: Party, other: str) -> str:
    return str(one.call("conversation.messages", **{"with": other})["conversation"])


def heard(one: Party, text: str) -> None:
    wait_until(lambda: any(mail["text"] == text for mail in one.list(page_size=100)))


def test_an_agent_that_types_shows_it_in_the_chat_of_the_other_side(office: TelegramDaemon) -> None:
    kai = agent(office.daemon)
    bot = office.bound_bot("kaibot", kai.name)
    bob = office.api.add_person("Bob")
    chat = office.approved(bob, bot)
    bob.says(chat, "are you there?")
    heard(kai, "are you there?")
    number = conversation(kai, address(chat))
    assert kai.call("presence.typing", conversation=number)["changed"] is True
    office.api.wait_for(lambda: chat.actions == ["typing"])
    for _ in range(20):  # however often it is said
        kai.call("presence.typing", conversation=number)
    kai.call("presence.typing", conversation=number, on=False)
    kai.send(address(chat), text="yes")
    chat.wait_for_text("yes")
    assert chat.actions == ["typing"]


def test_an_agent_that_types_to_the_boss_shows_it_where_he_wrote(office: TelegramDaemon) -> None:
    kai = agent(office.daemon)
    bot = office.bound_bot("bossbot", kai.name)
    ada = office.api.add_person("Ada")
    chat = office.pair(ada, bot)
    ada.says(chat, "what is new?")
    heard(kai, "what is new?")
    number = conversation(kai, "user:boss")
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
    kai = agent(office.daemon)
    bot = office.bound_bot("handedbot", kai.name)
    gus = office.api.add_person("Gus")
    chat = office.approved(gus, bot)
    gus.says(chat, "a person, please")
    heard(kai, "a person, please")
    number = conversation(kai, address(chat))
    registered = office.boss.call("user.register", name="ann")
    ann = Party(office.daemon, "user:ann", registered["token"])
    assert ann.refusal("presence.typing", conversation=number) == "not_found"
    office.boss.call("control.send", event="stream.handoff", conversation=number, to=ann.address)
    assert ann.call("presence.typing", conversation=number)["changed"] is True
    office.api.wait_for(lambda: "typing" in chat.actions)


def test_nothing_is_shown_where_the_one_who_types_may_not_post(office: TelegramDaemon) -> None:
    kai, zoe = agent(office.daemon), agent(office.daemon)
    bot = office.bound_bot("quietbot", kai.name)
    eve = office.api.add_person("Eve")
    chat = office.approved(eve, bot)
    eve.says(chat, "hello")
    heard(kai, "hello")
    number = conversation(kai, address(chat))
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
    kai = agent(office.daemon)
    bot = office.bound_bot("heldbot", kai.name)
    dan = office.api.add_person("Dan")
    chat = office.approved(dan, bot)
    dan.says(chat, "hello")
    heard(kai, "hello")
    office.boss.call("breaker.pull")
    try:
        assert kai.call("presence.typing", conversation=conversation(kai, address(chat)))["changed"] is True
    finally:
        office.boss.call("breaker.release")
    kai.send(address(chat), text="again")
    chat.wait_for_text("again")
    assert chat.actions == []
