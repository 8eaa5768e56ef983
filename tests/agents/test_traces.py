"""What came of one message is counted in its trace, whatever way it took: schedules, replies, names of outsiders."""

from __future__ import annotations

import pytest

from hiboss.testing.running_daemon import RunningDaemon
from tests.support.daemons import daemon_fixture
from tests.support.in_process_daemon import InProcessDaemon, frozen
from tests.support.parties import Party, agent
from tests.support.python_agents import (
    QUIET,
    Boss,
    PythonAgent,
    Team,
    hire,
    idle_after,
    notices,
    runs_of,
    status_of,
    wait_until_idle,
)
from tests.support.waits import wait_until

HOPS, RUNS = 4, 6
SELF = '"agent:" + os.environ["HIBOSS_AGENT"]'


limited = daemon_fixture(hops=HOPS, runs_per_trace=RUNS)


@pytest.fixture(scope="module")
def crew(limited: RunningDaemon, tmp_path_factory: pytest.TempPathFactory) -> Team:
    return Team(limited, tmp_path_factory.mktemp("programs"))


@pytest.fixture(scope="module")
def chief(limited: RunningDaemon) -> Boss:
    return Boss(limited)


def scheduling(when: str, text: str = "again") -> str:
    """A program that schedules a message to its own agent in every turn."""
    return f'note(call("cron.create", {when}, to={SELF}, text="{text}", overlap="queue")["id"])'


def hops_of(kai: PythonAgent) -> list[int]:
    return [one["hops"] for one in kai.runs()]


def paused(chief: Boss, kai: PythonAgent) -> str:
    """Wait until a limit has paused an agent, and return the reason."""
    wait_until(lambda: chief.status(kai)["state"] == "paused")
    return str(chief.status(kai)["why"])


# --- schedules made in a run -----------------------------------------------------------------------


def test_a_schedule_created_in_a_run_keeps_its_trace_and_hops(crew: Team, chief: Boss) -> None:
    pull = agent(chief.daemon)
    kai = crew.hire(f'call("cron.create", at="+0s", to="{pull.address}", text="later")')
    trace = chief.say(kai)["message"]
    wait_until(pull.list)
    [one] = pull.list()
    assert (one["trace"], one["hops"], one["run"]) == (trace, 1, kai.runs()[0]["id"])


def test_a_loop_of_schedules_for_one_time_stops_at_the_limit(crew: Team, chief: Boss) -> None:
    kai = crew.hire(scheduling('at="+0s"'))
    trace = chief.say(kai)["message"]
    assert paused(chief, kai) == f"the trace {trace} has reached {HOPS} hops"
    assert hops_of(kai) == list(range(HOPS)) and len(chief.told_of(kai)) == 1
    chief.call("agent.resume", name=kai.name)
    wait_until(lambda: len(kai.runs()) >= RUNS)
    assert "reached" in paused(chief, kai) and len(chief.told_of(kai)) == 2


@pytest.mark.parametrize(
    "again",
    [
        'call("cron.run", id=NUMBER)',
        'call("cron.set", id=NUMBER, at="+0s")',
        'call("cron.disable", id=NUMBER); call("cron.set", id=NUMBER, at="+0s"); call("cron.enable", id=NUMBER)',
    ],
)
def test_a_loop_through_a_schedule_made_outside_stops_at_the_limit(
    crew: Team, chief: Boss, again: str
) -> None:
    kai = crew.hire(QUIET)
    made = kai.call("cron.create", at="+1D", to=kai.address, text="again", overlap="queue")["id"]
    kai.program.write(again.replace("NUMBER", repr(made)), chief.daemon.home.socket)
    chief.say(kai)
    assert f"has reached {HOPS} hops" in paused(chief, kai)
    assert len(kai.runs()) <= RUNS


