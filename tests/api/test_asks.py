"""Asks: what can be asked and answered, who may, and how long is waited."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from hiboss.agents import run_execution
from hiboss.api import asks
from hiboss.testing.running_daemon import Answered, RunningDaemon
from tests.support.daemons import daemon_with
from tests.support.followers import following
from tests.support.in_process_daemon import InProcessDaemon, frozen
from tests.support.parties import Party, agent
from tests.support.present_people import SilentRun
from tests.support.python_agents import Boss, PythonAgent, Team, texts, wait_until_idle
from tests.support.waits import wait_until

Pair = tuple[Party, Party]


def asked(by: Party, question: str = "Deploy?", **params: Any) -> dict[str, Any]:
    """Ask, and return the ask."""
    found: dict[str, Any] = by.call("ask.create", question=question, **params)["ask"]
    return found


def one(who: Party, ask: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = who.call("ask.get", id=ask["id"])["ask"]
    return found


# --- asking ----------------------------------------------------------------------------


def test_a_question_shows_its_options_its_end_and_how_to_answer_it(chief: Boss, two: Pair) -> None:
    ask = asked(two[0], options=["yes", "on Monday"], timeout="1h", default="On monday")
    assert (ask["state"], ask["asked"], ask["default"]) == ("open", "user:boss", "on Monday")
    [envelope] = chief.heard(two[0])
    lines = envelope["text"].splitlines()
    assert lines[:4] == ["Deploy?", "", "1. yes", "2. on Monday"]
    assert lines[4].startswith("Without an answer by ") and lines[4].endswith("the answer is on Monday.")
    assert lines[5] == f"To answer {ask['id']}: hiboss ask answer {ask['id']} --choice yes"
    assert (envelope["priority"], envelope["metadata"]) == ("high", {"ask": ask["id"]})


def test_without_options_it_is_yes_or_no_and_waits_for_ever(two: Pair) -> None:
    ask = asked(two[0])
    assert (ask["options"], ask["expires_at"], ask["default"]) == (["yes", "no"], None, None)


def test_an_option_that_a_shell_would_misread_is_named_by_its_number(chief: Boss, two: Pair) -> None:
    ask = asked(two[0], options=["rm -rf /; true", "no"])
    assert chief.heard(two[0])[-1]["text"].endswith(f"hiboss ask answer {ask['id']} --choice 1")


def test_twenty_options_of_two_hundred_characters_can_be_asked(two: Pair) -> None:
    options = [f"{number:03}" + "x" * 197 for number in range(20)]
    assert asked(two[0], options=options)["options"] == options


def test_nobody_asks_itself(chief: Boss, two: Pair) -> None:
    assert two[0].refusal("ask.create", question="Me?", to=two[0].address) == "invalid_params"
    assert chief.refusal("ask.create", question="Me?") == "invalid_params"


# --- answering -------------------------------------------------------------------------


def test_an_answer_comes_to_the_asker_as_a_reply_to_the_question(chief: Boss, two: Pair) -> None:
    ask = asked(two[0])
    settled = chief.call("ask.answer", id=ask["id"], choice="YES", comment="but not on Friday")["ask"]
    assert (settled["state"], settled["answer"], settled["answered_by"]) == ("answered", "yes", "user:boss")
    [mail] = two[0].list()
    assert mail["text"] == f'Answer to {ask["id"]} ("Deploy?"): yes\nbut not on Friday'
    assert (mail["from"], mail["from_boss"], mail["status"]) == ("user:boss", True, "pending")
    assert (mail["conversation"], mail["message"]) == (ask["conversation"], settled["reply"])


def test_an_option_can_be_given_by_its_number_unless_that_is_an_option_itself(chief: Boss, two: Pair) -> None:
    assert chief.call("ask.answer", id=asked(two[0])["id"], choice="2")["ask"]["answer"] == "no"
    numbers = asked(two[0], options=["2", "1"])
    assert chief.call("ask.answer", id=numbers["id"], choice="2")["ask"]["answer"] == "2"


def test_an_answer_that_is_no_option_changes_nothing(chief: Boss, two: Pair) -> None:
    ask = asked(two[0])
    assert chief.refusal("ask.answer", id=ask["id"], choice="maybe") == "bad_choice"
    assert one(chief, ask)["state"] == "open"


def test_the_second_answer_is_told_who_was_first(chief: Boss, two: Pair) -> None:
    ask = asked(two[0], to=two[1].address)
    two[1].call("ask.answer", id=ask["id"], choice="no")
    with pytest.raises(Answered) as late:
        chief.call("ask.answer", id=ask["id"], choice="yes")
    told = late.value.payload()
    assert (told["code"], told["by"], told["answer"]) == ("ask_settled", two[1].address, "no")
    assert f"{two[1].address} answered no" in late.value.message
    assert texts(two[0].list()) == [f'Answer to {ask["id"]} ("Deploy?"): no']


def test_the_boss_answers_what_another_was_asked_and_that_one_is_told(chief: Boss, two: Pair) -> None:
    ask = asked(two[0], to=two[1].address)
    chief.call("ask.answer", id=ask["id"], choice="yes")
    assert two[0].list()[0]["from"] == "user:boss"
    [question, notice] = two[1].list(oldest_first=True)
    assert question["message"] == ask["message"]
    assert notice["text"].startswith(f'No answer is needed any more to {ask["id"]} ("Deploy?")')


def test_who_asks_never_answers_itself_whatever_its_token(chief: Boss, two: Pair, team: Team) -> None:
    ask = asked(two[0])
    assert two[0].refusal("ask.answer", id=ask["id"], choice="yes") == "own_ask"
    second = chief.call("agent.token.rotate", name=two[0].name)["token"]
    assert Party(two[0].daemon, two[0].address, second).refusal("ask.answer", id=ask["id"], choice="yes") == (
        "own_ask"
    )
    assert chief.refusal("ask.answer", id=asked(chief, to=two[1].address)["id"], choice="yes") == "own_ask"
    nosy = team.hire(
        'note(call("ask.answer", id=call("ask.create", question="?")["ask"]["id"], choice="yes"))'
    )
    chief.say(nosy)
    wait_until(lambda: nosy.program.notes())
    assert nosy.program.notes()[0]["code"] == "own_ask"


def test_others_neither_see_nor_answer_nor_cancel_an_ask(
    chief: Boss, two: Pair, daemon: RunningDaemon
) -> None:
    ask = asked(two[0])
    for method, more in (("get", {}), ("answer", {"choice": "yes"}), ("cancel", {}), ("wait", {})):
        assert two[1].refusal(f"ask.{method}", id=ask["id"], **more) == "not_found"
    assert two[1].call("ask.list", state="all")["asks"] == []
    assert one(chief, ask)["state"] == "open"


# --- cancelling ------------------------------------------------------------------------


def test_the_asker_takes_an_ask_back_and_who_was_asked_is_told(chief: Boss, two: Pair) -> None:
    ask = asked(two[0])
    settled = two[0].call("ask.cancel", id=ask["id"], reason="done already")["ask"]
    assert (settled["state"], settled["answer"], settled["comment"]) == ("cancelled", None, "done already")
    assert two[0].list() == []  # it knows
    assert any(ask["id"] in text and f"{two[0].address} cancelled it" in text for text in chief.told())
    assert chief.refusal("ask.answer", id=ask["id"], choice="yes") == "ask_settled"


def test_the_boss_cancels_any_ask_and_the_asker_is_told_why(chief: Boss, two: Pair) -> None:
    ask = asked(two[0], to=two[1].address)
    assert two[1].refusal("ask.cancel", id=ask["id"]) == "not_asker"
    chief.call("ask.cancel", id=ask["id"], reason="ask me first")
    [mail] = two[0].list()
    assert mail["from"] == "agent:system" and '"ask me first"' in mail["text"]
    assert mail["status"] == "pending"  # it is mail, not a notice: it starts a turn


def test_a_deleted_question_is_cancelled(chief: Boss, two: Pair) -> None:
    ask = asked(two[0])
    chief.call("message.delete", id=ask["message"], reason="a mistake")
    assert one(chief, ask)["state"] == "cancelled"
    assert "its message was deleted: a mistake" in two[0].list()[0]["text"]


def test_the_asks_of_a_deleted_agent_are_cancelled_and_those_asked_of_it(
    chief: Boss, two: Pair, daemon: RunningDaemon
) -> None:
    daemon.register("leaver")
    leaver = Party(daemon, "agent:leaver", daemon.token("leaver"))
    own, of_it = asked(leaver), asked(two[0], to="agent:leaver")
    chief.call("agent.delete", name="leaver")
    assert [one(chief, ask)["state"] for ask in (own, of_it)] == ["cancelled", "cancelled"]
    [mail] = two[0].list()
    assert "agent:leaver was deleted" in mail["text"]
    assert any(own["id"] in text for text in chief.told())


def test_the_asker_is_told_when_the_person_it_asked_is_deleted(chief: Boss, two: Pair) -> None:
    chief.call("user.register", name="ann")
    ask = asked(two[0], to="user:ann")
    chief.call("user.delete", name="ann")
    assert one(chief, ask)["state"] == "cancelled"
    assert "user:ann was deleted" in two[0].list()[0]["text"]


# --- listing ---------------------------------------------------------------------------


def test_the_list_shows_the_open_ones_newest_first_in_pages(two: Pair) -> None:
    numbers = [asked(two[0], f"Number {number}?", to=two[1].address)["id"] for number in range(5)]
    two[1].call("ask.answer", id=numbers[0], choice="yes")
    for who in two:
        first = who.call("ask.list", page_size=3)
        second = who.call("ask.list", page_size=3, after=first["next"])
        assert [ask["id"] for ask in first["asks"] + second["asks"]] == numbers[:0:-1]
        assert second["next"] is None
        assert [ask["id"] for ask in who.call("ask.list", state="answered")["asks"]] == numbers[:1]


# --- waiting ---------------------------------------------------------------------------


def test_a_wait_ends_with_the_answer_which_lies_in_no_box_when_the_asker_has_it(
    chief: Boss, two: Pair
) -> None:
    ask = asked(two[0])
    with waiting(two[0], ask) as answer:
        chief.call("ask.answer", id=ask["id"], choice="yes")
        found = answer()
    assert (found["timed_out"], found["ask"]["answer"]) == (False, "yes")
    [mail] = two[0].list()
    assert mail["status"] == "pending"  # nobody knows yet whether it was read
    two[0].call("ask.wait", id=ask["id"], received=True)
    [mail] = two[0].list()
    assert (mail["status"], mail["read_at"] is None) == ("done", False)


def test_a_wait_that_ends_without_an_answer_changes_nothing(two: Pair) -> None:
    ask = asked(two[0])
    assert two[0].call("ask.wait", id=ask["id"], timeout="0.001s")["timed_out"] is True
    assert two[0].call("ask.wait", id=ask["id"], timeout="0.001s")["ask"]["state"] == "open"


@contextmanager
def waiting(who: Party, ask: dict[str, Any]) -> Iterator[Any]:
    """Wait for an ask on a connection of its own; what is given returns the answer."""
    with who.daemon.connect() as connection:
        params = {"id": ask["id"], "timeout": "1m", "token": who.token}
        line = {"jsonrpc": "2.0", "id": 1, "method": "ask.wait", "params": params}
        connection.sendall(json.dumps(line).encode() + b"\n")
        stream = connection.makefile("rb")
        yield lambda: json.loads(stream.readline())["result"]


# --- runs ------------------------------------------------------------------------------

ASKER = """
ask = call("ask.create", question="Deploy?")["ask"]
note(ask["id"])
answer = call("ask.wait", id=ask["id"], timeout="1m")
call("ask.wait", id=ask["id"], received=True)
print("I deploy: " + str(answer["ask"]["answer"]))
"""
ENDER = """
if "Answer to" in TEXTS[0]:
    print("so it is " + TEXTS[0].split()[-1])
