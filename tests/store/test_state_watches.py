"""Being told once when an agent is idle, waits for an answer, finished or failed."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from hiboss.core.errors import HibossError
from hiboss.store import state_watches
from tests.support.in_process_daemon import InProcessDaemon, frozen

ASKED = {"question": "Deploy?", "options": ["yes", "no"]}


async def told(daemon: InProcessDaemon, who: str = "boss") -> list[str]:
    """Return what hiboss told somebody, oldest first."""
    page = await daemon.ask("envelope.list", who, oldest_first=True, page_size=100)
    return [one["text"] for one in page["envelopes"] if one["from"] == "agent:system"]


async def watch(daemon: InProcessDaemon, when: str, name: str = "kai", who: str = "boss") -> bool:
    return bool((await daemon.ask("agent.notify", who, name=name, when=when))["told"])


def left(daemon: InProcessDaemon) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in daemon.rows("SELECT state FROM state_watch ORDER BY state")]


async def working(daemon: InProcessDaemon, *commands: str, name: str = "kai") -> None:
    """Register an agent whose program does this."""
    settings = {"command": f"sh -c '{'; '.join(commands)}'"}
    await daemon.ask("agent.register", name=name, profile=True, provider="command", settings=settings)


async def until_settled(daemon: InProcessDaemon) -> None:
    """Wait until kai has dealt with all of its mail."""
    await daemon.until(
        lambda: (
            not daemon.rows("SELECT 1 FROM run WHERE status = 'running'")
            and not daemon.rows("SELECT 1 FROM envelopes WHERE \"to\" = 'agent:kai' AND status = 'pending'")
        )
    )


# --- idle ----------------------------------------------------------------------------


@frozen()
async def test_who_asks_about_an_idle_agent_is_told_at_once_and_only_then(daemon: InProcessDaemon) -> None:
    await working(daemon, "echo fine")
    assert await watch(daemon, "idle")
    assert await told(daemon) == ["agent:kai is idle: nothing runs, and no mail waits for it."]
    assert left(daemon) == []
    await daemon.send("agent:kai", who="nex")
    await until_settled(daemon)
    assert len(await told(daemon)) == 1


@frozen()
async def test_an_agent_is_idle_when_its_last_mail_is_dealt_with(daemon: InProcessDaemon) -> None:
    await daemon.register("kai")  # it fetches its mail
    numbers = [
        *await daemon.send("agent:kai"),
        *await daemon.send("agent:kai"),
        *await daemon.send("agent:kai"),
    ]
    assert not await watch(daemon, "idle")
    await daemon.ask("envelope.ack", "kai", ids=numbers[:1])
    await daemon.ask("envelope.cancel", "nex", ids=numbers[1:2])
    assert (await told(daemon), left(daemon)) == ([], [("idle",)])
    await daemon.ask("envelope.archive", "kai", ids=numbers[2:])
    assert (len(await told(daemon)), left(daemon)) == (1, [])


@frozen()
async def test_claimed_mail_and_mail_that_is_retried_keep_an_agent_busy_deferred_mail_does_not(
    daemon: InProcessDaemon,
) -> None:
    await daemon.register("kai")
    [number] = await daemon.send("agent:kai")
    await daemon.ask("envelope.claim", "kai")
    assert not await watch(daemon, "idle")
    await daemon.send("agent:kai", deliver_at="+2h")
    await daemon.ask("envelope.ack", "kai", ids=[number])
    assert len(await told(daemon)) == 1


@frozen(quiet=False)
async def test_a_failed_turn_that_is_retried_makes_nobody_idle(daemon: InProcessDaemon) -> None:
    await working(daemon, "exit 3")
    await daemon.ask("agent.pause", name="kai")
    await daemon.send("agent:kai")
    assert not await watch(daemon, "idle") and not await watch(daemon, "failed")
    await daemon.ask("agent.resume", name="kai")
    await daemon.until(lambda: left(daemon) == [("idle",)])
    [text] = await told(daemon)
    assert text.startswith("agent:kai has failed.") and "hiboss run get r1" in text


@frozen()
async def test_a_paused_agent_with_mail_is_not_idle_and_one_without_is(daemon: InProcessDaemon) -> None:
    await working(daemon, "echo fine")
    await daemon.ask("agent.pause", name="kai")
    [number] = await daemon.send("agent:kai")
    assert not await watch(daemon, "idle")
    await daemon.ask("envelope.cancel", "nex", ids=[number])
    assert len(await told(daemon)) == 1


@frozen(quiet=False)
async def test_the_breaker_makes_nobody_idle(daemon: InProcessDaemon) -> None:
    await working(daemon, "sleep 1000")
    await daemon.send("agent:kai")
    await daemon.until(lambda: daemon.rows("SELECT 1 FROM run WHERE status = 'running' AND pid IS NOT NULL"))
    assert not await watch(daemon, "idle") and not await watch(daemon, "failed")
    await daemon.ask("breaker.pull")
    await daemon.until(lambda: not daemon.rows("SELECT 1 FROM run WHERE status = 'running'"))
    # Its mail comes again: that is neither the end of its work nor a failure.
    assert [one for one in await told(daemon) if one.startswith("agent:kai")] == []
    assert left(daemon) == [("failed",), ("idle",)]


@frozen()
async def test_a_task_in_the_background_keeps_its_agent_busy(daemon: InProcessDaemon) -> None:
    await working(daemon, "echo fine")
    await daemon.ask("agent.pause", name="kai")  # so that it does not begin yet
    await daemon.ask("agent.background", agent="kai", task="look it up")
    assert not await watch(daemon, "idle")
    await daemon.ask("agent.resume", name="kai")
    await daemon.until(lambda: left(daemon) == [])
    assert daemon.rows("SELECT 1 FROM run WHERE status <> 'completed'") == []


# --- ends of runs --------------------------------------------------------------------


@frozen()
async def test_the_next_end_counts_and_not_one_before(daemon: InProcessDaemon) -> None:
    await working(daemon, "echo fine")
    await daemon.send("agent:kai")
    await until_settled(daemon)
    assert not await watch(daemon, "finished") and not await watch(daemon, "failed")
    assert await told(daemon) == []
    await daemon.send("agent:kai")
    await daemon.until(lambda: left(daemon) == [("failed",)])
    await until_settled(daemon)
    await daemon.send("agent:kai")
    await until_settled(daemon)
    assert await told(daemon) == ["agent:kai has finished.\nSee: hiboss run get r2"]


@frozen()
async def test_a_run_that_is_active_counts_when_it_ends(daemon: InProcessDaemon) -> None:
    gate = f"{daemon.home.path}/go"
    await working(daemon, f"while [ ! -e {gate} ]", "do sleep 0.01", "done", "echo fine")
    await daemon.send("agent:kai")
    await daemon.until(lambda: daemon.rows("SELECT 1 FROM run WHERE status = 'running'"))
    assert not await watch(daemon, "finished")
    open(gate, "w").close()
    await daemon.until(lambda: left(daemon) == [])
    assert len(await told(daemon)) == 1


@frozen(quiet=False)
async def test_a_run_that_somebody_cancels_has_failed(daemon: InProcessDaemon) -> None:
    await working(daemon, "sleep 1000")
    await daemon.send("agent:kai")
    await daemon.until(lambda: daemon.rows("SELECT 1 FROM run WHERE status = 'running' AND pid IS NOT NULL"))
    await watch(daemon, "failed")
    await watch(daemon, "idle")
    await daemon.ask("run.cancel", id="r1")
    await daemon.until(lambda: left(daemon) == [])
    first, second = sorted(one for one in await told(daemon) if one.startswith("agent:kai"))
    assert first.startswith("agent:kai has failed.") and second.startswith("agent:kai is idle")


# --- waiting -------------------------------------------------------------------------


@frozen()
async def test_who_waits_for_a_question_is_told_when_it_is_asked_or_at_once(daemon: InProcessDaemon) -> None:
    await daemon.register("kai")
    assert not await watch(daemon, "waiting")
    await daemon.ask("ask.create", "kai", **ASKED)
    assert "agent:kai waits for an answer.\nSee: hiboss agent status kai" in await told(daemon)
    assert left(daemon) == []
    assert await watch(daemon, "waiting")


# --- who is told ---------------------------------------------------------------------


@frozen()
async def test_an_agent_gets_mail_that_starts_a_turn_and_no_word_about_the_run(
    daemon: InProcessDaemon,
) -> None:
    await daemon.register("zoe")
    await working(daemon, "echo fine")
    assert not await watch(daemon, "finished", who="zoe")
    await daemon.send("agent:kai")
    await daemon.until(lambda: left(daemon) == [])
    (mail,) = (await daemon.ask("envelope.list", "zoe"))["envelopes"]
    assert (mail["from"], mail["text"]) == ("agent:system", "agent:kai has finished.")
    assert (mail["priority"], mail["status"], mail["auto"]) == ("normal", "pending", True)


@frozen()
async def test_several_are_told_each_once_and_the_same_wish_twice_is_one(daemon: InProcessDaemon) -> None:
    await daemon.ask("user.register", name="ann", profile=True)
    await daemon.register("kai")
    [number] = await daemon.send("agent:kai")
    for who in ("boss", "ann", "nex", "ann"):
        assert not await watch(daemon, "idle", who=who)
    everybody = (await daemon.ask("agent.notify.list"))["watches"]
    assert [one["watcher"] for one in everybody] == ["agent:nex", "user:ann", "user:boss"]
    assert [one["watcher"] for one in (await daemon.ask("agent.notify.list", "ann"))["watches"]] == [
        "user:ann"
    ]
    await daemon.ask("envelope.ack", "kai", ids=[number])
    assert [len(await told(daemon, who)) for who in ("boss", "ann", "nex")] == [1, 1, 1]


@frozen()
async def test_who_takes_it_back_is_not_told(daemon: InProcessDaemon) -> None:
    await daemon.register("kai")
    [number] = await daemon.send("agent:kai")
    for when in state_watches.STATES:
        await watch(daemon, when)
    assert (await daemon.ask("agent.notify.remove", name="kai", when="idle"))["removed"] == 1
    assert (await daemon.ask("agent.notify.remove", name="kai"))["removed"] == 3
    assert (await daemon.ask("agent.notify.remove", name="kai"))["removed"] == 0
    await daemon.ask("envelope.ack", "kai", ids=[number])
    assert await told(daemon) == []


@frozen()
async def test_nobody_is_told_about_oneself(daemon: InProcessDaemon) -> None:
    with pytest.raises(HibossError, match="about itself"):
        await daemon.ask("agent.notify", "nex", name="nex", when="idle")


@frozen()
async def test_a_watch_outlives_a_restart(daemon: InProcessDaemon) -> None:
    await daemon.register("kai")
    [number] = await daemon.send("agent:kai")
    await watch(daemon, "idle")
    await daemon.restart(hours=1)
    await daemon.ask("envelope.ack", "kai", ids=[number])
    assert len(await told(daemon)) == 1


# --- deleted -------------------------------------------------------------------------


@frozen()
async def test_who_watches_a_deleted_agent_is_told_that_it_is_gone(daemon: InProcessDaemon) -> None:
    await daemon.register("kai")
    await daemon.send("agent:kai")
    await watch(daemon, "idle")
    await watch(daemon, "finished", who="nex")
    await daemon.ask("agent.delete", name="kai")
    [text] = [one for one in await told(daemon) if "told when" in one]
    assert text == "agent:kai was deleted. You wanted to be told when it is idle."
    assert len(await told(daemon, "nex")) >= 1 and left(daemon) == []


@frozen()
async def test_watches_of_somebody_who_is_deleted_end(daemon: InProcessDaemon) -> None:
    await daemon.ask("user.register", name="ann", profile=True)
    await daemon.register("kai", "zoe")
    [number] = await daemon.send("agent:kai")
    await watch(daemon, "idle", who="ann")
    await watch(daemon, "idle", who="zoe")
    await daemon.ask("user.delete", name="ann")
    await daemon.ask("agent.delete", name="zoe")
    assert left(daemon) == []
    await daemon.ask("envelope.ack", "kai", ids=[number])


# --- beside the writes of others -----------------------------------------------------


@frozen(quiet=False)
async def test_a_defect_in_telling_costs_nobody_a_write_and_the_watch_stays(daemon: InProcessDaemon) -> None:
    await daemon.register("kai")
    [number] = await daemon.send("agent:kai")
    await watch(daemon, "idle")
    tell = state_watches._tell_due

    def breaks(tx: Any) -> None:
        tell(tx)
        raise RuntimeError("a defect")

    monkeypatch = pytest.MonkeyPatch()
    monkeypatch.setattr(state_watches, "_tell_due", breaks)
    await daemon.ask("envelope.ack", "kai", ids=[number])
    assert (await told(daemon), left(daemon)) == ([], [("idle",)])
    assert (await daemon.get(number))["status"] == "done"
    monkeypatch.undo()
    await asyncio.gather(*(daemon.ask("envelope.list", "kai") for _ in range(3)))
    [again] = await daemon.send("agent:kai")
    await daemon.ask("envelope.ack", "kai", ids=[again])
    assert len(await told(daemon)) == 1
