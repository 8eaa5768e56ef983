"""Webhooks that come in: POST /hooks/NAME. The api checks the signature and stores what came."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from ..core.errors import FrameTooLarge, TooLarge
from . import answers, requests
from .door import Door

BUDGET = requests.Budget(64 * 1024 * 1024)  # everybody may send here, and shows who it is with the body


async def receive(door: Door, request: Request) -> Response:
    limit = door.settings.webhook_body_bytes
    headers = {name.lower(): value for name, value in request.headers.items()}
    with BUDGET.share() as share:
        try:
            body = await requests.body(request, limit, share=share)
        except FrameTooLarge:
            advice = " (webhooks.body_bytes)"
            raise TooLarge(what="the body", size="more", limit=f"{limit} bytes", advice=advice) from None
        received = await door.dispatcher.receive_webhook(request.path_params["name"], headers, body)
    return answers.result(received)
