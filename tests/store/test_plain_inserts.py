"""A plain message is inserted with few columns: it is the same row as one with all of them."""

from __future__ import annotations

from typing import Any

import pytest

from hiboss.core.address import Address
from hiboss.core.envelope import Status
from hiboss.store import destinations, envelopes
from tests.store.chat_scene import BOSS_ID, NEX
from tests.store.written_house import WrittenHouse

KAI, MAX, ANN, BOSS = (
    Address(*one.split(":")) for one in ("agent:kai", "agent:max", "user:ann", "user:boss")
)
NUMBERED = {
    "id",
    "message",
    "seq",
    "arrived",
    "created_at",
    "arrived_at",
    "done_at",
}  # differ by their nature


@pytest.fixture
def house(written: WrittenHouse) -> WrittenHouse:
    return written


def rows(house: WrittenHouse, message: int) -> dict[str, list[dict[str, Any]]]:
    """Return everything that is stored of a message, without what differs from one to the next."""
    queries = {
        "message": "SELECT * FROM message WHERE id = ?",
        "envelope": "SELECT * FROM envelope WHERE message = ? ORDER BY id",
        "tag": "SELECT * FROM tag WHERE message = ? ORDER BY kind, name, value",
    }
    found = {name: house.execute(query, message) for name, query in queries.items()}
    return {
        name: [{key: value for key, value in row.items() if key not in NUMBERED} for row in some]
        for name, some in found.items()
    }


def both_ways(
    house: WrittenHouse, monkeypatch: pytest.MonkeyPatch, sender: int, *to: Address, text: str
) -> tuple[int, int]:
    """Send the same draft twice, the second time with all columns; return the messages."""
    plain = house.sends(sender, *to, text=text).message
    with monkeypatch.context() as patch:
        patch.setattr(destinations, "is_plain", lambda draft: False)
        patch.setattr(envelopes, "_INSERT_PLAIN", "no statement")
        # An agent's envelope has nothing else to say, and yet all columns: of a copy for nobody.
        insert = envelopes.insert

        def whole(*args: Any, **more: Any) -> int:
            number = insert(*args, **{**more, "offered": True})
            args[0].execute("UPDATE envelope SET offered = 0 WHERE id = ?", (number,))
            return number

        patch.setattr(envelopes, "insert", whole)
        other = house.sends(sender, *to, text=text).message
    return plain, other


@pytest.mark.parametrize("sender", ["nex", "ann", "boss"])
@pytest.mark.parametrize(
    "to", [(KAI,), (ANN,), (BOSS,), (KAI, MAX, ANN, BOSS)], ids=["agent", "person", "boss", "all"]
)
def test_a_plain_message_is_the_same_row_as_one_with_all_columns(
    house: WrittenHouse, monkeypatch: pytest.MonkeyPatch, sender: str, to: tuple[Address, ...]
) -> None:
    number = {"nex": NEX, "ann": house.ann, "boss": BOSS_ID}[sender]
    plain, whole = both_ways(house, monkeypatch, number, *to, text="hello")
    found = rows(house, plain)
    assert found == rows(house, whole)
    (message,) = found["message"]
    assert (message["sender"], message["caller"], message["text"]) == (number, number, "hello")
    assert len(found["envelope"]) == len(to)


def test_mail_for_a_person_is_done_on_arrival_and_mail_for_an_agent_is_not(house: WrittenHouse) -> None:
    found = house.execute(
        "SELECT status, done_at, unread, arrived IS NULL AS waits FROM envelope WHERE message = ? ORDER BY id",
        house.sends(NEX, KAI, ANN, BOSS).message,
    )
    done = {"status": int(Status.DONE), "done_at": house.now, "unread": 1, "waits": 0}
    assert found == [{**done, "status": int(Status.PENDING), "done_at": None}, done, done]


def test_a_plain_message_has_arrived_when_it_is_stored_and_is_numbered(house: WrittenHouse) -> None:
    sent = [house.sends(NEX, KAI, text=f"{number}") for number in range(3)]
    found = house.execute(
        "SELECT id, seq, created_at, arrived_at FROM message WHERE conversation = ? ORDER BY id",
        sent[0].conversation,
    )
    assert [row["seq"] for row in found] == [1, 2, 3]
    assert [row["id"] for row in found] == [one.message for one in sent]
    assert [row["arrived_at"] for row in found] == [row["created_at"] for row in found]
    assert [one.thread for one in sent] == [one.message for one in sent]


def test_mentions_in_a_plain_text_are_tagged(house: WrittenHouse, monkeypatch: pytest.MonkeyPatch) -> None:
    plain, whole = both_ways(house, monkeypatch, NEX, KAI, text="ask @max and @ann, not me@kai.example")
    tags = rows(house, plain)["tag"]
    assert [(one["name"], one["value"]) for one in tags] == [("ann", "user"), ("max", "agent")]
    assert tags == rows(house, whole)["tag"]