def test_a_loop_of_repeating_schedules_stops_at_the_limit(crew: Team, chief: Boss) -> None:
    """Each turn creates another one, and the next begins when it is its time (by hand here: nobody waits)."""
    kai = crew.hire(scheduling('cron="0 0 1 1 *"'))
    chief.say(kai)
    for number in range(1, 2 * HOPS):
        wait_until_idle(chief.daemon)
        if chief.status(kai)["state"] == "paused":
            break
        assert len(kai.program.notes()) == number
        chief.call("cron.run", id=kai.program.notes()[-1])
    assert f"has reached {HOPS} hops" in paused(chief, kai)


def test_a_repeating_schedule_made_in_a_turn_of_a_schedule_counts_in_its_trace(
    crew: Team, chief: Boss
) -> None:
    """So schedules cannot grow without end: one that makes others is stopped."""
    kai = crew.hire(scheduling('cron="0 0 1 1 *"', "child") + ' if "child" not in TEXTS[0] else None')
    first = kai.call("cron.create", cron="0 0 1 1 *", to=kai.address, text="parent")["id"]
    chief.call_and_wait("cron.run", id=first)
    [child] = kai.program.notes()
    for _ in range(RUNS):
        chief.call_and_wait("cron.run", id=child)
    assert paused(chief, kai).startswith(f"the trace {first}@")
    assert {one["trace"] for one in kai.runs()} == {kai.runs()[0]["trace"]} and len(kai.runs()) == RUNS


def test_a_repeating_schedule_made_in_a_run_counts_in_the_trace_of_the_run(crew: Team, chief: Boss) -> None:
    kai = crew.hire(
        scheduling('cron="0 9 * * *"', "tell the boss") + ' if "remind" in TEXTS[0] else print("tea")'
    )
    chief.say(kai, text="remind me every day")
    wait_until_idle(chief.daemon)
    [number] = kai.program.notes()
    for _ in range(RUNS):
        chief.call_and_wait("cron.run", id=number)
    first, *times = kai.runs()
    assert paused(chief, kai) == f"the trace {first['trace']} has reached {RUNS} runs in a day"
    assert {(one["trace"], one["hops"]) for one in times} == {(first["trace"], 1)} and len(times) == RUNS - 1
    # Like a note to itself: the answer goes to the person who asked for the reminder.
    assert [one["text"] for one in chief.heard(kai)][: RUNS - 1] == ["tea"] * (RUNS - 1)


@frozen(quiet=False, runs_per_trace=3)
async def test_a_daily_reminder_made_in_a_run_never_pauses_its_agent(daemon: InProcessDaemon) -> None:
    await hire(daemon, "kai", QUIET)
    daily = {"to": "agent:kai", "text": "tea", "overlap": "queue"}
    for every, of_a_run in (("24h", "m1"), ("1h", "m2")):
        number = (await daemon.ask("cron.create", who="kai", every=every, **daily))["id"]
        daemon.change("UPDATE schedule SET trace = ?, hops = 1 WHERE id = ?", of_a_run, int(number[1:]))
        if of_a_run == "m1":
            for _ in range(10):
                await idle_after(daemon, hours=24)
            assert (await status_of(daemon, "kai"))["state"] == "idle"
            assert {one["trace"] for one in await runs_of(daemon, "kai")} == {"m1"}
            assert len(await runs_of(daemon, "kai")) == 10
    for _ in range(4):
        await idle_after(daemon, hours=1)
    status = await status_of(daemon, "kai")
    assert (status["state"], status["why"]) == ("paused", "the trace m2 has reached 3 runs in a day")


