"""How an operation is declared."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict

from ..core.errors import HibossError


class Level(IntEnum):
    """What a caller must at least be. OPEN needs no token (the socket serves one uid only)."""

    OPEN = 0
    RESTRICTED = 1
    STANDARD = 2
    PRIVILEGED = 3
    BOSS = 4

    @property
    def word(self) -> str:
        return self.name.lower()


class Params(BaseModel):
    """The parameters of an operation: only those declared, of the declared types."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Nothing(Params):
    """No parameters."""


P = TypeVar("P", bound=Params)
Handler = Callable[[Any, Any, Any], Awaitable[Any]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Operation:
    name: str
    level: Level
    params: type[Params]
    result: Any  # a TypedDict
    errors: tuple[type[HibossError], ...]
    summary: str
    fixed: bool  # no policy changes its level
    waits: bool  # it may take long to answer, and others need not wait for that
    offline: bool  # whoever owns the home may do it while no daemon runs
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
) -> Callable[[Handler], Handler]:
    """Declare an operation; the handler's docstring is its summary."""

    def declare(handler: Handler) -> Handler:
        assert name not in REGISTRY, name
        REGISTRY[name] = Operation(
            name=name,
            level=level,
            params=params,
            result=result,
            errors=errors,
            summary=" ".join((handler.__doc__ or "").split()),
            fixed=fixed or level is Level.OPEN,
            offline=offline,
            waits=waits,
            run=handler,
        )
        return handler

    return declare
