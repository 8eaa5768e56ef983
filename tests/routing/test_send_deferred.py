"""Deferred mail: stored at once, and visible only to sender and boss until its time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

from hiboss.cli.daemon_process import call_once
from hiboss.core.paths import Home
from hiboss.testing.running_daemon import running_daemon
from tests.support.parties import Party, boss, stored


def test_deferred_mail_is_not_shown_to_its_recipient(two: tuple[Party, Party]) -> None:
    ada, bob = two
    sent = ada.send(bob, text="later", deliver_at="+2h")
    (number,) = sent["ids"]
    for params in ({}, {"status": "pending"}, {"thread": sent["thread"]}, {"from_": ada.address}):
        page = bob.call("envelope.list", count=True, **params)
        assert page["envelopes"] == [] and page["total"] == 0
    assert bob.list(box="outbox") == [] and bob.refusal("envelope.get", id=number) == "not_found"
    assert {
        bob.refusal(f"envelope.{method}", ids=[number])
        for method in ("read", "ack", "archive", "trash", "restore", "cancel")
    } == {"not_found"}
    assert bob.call("envelope.ack", all=True) == {"changed": 0}
    assert bob.refusal("envelope.ack", all=True, up_to=number) == "not_found"
    assert ada.get(number)["status"] == "pending"


def test_deferred_mail_is_shown_to_its_sender_with_its_time_and_no_sequence(two: tuple[Party, Party]) -> None:
    ada, bob = two
    sent = ada.send(bob, deliver_at="+2h")
    for found in (
        ada.list(box="outbox"),
        ada.list(box="outbox", status="pending"),
        [ada.get(sent["ids"][0])],
    ):
        (got,) = found
        assert got["id"] == sent["ids"][0] and got["seq"] is None
        assert (got["status"], got["waits"], got["deliver_at"]) == ("pending", "deferred", sent["deliver_at"])
    later = datetime.fromisoformat(sent["deliver_at"]) - datetime.fromisoformat(got["created_at"])
    assert timedelta(minutes=119) < later < timedelta(minutes=121)


def test_deferred_mail_is_shown_to_the_boss_who_looks_into_the_box(two: tuple[Party, Party]) -> None:
    ada, bob = two
    number = ada.tell(bob, deliver_at="+2h")
    chief = boss(ada.daemon)
    assert chief.ids(address=bob.address) == [number] == chief.ids(address=bob.address, status="pending")
    assert chief.ids(address=bob.address, status="done") == []
    assert chief.ids(address=ada.address, box="outbox") == [number] and chief.get(number)["seq"] is None


def test_cancelled_deferred_mail_is_never_shown_to_its_recipient(two: tuple[Party, Party]) -> None:
    ada, bob = two
    number = ada.tell(bob, deliver_at="+2h")
    assert ada.call("envelope.cancel", ids=[number])["changed"] == 1
    assert ada.call("envelope.cancel", ids=[number])["changed"] == 0
    got = ada.get(number)
    assert (got["status"], got["waits"], got["seq"]) == ("cancelled", None, None) and got["done_at"]
    assert bob.list() == [] == bob.list(status="cancelled")
    assert bob.refusal("envelope.get", id=number) == "not_found"
    assert (
        ada.ids(box="outbox", status="cancelled") == [number]
        and ada.ids(box="outbox", status="pending") == []
    )
    assert boss(ada.daemon).ids(address=bob.address, status="pending") == []


def test_the_boss_may_cancel_anybodys_deferred_mail(two: tuple[Party, Party]) -> None:
    ada, bob = two
    number = ada.tell(bob, deliver_at="+2h")
    assert boss(ada.daemon).call("envelope.cancel", ids=[number])["changed"] == 1
    assert ada.get(number)["status"] == "cancelled"


PAST = ["-15m", "+0s", "-1Y", "2001-01-01T00:00:00Z", "1969-12-31", "0001-01-01T12:00Z"]
NO_TIME = [
    "",
    "soon",
    "+2H",
    "+2",
    "2h",
    "+",
    "+1h2h",
    "2027-13-01",
    "2027-02-30",
    "25:00",
    "+1.5h",
    "+ 2h",
    "+9999Y",
]


def test_the_past_means_now_and_what_is_no_time_is_refused(two: tuple[Party, Party]) -> None:
    ada, bob = two
    for seq, past in enumerate(PAST, 1):
        assert ada.send(bob, deliver_at=past)["deliver_at"] is None, past
        got = bob.list()[0]
        assert (got["seq"], got["deliver_at"], got["waits"]) == (seq, None, None), past
    before = stored(ada.daemon)
    for wrong in NO_TIME:
        code = ada.refusal("envelope.send", to=bob.address, text="x", deliver_at=wrong)
        assert (code, stored(ada.daemon)) == ("bad_time", before), wrong


def test_nothing_can_be_deferred_for_more_than_100_years(two: tuple[Party, Party]) -> None:
    ada, bob = two
    assert ada.send(bob, deliver_at="+100Y")["deliver_at"]
    for far in ("+100Y1D", "+101Y", "9999-12-31T23:59:59Z"):
        assert ada.refusal("envelope.send", to=bob.address, text="x", deliver_at=far) == "too_far"


def test_the_same_moment_can_be_written_in_many_ways(two: tuple[Party, Party]) -> None:
    ada, bob = two
    year = datetime.now(UTC).year + 1
    ways = [
        f"{year}-01-27T16:30:00+08:00",
        f"{year}-01-27T08:30:00Z",
        f"{year}-01-27T08:30",
        f"{year}-01-27 08:30:00.000",
        f"  {year}-01-27 08:30 ",
    ]
    assert {ada.send(bob, deliver_at=way)["deliver_at"] for way in ways} == {f"{year}-01-27T08:30:00.000Z"}


def test_a_time_without_a_zone_is_in_the_bosss_zone(tmp_path: Path) -> None:
    home = Home(str(tmp_path / "home"))
    call_once(home, "setup.execute", {"timezone": "Asia/Shanghai", "agent_name": "nex"})
    with running_daemon(tmp_path, set_up=False) as daemon:
        nex = Party(daemon, "agent:nex", daemon.token("nex"))
        year = datetime.now(UTC).year + 1
        sent = nex.send(nex, deliver_at=f"{year}-01-27 16:30")
        assert sent["deliver_at"] == f"{year}-01-27T08:30:00.000Z" and sent["timezone"] == "Asia/Shanghai"
        assert nex.send(nex, deliver_at=f"{year}-01-27T16:30Z")["deliver_at"] == f"{year}-01-27T16:30:00.000Z"
        year_after = datetime.now(ZoneInfo("Asia/Shanghai")) + timedelta(days=1)
        in_a_day = datetime.fromisoformat(nex.send(nex, deliver_at="+1D")["deliver_at"])
        assert abs(in_a_day - year_after) < timedelta(minutes=2)
