"""envelope.poll: announced once in each session, over restarts and two polls at once; nothing marked."""

from __future__ import annotations

from pathlib import Path

import pytest

from hiboss.testing.running_daemon import RunningDaemon
from tests.support.daemons import started
from tests.support.in_process_daemon import InProcessDaemon, frozen
from tests.support.parties import Party, at_once, boss, flat
from tests.support.waiting_calls import WAIT, begun, texts

POLL = "envelope.poll"


def poll(party: Party, **params: object) -> list[str]:
    return texts(party.call(POLL, **params))


# --- once ----------------------------------------------------------------------------


def test_mail_is_announced_once(ada: Party, bob: Party) -> None:
    ada.tell(bob, text="one")
    first = bob.call(POLL)
    assert texts(first) == ["one"] and first["timed_out"] is False
    assert bob.call(POLL) == {"envelopes": [], "next": None, "timed_out": True, "timezone": "UTC"}
    ada.tell(bob, text="two")
    assert poll(bob) == ["two"]


def test_each_session_is_told_for_itself(ada: Party, bob: Party) -> None:
    ada.tell(bob, text="one")
    assert poll(bob, session="left") == poll(bob, session="right") == ["one"]
    assert poll(bob) == ["one"]  # without a name it is a session too
    ada.tell(bob, text="two")
    assert poll(bob, session="left") == poll(bob, session="right") == ["two"]
    assert poll(bob, session="left") == []


def test_another_agent_s_session_of_the_same_name_is_another(ada: Party, bob: Party, eve: Party) -> None:
    ada.send(bob, eve, text="both")
    assert poll(bob, session="s") == poll(eve, session="s") == ["both"]


def test_what_is_announced_stays_unread_and_pending(ada: Party, bob: Party) -> None:
    number = ada.tell(bob)
    before = bob.get(number)
    assert poll(bob) == ["hello"]
    after = bob.get(number)
    assert [(one["address"], one["session"]) for one in after.pop("read_by")] == [(bob.address, None)]
    assert after == {key: value for key, value in before.items() if key != "read_by"}
    assert bob.ids(unread=True) == [number]
    assert (before["status"], before["read_at"]) == ("pending", None)


def test_what_was_dealt_with_before_is_not_announced(ada: Party, bob: Party) -> None:
    read, done, away, taken = (ada.tell(bob, text=text) for text in ("read", "done", "away", "taken"))
    bob.call("envelope.read", ids=[read])
    bob.call("envelope.ack", ids=[done])
    bob.call("envelope.archive", ids=[away])
    ada.call("envelope.cancel", ids=[taken])
    assert poll(bob) == []
    ada.tell(bob, text="left")
    assert poll(bob) == ["left"]


def test_more_than_a_page_is_announced_page_by_page(ada: Party, bob: Party) -> None:
    ada.flood(bob, 25)
    pages = [poll(bob) for _ in range(4)]
    assert [len(page) for page in pages] == [10, 10, 5, 0] and flat(pages) == [str(i) for i in range(25)]


@frozen()
async def test_mail_deferred_before_is_announced_when_it_has_arrived(daemon: InProcessDaemon) -> None:
    await daemon.register("bob")
    await daemon.send("agent:bob", text="deferred", deliver_at="+1h")
    await daemon.send("agent:bob", text="now")
    assert texts(await daemon.ask(POLL, "bob")) == ["now"]
    await daemon.move(hours=1)
    assert texts(await daemon.ask(POLL, "bob")) == ["deferred"]
    assert texts(await daemon.ask(POLL, "bob")) == []


# --- what becomes due again ----------------------------------------------------------


def test_mail_that_was_leased_when_a_poll_looked_and_came_back_is_announced(ada: Party, bob: Party) -> None:
    leased = ada.tell(bob, text="leased")
    bob.call("envelope.claim", limit=1, lease="1h")
    ada.tell(bob, text="other")
    assert poll(bob, session="s") == ["other"]
    bob.call("envelope.release", ids=[leased])
    assert poll(bob, session="s") == ["leased"]
    assert poll(bob, session="s") == []
    assert bob.ids(oldest_first=True)[0] == leased  # in its old place all the same


@frozen()
async def test_mail_whose_lease_ended_is_announced_once_to_each_session(daemon: InProcessDaemon) -> None:
    await daemon.register("bob")
    await daemon.send("agent:bob", text="leased")
    assert texts(await daemon.ask(POLL, "bob", session="told before")) == ["leased"]
    await daemon.ask("envelope.claim", "bob", lease="10m")
    await daemon.send("agent:bob", text="other")
    for session in ("told before", "later"):
        assert texts(await daemon.ask(POLL, "bob", session=session)) == ["other"]
    await daemon.move(minutes=10)
    for session in ("told before", "later"):
        assert texts(await daemon.ask(POLL, "bob", session=session)) == ["leased"]
        assert texts(await daemon.ask(POLL, "bob", session=session)) == []
    assert texts(await daemon.ask(POLL, "bob", session="new")) == ["other", "leased"]
    assert texts(await daemon.ask("envelope.claim", "bob")) == ["leased", "other"]


