"""Whether agents are here, and when each caller was last seen.

When a caller was seen is kept in memory at every call, and written to the store at intervals. The rest is
only in memory: which agents that fetch their mail are connected or called lately, which runs write text now,
and which gave no sign of life for too long. The words for it are in hiboss/api/agent_states.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from ..core import clock
from ..core.events import AgentChanged, Fact
from ..store import addresses, agents
from ..store.group_commit import Tx
from ..store.store import Store
from .deadlines import Deadlines

GONE_SECONDS = 300.0  # without a call: an agent that fetches its mail is not here any more
WRITING_SECONDS = 5.0  # after a part of a text


class Presence:
    """Notes when callers were seen, and what is known of agents. Use it on the event loop's thread only."""

    def __init__(
        self,
        store: Store,
        deadlines: Deadlines | None = None,
        tell: Callable[[Fact], None] = lambda fact: None,
    ) -> None:
        self._store = store
        self._deadlines = deadlines or Deadlines()
        self._tell = tell  # publishes a fact
        self._seen: dict[int, int] = {}  # by address id: when, milliseconds UTC; not written yet
        self._open: Counter[int] = Counter()  # what agents have open that follows, or waits for mail
        self._stuck: set[int] = set()  # run ids
        self._called: dict[int, float] = {}  # by run: when it called last, on the event loop's clock

    # --- who was seen ----------------------------------------------------------------

    def seen(self, address: int, *, agent: bool = False, run: int | None = None) -> None:
        """Note a call. `agent`: of an agent, and not by one of its runs; `run`: by this one."""
        now, before = clock.now(), self._seen.get(address)
        self._seen[address] = now
        if run is not None:
            self._called[run] = self._deadlines.time()
        # Once a second is enough: a send goes through here too.
        if agent and not (before is not None and 0 <= now - before < 1_000):
            self._note(address)

    def last_seen(self, address: int, stored: int | None) -> int | None:
        """Return when an address was last seen; `stored` is what the store has."""
        return self._seen.get(address, stored)

    async def flush(self) -> None:
        """Write what is in memory. A crash loses what was seen since the last flush."""
        unwritten, self._seen = self._seen, {}
        if not unwritten:
            return

        def write(tx: Tx) -> None:
            addresses.note_seen(tx, unwritten)

        try:
            await self._store.write(write)
        except BaseException:
            self._seen = unwritten | self._seen
            raise

    # --- agents that fetch their mail ------------------------------------------------

    def start(self) -> None:
        """Take up what the store knows: who called a moment before the daemon was restarted is still here."""
        now = clock.now()
        for row in self._store.read(agents.list_all):
            ago = (now - row["last_seen_at"]) / 1000 if row["last_seen_at"] is not None else GONE_SECONDS
            if 0 <= ago < GONE_SECONDS:
                self._deadlines.note(("seen", row["id"]), GONE_SECONDS - ago, partial(self._gone, row["id"]))

    def opened(self, agent: int) -> None:
        """It follows what happens, or waits for mail: it is here until that ends."""
        here = self.is_here(agent)
        self._open[agent] += 1
        if not here:
            self._changed(agent)

    def closed(self, agent: int) -> None:
        self._note(agent)  # it is here for some minutes more
        self._open[agent] -= 1
        if self._open[agent] <= 0:
            del self._open[agent]

    @contextmanager
    def waiting(self, agent: int) -> Iterator[None]:
        """It waits for mail while the block runs."""
        self.opened(agent)
        try:
            yield
        finally:
            self.closed(agent)

    def is_here(self, agent: int) -> bool:
        """Tell whether an agent is connected, or called lately."""
        return agent in self._open or ("seen", agent) in self._deadlines

    def _note(self, agent: int) -> None:
        new = self._deadlines.note(("seen", agent), GONE_SECONDS, partial(self._gone, agent))
        if new and agent not in self._open:
            self._changed(agent)

    def _gone(self, agent: int) -> None:
        if agent not in self._open:
            self._changed(agent)

    def _changed(self, agent: int) -> None:
        """Tell those who follow that an agent came or went. Of one that gets turns that changes nothing."""
        row = self._store.read(lambda c: agents.by_id(c, agent))
        if row is not None and row["mode"] == "pull":
            self._tell(AgentChanged(clock.now(), agent))

    # --- runs ------------------------------------------------------------------------

    def progressed(self, run: int, agent: int, kind: str) -> None:
        """A run reported something: it is alive. `delta`: it writes."""
        if run in self._stuck:
            self.stuck(run, agent, is_stuck=False)
        if kind == "delta":
            self._wrote(run, agent)

    def _wrote(self, run: int, agent: int) -> None:
        changed = partial(self._tell_of_run, agent)
        if self._deadlines.note(("writes", run), WRITING_SECONDS, changed):
            changed()

    def stuck(self, run: int, agent: int, is_stuck: bool) -> None:
        """A run gave no sign of life for too long, or gives one again."""
        (self._stuck.add if is_stuck else self._stuck.discard)(run)
        self._tell_of_run(agent)

    def run_ended(self, run: int) -> None:
        """Forget a run. That it ended was told."""
        self._stuck.discard(run)
        self._called.pop(run, None)
        self._deadlines.forget(("writes", run))

    def writes(self, run: int) -> bool:
        """Tell whether a run writes text now."""
        return ("writes", run) in self._deadlines

    def is_stuck(self, run: int) -> bool:
        return run in self._stuck

    def called_ago(self, run: int) -> float | None:
        """Return how many seconds ago a run made its last call; None: it made none."""
        called = self._called.get(run)
        return None if called is None else self._deadlines.time() - called

    def _tell_of_run(self, agent: int) -> None:
        self._tell(AgentChanged(clock.now(), agent))
