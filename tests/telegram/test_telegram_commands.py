"""Topics of agents in the private chat of the boss, and his commands, there and elsewhere."""

from __future__ import annotations

import pytest

from tests.support.python_agents import wait_until_idle
from tests.support.telegram_bots import address, answer_to
from tests.support.telegram_casts import Cast, Stage
from tests.support.waits import wait_until

# It says which session it is given, and always goes on in the same one.
FORGETFUL = """
print(json.dumps({"hiboss": "session", "id": "the-session"}))
print("session " + os.environ.get("HIBOSS_RESUME", "none"))
"""
WAITS = 'wait_for("never")'


# --- topics of agents ------------------------------------------------------------------


def test_mail_of_an_agent_to_the_boss_comes_in_its_topic_and_notices_in_the_main_chat(theatre: Stage) -> None:
    cast = Cast(theatre, topics=True, topic=True)
    chat = cast.private()
    topic = cast.own_topic(chat, cast.mia)
    with cast.reached_in(chat):
        cast.mia.send("user:boss", text="the build is red")
        assert chat.wait_for_text("the build is red").topic == topic.id
        cast.bob.starts(cast.bot)
        assert chat.wait_for_text("wants to write").topic is None


def test_without_topics_in_the_bot_a_notice_names_the_step_and_the_agent_works_on(theatre: Stage) -> None:
    cast = Cast(theatre, topics=False)
    chat = cast.private()
    cast.office.bind(cast.bot, cast.mia.name, topic=True)
    notice = theatre.notices.wait_for_text(f"agent:{cast.mia.name} has no topic of its own")
    assert "@BotFather" in notice.text and "Threads Settings" in notice.text
    assert f"bind agent:{cast.mia.name} to telegram again, as before and with --topic" in notice.text
    assert cast.answers(chat, f"@{cast.mia.name} hello").startswith(f"{cast.mia.name}:")
    assert chat.topics == {}
    # When the bot has topics, what the notice says makes one.
    cast.bot.topics = True
    cast.office.bind(cast.bot, cast.mia.name, topic=True)
    topic = cast.own_topic(chat, cast.mia)
    assert cast.got(cast.ada.says(chat, "and here?", topic=topic)) is cast.mia


@pytest.mark.parametrize("ending", ["agent.unbind", "agent.delete"])
def test_an_agent_that_goes_loses_its_topic_to_the_one_that_leads(theatre: Stage, ending: str) -> None:
    cast = Cast(theatre, topics=True, topic=True)
    chat = cast.private()
    topic = cast.own_topic(chat, cast.mia)
    assert cast.got(cast.ada.says(chat, "hello", topic=topic)) is cast.mia
    wait_until_idle(cast.office.daemon)
    where = {"adapter_type": "telegram"} if ending == "agent.unbind" else {}
    cast.office.boss.call(ending, name=cast.mia.name, **where)
    asked = cast.ada.says(chat, "anybody?", topic=topic)
    assert cast.got(asked) is cast.kai
    assert answer_to(chat, asked).topic == topic.id


def test_a_chat_that_is_routed_to_an_agent_does_not_stand_for_its_topic(theatre: Stage) -> None:
    cast = Cast(theatre, topics=True)
    chat = cast.private()
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
    cast = Cast(theatre, topics=True, topic=True)
    chat = cast.private()
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
    cast = Cast(theatre)
    chat = cast.private()
    assert cast.answers(chat, "/status") == f"system:\n{cast.kai.name}: idle\n{cast.mia.name}: idle"
    assert cast.answers(chat, f"/status@{cast.bot.name}").startswith(f"system:\n{cast.kai.name}: idle")
    everybody = cast.answers(chat, "/agents").splitlines()
    assert {f"{cast.kai.name}: idle", f"{cast.mia.name}: idle", "nex: fetches"} <= set(everybody)


def test_pause_and_resume_are_for_the_agent_that_is_named_or_leads(theatre: Stage) -> None:
    cast = Cast(theatre)
    chat = cast.private()
    assert cast.answers(chat, f"/pause {cast.mia.name}") == f"system:\n{cast.mia.name} is paused."
    assert cast.answers(chat, f"/pause @{cast.mia.name.upper()}").endswith("was paused already.")
    assert cast.got(cast.ada.says(chat, f"@{cast.mia.name} later")) is cast.mia
    chat.wait_for_text(f"⏸ {cast.mia.name} is paused")
    assert cast.answers(chat, "/pause") == f"system:\n{cast.kai.name} is paused."
    assert f"{cast.mia.name}: paused, " in cast.answers(chat, "/status")
    assert cast.mia.turns() == []
    assert cast.answers(chat, "/resume") == f"system:\n{cast.kai.name} gets turns again."
    assert cast.answers(chat, "/resume").endswith(f"{cast.kai.name} is not paused.")
    cast.ada.says(chat, f"/resume {cast.mia.name}")
    chat.wait_for_text(f"{cast.mia.name}:\nheard @{cast.mia.name} later")
    assert cast.answers(chat, "/pause nobody").startswith('system:\nThere is no agent "nobody".')


def test_commands_in_a_topic_are_about_its_agent(theatre: Stage) -> None:
    cast = Cast(theatre, topics=True, topic=True)
    chat = cast.private()
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
    cast = Cast(theatre)
    chat = cast.private()
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
    cast = Cast(theatre)
    chat = cast.private()
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
