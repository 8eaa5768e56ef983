"""What is checked of every request before its operation runs: names, sizes, types, the door it came by."""

from __future__ import annotations

from itertools import islice
from typing import Any

from pydantic import ValidationError

from ..core.errors import DoorRefused, InvalidParams
from ..core.settings import Settings
from ..routing.subscriptions import Reader
from .operation import Door, Operation, Params
from .param_errors import explain
from .param_sizes import check_sizes

UNKNOWN_SHOWN = 20  # parameters


def by_name(operation: Operation, params: Any) -> dict[str, Any]:
    """Return the parameters by name. An array gives them in the declared order."""
    if params is None:
        return {}
    if isinstance(params, dict):
        return dict(params)
    names = operation.param_names
    if len(params) > len(names):
        detail = f"{operation.name} takes at most {len(names)} parameters, not {len(params)}"
        if names:
            detail += f"; they are, in order: {', '.join(names)}"
        raise InvalidParams(detail=detail)
    return dict(zip(names, params, strict=False))


def check_door(operation: Operation, given: dict[str, Any], door: Door, reader: Reader | None) -> None:
    """Raise for what this door does not offer, like files of this machine through others than the socket."""
    if door not in operation.doors or (operation.follows and reader is None):
        raise DoorRefused(what=operation.name, door=door)
    for name in sorted(operation.socket_only):
        if given.get(name):
            raise DoorRefused(what=f"{operation.name} with a path in {name}", door=door)


def check(operation: Operation, given: dict[str, Any], limits: Settings) -> Params:
    if len(given) > len(operation.param_names) + UNKNOWN_SHOWN:  # some are unknown: explain a few of them
        given = dict(islice(given.items(), len(operation.param_names) + UNKNOWN_SHOWN))
    check_sizes(operation.name, operation.sizes, given, limits)
    try:
        return operation.validate(given)
    except ValidationError as error:
        raise InvalidParams(detail=explain(operation, given, error)) from None
