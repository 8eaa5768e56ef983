"""A stream of events that is opened again: nothing is lost, and nothing comes twice, whatever happened meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from sqlite3 import connect
from urllib.parse import urlsplit

import pytest

from hiboss.store import counters
from tests.support.parties import Party, agent, agents, boss
from tests.support.web_clients import Event, EventReader
from tests.support.web_daemons import WebDaemon, web_daemon


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebDaemon]:
    with web_daemon(tmp_path_factory.mktemp("d")) as running:
        running.settings["web_port"] = urlsplit(running.url).port
        yield running


def mail(found: list[Event]) -> list[str]:
    """The envelopes that new-messages are about."""
    return [one["id"] for event in found if event.name == "new-message" for one in event.data["envelopes"]]


def names(found: list[Event]) -> list[str]:
    """The names, each once where several follow each other; without presence, which comes at any time."""
    found = [one for one in found if one.name != "presence"]
    return [one.name for place, one in enumerate(found) if not place or found[place - 1].name != one.name]


def up_to(events: EventReader, envelope: str) -> list[Event]:
    """Read until this envelope has come."""
    return events.until(lambda one: envelope in mail([one]))


def place_of(daemon: WebDaemon, token: str) -> str:
    """Where a new stream is."""
    with daemon.events(token) as events:
        events.next("open")
        assert events.last is not None
        return events.last


# --- within one start of the daemon ----------------------------------------------------------


def test_who_comes_again_goes_on_after_the_event_that_was_seen_last(daemon: WebDaemon) -> None:
    ada, bob = agents(daemon, 2)
    last = place_of(daemon, bob.token)
    sent: list[str] = []
    found: list[str] = []
    for _ in range(3):
        sent += [ada.tell(bob) for _ in range(3)]
        with daemon.events(bob.token, last) as events:
            seen = up_to(events, sent[-1])
            assert "gap" not in names(seen) and "open" not in names(seen)
            last = events.last
        found += mail(seen)
    assert found == sent


def test_an_event_in_the_middle_is_a_place_too(daemon: WebDaemon) -> None:
    ada, bob = agents(daemon, 2)
    with daemon.events(bob.token) as events:
        sent = [ada.tell(bob) for _ in range(10)]
        seen = [one for one in up_to(events, sent[-1]) if one.name == "new-message"]
    for place in (0, 4, 8):
        with daemon.events(bob.token, seen[place].id) as events:
            assert mail(up_to(events, sent[-1])) == sent[place + 1 :]


@pytest.mark.parametrize(
    "last",
    ["", "x", "1-2-3", "1-2-3-4-5", "-1-0-x-0", "1-x-y-2", "²-1-x-1", "9" * 16 + "-1-x-1", "0x1-1-e-1"],
)
def test_an_id_that_is_not_ours_begins_anew(daemon: WebDaemon, last: str) -> None:
    ada, bob = agents(daemon, 2)
    ada.tell(bob)
    with daemon.events(bob.token, last.encode().decode("latin-1")) as events:
        assert events.next().name == "open"
        number = ada.tell(bob)
        assert mail(up_to(events, number)) == [number]


def test_an_id_of_another_store_is_a_gap_with_nothing_to_catch_up(daemon: WebDaemon) -> None:
    ada, bob = agents(daemon, 2)
    ada.tell(bob)
    with daemon.events(bob.token, "1-1-00000000-0") as events:
        begun = events.next()
        assert begun.name == "gap" and begun.data["epoch"] in (begun.id or "")
        number = ada.tell(bob)
        seen = up_to(events, number)
        assert mail(seen) == [number] and "caught-up" not in names(seen)


def test_an_id_with_a_number_that_was_never_given_is_a_gap(daemon: WebDaemon) -> None:
    ada, bob = agents(daemon, 2)
    boot, _, epoch, arrived = place_of(daemon, bob.token).split("-")
    number = ada.tell(bob)
    with daemon.events(bob.token, f"{boot}-999999999-{epoch}-{arrived}") as events:
        seen = events.until(lambda one: one.name == "caught-up")
        assert names(seen)[0] == "gap" and mail(seen) == [number]


def test_topics_and_conversations_are_kept_when_it_is_caught_up(daemon: WebDaemon) -> None:
    ada, bob, eve = agents(daemon, 3)
    number = ada.send(bob)["conversation"]
    epoch = place_of(daemon, bob.token).split("-")[2]
    _, wanted = eve.tell(bob), ada.tell(bob)
    with daemon.events(bob.token, f"1-1-{epoch}-0", topics="ask.created") as events:
        assert events.next().name == "gap"
        made = ada.call("ask.create", question="now?", to=bob.address)["ask"]["id"]
        seen = events.until(lambda one: one.name == "ask")
        assert seen[-1].data["ask"] == made and mail(seen) == []
    with daemon.events(bob.token, f"1-1-{epoch}-0", conversations=number) as events:
        seen = events.until(lambda one: one.name == "caught-up")
        assert wanted in mail(seen) and {
            one.data["conversation"] for one in seen if one.name == "new-message"
        } == {number}


# --- across starts of the daemon -------------------------------------------------------------


def restart(daemon: WebDaemon) -> None:
    daemon.kill()
    daemon.start()


def test_after_a_restart_mail_is_caught_up_from_the_store(daemon: WebDaemon) -> None:
    ada, bob = agents(daemon, 2)
    with daemon.events(bob.token) as events:
        up_to(events, ada.tell(bob))
        last = events.last
    missed = [ada.tell(bob) for _ in range(5)]
    ada.send(bob, deliver_at="+2h")
    restart(daemon)
    later = [ada.tell(bob) for _ in range(2)]
    with daemon.events(bob.token, last) as events:
        seen = events.until(lambda one: one.name == "caught-up")
        assert names(seen)[0] == "gap" and names(seen)[-2:] == ["new-message", "caught-up"]
        assert mail(seen) == missed + later
        assert [one.data["unread"] for one in seen if one.name == "unread-count"] == [8]
        sent = ada.tell(bob)
        assert mail(up_to(events, sent)) == [sent]


def test_the_boss_catches_up_with_the_box_that_he_chose(daemon: WebDaemon) -> None:
    ada, bob = agents(daemon, 2)
    chief = boss(daemon)
    with daemon.events(chief.token, agent=bob.address) as events:
        events.next("open")
        last = events.last
    sent = [ada.tell(bob) for _ in range(2)]
    ada.tell(chief)
    restart(daemon)
    with daemon.events(chief.token, last, agent=bob.address) as events:
        assert mail(events.until(lambda one: one.name == "caught-up")) == sent


def test_a_restart_in_the_middle_of_catching_up_loses_nothing(daemon: WebDaemon) -> None:
    ada, bob = agents(daemon, 2)
    last = place_of(daemon, bob.token)
    sent = ada.flood(bob, 1_200)  # more than one look at the store takes
    found: list[str] = []
    for stop_after in (100, 400, None):
        restart(daemon)
        with daemon.events(bob.token, last) as events:
            assert events.next().name == "gap"
            seen = [events.next("new-message", "caught-up")]
            while seen[-1].name != "caught-up" and len(seen) != stop_after:
                seen.append(events.next("new-message", "caught-up"))
            last = events.last or ""
        found += mail(seen)
    assert found == sent


def test_a_store_that_was_put_back_is_another_one(tmp_path: Path) -> None:
    with web_daemon(tmp_path) as daemon:
        ada = agent(daemon)
        nex = Party(daemon, "agent:nex", daemon.token("nex"))
        last = place_of(daemon, nex.token)
        ada.tell(nex)
        daemon.stop()
        with closing(connect(daemon.home.database)) as database, database:
            counters.renew_epoch(database)  # as a restore does
        daemon.start()
        with daemon.events(nex.token, last) as events:
            assert events.next().name == "gap"
            sent = ada.tell(nex)
            assert mail(up_to(events, sent)) == [sent]
