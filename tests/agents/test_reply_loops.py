"""Agents that always answer do not loop; a loop that they make themselves is stopped by a limit, and the boss can resume it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from hiboss.testing.running_daemon import RunningDaemon
from tests.support.daemons import daemon_with, wait_until
from tests.support.python_agents import Boss, PythonAgent, Team, texts, wait_until_idle

ALWAYS = 'print("yes, " + os.environ["HIBOSS_AGENT"])'
HOPS, RUNS = 6, 8


@pytest.fixture(scope="module")
def limited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDaemon]:
    with daemon_with(tmp_path_factory.mktemp("d"), hops=HOPS, runs_per_trace=RUNS) as running:
        yield running
        running.check()


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("programs")


def statuses(daemon: RunningDaemon, *to: PythonAgent) -> Counter[str]:
    """Count the envelopes of these agents by status, without notices."""
    with daemon.database() as database:
        rows = database.execute('SELECT "to", status FROM envelopes WHERE "from" <> ?', ("agent:system",))
        wanted = {one.address for one in to}
        return Counter(row["status"] for row in rows if row["to"] in wanted)


# --- by the rule that nothing automatic is answered automatically ------------------------------


def test_two_agents_that_always_answer_do_not_loop(daemon: RunningDaemon, programs: Path) -> None:
    team, ada = Team(daemon, programs), Boss(daemon)
    kai, zoe = team.hire(ALWAYS), team.hire(ALWAYS)
    kai.send(zoe, text="hello")
    zoe.send(kai, text="hello you")
    wait_until_idle(ada.daemon)
    said = ada.call("conversation.messages", **{"with": zoe.address}, address=kai.address)["envelopes"]
    assert sorted(texts(said)) == sorted(["hello", "hello you", f"yes, {kai.name}", f"yes, {zoe.name}"])
    assert statuses(ada.daemon, kai, zoe) == {"done": 4} and ada.told_of(kai) == ada.told_of(zoe) == []


def test_two_agents_that_write_and_answer_for_the_boss_do_not_loop(
    daemon: RunningDaemon, programs: Path
) -> None:
    """Each asks the other once for every question of a person, and answers every message."""
    team, ada = Team(daemon, programs), Boss(daemon)
    kai = team.hire('if "boss" in TEXTS[0]: send("agent:other", "what do you say?")\n' + ALWAYS)
    team.hire('if "boss" in TEXTS[0]: send("' + kai.address + '", "what do you say?")\n' + ALWAYS, "other")
    asked = ada.say(kai, text="a word of the boss")
    wait_until_idle(ada.daemon)
    assert texts(ada.heard(kai)) == [f"yes, {kai.name}"] * 2  # one at once, one after the other had answered
    assert len(ada.call("run.list", trace=asked["message"])["runs"]) == 3


def test_five_in_one_conversation_do_not_loop(daemon: RunningDaemon, programs: Path) -> None:
    team, ada = Team(daemon, programs), Boss(daemon)
    five = [team.hire(ALWAYS) for _ in range(5)]
    asked = ada.say(*five, text="who is there?")
    wait_until_idle(ada.daemon)
    heard = [one for one in ada.list(page_size=100) if one["conversation"] == asked["conversation"]]
    assert sorted(texts(heard)) == sorted(f"yes, {one.name}" for one in five)
    assert statuses(ada.daemon, *five) == {"done": 5 + 5 * 4}
    answers = [run["answer"] for one in five for run in one.runs()]
    assert len([one for one in answers if one is not None]) == 5
    assert [text for one in five for text in ada.told_of(one)] == []


def test_five_whom_one_of_them_asked_do_not_loop_and_the_boss_hears_of_it(
    daemon: RunningDaemon, programs: Path
) -> None:
    team, ada = Team(daemon, programs), Boss(daemon)
    four = [team.hire(ALWAYS) for _ in range(4)]
    names = [one.address for one in four]
    kai = team.hire(f"""
