"""Listing: pages that neither skip nor repeat, and cursors."""

from __future__ import annotations

from typing import Any

import pytest

from hiboss.testing.running_daemon import RunningDaemon
from tests.support.parties import Party, agents, boss, flat


def newest_first(ids: list[str]) -> list[str]:
    return list(reversed(ids))


# --- pages ---------------------------------------------------------------------------


def test_an_empty_box_is_one_empty_page(two: tuple[Party, Party]) -> None:
    page = two[0].call("envelope.list", count=True)
    assert page == {"envelopes": [], "next": None, "total": 0, "total_capped": False, "timezone": "UTC"}


def test_the_newest_comes_first_ten_at_a_time(two: tuple[Party, Party]) -> None:
    ada, bob = two
    sent = [ada.tell(bob) for _ in range(11)]
    page = bob.call("envelope.list")
    assert [one["id"] for one in page["envelopes"]] == newest_first(sent)[:10]
    rest = bob.call("envelope.list", after=page["next"])
    assert [one["id"] for one in rest["envelopes"]] == sent[:1] and rest["next"] is None


@pytest.mark.parametrize("size", [1, 3, 100])
def test_the_boss_lists_all_envelopes_of_everybody_once_whatever_box_they_are_in(
    two: tuple[Party, Party], size: int
) -> None:
    ada, bob = two
    chief = boss(ada.daemon)
    sent = [ada.tell(bob), bob.tell(ada), ada.tell(chief), ada.tell(bob, deliver_at="+1h"), ada.tell(ada)]
    bob.call("envelope.archive", ids=sent[:1])
    ada.call("envelope.trash", ids=sent[1:2])
    ada.call("envelope.cancel", ids=sent[4:])
    with ada.daemon.database() as database:
        stored = [row[0] for row in database.execute("SELECT 'e' || id FROM envelope ORDER BY id")]
    assert set(sent) <= set(stored)
    assert flat(chief.walk(box="all", page_size=size, oldest_first=True)) == stored
    assert flat(chief.walk(box="all", page_size=size)) == newest_first(stored)
    assert chief.ids(box="all", status="cancelled", **{"from": ada.address}) == sent[4:]
    arrived = chief.ids(box="all", arrived=True, page_size=100)
    assert sent[3] not in arrived and {*sent[:3], sent[4]} <= {*arrived}


