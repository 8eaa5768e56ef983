"""Commands: what the boss orders hiboss itself to do, in a chat. Each name has a function here.

One acts as soon as it is stored, before what still waits in its chat to be digested. The daemon can die
before that is noted, and then it is carried out again: each function must bear that.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from ..agents.run_execution import Execution
from ..core.contracts.inbound import Inbound
from ..core.crashpoint import COMMANDED, crashpoint
from ..core.escaping import visible
from ..store import commands
from ..store.commands import Order
from ..store.store import Store


class Commands:
    """Carries out the commands of the boss. A command that is not here is an ordinary message."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: dict[str, Callable[[Order], Awaitable[str]]] = {"stop": self._stop}
        # Set in hiboss/daemon/wiring.py: of a run that is stored as running.
        self.execution: Callable[[int], Awaitable[Execution | None]]

    def knows(self, inbound: Inbound) -> bool:
        """Tell whether something is a command that hiboss carries out, if it is the boss's."""
        return inbound.kind == "command" and (inbound.command or "").lower() in self._known

    async def act(self, binding: int, adapter: str, number: int, inbound: Inbound) -> bool:
        """Carry out a command and answer the boss; return False if it is left to be digested."""
        order = await self._store.write_until_done(
            lambda tx: commands.begin(tx, binding, adapter, number, inbound)
        )
        if order is None:
            return False
        answer = await self._known[order.command.lower()](order)
        crashpoint(COMMANDED)
        await self._store.timed_write_until_done(lambda tx, now: commands.end(tx, order, answer, now))
        return True

    async def _stop(self, order: Order) -> str:
        """/stop: cancel the runs that work for the conversation of this chat, as `run.cancel` does."""
        stopped = []
        for row in self._store.read(lambda c: commands.runs(c, order)):
            execution = await self.execution(row["id"])
            if execution is None:
                continue  # it ended meanwhile
            why = f"the boss cancelled it: /stop in {visible(order.where)}"
            execution.end("cancelled", why, gives_up=True, by=order.boss)
            if execution.ending == "cancelled":  # also by an earlier one
                stopped.append(f"Stopped r{row['id']} of agent:{row['name']}.")
        return "\n".join(stopped) or "Nothing runs here."
