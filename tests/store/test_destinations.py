"""Where plain drafts go is found once, and found again after everything that it depends on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hiboss.core.address import BACKGROUND, SYSTEM, Address
from hiboss.core.envelope import Attachment, Draft, Kind, Priority
from hiboss.core.errors import Archived, StoreFull, UnknownRecipient, UnknownSender
from hiboss.store import agents, destinations, groups, places, writer_cache
from hiboss.store.destinations import is_plain
from hiboss.store.group_commit import Tx
from hiboss.store.writer_cache import WriterCache
from tests.store.chat_scene import BOSS_ID, KAI, NEX
from tests.store.group_house import CORE
from tests.store.written_house import Operation, WrittenHouse

AGENT_NEX, AGENT_KAI, AGENT_MAX = Address("agent", "nex"), Address("agent", "kai"), Address("agent", "max")
ANN, BOSS = Address("user", "ann"), Address("user", "boss")
BOB = Address("channel", "folder:7")


@pytest.fixture
def house(written: WrittenHouse) -> WrittenHouse:
    return written


class Refused(Exception):
    """What an operation of these tests fails with."""


# --- what is plain -----------------------------------------------------------------------

ATTACHMENT = Attachment(name="a", sha256="0", size=1, mime="text/plain", file="00/0")
OPTIONS: dict[str, Any] = {
    "subject": "lunch",
    "kind": Kind.MARKDOWN,
    "priority": Priority.HIGH,
    "attachments": (ATTACHMENT,),
    "deliver_at": 5,
    "reply_to": ("message", 1),
    "interruptible": False,
    "auto": True,
    "from_boss": True,
    "from_name": "Ada",
    "run": 1,
    "trace": "m1",
    "named": True,
    "hops": 1,
    "metadata": {},
    "key": "k",
    "digest": b"",
    "channel": {},
    "place": BOB,
    "conversation": 1,
    "forward": False,
    "gone": (1,),
    "context": True,
    "binding": 1,
    "parse_mode": Kind.TEXT,
    "tags": (("scope", "module", "auth"),),
    "session": "r1",
    "ack_within": 1,
    "to_sender": True,
    "repeats": True,
    "about": 1,
}
PLAIN = Draft(AGENT_NEX, NEX, (AGENT_KAI,), "hello")


def test_every_option_of_a_draft_is_named_here() -> None:
    assert set(OPTIONS) == set(Draft._field_defaults) - {"sees_all"}


@pytest.mark.parametrize("option", OPTIONS)
def test_a_draft_with_any_option_is_not_plain(option: str) -> None:
    assert is_plain(PLAIN) and is_plain(PLAIN._replace(sees_all=True))
    assert not is_plain(PLAIN._replace(**{option: OPTIONS[option]}))


# --- what is kept ------------------------------------------------------------------------


def test_who_writes_to_whom_is_found_once_and_kept(
    house: WrittenHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    searches = []
    find = destinations._find

    def counted(tx: Tx, draft: Draft, now: int) -> Any:
        searches.append(draft.to)
        return find(tx, draft, now)

    monkeypatch.setattr(destinations, "_find", counted)
    sent = [house.sends(NEX, AGENT_KAI, text=text) for text in ("one", "two", "three")]
    assert searches == [(AGENT_KAI,)]
    assert len({one.conversation for one in sent}) == 1 and [one.recipients for one in sent] == [(KAI,)] * 3
    house.sends(KAI, AGENT_NEX)
    house.sends(NEX, AGENT_KAI, AGENT_MAX)
    assert searches[1:] == [(AGENT_NEX,), (AGENT_KAI, AGENT_MAX)]
    assert len(house.kept()) == 3


def test_what_one_may_is_not_kept_for_another(house: WrittenHouse) -> None:
    """The boss may write as nex, and nex itself. The same of somebody else is refused, however often they did."""
    as_nex = Draft(AGENT_NEX, BOSS_ID, (AGENT_KAI,), "hello", sees_all=True)
    send = destinations.find
    house.write(lambda tx: send(tx, as_nex, house.now, plain=True))
    house.sends(NEX, AGENT_KAI)
    for other in (as_nex._replace(caller=KAI, sees_all=False), as_nex._replace(sees_all=False)):
        with pytest.raises(UnknownSender):
            house.write(lambda tx, other=other: send(tx, other, house.now, plain=True))


@pytest.mark.parametrize("option", ["subject", "priority", "metadata", "session"])
def test_a_draft_with_an_option_neither_uses_nor_keeps_what_is_kept(house: WrittenHouse, option: str) -> None:
    house.sends(NEX, AGENT_KAI, **{option: OPTIONS[option]})
    assert house.kept() == []


def test_a_draft_to_many_is_not_kept(house: WrittenHouse) -> None:
    """What is kept is counted by entries: lists of a hundred recipients would fill the memory."""
    most = destinations.KEPT_RECIPIENTS
    house.sends(NEX, *[AGENT_KAI] * (most + 1))
    assert house.kept() == []
    house.sends(NEX, *[AGENT_KAI] * most)
    assert len(house.kept()) == 1


def test_a_draft_to_a_chat_is_not_kept(house: WrittenHouse) -> None:
    """Its account may be removed, or blocked there, which the cache does not know."""
    assert house.sends(NEX, BOB).lanes
    house.sends(NEX, BOB, AGENT_KAI)
    assert house.kept() == []


def test_a_draft_to_a_group_is_not_kept(house: WrittenHouse) -> None:
    house.create(NEX, "core", KAI)
    assert house.got(house.sends(NEX, CORE).message) == {"kai"} and house.kept() == []
    house.add(NEX, house.max)
    assert house.got(house.sends(NEX, CORE).message) == {"kai", "max"}


def test_a_task_for_the_background_is_not_kept(house: WrittenHouse) -> None:
    """Whether its sender has a provider is read each time."""
    house.write(lambda tx: tx.cache.add_address(BACKGROUND))
    for written in (BACKGROUND, Address("agent", "BackGround")):
        assert house.sends(NEX, written).envelopes
    assert house.kept() == []


def test_agent_system_gets_nothing_and_nothing_of_that_is_kept(house: WrittenHouse) -> None:
    house.write(lambda tx: tx.cache.live_address(SYSTEM) or tx.cache.add_address(SYSTEM))
    with pytest.raises(UnknownRecipient):
        house.sends(NEX, SYSTEM)
    assert house.kept() == []


def test_what_somebody_says_who_stands_in_for_an_agent_is_not_kept(house: WrittenHouse) -> None:
    """Max speaks in the group in the place of nex, until somebody joins: then he writes to Ann alone."""
    group = house.create(NEX, "core", house.ann)
    house.order("route", house.max, agent=NEX, conversation=group)
    assert house.sends(house.max, ANN).conversation == group and house.kept() == []
    house.add(NEX, KAI)
    assert house.sends(house.max, ANN).conversation != group


# --- what it depends on ------------------------------------------------------------------


def gone(house: WrittenHouse) -> None:
    house.do(lambda tx, now: agents.delete(tx, "kai", now))


def sender_back(house: WrittenHouse) -> None:
    house.do(lambda tx, now: agents.delete(tx, "nex", now))
    house.do(lambda tx, now: agents.register(tx, "nex", {}, now))


def rename(number: int, name: str) -> Callable[[WrittenHouse], None]:
    def change(house: WrittenHouse) -> None:
        entry = house.actor(number).entry
        house.write(lambda tx: tx.cache.rename_address(entry, Address("agent", name)))

    return change


def archive(house: WrittenHouse) -> None:
    house.do(lambda tx, now: groups.archive(tx, talk(house), house.actor(BOSS_ID), True, now))


def talk(house: WrittenHouse) -> int:
    """Return the conversation of what was sent first."""
    return int(house.execute("SELECT conversation FROM message WHERE text = 'first'")[0]["conversation"])


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (gone, UnknownRecipient),
        (rename(KAI, "kim"), UnknownRecipient),
        (sender_back, UnknownSender),
        (rename(NEX, "nia"), UnknownSender),
        (archive, Archived),
    ],
    ids=["recipient gone", "recipient renamed", "sender anew", "sender renamed", "archived"],
)
def test_what_may_not_be_sent_any_more_is_refused(
    house: WrittenHouse, change: Callable[[WrittenHouse], None], error: type[Exception]
) -> None:
    again = house.sending(NEX, AGENT_KAI, text="again")
    house.sends(NEX, AGENT_KAI, text="first")
    assert len(house.kept()) == 1
    change(house)
    assert house.kept() == []
    with pytest.raises(error):
        house.write(again)


def test_a_chat_that_becomes_one_with_another_speaks_where_that_one_does(house: WrittenHouse) -> None:
    """What the boss sends as a chat is kept. The chat may have another number when two have become one."""
    as_chat = Draft(Address("channel", "folder:-9"), BOSS_ID, (AGENT_NEX,), "hello", sees_all=True)
    before = house.write(lambda tx: destinations.find(tx, as_chat, house.now, plain=True))[1]
    assert house.kept() == [before]
    house.do(lambda tx, now: places.rename_chat(tx, house.binding, "folder", "7", "-9", now))
    after = house.write(lambda tx: destinations.find(tx, as_chat, house.now, plain=True))[1]
    assert after.sender.id != before.sender.id and after.conversation != before.conversation


@pytest.mark.parametrize(
    "change",
    [
        lambda cache: cache.rename_address(cache.live_address(AGENT_KAI), AGENT_KAI),
        lambda cache: cache.retire_address(cache.add_address(Address("agent", "kim")), 1),
        lambda cache: cache.forget_routes(),
        lambda cache: cache.forget_closed(),
        lambda cache: cache.forget_conversations(),
        lambda cache: cache.back_to_mark(wrote=True),
        lambda cache: cache.forget(),
    ],
    ids=["rename", "retire", "routes", "closed", "conversations", "rolled back", "all"],
)
def test_nothing_is_kept_when_the_cache_forgets_what_it_was_found_by(
    house: WrittenHouse, change: Callable[[WriterCache], None]
) -> None:
    house.sends(NEX, AGENT_KAI)
    house.write(lambda tx: change(tx.cache))
    assert house.kept() == []


# --- what is rolled back -----------------------------------------------------------------


def meets(house: WrittenHouse, error: Operation) -> Operation:
    """Return an operation that registers kim, writes to kim, and fails."""
    write = house.sending(NEX, Address("agent", "kim"), text="lost")

    def operation(tx: Tx) -> None:
        agents.register(tx, "kim", {}, house.now)
        write(tx)
        assert len(tx.cache.destinations) > 0
        error(tx)

    return operation


def refuse(tx: Tx) -> None:
    raise Refused


def break_the_file(tx: Tx) -> None:
    """Fail in a way that speaks of the file: the group is lost."""
    tx.execute(f"PRAGMA max_page_count = {tx.execute('PRAGMA page_count').fetchone()[0]}")
    try:
        tx.execute("INSERT INTO config (key, value) VALUES ('x', CAST(zeroblob(10000000) AS TEXT))")
    finally:
        tx.execute("PRAGMA max_page_count = 4294967294")


@pytest.mark.parametrize(
    ("error", "told"), [(refuse, Refused), (break_the_file, StoreFull)], ids=["savepoint", "lost group"]
)
def test_where_a_draft_went_that_was_rolled_back_is_not_kept(
    house: WrittenHouse, error: Operation, told: type[Exception]
) -> None:
    house.sends(NEX, AGENT_KAI)
    lost, other = house.group(meets(house, error), house.sending(NEX, AGENT_KAI, text="beside it"))
    assert type(lost) is told
    assert isinstance(other, Exception) == (told is StoreFull)
    with pytest.raises(UnknownRecipient):
        house.sends(NEX, Address("agent", "kim"))
    house.do(lambda tx, now: agents.register(tx, "zoe", {}, now))  # it may have the number that kim had
    assert house.who_got(house.sends(NEX, AGENT_KAI).message) == {"kai": "pending"}


def test_the_memory_of_what_is_kept_is_bounded(house: WrittenHouse, monkeypatch: pytest.MonkeyPatch) -> None:
    everybody = [AGENT_NEX, AGENT_KAI, AGENT_MAX, ANN, BOSS]
    pairs = [(one, other) for one in (NEX, KAI, house.max) for other in everybody]
    for sender, to in pairs:
        house.sends(sender, to)
    assert len(house.kept()) == len(pairs)
    cache = house._tx.cache
    others = len(cache._conversations) + len(cache._addresses) + len(cache._last_seq)
    monkeypatch.setattr(writer_cache, "MEMORY", others + len(pairs) - 1)
    house.write(lambda tx: None)
    assert house.kept() == []
    assert house.who_got(house.sends(NEX, AGENT_KAI).message) == {"kai": "pending"}
