"""What is offered to several members of a group with `respond = claim`: the first one answers it, once."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path

import pytest

from hiboss.core.crashpoint import RUN_ANSWERED, RUN_BEGUN, RUN_SETTLED
from hiboss.core.errors import TooLate
from hiboss.testing.running_daemon import RunningDaemon
from tests.support.daemons import set_up
from tests.support.group_talks import (
    ALONG,
    ANSWERS,
    DONE,
    MISSING,
    OPEN,
    copies,
    group,
    has_turns,
    hired,
    say,
    states,
    turns,
)
from tests.support.in_process_daemon import InProcessDaemon, frozen
from tests.support.python_agents import Boss, Team, hire, idle_after, idle_after_until, wait_until_idle
from tests.support.waits import wait_until


async def offered(daemon: InProcessDaemon) -> None:
    """Ask something in a group whose members, kai and max, fetch their mail."""
    await daemon.register("kai", "max")
    await group(daemon, "kai", "max", respond="claim")
    await daemon.send("group:core", text="anybody?", who="boss")


async def claimed(daemon: InProcessDaemon, who: str, **more: str) -> list[str]:
    return [one["text"] for one in (await daemon.ask("envelope.claim", who, **more))["envelopes"]]


# --- claim: the first one answers --------------------------------------------------------------------------


@frozen()
async def test_of_five_to_whom_it_is_offered_exactly_one_answers(daemon: InProcessDaemon) -> None:
    names = ["k1", "k2", "k3", "k4", "k5"]
    programs = await hired(daemon, *names, body=ANSWERS)
    await group(daemon, *names, respond="claim")
    for number in range(4):
        before = sum(turns(programs))
        await say(daemon, f"question {number}")
        assert sum(turns(programs)) == before + 1
        assert sorted(await states(daemon, f"question {number}", *names)) == sorted([DONE, *[ALONG] * 4])
    assert len([text for text in await daemon.inbox("boss") if text.startswith("answer of")]) == 4


@frozen()
async def test_who_is_named_answers_and_nobody_else_is_asked(daemon: InProcessDaemon) -> None:
    programs = await hired(daemon, "k1", "k2", "k3", body=ANSWERS)
    await group(daemon, "k1", "k2", "k3", respond="claim")
    await say(daemon, "@k2 you")
    assert turns(programs) == [0, 1, 0]
    assert await states(daemon, "@k2 you", "k1", "k3") == [ALONG, ALONG]


@frozen(quiet=False)
async def test_a_lane_error_gives_it_back_and_another_one_answers(daemon: InProcessDaemon) -> None:
    broken = await hire(daemon, "a-broken", ANSWERS, command=MISSING)
    await daemon.ask("agent.pause", name="a-broken")
    (whole,) = await hired(daemon, "b-whole", body=ANSWERS)
    await daemon.ask("agent.pause", name="b-whole")
    await group(daemon, "a-broken", "b-whole", respond="claim")
    await daemon.send("group:core", text="anybody?", who="boss")
    await daemon.ask("agent.resume", name="a-broken")
    await daemon.until(
        lambda: daemon.rows("SELECT 1 FROM run WHERE status = 'failed' AND error_scope = 'lane'")
    )
    assert await states(daemon, "anybody?", "a-broken", "b-whole") == [OPEN, OPEN]
    await daemon.ask("agent.resume", name="b-whole")
    await idle_after_until(daemon, whole.turns)
    assert await states(daemon, "anybody?", "a-broken", "b-whole") == [ALONG, DONE]
    await daemon.move(hours=2)  # its lane is tried again, and has nothing to do
    await idle_after(daemon)
    assert broken.turns() == [] and len(whole.turns()) == 1
    assert [text for text in await daemon.inbox("boss") if text.startswith("answer")] == [
        "answer of b-whole.py"
    ]


@frozen(quiet=False)
async def test_while_all_are_broken_it_waits_and_the_first_who_is_mended_answers(
    daemon: InProcessDaemon,
) -> None:
    programs = await hired(daemon, "k1", "k2", body=ANSWERS, command=MISSING)
    await group(daemon, "k1", "k2", respond="claim")
    await daemon.send("group:core", text="anybody?", who="boss")
    failed = "SELECT DISTINCT agent FROM run WHERE status = 'failed' AND error_scope = 'lane'"
    await idle_after_until(daemon, lambda: len(daemon.rows(failed)) == 2)
    assert await states(daemon, "anybody?", "k1", "k2") == [OPEN, OPEN]
    await daemon.ask("agent.set", name="k2", settings={"command": programs[1].command})
    await daemon.move(hours=2)
    await idle_after_until(daemon, programs[1].turns)
    assert turns(programs) == [0, 1] and await states(daemon, "anybody?", "k1", "k2") == [ALONG, DONE]


@frozen(quiet=False)
async def test_who_fails_for_good_gives_it_back(daemon: InProcessDaemon) -> None:
    bad = await hire(daemon, "a-bad", "wait_for('go')\nsys.exit(3)")
    (good,) = await hired(daemon, "b-good", body=ANSWERS)
    await daemon.ask("agent.pause", name="b-good")
    await group(daemon, "a-bad", "b-good", respond="claim")
    await daemon.send("group:core", text="anybody?", who="boss")
    await daemon.until(bad.turns)
    assert await states(daemon, "anybody?", "b-good") == [ALONG]  # while the other has it in hand
    bad.path.with_name("go").touch()
    for times in range(2, 6):
        await idle_after(daemon)
        await daemon.move(hours=2)
        await idle_after_until(daemon, partial(has_turns, bad, times))
    assert await states(daemon, "anybody?", "a-bad", "b-good") == [("failed", False), OPEN]
    await daemon.ask("agent.resume", name="b-good")
    await idle_after_until(daemon, good.turns)
    assert (await states(daemon, "anybody?", "b-good")) == [DONE]


@frozen()
async def test_a_lease_takes_it_and_release_and_the_end_of_the_lease_give_it_back(
    daemon: InProcessDaemon,
) -> None:
    await offered(daemon)
    claim = partial(claimed, daemon, lease="10m")
    assert await claim("kai") == ["anybody?"] and await claim("max") == []
    number = (await copies(daemon, "anybody?"))["agent:kai"]["id"]
    await daemon.ask("envelope.release", "kai", ids=[number])
    assert await states(daemon, "anybody?", "kai", "max") == [OPEN, OPEN]
    assert await claim("max") == ["anybody?"] and await claim("kai") == []
    await daemon.move(minutes=10)
    assert await states(daemon, "anybody?", "kai", "max") == [OPEN, OPEN]
    assert [one["text"] for one in (await daemon.ask("envelope.poll", "kai"))["envelopes"]] == ["anybody?"]
    assert await claim("kai") == ["anybody?"]
    await daemon.ask("envelope.ack", "kai", ids=[number], claim="k3")
    await daemon.move(hours=1)
    assert await states(daemon, "anybody?", "kai", "max") == [DONE, ALONG]


@frozen()
async def test_two_who_claim_at_once_do_not_both_get_it(daemon: InProcessDaemon) -> None:
    await daemon.register("k1", "k2", "k3")
    await group(daemon, "k1", "k2", "k3", respond="claim")
    for number in range(10):
        await daemon.send("group:core", text=f"{number}", who="boss")
        found = await asyncio.gather(*(daemon.ask("envelope.claim", name) for name in ("k1", "k2", "k3")))
        assert [one["text"] for page in found for one in page["envelopes"]] == [f"{number}"]


@frozen()
async def test_the_deletion_of_who_took_it_gives_it_back(daemon: InProcessDaemon) -> None:
    await offered(daemon)
    assert (await daemon.ask("envelope.claim", "kai"))["envelopes"]
    await daemon.ask("agent.delete", name="kai")
    assert await states(daemon, "anybody?", "kai", "max") == [("failed", False), OPEN]
    assert (await daemon.ask("envelope.claim", "max"))["envelopes"]


@frozen()
async def test_acknowledging_it_without_a_claim_takes_it_from_the_others(daemon: InProcessDaemon) -> None:
    await offered(daemon)
    number = (await copies(daemon, "anybody?"))["agent:kai"]["id"]
    await daemon.ask("envelope.ack", "kai", ids=[number])
    assert await states(daemon, "anybody?", "kai", "max") == [DONE, ALONG]
    assert (await daemon.ask("envelope.claim", "max"))["envelopes"] == []


@frozen()
async def test_who_put_it_off_does_not_get_it_when_another_one_has_answered(daemon: InProcessDaemon) -> None:
    await offered(daemon)
    found = await copies(daemon, "anybody?")
    await daemon.ask("envelope.snooze", "kai", ids=[found["agent:kai"]["id"]], until="+1h")
    await daemon.ask("envelope.claim", "max", lease="3h")
    await daemon.ask("envelope.ack", "max", ids=[found["agent:max"]["id"]])
    await daemon.move(hours=1)
    assert await states(daemon, "anybody?", "kai", "max") == [ALONG, DONE]
    assert (await daemon.ask("envelope.claim", "kai"))["envelopes"] == []
    assert (await daemon.ask("envelope.list", "kai", unread=True))["envelopes"] == []


@frozen()
async def test_a_deferred_offer_is_taken_by_one(daemon: InProcessDaemon) -> None:
    programs = await hired(daemon, "k1", "k2", body=ANSWERS)
    await group(daemon, "k1", "k2", respond="claim")
    await daemon.send("group:core", text="later", who="boss", deliver_at="+1h")
    await daemon.move(hours=1)
    await idle_after_until(daemon, lambda: sum(turns(programs)))
    assert sum(turns(programs)) == 1
    assert sorted(await states(daemon, "later", "k1", "k2")) == sorted([DONE, ALONG])


@frozen()
async def test_an_offer_survives_a_restart(daemon: InProcessDaemon) -> None:
    await offered(daemon)
    await daemon.ask("envelope.claim", "kai", lease="10m")
    await daemon.restart(minutes=5)
    assert await states(daemon, "anybody?", "max") == [ALONG]
    await daemon.restart(minutes=5)
    assert await states(daemon, "anybody?", "kai", "max") == [OPEN, OPEN]


@frozen()
async def test_what_another_one_took_can_be_read_but_not_acknowledged_as_done(
    daemon: InProcessDaemon,
) -> None:
    await offered(daemon)
    found = await copies(daemon, "anybody?")
    await daemon.ask("envelope.claim", "kai", lease="10m")
    with pytest.raises(TooLate):
        await daemon.ask("envelope.release", "max", ids=[found["agent:max"]["id"]])
    assert (await daemon.ask("envelope.read", "max", ids=[found["agent:max"]["id"]]))["changed"] == 1
    await daemon.move(minutes=10)
    assert await states(daemon, "anybody?", "max") == [OPEN]


# --- kill -9 between taking and settling ----------------------------------------------------------------------


@pytest.mark.parametrize("place", [RUN_BEGUN, RUN_ANSWERED, RUN_SETTLED])
def test_after_a_crash_between_taking_and_settling_it_is_answered_once(tmp_path: Path, place: str) -> None:
    daemon = RunningDaemon(set_up(tmp_path))
    daemon.start()
    try:
        ada, team = Boss(daemon), Team(daemon, tmp_path)
        members = [team.hire(ANSWERS, name=name) for name in ("k1", "k2", "k3")]
        given = [one.address for one in members]
        ada.call("conversation.create", name="core", participants=given, respond="claim")
        daemon.kill()
        daemon.start(HIBOSS_CRASH_AT=place)
        number = ada.send("group:core", text="anybody?")["ids"][0]
        daemon.wait_for_death()
        daemon.check()
        daemon.start()
        wait_until_idle(daemon)
        wait_until(lambda: [one for one in ada.list(page_size=100) if one["text"].startswith("answer of")])
        wait_until_idle(daemon)
        answers = [one for one in ada.list(page_size=100) if one["text"].startswith("answer of")]
        assert len(answers) == 1 and answers[0]["thread"] == ada.get(number)["thread"]
        with daemon.database() as database:
            rows = database.execute(
                "SELECT status, context FROM envelope WHERE offered = 1 ORDER BY context"
            ).fetchall()
        assert [tuple(one) for one in rows] == [(1, 0), (1, 1), (1, 1)]
        daemon.check()
    finally:
        daemon.stop()
