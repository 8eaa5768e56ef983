"""Rules and what a run asks, in a real database: exactly one agent, tool and subject, and one answer."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hiboss.core.address import Address
from hiboss.core.contracts.failures import Failure
from hiboss.core.contracts.provider import Question
from hiboss.core.envelope import Draft
from hiboss.core.errors import AskSettled, CannotRemember
from hiboss.store import (
    agents,
    ask_answers,
    ask_rules,
    asks,
    boss,
    messages,
    provider_sessions,
    run_asks,
    run_settlement,
    run_start,
)
from hiboss.store.connection import Connection
from hiboss.store.group_commit import Tx
from hiboss.store.invariants import violations
from hiboss.store.provider_sessions import SessionKind
from hiboss.store.run_asks import Asked
from hiboss.store.run_limits import Bounds
from hiboss.store.run_start import Start, Turn
from tests.store.chat_scene import fresh

START = 1_906_545_600_000
HOUR = 3_600_000
PUSH = Question("May it push?", tool="Bash", detail="git push origin main", subject="git push origin main")


class Office:
    """A database with the boss and agents whose runs ask."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.tx = Tx(connection)
        self.now = START
        self.boss = boss.add_boss(self.tx, "Ada", "UTC", START)
        self.nex = self.hire("nex")

    def hire(self, name: str) -> int:
        fields = {"mode": "run", "provider": "demo", "provider_config": "{}"}
        return agents.register(self.tx, name, fields, START)

    def begins(
        self, agent: str = "nex", session: str | None = None, boot: int = 1, *, mail: bool = True
    ) -> Turn:
        """Let a turn of an agent begin; `mail`: with new mail, else with what is due."""
        entry = self.tx.cache.live_address(Address("agent", agent))
        assert entry is not None
        if mail:
            draft = Draft(sender=Address("user", "boss"), caller=self.boss, to=(entry.address,), text="go")
            messages.insert(self.tx, draft, self.now)
        self.tx.execute("UPDATE counter SET value = ? WHERE name = 'boot'", (boot,))
        start = Start(f"hbr_{self.now}{boot}", self.now, boot, Bounds(16, 50, START, START + HOUR))
        turn = run_start.begin(self.tx, entry.id, start)
        assert turn is not None
        if session is not None:
            provider_sessions.note(self.tx, turn.told, session, SessionKind(), self.now)
        self.now += 1_000
        return turn

    def asks(self, turn: Turn, question: Question = PUSH, **changes: Any) -> Asked:
        shown = question._replace(**changes)
        shown = shown._replace(default=shown.default or shown.options[-1])
        self.now += 1_000
        return run_asks.ask(self.tx, turn.run, shown, self.now + HOUR, self.now)

    def answers(self, asked: Asked, choice: str = "allow", scope: str | None = None) -> None:
        assert asked.ask is not None
        self.now += 1_000
        ask_answers.answer(self.tx, asked.ask, choice, self.boss, self.now, scope=scope)

    def ends(self, turn: Turn, status: str = "cancelled") -> None:
        run_settlement.cancel(self.tx, turn, status, "it ended", self.now)

    def crashes(self) -> None:
        """Let the runs of all boots end with their daemon."""
        run_settlement.interrupt_left_over(self.tx, 99, self.now)
        self.tx.execute("UPDATE envelope SET held_by = NULL")

    def state(self, asked: Asked) -> str:
        assert asked.ask is not None
        return str(asks.need(self.tx, asked.ask)["state"])

    def rules(self, agent: int | None = None) -> list[tuple[str, str, str]]:
        found = ask_rules.listed(self.connection, agent, None, 100)
        return [(row["agent_name"], row["subject"], row["answer"]) for row in found]


@pytest.fixture
def office(tmp_path: Path) -> Iterator[Office]:
    with fresh(tmp_path) as (connection, _):
        connection.execute("BEGIN")
        found = Office(connection)
        yield found
        found.tx.cache.flush()
        assert violations(connection) == []


# --- scopes --------------------------------------------------------------------------


def test_an_answer_without_a_scope_holds_once(office: Office) -> None:
    turn = office.begins(session="s-1")
    for scope in (None, "once"):
        office.answers(office.asks(turn), scope=scope)
    assert office.rules() == [] and office.asks(turn).reply is None


def test_a_rule_answers_the_same_question_of_every_later_turn(office: Office) -> None:
    turn = office.begins()
    office.answers(office.asks(turn), scope="rule")
    [rule] = ask_rules.listed(office.connection, None, None, 10)
    office.ends(turn)
    asked = office.asks(office.begins())
    assert asked.ask is None and asked.rule == rule["id"]
    assert asked.reply is not None and (asked.reply.answer, asked.reply.by) == ("allow", "user:boss")


