"""envelope.wait: what ends it, what does not, and that it changes nothing."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from hiboss.testing.running_daemon import Answered, RunningDaemon
from tests.support.parties import Party, agents, at_once, boss
from tests.support.scripted_channels import Place, envelope_error
from tests.support.waiting_calls import WAIT, begun, many_begun, soon, texts, waited


def dump(daemon: RunningDaemon) -> list[str]:
    """The whole database but for who was seen when, which any call notes."""
    found = []
    with daemon.database() as database:
        for (table,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            rows = database.execute(f'SELECT * FROM "{table}"').fetchall()
            found += [f"{table} { {**dict(row), 'last_seen_at': None} }" for row in rows]
    return sorted(found)


def read_all(party: Party) -> None:
    while unread := party.ids(unread=True):
        party.call("envelope.read", ids=unread)


# --- at once, or when it comes -------------------------------------------------------


def test_what_lies_there_is_answered_at_once_oldest_first(ada: Party, bob: Party) -> None:
    for text in ("one", "two"):
        ada.tell(bob, text=text)
    answer = bob.call("envelope.wait", timeout="1h")
    assert texts(answer) == ["one", "two"] and answer["timed_out"] is False and answer["timezone"] == "UTC"
    assert answer["envelopes"][0] == bob.list(oldest_first=True)[0]  # in the one form there is


def test_a_send_ends_a_wait_that_found_nothing(ada: Party, bob: Party) -> None:
    with begun(bob) as wait:
        number = ada.tell(bob, text="here")
        answer = wait.answer()
    assert [one["id"] for one in answer["envelopes"]] == [number] and answer["timed_out"] is False


def test_the_time_limit_ends_it_empty_handed(two: tuple[Party, Party]) -> None:
    assert waited(two[1]) == {"envelopes": [], "next": None, "timed_out": True, "timezone": "UTC"}


def test_deferred_mail_ends_it_when_it_arrives(ada: Party, bob: Party) -> None:
    with begun(bob) as wait:
        ada.tell(bob, text="later", deliver_at="+1h")
        assert wait.quiet()
        ada.tell(bob, text="soon", deliver_at=soon())
        assert wait.texts() == ["soon"]


def test_a_schedule_ends_it_when_it_fires(ada: Party, bob: Party) -> None:
    with begun(bob) as wait:
        ada.call("cron.create", at=soon(), to=bob.address, text="planned")
        assert wait.texts() == ["planned"]
    (envelope,) = bob.ids()
    bob.call("envelope.ack", ids=[envelope])
    created = ada.call("cron.create", cron="0 0 1 1 *", to=bob.address, text="by hand")
    with begun(bob) as wait:
        ada.call("cron.run", id=created["id"])
        assert wait.texts() == ["by hand"]


def test_a_notice_of_the_system_ends_it(daemon: RunningDaemon, tmp_path: Path) -> None:
    place = Place(tmp_path).bound(daemon)
    place.script(envelope_error(kind="too_big", text="too long"))
    with begun(place.owner) as wait:
        place.send("much")
        (notice,) = wait.answer()["envelopes"]
    assert notice["from"] == "agent:system" and "too long" in notice["text"]


def test_what_comes_in_from_a_channel_ends_it(daemon: RunningDaemon, tmp_path: Path) -> None:
    place = Place(tmp_path).bound(daemon)
    with begun(place.owner) as wait:
        place.comes_in("u1", text="from outside")
        assert wait.texts() == ["from outside"]


def test_the_end_of_a_lease_ends_it_and_so_does_a_release(ada: Party, bob: Party) -> None:
    number = ada.tell(bob, text="claimed")
    bob.call("envelope.claim", lease="1h")
    with begun(bob) as wait:
        bob.call("envelope.release", ids=[number])
        assert wait.texts() == ["claimed"]
    bob.call("envelope.claim", lease="0.2s")
    assert texts(bob.call("envelope.wait", timeout=WAIT)) == ["claimed"]


def test_mail_put_back_into_the_inbox_ends_it(ada: Party, bob: Party) -> None:
    number = ada.tell(bob, text="put away")
    bob.call("envelope.archive", ids=[number])
    with begun(bob) as wait:
        bob.call("envelope.restore", ids=[number])
        assert wait.texts() == ["put away"]


def test_what_is_tried_again_ends_it(daemon: RunningDaemon, tmp_path: Path) -> None:
    place = Place(tmp_path).bound(daemon)
    place.script(envelope_error(kind="too_big", text="too long"))
    number = place.send("again")
    place.wait_for_status(number, "failed")
    with begun(boss(daemon), address=place.address) as wait:  # failed mail is no news
        place.owner.call("envelope.retry", ids=[number])
        assert wait.texts() == ["again"]


def test_the_boss_s_own_box_ends_the_boss_s_wait(two: tuple[Party, Party], chief: Party) -> None:
    read_all(chief)
    with begun(chief) as wait:
        two[0].send(two[1])
        assert wait.quiet()
        two[0].send("user:boss", text="look")
        assert wait.texts() == ["look"]


# --- what does not count -------------------------------------------------------------


@pytest.mark.parametrize("act", ["read", "ack", "archive", "trash"])
def test_mail_that_was_dealt_with_does_not_count(ada: Party, bob: Party, act: str) -> None:
    number = ada.tell(bob)
    assert waited(bob)["timed_out"] is False
    bob.call(f"envelope.{act}", ids=[number])
    assert waited(bob)["timed_out"] is True


def test_mail_in_hand_or_taken_back_or_not_yet_due_does_not_count(ada: Party, bob: Party) -> None:
    ada.tell(bob, text="claimed")
    bob.call("envelope.claim", lease="1h")
    ada.call("envelope.cancel", ids=[ada.tell(bob, text="taken back")])
    ada.tell(bob, text="later", deliver_at="+1h")
    assert waited(bob)["timed_out"] is True


def test_mail_for_others_never_ends_it(ada: Party, bob: Party, eve: Party) -> None:
    with begun(eve) as wait:
        for _ in range(20):
            ada.send(bob, ada, "user:boss")
            assert wait.quiet()
        ada.send(bob, eve, text="for both")
        assert wait.texts() == ["for both"]


# --- cursors -------------------------------------------------------------------------


def test_with_a_cursor_only_what_came_after_it_counts(ada: Party, bob: Party) -> None:
    ada.tell(bob, text="old")
    first = waited(bob)
    assert waited(bob, after=first["next"]) == {**waited(bob, after=first["next"]), "timed_out": True}
    with begun(bob, after=first["next"]) as wait:
        ada.tell(bob, text="new")
        second = wait.answer()
    assert texts(second) == ["new"] and texts(waited(bob)) == ["old", "new"]  # without one all that is unread
    # The cursor of an empty answer is the one given: nothing is passed over.
    assert waited(bob, after=second["next"])["next"] == second["next"]


def test_cursors_walk_through_more_than_a_page(ada: Party, bob: Party) -> None:
    ada.flood(bob, 25)
    found, after = [], None
    while not (page := waited(bob, **({"after": after} if after else {})))["timed_out"]:
        found += texts(page)
        after = page["next"]
    assert found == [str(i) for i in range(25)]


def test_a_cursor_of_a_list_serves_too_and_a_wrong_one_is_refused(ada: Party, bob: Party) -> None:
    ada.flood(bob, 3)
    page = bob.call("envelope.list", oldest_first=True, page_size=1)
    assert texts(waited(bob, after=page["next"])) == ["1", "2"]
    outbox = ada.call("envelope.list", box="outbox", page_size=1)["next"]
    assert ada.refusal("envelope.wait", after=outbox) == "bad_cursor"
    assert bob.refusal("envelope.wait", after="nonsense") == "bad_cursor"
    assert bob.refusal("envelope.wait", after="x" + page["next"].partition("-")[0] + "-a1") == "gap"


# --- whose box, how long -------------------------------------------------------------


def test_the_boss_waits_for_another_s_mail_and_nobody_else_does(
    daemon: RunningDaemon, ada: Party, bob: Party
) -> None:
    with begun(boss(daemon), address=bob.address) as wait:
        ada.tell(bob, text="seen by the boss")
        assert wait.texts() == ["seen by the boss"]
    assert texts(bob.call("envelope.wait", address=bob.address)) == ["seen by the boss"]
    assert ada.refusal("envelope.wait", address=bob.address) == "boss_only"
    assert boss(daemon).refusal("envelope.wait", address="agent:nobody-here") == "unknown_address"
    assert boss(daemon).refusal("envelope.wait", address="two words") == "bad_address"


# --- it changes nothing --------------------------------------------------------------


def test_waiting_changes_nothing_in_the_store(daemon: RunningDaemon, ada: Party, bob: Party) -> None:
    ada.flood(bob, 3)
    before = dump(daemon)
    for _ in range(3):
        page = waited(bob)
        waited(bob, after=page["next"])
        waited(boss(daemon), address=bob.address)
        bob.call("envelope.watch", timeout="0.001s", after=page["next"])
    with begun(ada), begun(ada):
        pass
    assert dump(daemon) == before


# --- many ----------------------------------------------------------------------------


def test_all_who_wait_for_one_box_wake_together(ada: Party, bob: Party) -> None:
    with many_begun([bob] * 20) as waits, many_begun([ada] * 3) as others:
        ada.tell(bob, text="for all of you")
        assert [wait.texts() for wait in waits] == [["for all of you"]] * 20
        assert all(wait.quiet() for wait in others)


@pytest.mark.slow
def test_nothing_falls_between_looking_and_waiting(ada: Party, bob: Party) -> None:
    """Senders write while waiters go from one wait to the next by cursor: each sees all, once, in order."""
    rounds = 150

    def follow() -> list[str]:
        found: list[str] = []
        after: dict[str, str] = {}
        while len(found) < rounds:
            page = bob.call("envelope.wait", timeout=WAIT, **after)
            if page["timed_out"]:
                return found
            found += texts(page)
            after = {"after": page["next"]}
        return found

    def write() -> list[str]:
        return [str(ada.tell(bob, text=f"{i}")) for i in range(rounds)]

    *followed, sent = at_once([follow, follow, follow, write])
    assert len(sent) == rounds
    assert followed == [[f"{i}" for i in range(rounds)]] * 3


@pytest.mark.slow
def test_the_very_moment_of_a_send_is_not_missed(daemon: RunningDaemon, ada: Party) -> None:
    """A wait and a send begin together, over and over, each time to an empty box."""
    boxes = agents(daemon, 40)
    gates = [threading.Barrier(2) for _ in boxes]

    def wait() -> list[list[str]]:
        found = []
        for gate, box in zip(gates, boxes, strict=True):
            gate.wait(30)
            found.append(texts(box.call("envelope.wait", timeout=WAIT)))
        return found

    def send() -> None:
        for gate, box in zip(gates, boxes, strict=True):
            gate.wait(30)
            ada.tell(box, text="now")

    found, nothing = at_once([wait, send])
    assert nothing is None
    assert found == [["now"]] * len(boxes)


# --- who may no longer ---------------------------------------------------------------


def test_a_token_that_ended_meanwhile_is_told_no_mail(daemon: RunningDaemon, ada: Party, bob: Party) -> None:
    with begun(bob) as wait, begun(bob, "envelope.watch") as watch, begun(bob, "envelope.poll") as poll:
        fresh = boss(daemon).call("agent.token.rotate", name=bob.name)["token"]
        ada.tell(bob, text="not for the old one")
        assert [one.refusal() for one in (wait, watch, poll)] == ["bad_token"] * 3
    assert texts(Party(daemon, bob.address, fresh).call("envelope.poll")) == ["not for the old one"]


def test_a_boss_token_that_ended_meanwhile_shows_no_other_s_mail(
    daemon: RunningDaemon, ada: Party, bob: Party
) -> None:
    old = boss(daemon)
    read_all(old)
    with begun(old, address=bob.address) as wait, begun(old) as own:
        old.call("boss.token.rotate")
        assert own.refusal() == "bad_token"  # at once
        ada.tell(bob, text="not for the old one")
        assert wait.refusal() == "bad_token"


def test_an_agent_deleted_meanwhile_hears_so(daemon: RunningDaemon, bob: Party) -> None:
    with begun(bob) as wait:
        boss(daemon).call("agent.delete", name=bob.name)
        assert wait.refusal() == "bad_token"
    with pytest.raises(Answered):
        waited(bob)