else:
    note(call("ask.create", question="Deploy?")["ask"]["id"])
    print("I asked")
"""


def noted(agent: PythonAgent, number: int = 1) -> Any:
    wait_until(lambda: len(agent.program.notes()) >= number)
    return agent.program.notes()[number - 1]


def test_a_run_that_waits_gets_the_answer_and_no_second_turn(chief: Boss, team: Team) -> None:
    agent = team.hire(ASKER)
    chief.say(agent, text="go")
    chief.call_and_wait("ask.answer", id=noted(agent), choice="yes")
    assert texts(chief.heard(agent))[-1] == "I deploy: yes"
    assert len(agent.runs()) == 1


def test_a_run_that_ended_its_turn_gets_the_answer_in_the_next_one(chief: Boss, team: Team) -> None:
    agent = team.hire(ENDER)
    chief.say(agent, text="go")
    number = noted(agent)
    wait_until_idle(agent.daemon)
    chief.call_and_wait("ask.answer", id=number, choice="no")
    assert texts(chief.heard(agent))[-1] == "so it is no"
    assert [run["status"] for run in agent.runs()] == ["completed", "completed"]


def test_the_answer_of_another_is_told_where_the_turn_that_asked_would_have_answered(
    chief: Boss, two: Pair, team: Team
) -> None:
    agent = team.hire(ENDER.replace('question="Deploy?"', f'question="Deploy?", to="{two[1].address}"'))
    chief.say(agent, text="go")
    number = noted(agent)
    wait_until_idle(agent.daemon)
    two[1].call("ask.answer", id=number, choice="no")
    wait_until_idle(agent.daemon)
    assert texts(chief.heard(agent))[-1] == "so it is no"
    [question] = two[1].list()  # and no text of the turn
    assert question["text"].startswith("Deploy?")


def test_the_same_words_are_a_new_question_when_the_run_has_its_answer(chief: Boss, team: Team) -> None:
    agent = team.hire(
        """
