"""The declaration of operations, their registry, and parameters and results that several operations share.

An operation is declared once, with everything that the reference and `rpc.discover` show:

- every parameter and every field of a result has a description: `Field(description=…)`, in a TypedDict
  as `Annotated[int, Field(description=…)]`. It is a short sentence and says what the name does not.
- `effect` says what a call does, so that a client knows what it may repeat, and what to ask before.
- an example, recorded from a daemon by `python -m docs.record_examples`: add a call to docs/example_calls.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from inspect import iscoroutinefunction
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue
from typing_extensions import TypedDict

from ..core import errors as known
from ..core.errors import BossOnly, HibossError, TooLarge
from ..store.planned_writes import Done as Done  # how a door is told of the result
from .param_sizes import Size, sizes


class Level(IntEnum):
    """The levels of callers, lowest first. OPEN needs no token (the socket serves one uid only)."""

    OPEN = 0
    RESTRICTED = 1
    STANDARD = 2
    PRIVILEGED = 3
    BOSS = 4

    @property
    def word(self) -> str:
        return self.name.lower()


# read: it changes nothing (but when the caller was last seen). idempotent: a second call like the first
# changes nothing more. change: each call does it again. destructive: it ends or removes something that no
# other operation brings back.
Effect = Literal["read", "idempotent", "change", "destructive"]

# The way a request came in. Only the unix socket tells who is at the other end without a token.
Door = Literal["socket", "web", "mcp"]
SOCKET_ONLY: dict[str, JsonValue] = {
    "x-door": "socket"
}  # json_schema_extra of a parameter that names files of this machine

Timezone = Annotated[str, Field(description="the boss's time zone, an IANA name like Europe/Berlin")]
Id = str | int
Ids = Annotated[list[Id], Field(min_length=1, max_length=100)]


class Params(BaseModel):
    """The parameters of an operation: only those declared, of the declared types."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Nothing(Params):
    """No parameters."""


class ByName(Params):
    """An agent or a person, by name."""

    name: str = Field(description="the name alone, like nex, without agent: or user:")


class ChangedCount(TypedDict):
    changed: Annotated[int, Field(description="how many were not in this state before")]


# A plain function only reads, and everything it reads is one snapshot of the store. A coroutine
# function may write and wait; what it reads between two waits is one snapshot by `Store.read`.
# One that is declared with `plans` is a plain function that returns the one change it makes
# (store/planned_writes.py), so that it needs no task; or a coroutine where that is not all, or
# its result where there is nothing to wait for.
Handler = Callable[..., Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class Operation:
    name: str
    level: Level
    elsewhere: Level | None  # of an OPEN one: what other doors than the socket need; None: they refuse it
    params: type[Params]
    sizes: dict[str, Size]  # of those parameters that do not have the default
    result: Any  # a TypedDict
    errors: tuple[type[HibossError], ...]
    summary: str
    effect: Effect
    socket_only: frozenset[str]  # parameters that only the unix socket takes
    fixed: bool  # no policy can change its level
    follows: bool  # its handler also gets the client's connection, to write notifications to
    waits: bool  # it may take long; later requests of the connection are answered before it
    together: bool  # in a batch several in a row run at the same time, so that one COMMIT is for all
    offline: bool  # the owner of the home may call it while no daemon runs
    changes: str | None  # it changes the agent or person that its parameter `name` names
    reads: bool  # its handler is a plain function that only reads
    run: Handler
    validate: Callable[[dict[str, Any]], Params]  # what `params.model_validate` calls
    param_names: list[str]  # as requests name them, in the declared order

    @property
    def doors(self) -> tuple[Door, ...]:
        """The doors it can be called through."""
        return (
            ("socket",) if self.level is Level.OPEN and self.elsewhere is None else ("socket", "web", "mcp")
        )

    @property
    def dispatch_errors(self) -> tuple[type[HibossError], ...]:
        """The errors that any operation like this one can answer with, besides those it declares."""
        found: list[type[HibossError]] = [known.InvalidParams, known.BadToken]
        if self.level is not Level.OPEN or self.elsewhere is not None:
            found += [known.NoToken, known.Forbidden, known.NotSetUp]
        if len(self.doors) < 3 or self.socket_only:
            found += [known.DoorRefused]
        if self.effect != "read":
            found += [known.Busy, known.StoreFull]
        found += [known.StoreError, known.StoreLocked, known.StoreDamaged]
        found += [known.AnswerTooLarge, known.InternalError]
        return tuple(one for one in found if one not in self.errors)


REGISTRY: dict[str, Operation] = {}


def operation(
    name: str,
    *,
    level: Level,
    elsewhere: Level | None = None,
    params: type[Params] = Nothing,
    result: Any,
    errors: tuple[type[HibossError], ...] = (),
    effect: Effect | None = None,
    fixed: bool = False,
    offline: bool = False,
    follows: bool = False,
    waits: bool = False,
    together: bool = False,
    plans: bool = False,
    changes: Literal["agent", "user"] | None = None,
) -> Callable[[Handler], Handler]:
    """Declare an operation. The handler's docstring is its summary in the reference.

    `elsewhere`: the level that an OPEN operation needs through other doors than the socket; without it they
    refuse it.
    `effect`: what a call does; a plain function only reads, so it need not say so.
    `changes`: it changes the agent or person named by `name`; only the boss may do that to others.
    """
    if changes is not None:
        errors = (*errors, BossOnly)

    def declare(handler: Handler) -> Handler:
        assert name not in REGISTRY, name
        assert elsewhere is None or level is Level.OPEN, name
        reads = not (plans or iscoroutinefunction(handler))
        assert effect or reads, f"{name} must say its effect"
        declared = sizes(params)
        assert TooLarge in errors or not any(size.by_setting for size in declared.values()), name
        REGISTRY[name] = Operation(
            name=name,
            level=level,
            elsewhere=elsewhere,
            params=params,
            sizes=declared,
            result=result,
            errors=errors,
            summary=" ".join((handler.__doc__ or "").split()),
            effect=effect or "read",
            socket_only=_socket_only(params),
            fixed=fixed or level is Level.OPEN,
            offline=offline,
            follows=follows,
            waits=waits,
            together=together,
            changes=changes,
            reads=reads,
            run=handler,
            validate=params.__pydantic_validator__.validate_python,
            param_names=[field.alias or one for one, field in params.model_fields.items()],
        )
        return handler

    return declare


def _socket_only(params: type[Params]) -> frozenset[str]:
    return frozenset(
        field.alias or name
        for name, field in params.model_fields.items()
        if isinstance(field.json_schema_extra, dict) and field.json_schema_extra.get("x-door") == "socket"
    )
