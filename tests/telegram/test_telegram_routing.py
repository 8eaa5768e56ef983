"""Which agent gets what is written in Telegram, and the commands of the boss.

Replies, names, places, topics of agents, who leads, and what of a group counts.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.forked_daemons import pauses
from tests.support.python_agents import wait_until_idle
from tests.support.telegram_bots import GROWTH, Cast, Stage, address, answer_to, opened, stage
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
    cast, chat = opened(theatre)
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
    assert cast.got(cast.ada.says(cast.private(), words.format(**names))) is (cast.mia if named else cast.kai)


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
    assert cast.got(asked) is cast.mia and answer_to(forum, asked).topic == topic.id
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
    cast, chat = opened(theatre)
    assert cast.got(cast.ada.says(chat, "one")) is cast.kai
    cast.office.bind(cast.bot, cast.mia.name, leads=True)
    assert cast.office.binding(cast.bot)["leads"] == cast.mia.name
    assert cast.got(cast.ada.says(chat, "two")) is cast.mia
    cast.office.bind(cast.bot, cast.kai.name)  # once more, with nothing said of it
    assert cast.got(cast.ada.says(chat, "three")) is cast.mia


@pytest.mark.parametrize("ending", ["agent.unbind", "agent.delete"])
def test_when_the_agent_that_leads_goes_another_one_leads(theatre: Stage, ending: str) -> None:
    cast, chat = opened(theatre)
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
    assert cast.is_context(cast.bob.says(group, "yes", reply_to=cast.ada.says(group, "lunch?")))


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


# --- commands -------------------------------------------------------------------------------------


# It says which session it is given, and always goes on in the same one.
FORGETFUL = """
print(json.dumps({"hiboss": "session", "id": "the-session"}))
print("session " + os.environ.get("HIBOSS_RESUME", "none"))
"""
WAITS = 'wait_for("never")'


# --- topics of agents ------------------------------------------------------------------


def test_mail_of_an_agent_to_the_boss_comes_in_its_topic_and_notices_in_the_main_chat(theatre: Stage) -> None:
    cast, chat = opened(theatre, topics=True, topic=True)
    topic = cast.own_topic(chat, cast.mia)
    with cast.reached_in(chat):
        cast.mia.send("user:boss", text="the build is red")
        assert chat.wait_for_text("the build is red").topic == topic.id
        cast.bob.starts(cast.bot)
        assert chat.wait_for_text("wants to write").topic is None


def test_without_topics_in_the_bot_a_notice_names_the_step_and_the_agent_works_on(theatre: Stage) -> None:
    cast, chat = opened(theatre, topics=False)
    cast.office.bind(cast.bot, cast.mia.name, topic=True)
    notice = theatre.notices.wait_for_text(f"agent:{cast.mia.name} has no topic of its own")
    assert "@BotFather" in notice.text and "Threads Settings" in notice.text
    assert f"bind agent:{cast.mia.name} to telegram again, as before and with --topic" in notice.text
    assert cast.answers(chat, f"@{cast.mia.name} hello").startswith(f"{cast.mia.name}:")
    assert chat.topics == {}
    # When the bot has topics, what the notice says makes one.
    cast.bot.topics = True
    cast.office.bind(cast.bot, cast.mia.name, topic=True)
    assert cast.got(cast.ada.says(chat, "and here?", topic=cast.own_topic(chat, cast.mia))) is cast.mia


@pytest.mark.parametrize("ending", ["agent.unbind", "agent.delete"])
def test_an_agent_that_goes_loses_its_topic_to_the_one_that_leads(theatre: Stage, ending: str) -> None:
    cast, chat = opened(theatre, topics=True, topic=True)
    topic = cast.own_topic(chat, cast.mia)
    assert cast.got(cast.ada.says(chat, "hello", topic=topic)) is cast.mia
    wait_until_idle(cast.office.daemon)
    where = {"adapter_type": "telegram"} if ending == "agent.unbind" else {}
    cast.office.boss.call(ending, name=cast.mia.name, **where)
    asked = cast.ada.says(chat, "anybody?", topic=topic)
    assert cast.got(asked) is cast.kai and answer_to(chat, asked).topic == topic.id


def test_a_chat_that_is_routed_to_an_agent_does_not_stand_for_its_topic(theatre: Stage) -> None:
    cast, chat = opened(theatre, topics=True)
    place = {"contact": address(chat), "binding": cast.binding}
    cast.office.boss.call("contact.route", agent=cast.mia.name, **place)
    cast.office.bind(cast.bot, cast.mia.name, topic=True)
    topic = cast.own_topic(chat, cast.mia)
    with cast.reached_in(chat):
        cast.mia.send("user:boss", text="to my topic")
        assert chat.wait_for_text("to my topic").topic == topic.id
    assert cast.got(cast.ada.says(chat, "in the main chat")) is cast.mia


def test_without_its_topic_mail_of_an_agent_comes_in_the_main_chat_and_with_it_in_the_same_one_again(
    theatre: Stage,
) -> None:
    cast, chat = opened(theatre, topics=True, topic=True)
    topic = cast.own_topic(chat, cast.mia)
    cast.own_topic(chat, cast.kai)
    with cast.reached_in(chat):
        cast.office.bind(cast.bot, cast.mia.name, topic=False)
        cast.mia.send("user:boss", text="without")
        assert chat.wait_for_text("without").topic is None
        assert cast.got(cast.ada.says(chat, "still here?", topic=topic)) is cast.mia
        cast.office.bind(cast.bot, cast.mia.name, topic=True)
        cast.mia.send("user:boss", text="again with")
        assert chat.wait_for_text("again with").topic == topic.id
    assert len(chat.topics) == 2


# --- commands --------------------------------------------------------------------------


def test_status_and_agents_say_what_agents_do(theatre: Stage) -> None:
    cast, chat = opened(theatre)
    assert cast.answers(chat, "/status") == f"system:\n{cast.kai.name}: idle\n{cast.mia.name}: idle"
    assert cast.answers(chat, f"/status@{cast.bot.name}").startswith(f"system:\n{cast.kai.name}: idle")
    everybody = cast.answers(chat, "/agents").splitlines()
    assert {f"{cast.kai.name}: idle", f"{cast.mia.name}: idle", "nex: fetches"} <= set(everybody)


def test_pause_and_resume_are_for_the_agent_that_is_named_or_leads(theatre: Stage) -> None:
    cast, chat = opened(theatre)
    assert cast.answers(chat, f"/pause {cast.mia.name}") == f"system:\n{cast.mia.name} is paused."
    assert cast.answers(chat, f"/pause @{cast.mia.name.upper()}").endswith("was paused already.")
    assert cast.got(cast.ada.says(chat, f"@{cast.mia.name} later")) is cast.mia
    chat.wait_for_text(f"⏸ {cast.mia.name} is paused")
    assert cast.answers(chat, "/pause") == f"system:\n{cast.kai.name} is paused."
    assert f"{cast.mia.name}: paused, " in cast.answers(chat, "/status") and cast.mia.turns() == []
    assert cast.answers(chat, "/resume") == f"system:\n{cast.kai.name} gets turns again."
    assert cast.answers(chat, "/resume").endswith(f"{cast.kai.name} is not paused.")
    cast.ada.says(chat, f"/resume {cast.mia.name}")
    chat.wait_for_text(f"{cast.mia.name}:\nheard @{cast.mia.name} later")
    assert cast.answers(chat, "/pause nobody").startswith('system:\nThere is no agent "nobody".')


def test_commands_in_a_topic_are_about_its_agent(theatre: Stage) -> None:
    cast, chat = opened(theatre, topics=True, topic=True)
    topic = cast.own_topic(chat, cast.mia)
    answer = answer_to(chat, cast.ada.says(chat, "/status", topic=topic))
    assert (answer.text, answer.topic) == (f"system:\n{cast.mia.name}: idle", topic.id)
    assert cast.answers(chat, "/pause", topic=topic) == f"system:\n{cast.mia.name} is paused."
    assert cast.answers(chat, "/resume", topic=topic) == f"system:\n{cast.mia.name} gets turns again."


def test_new_lets_the_next_turn_begin_a_new_session_also_of_the_terminal(theatre: Stage) -> None:
    cast = Cast(theatre)
    cast.kai.program.write(FORGETFUL)
    chat = cast.private()

    def in_the_terminal() -> str:
        """What kai answers when the boss writes elsewhere; that is posted in no chat of this test."""
        before = len(cast.kai.runs(status="completed"))
        boss = theatre.office.daemon.token("boss")
        theatre.office.daemon.call("envelope.send", token=boss, to=cast.kai.address, text="from here")
        wait_until(lambda: len(cast.kai.runs(status="completed")) == before + 1)
        return str(cast.kai.runs()[-1]["text"])

    assert in_the_terminal() == "session none"
    assert cast.answers(chat, "two").endswith("session the-session")
    answer = cast.answers(chat, "/new")
    assert answer == f"system:\n{cast.kai.name}, {cast.mia.name}: the next message here begins a new session."
    assert in_the_terminal() == "session none"
    assert cast.answers(chat, "three").endswith("session the-session")


def test_stop_ends_what_is_named_or_all_and_says_when_nothing_runs(theatre: Stage) -> None:
    cast, chat = opened(theatre)
    assert cast.answers(chat, "/stop") == "system:\nNothing runs here."
    for agent in (cast.kai, cast.mia):
        agent.program.write(WAITS)
        cast.ada.says(chat, f"@{agent.name} begin")
        wait_until(lambda agent=agent: len(agent.turns()) == 1)
    (first,), (second,) = cast.kai.runs(), cast.mia.runs()
    answer = cast.answers(chat, f"/stop {cast.mia.name}")
    assert answer == f"system:\nStopped {second['id']} of agent:{cast.mia.name}."
    wait_until(lambda: cast.mia.runs()[0]["status"] == "cancelled")
    assert cast.kai.runs()[0]["status"] == "running"
    assert cast.answers(chat, "/stop") == f"system:\nStopped {first['id']} of agent:{cast.kai.name}."
    wait_until(lambda: cast.kai.runs()[0]["status"] == "cancelled")


def test_what_is_nearly_a_command_is_answered_and_other_slashes_are_messages(theatre: Stage) -> None:
    cast, chat = opened(theatre)
    assert "Did you mean /stop?" in cast.answers(chat, "/stpo")
    assert "/pause: " in cast.answers(chat, "/help")
    for text in ("/usr/bin", "/deploy now", "see /status", "/ stop"):
        assert cast.answers(chat, text) == f"{cast.kai.name}:\nheard {text}"
    assert len(cast.kai.turns()) == 4


def test_commands_of_others_are_messages(theatre: Stage) -> None:
    cast = Cast(theatre)
    chat = cast.office.approved(cast.bob, cast.bot)
    for text in ("/pause", "/stpo"):
        cast.bob.says(chat, text)
        chat.wait_for_text(f"{cast.kai.name}:\nheard {text}")
    group = cast.group()
    asked = cast.bob.says(group, f"/pause@{cast.bot.name}")
    assert answer_to(group, asked).text.startswith(f"{cast.kai.name}:\nheard /pause")


def test_a_command_of_the_boss_in_a_group_is_answered_in_his_own_chat(theatre: Stage) -> None:
    cast = Cast(theatre)
    group = cast.group()
    asked = cast.ada.says(group, f"/status@{cast.bot.name}")
    theatre.notices.wait_for_text(f"{cast.kai.name}: idle")
    cast.office.settle()
    assert group.messages[-1] is asked and cast.kai.turns() == []


def test_the_menu_is_in_the_chat_of_the_boss_alone(theatre: Stage) -> None:
    cast = Cast(theatre)
    cast.office.approved(cast.bob, cast.bot)
    chat = cast.private()
    cast.office.api.wait_for(lambda: bool(cast.bot.commands))
    cast.office.settle()
    assert list(cast.bot.commands) == [f"chat/{chat.id}//"]
    (menu,) = cast.bot.commands.values()
    shown = [f"/{one['command']}" for one in menu]
    first = ["/status", "/agents", "/new", "/stop", "/go", "/answer"]
    assert shown == [*first, "/pause", "/resume", "/help"]
