"""The only way in: every door calls the dispatcher, which finds the operation, checks and runs it."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from types import CoroutineType
from typing import Any

from ..core import clock
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
from ..routing.subscriptions import Reader
from ..store.boss import find_boss
from ..store.planned_writes import Done, PlannedWrite, settle
from . import (
    attached,
    operation_modules,  # noqa: F401 - importing it declares the operations
    webhook_receiving,
)
from .auth import OWNER, Caller, check_may_change
from .context import Context
from .operation import REGISTRY, Door, Operation
from .request_checks import by_name, check, check_door
from .webhook_receiving import Received

log = logging.getLogger(__name__)
# What programs do for a person who may be away: follow, fetch, and mark what was shown.
BY_ITSELF = frozenset(
    {"event.subscribe", "event.unsubscribe", "envelope.read", "envelope.poll", "message.markRead"}
)


class Dispatcher:
    def __init__(self, context: Context) -> None:
        self._context = context
        self._requests = context.measurements.requests

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
        outcome = asyncio.get_running_loop().create_future()
        waiting = self.start(method, params, token, door, reader, partial(settle, outcome), caller)
        return await (waiting or outcome)

    def start(
        self,
        method: str,
        params: Any,
        token: str | None,
        door: Door,
        reader: Reader | None,
        done: Done,
        caller: Caller | None = None,
    ) -> Coroutine[Any, Any, Any] | None:
        """Run one operation as far as it goes now; `done` gets its result or a HibossError, perhaps at once.

        What has to wait for more than one write is returned, to be run in a task; then `done` is not called.
        """
        try:
            begun = self._begin(method, params, token, caller, door, reader)
            if type(begun) is CoroutineType:
                return self._finish(begun, method, door)
            if type(begun) is PlannedWrite:
                written = partial(self._written, begun.then, method, door, done)
                self._context.store.enqueue(begun.change, written)
                return None
        except Exception as error:  # noqa: BLE001 - told to the client, and logged if it is a defect
            done(None, self._told(error, method, door))
        else:
            done(begun, None)
        return None

    async def _finish(self, begun: Coroutine[Any, Any, Any], method: str, door: Door) -> Any:
        try:
            return await begun
        except Exception as error:
            told = self._told(error, method, door)
            if told is error:
                raise
            raise told from error

    def _written(
        self,
        then: Callable[[Any], Any],
        method: str,
        door: Door,
        done: Done,
        result: Any,
        error: BaseException | None,
    ) -> None:
        """A planned write is on disk, or failed."""
        if error is None:
            try:
                result = then(result)
            except Exception as defect:  # noqa: BLE001 - as in `start`
                error = defect
        done(result, None if error is None else self._told(error, method, door))

    def _begin(
        self,
        method: str,
        params: Any,
        token: str | None,
        caller: Caller | None,
        door: Door,
        reader: Reader | None,
    ) -> Any:
        """Check a request, and run its operation: its result, or what is left to do (`Handler`)."""
        operation = REGISTRY.get(method)
        self._requests[door] += 1
        if operation is None:
            raise MethodNotFound(method=method[:100], hint=nearest(method, list(REGISTRY)))
        given = by_name(operation, params)
        proof = given.pop("token", token)
        if "unnamed" in given:
            attached.refuse_unnamed(self._context, reader, unnamed=given.pop("unnamed"))
        if door != "socket":
            check_door(operation, given, door, reader)
        caller = caller or self._authorize(operation, proof, door)
        if operation.effect != "read" and caller.is_person and operation.name not in BY_ITSELF:
            self._context.user_presence.acts(caller.id)
        checked = check(operation, given, self._context.settings)
        if operation.changes is not None:
            name = str(getattr(checked, "name")).removeprefix(f"{operation.changes}:")  # noqa: B009
            check_may_change(caller, Address(operation.changes, name), operation.name)
        if operation.reads:
            who = caller
            return self._context.store.read(lambda _: operation.run(self._context, who, checked))
        if operation.follows:
            if reader is None:
                raise DoorRefused(what=operation.name, door=door)
            return operation.run(self._context, caller, checked, reader)
        return operation.run(self._context, caller, checked)

    def _told(self, error: BaseException, method: str, door: Door) -> HibossError:
        """Return what the client is told of an error, and count it; a defect of ours is logged."""
        if isinstance(error, HibossError):
            self.refused(door, error)
            return error
        self.refused(door, InternalError)
        reference = secrets.token_hex(4)
        log.error("%s failed (%s).", method, reference, extra={"action": method}, exc_info=error)
        return InternalError(reference=reference)

    def refused(self, door: Door, error: HibossError | type[HibossError]) -> None:
        """Count an error. A door calls this for what it refuses itself, without a call of an operation."""
        self._context.measurements.refused(door, error.code)

    async def receive_webhook(self, name: str, headers: Mapping[str, str], body: bytes) -> Received:
        """Store a request for a webhook (hiboss/api/webhook_receiving.py); raises a HibossError."""
        begun, outcome = clock.elapsed(), "failed"
        try:
            received = await webhook_receiving.receive(self._context, name, headers, body)
            outcome = "accepted"
            return received
        except HibossError as error:
            outcome = "refused" if error.http < 500 else "failed"
            raise
        except Exception as error:
            reference = secrets.token_hex(4)
            log.exception("A webhook failed (%s).", reference, extra={"action": "webhook"})
            raise InternalError(reference=reference) from error
        finally:
            seconds = (clock.elapsed() - begun) / 1_000
            self._context.measurements.observe_webhook("in", seconds, outcome)

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
