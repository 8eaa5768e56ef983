"""Commands: what the boss orders hiboss itself to do, in a chat. Each name has a function here.

One acts as soon as it is stored, before what still waits in its chat to be digested. The daemon can die
before that is noted, and then it is carried out again: each function must bear that.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from ..agents.controls import Controls
from ..core import ids
from ..core.contracts.adapter import Command
from ..core.contracts.inbound import Inbound
from ..core.crashpoint import COMMANDED, crashpoint
from ..core.envelope import Lane
from ..core.escaping import quote, visible
from ..core.quoting import near
from ..store import (
    agent_pauses,
    agents,
    ask_commands,
    commands,
    controls,
    lanes,
    provider_sessions,
    run_cancels,
    run_history,
    turn_origins,
)
from ..store.commands import Order, Stop
from ..store.connection import Row
from ..store.controls import Order as Control
from ..store.group_commit import Tx
from ..store.run_limits import Bounds
from ..store.store import Store
from ..store.turn_origins import Origin
from .breaker_orders import BreakerOrders, is_stop_all

MENU = (
    Command("status", "show what the agents of this chat do"),
    Command("agents", "list all agents"),
    Command("new", "begin a new session: the agent forgets what was said here"),
    Command("stop", "stop what works for this chat; /stop all stops everything"),
    Command("go", "let everybody work again after /stop all"),
    Command("answer", "answer a question, like /answer q2 yes"),
    Command("pause", "give an agent no more turns"),
    Command("resume", "give it turns again"),
    Command("help", "show these commands"),
)
_NAMES = [one.name for one in MENU]


class State(NamedTuple):
    """What an agent does now: a word, and the reason if there is one."""

    word: str
    why: str | None


class Commands:
    """Carries out the commands of the boss. A command that is not here is an ordinary message."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: dict[str, Callable[[Order], Awaitable[str]]] = {
            "status": self._status,
            "agents": self._agents,
            "new": self._new,
            "stop": self._stop,
            "answer": self._answer,
            "pause": self._pause,
            "resume": self._resume,
            "go": lambda order: self.breaker.go(order),
            "help": self._help,
            "start": self._help,  # what a client of Telegram sends when a chat is opened
        }
        # Set in hiboss/daemon/wiring.py and lifecycle.py.
        self.controls: Controls
        self.state: Callable[[int], State]  # of an agent
        self.bounds: Callable[[], Bounds]
        self.resumed: Callable[[int], None]  # an agent gets turns again
        self.breaker: BreakerOrders
        self.stopping: Callable[[Origin], None]  # a /stop was heard: show it there at once

    def knows(self, inbound: Inbound) -> bool:
        """Tell whether something is a command that hiboss carries out, if it is the boss's; or nearly one."""
        if inbound.kind != "command" or inbound.forwarded is not None:
            return False
        name = (inbound.command or "").lower()
        return name in self._known or bool(near(name, _NAMES))

    async def act(self, binding: int, adapter: str, number: int, inbound: Inbound) -> bool:
        """Carry out a command and answer the boss; return False if it is left to be digested."""
        order = await self._store.write_until_done(
            lambda tx: commands.begin(tx, binding, adapter, number, inbound)
        )
        if order is None:
            return False
        answer = await self._known.get(order.command.lower(), self._unknown)(order)
        if order.command.lower() == "stop" and order.given is not None:
            self.stopping(order.given)  # the answer may have to wait, for the rates of the platform
        crashpoint(COMMANDED)
        await self._store.timed_write_until_done(lambda tx, now: commands.end(tx, order, answer, now))
        return True

    async def stop(self, binding: int, adapter: str, number: int, inbound: Inbound) -> None:
        """Cancel the run whose growing answer somebody stopped, as `run.cancel` does."""
        stop = await self._store.write_until_done(
            lambda tx: commands.begin_stop(tx, binding, adapter, number, inbound)
        )
        if stop is None:
            return
        why = f"{'the boss' if stop.boss else 'who asked'} stopped it in {visible(stop.where)}"
        by = ("the boss" if stop.boss else "who asked", stop.by)
        stopped = []
        for run in stop.runs:
            row = self._store.read(lambda c: run_history.get(c, run))  # noqa: B023 - called here
            if row is not None and await self._cancel(run, by, why):
                stopped.append(f"Stopped r{run} of agent:{row['agent_name']}.")
                self._show_stop(stop, [ids.number(one, "envelope") for one in row["envelopes"].split(",")])
        crashpoint(COMMANDED)
        answer = "\n".join(stopped)
        await self._store.timed_write_until_done(lambda tx, now: commands.end_stop(tx, stop, answer, now))

    async def _cancel(self, run: int, by: tuple[str, int], why: str) -> bool:
        """Cancel a run, as `control.send` does; return whether it is cancelled, also by an earlier order."""
        name, actor = by
        order = Control("cancel", actor, name, run=run, why=why, is_boss=True, until_done=True)
        if (await self.controls.send(order)).outcome == controls.APPLIED:
            return True
        ending = self._store.read(lambda c: run_cancels.of_running(c, run))
        return ending is not None and ending.cancels

    def _show_stop(self, stop: Stop, envelopes: Sequence[int]) -> None:
        """Show at once that a Stop was heard, on what was asked: the answer may have to wait."""
        asked = self._store.read(lambda c: turn_origins.origins(c, envelopes))
        for one in [one for one in asked if one.target.lane == stop.place][-1:]:
            self.stopping(one)

    async def _unknown(self, order: Order) -> str:
        """Answer what is nearly a command."""
        name = order.command.lower()
        return f"There is no /{visible(name)}. Did you mean /{near(name, _NAMES)}? /help shows all commands."

    async def _help(self, order: Order) -> str:
        """/help: list the commands."""
        lines = [f"/{one.name}: {one.about}" for one in MENU]
        return "\n".join(
            ["Commands of hiboss. /new, /stop, /pause and /resume take the name of an agent.", *lines]
        )

    async def _status(self, order: Order) -> str:
        """/status: show the agents of this chat."""
        rows = [row for row in self._store.read(agents.list_all) if row["id"] in order.agents]
        rows.sort(key=lambda row: order.agents.index(row["id"]))
        running = [f"r{row['id']} of {row['name']} works for this chat." for row in self._runs(order)]
        return "\n".join([*map(self._line, rows), *running]) or "No agent reads this chat."

    async def _agents(self, order: Order) -> str:
        """/agents: show all agents."""
        return "\n".join(map(self._line, self._store.read(agents.list_all))) or "There are no agents."

    def _line(self, row: Row) -> str:
        word, why = self.state(row["id"])
        role = f" ({quote(row['role'], 60)})" if row["role"] else ""
        return f"{row['name']}{role}: {word}" + (f", {quote(why, 200)}" if why else "")

    async def _new(self, order: Order) -> str:
        """/new: let the next turns of this chat begin new sessions."""

        def write(tx: Tx, now: int) -> str:
            name = _name(order)
            meant = [
                row
                for row in agents.list_all(tx)
                if row["id"] in order.agents and name in ("", row["name"].lower())
            ]
            for row in meant:
                for conversation in order.conversations:
                    provider_sessions.refresh(tx, row, conversation, now)
            names = ", ".join(str(row["name"]) for row in meant)
            return f"{names}: the next message here begins a new session." if names else _nobody(order)

        return await self._store.timed_write_until_done(write)

    async def _answer(self, order: Order) -> str:
        """/answer: answer an ask, as `ask.answer` does."""
        return await self._store.timed_write_until_done(lambda tx, now: ask_commands.answer(tx, order, now))

    async def _pause(self, order: Order) -> str:
        """/pause: pause the agent of this chat, or the one that is named, as `agent.pause` does."""

        def write(tx: Tx, now: int) -> str:
            row = self._named(tx, order)
            if row is None:
                return _nobody(order)
            changed = agent_pauses.pause(tx, row["id"], "boss", f"the boss paused it: {_given(order)}", now)
            return f"{row['name']} is paused." if changed else f"{row['name']} was paused already."

        return await self._store.timed_write_until_done(write)

    async def _resume(self, order: Order) -> str:
        """/resume: resume an agent, as `agent.resume` does."""
        bounds = self.bounds()

        def write(tx: Tx, now: int) -> tuple[str, int | None]:
            row = self._named(tx, order)
            if row is None:
                return _nobody(order), None
            reopened = lanes.reopen(tx, Lane(row["id"], None), now)
            changed = agent_pauses.resume(tx, row, bounds, now) or reopened
            text = f"{row['name']} gets turns again." if changed else f"{row['name']} is not paused."
            return text, row["id"]

        text, agent = await self._store.timed_write_until_done(write)
        if agent is not None:
            self.resumed(agent)
        return text

    def _named(self, tx: Tx, order: Order) -> Row | None:
        """Return the agent that a command names; else the first one of the chat."""
        name = _name(order)
        for row in agents.list_all(tx):
            if row["name"].lower() == name or (not name and row["id"] in order.agents[:1]):
                return row
        return None

    def _runs(self, order: Order) -> list[Row]:
        return self._store.read(lambda c: commands.runs(c, order))

    async def _stop(self, order: Order) -> str:
        """/stop: cancel the runs that work for the conversations of this chat, as `run.cancel` does."""
        if is_stop_all(order):
            return await self.breaker.stop_all(order)
        stopped = []
        name, why = _name(order), f"the boss cancelled it: {_given(order)}"
        held = [(row["id"], row["agent_name"]) for row in self._store.read(lambda c: commands.held(c, order))]
        for run, agent in held + [(row["id"], row["name"]) for row in self._runs(order)]:
            meant = name in ("", agent.lower())
            if meant and await self._cancel(run, ("the boss", order.boss), why):
                stopped.append(f"Stopped r{run} of agent:{agent}.")
        for row in [] if stopped else self._store.read(lambda c: commands.stopped_before(c, order, why)):
            stopped.append(f"Stopped r{row['id']} of agent:{row['name']}.")  # the daemon died of it
        return "\n".join(stopped) or "Nothing runs here."


def _name(order: Order) -> str:
    """Return the name of the agent that a command is about, as it is compared; empty: it names none."""
    return order.arguments.strip().removeprefix("@").lower()


def _given(order: Order) -> str:
    return f"/{order.command.lower()} in {visible(order.where)}"


def _nobody(order: Order) -> str:
    return f"There is no agent {quote(order.arguments.strip(), 60)}. /agents lists them."
