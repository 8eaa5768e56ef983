"""A stored schedule that cannot be used any more: it alone is disabled, and everything else is woken."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hiboss.testing.running_daemon import RunningDaemon, running_daemon
from tests.support.waits import wait_until

BROKEN = {
    "a zone the machine does not know": "timezone = 'Europe/Gone'",
    "no cron expression": "cron = 'every day'",
    "a draft that is no JSON": "draft = '{'",
    "a draft without a text": "draft = '{}'",
    "a draft that is a list": "draft = '[]'",
}


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[RunningDaemon, dict[str, str], str]]:
    """A daemon that has started with broken schedules and a sound one; the ids of each."""
    with running_daemon(tmp_path_factory.mktemp("d")) as daemon:
        nex, boss = daemon.token("nex"), daemon.token("boss")
        schedule = {"cron": "0 0 * * *", "timezone": "Europe/Kyiv", "to": "agent:nex", "text": "broken"}
        broken = {how: daemon.call("cron.create", token=nex, **schedule)["id"] for how in BROKEN}
        sound = daemon.call("cron.create", token=nex, **{**schedule, "text": "sound"})["id"]
        daemon.stop()
        with daemon.database() as database:
            database.execute("UPDATE schedule SET next_at = created_at - 1000")
            for how, number in broken.items():
                database.execute(f"UPDATE schedule SET {BROKEN[how]} WHERE id = ?", (int(number[1:]),))
            database.commit()
        daemon.start()
        [later] = daemon.call("envelope.send", token=nex, to="agent:nex", text="x", deliver_at="+1s")["ids"]
        wait_until(lambda: daemon.call("envelope.get", token=boss, id=later)["envelope"]["seq"] is not None)
        daemon.call("boss.set", token=boss, timezone="Asia/Tokyo")  # which all schedules follow
        yield daemon, broken, sound
        daemon.check()


def texts(daemon: RunningDaemon) -> list[str]:
    found = daemon.call("envelope.list", token=daemon.token("nex"), page_size=50)["envelopes"]
    return [one["text"] for one in found]


def test_broken_schedules_stop_no_sound_one(told: tuple[RunningDaemon, dict[str, str], str]) -> None:
    daemon, broken, sound = told
    assert texts(daemon).count("sound") == 1 and "broken" not in texts(daemon)
    shown = daemon.call("cron.list", token=daemon.token("nex"))["schedules"]
    assert {one["id"] for one in shown} == {*broken.values(), sound}
    assert [one["enabled"] for one in shown if one["id"] == sound] == [True]


@pytest.mark.parametrize("how", BROKEN)
def test_a_broken_schedule_is_disabled_told_of_and_can_be_set_right(
    told: tuple[RunningDaemon, dict[str, str], str], how: str
) -> None:
    daemon, broken, _ = told
    nex, number = daemon.token("nex"), broken[how]
    assert any(f"Schedule {number} could not send and is disabled" in text for text in texts(daemon))
    assert [one["outcome"] for one in daemon.call("cron.show", token=nex, id=number)["slots"]] == ["failed"]
    [shown] = [one for one in daemon.call("cron.list", token=nex)["schedules"] if one["id"] == number]
    assert shown["enabled"] is False
    assert not daemon.call("cron.run", token=nex, id=number)["fired"]
    mended = {"cron": "0 0 * * *", "timezone": "UTC", "to": "agent:nex", "text": f"mended {number}"}
    daemon.call("cron.set", token=nex, id=number, **mended)
    assert daemon.call("cron.run", token=nex, id=number)["fired"]
    wait_until(lambda: f"mended {number}" in texts(daemon))
