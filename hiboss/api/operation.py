"""The declaration of operations, their registry, and parameters and results that several operations share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from inspect import iscoroutinefunction
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from typing_extensions import TypedDict

from ..core.errors import BossOnly, HibossError, TooLarge
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


Id = str | int
Ids = Annotated[list[Id], Field(min_length=1, max_length=100)]


class Params(BaseModel):
    """The parameters of an operation: only those declared, of the declared types."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Nothing(Params):
    """No parameters."""


class ByName(Params):
    """An agent or a person, by name."""

    name: str


class ChangedCount(TypedDict):
    changed: int  # how many were not in this state before


# A plain function only reads, and everything it reads is one snapshot of the store. A coroutine
# function may write and wait; what it reads between two waits is one snapshot by `Store.read`.
Handler = Callable[[Any, Any, Any], Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class Operation:
    name: str
    level: Level
    params: type[Params]
    sizes: dict[str, Size]  # of those parameters that do not have the default
    result: Any  # a TypedDict
    errors: tuple[type[HibossError], ...]
    summary: str
    fixed: bool  # no policy can change its level
    waits: bool  # it may take long; later requests of the connection are answered before it
    together: bool  # in a batch several in a row run at the same time, so that one COMMIT is for all
    offline: bool  # the owner of the home may call it while no daemon runs
    changes: str | None  # it changes the agent or person that its parameter `name` names
    reads: bool  # its handler is a plain function
    run: Handler

    @property
    def param_names(self) -> list[str]:
        return [field.alias or name for name, field in self.params.model_fields.items()]


REGISTRY: dict[str, Operation] = {}


def operation(
    name: str,
    *,
    level: Level,
    params: type[Params] = Nothing,
    result: Any,
    errors: tuple[type[HibossError], ...] = (),
    fixed: bool = False,
    offline: bool = False,
    waits: bool = False,
    together: bool = False,
    changes: Literal["agent", "user"] | None = None,
) -> Callable[[Handler], Handler]:
    """Declare an operation. The handler's docstring is its summary in the reference.

    `changes`: it changes the agent or person named by `name`; only the boss may do that to others.
    """
    if changes is not None:
        errors = (*errors, BossOnly)

    def declare(handler: Handler) -> Handler:
        assert name not in REGISTRY, name
        declared = sizes(params)
        assert TooLarge in errors or not any(size.by_setting for size in declared.values()), name
        REGISTRY[name] = Operation(
            name=name,
            level=level,
            params=params,
            sizes=declared,
            result=result,
            errors=errors,
            summary=" ".join((handler.__doc__ or "").split()),
            fixed=fixed or level is Level.OPEN,
            offline=offline,
            waits=waits,
            together=together,
            changes=changes,
            reads=not iscoroutinefunction(handler),
            run=handler,
        )
        return handler

    return declare