@pytest.mark.parametrize(
    "other",
    [
        {"subject": "git push origin main --force"},
        {"subject": "git push origin mai"},
        {"subject": "GIT PUSH ORIGIN MAIN"},
        {"subject": " git push origin main"},
        {"subject": ""},
        {"tool": "bash"},
        {"tool": "", "subject": ""},
        {"options": ("yes", "no")},
    ],
    ids=str,
)
def test_nothing_else_is_answered_by_a_rule(office: Office, other: dict[str, Any]) -> None:
    turn = office.begins()
    office.answers(office.asks(turn), scope="rule")
    asked = office.asks(turn, **other)
    assert asked.rule is None and asked.reply is None and asked.ask is not None


def test_a_rule_is_of_one_agent(office: Office) -> None:
    kai = office.hire("kai")
    office.answers(office.asks(office.begins()), scope="rule")
    assert office.asks(office.begins("kai")).rule is None
    assert len(office.rules(office.nex)) == 1 and office.rules(kai) == []


def test_a_rule_remembers_what_was_answered_also_a_refusal(office: Office) -> None:
    turn = office.begins()
    office.answers(office.asks(turn), "deny", scope="rule")
    reply = office.asks(turn).reply
    assert reply is not None and reply.answer == "deny"


def test_a_new_rule_about_the_same_replaces_the_one_before(office: Office) -> None:
    turn = office.begins()
    first, second = office.asks(turn), office.asks(turn)
    office.answers(first, "deny", scope="rule")
    office.answers(second, "allow", scope="rule")
    assert office.rules() == [("nex", PUSH.subject, "allow")]


def test_a_session_answer_holds_in_that_session_only(office: Office) -> None:
    turn = office.begins(session="s-1")
    office.answers(office.asks(turn), scope="session")
    assert office.asks(turn).rule is not None
    office.ends(turn)
    again = office.begins()
    assert again.session == "s-1" and office.asks(again).rule is not None
    provider_sessions.note(office.tx, again.told, "s-2", SessionKind(), office.now)
    assert office.asks(again).rule is None and office.rules() == []  # it ended with its session


@pytest.mark.parametrize("how", ["lost", "new", "changed"])
def test_the_rules_of_a_session_end_with_it(office: Office, how: str) -> None:
    turn = office.begins(session="s-1")
    office.answers(office.asks(turn), scope="session")
    office.answers(office.asks(turn, subject="ls"), scope="rule")
    office.ends(turn)
    if how == "lost":
        provider_sessions.lost(office.tx, office.begins().told, "s-1", None, office.now)
    elif how == "new":
        nex = agents.get(office.tx, "nex")
        assert provider_sessions.refresh(office.tx, nex, turn.conversation, office.now) == 1
    else:
        provider_sessions.scope_changed(office.tx, office.nex, office.now)
    assert office.rules() == [("nex", "ls", "allow")]


@pytest.mark.parametrize(
    ("question", "scope", "why"),
    [
        (PUSH, "session", "no session"),
        (PUSH._replace(subject=""), "rule", "exactly"),
        (Question("Which?", ("a", "b")), "rule", "only the answer to a permission"),
        (Question("Which?", ("a", "b")), "session", "only the answer to a permission"),
    ],
)
def test_what_cannot_be_remembered_says_why_and_stays_open(
    office: Office, question: Question, scope: str, why: str
) -> None:
    asked = office.asks(office.begins(), question)
    office.tx.execute("SAVEPOINT op")
    with pytest.raises(CannotRemember, match=why):
        office.answers(asked, question.options[0], scope=scope)
    office.tx.execute("ROLLBACK TO op")
    assert office.state(asked) == "open" and office.rules() == []
    office.answers(asked, question.options[0])


def test_a_rule_that_was_taken_back_answers_nothing(office: Office) -> None:
    turn = office.begins()
    office.answers(office.asks(turn), scope="rule")
    [rule] = ask_rules.listed(office.connection, None, None, 10)
    removed = ask_rules.remove(office.tx, rule["id"], office.now)
    assert removed is not None and removed["removed_at"] is None
    again = ask_rules.remove(office.tx, rule["id"], office.now + 5)
    assert again is not None and again["removed_at"] == office.now
    assert ask_rules.remove(office.tx, 99, office.now) is None
    assert office.rules() == [] and office.asks(turn).rule is None


