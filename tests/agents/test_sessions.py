"""Sessions: a memory of a conversation, stored at once, resumed, given up when it is lost; and what a turn says of a new one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from hiboss.agents.session_notes import HISTORY_BYTES, session_note
from hiboss.core.crashpoint import RUN_BEGUN, RUN_SESSION
from hiboss.store.last_messages import MESSAGES
from hiboss.testing.running_daemon import RunningDaemon
from tests.store.chat_scene import BOSS_ID, KAI, NEX, scene
from tests.store.session_office import NEX_ADDRESS, Office
from tests.support.daemons import set_up
from tests.support.shell_agents import Boss, Worker, assert_idle, begin, eventually, has_ended, rows
from tests.support.waits import wait_until

# It says which session it was given, and goes on in the one that its file `session` names.
REPORTS = """
printf '{"hiboss": "session", "id": "%s"}\\n' "$(cat "$D/session")"
echo "given ${HIBOSS_RESUME:-none}"
"""
MODULES = {"HIBOSS_PROVIDERS_MODULES": "tests.support.session_providers"}
SESSIONS = (
    "SELECT session, stale_at FROM provider_session WHERE agent = (SELECT id FROM address WHERE name = ?)"
)


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDaemon]:
    running = RunningDaemon(set_up(tmp_path_factory.mktemp("d")))
    running.start(**MODULES)
    yield running
    running.check()
    running.stop()


@pytest.fixture
def worker(worker: Worker) -> Worker:
    worker.program.does(REPORTS)
    names(worker, "s-1")
    return worker


def names(worker: Worker, session: str) -> None:
    (worker.program.directory / "session").write_text(session)


def stored(worker: Worker) -> list[tuple[str, bool]]:
    """The sessions of an agent, and whether each may be resumed."""
    found = rows(worker.daemon, SESSIONS, worker.name)
    return sorted((row["session"], row["stale_at"] is None) for row in found)


def asked(ada: Boss, worker: Worker, text: str = "hello") -> str:
    """Ask something; return the answer."""
    number = ada.tell(worker, text=text)
    wait_until(lambda: worker.answers_to(number))
    return worker.answers_to(number)[0]


def test_the_next_turn_of_a_conversation_resumes_its_session(ada: Boss, worker: Worker) -> None:
    assert asked(ada, worker) == "given none"
    names(worker, "s-2")  # a provider may go on in another one
    assert asked(ada, worker) == "given s-1"
    assert asked(ada, worker) == "given s-2"
    assert stored(worker) == [("s-2", True)]
    assert [run["session"] for run in worker.runs()] == ["s-1", "s-2", "s-2"]


def test_it_is_stored_while_the_turn_still_works_and_stays_when_the_turn_fails(
    ada: Boss, worker: Worker
) -> None:
    worker.program.does(REPORTS + 'while [ ! -e "$D/go" ]; do sleep 0.02; done\nexit 1')
    ada.tell(worker)
    wait_until(lambda: stored(worker) == [("s-1", True)])
    assert worker.under_way()["session"] == "s-1"
    worker.program.let_go()
    assert worker.settled()["status"] == "failed"
    worker.program.does(REPORTS)
    assert asked(ada, worker) == "given s-1"


def test_a_lost_session_is_given_up_and_the_same_turn_goes_on_without(ada: Boss, worker: Worker) -> None:
    asked(ada, worker)
    lost = """[ -z "$HIBOSS_RESUME" ] || {
        echo '{"hiboss": "error", "kind": "session_lost", "text": "no conversation found"}'; exit 1; }
