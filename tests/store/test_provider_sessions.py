"""Sessions in the store: whose they are, when the next turn resumes one, and what ends it."""

from __future__ import annotations

import pytest

from hiboss.core.address import BACKGROUND
from hiboss.core.contracts.adapter import Chat
from hiboss.store import (
    agents,
    bindings,
    identities,
    places,
    provider_sessions,
    run_start,
    users,
)
from hiboss.store.bindings import NewBinding
from hiboss.store.connection import Connection
from hiboss.store.provider_sessions import SessionKind, SessionStart
from hiboss.store.run_limits import Bounds
from hiboss.store.run_start import Start, Turn
from tests.store.chat_scene import BOSS_ID, BOSS_IN_GROUP, GROUP, HIS, KAI, NEX
from tests.store.session_office import KAI_ADDRESS, NEX_ADDRESS, OWN, THEIRS, Office

# --- whose it is -------------------------------------------------------------------------


def test_the_terminal_and_the_private_chat_of_the_boss_share_one_session(office: Office) -> None:
    terminal = office.asked()
    office.comes_in(**HIS, text="it is me", message="1")
    assert office.thinks().session == terminal and office.sessions() == {f"u{BOSS_ID}": (terminal, None)}


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
    assert office.thinks().session != alone and office.asked() == alone


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
    number = office.conversation(office.bob("hello"))
    assert office.scope(number) == f"c{number}"
    office.execute("UPDATE contact SET state = 'boss' WHERE platform_id = '7'")
    assert office.scope(number) == f"u{BOSS_ID}"
    office.execute("UPDATE contact SET kind = 'group' WHERE platform_id = '7'")
    assert office.scope(number) == f"c{number}"
    office.execute("UPDATE contact SET kind = 'private', state = 'allowed' WHERE platform_id = '7'")


def test_a_chat_that_is_somebody_elses_by_another_account_is_not_the_boss(office: Office) -> None:
    number = office.conversation(office.bob("hello"))
    second = NewBinding("folder", "second", {}, chats=[Chat("7")])
    office.write(lambda tx: bindings.add(tx, second, NEX, office.now))
    set_state = "UPDATE contact SET state = ? WHERE platform_id = '7' AND binding = ?"
    office.execute(set_state, "boss", office.binding)
    assert office.scope(number) == f"c{number}"
    office.execute(set_state, "boss", office.binding + 1)
    assert office.scope(number) == f"u{BOSS_ID}"


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
    office.finishes(turn)
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
    assert office.thinks(KAI).session not in (mine, his_own) and office.asked(to=KAI_ADDRESS) == his_own
    office.order(event, NEX, conversation=row["conversation"])
    assert office.asked() == mine


def test_the_answer_of_another_agent_comes_in_the_session_of_who_asked_first(office: Office) -> None:
    first = office.waits()
    office.notes(first)
    office.send(NEX, KAI_ADDRESS, text="what do you know?", run=first.run)
    office.ends(first)
    asked = office.begin(KAI)
    office.notes(asked)
    office.ends(asked, "a lot")
    heard = office.begin(NEX)
    assert (heard.session, heard.session_is_new) == (first.session, False)
    assert heard.conversation != first.conversation == heard.session_conversation


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
    office.finishes(turn, "s-other")
    assert office.sessions() == before


def test_an_id_of_the_provider_replaces_the_one_that_hiboss_made_and_the_memory_goes_on(
    office: Office,
) -> None:
    first = office.waits()
    office.notes(first)
    office.write(lambda tx: provider_sessions.note_memory(tx, first.run, "hash"))
    office.ends(first)
    office.finishes(office.waits(), "forked")
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
    office.finishes(turn)
    assert office.asked(office.ann) == ann
    assert office.refresh() == 2 and office.asked() != turn.session and office.asked(office.ann) != ann


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
    office.finishes(turn, "two")
    again = office.waits().session
    assert again is None if kinds is THEIRS else again not in ("one", "two", turn.session)


def test_a_refresh_after_a_loss_means_that_it_is_to_know_nothing(office: Office) -> None:
    office.kinds = THEIRS
    turn = office.waits()
    office.finishes(turn, "one")
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
    office.finishes(again)
    third = office.waits()
    assert (third.session, third.session_is_new, third.session_why_new) == ("fresh", False, None)


def test_a_session_lost_in_a_refreshed_run_leaves_nothing(office: Office) -> None:
    old = office.asked()
    turn = office.waits()
    office.refresh()
    office.write(lambda tx: provider_sessions.lost(tx, turn.told, old, "fresh", office.now))
    office.finishes(turn, "fresh")
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
    office.finishes(kept)
    gone = in_group(office, "-10")
    office.notes(gone)
    merge(office)  # while the turn in the other one is under way
    office.finishes(gone)
    assert in_group(office, "-10").session == kept.session and len(office.sessions()) == 1


@pytest.mark.parametrize("stale", [True, False])
def test_the_session_of_the_chat_that_is_gone_goes_on_if_the_kept_one_has_none(
    two_chats: Office, stale: bool
) -> None:
    office = two_chats
    if stale:
        office.finishes(in_group(office, "-9"))
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
    office.set(provider_config='{"program": "b"}')
    office.finishes(turn)
    office.set(provider_config=None)
    again = office.waits()  # the id is known all the same; its provider looks whether it exists
    assert (again.session, again.session_is_new) == (turn.session, True)


@pytest.mark.parametrize("kinds", [OWN, THEIRS], ids=["own", "theirs"])
def test_a_change_that_sessions_do_not_depend_on_keeps_the_session_of_a_turn(
    office: Office, kinds: dict[str, SessionKind]
) -> None:
    office.kinds = kinds
    office.set(provider_config='{"program": "a"}')
    turn = office.waits()
    office.set(provider_config='{"program": "a", "color": "red"}')
    office.finishes(turn, "s-kept")
    again = office.waits()
    assert (again.session, again.session_is_new, again.session_why_new) == ("s-kept", False, None)


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