@pytest.mark.parametrize(
    ("question", "session", "scopes"),
    [
        (PUSH, None, ["", "rule"]),
        (PUSH, "s-1", ["", "session", "rule"]),
        (PUSH._replace(subject=""), "s-1", [""]),
        (Question("Which?", ("allow", "deny")), "s-1", [""]),
    ],
)
def test_the_buttons_of_a_permission_also_remember_where_that_is_possible(
    office: Office, question: Question, session: str | None, scopes: list[str]
) -> None:
    asked = office.asks(office.begins(session=session), question)
    assert asked.ask is not None
    message = asks.need(office.tx, asked.ask)["message"]
    found = office.tx.execute("SELECT label, argument FROM button WHERE message = ? ORDER BY id", (message,))
    shown = [tuple(row) for row in found]
    more = {"session": "allow for this session", "rule": "always allow exactly this"}
    assert shown == [
        ("allow", f"{asked.ask}:0"),
        ("deny", f"{asked.ask}:1"),
        *((more[one], f"{asked.ask}:0:{one}") for one in scopes[1:]),
    ]


# --- asks of runs --------------------------------------------------------------------


@pytest.mark.parametrize("status", ["cancelled", "failed"])
def test_the_open_asks_of_a_run_end_with_it(office: Office, status: str) -> None:
    turn = office.begins()
    answered, left = office.asks(turn), office.asks(turn)
    office.answers(answered)
    if status == "cancelled":
        office.ends(turn)
    else:
        run_settlement.fail(office.tx, turn, Failure("broke", "it broke"), (1_000,), office.now)
    assert (office.state(answered), office.state(left)) == ("answered", "cancelled")
    with pytest.raises(AskSettled):
        office.answers(left)
    assert office.tx.execute("SELECT count(*) FROM button WHERE pressed_at IS NULL").fetchone()[0] == 0


def test_a_run_that_has_ended_asks_nothing(office: Office) -> None:
    turn = office.begins()
    office.ends(turn)
    assert office.asks(turn) == Asked()


def test_a_turn_that_is_repeated_after_a_crash_finds_its_open_ask_again(office: Office) -> None:
    asked = office.asks(office.begins())
    office.crashes()
    assert office.state(asked) == "open"
    again = office.begins(boot=2, mail=False)
    assert office.asks(again) == asked
    other = office.asks(again)  # the second one with the same words is another question
    assert other.ask not in (None, asked.ask) and other.reply is None
    office.ends(again)
    assert office.state(asked) == office.state(other) == "cancelled"


def test_the_answers_to_questions_of_a_crashed_run_come_again_in_their_order_and_once(
    office: Office,
) -> None:
    which = Question("Which?", ("a", "b"))
    first = office.begins()
    given = [office.asks(first, which), office.asks(first, which)]
    office.answers(given[0], "a")
    office.crashes()
    office.answers(given[1], "b")  # meanwhile
    again = office.begins(boot=2, mail=False)
    replies = [office.asks(again, which).reply for _ in range(3)]
    assert [reply and reply.answer for reply in replies] == ["a", "b", None]


def test_a_permission_once_that_a_crashed_run_may_have_used_does_not_serve_again(office: Office) -> None:
    first = office.begins()
    used, open_then = office.asks(first), office.asks(first)
    office.answers(used, "allow")
    office.crashes()
    office.answers(open_then, "allow")  # meanwhile: nobody has used it
    again = office.begins(boot=2, mail=False)
    replies = [office.asks(again).reply for _ in range(2)]
    assert [reply and reply.answer for reply in replies] == ["allow", None]
    office.now += 1_000
    office.crashes()  # again: now that one may have been used
    assert office.asks(office.begins(boot=3, mail=False)).reply is None


def test_a_repeated_turn_that_asks_something_else_leaves_no_ask_open(office: Office) -> None:
    asked = office.asks(office.begins())
    office.crashes()
    again = office.begins(boot=2, mail=False)
    assert office.asks(again, text="May it pull?").ask != asked.ask
    office.ends(again)
    assert office.state(asked) == "cancelled"


def test_a_turn_that_is_repeated_after_a_failure_asks_anew(office: Office) -> None:
    first = office.begins()
    office.answers(office.asks(first))
    run_settlement.fail(office.tx, first, Failure("broke", "it broke"), (0,), office.now)
    office.tx.execute("UPDATE envelope SET waits = NULL, wait_until = NULL WHERE waits IS NOT NULL")
    assert office.asks(office.begins(mail=False)).reply is None