def test_what_the_boss_allows_one_time_of_a_schedule_he_allows_the_next(crew: Team, chief: Boss) -> None:
    """A job that needs more runs than the limit is not stopped again every day."""
    zoe = crew.hire(QUIET, busy="followup")
    kai = crew.hire(f'for _ in range({RUNS}): send("{zoe.address}", "do")')
    number = kai.call("cron.create", cron="0 9 * * *", to=kai.address, text="go", overlap="queue")["id"]
    chief.call("cron.run", id=number)
    assert "runs" in paused(chief, zoe)
    chief.call_and_wait("agent.resume", name=zoe.name)
    assert len(zoe.turns()) == RUNS and chief.status(zoe)["state"] == "idle"
    chief.call_and_wait("cron.run", id=number)
    assert len(zoe.turns()) == 2 * RUNS and len(chief.told_of(zoe)) == 1


# --- replies -------------------------------------------------------------------------------------


def test_a_reply_of_an_agent_that_fetches_its_mail_inherits_trace_and_hops(two: tuple[Party, Party]) -> None:
    ada, bob = two
    first = ada.send(bob, text="?")
    for hops in range(1, 4):
        ada, bob = bob, ada
        sent = ada.send(reply_to=ada.list()[0]["id"], trace_id="mine")  # no name of its own helps
        one = bob.get(sent["ids"][0])
        assert (one["trace"], one["hops"], one["run"]) == (first["message"], hops, None)


def test_a_reply_of_a_person_begins_a_new_trace(two: tuple[Party, Party], ada: Boss) -> None:
    kai, _ = two
    number = kai.tell(ada, text="may I?")
    sent = ada.send(text="yes", reply_to=number)
    one = kai.get(sent["ids"][0])
    assert (one["trace"], one["hops"]) == (sent["message"], 0)
    # Also when the boss speaks in the name of an agent.
    sent = ada.send(text="no", reply_to=number, to="user:boss", from_=kai.address)
    assert ada.get(sent["ids"][0])["trace"] == sent["message"]


def test_a_loop_with_an_agent_that_fetches_its_mail_stops_at_the_limit(crew: Team, chief: Boss) -> None:
    kai, pull = crew.hire('print("ping")'), agent(chief.daemon)
    trace = pull.send(kai, text="ping")["message"]
    for rounds in range(1, HOPS + 1):
        wait_until_idle(chief.daemon)
        if chief.status(kai)["state"] == "paused":
            break
        [answer] = pull.call("envelope.claim")["envelopes"]
        pull.call("envelope.ack", ids=[answer["id"]])
        pull.send(reply_to=answer["id"], text="pong")
        assert rounds < HOPS
    assert paused(chief, kai) == f"the trace {trace} has reached {HOPS} hops"
    assert hops_of(kai) == [0, 2]


def test_mail_far_beyond_the_limit_can_be_resumed(crew: Team, chief: Boss) -> None:
    """Agents that fetch their mail can add hops without any run."""
    ann, bob = agent(chief.daemon), agent(chief.daemon)
    number = ann.tell(bob)
    for _ in range(3 * HOPS):
        ann, bob = bob, ann
        [number] = ann.send(reply_to=number)["ids"]
    kai = crew.hire(QUIET)
    bob.send(kai, reply_to=number)
    assert f"has reached {3 * HOPS + 1} hops" in paused(chief, kai)
    chief.call_and_wait("agent.resume", name=kai.name)
    assert len(kai.runs()) == 1 and chief.status(kai)["state"] == "idle"


# --- names of outsiders ----------------------------------------------------------------------------


def test_no_agent_can_pause_another_by_sends_with_one_trace_id(crew: Team, chief: Boss) -> None:
    zoe = crew.hire(QUIET, busy="followup")
    kai = crew.hire(f'send("{zoe.address}", "and you?")', busy="followup")
    pull = agent(chief.daemon)
    foreign = chief.say(kai)["message"]
    for name in ("nightly", foreign, kai.address):
        for _ in range(RUNS + 1):
            pull.send(kai, trace_id=name)
    wait_until_idle(chief.daemon)
    assert chief.status(kai)["state"] == chief.status(zoe)["state"] == "idle"
    assert len(kai.turns()) == len(zoe.turns()) == 3 * (RUNS + 1) + 1
    assert len(chief.call("run.list", trace=foreign)["runs"]) == 2  # nobody else is in this trace


