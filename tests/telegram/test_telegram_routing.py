"""Which agent gets what is written in Telegram: replies, names, places, who leads, and what of a group counts."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.forked_daemons import pauses
from tests.support.python_agents import wait_until_idle
from tests.support.telegram_bots import GROWTH, address, answer_to
from tests.support.telegram_casts import Cast, Stage, stage
from tests.support.waits import wait_until


@pytest.fixture(scope="module")
def theatre(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    # A reply waits until its post is confirmed, however slow this machine is.
    patient = pauses({**GROWTH, "routing.intake.LONGEST_EARLY": 600.0})
    with stage(tmp_path_factory.mktemp("routing"), **patient) as made:
        yield made


# --- replies ---------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["private", "group"])
def test_a_reply_goes_to_the_agent_that_wrote_it_though_another_one_leads(theatre: Stage, where: str) -> None:
    cast = Cast(theatre)
    chat = cast.private() if where == "private" else cast.group()
    post = cast.post_of(cast.mia, chat)
    assert cast.got(cast.ada.says(chat, "and tomorrow?", reply_to=post)) is cast.mia
    assert cast.got(cast.ada.says(chat, f"@{cast.kai.name} is wrong, then?", reply_to=post)) is cast.mia
    assert cast.got(cast.ada.says(chat, "and today?")) is cast.kai


def test_a_reply_that_comes_before_its_post_was_confirmed_waits_for_it(theatre: Stage) -> None:
    cast = Cast(theatre)
    group = cast.group()
    theatre.office.wait_until_posted(group)
    late = theatre.office.api.fault("sendMessage", chat=group, do="hang", carry_out=True)
    cast.mia.send(address(group), text="the build is red")
    reply = cast.bob.says(group, "which one?", reply_to=group.wait_for_text("the build is red"))
    wait_until(lambda: theatre.office.outcomes(group)[-1:] == [None])
    late.release()
    assert cast.got(reply) is cast.mia


def test_a_reply_of_the_boss_to_his_own_words_goes_to_whom_they_went(theatre: Stage) -> None:
    cast = Cast(theatre)
    chat = cast.private()
    asked = cast.ada.says(chat, f"@{cast.mia.name} book a table")
    assert cast.got(asked) is cast.mia
    assert cast.got(cast.ada.says(chat, "for five", reply_to=asked)) is cast.mia


# --- names -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ("@{mia} please", True),
        ("@{MIA} please", True),
        ("@{mia}: please", True),
        ("@{mia}, please", True),
        ("@{mia}", True),
        ("@{bot} @{mia} please", True),
        ("please, @{mia}", False),
        ("{mia} please", False),
        ("@{mia}x please", False),
        ("@nex please", False),  # the bot does not serve it
    ],
)
def test_the_agent_that_is_named_first_gets_it(theatre: Stage, words: str, named: bool) -> None:
    cast = Cast(theatre)
    names = {"mia": cast.mia.name, "MIA": cast.mia.name.upper(), "bot": cast.bot.name}
    sent = cast.ada.says(cast.private(), words.format(**names))
    assert cast.got(sent) is (cast.mia if named else cast.kai)


# --- places ----------------------------------------------------------------------------


def test_a_topic_of_a_group_can_be_given_to_an_agent_and_taken_back(theatre: Stage) -> None:
    cast = Cast(theatre)
    forum = cast.group(forum=True)
    topic, other = forum.create_topic("Deploys"), forum.create_topic("Lunch")
    tag = f"@{cast.bot.name}"
    assert cast.got(cast.bob.says(forum, f"{tag} one", topic=topic)) is cast.kai
    place = {"contact": address(forum, topic.id), "agent": cast.mia.name}
    routed = cast.office.boss.call("contact.route", **place)
    assert (routed["changed"], routed["contact"]["agent"]) == (True, cast.mia.name)
    assert routed["contact"]["address"] == address(forum, topic.id)
    asked = cast.bob.says(forum, f"{tag} two", topic=topic)
    assert cast.got(asked) is cast.mia
    assert answer_to(forum, asked).topic == topic.id
    assert cast.got(cast.bob.says(forum, f"{tag} three", topic=other)) is cast.kai
    assert cast.got(cast.bob.says(forum, f"{tag} four")) is cast.kai
    assert cast.office.boss.call("contact.route", **place | {"agent": ""})["changed"] is True
    assert cast.got(cast.bob.says(forum, f"{tag} five", topic=topic)) is cast.kai


def test_a_chat_that_is_given_to_an_agent_gives_it_also_the_topics_without_one(theatre: Stage) -> None:
    cast = Cast(theatre)
    forum = cast.group(forum=True)
    topic, own = forum.create_topic("Deploys"), forum.create_topic("Kai")
    tag = f"@{cast.bot.name}"
    cast.got(cast.bob.says(forum, f"{tag} hello", topic=own))  # a topic is known when something came from it
    cast.office.boss.call("contact.route", contact=address(forum), agent=cast.mia.name)
    cast.office.boss.call("contact.route", contact=address(forum, own.id), agent=cast.kai.name)
    assert cast.got(cast.bob.says(forum, f"{tag} one")) is cast.mia
    assert cast.got(cast.bob.says(forum, f"{tag} two", topic=topic)) is cast.mia
    assert cast.got(cast.bob.says(forum, f"{tag} three", topic=own)) is cast.kai


def test_a_thread_of_replies_is_no_topic(theatre: Stage) -> None:
    """Telegram gives replies in ordinary groups, and in General, the id of a thread."""
    cast = Cast(theatre)
    group = cast.group(forum=True)
    first = cast.bob.says(group, f"@{cast.bot.name} one")
    assert answer_to(group, first).reply_to is first
    thread = {"message_thread_id": first.id}
    second = cast.bob.says(group, f"@{cast.bot.name} two", reply_to=first, more=thread)
    assert answer_to(group, second).reply_to is second
    posts = [one for one in cast.office.api.calls_of("sendMessage") if one.bot is cast.bot]
    assert posts and not any("message_thread_id" in one.params for one in posts)
    assert f"from: {address(group)}\n" in cast.kai.turns()[-1]


# --- who leads -------------------------------------------------------------------------


def test_the_agent_bound_first_leads_until_another_one_is_bound_to(theatre: Stage) -> None:
    cast = Cast(theatre)
    chat = cast.private()
    assert cast.got(cast.ada.says(chat, "one")) is cast.kai
    cast.office.bind(cast.bot, cast.mia.name, leads=True)
    assert cast.office.binding(cast.bot)["leads"] == cast.mia.name
    assert cast.got(cast.ada.says(chat, "two")) is cast.mia
    cast.office.bind(cast.bot, cast.kai.name)  # once more, with nothing said of it
    assert cast.got(cast.ada.says(chat, "three")) is cast.mia


@pytest.mark.parametrize("ending", ["agent.unbind", "agent.delete"])
def test_when_the_agent_that_leads_goes_another_one_leads(theatre: Stage, ending: str) -> None:
    cast = Cast(theatre)
    chat = cast.private()
    assert cast.got(cast.ada.says(chat, "one")) is cast.kai
    wait_until_idle(cast.office.daemon)
    where = {"adapter_type": "telegram"} if ending == "agent.unbind" else {}
    cast.office.boss.call(ending, name=cast.kai.name, **where)
    assert cast.office.binding(cast.bot)["leads"] == cast.mia.name
    assert cast.got(cast.ada.says(chat, "two")) is cast.mia


# --- groups ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("groups", "counts"),
    [
        (None, {"bot", "agent", "command", "reply"}),
        ("mentioned", {"bot", "agent", "command", "reply"}),
        ("replied", {"reply"}),
        ("always", {"bot", "agent", "command", "reply", "chatter"}),
    ],
)
def test_what_of_a_group_starts_a_turn(theatre: Stage, groups: str | None, counts: set[str]) -> None:
    cast = Cast(theatre, groups=groups)
    group = cast.group()
    cast.mia.send(address(group), text="good morning")
    post = group.wait_for_text("good morning")
    said = {
        "bot": cast.bob.says(group, f"what does @{cast.bot.name} say?"),
        "agent": cast.bob.says(group, f"@{cast.kai.name} hello"),
        "command": cast.bob.says(group, f"/deploy@{cast.bot.name} now"),
        "reply": cast.bob.says(group, "to you too", reply_to=post),
        "chatter": cast.bob.says(group, f"I like {cast.kai.name}"),
    }
    assert {what for what, message in said.items() if not cast.is_context(message)} == counts
    assert cast.got(said["reply"]) is cast.mia


def test_a_reply_to_a_person_is_not_for_an_agent(theatre: Stage) -> None:
    cast = Cast(theatre, groups="replied")
    group = cast.group()
    first = cast.ada.says(group, "lunch?")
    assert cast.is_context(cast.bob.says(group, "yes", reply_to=first))


def test_what_bob_says_in_a_group_is_his_and_what_the_boss_says_is_marked(theatre: Stage) -> None:
    cast = Cast(theatre)
    group = cast.group()
    for person, boss in ((cast.bob, False), (cast.ada, True)):
        answer_to(group, person.says(group, f"@{cast.bot.name} it is me"))
        assert ("from-boss: true\n" in cast.kai.turns()[-1]) is boss
        assert f"from: {address(group)}\n" in cast.kai.turns()[-1]


# --- names in posts --------------------------------------------------------------------


def test_posts_name_their_agent_where_several_write_and_not_where_one_does(theatre: Stage) -> None:
    cast = Cast(theatre)
    group = cast.group()
    tag = f"@{cast.bot.name}"
    assert answer_to(group, cast.bob.says(group, f"{tag} one")).text == f"{cast.kai.name}:\nheard {tag} one"
    cast.mia.send(address(group), text="by myself")
    assert group.wait_for_text("by myself").text == f"{cast.mia.name}:\nby myself"
    cast.office.boss.call("agent.unbind", name=cast.mia.name, adapter_type="telegram")
    assert answer_to(group, cast.bob.says(group, f"{tag} two")).text == f"heard {tag} two"


def test_two_bots_in_one_group_each_answer_what_names_them(theatre: Stage) -> None:
    cast, other = Cast(theatre), Cast(theatre)
    group = cast.group()
    group.add(other.bot)
    binding = cast.office.binding(other.bot)["binding"]
    wait_until(lambda: binding in [one["binding"] for one in cast.office.contacts(state="asking")])
    cast.office.boss.call("contact.approve", contact=address(group), binding=binding)
    for one, silent in ((cast, other), (other, cast)):
        asked = cast.bob.says(group, f"@{one.bot.name} who are you?")
        answer = answer_to(group, asked)
        assert answer.sender is one.bot and answer.text.startswith(f"{one.kai.name}:")
        assert silent.is_context(asked)
