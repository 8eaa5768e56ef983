"""Sessions in the store: whose they are, when the next turn resumes one, and what ends it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hiboss.core import clock
from hiboss.core.address import BACKGROUND, Address
from hiboss.core.contracts.provider import Usage
from hiboss.store import (
    agents,
    clock_steps,
    identities,
    places,
    provider_sessions,
    run_settlement,
    run_start,
    session_scopes,
    users,
)
from hiboss.store.connection import Connection
from hiboss.store.group_commit import Tx
from hiboss.store.provider_sessions import SessionKind, SessionStart
from hiboss.store.run_limits import Bounds
from hiboss.store.run_start import Start, Turn
from tests.store.chat_scene import BOSS_ID, BOSS_IN_GROUP, GROUP, HIS, HOUR, KAI, NEX, Scene, scene
from tests.store.route_cast import Cast

NEX_ADDRESS, KAI_ADDRESS = Address("agent", "nex"), Address("agent", "kai")
ADA = Address("user", "boss")
OWN = {"demo": SessionKind(own_ids=True, settings=frozenset({"program"}))}
THEIRS = {"demo": SessionKind(settings=frozenset({"program"}))}


class Office(Cast):
    """The scene of routes, whose agents have sessions; hiboss makes their ids."""

    def __init__(self, chat: Scene) -> None:
        super().__init__(chat)
        self.kinds = OWN
        self._ids = (f"s-{number}" for number in itertools.count(1))

    def begins(self, agent: int = NEX) -> Turn | None:
        self.now += 1_000
        bounds = Bounds(16, 50, self.now - HOUR, self.now + HOUR)
        session = SessionStart(next(self._ids), self.kinds)
        start = Start(f"hbr_{next(self._numbers)}", self.now, 1, bounds, session)
        return self.write(lambda tx: run_start.begin(tx, agent, start))

    def notes(self, turn: Turn, session: str | None = None) -> None:
        """Let a provider say that it uses a session; by default the one that it was given."""
        named = session or turn.session
        assert named is not None
        self.write(lambda tx: provider_sessions.note(tx, turn.told, named, self.now))

    def ends(self, turn: Turn, text: str = "NO_REPLY", **how: Any) -> None:
        self.complete(turn, text)
        self.write(lambda tx: provider_sessions.settled(tx, turn.run, self.now, **how))

    def thinks(self, agent: int = NEX) -> Turn:
        """Let an agent take a turn in its session."""
        turn = self.begin(agent)
        self.notes(turn)
        self.ends(turn)
        return turn

    def asked(self, sender: int = BOSS_ID, to: Address = NEX_ADDRESS) -> str:
        """Let somebody write to an agent, and it think; return the session of its turn."""
        self.send(sender, to)
        session = self.thinks(agents.get(self.connection, to.name)["id"]).session
        assert session is not None
        return session

    def waits(self, sender: int = BOSS_ID, to: Address = NEX_ADDRESS) -> Turn:
        """Let somebody write to an agent, and its turn begin."""
        self.send(sender, to)
        return self.begin(agents.get(self.connection, to.name)["id"])

    def set(self, agent: int = NEX, **columns: Any) -> None:
        """Change an agent, as `agent.set` does."""
        name = {NEX: "nex", KAI: "kai"}[agent]

        def write(tx: Tx) -> None:
            agents.change(tx, name, columns)
            if "session_scope" in columns:
                provider_sessions.scope_changed(tx, agent, self.now)

        self.write(write)

    def refresh(self, agent: str = "nex", conversation: int | None = None) -> int:
        return self.write(
            lambda tx: provider_sessions.refresh(tx, agents.get(tx, agent), conversation, self.now)
        )

    def sessions(self, agent: int = NEX) -> dict[str, tuple[str, str | None]]:
        """The session of each scope, and why it is not resumed."""
        rows = self.execute("SELECT * FROM provider_session WHERE agent = ?", agent)
        return {one["scope"]: (one["session"], one["stale_why"]) for one in rows}

    def scope(self, conversation: int, agent: int = NEX) -> str:
        row = agents.by_id(self.connection, agent)
        assert row is not None
        return session_scopes.key(self.connection, row, conversation)


@pytest.fixture
def office(tmp_path: Path) -> Iterator[Office]:
    with scene(tmp_path) as made:
        yield Office(made)


# --- whose it is -------------------------------------------------------------------------


def test_the_terminal_and_the_private_chat_of_the_boss_share_one_session(office: Office) -> None:
    terminal = office.asked()
    office.comes_in(**HIS, text="it is me", message="1")
    assert office.thinks().session == terminal
    assert office.sessions() == {f"u{BOSS_ID}": (terminal, None)}


def test_everybody_else_has_a_session_of_its_own(office: Office) -> None:
    sessions = [office.asked(), office.asked(office.ann), office.asked(KAI), office.asked(NEX)]
    office.bob("hello")
    sessions.append(office.thinks().session or "")
    office.asks("all of you")
    sessions.append(office.thinks().session or "")
    assert len(set(sessions)) == 6
    # Also the boss, where others hear him: what he says in a group is of the group.
    office.comes_in(**BOSS_IN_GROUP, text="and I", mentioned=True, message="2")
    assert office.thinks().session == sessions[-1]
    assert [office.asked(), office.asked(office.ann), office.asked(KAI), office.asked(NEX)] == sessions[:4]


def test_a_conversation_of_the_boss_with_two_agents_is_no_private_one(office: Office) -> None:
    alone = office.asked()
    office.send(BOSS_ID, NEX_ADDRESS, KAI_ADDRESS)
    assert office.thinks().session != alone
    assert office.asked() == alone


def test_what_came_in_from_a_chat_before_it_was_the_boss_is_his(office: Office) -> None:
    office.execute("DELETE FROM identity")
    message = office.comes_in(**HIS, text="before", message="1").accepted
    assert message is not None
    number = office.conversation(message.message)
    assert office.scope(number) == f"c{number}"
    office.execute("UPDATE contact SET state = 'asking' WHERE platform_id = '777'")
    office.write(lambda tx: identities.set_boss(tx, "folder", "777", office.now))
    assert office.scope(number) == f"u{BOSS_ID}"
    assert office.begin().session == office.sessions()[f"u{BOSS_ID}"][0]
    # He named a wrong id: the chat is somebody else's, who must not get the boss's memory.
    office.write(lambda tx: identities.set_boss(tx, "folder", "7", office.now))
    assert office.scope(number) == f"c{number}"


def test_only_a_private_chat_that_is_the_boss_is_him(office: Office) -> None:
    message = office.bob("hello")
    number = office.conversation(message)
    assert office.scope(number) == f"c{number}"
    office.execute("UPDATE contact SET state = 'boss' WHERE platform_id = '7'")
    assert office.scope(number) == f"u{BOSS_ID}"
    office.execute("UPDATE contact SET kind = 'group' WHERE platform_id = '7'")
    assert office.scope(number) == f"c{number}"
    office.execute("UPDATE contact SET kind = 'private', state = 'allowed' WHERE platform_id = '7'")


@pytest.mark.parametrize(("scope", "different"), [("conversation", 2), ("agent", 1)])
def test_with_another_scope_others_share_one(office: Office, scope: str, different: int) -> None:
    office.set(session_scope=scope)
    assert len({office.asked(), office.asked(KAI)}) == len(office.sessions()) == different
    assert ("all" in office.sessions()) is (scope == "agent")


def test_another_scope_begins_new_sessions_also_on_the_way_back(office: Office) -> None:
    first = office.asked()
    office.set(session_scope="conversation")
    second = office.asked()
    office.set(session_scope="person")
    assert len({first, second, office.asked()}) == 3


def test_another_scope_during_a_turn_keeps_its_session_from_being_resumed(office: Office) -> None:
    turn = office.waits()
    office.set(session_scope="agent")
    office.notes(turn)
    office.ends(turn)
    office.set(session_scope="person")
    office.send(BOSS_ID, NEX_ADDRESS)
    assert office.begin().session != turn.session


# --- stand-ins ---------------------------------------------------------------------------


@pytest.mark.parametrize("event", ["handoff", "route"])
def test_who_stands_in_remembers_that_conversation_apart_from_its_own(office: Office, event: str) -> None:
    office.send(BOSS_ID, NEX_ADDRESS)
    turn = office.begin()
    office.notes(turn)
    office.ends(turn, "yes")  # who has said nothing is not asked for a summary
    mine = turn.session
    his_own = office.asked(to=KAI_ADDRESS)
    [row] = office.execute("SELECT conversation FROM run WHERE agent = ? LIMIT 1", NEX)
    office.order(event, KAI, conversation=row["conversation"])
    if event == "handoff":  # nex is asked for a summary, and remembers
        assert office.thinks(NEX).session == mine
    office.send(BOSS_ID, NEX_ADDRESS)
    stands_in = office.thinks(KAI)
    assert stands_in.session not in (mine, his_own)
    assert office.asked(to=KAI_ADDRESS) == his_own
    office.order(event, NEX, conversation=row["conversation"])
    assert office.asked() == mine


# --- ids that hiboss makes ---------------------------------------------------------------


def test_the_id_is_stored_with_the_beginning_of_the_turn(office: Office) -> None:
    turn = office.waits()
    assert (turn.session, turn.session_is_new, turn.session_why_new) == ("s-1", True, None)
    [row] = office.execute("SELECT begun_at FROM provider_session")
    assert row["begun_at"] is None
    assert office.execute("SELECT session FROM run") == [{"session": "s-1"}]


def test_a_first_turn_that_was_killed_is_resumed(office: Office) -> None:
    turn = office.waits()
    office.crash()
    again = office.begin()
    assert (again.session, again.session_is_new) == (turn.session, True)
    office.notes(again)  # it is known to exist now
    office.crash()
    third = office.begin()
    assert (third.session, third.session_is_new) == (turn.session, False)


def test_a_turn_in_the_background_has_none(office: Office) -> None:
    office.asked()
    office.write(lambda tx: tx.cache.add_address(BACKGROUND))
    office.send(NEX, BACKGROUND, text="do it")
    [row] = office.execute("SELECT max(id) AS id FROM envelope")
    start = Start("hbr_b", office.now, 1, Bounds(16, 50, 0, office.now), SessionStart("s-task", OWN))
    turn = office.write(lambda tx: run_start.begin_background(tx, row["id"], start))
    assert turn is not None and (turn.session, turn.session_is_new) == (None, False)
    before = office.sessions()
    office.notes(turn, "s-other")
    office.ends(turn)
    assert office.sessions() == before


def test_an_id_of_the_provider_replaces_the_one_that_hiboss_made_and_the_memory_goes_on(
    office: Office,
) -> None:
    first = office.waits()
    office.notes(first)
    office.write(lambda tx: provider_sessions.note_memory(tx, first.run, "hash"))
    office.ends(first)
    turn = office.waits()
    office.notes(turn, "forked")
    office.ends(turn)
    again = office.waits()
    assert (again.session, again.session_is_new) == ("forked", False)
    assert provider_sessions.memory_hash(office.connection, again.run) == "hash"


# --- what ends it ------------------------------------------------------------------------


def test_a_refresh_ends_the_sessions_of_one_conversation_or_all(office: Office) -> None:
    boss, ann = office.asked(), office.asked(office.ann)
    [row] = office.execute("SELECT conversation FROM run ORDER BY id LIMIT 1")
    assert office.refresh(conversation=row["conversation"]) == 1
    assert office.refresh(conversation=row["conversation"]) == 0
    turn = office.waits()
    assert turn.session != boss and turn.session_why_new == "refreshed"
    office.notes(turn)
    office.ends(turn)
    assert office.asked(office.ann) == ann
    assert office.refresh() == 2
    assert office.asked() != turn.session and office.asked(office.ann) != ann


@pytest.mark.parametrize("kinds", [OWN, THEIRS], ids=["own", "theirs"])
@pytest.mark.parametrize("confirmed", [True, False])
def test_a_run_under_way_keeps_a_refreshed_session_and_does_not_bring_it_back(
    office: Office, kinds: dict[str, SessionKind], confirmed: bool
) -> None:
    office.kinds = kinds
    turn = office.waits()
    if confirmed:
        office.notes(turn, "one")
    office.refresh()
    [run] = office.execute("SELECT session FROM run")
    assert run["session"] == ("one" if confirmed else turn.session)  # it goes on
    office.notes(turn, "one")
    office.notes(turn, "two")
    office.ends(turn)
    again = office.waits().session
    assert again is None if kinds is THEIRS else again not in ("one", "two", turn.session)


def test_a_refresh_after_a_loss_means_that_it_is_to_know_nothing(office: Office) -> None:
    office.kinds = THEIRS
    turn = office.waits()
    office.notes(turn, "one")
    office.ends(turn)
    turn = office.waits()
    office.write(lambda tx: provider_sessions.lost(tx, turn.told, "one", None, office.now))
    office.crash()
    office.refresh()
    assert office.begin().session_why_new == "refreshed"


def test_a_lost_session_is_replaced_by_a_new_id_also_after_a_crash(office: Office) -> None:
    old = office.asked()
    turn = office.waits()
    assert turn.session == old
    office.write(lambda tx: provider_sessions.lost(tx, turn.told, old, "fresh", office.now))
    assert office.execute("SELECT session FROM run ORDER BY id DESC LIMIT 1") == [{"session": "fresh"}]
    office.crash()
    again = office.begin()
    assert (again.session, again.session_is_new, again.session_why_new) == ("fresh", True, "lost")
    office.notes(again)
    office.ends(again)
    third = office.waits()
    assert (third.session, third.session_is_new, third.session_why_new) == ("fresh", False, None)


def test_a_session_lost_in_a_refreshed_run_leaves_nothing(office: Office) -> None:
    old = office.asked()
    turn = office.waits()
    office.refresh()
    office.write(lambda tx: provider_sessions.lost(tx, turn.told, old, "fresh", office.now))
    office.notes(turn, "fresh")
    office.ends(turn)
    again = office.waits()
    assert again.session not in (old, "fresh") and again.session_why_new == "refreshed"


def test_a_session_that_something_of_its_run_may_still_use_is_not_resumed(office: Office) -> None:
    turn = office.waits()
    office.notes(turn)
    office.ends(turn, in_use=True)
    again = office.waits()
    assert again.session != turn.session and again.session_why_new == "lost"


def test_the_sessions_of_a_deleted_agent_are_gone_and_its_name_gets_none_of_them(office: Office) -> None:
    office.asked()
    turn = office.waits()
    office.write(lambda tx: agents.delete(tx, "nex", office.now))
    office.notes(turn, "late")
    assert office.execute("SELECT * FROM provider_session") == []
    fields = {"mode": "run", "provider": "demo"}
    number = office.write(lambda tx: agents.register(tx, "nex", fields, office.now))
    office.complete(turn)
    office.send(BOSS_ID, NEX_ADDRESS)
    again = office.begin(number)
    assert (again.session_is_new, again.session_why_new) == (True, None)


def test_the_sessions_with_a_deleted_person_are_gone(office: Office) -> None:
    office.asked(office.ann)
    turn = office.waits(office.ann)
    ann = users.get(office.connection, "ann")
    office.write(lambda tx: users.delete(tx, ann, office.now))
    office.notes(turn)
    assert office.sessions() == {}


# --- two chats become one ----------------------------------------------------------------


def merge(office: Office) -> None:
    """Let the group -9 become the chat -10, in which something came in before."""
    office.write(lambda tx: places.rename_chat(tx, office.binding, "folder", "-9", "-10", office.now))


def in_group(office: Office, chat: str) -> Turn:
    office.comes_in(**{**GROUP, "chat": chat}, text="hello", mentioned=True, message=f"{office.now}")
    return office.begin()


@pytest.fixture
def two_chats(office: Office) -> Office:
    office.execute(
        """
        INSERT INTO contact (binding, platform_id, kind, state, created_at) VALUES (?, '-10', 'group', 'allowed', 1)
        """,
        office.binding,
    )
    return office


def test_of_two_chats_that_become_one_the_session_of_the_kept_one_goes_on(two_chats: Office) -> None:
    office = two_chats
    kept = in_group(office, "-9")
    office.notes(kept)
    office.ends(kept)
    gone = in_group(office, "-10")
    office.notes(gone)
    merge(office)  # while the turn in the other one is under way
    office.notes(gone)
    office.ends(gone)
    assert in_group(office, "-10").session == kept.session
    assert len(office.sessions()) == 1


@pytest.mark.parametrize("stale", [True, False])
def test_the_session_of_the_chat_that_is_gone_goes_on_if_the_kept_one_has_none(
    two_chats: Office, stale: bool
) -> None:
    office = two_chats
    if stale:
        turn = in_group(office, "-9")
        office.notes(turn)
        office.ends(turn)
        office.refresh()
    gone = in_group(office, "-10")
    office.notes(gone)
    merge(office)
    office.ends(gone)
    assert in_group(office, "-10").session == gone.session


# --- settings ----------------------------------------------------------------------------


def test_another_provider_has_sessions_of_its_own_and_the_way_back_resumes(office: Office) -> None:
    office.kinds = {**OWN, "other": SessionKind(own_ids=True)}
    office.set(provider_config='{"program": "a"}')
    first = office.asked()
    office.set(provider="other", provider_config=None)
    assert office.asked() != first
    office.set(provider="demo", provider_config='{"program": "a", "color": "red"}')
    assert office.asked() == first
    office.set(provider="other", provider_config=None)
    office.set(provider="demo", provider_config='{"program": "b"}')
    turn = office.waits()
    assert turn.session != first and turn.session_why_new == "changed"


def test_a_change_during_the_first_turn_of_a_session_does_not_confirm_it(office: Office) -> None:
    turn = office.waits()
    office.set(provider_config='{"color": "red"}')
    office.notes(turn)
    office.ends(turn)
    again = office.waits()  # the id is known all the same; its provider looks whether it exists
    assert (again.session, again.session_is_new) == (turn.session, True)


# --- time --------------------------------------------------------------------------------


def at(text: str) -> int:
    return clock.parse(text, now=0, zone=clock.zone("UTC"))


@pytest.mark.parametrize(
    ("begun", "now", "fresh"),
    [
        ("2026-01-10T02:59:00Z", "2026-01-10T03:00:30Z", True),  # 04:00 in Berlin
        ("2026-01-10T03:00:00Z", "2026-01-10T03:01:00Z", False),
        ("2026-01-10T03:00:00Z", "2026-01-11T02:59:00Z", False),
        ("2026-01-10T03:00:00Z", "2026-01-13T02:59:00Z", True),
        ("2026-01-12T03:00:00Z", "2026-01-10T03:00:00Z", False),  # the clock was set back
    ],
)
def test_a_daily_reset_is_at_a_time_of_the_boss(office: Office, begun: str, now: str, fresh: bool) -> None:
    assert _resets(office, "04:00", begun, now) == ("reset" if fresh else None)


@pytest.mark.parametrize(
    ("begun", "now", "fresh"),
    [
        # 29 March 2026: 02:30 does not exist in Berlin, and the clock goes on with 03:00 (01:00 UTC).
        ("2026-03-29T00:10:00Z", "2026-03-29T00:59:30Z", False),
        ("2026-03-29T00:10:00Z", "2026-03-29T01:00:30Z", True),
        # 25 October 2026: 02:30 is at 00:30 and again at 01:30 UTC; only the first one counts.
        ("2026-10-25T00:10:00Z", "2026-10-25T00:30:30Z", True),
        ("2026-10-25T00:40:00Z", "2026-10-25T01:40:00Z", False),
        ("2026-10-25T00:40:00Z", "2026-10-26T01:29:00Z", False),
        ("2026-10-25T00:40:00Z", "2026-10-26T01:30:30Z", True),
    ],
)
def test_the_reset_comes_once_on_days_with_another_number_of_hours(
    office: Office, begun: str, now: str, fresh: bool
) -> None:
    assert _resets(office, "02:30", begun, now) == ("reset" if fresh else None)


def _resets(office: Office, reset: str, begun: str, now: str) -> str | None:
    office.execute("UPDATE user SET timezone = 'Europe/Berlin' WHERE boss = 1")
    office.set(session_reset=reset)
    office.now = at(begun) - 2_000  # two steps of the scene
    office.asked()
    assert office.execute("SELECT begun_at FROM provider_session") == [{"begun_at": at(begun)}]
    office.send(BOSS_ID, NEX_ADDRESS)
    office.now = at(now) - 1_000
    return office.begin().session_why_new


def test_a_session_that_was_not_used_for_long_is_not_resumed(office: Office) -> None:
    office.set(session_idle=3600)
    first = office.asked()
    office.now += HOUR - 2_000  # the next turn begins exactly an hour after the end of this one
    assert office.asked() == first
    turn = office.waits()
    office.now += 3 * HOUR  # a long turn is no pause
    office.ends(turn)
    assert office.asked() == first
    office.now += HOUR
    assert office.waits().session_why_new == "idle"


def test_a_session_is_full_by_its_last_model_call(office: Office) -> None:
    office.set(session_context=1000)
    first = office.asked()

    def uses(context: int | None) -> str | None:
        """Take a turn; the sum of its tokens is not what counts."""
        turn = office.waits()
        office.notes(turn)
        usage = Usage(90_000, 10, None, context)
        office.write(lambda tx: run_settlement.note_usage(tx, turn, usage, has_answer=True))
        office.ends(turn)
        return turn.session

    assert [uses(1000), uses(1001)] == [first, first]
    second = uses(900)
    assert second != first
    assert [uses(None), uses(1001)] == [second, second]
    assert office.waits().session_why_new == "full"


def test_a_turn_that_was_interrupted_goes_on_in_its_session_whatever_the_policy_says(office: Office) -> None:
    office.set(session_idle=60)
    first = office.asked()
    turn = office.waits()
    office.crash()
    office.now += HOUR
    again = office.begin()
    assert (again.session, again.session_why_new) == (first, None)
    office.ends(again)
    office.now += HOUR
    assert office.asked() != first  # the next one is not of that turn
    assert turn.session == first


def test_a_turn_that_was_interrupted_does_not_bring_a_refreshed_session_back(office: Office) -> None:
    first = office.asked()
    office.waits()
    office.crash()
    office.refresh()
    assert office.begin().session != first


def test_a_clock_that_was_set_back_ends_nothing_and_the_next_reset_counts(office: Office) -> None:
    office.set(session_reset="04:00", session_idle=3600)
    office.now = at("2031-01-10T12:00:00Z")  # a year too late
    first = office.asked()
    office.now = at("2030-01-10T12:00:00Z")
    assert office.asked() == first
    office.now += HOUR // 2
    assert office.asked() == first
    office.set(session_idle=None)
    office.now = at("2030-01-11T12:00:00Z")
    assert office.waits().session_why_new == "reset"


@pytest.mark.parametrize("step", [-5 * HOUR, 5 * HOUR])
def test_a_clock_that_is_set_makes_no_session_idle(office: Office, step: int) -> None:
    office.set(session_idle=3600)
    first = office.asked()
    office.write(lambda tx: clock_steps.move_waits(tx, "boot", 0, step, office.now))
    office.now += step + HOUR - 10_000
    assert office.asked() == first
    office.now += HOUR
    assert office.asked() != first


# --- shown -------------------------------------------------------------------------------


def test_the_list_names_people_and_shows_the_last_used_first(office: Office) -> None:
    office.asked()
    office.asked(KAI)
    office.asked(office.ann)

    def listed(connection: Connection, limit: int = 10) -> list[str]:
        return [row["person"] or row["scope"] for row in provider_sessions.listed(connection, NEX, limit)]

    found = listed(office.connection)
    assert (found[0], found[2]) == ("user:ann", "user:boss") and found[1].startswith("c")
    assert listed(office.connection, 1) == ["user:ann"]
