"""The supervisor: an adapter that fails does not stop others, is not restarted without pause, and comes back."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from hiboss.channels import supervisor as supervisor_module
from hiboss.channels.registry import Registry
from hiboss.channels.supervisor import PAUSES, STABLE_MS, Slot, Supervisor, pause_after
from hiboss.core.contracts.adapter import Taken
from hiboss.core.contracts.failures import AccountError
from hiboss.core.contracts.inbound import Update
from hiboss.core.errors import BadSetting, UnknownAdapter
from hiboss.core.events import AdapterFailed, AdapterRunning, Fact
from hiboss.core.paths import Home
from hiboss.testing.running_daemon import Answered, RunningDaemon
from tests.support import forked_daemons
from tests.support.cli import Shell
from tests.support.faulty_adapters import DEAF, SECRET
from tests.support.parties import agent, boss
from tests.support.scripted_channels import Place, daemon_with_channels, notices, row
from tests.support.waits import happens, wait_until


def bound(place: Place, daemon: RunningDaemon) -> Place:
    """Bind it without waiting: it may never run."""
    place.bind(agent(daemon))
    return place


# --- in a daemon ---------------------------------------------------------------------


def test_an_adapter_whose_start_fails_is_started_again_and_its_lanes_go_on(
    daemon: RunningDaemon, tmp_path: Path
) -> None:
    place = bound(Place(tmp_path).settings(fail_starts=1), daemon)
    number = place.send("waits for it")
    place.wait_for_state("failed")
    assert place.shown()["last_error"] == "the script refuses this start"
    place.wait_for("waits for it")
    place.wait_for_status(number, "done")
    assert (place.shown()["state"], place.shown()["last_error"]) == ("running", None)


def test_an_adapter_whose_listening_crashes_is_started_again(daemon: RunningDaemon, tmp_path: Path) -> None:
    place = bound(Place(tmp_path, kind="noted").settings(fail_listens=1), daemon)
    place.wait_for_state("failed")
    assert "the script crashes this adapter" in place.shown()["last_error"]
    place.wait_for_state("running")
    assert place.life() == ["start", "stop", "start"]
    place.comes_in("u1", text="and it listens")
    assert [one["text"] for one in place.owner.list()] == ["and it listens"]


def test_an_adapter_that_stops_listening_counts_as_failed(daemon: RunningDaemon, tmp_path: Path) -> None:
    place = bound(Place(tmp_path, kind="leaving"), daemon)
    place.wait_for_state("failed")
    assert place.shown()["last_error"] == "it stopped listening"
    place.unbind()
    assert place.life().count("start") == place.life().count("stop")


def test_the_boss_is_told_of_an_adapter_that_does_not_get_to_run(
    daemon: RunningDaemon, tmp_path: Path
) -> None:
    place = bound(Place(tmp_path).settings(fail_starts=100), daemon)

    def told() -> list[str]:
        told = f"The account scripted:{place.name} has failed since"
        return [one["text"] for one in notices(boss(daemon)) if told in one["text"]]

    wait_until(told)
    assert "the script refuses this start" in told()[0]
    place.unbind()
    assert len(told()) == 1


@pytest.mark.parametrize("kind", ["talkative", "unborn", "clinging", "endless"])
def test_no_failing_adapter_harms_the_daemon_or_another_adapter(
    daemon: RunningDaemon, tmp_path: Path, kind: str
) -> None:
    odd = bound(Place(tmp_path, kind=kind), daemon)
    good = Place(tmp_path).bound(daemon)
    good.send("still here")
    good.wait_for("still here")
    assert odd.unbind()["ended"] is True
    assert good.shown()["state"] == "running"
    assert daemon.call("daemon.ping")["pong"] is True


@pytest.mark.parametrize("error", ["KeyboardInterrupt", "GeneratorExit"])
@pytest.mark.parametrize("where", ["init", "start", "listen", "stop"])
def test_an_adapter_that_ends_like_a_program_ends_no_daemon_and_is_started_again(
    daemon: RunningDaemon, tmp_path: Path, where: str, error: str
) -> None:
    place = bound(Place(tmp_path, kind="rude").settings(**{where: f"{error}()", "fail_listens": 1}), daemon)
    place.wait_for_state("failed")
    assert (error in place.shown()["last_error"]) is (where != "stop")
    assert place.unbind()["ended"] is True


@pytest.mark.parametrize("error", ["KeyboardInterrupt()", "SystemExit(3)"])
def test_a_task_of_an_adapter_that_ends_like_a_program_ends_no_daemon(
    daemon: RunningDaemon, tmp_path: Path, error: str
) -> None:
    place = Place(tmp_path, kind="rude").settings(task=error).bound(daemon)
    place.send("still here")
    place.wait_for("still here")
    assert place.unbind()["ended"] is True


@pytest.mark.parametrize("error", ["SystemExit(3)", "KeyboardInterrupt()", "asyncio.CancelledError()"])
def test_an_adapter_that_ends_like_a_program_when_it_is_bound_is_answered_as_an_error(
    daemon: RunningDaemon, tmp_path: Path, error: str
) -> None:
    place = Place(tmp_path, kind="rude").settings(check=error)
    refused = boss(daemon).refusal(
        "agent.bind", name="nex", adapter_type="rude", settings={"path": str(place.root)}
    )
    assert refused == "internal_error"
    assert daemon.call("daemon.ping")["pong"] is True


def test_an_error_that_cannot_be_shown_ends_no_adapters_life_in_silence(
    daemon: RunningDaemon, tmp_path: Path
) -> None:
    place = bound(Place(tmp_path, kind="unspeakable"), daemon)
    wait_until(lambda: place.life().count("start") >= 2)  # it is started again
    assert "WithoutWords" in place.shown()["last_error"]
    place.unbind()


# --- adapters that ignore their cancellation -----------------------------------------


def test_no_adapter_that_ignores_its_cancellation_keeps_the_daemon_from_ending(tmp_path: Path) -> None:
    quick = forked_daemons.pauses(
        {"channels.supervisor.STOP_SECONDS": 0.5, "routing.delivery.STOP_SECONDS": 0.5}
    )
    with daemon_with_channels(tmp_path / "d", **quick) as daemon:
        places = {kind.type: bound(Place(tmp_path, kind=kind.type), daemon) for kind in DEAF}
        for place in places.values():
            wait_until(lambda place=place: "start" in place.life())  # type: ignore[misc]
        places["deafpost"].send("x")
        wait_until(lambda: "post" in places["deafpost"].life())
        assert daemon.stop() == 0
        log = Path(daemon.home.log_file).read_text()
        for what in (
            "The start of deafstart:",
            "The listening of deaflisten:",
            "A post of e",
            "The stop of deafstop:",
        ):
            assert what in log  # each is named in the log
        assert "Daemon stopped." in log


def test_an_adapter_that_ignores_its_cancellation_can_be_unbound_and_then_hands_over_nothing(
    daemon: RunningDaemon, tmp_path: Path
) -> None:
    place = Place(tmp_path, kind="deaflisten").bound(daemon)
    place.comes_in("u1", text="before")
    assert place.unbind()["ended"] is True
    update = place.put_in_inbox("u2", text="after")
    wait_until(lambda: "LaneError" in place.life())  # it tried, and was refused
    assert update.exists()
    assert [one["text"] for one in place.owner.list()] == ["before"]


def test_a_post_that_ignores_its_cancellation_does_not_keep_its_lane(tmp_path: Path) -> None:
    with daemon_with_channels(tmp_path / "d", HIBOSS_DELIVERY_POST_SECONDS="0.2") as daemon:
        place = Place(tmp_path, kind="deafpost").bound(daemon)
        number = place.send("x")
        assert place.wait_for_failures(1)["error_kind"] == "timed_out"
        assert row(daemon, number)["held_by"] is None


def test_secrets_in_the_errors_of_adapters_are_shown_to_nobody(daemon: RunningDaemon, tmp_path: Path) -> None:
    place = bound(Place(tmp_path, kind="talkative"), daemon)
    place.wait_for_state("failed")
    assert place.shown()["last_error"] == "RuntimeError: GET https://example.org/hba_…/getMe: 404"
    assert SECRET not in json.dumps([place.owner.call("agent.bindings"), boss(daemon).call("daemon.status")])
    place.send("x")
    assert SECRET not in json.dumps(boss(daemon).call("lane.list"))
    assert SECRET not in Path(daemon.home.log_file).read_text()
    place.unbind()


def test_no_secret_of_a_binding_gets_into_the_log_the_database_or_a_notice_by_the_errors_of_its_adapter(
    daemon: RunningDaemon, tmp_path: Path
) -> None:
    place, password = Place(tmp_path, kind="indiscreet"), "123456:AA-secret/of+a bot"
    place.owner = agent(daemon)

    def leaks(**where: str) -> None:
        (place.root / "leak.new").write_text(json.dumps(where))
        (place.root / "leak.new").replace(place.root / "leak")

    settings = {"path": str(place.root), "password": password}
    bind = {"name": place.owner.name, "adapter_type": place.kind, "settings": settings}
    told: list[Any] = []
    for kind in ("RuntimeError", "AccountError", "Refused"):
        leaks(check=kind)
        with pytest.raises(Answered) as refused:
            boss(daemon).call("agent.bind", **bind)
        told.append(str(refused.value))
    leaks(start="RuntimeError")
    place.binding = int(boss(daemon).call("agent.bind", **bind)["binding"][1:])
    place.wait_for_state("failed")
    told.append(place.owner.call("agent.bindings"))
    leaks(digest="RuntimeError", post="LaneError")
    place.wait_for_state("running")
    place.put_in_inbox("u1", text="hello")
    place.send("waits")
    place.wait_for_failures(1)
    leaks(post="EnvelopeError", digest="Refused")
    place.steer("retry")
    wait_until(lambda: notices(place.owner))
    wait_until(lambda: "u1" in place.digested())
    told += [notices(place.owner), notices(boss(daemon)), boss(daemon).call("lane.list"), place.digested()]
    place.unbind()
    written = [path.read_bytes() for path in Path(daemon.home.path).rglob("*") if path.is_file()]
    for form in (password, quote(password, safe=""), password[:8]):
        assert form not in json.dumps(told)
        assert not any(form.encode() in content for content in written)
    assert "https://api.example.org/bot…/getMe and …" in json.dumps(told, ensure_ascii=False)


def test_mail_for_an_adapter_that_cannot_start_waits_and_says_why(
    daemon: RunningDaemon, tmp_path: Path
) -> None:
    place = bound(Place(tmp_path).settings(fail_starts=100), daemon)
    place.wait_for_state("failed")
    number = place.send("x")
    account = place.wait_for_account(1)
    assert (account["error_kind"], account["error_text"]) == (
        "adapter_down",
        "the script refuses this start",
    )
    assert row(daemon, number)["attempts"] == 1
    place.unbind()


def test_state_and_last_error_are_shown_by_the_command_line(daemon: RunningDaemon, tmp_path: Path) -> None:
    place = bound(Place(tmp_path).settings(fail_starts=100), daemon)
    place.wait_for_state("failed")
    shell = Shell(daemon.home.path)
    (shown,) = [
        one
        for one in shell("agent", "bindings", "--as", "boss").blocks
        if one["binding"] == f"b{place.binding}"
    ]
    assert shown["last-error"] == "the script refuses this start"
    status = shell("daemon", "status")
    assert status.rc == 0 and f"adapter: scripted:{place.name}\n" in status.stdout
    assert "the script refuses this start" in status.stdout
    place.unbind()


# --- without a daemon, with other pauses -----------------------------------------------


class Watched:
    """A supervisor without a daemon, and what it reported."""

    def __init__(self) -> None:
        self.facts: list[Fact] = []
        self.told: list[str] = []
        self.taken: list[Update] = []
        self.supervisor = Supervisor(
            Registry(["hiboss.testing.scripted_adapter", "tests.support.faulty_adapters"]),
            self.facts.append,
            self._take,
            self._running,
            self._failing,
            lambda binding: None,
            Home("/nowhere"),
        )

    async def _take(
        self, binding: int, kind: str, updates: Sequence[Update], position: str | None = None
    ) -> Taken:
        self.taken += updates
        return Taken(new=frozenset(one.id for one in updates), digested={})

    async def _running(self, slot: Slot) -> None:
        self.told.append(f"{slot.name} runs")

    async def _failing(self, slot: Slot) -> None:
        self.told.append(f"{slot.name} fails")

    def add(self, place: Place) -> Slot:
        facts = {"id": 1, "adapter": place.kind, "account": place.name, "secrets": None}
        self.supervisor.add({**facts, "settings": json.dumps({"path": str(place.root)})})  # type: ignore[arg-type]
        return self.supervisor.slots[1]


@asynccontextmanager
async def watched() -> AsyncIterator[Watched]:
    one = Watched()
    yield one
    await one.supervisor.close()


def pauses(monkeypatch: pytest.MonkeyPatch, *seconds: float) -> None:
    monkeypatch.setattr(supervisor_module, "PAUSES", seconds)


def test_pauses_grow_from_a_second_to_minutes() -> None:
    assert list(PAUSES) == sorted(set(PAUSES)) and PAUSES[0] >= 1
    assert PAUSES[-1] >= 60


async def test_an_adapter_that_the_platform_does_not_let_start_is_tried_again_soon(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses(monkeypatch, 3600.0)
    monkeypatch.setattr(supervisor_module, "UNREACHABLE_SECONDS", 0.0)
    async with watched() as one:
        slot = one.add(Place(tmp_path).settings(fail_starts=3))
        await happens(lambda: slot.state == "running")
        slot.refusal = AccountError("rate_limited", "too many requests", 17)  # a time that it names is kept
        assert pause_after(slot) == 17


async def test_a_crashing_adapter_rests_for_the_pause_of_its_crash_and_does_not_spin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses(monkeypatch, 0.0, 0.0, 3600.0)
    place, rest, rests = Place(tmp_path, kind="leaving"), supervisor_module._sleep, list[float]()

    async def noted(seconds: float, end: asyncio.Event) -> None:
        rests.append(seconds)
        await rest(seconds, end)

    monkeypatch.setattr(supervisor_module, "_sleep", noted)
    async with watched() as one:
        slot = one.add(place)
        await happens(lambda: rests == [0.0, 0.0, 3600.0])
        assert place.life() == ["start", "stop"] * 3
        assert slot.state == "failed"


async def test_the_last_pause_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pauses(monkeypatch, 0.0)
    place = Place(tmp_path, kind="leaving")
    async with watched() as one:
        slot = one.add(place)
        await happens(lambda: slot.crashes >= 5)
        assert one.told.count(f"leaving:{place.name} fails") == 1


async def test_having_run_well_for_a_while_an_adapter_is_forgiven(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses(monkeypatch, 0.0)
    place = Place(tmp_path).settings(fail_starts=3)
    async with watched() as one:
        slot = one.add(place)
        await happens(lambda: slot.state == "running")
        assert slot.crashes == 3
        pauses(monkeypatch, 3600.0)
        slot.since -= STABLE_MS + 1
        place.put_in_inbox("u1", wrong="no part of a message")  # this makes it crash
        await happens(lambda: slot.state == "failed")
        assert slot.crashes == 1


async def test_starts_and_failures_are_facts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pauses(monkeypatch, 0.0)
    place = Place(tmp_path).settings(fail_starts=1)
    async with watched() as one:
        one.add(place)
        await happens(lambda: len(one.facts) == 2)
        failed, running = one.facts
        assert isinstance(failed, AdapterFailed) and failed.error == "the script refuses this start"
        assert isinstance(running, AdapterRunning) and f"channel:{running.account}" == place.address


@pytest.mark.parametrize("kind", ["noted", "clinging", "endless"])
async def test_closing_stops_every_adapter_once(tmp_path: Path, kind: str) -> None:
    place = Place(tmp_path, kind=kind)
    async with watched() as one:
        one.add(place)
        await happens(lambda: place.life() == ["start"])
        await one.supervisor.close()
        assert place.life() == ["start", "stop"]
        assert one.supervisor.slots == {}


async def test_an_unknown_kind_of_adapter_is_a_failure_of_that_binding_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its module was removed from the settings while it was bound."""
    pauses(monkeypatch, 3600.0)
    async with watched() as one:
        slot = one.add(Place(tmp_path, kind="gone"))
        await happens(lambda: slot.state == "failed")
        assert "gone" in (slot.error or "")


def test_the_registry_refuses_modules_that_are_none_and_knows_near_matches() -> None:
    for module in ("no.such.module", "hiboss.core.clock"):
        with pytest.raises(BadSetting):
            Registry([module])
    with pytest.raises(UnknownAdapter, match="did you mean folder"):
        Registry([]).kind("foldr")