@pytest.mark.parametrize("oldest_first", [False, True])
@pytest.mark.parametrize("box", ["inbox", "outbox"])
def test_pages_end_exactly_where_the_list_ends(
    two: tuple[Party, Party], box: str, oldest_first: bool
) -> None:
    ada, bob = two
    owner = bob if box == "inbox" else ada
    for number in range(1, 7):
        ada.tell(bob)
        pages = owner.walk(box=box, page_size=3, oldest_first=oldest_first)
        assert [len(page) for page in pages] == ([3] * (number // 3) + [number % 3])[: -(-number // 3)]


@pytest.mark.parametrize("size", [1, 4, 7, 100])
def test_envelopes_of_every_status_lie_in_the_order_of_arrival(two: tuple[Party, Party], size: int) -> None:
    ada, bob = two
    sent = [ada.tell(bob) for _ in range(28)]
    bob.call("envelope.ack", ids=sent[::3])
    ada.call("envelope.cancel", ids=[number for number in sent[::5] if number not in sent[::3]])
    assert flat(bob.walk(page_size=size)) == newest_first(sent)
    assert flat(bob.walk(page_size=size, oldest_first=True)) == sent
    assert flat(ada.walk(box="outbox", page_size=size)) == newest_first(sent)


def test_what_arrives_between_two_pages_is_neither_doubled_nor_in_the_way(two: tuple[Party, Party]) -> None:
    ada, bob = two
    sent = [ada.tell(bob) for _ in range(9)]
    for owner, box in ((bob, "inbox"), (ada, "outbox")):
        seen, after = [], {}
        while after is not None:
            page = owner.call("envelope.list", box=box, page_size=2, **after)
            seen += [one["id"] for one in page["envelopes"]]
            ada.tell(bob, text="meanwhile")
            after = {"after": page["next"]} if page["next"] else None
        assert [number for number in seen if number in sent] == newest_first(sent)
        assert len(seen) == len(set(seen))


def test_whoever_reads_on_from_the_oldest_meets_what_arrived_meanwhile(two: tuple[Party, Party]) -> None:
    ada, bob = two
    sent = [ada.tell(bob) for _ in range(4)]
    page = bob.call("envelope.list", page_size=3, oldest_first=True)
    sent += [ada.tell(bob) for _ in range(2)]
    rest = bob.call("envelope.list", page_size=3, oldest_first=True, after=page["next"])
    assert [one["id"] for one in page["envelopes"] + rest["envelopes"]] == sent and rest["next"] is None


def test_settling_a_page_before_asking_for_the_next_skips_nothing(two: tuple[Party, Party]) -> None:
    ada, bob = two
    sent = [ada.tell(bob) for _ in range(10)]
    seen: list[str] = []
    page = bob.call("envelope.list", status="pending", page_size=3)
    while True:
        ids = [one["id"] for one in page["envelopes"]]
        seen += ids
        bob.call("envelope.ack", ids=ids)
        if page["next"] is None:
            break
        page = bob.call("envelope.list", status="pending", page_size=3, after=page["next"])
    assert seen == newest_first(sent)


@pytest.mark.parametrize("oldest_first", [False, True])
@pytest.mark.parametrize("size", [1, 2, 3, 5, 8])
def test_an_outbox_page_may_end_between_two_recipients(
    daemon: RunningDaemon, size: int, oldest_first: bool
) -> None:
    ada, *others = agents(daemon, 4)
    sent = flat([ada.send(*others[: n % 3 + 1])["ids"] for n in range(4)])
    pages = ada.walk(box="outbox", page_size=size, oldest_first=oldest_first)
    assert flat(pages) == (sent if oldest_first else newest_first(sent))
    assert all(len(page) == size for page in pages[:-1])


@pytest.mark.parametrize("oldest_first", [False, True])
@pytest.mark.parametrize("size", [1, 2, 3, 4, 6, 7, 10])
def test_the_boss_pages_from_deferred_into_arrived_mail_without_loss(
    two: tuple[Party, Party], size: int, oldest_first: bool
) -> None:
    ada, bob = two
    deferred, arrived = [], []
    for _ in range(3):
        deferred.append(ada.tell(bob, deliver_at="+2h"))
        arrived.append(ada.tell(bob))
    bob.call("envelope.ack", ids=arrived[1:2])
    ada.call("envelope.cancel", ids=deferred[1:2])
    order = arrived + deferred  # what has not arrived is newer than all that has
    pages = boss(ada.daemon).walk(address=bob.address, page_size=size, oldest_first=oldest_first)
    assert flat(pages) == (order if oldest_first else newest_first(order))
    assert [len(page) for page in pages[:-1]] == [size] * (len(pages) - 1)
    assert boss(ada.daemon).call("envelope.list", address=bob.address, count=True)["total"] == 6
    assert flat(bob.walk(page_size=size)) == newest_first(arrived)


@pytest.mark.parametrize("wrong", [0, -1, 101, 10**9, 2**64, 10**30, "10", 1.5, 10.0, True, [10]], ids=repr)
def test_a_page_size_outside_1_to_100_is_refused(two: tuple[Party, Party], wrong: Any) -> None:
    assert two[0].refusal("envelope.list", page_size=wrong) == "invalid_params"


# --- cursors -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "wrong", ["", "5", "a5", "e5", "-", "{epoch}", "{epoch}-", "{epoch}-a", "{epoch}-x5", "{epoch}-a-5"]
)
def test_what_is_no_cursor_is_refused(two: tuple[Party, Party], wrong: str) -> None:
    ada, bob = two
    assert bob.refusal("envelope.list", after=wrong.format(epoch=epoch(ada, bob))) == "bad_cursor"


@pytest.mark.parametrize(
    "tail", ["a5.5", "o5", "o5.", "o.5", "d", "a5 ", "a²", "a99999999999999999999", "o5.99999999999999999999"]
)
def test_a_cursor_with_another_ending_is_refused(two: tuple[Party, Party], tail: str) -> None:
    ada, bob = two
    assert bob.refusal("envelope.list", after=f"{epoch(ada, bob)}-{tail}") == "bad_cursor"


def epoch(ada: Party, bob: Party) -> str:
    """The mark of this store that its cursors carry."""
    ada.tell(bob)
    ada.tell(bob)
    return str(bob.call("envelope.list", page_size=1)["next"]).partition("-")[0]


def test_a_cursor_of_another_store_is_answered_with_gap(two: tuple[Party, Party]) -> None:
    ada, bob = two
    for _ in range(2):
        ada.tell(bob)
    for owner, box in ((bob, "inbox"), (ada, "outbox")):
        _, _, place = owner.call("envelope.list", box=box, page_size=1)["next"].partition("-")
        assert owner.refusal("envelope.list", box=box, after=f"00000000-{place}") == "gap"


def test_a_cursor_of_another_kind_of_list_is_refused(two: tuple[Party, Party]) -> None:
    ada, bob = two
    for _ in range(2):
        ada.tell(bob)
        ada.tell(bob, deliver_at="+2h")
    inbox = bob.call("envelope.list", page_size=1)["next"]
    outbox = ada.call("envelope.list", box="outbox", page_size=1)["next"]
    with_deferred = boss(ada.daemon).call("envelope.list", address=bob.address, page_size=1)["next"]
    assert bob.refusal("envelope.list", after=outbox) == "bad_cursor"
    assert ada.refusal("envelope.list", box="outbox", after=inbox) == "bad_cursor"
    assert bob.refusal("envelope.list", after=with_deferred) == "bad_cursor"