def test_a_wait_after_a_cursor_sees_mail_that_came_back(ada: Party, bob: Party) -> None:
    leased = ada.tell(bob, text="leased")
    bob.call("envelope.claim", limit=1)
    ada.tell(bob, text="other")
    seen = bob.call("envelope.wait", timeout=WAIT)
    assert texts(seen) == ["other"]
    with begun(bob, "envelope.wait", after=seen["next"]) as wait:
        bob.call("envelope.release", ids=[leased])
        assert wait.texts() == ["leased"]


def test_mail_put_back_into_the_inbox_is_announced(ada: Party, bob: Party) -> None:
    away = [ada.tell(bob, text=text) for text in ("archived", "trashed")]
    bob.call("envelope.archive", ids=away[:1])
    bob.call("envelope.trash", ids=away[1:])
    ada.tell(bob, text="other")
    assert poll(bob) == ["other"]
    bob.call("envelope.restore", ids=away)
    assert poll(bob) == ["archived", "trashed"]
    bob.call("envelope.restore", ids=away)  # they are there already
    assert poll(bob) == []


@frozen(quiet=False)
async def test_mail_that_failed_and_is_tried_again_is_announced(daemon: InProcessDaemon) -> None:
    await daemon.register("bob")
    (number,) = await daemon.send("agent:bob", text="failed")
    daemon.change("UPDATE envelope SET status = 2, done_at = 1, error_kind = 'x', error_at = 1")
    await daemon.send("agent:bob", text="other")
    assert texts(await daemon.ask(POLL, "bob")) == ["other"]
    await daemon.ask("envelope.retry", ids=[number])
    assert texts(await daemon.ask(POLL, "bob")) == ["failed"]


# --- waiting -------------------------------------------------------------------------


def test_a_poll_that_waits_ends_with_the_first_mail_it_was_not_told_of(ada: Party, bob: Party) -> None:
    ada.tell(bob, text="old")
    assert poll(bob, wait=WAIT) == ["old"]
    with begun(bob, POLL) as wait:
        ada.tell(bob, text="new")
        assert wait.texts() == ["new"]
    assert bob.call(POLL, wait="0.001s")["timed_out"] is True


def test_a_poll_that_was_given_up_leaves_the_mail_for_the_next(ada: Party, bob: Party) -> None:
    with begun(bob, POLL):
        pass  # its peer goes before anything came
    ada.tell(bob, text="not lost")
    assert poll(bob, wait=WAIT) == ["not lost"]


def test_two_polls_of_one_session_announce_it_once_between_them(ada: Party, bob: Party) -> None:
    for number in range(10):
        with begun(bob, POLL) as left, begun(bob, POLL) as right:
            ada.tell(bob, text=f"{number}")
            ada.tell(bob, text="next")  # for the one that was not told of the first
            found = sorted([left.texts(), right.texts()])
        assert found == [[f"{number}"], ["next"]]


def test_many_polls_at_once_announce_everything_once(ada: Party, bob: Party) -> None:
    ada.flood(bob, 60)

    def follow() -> list[str]:
        found: list[str] = []
        while page := poll(bob, session="crowd"):
            found += page
        return found

    assert sorted(flat(at_once([follow] * 6)), key=int) == [str(i) for i in range(60)]


# --- the daemon keeps it -------------------------------------------------------------


@pytest.mark.slow
def test_it_stays_announced_over_restarts_and_kills(tmp_path: Path) -> None:
    with started(tmp_path) as daemon:
        chief, nex = boss(daemon), Party(daemon, "agent:nex", daemon.token("nex"))
        for text, end in (("one", daemon.stop), ("two", daemon.kill), ("three", daemon.stop)):
            chief.send(nex, text=text, from_="user:boss")
            assert poll(nex, session="s") == [text]
            end()
            daemon.start()
            assert poll(nex, session="s") == []
        assert poll(nex, session="new") == ["one", "two", "three"]


# --- words ---------------------------------------------------------------------------


def test_the_boss_polls_too(daemon: RunningDaemon, ada: Party) -> None:
    while poll(boss(daemon), session="mine"):
        pass
    ada.send("user:boss", text="look")
    assert poll(boss(daemon), session="mine") == ["look"]