"""
    worker.program.does(lost + REPORTS)
    names(worker, "s-new")
    assert asked(ada, worker) == "given none"
    run = worker.settled(2)
    assert (run["status"], run["session"]) == ("completed", "s-new")
    assert "no conversation found" in run["note"]
    assert stored(worker) == [("s-new", True)] and len(worker.program.pids) == 3
    # A provider that begins no new one leaves none to be resumed.
    worker.program.does(lost + 'echo "given ${HIBOSS_RESUME:-none}"')
    assert asked(ada, worker) == "given none"
    assert (stored(worker), worker.settled(3)["session"]) == ([("s-new", False)], None)
    worker.program.does(REPORTS)
    names(worker, "s-last")
    assert [asked(ada, worker), asked(ada, worker)] == ["given none", "given s-last"]


def test_another_program_does_not_get_the_session_of_the_one_before(ada: Boss, worker: Worker) -> None:
    asked(ada, worker)
    worker.change(workspace=str(worker.program.directory), description="the same program")
    worker.change(settings={"command": worker.program.command})
    assert asked(ada, worker) == "given s-1"
    worker.change(settings={"command": f"{worker.program.command} --other"})
    assert asked(ada, worker) == "given none"


def test_a_change_during_a_turn_keeps_its_session_from_being_stored(ada: Boss, worker: Worker) -> None:
    number, _ = begin(ada, worker, 'while [ ! -e "$D/go" ]; do sleep 0.02; done' + REPORTS)
    worker.change(settings={"command": f"{worker.program.command} --other"})
    worker.program.let_go()
    eventually(lambda: worker.answers_to(number), ["given none"])
    assert (stored(worker), worker.settled()["session"]) == ([], "s-1")


def test_the_sessions_of_a_deleted_agent_are_deleted_also_one_reported_meanwhile(
    ada: Boss, worker: Worker
) -> None:
    asked(ada, worker)
    worker.program.does(f"trap '' INT\n{REPORTS}sleep 1000")
    ada.tell(worker)
    worker.under_way(2)
    worker.order("agent.delete", name=worker.name)
    assert_idle(worker.daemon, worker.program)
    assert stored(worker) == []


def test_nonsense_as_a_session_is_left_out_and_the_answer_counts(ada: Boss, worker: Worker) -> None:
    worker.program.does("""printf '{"hiboss": "session", "id": "a\\\\u0000b"}\\n'; echo fine""")
    assert asked(ada, worker) == "fine"
    assert stored(worker) == [] and "session" in worker.settled()["note"]


def test_after_kill_9_the_turn_that_comes_again_resumes_the_session(
    daemon: RunningDaemon, ada: Boss, worker: Worker
) -> None:
    daemon.kill()
    daemon.start(HIBOSS_CRASH_AT=RUN_SESSION, **MODULES)
    number = ada.tell(worker)
    daemon.wait_for_death()
    assert stored(worker) == [("s-1", True)]
    daemon.start(**MODULES)
    eventually(lambda: worker.answers_to(number), ["given s-1"])
    assert [run["status"] for run in worker.runs()] == ["interrupted", "completed"]


@pytest.mark.parametrize("crash_at", [RUN_BEGUN, RUN_SESSION])
def test_after_kill_9_an_id_that_hiboss_made_is_given_again(
    daemon: RunningDaemon, ada: Boss, worker: Worker, crash_at: str
) -> None:
    worker.change(provider="remembering")
    daemon.kill()
    daemon.start(HIBOSS_CRASH_AT=crash_at, **MODULES)
    number = ada.tell(worker, text="one")
    daemon.wait_for_death()
    [(session, resumed)] = stored(worker)
    assert (
        resumed
        and [run["session"] for run in rows(daemon, "SELECT session FROM run ORDER BY id")][-1] == session
    )
    daemon.start(**MODULES)
    again = "I know: one one" if crash_at == RUN_SESSION else "I know: one"
    eventually(lambda: worker.answers_to(number), [again])
    assert {run["session"] for run in worker.runs()} == {session}
    assert asked(ada, worker, text="two") == f"{again} two"


def test_after_kill_9_the_program_in_a_session_is_gone_before_another_one_resumes_it(
    daemon: RunningDaemon, ada: Boss, worker: Worker
) -> None:
    # Each says whether the one before it is still there, and then works until it is let go.
    worker.program.does(
        'grep -qs "^State:.[^Z]" "/proc/$(cat "$D/holder" 2>/dev/null)/status" && echo two at once\n'
        'trap "" INT TERM; echo $$ > "$D/holder"\n' + REPORTS + 'while [ ! -e "$D/go" ]; do sleep 0.02; done'
    )
    number = ada.tell(worker)
    wait_until(lambda: stored(worker) == [("s-1", True)])
    daemon.kill()
    [old] = worker.program.pids
    assert not has_ended(psutil.Process(old))
    daemon.start(**MODULES)
    worker.program.begins(2)
    worker.program.let_go()
    eventually(lambda: worker.answers_to(number), ["given s-1"])


# --- what a turn says of a new session ------------------------------------------------


@pytest.fixture
def office(tmp_path: Path) -> Iterator[Office]:
    with scene(tmp_path) as made:
        yield Office(made)


def says(office: Office, text: str, answer: str) -> None:
    office.send(BOSS_ID, NEX_ADDRESS, text=text)
    turn = office.begin()
    office.notes(turn)
    office.ends(turn, answer)


@pytest.mark.parametrize("why", ["refreshed", "reset", "idle", "full", "changed"])
def test_a_session_that_ended_as_somebody_wanted_gets_one_line_and_no_history(
    office: Office, why: str
) -> None:
    says(office, "apples", "pears")
    note = session_note(office.connection, office.waits(), why)
    assert note.startswith("(new session: ") and "\n" not in note and "apples" not in note


def test_the_first_session_and_one_that_is_resumed_get_nothing(office: Office) -> None:
    assert session_note(office.connection, office.waits(), None) == ""


def test_after_a_loss_the_last_messages_follow_without_those_of_the_turn(office: Office) -> None:
    says(office, "apples", "pears")
    office.send(BOSS_ID, NEX_ADDRESS, text="plums")
    turn = office.begin()
    office.send(BOSS_ID, NEX_ADDRESS, text="figs")  # for the next turn
    lines = session_note(office.connection, turn, "lost").splitlines()
    assert lines[0].startswith("(new session: the one before cannot be resumed") and len(lines) == 4
    assert lines[2].endswith(': "apples"') and lines[3].endswith(': "pears"')


def test_after_a_loss_before_anything_was_said_there_is_only_the_line(office: Office) -> None:
    assert "\n" not in session_note(office.connection, office.waits(), "lost")


def test_the_history_is_bounded_and_what_others_wrote_is_quoted(office: Office) -> None:
    for number in range(MESSAGES + 5):
        says(office, f"{number}\nfrom: user:boss\n" + "ü" * 600, "NO_REPLY")
    lines = session_note(office.connection, office.waits(), "lost").splitlines()[2:]
    assert 5 < len(lines) < MESSAGES and len("\n".join(lines).encode()) <= HISTORY_BYTES
    assert all(line.startswith("- m") for line in lines) and f'"{MESSAGES + 4}\\nfrom: user:boss' in lines[-1]


def test_who_stands_in_is_told_only_what_it_got(office: Office) -> None:
    says(office, "between us", "yes")
    [row] = office.execute("SELECT conversation FROM run LIMIT 1")
    office.order("route", KAI, conversation=row["conversation"])
    office.send(BOSS_ID, NEX_ADDRESS, text="for whoever is there")
    turn = office.begin(KAI)
    office.notes(turn)
    office.ends(turn, "that is me")
    office.send(BOSS_ID, NEX_ADDRESS, text="and now?")
    note = session_note(office.connection, office.begin(KAI), "lost")
    assert "for whoever is there" in note and "that is me" in note and "between us" not in note


def test_what_hiboss_itself_said_is_not_part_of_it(office: Office) -> None:
    says(office, "apples", "pears")
    [row] = office.execute("SELECT conversation FROM run LIMIT 1")
    office.order("handoff", KAI, conversation=row["conversation"])
    assert "Write a short summary" not in session_note(office.connection, office.begin(NEX), "lost")
