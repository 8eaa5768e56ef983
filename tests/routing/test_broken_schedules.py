"""A stored schedule that cannot be used any more: it alone is disabled, and everything else is woken."""

from __future__ import annotations

from pathlib import Path

import pytest

from hiboss.testing.running_daemon import RunningDaemon, running_daemon
from tests.support.daemons import wait_until


def _is_shown_and_mended(daemon: RunningDaemon, broken: str) -> None:
    """It hides no other one, nor a change of the boss's zone, and can be set right."""
    nex, boss = daemon.token("nex"), daemon.token("boss")
    assert len(daemon.call("cron.list", token=nex)["schedules"]) == 2
    [failed] = daemon.call("cron.show", token=nex, id=broken)["slots"]
    assert failed["outcome"] == "failed"
    daemon.call("boss.set", token=boss, timezone="Asia/Tokyo")
    assert not daemon.call("cron.run", token=nex, id=broken)["fired"]
    mended = {"cron": "0 0 * * *", "timezone": "UTC", "to": "agent:nex", "text": "mended"}
    daemon.call("cron.set", token=nex, id=broken, **mended)
    assert daemon.call("cron.run", token=nex, id=broken)["fired"]


BROKEN = {
    "a zone the machine does not know": "timezone = 'Europe/Gone'",
    "no cron expression": "cron = 'every day'",
    "a draft that is no JSON": "draft = '{'",
    "a draft without a text": "draft = '{}'",
    "a draft that is a list": "draft = '[]'",
}


@pytest.mark.parametrize("how", BROKEN.values(), ids=BROKEN.keys())
def test_one_broken_schedule_stops_nothing_else(tmp_path: Path, how: str) -> None:
    with running_daemon(tmp_path) as daemon:
        nex, boss = daemon.token("nex"), daemon.token("boss")
        schedule = {"cron": "0 0 * * *", "timezone": "Europe/Kyiv", "to": "agent:nex"}
        broken = daemon.call("cron.create", token=nex, text="broken", **schedule)["id"]
        sound = daemon.call("cron.create", token=nex, text="sound", **schedule)["id"]
        daemon.stop()
        with daemon.database() as database:
            database.execute("UPDATE schedule SET next_at = created_at - 1000")
            database.execute(f"UPDATE schedule SET {how} WHERE id = ?", (int(broken[1:]),))
            database.commit()
        daemon.start()
        later = daemon.call("envelope.send", token=nex, to="agent:nex", text="later", deliver_at="+1s")[
            "ids"
        ][0]
        wait_until(lambda: daemon.call("envelope.get", token=boss, id=later)["envelope"]["seq"] is not None)
        texts = [one["text"] for one in daemon.call("envelope.list", token=nex, page_size=50)["envelopes"]]
        assert "sound" in texts and "broken" not in texts
        assert any(f"Schedule {broken} could not send and is disabled" in text for text in texts)
        with daemon.database() as database:
            rows = dict(database.execute("SELECT id, enabled FROM schedule").fetchall())
        assert rows == {int(broken[1:]): 0, int(sound[1:]): 1}
        _is_shown_and_mended(daemon, broken)
        daemon.check()
