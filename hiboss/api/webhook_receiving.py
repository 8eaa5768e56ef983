"""What the door for HTTP calls when a request for a webhook comes: check its signature, and store it.

It needs no token: the signature proves who sent it. All that can be wrong has one answer, after the same
work, so whoever has no secret learns nothing; not even which webhooks there are.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field
from typing_extensions import TypedDict

from ..channels.webhook.adapter import TYPE, WebhookAdapter
from ..core import clock
from ..core.contracts.failures import LaneError
from ..core.errors import Busy, TooLarge, UnknownBinding, WebhookRefused
from ..core.webhook_signatures import key_of, verified
from ..store import bindings
from ..store.connection import Row
from .context import Context

START_LOOKS, LOOK_SECONDS = 250, 0.02  # how long a request waits for the start of its webhook


class Received(TypedDict):
    accepted: Annotated[Literal[True], Field(description="always true: it is stored")]
    duplicate: Annotated[bool, Field(description="true: it was stored before, and nothing was stored now")]


async def receive(context: Context, name: str, headers: Mapping[str, str], body: bytes) -> Received:
    """Store a request for a webhook; when this returns it is on disk.

    `headers` by their names in small letters. Raises WebhookRefused, TooLarge, or an error after which the
    sender should try again: Busy, or one about the store.
    """
    limit = context.settings.webhook_body_bytes
    if len(body) > limit:
        advice = " (webhooks.body_bytes)"
        raise TooLarge(what="the body", size=f"{len(body)} bytes", limit=str(limit), advice=advice)
    row = context.store.read(lambda c: bindings.find(c, TYPE, name))
    adapter = _adapter(context, row)
    delivery = verified(_keys(context, row, adapter), headers, body, clock.now())
    if delivery is None:
        if adapter is not None:
            adapter.refused += 1
        raise WebhookRefused()
    try:
        running = adapter or await _started(context, row)
        is_new = await running.receive(delivery, headers, body)
    except UnknownBinding:  # it has ended meanwhile
        raise WebhookRefused() from None
    except LaneError:
        raise Busy(what="this webhook does not run at the moment, try again in a moment") from None
    return {"accepted": True, "duplicate": not is_new}


async def _started(context: Context, row: Row | None) -> WebhookAdapter:
    """Return the adapter of a webhook when its start is over; raise LaneError if it does not run then.

    Some senders never repeat a request, and a start takes a few milliseconds.
    """
    for _ in range(START_LOOKS):
        if row is None or not context.supervisor.is_starting(row["id"]):
            break
        await asyncio.sleep(LOOK_SECONDS)
    adapter = _adapter(context, row)
    if adapter is None:
        raise LaneError("not_running", "the webhook does not run")
    return adapter


def _adapter(context: Context, row: Row | None) -> WebhookAdapter | None:
    """Return the adapter of a webhook; None: there is no such webhook, or it does not run."""
    slot = None if row is None else context.supervisor.slots.get(row["id"])
    found: Any = None if slot is None else slot.adapter
    return found if isinstance(found, WebhookAdapter) else None


def _keys(context: Context, row: Row | None, adapter: WebhookAdapter | None) -> tuple[bytes, bytes] | None:
    """Return the keys for the two kinds of signatures; None: nobody has one, or it only sends."""
    if row is None or "url" in json.loads(row["settings"]):
        return None
    secret = context.home.secrets_of(row["secrets"]).get("secret", "") if adapter is None else adapter.secret
    key = key_of(secret)
    return None if key is None else (key, secret.encode())
