"""The only way in: every door calls the dispatcher, which finds the operation, checks and runs it."""

from __future__ import annotations

import logging
import secrets
from itertools import islice
from typing import Any

from pydantic import ValidationError

from ..core.address import Address
from ..core.errors import (
    BadToken,
    DaemonUnreachable,
    DoorRefused,
    HibossError,
    InternalError,
    InvalidParams,
    MethodNotFound,
    NoToken,
    NotSetUp,
)
from ..core.quoting import nearest
from ..core.settings import Settings
from ..routing.subscriptions import Reader
from ..store.boss import find_boss
from . import (  # noqa: F401 - importing them declares the operations
    agent_instructions,
    agent_sessions,
    agent_status,
    agent_watches,
    agents,
    ask_rules,
    asks,
    attached,
    attached_asks,
    bindings,
    boss,
    breaker,
    contacts,
    controls,
    conversations,
    daemon,
    discovery,
    envelopes,
    events,
    lanes,
    leases,
    long_poll,
    messages,
    permissions,
    presence,
    providers,
    reactions,
    run_controls,
    run_steering,
    runs,
    schedules,
    sending,
    settings,
    setup,
    tokens,
    turn_preview,
    users,
)
from .auth import OWNER, Caller, check_may_change
from .context import Context
from .operation import REGISTRY, Door, Level, Operation, Params
from .param_errors import explain
from .param_sizes import check_sizes

log = logging.getLogger(__name__)
UNKNOWN_SHOWN = 20  # parameters
# What programs do for a person who may be away: follow, fetch, and mark what was shown.
BY_ITSELF = frozenset({"event.subscribe", "event.unsubscribe", "envelope.read", "envelope.poll"})


class Dispatcher:
    def __init__(self, context: Context) -> None:
        self._context = context

    async def call_offline(self, method: str, params: Any) -> Any:
        """Run one operation for the owner of the home while no daemon runs; or for the holder of a token."""
        operation = REGISTRY.get(method)
        if operation is not None and not operation.offline:
            raise DaemonUnreachable(socket=self._context.home.socket, why=f"{method} needs a daemon")
        has_token = isinstance(params, dict) and params.get("token") is not None
        return await self.call(method, params, caller=None if has_token else OWNER)

    async def call(
        self,
        method: str,
        params: Any,
        token: str | None = None,
        caller: Caller | None = None,
        door: Door = "socket",
        reader: Reader | None = None,
    ) -> Any:
        """Run one operation for the holder of the token; returns its result, or raises a HibossError.

        `reader`: where the notifications of a subscription are written to.
        """
        operation = REGISTRY.get(method)
        if operation is None:
            raise MethodNotFound(method=method[:100], hint=nearest(method, list(REGISTRY)))
        try:
            given = _by_name(operation, params)
            proof = given.pop("token", token)
            attached.refuse_unnamed(self._context, reader, unnamed=given.pop("unnamed", None))
            if door != "socket":
                _check_door(operation, given, door)
            caller = caller or self._authorize(operation, proof, door)
            if caller.is_person and operation.effect != "read" and operation.name not in BY_ITSELF:
                self._context.user_presence.acts(caller.id)
            checked = _check(operation, given, self._context.settings)
            if operation.changes is not None:
                name = str(getattr(checked, "name")).removeprefix(f"{operation.changes}:")  # noqa: B009
                check_may_change(caller, Address(operation.changes, name), operation.name)
            if operation.reads:
                who = caller
                return self._context.store.read(lambda _: operation.run(self._context, who, checked))
            if operation.follows:
                if reader is None:
                    raise DoorRefused(what=operation.name, door=door)
                return await operation.run(self._context, caller, checked, reader)
            return await operation.run(self._context, caller, checked)
        except HibossError:
            raise
        except Exception as error:
            reference = secrets.token_hex(4)
            log.exception("%s failed (%s).", method, reference, extra={"action": method})
            raise InternalError(reference=reference) from error

    def _authorize(self, operation: Operation, token: Any, door: Door) -> Caller:
        try:
            return self._context.auth.authorize(_text(token), operation.name, door)
        except (NoToken, BadToken):
            if self._context.store.read(find_boss) is None:  # before set-up no token exists
                raise NotSetUp(home=str(self._context.home)) from None
            raise

    def may_wait(self, method: str) -> bool:
        """Tell whether an operation may take long, so that later requests should not wait for its answer."""
        operation = REGISTRY.get(method)
        return operation is not None and operation.waits

    def may_run_together(self, method: str) -> bool:
        """Tell whether calls of an operation in a row of a batch may run at the same time."""
        operation = REGISTRY.get(method)
        return operation is not None and operation.together

    def check_token(self, token: Any) -> None:
        """Raise if a token is not valid."""
        self._context.auth.authenticate(_text(token), "")


def _text(token: Any) -> str | None:
    if token is not None and not isinstance(token, str):
        raise InvalidParams(detail="token must be text")
    return token


def _by_name(operation: Operation, params: Any) -> dict[str, Any]:
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


def _check_door(operation: Operation, given: dict[str, Any], door: Door) -> None:
    """Raise for what only the unix socket allows: operations without a token, and files of this machine."""
    if operation.level is Level.OPEN:
        raise DoorRefused(what=operation.name, door=door)
    for name in sorted(operation.socket_only):
        if given.get(name):
            raise DoorRefused(what=f"{operation.name} with a path in {name}", door=door)


def _check(operation: Operation, given: dict[str, Any], limits: Settings) -> Params:
    if len(given) > len(operation.param_names) + UNKNOWN_SHOWN:  # some are unknown: explain a few of them
        given = dict(islice(given.items(), len(operation.param_names) + UNKNOWN_SHOWN))
    check_sizes(operation.name, operation.sizes, given, limits)
    try:
        return operation.params.model_validate(given)
    except ValidationError as error:
        raise InvalidParams(detail=explain(operation, given, error)) from None
