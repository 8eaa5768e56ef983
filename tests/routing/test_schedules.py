"""Schedules, operation by operation: create, show, change, run; errors; owners; what ends them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hiboss.testing.running_daemon import Answered, RunningDaemon
from tests.support.cli import Shell
from tests.support.parties import Party, agent, at_once, boss
from tests.support.raising import raised
from tests.support.sweeps import sweep
from tests.support.waits import wait_until

Schedule = dict[str, Any]
NEW_YEAR = "0 0 1 1 *"  # so that none fires during a test


def create(who: Party, to: Party | str, **params: Any) -> Schedule:
    """Create a schedule that is not due during the tests, unless told otherwise."""
    if not {"cron", "every", "at"} & params.keys():
        params["cron"] = NEW_YEAR
    params = {"to": to if isinstance(to, str) else to.address, "text": "tick"} | params
    found: Schedule = who.call("cron.create", **params)
    return found


def show(who: Party, number: str) -> Schedule:
    found: Schedule = who.call("cron.show", id=number)
    return found


def kept(daemon: RunningDaemon) -> tuple[int, int, int]:
    with daemon.database() as database:
        tables = ("schedule", "schedule_slot", "message")
        one, two, three = (
            int(database.execute(f"SELECT count(*) FROM {table}").fetchone()[0]) for table in tables
        )
    return one, two, three


# --- create and show -----------------------------------------------------------------


def test_one_is_made_and_shown_as_it_was_meant(two: tuple[Party, Party]) -> None:
    ada, bob = two
    made = create(
        ada,
        bob,
        cron="0 9 * * MON-FRI",
        timezone="Europe/Berlin",
        subject="daily",
        text="stand-up",
        priority="high",
        catch_up="all",
        overlap="queue",
        name="morning",
    )
    assert made["id"].startswith("s") and made["next_at"].endswith("Z")
    expected = {
        "owner": ada.address,
        "from": ada.address,
        "to": [bob.address],
        "cron": "0 9 * * MON-FRI",
        "every_seconds": None,
        "at": None,
        "timezone": "Europe/Berlin",
        "subject": "daily",
        "text": "stand-up",
        "priority": "high",
        "catch_up": "all",
        "overlap": "queue",
        "name": "morning",
        "enabled": True,
    }
    assert {key: made[key] for key in expected} == expected
    assert show(ada, made["id"]) == {**made, "slots": []} and ada.call("cron.list")["schedules"] == [made]


def test_what_is_not_said_is_once_skip_and_the_bosss_zone(two: tuple[Party, Party]) -> None:
    made = create(*two)
    assert (made["catch_up"], made["overlap"], made["timezone"]) == ("once", "skip", "UTC")
    assert (made["name"], made["subject"], made["priority"]) == (None, None, "normal")


def test_it_sends_by_itself_when_its_time_has_come(two: tuple[Party, Party]) -> None:
    ada, bob = two
    every = create(ada, bob, every="1s", overlap="queue", text="every")
    once = create(ada, bob, at="+1s", text="once")
    wait_until(lambda: {"every", "once"} <= {one["text"] for one in bob.list()})
    ada.call("cron.delete", id=every["id"])
    wait_until(lambda: not show(ada, once["id"])["enabled"])
    (slot,) = show(ada, once["id"])["slots"]
    assert (slot["outcome"], slot["slot"]) == ("fired", once["at"])
    (sent,) = [one for one in bob.list() if one["text"] == "once"]
    assert (sent["from"], sent["message"]) == (ada.address, slot["message"])


def test_run_sends_now_and_the_box_has_all_of_it(two: tuple[Party, Party], tmp_path: Path) -> None:
    ada, bob = two
    (tmp_path / "plan.txt").write_text("as it was")
    made = create(ada, bob, subject="s", priority="high", attachments=[str(tmp_path / "plan.txt")])
    assert made["attachments"] == ["plan.txt"]
    (tmp_path / "plan.txt").unlink()  # it was copied when the schedule was made
    ran = ada.call("cron.run", id=made["id"])
    (number,) = ran["ids"]
    assert ran == {"id": made["id"], "fired": True, "ids": [number], "why": None}
    envelope = bob.get(number)
    assert (envelope["from"], envelope["text"], envelope["subject"]) == (ada.address, "tick", "s")
    assert envelope["priority"] == "high"
    (file,) = envelope["attachments"]
    assert Path(file["path"]).read_text() == "as it was"
    (slot,) = show(ada, made["id"])["slots"]
    assert (slot["outcome"], slot["message"]) == ("fired", envelope["message"])
    assert show(ada, made["id"])["next_at"] == made["next_at"]


def test_its_messages_are_those_of_its_owner_and_use_no_key(two: tuple[Party, Party]) -> None:
    ada, bob = two
    made = create(ada, bob)
    assert len({number for (number,) in [ada.call("cron.run", id=made["id"])["ids"] for _ in range(3)]}) == 3
    with ada.daemon.database() as database:
        rows = database.execute(
            """
            SELECT a.name, k.key FROM schedule_slot s JOIN message m ON m.id = s.message
            JOIN address a ON a.id = m.caller LEFT JOIN sent_key k ON k.message = m.id WHERE s.schedule = ?
            """,
            (int(made["id"][1:]),),
        ).fetchall()
    assert [tuple(row) for row in rows] == [(ada.name, None)] * 3


def test_only_what_is_given_is_changed(two: tuple[Party, Party], tmp_path: Path) -> None:
    ada, bob = two
    (tmp_path / "a").write_text("a")
    made = create(ada, bob, subject="s", name="n", attachments=[str(tmp_path / "a")])
    changed = ada.call("cron.set", id=made["id"], text="new")
    assert changed == {**made, "text": "new"}
    changed = ada.call("cron.set", id=made["id"], every="2h", overlap="queue", to=[ada.address])
    assert (changed["cron"], changed["every_seconds"], changed["overlap"]) == (None, 7200, "queue")
    assert (changed["to"], changed["text"], changed["attachments"]) == ([ada.address], "new", ["a"])
    changed = ada.call("cron.set", id=made["id"], cron="@daily", timezone="Asia/Tokyo", attachments=[])
    assert (changed["cron"], changed["every_seconds"], changed["attachments"]) == ("@daily", None, [])
    assert changed["next_at"].endswith("T15:00:00.000Z")
    changed = ada.call("cron.set", id=made["id"], timezone="", name="")
    assert (changed["timezone"], changed["name"]) == ("UTC", None)


def test_two_who_change_one_schedule_at_once_lose_nothing(two: tuple[Party, Party]) -> None:
    ada, bob = two
    made = create(ada, bob)["id"]
    for number in range(10):
        text, subject = f"text {number}", f"subject {number}"
        at_once(
            [
                lambda: ada.call("cron.set", id=made, text=text),  # noqa: B023 - called here
                lambda: boss(ada.daemon).call("cron.set", id=made, subject=subject),  # noqa: B023
            ]
        )
        found = show(ada, made)
        assert (found["text"], found["subject"]) == (text, subject)


def test_one_is_disabled_enabled_and_deleted(two: tuple[Party, Party]) -> None:
    ada, bob = two
    made = create(ada, bob)
    off = ada.call("cron.disable", id=made["id"])
    assert (off["enabled"], off["next_at"]) == (False, None)
    assert ada.call("cron.run", id=made["id"])["fired"]  # a person can still run it
    assert ada.call("cron.enable", id=made["id"]) == made
    ada.call("cron.delete", id=made["id"])
    assert ada.call("cron.list")["schedules"] == []
    assert {
        ada.refusal(f"cron.{method}", id=made["id"])
        for method in ("show", "run", "enable", "disable", "delete")
    } == {"not_found"}
    assert len(bob.list()) == 1  # what it has sent stays


def test_explain_says_when_it_would_be(daemon: RunningDaemon) -> None:
    answer = daemon.call("cron.explain", cron="30 2 * * *", timezone="Europe/Berlin", count=3)
    assert len(answer["next"]) == len(answer["local"]) == 3
    assert all("T02:30:00+0" in one or "T03:00:00+02:00" in one for one in answer["local"])
    assert len(daemon.call("cron.explain", cron="@hourly")["next"]) == 5


# --- owners --------------------------------------------------------------------------


def test_a_foreign_schedule_is_not_there(two: tuple[Party, Party]) -> None:
    ada, bob = two
    made = create(ada, bob)
    before = kept(ada.daemon)
    assert bob.call("cron.list")["schedules"] == []
    assert {
        bob.refusal(f"cron.{method}", id=made["id"])
        for method in ("show", "run", "enable", "disable", "delete")
    } == {"not_found"}
    assert bob.refusal("cron.set", id=made["id"], text="mine") == "not_found"
    assert kept(ada.daemon) == before and show(ada, made["id"])["text"] == "tick"


def test_the_boss_sees_and_changes_all_and_says_in_whose_name(two: tuple[Party, Party]) -> None:
    ada, bob = two
    chief = boss(ada.daemon)
    made = create(ada, bob)
    assert made in chief.call("cron.list")["schedules"]
    assert chief.call("cron.set", id=made["id"], text="better")["owner"] == ada.address
    assert create(chief, bob)["from"] == "user:boss"
    own = create(chief, bob, from_=ada.address)
    assert (own["owner"], own["from"]) == ("user:boss", ada.address)
    assert ada.refusal("cron.show", id=own["id"]) == "not_found"
    (number,) = chief.call("cron.run", id=own["id"])["ids"]
    assert bob.get(number)["from"] == ada.address
    said = create(chief, bob, from_=ada.address, from_boss=True, from_name="Ada")
    (number,) = chief.call("cron.run", id=said["id"])["ids"]
    assert bob.get(number)["from_boss"]


def test_who_may_not_send_may_not_schedule(daemon: RunningDaemon) -> None:
    quiet = agent(daemon)
    boss(daemon).call("agent.permission.set", name=quiet.name, level="restricted")
    assert quiet.refusal("cron.create", cron=NEW_YEAR, to=quiet.address, text="x") == "forbidden"
    assert quiet.call("cron.list") == {"schedules": [], "next": None}
    error = raised(Answered, daemon.call, "cron.create", cron=NEW_YEAR, to=quiet.address, text="x")
    assert error.stable_code == "no_token"


# --- errors --------------------------------------------------------------------------

REFUSED = [
    ({}, "invalid_params", "--cron"),
    ({"cron": NEW_YEAR, "every": "1h"}, "invalid_params", "one way"),
    ({"cron": NEW_YEAR, "every": "1h", "at": "+1h"}, "invalid_params", "one way"),
    ({"cron": "0 0 9 * * *"}, "bad_cron", "6 fields instead of 5"),
    ({"cron": "@reboot"}, "bad_cron", "@reboot"),
    ({"cron": "0 0 30 2 *"}, "bad_cron", "day-of-month"),
    ({"cron": "61 * * * *"}, "bad_cron", "minute"),
    ({"cron": ""}, "bad_cron", "0 fields"),
    ({"cron": "0" * 1_001}, "bad_cron", "longer than 1000 bytes"),
    ({"cron": "0 " * 1_000}, "bad_cron", "longer than 1000 bytes"),
    ({"cron": "ä" * 501}, "bad_cron", "longer than 1000 bytes"),
    ({"every": "0s"}, "bad_duration", "0s"),
    ({"every": "0.5s"}, "bad_duration", "the shortest is 1s"),
    ({"every": "-5s"}, "bad_duration", "-5s"),
    ({"every": "9000h"}, "bad_duration", "at most"),
    ({"every": "soon"}, "bad_duration", "soon"),
    ({"at": "tomorrow"}, "bad_time", "tomorrow"),
    ({"at": "+200Y"}, "too_far", "100"),
    ({"cron": NEW_YEAR, "timezone": "Europe/Berlim"}, "bad_timezone", "Europe/Berlin"),
    ({"cron": NEW_YEAR, "catch_up": "twice"}, "invalid_params", "catch_up"),
    ({"cron": NEW_YEAR, "overlap": "both"}, "invalid_params", "overlap"),
    ({"cron": NEW_YEAR, "priority": "urgent"}, "invalid_params", "priority"),
    ({"cron": NEW_YEAR, "name": "x" * 5_000}, "too_large", "name"),
    ({"cron": NEW_YEAR, "to": "agent:nobody"}, "unknown_recipient", "agent:nobody"),
    ({"cron": NEW_YEAR, "to": "nowhere"}, "unknown_recipient", "nowhere"),
    ({"cron": NEW_YEAR, "to": "no:where"}, "bad_address", "no:where"),
    ({"cron": NEW_YEAR, "to": []}, "no_recipient", ""),
    ({"cron": NEW_YEAR, "to": "channel:folder:none"}, "not_bound", "channel:folder:none"),
    ({"cron": NEW_YEAR, "text": ""}, "empty_message", ""),
    ({"cron": NEW_YEAR, "attachments": ["/nowhere/at/all"]}, "attachment_missing", "/nowhere/at/all"),
]


@pytest.fixture(scope="module")
def nex(daemon: RunningDaemon) -> Party:
    return agent(daemon)


def test_what_cannot_be_is_refused_clearly_and_nothing_is_kept(nex: Party) -> None:
    made, ways = create(nex, nex), {"cron", "every", "at"}
    before = kept(nex.daemon)
    with sweep() as row:
        for wrong, code, said in REFUSED:
            with row(json.dumps(wrong)[:60]):
                error = raised(
                    Answered, nex.call, "cron.create", **{"to": nex.address, "text": "tick"} | wrong
                )
                assert (error.stable_code, said in error.message) == (code, True)
                if wrong and len(wrong.keys() & ways) == 1:
                    assert nex.refusal("cron.set", id=made["id"], **wrong) == code
                assert kept(nex.daemon) == before and show(nex, made["id"]) == {**made, "slots": []}


def test_explain_and_ids_are_refused_as_clearly(nex: Party) -> None:
    for wrong, code in (
        ({"cron": "* * * *"}, "bad_cron"),
        ({"cron": ",".join("1" * 1_000) + " * * * *"}, "bad_cron"),
        ({"cron": NEW_YEAR, "timezone": "Mars/Base"}, "bad_timezone"),
        ({"cron": NEW_YEAR, "count": 0}, "invalid_params"),
        ({"cron": NEW_YEAR, "count": 101}, "invalid_params"),
        ({}, "invalid_params"),
    ):
        assert nex.refusal("cron.explain", **wrong) == code, wrong
    for number, code in (("s999999", "not_found"), ("e1", "bad_id"), ("x", "bad_id")):
        for method in ("show", "run", "enable", "disable", "delete"):
            assert nex.refusal(f"cron.{method}", id=number) == code
        assert nex.refusal("cron.set", id=number, text="x") == code


# --- what ends them ------------------------------------------------------------------


def test_when_the_one_it_speaks_for_is_gone_the_boss_is_told(two: tuple[Party, Party]) -> None:
    ada, bob = two
    chief = boss(ada.daemon)
    made = create(chief, bob, from_=ada.address)
    chief.call("agent.delete", name=ada.name)
    ran = chief.call("cron.run", id=made["id"])
    assert (ran["fired"], ran["ids"]) == (False, []) and ada.address in ran["why"]
    assert not show(chief, made["id"])["enabled"] and bob.list() == []
    (notice,) = [one for one in chief.list(address="user:boss") if made["id"] in one["text"]]
    assert notice["from"] == "agent:system"


def test_when_its_channel_is_unbound_it_is_disabled_and_the_owner_told(
    two: tuple[Party, Party], tmp_path: Path
) -> None:
    ada, _ = two
    chief = boss(ada.daemon)
    bound = chief.call(
        "agent.bind", name=ada.name, adapter_type="folder", settings={"path": str(tmp_path / "tray")}
    )
    made = create(ada, bound["address"])
    (number,) = ada.call("cron.run", id=made["id"])["ids"]
    wait_until(lambda: ada.get(number)["status"] == "done")
    chief.call("agent.unbind", name=ada.name, adapter_type="folder")
    assert not ada.call("cron.run", id=made["id"])["fired"]
    found = show(ada, made["id"])
    assert not found["enabled"] and found["slots"][0]["outcome"] == "failed"
    (notice,) = ada.list()
    assert made["id"] in notice["text"]


# --- on the command line -------------------------------------------------------------


def test_every_command_works_by_hand(daemon: RunningDaemon, tmp_path: Path) -> None:
    daemon.register("cli")
    shell = Shell(daemon.home.path)
    (tmp_path / "a.txt").write_text("a")
    made = shell(
        *("cron", "create", "--as", "cli", "--cron", "@yearly", "--to", "agent:cli", "--text", "-"),
        *("--attachment", "a.txt", "--subject", "s", "--priority", "low", "--timezone", "Asia/Tokyo"),
        *("--catch-up", "all", "--overlap", "queue", "--name", "new year"),
        stdin="happy",
        cwd=tmp_path,
    )
    number = made.record["schedule-id"]
    assert made.record["next-time"].endswith("-01-01T00:00:00+09:00")
    assert shell("cron", "list", "--as", "cli").record["schedule-id"] == number
    changed = shell("cron", "set", "--as", "cli", "--id", number, "--every", "2h", "--text", "new\nlines")
    assert changed.record["schedule-id"] == number
    assert shell("cron", "disable", "--as", "cli", "--id", number).record["enabled"] == "false"
    assert shell("cron", "enable", "--as", "cli", "--id", number).record["enabled"] == "true"
    ran = shell("cron", "run", "--as", "cli", "--id", number)
    assert (ran.rc, ran.record["sent"], ran.record["id"][0]) == (0, "true", "e")
    shown = shell("cron", "show", "--as", "cli", "--id", number).stdout
    assert "\ntext:\n> new\n> lines\n\nslot: " in shown
    facts, slot = [
        dict(line.split(": ", 1) for line in block.splitlines() if ": " in line)
        for block in shown.split("\n\n")
    ]
    expected = {"every": "7200s", "name": "new year", "attachments": "a.txt"}
    assert {key: facts[key] for key in expected} == expected
    assert slot["outcome"] == "sent" and slot["slot"].endswith("+09:00")
    as_json = shell("cron", "show", "--as", "cli", "--id", number, "--json").json
    assert as_json["id"] == number and as_json["slots"][0]["outcome"] == "fired"
    assert shell("cron", "delete", "--as", "cli", "--id", number).record["deleted"] == "true"
    assert shell("cron", "list", "--as", "cli").stdout == "no-schedules: true\n"
    told = shell("cron", "explain", "--cron", "0 9 * * 7", "--timezone", "Asia/Tokyo", "--count", "2")
    assert [*told.record] == ["cron", "timezone", "next-time-1", "next-time-2"]
    assert told.record["next-time-1"].endswith("T09:00:00+09:00")


def test_a_run_that_sends_nothing_says_why_and_fails(daemon: RunningDaemon) -> None:
    ada, bob = agent(daemon), agent(daemon)
    number = create(ada, bob)["id"]
    boss(daemon).call("agent.delete", name=bob.name)
    ran = Shell(daemon.home.path)("cron", "run", number)
    assert (ran.rc, ran.record["sent"]) == (1, "false") and bob.address in ran.record["why"]
