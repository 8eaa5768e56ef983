"""Which agent an open session is; its token; how it ends."""

from __future__ import annotations

import itertools
import os
import stat
from collections.abc import Iterator
from typing import Any

import pytest

from hiboss.core.address import RESERVED
from hiboss.store.attached_sessions import agent_name
from hiboss.testing.running_daemon import Answered, RunningDaemon
from tests.support.attached_sessions import Room, Session, room
from tests.support.parties import Party, agent
from tests.support.python_agents import Boss
from tests.support.raising import raised

_numbers = itertools.count(1)


@pytest.fixture
def opens(daemon: RunningDaemon) -> Iterator[Room]:
    with room(daemon) as made:
        yield made


@pytest.fixture
def place() -> str:
    """A directory that no other test uses."""
    return f"/work/place-{next(_numbers)}"


def found(opens: Room, directory: str, **fields: Any) -> Session:
    """Open a session that nobody named an agent for."""
    return opens.unnamed(directory=directory, **fields)


def refused(session: Session) -> str:
    return raised(Answered, session.start).stable_code


# --- who it is -----------------------------------------------------------------------------


def test_a_session_is_the_agent_that_a_person_named(daemon: RunningDaemon, opens: Room) -> None:
    kai = agent(daemon)
    assert opens(kai.name).address == opens(kai.name.upper()).address == kai.address


def test_a_session_for_an_agent_that_does_not_exist_is_refused(daemon: RunningDaemon) -> None:
    error = raised(Answered, Session, daemon, "nobody-of-that-name", pid=os.getpid())
    assert error.stable_code == "unknown_agent"


def test_a_new_agent_is_named_after_the_directory_and_has_no_turns_of_its_own(
    ada: Boss, opens: Room, place: str
) -> None:
    session = found(opens, place)
    assert session.name == os.path.basename(place)
    shown = ada.call("agent.status", name=session.name)["agent"]
    assert (shown["mode"], shown["provider"]) == ("pull", None)
    with session.daemon.database() as database:
        query = "SELECT workspace FROM agent JOIN address ON id = address WHERE name = ?"
        assert database.execute(query, (session.name,)).fetchone()["workspace"] == place


def test_a_session_that_is_resumed_is_the_same_agent(opens: Room, place: str) -> None:
    first = found(opens, place, session="to-be-resumed")
    token = first.token
    first.end()
    other = found(opens, place)  # it takes the place meanwhile
    assert other.name == first.name
    again = found(opens, "/somewhere/else", session="to-be-resumed")
    assert again.name == first.name and again.token != token


def test_a_session_after_clear_has_another_id_and_is_the_same_agent(opens: Room, place: str) -> None:
    first = found(opens, place)
    again = found(opens, place, session=f"{first.session}-cleared", pid=first.pid)
    assert again.name == first.name
    assert [one["session"] for one in again.call("attached.list")["sessions"]] == [again.session]


def test_a_compacted_session_keeps_its_token(opens: Room, place: str) -> None:
    session = found(opens, place)
    token = session.token
    session.start()
    assert session.token == token and session.listed()["session"] == session.session


def test_a_second_session_in_a_directory_is_another_agent(opens: Room, place: str) -> None:
    names = [found(opens, place).name for _ in range(3)]
    base = os.path.basename(place)
    assert names == [base, f"{base}-2", f"{base}-3"]


def test_sessions_of_both_programs_in_a_directory_are_two_agents(opens: Room, place: str) -> None:
    assert found(opens, place).name != found(opens, place, client="codex").name


def test_a_session_is_not_the_agent_that_another_one_was_named(
    opens: Room, daemon: RunningDaemon, place: str
) -> None:
    opens(agent(daemon).name, directory=place).end()
    assert found(opens, place).name == os.path.basename(place)


def test_a_name_that_an_agent_a_person_or_a_group_has_gets_a_number(
    daemon: RunningDaemon, ada: Boss, opens: Room, place: str
) -> None:
    name = os.path.basename(place)
    daemon.register(name)
    assert found(opens, place).name == f"{name}-2"
    ada.call("user.register", name=f"{name}-person")
    assert found(opens, f"/work/{name}-person").name == f"{name}-person-2"
    ada.call("conversation.create", name=f"{name}-group")
    assert found(opens, f"/work/{name}-group").name == f"{name}-group-2"


@pytest.mark.parametrize("reserved", sorted(RESERVED))
def test_a_directory_with_a_reserved_name_gets_a_number(opens: Room, reserved: str) -> None:
    assert found(opens, f"/work/{reserved}").name == f"{reserved}-2"


