"""A webhook that receives, in a daemon inside the test: its requests are signed and handed over as by a door."""

from __future__ import annotations

import hashlib
import hmac
import itertools
import json
from typing import Any

from hiboss.core import clock
from hiboss.core.errors import HibossError
from hiboss.core.webhook_signatures import key_of, signed
from tests.support.in_process_daemon import Envelope, InProcessDaemon

_numbers = itertools.count(1)


def body_of(said: Any) -> bytes:
    return said if isinstance(said, bytes) else json.dumps(said).encode()


def github(secret: str, body: bytes, delivery: str = "d-1", **more: str) -> dict[str, str]:
    """Return the headers with which GitHub sends a body."""
    digest = hmac.digest(secret.encode(), body, hashlib.sha256).hex()
    named = {"x-github-delivery": delivery, "x-hub-signature-256": f"sha256={digest}"}
    return named | {name.replace("_", "-"): value for name, value in more.items()}


class Hook:
    """One webhook, and the program that posts to it."""

    def __init__(self, daemon: InProcessDaemon, name: str, secret: str) -> None:
        self.daemon = daemon
        self.name = name
        self.secret = secret

    @classmethod
    async def create(cls, daemon: InProcessDaemon, to: str = "nex", **params: Any) -> Hook:
        name = f"hook-{next(_numbers)}"
        made = await daemon.ask("webhook.create", name=name, to=to, **params)
        await cls.running(daemon)
        return cls(daemon, name, made["secret"])

    @staticmethod
    async def running(daemon: InProcessDaemon) -> None:
        """Wait until all webhooks listen: one that is only running still waits for the store first."""
        slots = daemon.daemon.wiring.supervisor.slots
        await daemon.until(
            lambda: all(
                one.state == "running" and one.adapter and one.adapter._listens.is_set()
                for one in slots.values()
            )
        )

    @property
    def address(self) -> str:
        return f"channel:webhook:{self.name}"

    def headers(self, body: bytes, delivery: str | None = None, secret: str | None = None) -> dict[str, str]:
        key = key_of(secret or self.secret)
        assert key is not None
        return signed(key, delivery or f"d{next(_numbers)}", clock.now() // 1000, body)

    async def receive(self, headers: dict[str, str], body: bytes, name: str | None = None) -> Any:
        return await self.daemon.daemon.dispatcher.receive_webhook(
            self.name if name is None else name, headers, body
        )

    async def post(self, said: Any, delivery: str | None = None) -> Any:
        """Post a body, signed as it should be; a value is sent as JSON."""
        body = body_of(said)
        return await self.receive(self.headers(body, delivery), body)

    async def refusal(self, headers: dict[str, str], body: bytes, name: str | None = None) -> HibossError:
        """Return the error; the test fails here when there is none."""
        try:
            answer = await self.receive(headers, body, name)
        except HibossError as error:
            return error
        raise AssertionError(f"it was not refused: {answer}")

    def stored(self) -> int:
        """Return how many requests are stored, of all webhooks."""
        (row,) = self.daemon.rows("SELECT count(*) FROM platform_update")
        return int(row[0])

    async def heard(self, number: int, who: str = "nex") -> list[Envelope]:
        """Wait until so many messages of this webhook came in; return them in order."""
        query = "SELECT count(*) FROM platform_update u JOIN binding b ON b.id = u.binding"
        query += " WHERE b.account = ? AND u.message IS NOT NULL"
        await self.daemon.until(lambda: self.daemon.rows(query, self.name)[0][0] >= number)
        page = await self.daemon.ask("envelope.list", who, oldest_first=True, page_size=100)
        found = [one for one in page["envelopes"] if one["from"] == self.address]
        assert len(found) == number
        return found
