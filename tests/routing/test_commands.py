"""Commands of the boss in a chat act at once; all others are ordinary messages."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hiboss.core.crashpoint import COMMANDED, TAKEN
from hiboss.testing.running_daemon import RunningDaemon
from tests.channels.bound_folder import Folder
from tests.channels.stored_updates import outcomes, received, updates
from tests.support.parties import Party, boss
from tests.support.phones import Phone, forwards
from tests.support.python_agents import PythonAgent, Team
from tests.support.scripted_channels import SCRIPTED, daemon_with_channels, notices
from tests.support.shell_agents import limits
from tests.support.waits import wait_until

_names = (f"worker-{number}" for number in itertools.count(1))
STOP = {"kind": "command", "act": True, "command": "stop"}


def busy(daemon: RunningDaemon, directory: Path) -> PythonAgent:
    """Return an agent that works on each turn until the test lets it go."""
    name = next(_names)
    return Team(daemon, directory).hire(f'wait_for("{name}.go"); print("done")', name=name)


@pytest.fixture
def phone(daemon: RunningDaemon, tmp_path: Path) -> Iterator[Phone]:
    """Return a chat of the boss, whose agent is busy until the end of the test."""
    place = Phone(tmp_path).bound(daemon, busy(daemon, tmp_path))
    yield place.reached()
    (tmp_path / f"{place.owner.name}.go").touch()
    boss(daemon).call("boss.set", reach="", forward="all")


def running(worker: Party) -> dict[str, Any]:
    """Wait until an agent works; return its run."""
    wait_until(lambda: worker.call("run.list", status="running")["runs"])
    return dict(worker.call("run.list", status="running")["runs"][0])


def status(chief: Party, run: dict[str, Any]) -> str:
    return str(chief.call("run.get", id=run["id"])["run"]["status"])


def answers(chief: Party, *texts: str) -> list[dict[str, Any]]:
    return [one for one in notices(chief) if one["text"] in texts]


def test_stop_ends_what_works_for_the_chat_while_a_slow_file_of_it_is_still_being_fetched(
    phone: Phone, chief: Party, tmp_path: Path
) -> None:
    phone.put_in_inbox("u1", text="begin", message="m1")
    run = running(phone.owner)
    slow = {"name": "a.txt", "content": "x", "gate": str(tmp_path / "gate")}
    phone.put_in_inbox("u2", text="with a slow file", downloads=[slow])
    wait_until(lambda: len(updates(phone)) == 2)
    phone.comes_in("u3", **STOP, author={"name": "Ada"})
    told = f"Stopped {run['id']} of {phone.owner.address}."
    phone.post_of(told)
    wait_until(lambda: status(chief, run) == "cancelled")
    assert chief.call("run.get", id=run["id"])["run"]["error"] == (
        f"the boss cancelled it: /stop in {phone.address}"
    )
    assert outcomes(phone) == {"u1": "accepted", "u2": None, "u3": "command"}
    assert json.loads(updates(phone)[2]["raw"]) == {"command": "stop", "arguments": ""}
    assert phone.texts() == [f"system:\n{told}"]
    (answer,) = answers(chief, told)
    assert [one["to"] for one in forwards(chief, answer["id"])] == [phone.address]
    assert [one["text"] for one in received(phone) if one["type"] != "event"] == ["begin"]
    (tmp_path / "gate").touch()


def test_stop_is_answered_in_its_chat_also_if_nothing_runs_and_nothing_else_is_posted_there(
    phone: Phone, chief: Party
) -> None:
    phone.reached(forward="off")
    phone.comes_in("u1", kind="command", act=True, command="Stop", arguments="now")
    phone.wait_for("system:\nNothing runs here.")
    assert outcomes(phone) == {"u1": "command"} and received(phone) == []


def test_stop_cancels_what_waits_in_a_lane_whose_run_has_ended_in_its_pause(
    phone: Phone, chief: Party, daemon: RunningDaemon
) -> None:
    with limits(daemon, paused_seconds=0.1):
        phone.put_in_inbox("u1", text="begin", message="m1")
        run = running(phone.owner)
        chief.call("run.pause", id=run["id"])
        wait_until(lambda: status(chief, run) == "interrupted")
    phone.comes_in("u2", **STOP)
    phone.post_of(f"Stopped {run['id']} of {phone.owner.address}.")
    (mail,) = [one for one in received(phone) if one["type"] != "event"]
    assert chief.call("envelope.get", id=mail["id"])["envelope"]["status"] == "cancelled"
    assert not [one for one in chief.call("lane.list")["lanes"] if one["state"] == "paused"]


def test_stop_leaves_alone_what_the_agent_does_for_others(
    phone: Phone, chief: Party, daemon: RunningDaemon
) -> None:
    daemon.call("envelope.send", token=daemon.token("nex"), to=phone.owner.address, text="for me")
    run = running(phone.owner)
    phone.comes_in("u1", **STOP)
    phone.post_of("Nothing runs here.")
    assert status(chief, run) == "running"
    chief.call("run.cancel", id=run["id"])


def test_stop_of_the_boss_in_a_group_ends_what_works_for_the_group_and_that_of_a_stranger_is_a_message(
    phone: Phone, chief: Party
) -> None:
    group = {"place": "g1", "group": "ops"}
    phone.put_in_inbox("u1", text="begin", **group, author={"id": "7", "name": "Bob"})
    run = running(phone.owner)
    phone.comes_in("u2", **STOP, **group, arguments="it", author={"id": "7", "name": "Bob"})
    wait_until(lambda: outcomes(phone).get("u2") == "accepted")
    message = received(phone)[1]
    assert (message["text"], message["channel"]["command"]) == ("/stop it", "stop")
    assert status(chief, run) == "running"
    phone.comes_in("u3", **STOP, **group, author={"id": phone.name, "name": "Ada"})
    wait_until(lambda: status(chief, run) == "cancelled")
    assert outcomes(phone)["u3"] == "command"
    assert len(answers(chief, f"Stopped {run['id']} of {phone.owner.address}.")) == 1


def test_a_command_of_a_stranger_keeps_its_place_behind_what_came_before_it(
    daemon: RunningDaemon, tmp_path: Path
) -> None:
    place = Phone(tmp_path).bound(daemon)
    slow = {"name": "a.txt", "content": "x", "gate": str(tmp_path / "gate")}
    place.put_in_inbox("u1", text="slow", downloads=[slow])
    place.comes_in("u2", **STOP)
    assert outcomes(place) == {"u1": None, "u2": None}
    (tmp_path / "gate").touch()
    wait_until(lambda: len(received(place)) == 2)
    assert [one["text"] for one in received(place)] == ["slow", "/stop"]


def test_a_command_that_hiboss_does_not_know_is_a_message_of_the_boss(phone: Phone) -> None:
    phone.comes_in("u1", kind="command", act=True, command="usr/bin", arguments="me")
    wait_until(lambda: received(phone))
    (message,) = received(phone)
    assert (message["text"], message["sender"]) == ("/usr/bin me", "user:boss")
    assert message["channel"]["arguments"] == "me"


def test_a_file_with_a_command_in_a_folder_of_the_boss_acts_and_is_gone(
    daemon: RunningDaemon, chief: Party, tmp_path: Path
) -> None:
    folder = Folder(daemon, tmp_path / "phone")
    folder.put("early.json", '{"command": "stop"}')
    assert [one["text"] for one in folder.heard(1)] == ["/stop"]  # it is not the boss's yet
    chief.call("boss.set", reach=folder.address)
    folder.put("stop.json", '{"command": "stop"}')
    wait_until(lambda: any(b"Nothing runs here." in text for text in folder.out().values()))
    folder.put("pause.txt", "/pause nobody\n")  # a text is one too
    wait_until(lambda: any(b"There is no agent" in text for text in folder.out().values()))
    wait_until(lambda: not list((tmp_path / "phone" / ".taken").glob("*")) and not folder.waiting())
    assert len(folder.heard(1)) == 1
    chief.call("boss.set", reach="")


@pytest.mark.slow
@pytest.mark.parametrize("point", [TAKEN, COMMANDED])
def test_a_command_is_carried_out_and_answered_once_although_the_daemon_died_of_it(
    tmp_path: Path, point: str
) -> None:
    armed = tmp_path / "armed"
    with daemon_with_channels(tmp_path, HIBOSS_CRASH_AT=f"{point}@{armed}") as daemon:
        chief = boss(daemon)
        phone = Phone(tmp_path)
        phone.settings(keeps_updates=True).bound(daemon, busy(daemon, tmp_path))
        phone.reached()
        phone.put_in_inbox("u1", text="begin")
        running(phone.owner)
        armed.touch()
        phone.put_in_inbox("u2", **STOP)
        daemon.wait_for_death()
        daemon.start(**SCRIPTED)
        wait_until(lambda: outcomes(phone)["u2"] == "command")
        wait_until(lambda: not phone.owner.call("run.list", status="running")["runs"])
        assert chief.call("run.list")["runs"][0]["status"] == "cancelled"
        found = [one for one in notices(chief) if one["text"].startswith("Stopped r")]
        assert len(found) == 1 and not answers(chief, "Nothing runs here.")