NAMES = {
    "my project": "my-project",
    "Grüße": "Grue",
    ".config": "config",
    "a//b": "a-b",
    "日本": "",
    "🚀": "",
    "": "",
    "---": "",
    "x" * 200: "x" * 48,
    "a:b@c": "a-b-c",
    "tab\there": "tab-here",
}


@pytest.mark.parametrize(("directory", "name"), NAMES.items(), ids=range(len(NAMES)))
def test_an_agent_name_is_made_from_what_a_directory_is_called(directory: str, name: str) -> None:
    assert agent_name(directory) == name


@pytest.mark.parametrize(
    "directory", ["/", "/work/日本", "/work/🚀", f"/work/{'y' * 200}", "/work/a b", "/work/-"]
)
def test_a_session_in_an_odd_directory_has_a_name_that_mail_reaches(
    ada: Boss, opens: Room, directory: str
) -> None:
    session = found(opens, directory)
    ada.say(session, text="hello")
    assert "> hello" in session.takes()
    session.stop("NO_REPLY")


def test_a_session_of_a_deleted_agent_is_not_attached_again(ada: Boss, opens: Room, place: str) -> None:
    session = found(opens, place)
    ada.call("agent.delete", name=session.name)
    assert refused(session) == "cannot_attach"
    assert found(opens, place).name == session.name  # a new agent of the same name
    assert found(opens, place).name == f"{session.name}-2"


def test_a_session_whose_tokens_were_revoked_is_not_attached_again(
    ada: Boss, opens: Room, place: str
) -> None:
    session = found(opens, place)
    ada.call("agent.token.revoke", name=session.name)
    assert refused(session) == "cannot_attach"
    assert found(opens, place).name != session.name


@pytest.mark.parametrize("odd", ["", "../../etc/passwd", "a b", "é", "x" * 101, "-a", ".hidden"])
def test_an_odd_id_of_a_session_is_refused(daemon: RunningDaemon, odd: str) -> None:
    session = Session.__new__(Session)
    session.daemon, session.client, session.session = daemon, "claude", odd
    session.pid, session.directory, session.details, session.named = os.getpid(), "/work", {}, None
    assert refused(session) == "invalid_params"


# --- many in one process -------------------------------------------------------------------


def test_sessions_that_share_a_process_are_several_agents(opens: Room, place: str) -> None:
    first = found(opens, place, client="codex", shared_process=True, terminals=1)
    second = found(opens, place, client="codex", pid=first.pid, shared_process=True, terminals=2)
    assert first.name != second.name
    assert {one["session"] for one in Boss(first.daemon).call("attached.list")["sessions"]} >= {
        first.session,
        second.session,
    }


def test_a_session_whose_terminal_was_closed_gives_its_place_to_the_next(opens: Room, place: str) -> None:
    first = found(opens, place, client="codex", shared_process=True, terminals=1)
    second = found(opens, place, client="codex", pid=first.pid, shared_process=True, terminals=1)
    assert second.name == first.name and first.refusal("attached.list") == "bad_token"


def test_a_session_that_has_mail_is_not_taken_for_a_closed_one(ada: Boss, opens: Room, place: str) -> None:
    first = found(opens, place, client="codex", shared_process=True, terminals=1)
    ada.say(first, text="hello")
    first.takes()
    second = found(opens, place, client="codex", pid=first.pid, shared_process=True, terminals=1)
    assert second.name != first.name
    first.stop("NO_REPLY")


# --- its token -----------------------------------------------------------------------------


def test_the_token_of_a_session_is_in_a_file_for_its_owner_only_and_ends_with_it(opens: Room) -> None:
    session = opens()
    path = session.daemon.home.session_file(session.client, session.session)
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    assert stat.S_IMODE(os.stat(os.path.dirname(path)).st_mode) == 0o700
    assert session.call("agent.self")["agent"]["name"] == session.name
    session.end()
    assert session.refusal("agent.self") == "bad_token" and not os.path.exists(path)


def test_another_token_of_the_agent_reports_nothing(daemon: RunningDaemon, opens: Room) -> None:
    kai = agent(daemon)
    opens(kai.name)
    for method, params in {
        "attached.prompt": {"event": "1", "prompt": "x"},
        "attached.step": {},
        "attached.stop": {"event": "1"},
        "attached.break": {"event": "1"},
        "attached.end": {"event": "1"},
        "attached.wait": {},
        "attached.permit": {"tool": "Bash"},
    }.items():
        assert kai.refusal(method, **params) == Boss(daemon).refusal(method, **params) == "not_attached"


def test_an_agent_sees_its_own_sessions_and_the_boss_all(ada: Boss, opens: Room) -> None:
    one, other = opens(), opens()

    def seen(who: Party) -> set[str]:
        return {found["session"] for found in who.call("attached.list")["sessions"]}

    assert seen(one) == {one.session} and {one.session, other.session} <= seen(ada)