for _ in range(2):
    ask = call("ask.create", question="Deploy?")["ask"]
    again = call("ask.create", question="Deploy?")
    note([ask["id"], again["ask"]["id"], again["duplicate"]])
    call("ask.wait", id=ask["id"], timeout="1m")
    call("ask.wait", id=ask["id"], received=True)
print("NO_REPLY")
"""
    )
    chief.say(agent, text="go")
    numbers = []
    for number in (1, 2):
        first, again, duplicate = noted(agent, number)
        assert (first, duplicate) == (again, True)
        numbers.append(first)
        chief.call("ask.answer", id=first, choice="yes")
    assert numbers[0] != numbers[1]


def test_a_background_task_that_waits_gets_the_answer_and_its_agent_no_turn(chief: Boss, team: Team) -> None:
    agent = team.hire(f'if TEXTS != ["do it"]:\n    sys.exit(print("NO_REPLY"))\n{ASKER}')
    agent.send("agent:background", text="do it")
    chief.call_and_wait("ask.answer", id=noted(agent), choice="yes")
    assert [run["kind"] for run in agent.runs()].count("background") == 1
    assert [turn for turn in agent.turns() if "Answer to" in turn] == []


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Team]:
    """A daemon with one place for runs."""
    with daemon_with(tmp_path_factory.mktemp("small"), parallel_runs=1) as running:
        yield Team(running, tmp_path_factory.mktemp("small-programs"))


def test_a_run_that_waits_frees_its_place_and_says_that_it_asks(small: Team) -> None:
    ada = Boss(small.daemon)
    asker, other = small.hire(ASKER), small.hire('print("I had the place")')
    ada.say(asker, text="go")
    number = noted(asker)
    ada.say(other, text="and you?")
    wait_until(lambda: texts(ada.heard(other)) == ["I had the place"])
    assert ada.status(asker)["state"] == "asks"
    ada.call_and_wait("ask.answer", id=number, choice="yes")
    assert texts(ada.heard(asker))[-1] == "I deploy: yes" and ada.status(asker)["state"] == "idle"


DROPPER = """
ask = call("ask.create", question="Deploy?")["ask"]
params = {"id": ask["id"], "timeout": "1m", "token": os.environ["HIBOSS_TOKEN"]}
request = {"jsonrpc": "2.0", "id": 1, "method": "ask.wait", "params": params}
with socket.socket(socket.AF_UNIX) as line:
    line.connect(SOCKET)
    line.sendall(json.dumps(request).encode() + b"\\n")
    while call("agent.status", name=ask["asker"][6:])["agent"]["state"] != "asks":
        pass
