"""A defect of another part of the daemon, told that a run begins or ends, leaves no run running."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.support.in_process_daemon import InProcessDaemon, frozen


def broken(*given: Any) -> None:
    raise NameError("a defect of ours")


async def answered(daemon: InProcessDaemon, text: str) -> Callable[[], bool]:
    """Send nex a message; return whether all its runs are over and this one was answered."""
    await daemon.send("agent:nex", who="boss", text=text)

    def over() -> bool:
        running = daemon.rows("SELECT 1 FROM run WHERE status = 'running'")
        said = daemon.rows("SELECT 1 FROM message WHERE text = ?", f"You said: {text}")
        return len(said) == 1 and not running

    return over


@frozen(quiet=False)
async def test_a_run_is_settled_once_whatever_the_parts_do_that_are_told(daemon: InProcessDaemon) -> None:
    await daemon.ask("agent.set", name="nex", provider="demo")
    runner = daemon.daemon.wiring.runner
    for hook in ("on_begun", "on_ended", "on_token_ended", "accepted", "nudge"):
        setattr(runner, hook, broken)
        await daemon.until(await answered(daemon, f"apples {hook}"))
    assert {row["status"] for row in daemon.rows("SELECT status FROM run")} == {"completed"}
    assert len([line for line in daemon.warnings() if "What follows r" in line]) >= 5
    daemon.check()


@frozen(quiet=False)
async def test_a_defect_in_running_fails_the_turn_and_the_next_one_is_answered(
    daemon: InProcessDaemon,
) -> None:
    runner = daemon.daemon.wiring.runner
    begins, runner._execute = runner._execute, broken  # type: ignore[method-assign,assignment]
    await daemon.ask("agent.set", name="nex", provider="demo")
    await daemon.send("agent:nex", who="boss", text="lost?")
    await daemon.until(lambda: bool(daemon.rows("SELECT 1 FROM run WHERE error_kind = 'broke_off'")))
    assert not daemon.rows("SELECT 1 FROM run WHERE status = 'running'")
    runner._execute = begins  # type: ignore[method-assign]
    await daemon.until(await answered(daemon, "the next"))
    await daemon.move(hours=1)
    await daemon.until(lambda: bool(daemon.rows("SELECT 1 FROM message WHERE text = 'You said: lost?'")))
    daemon.check()
