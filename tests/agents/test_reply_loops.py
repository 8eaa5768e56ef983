"""Agents that always answer do not loop; a loop that they make themselves is stopped by a limit, and the boss can resume it."""

from __future__ import annotations

from collections import Counter

import pytest

from hiboss.testing.running_daemon import RunningDaemon
from tests.support.daemons import daemon_fixture
from tests.support.python_agents import Boss, PythonAgent, Team, texts, wait_until_idle
from tests.support.waits import wait_until

ALWAYS = 'print("yes, " + os.environ["HIBOSS_AGENT"])'
HOPS, RUNS = 6, 8


limited = daemon_fixture(hops=HOPS, runs_per_trace=RUNS)


@pytest.fixture(scope="module")
def crew(limited: RunningDaemon, tmp_path_factory: pytest.TempPathFactory) -> Team:
    return Team(limited, tmp_path_factory.mktemp("programs"))


@pytest.fixture
def chief(limited: RunningDaemon) -> Boss:
    return Boss(limited)


def statuses(daemon: RunningDaemon, *to: PythonAgent) -> Counter[str]:
    """Count the envelopes of these agents by status, without notices."""
    with daemon.database() as database:
        rows = database.execute('SELECT "to", status FROM envelopes WHERE "from" <> ?', ("agent:system",))
        wanted = {one.address for one in to}
        return Counter(row["status"] for row in rows if row["to"] in wanted)


# --- by the rule that nothing automatic is answered automatically ------------------------------


def test_two_agents_that_always_answer_do_not_loop(team: Team, ada: Boss) -> None:
    kai, zoe = team.hire(ALWAYS), team.hire(ALWAYS)
    kai.send(zoe, text="hello")
    zoe.send(kai, text="hello you")
    wait_until_idle(ada.daemon)
    said = ada.call("conversation.messages", **{"with": zoe.address}, address=kai.address)["envelopes"]
    assert sorted(texts(said)) == sorted(["hello", "hello you", f"yes, {kai.name}", f"yes, {zoe.name}"])
    assert statuses(ada.daemon, kai, zoe) == {"done": 4} and ada.told_of(kai) == ada.told_of(zoe) == []


def test_five_in_one_conversation_do_not_loop(team: Team, ada: Boss) -> None:
    five = [team.hire(ALWAYS) for _ in range(5)]
    asked = ada.say_and_wait(*five, text="who is there?")
    heard = [one for one in ada.list(page_size=100) if one["conversation"] == asked["conversation"]]
    assert sorted(texts(heard)) == sorted(f"yes, {one.name}" for one in five)
    assert statuses(ada.daemon, *five) == {"done": 5 + 5 * 4}
    answers = [run["answer"] for one in five for run in one.runs()]
    assert len([one for one in answers if one is not None]) == 5
    assert [text for one in five for text in ada.told_of(one)] == []


def test_five_whom_one_of_them_asked_do_not_loop_and_the_boss_hears_of_it(team: Team, ada: Boss) -> None:
    four = [team.hire(ALWAYS) for _ in range(4)]
    names = [one.address for one in four]
    kai = team.hire(f"""
if "boss" in TEXTS[0]: send({names!r}, "who is there?")
else: print(" & ".join(TEXTS))
""")
    ada.say_and_wait(kai, text="a word of the boss")
    heard = " & ".join(texts(ada.heard(kai))).split(" & ")
    assert sorted(heard) == sorted(f"yes, {one.name}" for one in four)
    # Each of the four sees what the others answered, and answers nothing to that.
    assert statuses(ada.daemon, *four) == {"done": 4 + 4 * 3}


# --- by the limits -------------------------------------------------------------------------------


COMMAND = """
subprocess.run(["hiboss", "envelope", "send", "--to", "agent:OTHER", "--text", "on and on"], check=True, capture_output=True)
"""
CALL = """
send("agent:OTHER", "on and on")
"""


def loop(team: Team, name: str, how: str = CALL) -> tuple[PythonAgent, PythonAgent]:
    """Two agents that each send to the other in every turn."""
    one, other = f"{name}-a", f"{name}-b"
    return team.hire(how.replace("OTHER", other), one), team.hire(how.replace("OTHER", one), other)


def test_a_loop_stops_at_the_limit_and_the_boss_can_resume_it(crew: Team, chief: Boss) -> None:
    kai, zoe = loop(crew, "round", COMMAND)
    trace = chief.say(kai, text="begin")["message"]
    wait_until_idle(chief.daemon)

    # Hops 0 to 5: kai has written the message that kai would get as the seventh.
    runs = chief.call("run.list", trace=trace, page_size=100)["runs"]
    assert [one["hops"] for one in reversed(runs)] == list(range(HOPS))
    assert {one["status"] for one in runs} == {"completed"}
    paused = chief.status(kai)
    assert paused["state"] == "paused" and chief.status(zoe)["state"] == "idle"
    assert paused["why"] == f"the trace {trace} has reached {HOPS} hops" and paused["until"] is None
    [told] = chief.told_of(kai)
    assert paused["why"] in told and "May it go on?" in told
    assert statuses(chief.daemon, kai, zoe) == {"done": HOPS, "pending": 1} and paused["due"] == 1
    [waiting] = kai.list(status="pending")
    assert (waiting["hops"], waiting["trace"]) == (HOPS, trace)

    # Other mail waits too, and no second notice is sent.
    chief.say_and_wait(kai, text="wait")
    assert len(chief.told_of(kai)) == 1 and chief.status(kai)["due"] == 2

    # As many runs again, and then the boss's other message is read.
    assert chief.call("agent.resume", name=kai.name) == {"name": kai.name, "changed": True}
    wait_until_idle(chief.daemon)
    runs = chief.call("run.list", trace=trace, page_size=100)["runs"]
    assert max(one["hops"] for one in runs) > HOPS and any("wait" in turn for turn in kai.turns())
    assert len(chief.told_of(kai)) + len(chief.told_of(zoe)) == 2
    assert "paused" in (chief.status(kai)["state"], chief.status(zoe)["state"])


