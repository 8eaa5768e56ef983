"""What is pending lies where somebody looks, whoever put it aside before; and a person's mail can wait too."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hiboss.testing.running_daemon import RunningDaemon
from tests.support.in_process_daemon import InProcessDaemon, frozen
from tests.support.parties import boss
from tests.support.scripted_channels import Place, daemon_with_channels, envelope_error, lane_error


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDaemon]:
    with daemon_with_channels(tmp_path_factory.mktemp("d")) as running:
        yield running


@pytest.mark.parametrize("box", ["trash", "archive"])
def test_retry_puts_it_back_into_the_inbox_so_that_unbinding_finds_it(
    daemon: RunningDaemon, tmp_path: Path, box: str
) -> None:
    place = Place(tmp_path).bound(daemon)
    place.script(envelope_error(), lane_error())
    number = place.send("to be retried")
    place.wait_for_status(number, "failed")
    boss(daemon).call(f"envelope.{box}", ids=[number], address=place.address)
    boss(daemon).call("envelope.retry", ids=[number])
    found = boss(daemon).get(number)
    assert (found["box"], found["status"]) == ("inbox", "pending")
    daemon.check()
    place.unbind()
    assert boss(daemon).get(number)["status"] == "failed"
    daemon.check()


@frozen()
async def test_what_a_person_has_snoozed_waits_and_arrives_again_at_its_time(daemon: InProcessDaemon) -> None:
    (number,) = await daemon.send("user:boss", text="later")
    await daemon.send("user:boss", text="meanwhile")
    before = daemon.arrived()
    await daemon.ask("envelope.snooze", ids=[number], until="+1h")
    daemon.check()
    await daemon.move(minutes=59)
    assert daemon.arrived() == before
    await daemon.move(minutes=1)
    assert daemon.arrived() == [*before[1:], number]
    (row,) = daemon.rows(
        "SELECT status, waits, wake_at, snoozed_until FROM envelope WHERE id = ?", number[1:]
    )
    assert tuple(row) == (1, None, None, None)
    await daemon.restart(days=1)
    assert daemon.arrived() == [*before[1:], number]
