"""Who may send which control: the right of the event, or that one wrote all that a run works on.

One place for all doors. The check runs inside the transaction that applies the control, so that nobody acts
with a right that was taken back meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ..core.errors import BossOnly, NotFound
from ..store import control_parties, conversation_routes
from ..store.control_targets import Target
from ..store.group_commit import Tx
from .auth import Caller, check_level
from .context import Context

INTERRUPT, ROUTE = "control.interrupt", "control.route"
RIGHTS = {
    "pause": INTERRUPT,
    "resume": INTERRUPT,
    "cancel": INTERRUPT,
    "preempt": INTERRUPT,
    "priority": INTERRUPT,
    "route": ROUTE,
    "handoff": ROUTE,
}
OF_AUTHORS = ("pause", "resume", "cancel")  # who wrote all that a run works on may always do this to it


def check(
    context: Context, caller: Caller, event: str, to: int | None = None
) -> Callable[[Tx, Target], None]:
    """Return what checks, in the transaction, that a caller may do this to a target.

    It raises NotFound for what the caller cannot see, Forbidden for what it may not do, and BossOnly for
    moving all mail of another agent: it would see what is not for it. `to`: of route and handoff.
    """

    def checked(tx: Tx, target: Target) -> None:
        context.auth.check(tx, caller)
        if caller.is_boss:
            return
        _check_sees(tx, caller, target)
        if event in OF_AUTHORS and control_parties.wrote_all(tx, caller.id, target):
            boss = tx.cache.reach().boss
            if event != "resume" or not control_parties.paused_by(target, boss):  # only by a right
                return
        if event == "handoff" and _gives_back(tx, caller, target, to):
            return
        named = target.conversation is not None or target.envelope is not None
        if RIGHTS[event] == ROUTE and not named and target.agent != caller.id:
            raise BossOnly(what=f"control {event} of all mail of another agent", caller=caller.name)
        check_right(context, caller, event)

    return checked


def _gives_back(tx: Tx, caller: Caller, target: Target, to: int | None) -> bool:
    """Tell whether who got a conversation by a handoff returns it to the agent whose it is."""
    if target.conversation is None or to is None:
        return False
    route = conversation_routes.find(tx, target.conversation, to)
    return route is not None and route.handed_over and route.destination.id == caller.id


def check_right(context: Context, caller: Caller, event: str) -> None:
    """Raise Forbidden unless a caller has the right of an event."""
    right = RIGHTS[event]
    check_level(replace(caller, right=right), context.policy.needs(right))


def _check_sees(tx: Tx, caller: Caller, target: Target) -> None:
    """Raise NotFound for a foreign id. An agent is known by its name to everybody."""
    if target.run is not None and not control_parties.sees_run(tx, caller.id, target.run):
        raise NotFound(what="run", value=f"r{target.run['id']}", where="hiboss run list")
    if target.conversation is not None and not control_parties.is_party(tx, caller.id, target.conversation):
        raise NotFound(what="conversation", value=f"c{target.conversation}")
    if target.envelope is not None and not control_parties.sees_envelope(caller.id, target.envelope):
        raise NotFound(what="envelope", value=f"e{target.envelope['id']}")