def test_the_boss_lets_a_loop_go_on_by_an_answer_or_leaves_it(crew: Team, chief: Boss) -> None:
    kai, _ = loop(crew, "onward")
    trace = chief.say(kai, text="begin")["message"]
    for choice, runs in (("go on", 2 * HOPS), ("leave it paused", 2 * HOPS)):
        wait_until_idle(chief.daemon)
        [asked] = [one for one in chief.call("ask.list")["asks"] if one["asker"] == kai.address]
        assert asked["options"] == ["go on", "leave it paused"] and trace in asked["question"]
        chief.call_and_wait("ask.answer", id=asked["id"], choice=choice)
        assert len(chief.call("run.list", trace=trace, page_size=100)["runs"]) == runs
    assert chief.status(kai)["state"] == "paused"


def test_a_trace_of_too_many_runs_is_stopped_too(crew: Team, chief: Boss) -> None:
    kai = crew.hire("", busy="followup")
    nex = crew.hire(f'for i in range(12): send("{kai.address}", str(i))\nprint("sent")')
    trace = chief.say_and_wait(nex, text="begin")["message"]
    assert chief.status(kai)["why"] == f"the trace {trace} has reached {RUNS} runs in a day"
    assert len(kai.turns()) == RUNS - 1 and len(chief.told_of(kai)) == 1
    assert statuses(chief.daemon, kai) == {"done": RUNS - 1, "pending": 12 - (RUNS - 1)}
    assert texts(chief.heard(nex)) == ["sent"]  # the agent that has finished is not paused
    chief.call_and_wait("agent.resume", name=kai.name)
    assert statuses(chief.daemon, kai) == {"done": 12} and chief.status(kai)["state"] == "idle"
    order = [run["envelopes"] for run in kai.runs()]
    assert order == sorted(order, key=lambda one: int(one[0][1:])) and len(chief.told_of(kai)) == 1


def test_a_trace_over_its_limit_and_a_new_one_in_one_turn_can_be_resumed(crew: Team, chief: Boss) -> None:
    kai, zoe = loop(crew, "mixed")
    chief.say(kai, text="begin")
    for _ in range(2):
        wait_until_idle(chief.daemon)
        chief.call("agent.resume", name=kai.name)
    wait_until_idle(chief.daemon)
    [far] = kai.list(status="pending")
    zoe.program.write(f'send("{kai.address}", "fresh", priority="critical")', chief.daemon.home.socket)
    chief.say_and_wait(zoe, text="a new trace")
    kai.program.write('print("NO_REPLY")')
    chief.call_and_wait("agent.resume", name=kai.name)
    assert far["hops"] == 3 * HOPS and kai.get(far["id"])["status"] == "done"
    assert statuses(chief.daemon, kai)["pending"] == 0 and chief.status(kai)["state"] == "idle"


def test_an_agent_that_writes_to_itself_stops_at_the_limit(crew: Team, chief: Boss) -> None:
    kai = crew.hire('send("agent:" + os.environ["HIBOSS_AGENT"], "and again")')
    chief.say_and_wait(kai, text="begin")
    assert [one["hops"] for one in kai.runs()] == list(range(HOPS)) and len(chief.told_of(kai)) == 1
    assert statuses(chief.daemon, kai) == {"done": HOPS, "pending": 1}


def test_a_task_that_gives_itself_tasks_stops_at_the_limit(crew: Team, chief: Boss) -> None:
    kai = crew.hire('call("agent.background", task="and another")')
    kai.call_and_wait("agent.background", task="begin")
    runs = kai.runs()
    assert [(one["kind"], one["hops"]) for one in runs] == [("background", hops) for hops in range(HOPS)]
    assert chief.status(kai)["state"] == "paused" and len(chief.told_of(kai)) == 1
    chief.call_and_wait("agent.resume", name=kai.name)
    assert len(kai.runs()) == 2 * HOPS and len(chief.told_of(kai)) == 2


def test_a_loop_through_deferred_mail_stops_at_the_limit(crew: Team, chief: Boss) -> None:
    kai = crew.hire('send("agent:" + os.environ["HIBOSS_AGENT"], "and again", deliver_at="+0s")')
    trace = chief.say(kai, text="begin")["message"]
    wait_until(lambda: chief.status(kai)["state"] == "paused")
    assert [one["hops"] for one in kai.runs(trace=trace)] == list(range(HOPS))


def test_a_paused_loop_survives_a_restart(crew: Team, chief: Boss) -> None:
    kai, zoe = loop(crew, "restart")
    chief.say_and_wait(kai, text="begin")
    before = statuses(chief.daemon, kai, zoe)
    chief.daemon.stop()
    chief.daemon.start(HIBOSS_RUNS_HOPS=str(HOPS), HIBOSS_RUNS_RUNS_PER_TRACE=str(RUNS))
    wait_until_idle(chief.daemon)
    assert statuses(chief.daemon, kai, zoe) == before and len(chief.told_of(kai)) == 1
    assert chief.status(kai)["state"] == "paused"
    chief.call_and_wait("agent.resume", name=kai.name)
    assert statuses(chief.daemon, kai, zoe) == before + Counter(done=HOPS)