call("agent.self")
note(ask["id"])
wait_for("finish")
print("NO_REPLY")
"""


def test_a_run_whose_connection_drops_while_it_waits_takes_its_place_again(small: Team) -> None:
    ada = Boss(small.daemon)
    asker = small.hire(DROPPER.replace("SOCKET", repr(small.daemon.home.socket)))
    other = small.hire('print("I had the place")')
    ada.say(asker, text="go")
    noted(asker)
    ada.say(other, text="and you?")
    small.place("finish").touch()
    wait_until(lambda: texts(ada.heard(other)) == ["I had the place"])
    [first], [second] = asker.runs(), other.runs()
    assert first["ended_at"] <= second["started_at"]


def test_a_run_that_waits_again_and_again_does_not_escape_its_limits(tmp_path: Path) -> None:
    with daemon_with(tmp_path, total_seconds=1.0, question_seconds=1.0) as running:
        team, ada = Team(running, tmp_path), Boss(running)
        asker = team.hire(
            """
while True:
    for word in ("one", "two"):
        ask = call("ask.create", question=word)["ask"]
        call("ask.wait", id=ask["id"], timeout="0.1s")
"""
        )
        ada.say(asker, text="go")
        wait_until(lambda: [run["status"] for run in asker.runs()][:1] == ["failed"])
        assert asker.runs()[0]["error_kind"] == "timed_out"


@frozen(quiet=False)
async def test_the_limits_of_a_run_stand_still_while_it_waits(daemon: InProcessDaemon) -> None:
    run = await SilentRun.begin(daemon)
    limit = run.execution._limits.total_seconds
    ask, waits = await run.asks()
    run.clock.move(seconds=limit)
    await run.is_answered(ask, waits)
    run.execution._watch_limits()
    assert run.execution.ending is None
    run.clock.move(seconds=limit)
    run.execution._watch_limits()
    assert await run.ended() == "failed"


# --- facts -----------------------------------------------------------------------------


def test_who_asks_who_is_asked_and_the_boss_hear_of_an_ask_and_nobody_else(
    chief: Boss, two: Pair, daemon: RunningDaemon
) -> None:
    outsider = agent(daemon)
    topics = ["ask.created", "ask.settled", "envelope.arrived"]
    with (
        following(daemon) as asking,
        following(daemon) as asked_one,
        following(daemon) as of_boss,
        following(daemon) as other,
    ):
        for follower, who in ((asking, two[0]), (asked_one, two[1]), (of_boss, chief), (other, outsider)):
            follower.subscribe(who.token, topics=topics)
        ask = asked(two[0], to=two[1].address)
        two[1].call("ask.answer", id=ask["id"], choice="yes")
        for follower in (asking, asked_one, of_boss):
            created = follower.next("ask.created")
            settled = follower.next("ask.settled")
            assert (created["ask"], created["from"], created["to"]) == (
                ask["id"],
                two[0].address,
                two[1].address,
            )
            assert (settled["ask"], settled["state"], settled["message"]) == (
                ask["id"],
                "answered",
                ask["message"],
            )
        sent = chief.send(outsider)
        assert other.next()["message"] == sent["message"]


# --- how long a call inside a run waits --------------------------------------------


def test_harnesses_kill_commands_after_a_minute() -> None:
    assert asks.RUN_SECONDS == 50.0


@frozen()
async def test_a_run_waits_no_longer_than_its_limit_and_others_do(daemon: InProcessDaemon) -> None:
    run = await SilentRun.begin(daemon)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(asks, "RUN_SECONDS", 0.01)
        ask = (await run.call("ask.create", question="Deploy?"))["ask"]["id"]
        waited = await run.call("ask.wait", id=ask, timeout="1h")
    assert (waited["timed_out"], waited["ask"]["state"]) == (True, "open")
    await run.is_answered(ask, asyncio.create_task(daemon.ask("ask.wait", id=ask, timeout="1h")))
    await run.end()


@frozen()
async def test_the_limits_of_a_run_stand_still_only_for_so_long_for_each_ask(daemon: InProcessDaemon) -> None:
    run = await SilentRun.begin(daemon)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(run_execution, "ASK_SECONDS", 0.1)
        ask, waits = await run.asks()  # it stands still
        await daemon.until(lambda: run.execution.silent_seconds is not None)  # and counts again
        again = asyncio.create_task(run.call("ask.wait", id=ask))
        await asyncio.sleep(0)
        await run.call("agent.self")
        assert run.execution.silent_seconds is not None and not waits.done()
    await run.is_answered(ask, waits)
    assert (await again)["ask"]["answer"] == "yes"
    await run.end()
