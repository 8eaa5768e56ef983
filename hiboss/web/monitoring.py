"""Whether the daemon works, and what it does: /health for everybody, /metrics for Prometheus."""

from __future__ import annotations

import asyncio

from starlette.requests import Request
from starlette.responses import Response

from . import answers, metrics
from .door import Door


async def health(door: Door, request: Request) -> Response:
    found = door.calls.health()
    return answers.result(found, 200 if found["status"] == "ok" else 503)


async def show_metrics(door: Door, request: Request) -> Response:
    found = await door.call(request, "daemon.metrics", {})
    written = await asyncio.to_thread(metrics.exposition, found["families"])
    return Response(written, headers={"content-type": metrics.CONTENT_TYPE})
