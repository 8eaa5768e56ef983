"""How long a call inside a run waits for the answer to an ask, whatever it wants."""

from __future__ import annotations

import asyncio

import pytest

from hiboss.agents import run_execution
from hiboss.api import asks
from tests.support.in_process_daemon import InProcessDaemon, frozen
from tests.support.python_agents import hire

HOLDS_ON = 'note(os.environ["HIBOSS_TOKEN"]); wait_for("finish"); print("NO_REPLY")'


def test_harnesses_kill_commands_after_a_minute() -> None:
    assert asks.RUN_SECONDS == 50.0


@frozen(at=None)
async def test_a_run_waits_no_longer_than_its_limit_and_others_do(daemon: InProcessDaemon) -> None:
    program = await hire(daemon, "worker", HOLDS_ON)
    await daemon.send("agent:worker")
    await daemon.until(lambda: program.notes())
    token = program.notes()[0]
    number = (await daemon.call("ask.create", token=token, question="Deploy?"))["ask"]["id"]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(asks, "RUN_SECONDS", 0.01)
        waited = await daemon.call("ask.wait", token=token, id=number, timeout="1h")
    assert (waited["timed_out"], waited["ask"]["state"]) == (True, "open")
    await daemon.ask("ask.answer", id=number, choice="yes")
    assert (await daemon.ask("ask.wait", id=number, timeout="1h"))["ask"]["answer"] == "yes"
    await daemon.call("ask.wait", token=token, id=number, received=True)
    program.path.with_name("finish").touch()
    await daemon.until(lambda: daemon.rows("SELECT 1 FROM run WHERE status = 'completed'"))


@frozen(at=None)
async def test_the_limits_of_a_run_stand_still_only_for_so_long_for_each_ask(daemon: InProcessDaemon) -> None:
    program = await hire(daemon, "worker", HOLDS_ON)
    await daemon.send("agent:worker")
    await daemon.until(lambda: program.notes())
    token = program.notes()[0]
    number = (await daemon.call("ask.create", token=token, question="Deploy?"))["ask"]["id"]
    [run] = daemon.rows("SELECT id FROM run")
    execution = daemon.daemon.wiring.runner.execution(run["id"])
    assert execution is not None
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(run_execution, "ASK_SECONDS", 0.1)
        waits = asyncio.create_task(daemon.call("ask.wait", token=token, id=number, timeout="40s"))
        await daemon.until(lambda: execution.silent_seconds is None)  # it stands still
        await daemon.until(lambda: execution.silent_seconds is not None)  # and counts again
        again = asyncio.create_task(daemon.call("ask.wait", token=token, id=number, timeout="40s"))
        await asyncio.sleep(0)
        await daemon.call("agent.self", token=token)
        assert execution.silent_seconds is not None and not waits.done()
    await daemon.ask("ask.answer", id=number, choice="yes")
    assert {(await one)["ask"]["answer"] for one in (waits, again)} == {"yes"}
    await daemon.call("ask.wait", token=token, id=number, received=True)
    program.path.with_name("finish").touch()
    await daemon.until(lambda: daemon.rows("SELECT 1 FROM run WHERE status = 'completed'"))
