"""kill -9 around controls of agents, of conversations and of mail: each is applied as a whole or not at all.

Controls of one run are in test_kill_controls.py.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import pytest

from hiboss.agents.controls import Controls
from hiboss.core.crashpoint import AFTER_COMMIT, BEFORE_WRITE, CONTROLLED, IN_GROUP
from hiboss.core.envelope import Priority, Status
from hiboss.testing.running_daemon import RunningDaemon
from tests.support.mortals import Mortal
from tests.support.parties import Party, agent, agents
from tests.support.shell_agents import Boss, Worker, assert_idle, eventually, rows
from tests.support.waits import wait_until

pytestmark = pytest.mark.slow

STORED = (AFTER_COMMIT, CONTROLLED)


@pytest.fixture
def ada(outlived: Mortal) -> Boss:
    return Boss(outlived)


def outcome(ada: Boss, event: str, **params: Any) -> str:
    return str(ada.call("control.send", event=f"stream.{event}", **params)["outcome"])


def dies_of(ada: Boss, armed: Path, event: str, **params: Any) -> bool:
    """Send a control, of which the daemon dies; return whether it is stored, with its message."""
    query = (
        "SELECT k.event, k.outcome, m.type FROM control k JOIN message m ON m.id = k.message ORDER BY k.id"
    )
    before = len(rows(ada.daemon, query))
    ada.daemon.dies_of(armed, lambda: outcome(ada, event, **params))
    ada.daemon.check()
    found = [tuple(row) for row in rows(ada.daemon, query)][before:]
    assert found in ([], [(event, "applied", 4)])
    return bool(found)


# --- pause, resume and cancel, of an agent and of a conversation ---------------------------


class Work:
    """Two runs that one control is about: a turn and a task of an agent, or turns of two agents in a conversation."""

    def __init__(self, ada: Boss, of: str, directory: Path) -> None:
        self.ada, self.daemon, self.of, self.zoe = ada, ada.daemon, of, agent(ada.daemon)
        self.workers = [Worker(ada.daemon, directory) for _ in range(1 if of == "agent" else 2)]
        for one in self.workers:
            one.program.waits("echo NO_REPLY")
        self.target = {"conversation": self.zoe.get(self.zoe.send(*self.workers)["ids"][0])["conversation"]}
        if of == "agent":
            self.target = {"agent": self.workers[0].name}
            ada.call("agent.background", agent=self.workers[0].name, task="beside that")
        self.under_way()

    def under_way(self, times: int = 1) -> None:
        """Wait until both have their turn, for the time of this number."""
        wanted = times * (2 if self.of == "agent" else 1)
        wait_until(lambda: all(len(one.program.pids) == wanted for one in self.workers))

    def marks(self) -> tuple[list[Any], list[Any]]:
        """What a control changes: of the first two runs, and of each agent with its lane."""
        names = [one.name for one in self.workers]
        runs = f"""
            SELECT r.paused_at IS NOT NULL, r.ends_as FROM run r JOIN address a ON a.id = r.agent
            WHERE a.name IN ({",".join("?" * len(names))}) ORDER BY r.id LIMIT 2
        """
        parties = f"""
            SELECT g.paused_kind, ifnull(l.state, 'open'), l.paused_run IS NOT NULL FROM agent g
            JOIN address a ON a.id = g.address LEFT JOIN lane l ON l.address = a.id AND l.binding IS NULL
            WHERE a.name IN ({",".join("?" * len(names))})
        """
        found = [[tuple(row) for row in rows(self.daemon, query, *names)] for query in (runs, parties)]
        return found[0], found[1]

    def runs(self) -> list[tuple[str, str | None]]:
        return [(run["status"], run["error_kind"]) for one in self.workers for run in one.runs()]

    def envelopes(self) -> list[tuple[str, int]]:
        """The status and the attempts of what the first runs work on."""
        numbers = sorted(
            {number for one in self.workers for run in one.runs() for number in run["envelopes"]}
        )
        return [(found["status"], found["attempts"]) for found in map(self.ada.get, numbers)]

    def orders(self, event: str) -> str:
        return outcome(self.ada, event, **self.target)

    def ends_well(self) -> None:
        """Both come again, and are done; nobody has heard of it."""
        for one in self.workers:
            one.program.let_go()
        eventually(self.envelopes, [("done", 0)] * 2)
        assert_idle(self.daemon, *(one.program for one in self.workers))
        assert self.told() == []

    def told(self) -> list[str]:
        return [one["text"] for one in self.zoe.list(page_size=100) if one["from"] == "agent:system"]


def _marks_after(event: str, of: str) -> tuple[list[Any], list[Any]]:
    """What is stored of a control that was applied, before anything follows from it."""
    run = (int(event == "pause"), "cancelled" if event == "cancel" else None)
    held = ("boss", "open", 0) if of == "agent" else (None, "paused", 1)
    return [run] * 2, [held if event == "pause" else (None, "open", 0)] * (1 if of == "agent" else 2)


def _stand_still(work: Work) -> None:
    """Both have ended with the daemon in their pause, and nothing begins before they are resumed."""
    assert (work.runs(), work.envelopes()) == ([("interrupted", "paused")] * 2, [("pending", 0)] * 2)
    assert work.marks()[1] == _marks_after("pause", work.of)[1]


def _is_cancelled(work: Work, runs: list[str]) -> None:
    eventually(lambda: sorted(status for status, _ in work.runs()), runs)
    assert work.envelopes() == [("cancelled", 0)] * 2
    told = work.told()
    assert len(told) == len(work.workers) and all(text.startswith("Not delivered: e") for text in told)
    assert work.orders("cancel") == "too-late"
    assert_idle(work.daemon, *(one.program for one in work.workers))


def _after_pause(work: Work, stored: bool) -> None:
    if stored:
        _stand_still(work)
        assert work.orders("pause") == ("refused" if work.of == "agent" else "too-late")
    else:
        work.under_way(2)
        assert (work.orders("pause"), work.marks()[1]) == ("applied", _marks_after("pause", work.of)[1])
    assert work.orders("resume") == "applied"
    work.ends_well()


def _after_resume(work: Work, stored: bool) -> None:
    if stored:
        work.under_way(2)
        assert work.orders("resume") == "refused"
    else:
        _stand_still(work)
        assert work.orders("resume") == "applied"
    work.ends_well()


def _after_cancel(work: Work, stored: bool) -> None:
    if stored:
        _is_cancelled(work, ["cancelled"] * 2)
        return
    work.under_way(2)
    assert work.orders("cancel") == "applied"
    _is_cancelled(work, ["cancelled"] * 2 + ["interrupted"] * 2)


AFTER = {"pause": _after_pause, "resume": _after_resume, "cancel": _after_cancel}


@pytest.mark.parametrize("point", [IN_GROUP, CONTROLLED])
@pytest.mark.parametrize("of", ["agent", "conversation"])
@pytest.mark.parametrize("event", list(AFTER))
def test_a_control_of_two_runs_is_applied_to_both_or_to_none(
    daemon: Mortal, ada: Boss, tmp_path: Path, event: str, of: str, point: str
) -> None:
    armed = daemon.dies_at(point, of=Controls.carry_out)
    work = Work(ada, of, tmp_path)
    if event == "resume":
        assert work.orders("pause") == "applied"
    before = work.marks()
    stored = dies_of(ada, armed, event, **work.target)
    assert stored == (point in STORED)
    assert work.marks() == (_marks_after(event, of) if stored else before)
    daemon.start()
    AFTER[event](work, stored)


# --- mail ----------------------------------------------------------------------------------


class Mail(NamedTuple):
    """An agent that has spoken with zoe, and gets no turn now; and what waits for it there."""

    nex: Worker
    zoe: Party  # who wrote it
    to: Party  # another agent
    ann: Party
    waiting: list[str]  # the last one is deferred
    conversation: str


def person(ada: Boss, name: str) -> Party:
    return Party(ada.daemon, f"user:{name}", ada.call("user.register", name=name)["token"])


@pytest.fixture
def mail(daemon: Mortal, ada: Boss, tmp_path: Path) -> Mail:
    nex, to = Worker(daemon, tmp_path), agent(daemon)
    zoe, ann = (person(ada, f"{name}-of-{nex.name}") for name in ("zoe", "ann"))
    first = zoe.tell(nex)
    eventually(lambda: nex.answers_to(first), ["done"])
    assert_idle(daemon, nex.program)
    ada.call("lane.pause", address=nex.address)
    waiting = [zoe.tell(nex, text=f"work {number}", priority="low") for number in range(3)]
    waiting.append(zoe.tell(nex, text="work later", priority="low", deliver_at="+1h"))
    return Mail(nex, zoe, to, ann, waiting, zoe.get(first)["conversation"])


def everything(daemon: RunningDaemon) -> dict[str, list[Any]]:
    """All that a control of mail could change."""
    tables = (
        "message",
        "envelope",
        "conversation",
        "participant",
        "conversation_route",
        "control",
        "lane",
        "agent",
    )
    return {table: [tuple(row) for row in rows(daemon, f"SELECT * FROM {table}")] for table in tables}


def delivery(daemon: RunningDaemon, mail: Mail) -> list[tuple[Any, ...]]:
    """Whose each envelope is, from whom, how urgent, and its status."""
    query = """
        SELECT a.kind || ':' || a.name, f.kind || ':' || f.name, e.priority, e.status FROM envelope e
        JOIN address a ON a.id = e.recipient LEFT JOIN address f ON f.id = e.routed_from WHERE e.id = ?
    """
    found = [row for one in mail.waiting for row in rows(daemon, query, int(one[1:]))]
    return [
        (known(mail, row[0]), known(mail, row[1]), Priority(row[2]).name.lower(), Status(row[3]).word)
        for row in found
    ]


def known(mail: Mail, address: str | None) -> str | None:
    """Return somebody by its name in the story."""
    return {mail.nex.address: "nex", mail.to.address: "to", mail.ann.address: "ann"}.get(
        address or "", address
    )


def routes(daemon: RunningDaemon, mail: Mail) -> list[tuple[str, str]]:
    query = """
        SELECT d.kind || ':' || d.name, r.kind FROM conversation_route r JOIN control k ON k.id = r.control
        JOIN address d ON d.id = r.destination WHERE r.conversation = ?
    """
    return [(str(known(mail, row[0])), row[1]) for row in rows(daemon, query, int(mail.conversation[1:]))]


def copies(daemon: RunningDaemon, mail: Mail) -> int:
    """How much of it the agent reads along."""
    query = """SELECT count(*) FROM envelopes WHERE "to" = ? AND context AND text LIKE 'work %'"""
    return int(rows(daemon, query, mail.nex.address)[0][0])


def told_of(daemon: RunningDaemon, party: Party) -> int:
    query = (
        """SELECT count(*) FROM envelopes WHERE "to" = ? AND "from" = 'agent:system' AND type <> 'event'"""
    )
    return int(rows(daemon, query, party.address)[0][0])


def order_of(what: str, mail: Mail) -> tuple[str, dict[str, str]]:
    """Return the event and what it is about."""
    return {
        "priority": ("priority", {"envelope": mail.waiting[1], "level": "high"}),
        "route of an envelope": ("route", {"envelope": mail.waiting[1], "to": mail.to.address}),
        "handoff to a person": ("handoff", {"conversation": mail.conversation, "to": mail.ann.address}),
        "handoff back": ("handoff", {"conversation": mail.conversation, "to": mail.nex.address}),
    }[what]


class Found(NamedTuple):
    """What a control of mail has come to."""

    delivery: list[tuple[Any, ...]]
    routes: list[tuple[str, str]]
    copies: int
    to_nex: int  # what hiboss wrote to it
    to_ann: int


def found_of(daemon: RunningDaemon, mail: Mail) -> Found:
    told = (told_of(daemon, mail.nex), told_of(daemon, mail.ann))
    return Found(delivery(daemon, mail), routes(daemon, mail), copies(daemon, mail), *told)


WITH_NEX = Found([("nex", None, "low", "pending")] * 4, [], 0, 0, 0)
WITH_ANN = Found(
    # What is deferred stays until it arrives. A person's mail is done on arrival.
    [("ann", "nex", "low", "done")] * 3 + WITH_NEX.delivery[:1],
    [("ann", "handoff")],
    copies=3,
    to_nex=1,  # it is asked for a summary
    to_ann=1,
)


class Case(NamedTuple):
    """A control of mail: where that is before and after it, who gets what is new, and what a repetition comes to."""

    after: Found
    again: str
    holder: str = "nex"
    before: Found = WITH_NEX
    not_stored: str = IN_GROUP


def _second(*delivery: Any) -> Found:
    """Only one of the envelopes is another one."""
    return WITH_NEX._replace(
        delivery=[WITH_NEX.delivery[0], delivery, *WITH_NEX.delivery[2:]],
    )


CASES = {
    "priority": Case(_second("nex", None, "high", "pending"), "applied"),
    "route of an envelope": Case(_second("to", "nex", "low", "pending"), "refused", not_stored=BEFORE_WRITE),
    "handoff to a person": Case(WITH_ANN, "refused", holder="ann"),
    "handoff back": Case(WITH_NEX._replace(to_nex=2, to_ann=2), "refused", before=WITH_ANN),
}


@pytest.mark.parametrize("stored", [False, True], ids=["not stored", "stored"])
@pytest.mark.parametrize("what", list(CASES))
def test_a_control_of_mail_is_applied_as_a_whole_or_not_at_all(
    daemon: Mortal, ada: Boss, mail: Mail, tmp_path: Path, what: str, stored: bool
) -> None:
    case, (event, params) = CASES[what], order_of(what, mail)
    if what == "handoff back":
        assert outcome(ada, "handoff", conversation=mail.conversation, to=mail.ann.address) == "applied"
    armed = daemon.dies_at(AFTER_COMMIT if stored else case.not_stored, of=Controls.carry_out)
    before = everything(daemon)
    assert found_of(daemon, mail) == case.before
    assert dies_of(ada, armed, event, **params) is stored
    daemon.start()
    assert found_of(daemon, mail) == (case.after if stored else case.before)
    assert stored or everything(daemon) == before
    assert outcome(ada, event, **params) == (case.again if stored else "applied")
    assert found_of(daemon, mail) == case.after
    assert ada.get(mail.zoe.tell(mail.nex, text="and then"))["to"] == getattr(mail, case.holder).address
    ends_well(ada, mail, case)


def ends_well(ada: Boss, mail: Mail, case: Case) -> None:
    """The agent gets turns again: what is its own then it answers, once; and nothing else."""
    daemon, nex = ada.daemon, mail.nex
    own = [
        number for number, (to, *_) in zip(mail.waiting[:3], case.after.delivery, strict=False) if to == "nex"
    ]
    ada.call("lane.resume", address=nex.address)
    eventually(lambda: [ada.get(number)["status"] for number in own], ["done"] * len(own))
    assert_idle(daemon, nex.program)
    assert len([row["text"] for number in mail.waiting for row in worked_on(daemon, nex, number)]) == len(own)
    summaries = [one for one in mail.ann.list(page_size=100) if one["from"] == nex.address]
    assert [one["text"] for one in summaries] == (["done"] if case.holder == "ann" else [])


def worked_on(daemon: RunningDaemon, worker: Worker, number: str) -> list[Any]:
    """Return the runs of an agent that worked on an envelope."""
    query = """
        SELECT m.text FROM run_envelope x JOIN run r ON r.id = x.run JOIN address a ON a.id = r.agent
        JOIN envelope e ON e.id = x.envelope JOIN message m ON m.id = e.message
        WHERE x.envelope = ? AND a.name = ?
    """
    return rows(daemon, query, int(number[1:]), worker.name)


# --- routes and handoffs --------------------------------------------------------------------------


WAITING = 50  # envelopes
DEATHS = (BEFORE_WRITE, IN_GROUP, AFTER_COMMIT, CONTROLLED)


class State(NamedTuple):
    """What is stored of a control, and where the mail is."""

    records: int  # controls that were applied
    routes: int
    of_agent: int  # pending
    of_destination: int  # pending
    copies: int

    @property
    def is_whole(self) -> bool:
        applied = self.records == 1
        return (self.of_destination == WAITING, self.of_agent == 0) == (applied, applied)


def state(daemon: Mortal, agent: Party, to: Party) -> State:
    daemon.check()
    with daemon.database() as database:
        row = database.execute(
            """
            SELECT (SELECT count(*) FROM control k JOIN address d ON d.id = k.destination
                    WHERE k.outcome = 'applied' AND d.kind || ':' || d.name = ?2),
                   (SELECT count(*) FROM conversation_routes WHERE destination = ?2),
                   (SELECT count(*) FROM envelopes WHERE "to" = ?1 AND status = 'pending' AND text LIKE 'work %'),
                   (SELECT count(*) FROM envelopes WHERE "to" = ?2 AND status = 'pending' AND text LIKE 'work %'),
                   (SELECT count(*) FROM envelopes WHERE "to" = ?1 AND context AND text LIKE 'work %')
            """,
            (agent.address, to.address),
        ).fetchone()
    return State(*row)


@pytest.mark.parametrize("what", ["all mail of an agent", "a conversation", "a handoff"])
@pytest.mark.parametrize("crash_at", DEATHS)
def test_a_route_is_applied_as_a_whole_or_not_at_all(daemon: Mortal, what: str, crash_at: str) -> None:
    ada = Boss(daemon)
    nex, to = agents(daemon, 2)
    for number in range(WAITING):
        sent = ada.say(nex, text=f"work {number}")
    target = {"agent": nex.name} if what.startswith("all") else {"conversation": sent["conversation"]}
    event = "stream.handoff" if what == "a handoff" else "stream.route"
    order = {"event": event, "to": to.address, **target}
    daemon.dies_of(daemon.dies_at(crash_at, of=Controls.carry_out), lambda: ada.call("control.send", **order))
    daemon.start()
    found = state(daemon, nex, to)
    assert found.is_whole, found
    assert found.records == (crash_at in (AFTER_COMMIT, CONTROLLED))
    assert found.routes == (found.records and what != "all mail of an agent")
    assert found.copies == (WAITING if found.records and what == "a handoff" else 0)
    again = ada.call("control.send", **order)
    assert again["outcome"] == ("applied" if not found.records else "refused" if found.routes else "too-late")
    assert state(daemon, nex, to).of_destination == WAITING
