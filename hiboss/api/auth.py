"""Who makes a request, proved by a token."""

from __future__ import annotations

from dataclasses import dataclass

from ..core.address import BOSS, Address, parse_address
from ..core.errors import BadToken, BossOnly, Forbidden, NoToken, UnknownAddress
from ..routing.presence import Presence
from ..store import tokens
from ..store.addresses import find_address, near_address
from ..store.connection import Connection, Row
from ..store.group_commit import Tx
from ..store.store import Store
from .operation import Level
from .policy import Policy

CACHED_CALLERS = 65_536  # each a token and an operation


@dataclass(frozen=True, kw_only=True, slots=True)
class Caller:
    kind: str  # boss, agent, user, run; nobody
    address: Address | None
    id: int  # of that address
    level: Level
    token: int = 0  # its id; 0: none was needed
    right: str = ""  # what it was admitted to: an operation
    run: int | None = None  # the run this token was made for; what it sends belongs to it
    trace: str | None = None
    hops: int = 0

    @property
    def is_boss(self) -> bool:
        return self.level is Level.BOSS

    @property
    def name(self) -> str:
        return "the boss" if self.is_boss else str(self.address or "a caller without a token")

    @property
    def sees(self) -> int | None:
        """Whose envelopes this caller sees; None: everybody's."""
        return None if self.is_boss else self.id


OWNER = Caller(kind="boss", address=BOSS, id=0, level=Level.BOSS)  # of the home, while no daemon runs
NOBODY = Caller(kind="nobody", address=None, id=0, level=Level.OPEN)


class Authenticator:
    """Knows callers by their tokens. A known token costs a hash and a look into a dictionary."""

    def __init__(self, store: Store, policy: Policy, presence: Presence | None = None) -> None:
        self._store = store
        self._policy = policy
        self._presence = presence
        self._known: dict[tuple[bytes, str], Caller] = {}
        self._rechecked: set[int] = set()  # whose tokens or level have changed since the start

    def authenticate(self, token: str | None, right: str) -> Caller:
        if token is None:
            return NOBODY
        key = (tokens.digest(token), right)
        caller = self._known.get(key)
        if caller is None:
            caller = self._look_up(*key)
            if len(self._known) >= CACHED_CALLERS:
                self._known.clear()
            self._known[key] = caller
        return caller

    def authorize(self, token: str | None, right: str) -> Caller:
        """Whoever holds the token, if they have the level that this right needs now."""
        caller = self.authenticate(token, right)
        check_level(caller, self._policy.needs(right))
        if self._presence is not None and caller.id:
            self._presence.seen(caller.id)
        return caller

    def forget(self) -> None:
        """Tokens or agents have changed: look everybody up again."""
        self._known.clear()

    def recheck_holder(self, holder: int) -> None:
        """Inside a change of tokens or level: from here on the writer looks at what this holder brings."""
        self._rechecked.add(holder)

    def recheck(self, caller: Caller) -> None:
        """After a wait: what a caller may no longer see since its request came in is not shown."""
        self._store.read(lambda connection: self.check(connection, caller))

    def check(self, tx: Connection | Tx, caller: Caller) -> None:
        """Inside a change: what a caller may no longer do since its request came in is not done."""
        if not caller.token:
            return
        if caller.id in self._rechecked or caller.run is not None:  # a run's ends with it, at any moment
            row = tokens.in_force(tx, caller.token)
            if row is None:
                raise BadToken()
            caller = _caller(row, caller.right)
        check_level(caller, self._policy.needs(caller.right))

    def _look_up(self, digest: bytes, right: str) -> Caller:
        row = self._store.read(lambda connection: tokens.find(connection, digest))
        if row is None:
            raise BadToken()
        return _caller(row, right)


def _caller(row: Row, right: str) -> Caller:
    return Caller(
        kind=row["kind"],
        address=Address(row["address_kind"], row["name"]),
        id=row["holder"],
        level=Level.BOSS if row["kind"] == "boss" else Level[(row["level"] or "standard").upper()],
        token=row["id"],
        right=right,
        run=row["run"],
        trace=row["trace"],
        hops=row["hops"] or 0,
    )


def check_level(caller: Caller, needed: Level) -> None:
    if caller.level >= needed:
        return
    if caller is NOBODY:
        raise NoToken()
    raise Forbidden(operation=caller.right, needed=needed.word, caller=caller.name, level=caller.level.word)


def acting_for(store: Store, caller: Caller, named: str | None) -> int:
    """Whose box this is about: the caller's own, or for the boss the one named."""
    if named is None:
        return caller.id
    address = parse_address(named)
    if not caller.is_boss:
        if address.fold == (caller.address.fold if caller.address else None):
            return caller.id
        raise BossOnly(what="looking into another's box (address)", caller=caller.name)
    found = store.read(lambda connection: find_address(connection, address))
    if found is None:
        raise UnknownAddress(address=str(address), hint=store.read(lambda c: near_address(c, address)))
    return found
