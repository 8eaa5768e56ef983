"""The heartbeat survives whatever its tasks do."""

from __future__ import annotations

from tests.support.in_process_daemon import InProcessDaemon, frozen


@frozen(heartbeat_seconds=1, quiet=False)
async def test_an_exception_that_is_no_error_of_hiboss_does_not_end_the_heartbeat(
    daemon: InProcessDaemon,
) -> None:
    beats = 0

    async def beat() -> None:
        nonlocal beats
        beats += 1
        if beats == 1:
            raise RuntimeError("a defect")

    daemon.scheduler._on_heartbeat = beat
    await daemon.until(lambda: beats == 2)
    said = "\n".join(daemon.warnings())
    assert "A task of the heartbeat failed" in said and "Traceback" in said
