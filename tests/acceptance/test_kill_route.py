"""kill -9 around routes and handoffs: each is applied as a whole, with its record, or not at all."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from hiboss.agents.controls import Controls
from hiboss.core.crashpoint import AFTER_COMMIT, BEFORE_WRITE, CONTROLLED, IN_GROUP
from tests.support.mortals import Mortal
from tests.support.parties import Party, agents
from tests.support.python_agents import Boss

pytestmark = pytest.mark.slow

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
    armed = daemon.dies_at(crash_at, of=Controls.carry_out)
    daemon.dies_of(armed, lambda: ada.call("control.send", **order))
    daemon.start()
    found = state(daemon, nex, to)
    assert found.is_whole, found
    assert found.records == (crash_at in (AFTER_COMMIT, CONTROLLED))
    assert found.routes == (found.records and what != "all mail of an agent")
    assert found.copies == (WAITING if found.records and what == "a handoff" else 0)
    again = ada.call("control.send", **order)
    assert again["outcome"] == ("applied" if not found.records else "refused" if found.routes else "too-late")
    assert state(daemon, nex, to).of_destination == WAITING