def test_the_boss_finds_what_he_named(crew: Team, chief: Boss) -> None:
    kai, pull = crew.hire(QUIET), agent(chief.daemon)
    named = [chief.say(kai, trace_id="spring") for _ in range(RUNS + 1)]
    pull.send(kai, trace_id="spring")
    wait_until_idle(chief.daemon)
    assert chief.status(kai)["state"] == "idle"
    traces = {kai.get(one["ids"][0])["trace"] for one in named}
    assert traces == {f"user:boss/spring/{one['message']}" for one in named}
    for asked in ("spring", "user:boss/spring"):
        found = chief.call("run.list", trace=asked, page_size=100)["runs"]
        assert found and {one["trace"] for one in found} <= traces
    [one] = chief.call("run.list", trace=f"{pull.address}/spring")["runs"]
    assert one["trace"].startswith(f"{pull.address}/spring/m")
    assert chief.call("run.list", trace="spri")["runs"] == []


def test_a_name_of_a_trace_may_have_slashes(crew: Team, chief: Boss) -> None:
    sent = chief.say(crew.hire(QUIET), trace_id="team/nightly")
    wait_until_idle(chief.daemon)
    for asked in ("team/nightly", "user:boss/team/nightly", f"user:boss/team/nightly/{sent['message']}"):
        [one] = chief.call("run.list", trace=asked)["runs"]
        assert one["envelopes"] == sent["ids"]


# --- runs that count, and pauses -------------------------------------------------------------------


@frozen(quiet=False, runs_per_trace=3)
async def test_runs_that_failed_by_a_lane_error_do_not_count(daemon: InProcessDaemon) -> None:
    await hire(daemon, "kai", "", command="no-such-program")
    await daemon.send("agent:kai", who="boss")
    for _ in range(5):
        await idle_after(daemon, hours=2)
    runs = await runs_of(daemon, "kai")
    assert len(runs) > 4 and {one["error_kind"] for one in runs} == {runs[0]["error_kind"]}
    assert (await status_of(daemon, "kai"))["state"] == "waiting"
    await daemon.ask("agent.set", name="kai", provider="demo")
    await daemon.until(lambda: not daemon.rows("SELECT 1 FROM envelope WHERE status = 0"))
    assert (await status_of(daemon, "kai"))["state"] == "idle"
    assert not [one for one in await notices(daemon) if "is paused" in one]


@frozen()
async def test_what_the_boss_paused_is_not_resumed_with_the_budget_of_the_next_day(
    daemon: InProcessDaemon,
) -> None:
    """The order of a person is kept beside that of a limit; a revoked token too."""
    for name, order in (("kai", "agent.pause"), ("zoe", "agent.token.revoke")):
        await hire(daemon, name, QUIET, daily_tokens=1)
        daemon.change(
            "UPDATE agent SET paused_at = 1, paused_kind = 'budget', paused_why = 'x', paused_until = ?"
            " WHERE address = (SELECT id FROM address WHERE name = ?)",
            1_906_600_000_000,
            name,
        )
        await daemon.ask(order, name=name)
        await daemon.move(days=60)
        assert (await status_of(daemon, name))["state"] == "paused"
    assert (await daemon.ask("agent.resume", name="kai"))["changed"]
    assert (await status_of(daemon, "kai"))["state"] == "idle"


def test_a_pause_by_the_boss_keeps_what_a_limit_stopped(crew: Team, chief: Boss) -> None:
    kai = crew.hire(f'send({SELF}, "and again")')
    chief.say(kai)
    wait_until(lambda: chief.status(kai)["state"] == "paused")
    assert chief.call("agent.pause", name=kai.name, reason="enough")["changed"]
    assert chief.status(kai)["why"] == "enough"
    chief.call_and_wait("agent.resume", name=kai.name)
    assert len(kai.runs()) > HOPS
