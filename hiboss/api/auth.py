"""The caller of a request: found by its token, and checked against the level an operation needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from ..core import clock
from ..core.address import BOSS, Address
from ..core.errors import BadToken, BossOnly, Forbidden, NoToken
from ..routing.presence import Presence
from ..store import tokens
from ..store.connection import Connection, Row
from ..store.group_commit import Tx
from ..store.store import Store
from .operation import Door, Level
from .policy import Policy

SENDING = "envelope.send"  # the right to send
CACHED_CALLERS = 65_536  # each a pair of token and operation


@dataclass(frozen=True, kw_only=True, slots=True)
class Caller:
    kind: str  # boss, agent, user, run; nobody
    address: Address | None
    id: int  # of that address
    level: Level
    door: Door = "socket"  # the way the request came in
    token: int = 0  # the token's id; 0: none was needed
    right: str = ""  # the operation it was authorized for
    run: int | None = None  # the run this token was made for; what it sends belongs to that run
    trace: str | None = None  # of that run
    hops: int = 0  # of that run
    attached: int | None = None  # the open session that this token was made for
    browser: bool = False  # the token is of a browser that a person logged in with

    @property
    def is_boss(self) -> bool:
        return self.level is Level.BOSS

    @property
    def name(self) -> str:
        return "the boss" if self.is_boss else str(self.address or "a caller without a token")

    @property
    def session(self) -> str:
        """The session that the token tells, like r9 for a run, a3 for an open session; empty: none."""
        if self.run is not None:
            return f"r{self.run}"
        return "" if self.attached is None else f"a{self.attached}"

    @property
    def is_person(self) -> bool:
        return self.kind in ("boss", "user")

    @property
    def sees(self) -> int | None:
        """The address id whose envelopes this caller sees; None: everybody's."""
        return None if self.is_boss else self.id


OWNER = Caller(kind="boss", address=BOSS, id=0, level=Level.BOSS)  # of the home, while no daemon runs
NOBODY = Caller(kind="nobody", address=None, id=0, level=Level.OPEN)


class Authenticator:
    """Finds callers by their tokens. One that was seen before costs a look into a dictionary."""

    def __init__(self, store: Store, policy: Policy, presence: Presence | None = None) -> None:
        self._store = store
        self._policy = policy
        self._presence = presence
        self._known: dict[tuple[str, str, Door], Caller] = {}
        self._rechecked: set[int] = set()  # holders whose tokens or level changed since the start
        self.on_change: Callable[[], None] = lambda: None  # ends what somebody follows without the right

    def authenticate(self, token: str | None, right: str, door: Door = "socket") -> Caller:
        """Return the holder of a token; raises BadToken when it is not valid."""
        if token is None:
            return NOBODY if door == "socket" else replace(NOBODY, door=door)
        key = (token, right, door)
        caller = self._known.get(key)
        if caller is None:
            caller = self._look_up(tokens.digest(token), right, door)
            if len(self._known) >= CACHED_CALLERS:
                self._known.clear()
            self._known[key] = caller
        return caller

    def authorize(self, token: str | None, right: str, door: Door = "socket") -> Caller:
        """Return the holder of a token if its level is enough for this right now."""
        caller = self.authenticate(token, right, door)
        check_level(caller, self._policy.needs(right, door))
        if self._presence is not None and caller.id:
            self._presence.seen(caller.id, agent=caller.kind == "agent", run=caller.run)
        return caller

    def forget(self) -> None:
        """Forget the callers seen before: tokens or agents changed."""
        self._known.clear()
        self.on_change()

    def recheck_holder(self, holder: int) -> None:
        """Look up this holder's token in every later write. Call it inside the write that changes it."""
        self._rechecked.add(holder)

    def recheck(self, caller: Caller) -> None:
        """Raise if a caller lost its right while its request waited, so that it is shown nothing more."""
        if self._may_have_ended(caller):
            self._store.read(lambda connection: self.check(connection, caller))
        elif caller.token:  # nothing to look up: it is asked before everything that a follower is told
            check_level(caller, self._policy.needs(caller.right, caller.door))

    def check(self, tx: Connection | Tx, caller: Caller) -> None:
        """Raise if a caller lost its right since its request came in. Call it inside a write."""
        if not caller.token:
            return
        if self._may_have_ended(caller):
            row = tokens.in_force(tx, caller.token)
            if row is None:
                raise BadToken()
            caller = _caller(row, caller.right, caller.door)
        check_level(caller, self._policy.needs(caller.right, caller.door))

    def _may_have_ended(self, caller: Caller) -> bool:
        """Tell whether the token must be looked up: something changed, or it is of a run, which ends."""
        return caller.id in self._rechecked or caller.run is not None

    def check_may_send(self, tx: Connection | Tx, holder: int) -> None:
        """Raise if the holder of an address may not send now: its schedules send without a request."""
        row, needed = tokens.of_holder(tx, holder), self._policy.needs(SENDING)
        if row is None:
            raise Forbidden(
                operation=SENDING, needed=needed.word, caller="its owner", level="no valid token any more"
            )
        check_level(_caller(row, SENDING), needed)

    def _look_up(self, digest: bytes, right: str, door: Door) -> Caller:
        now = clock.now()
        row = self._store.read(lambda connection: tokens.find(connection, digest, now))
        if row is None:
            raise BadToken()
        return _caller(row, right, door)


def _caller(row: Row, right: str, door: Door = "socket") -> Caller:
    return Caller(
        kind=row["kind"],
        address=Address(row["address_kind"], row["name"]),
        id=row["holder"],
        level=Level.BOSS if row["kind"] == "boss" else Level[(row["level"] or "standard").upper()],
        door=door,
        token=row["id"],
        right=right,
        run=row["run"],
        trace=row["trace"],
        hops=row["hops"] or 0,
        attached=row["attached"],
        browser=bool(row["browser"]),
    )


def check_level(caller: Caller, needed: Level) -> None:
    """Raise if the caller's level is below the needed one."""
    if caller.level >= needed:
        return
    if caller.kind == NOBODY.kind:
        raise NoToken()
    raise Forbidden(operation=caller.right, needed=needed.word, caller=caller.name, level=caller.level.word)


def check_may_change(caller: Caller, changed: Address, operation: str) -> None:
    """Raise unless the caller changes itself or is the boss. No policy lets anybody change another one."""
    own = caller.address is not None and caller.address.fold == changed.fold
    if not (caller.is_boss or own):
        raise BossOnly(what=f"{operation} for {changed}", caller=caller.name)
