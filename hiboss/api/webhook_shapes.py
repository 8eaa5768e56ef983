"""Webhooks as operations show them, and how one is found by its name."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field
from typing_extensions import TypedDict

from ..channels.webhook.adapter import TYPE, WebhookSettings, check_name
from ..core import clock
from ..core.contracts.failures import Refused
from ..core.errors import InvalidParams, UnknownWebhook
from ..core.option_models import Validated, validate
from ..core.quoting import nearest
from ..routing.fact_webhooks import SENT
from ..store import bindings, webhook_subscriptions
from ..store.connection import Connection, Row
from ..store.fact_parties import address_name
from ..store.group_commit import Tx
from .bindings import BindingJson, every_binding
from .context import Context
from .operation import Params, Timezone

PATH = "/hooks/"


class ByHook(Params):
    name: str = Field(description="of the webhook, like ci")


class WebhookJson(TypedDict):
    name: Annotated[str, Field(description="unique over all webhooks")]
    direction: Annotated[
        Literal["in", "out"], Field(description="in: programs post to it; out: it posts facts")
    ]
    address: Annotated[str, Field(description="from or to which its messages are, like channel:webhook:ci")]
    binding: Annotated[str, Field(description="its id, like b1")]
    created_at: Annotated[str, Field(description="when it was created")]
    path: Annotated[
        str | None, Field(description="in: where to post to, on the web server of hiboss; null for out")
    ]
    to: Annotated[str | None, Field(description="in: the agent that gets what comes in; null for out")]
    template: Annotated[
        str | None, Field(description="in: the text of a message, with fields; null: the body itself")
    ]
    subject: Annotated[str | None, Field(description="in: its subject, with fields; null: it has none")]
    url: Annotated[str | None, Field(description="out: where to post to; null for in")]
    topics: Annotated[list[str] | None, Field(description="out: of which facts; null for in")]
    addresses: Annotated[
        list[str] | None, Field(description="out: one of whom is a party; empty: whoever is; null for in")
    ]
    state: Annotated[str, Field(description="of its adapter: starting, running, failed, stopped")]
    refused: Annotated[
        int, Field(description="in: requests with a wrong signature since its adapter was started")
    ]
    failing_since: Annotated[str | None, Field(description="out: since when nothing could be posted")]
    next_try_at: Annotated[str | None, Field(description="out: when it is tried again")]
    last_error: Annotated[str | None, Field(description="of its adapter, or of the last post that failed")]


class WebhookResult(TypedDict):
    webhook: Annotated[WebhookJson, Field(description="as it is stored now")]
    timezone: Timezone


class NewWebhook(TypedDict):
    webhook: Annotated[WebhookJson, Field(description="as it is stored now")]
    secret: Annotated[str, Field(description="signs the requests; the other side needs it. Shown only here")]
    timezone: Timezone


class WebhookList(TypedDict):
    webhooks: Annotated[list[WebhookJson], Field(description="all of both directions, oldest first")]
    timezone: Timezone


def find(connection: Connection | Tx, name: str) -> Row:
    """Return the binding of a webhook; raise UnknownWebhook if there is none."""
    row = bindings.find(connection, TYPE, name)
    if row is None:
        known = [one["account"] for one in bindings.list_all(connection) if one["adapter"] == TYPE]
        raise UnknownWebhook(name=name[:80], hint=nearest(name, known))
    return row


def checked(settings: Mapping[str, Any]) -> Validated:
    """Return settings in the form in which they are stored; raise InvalidParams if they cannot be."""
    try:
        check_name(settings["hook"])
    except ValueError as error:
        raise InvalidParams(detail=f"the name of a webhook {error}") from None
    try:
        return validate(WebhookSettings, settings, TYPE)
    except Refused as refusal:
        raise InvalidParams(detail=refusal.why) from None


def shown(context: Context, connection: Connection, name: str) -> WebhookJson:
    """Return one webhook; raise UnknownWebhook if there is none."""
    number = find(connection, name)["id"]
    return next(one for one in all_shown(context, connection) if one["binding"] == f"b{number}")


def all_shown(context: Context, connection: Connection) -> list[WebhookJson]:
    """Return all webhooks, oldest first."""
    rows = {f"b{row['id']}": row for row in bindings.list_all(connection) if row["adapter"] == TYPE}
    followed = {f"b{row['binding']}": row for row in webhook_subscriptions.list_all(connection)}
    return [
        _json(context, connection, one, rows[one["binding"]], followed.get(one["binding"]))
        for one in every_binding(context)
        if one["binding"] in rows
    ]


def _json(
    context: Context, connection: Connection, binding: BindingJson, row: Row, followed: Row | None
) -> WebhookJson:
    settings, slot = json.loads(row["settings"]), context.supervisor.slots.get(row["id"])
    out = "url" in settings
    return {
        "name": row["account"],
        "direction": "out" if out else "in",
        "address": f"channel:{TYPE}:{row['account']}",
        "binding": binding["binding"],
        "created_at": clock.iso(row["created_at"]),
        "path": None if out else PATH + row["account"],
        "to": None if binding["leads"] is None else f"agent:{binding['leads']}",
        "template": settings.get("template"),
        "subject": settings.get("subject"),
        "url": settings.get("url"),
        "topics": None if followed is None else json.loads(followed["topics"]) or list(SENT),
        "addresses": None
        if followed is None
        else [address_name(connection, one) for one in json.loads(followed["parties"])],
        "state": binding["state"],
        "refused": getattr(slot.adapter if slot else None, "refused", 0),
        **_failing(connection, row, binding),  # type: ignore[typeddict-item]
    }


def _failing(connection: Connection, row: Row, binding: BindingJson) -> dict[str, str | None]:
    """Return since when a webhook cannot post: its one lane fails, or its whole account."""
    lane = webhook_subscriptions.failing(connection, row["id"])
    if lane is None:
        return {
            "failing_since": binding["failing_since"],
            "next_try_at": binding["next_try_at"],
            "last_error": binding["last_error"],
        }
    return {
        "failing_since": clock.iso_or_none(lane["first_failed_at"]),
        "next_try_at": clock.iso_or_none(lane["wake_at"]),
        "last_error": lane["error_text"],
    }