if "boss" in TEXTS[0]: send({names!r}, "who is there?")
else: print(" & ".join(TEXTS))
""")
    ada.say(kai, text="a word of the boss")
    wait_until_idle(ada.daemon)
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


def test_a_loop_stops_at_the_limit_and_the_boss_can_resume_it(limited: RunningDaemon, programs: Path) -> None:
    team, ada = Team(limited, programs), Boss(limited)
    kai, zoe = loop(team, "round", COMMAND)
    asked = ada.say(kai, text="begin")
    trace = asked["message"]
    wait_until_idle(ada.daemon)

    # Hops 0 to 5: kai has written the message that kai would get as the seventh.
    runs = ada.call("run.list", trace=trace, page_size=100)["runs"]
    assert [one["hops"] for one in reversed(runs)] == list(range(HOPS))
    assert {one["status"] for one in runs} == {"completed"}
    paused = ada.status(kai)
    assert paused["state"] == "paused" and ada.status(zoe)["state"] == "idle"
    assert paused["why"] == f"the trace {trace} has reached {HOPS} hops" and paused["until"] is None
    [told] = ada.told_of(kai)
    assert paused["why"] in told and "May it go on?" in told
    assert statuses(ada.daemon, kai, zoe) == {"done": HOPS, "pending": 1} and paused["due"] == 1
    [waiting] = kai.list(status="pending")
    assert (waiting["hops"], waiting["trace"]) == (HOPS, trace)

    # Other mail waits too, and no second notice is sent.
    ada.say(kai, text="wait")
    wait_until_idle(ada.daemon)
    assert len(ada.told_of(kai)) == 1 and ada.status(kai)["due"] == 2

    # As many runs again, and then the boss's other message is read.
    assert ada.call("agent.resume", name=kai.name) == {"name": kai.name, "changed": True}
    wait_until_idle(ada.daemon)
    runs = ada.call("run.list", trace=trace, page_size=100)["runs"]
    assert max(one["hops"] for one in runs) > HOPS and any("wait" in turn for turn in kai.turns())
    assert len(ada.told_of(kai)) + len(ada.told_of(zoe)) == 2
    assert "paused" in (ada.status(kai)["state"], ada.status(zoe)["state"])


def test_the_boss_lets_a_loop_go_on_by_an_answer_or_leaves_it(limited: RunningDaemon, programs: Path) -> None:
    team, ada = Team(limited, programs), Boss(limited)
    kai, _ = loop(team, "onward")
    trace = ada.say(kai, text="begin")["message"]
    for choice, runs in (("go on", 2 * HOPS), ("leave it paused", 2 * HOPS)):
        wait_until_idle(ada.daemon)
        [asked] = [one for one in ada.call("ask.list")["asks"] if one["asker"] == kai.address]
        assert asked["options"] == ["go on", "leave it paused"] and trace in asked["question"]
        ada.call("ask.answer", id=asked["id"], choice=choice)
        wait_until_idle(ada.daemon)
        assert len(ada.call("run.list", trace=trace, page_size=100)["runs"]) == runs
    assert ada.status(kai)["state"] == "paused"


def test_a_loop_that_was_resumed_stops_again_at_the_next_limit(
    limited: RunningDaemon, programs: Path
) -> None:
    team, ada = Team(limited, programs), Boss(limited)
    kai, zoe = loop(team, "further")
    trace = ada.say(kai, text="begin")["message"]
    for time in (1, 2, 3):
        wait_until_idle(ada.daemon)
        runs = ada.call("run.list", trace=trace, page_size=100)["runs"]
        assert [one["hops"] for one in reversed(runs)] == list(range(time * HOPS))
        assert ada.status(kai)["why"] == f"the trace {trace} has reached {time * HOPS} hops"
        assert len(ada.told_of(kai)) == time and ada.told_of(zoe) == []
        assert statuses(ada.daemon, kai, zoe) == {"done": time * HOPS, "pending": 1}
        if time < 3:
            assert ada.call("agent.resume", name=kai.name)["changed"]
    # A new trace starts with a new count.
    ada.call("agent.set", name=kai.name, mode="pull")
    ada.call("agent.resume", name=kai.name)
    zoe.program.write('print("fresh")')
    ada.say(zoe, text="and you?")
    wait_until_idle(ada.daemon)
    assert texts(ada.heard(zoe)) == ["fresh"]


def test_a_trace_of_too_many_runs_is_stopped_too(limited: RunningDaemon, programs: Path) -> None:
    team, ada = Team(limited, programs), Boss(limited)
    kai = team.hire("", busy="followup")
    nex = team.hire(f'for i in range(12): send("{kai.address}", str(i))\nprint("sent")')
    trace = ada.say(nex, text="begin")["message"]
    wait_until_idle(ada.daemon)
    assert ada.status(kai)["why"] == f"the trace {trace} has reached {RUNS} runs"
    assert len(kai.turns()) == RUNS - 1 and len(ada.told_of(kai)) == 1
    assert statuses(ada.daemon, kai) == {"done": RUNS - 1, "pending": 12 - (RUNS - 1)}
    assert texts(ada.heard(nex)) == ["sent"]  # the agent that has finished is not paused
    ada.call("agent.resume", name=kai.name)
    wait_until_idle(ada.daemon)
    assert statuses(ada.daemon, kai) == {"done": 12} and ada.status(kai)["state"] == "idle"
    order = [run["envelopes"] for run in kai.runs()]
    assert order == sorted(order, key=lambda one: int(one[0][1:])) and len(ada.told_of(kai)) == 1


def test_a_trace_over_its_limit_and_a_new_one_in_one_turn_can_be_resumed(
    limited: RunningDaemon, programs: Path
) -> None:
    team, ada = Team(limited, programs), Boss(limited)
    kai, zoe = loop(team, "mixed")
    ada.say(kai, text="begin")
    for _ in range(2):
        wait_until_idle(ada.daemon)
        ada.call("agent.resume", name=kai.name)
    wait_until_idle(ada.daemon)
    [far] = kai.list(status="pending")
    zoe.program.write(f'send("{kai.address}", "fresh", priority="critical")', limited.home.socket)
    ada.say(zoe, text="a new trace")
    wait_until_idle(ada.daemon)
    kai.program.write('print("NO_REPLY")')
    ada.call("agent.resume", name=kai.name)
    wait_until_idle(ada.daemon)
    assert far["hops"] == 3 * HOPS and kai.get(far["id"])["status"] == "done"
    assert statuses(ada.daemon, kai)["pending"] == 0 and ada.status(kai)["state"] == "idle"


def test_what_the_boss_sends_is_not_stopped_with_the_trace_of_somebody_else(
    limited: RunningDaemon, programs: Path
) -> None:
    """Only the agent that would exceed the limit is paused."""
    team, ada = Team(limited, programs), Boss(limited)
    kai, zoe = loop(team, "beside")
    ada.say(kai, text="begin")
    wait_until_idle(ada.daemon)
    nex = team.hire(ALWAYS)
    ada.say(nex, text="and you?")
    wait_until_idle(ada.daemon)
    assert texts(ada.heard(nex)) == [f"yes, {nex.name}"] and ada.status(zoe)["state"] == "idle"


def test_an_agent_that_writes_to_itself_stops_at_the_limit(limited: RunningDaemon, programs: Path) -> None:
    team, ada = Team(limited, programs), Boss(limited)
    kai = team.hire('send("agent:" + os.environ["HIBOSS_AGENT"], "and again")')
    ada.say(kai, text="begin")
    wait_until_idle(ada.daemon)
    assert [one["hops"] for one in kai.runs()] == list(range(HOPS)) and len(ada.told_of(kai)) == 1
    assert statuses(ada.daemon, kai) == {"done": HOPS, "pending": 1}


def test_a_task_that_gives_itself_tasks_stops_at_the_limit(limited: RunningDaemon, programs: Path) -> None:
    team, ada = Team(limited, programs), Boss(limited)
    kai = team.hire('call("agent.background", task="and another")')
    kai.call("agent.background", task="begin")
    wait_until_idle(ada.daemon)
    runs = kai.runs()
    assert [(one["kind"], one["hops"]) for one in runs] == [("background", hops) for hops in range(HOPS)]
    assert ada.status(kai)["state"] == "paused" and len(ada.told_of(kai)) == 1
    ada.call("agent.resume", name=kai.name)
    wait_until_idle(ada.daemon)
    assert len(kai.runs()) == 2 * HOPS and len(ada.told_of(kai)) == 2


def test_a_loop_through_deferred_mail_stops_at_the_limit(limited: RunningDaemon, programs: Path) -> None:
    team, ada = Team(limited, programs), Boss(limited)
    kai = team.hire('send("agent:" + os.environ["HIBOSS_AGENT"], "and again", deliver_at="+0s")')
    trace = ada.say(kai, text="begin")["message"]
    wait_until(lambda: ada.status(kai)["state"] == "paused")
    assert [one["hops"] for one in kai.runs(trace=trace)] == list(range(HOPS))


def test_a_paused_loop_survives_a_restart(limited: RunningDaemon, programs: Path) -> None:
    team, ada = Team(limited, programs), Boss(limited)
    kai, zoe = loop(team, "restart")
    ada.say(kai, text="begin")
    wait_until_idle(ada.daemon)
    before = statuses(ada.daemon, kai, zoe)
    ada.daemon.stop()
    ada.daemon.start(HIBOSS_RUNS_HOPS=str(HOPS), HIBOSS_RUNS_RUNS_PER_TRACE=str(RUNS))
    wait_until_idle(ada.daemon)
    assert statuses(ada.daemon, kai, zoe) == before and len(ada.told_of(kai)) == 1
    assert ada.status(kai)["state"] == "paused"
    ada.call("agent.resume", name=kai.name)
    wait_until_idle(ada.daemon)
    assert statuses(ada.daemon, kai, zoe) == before + Counter(done=HOPS)
