"""The adapter for the platform of soak_platform.py; the daemon loads it with HIBOSS_ADAPTERS_MODULES."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Sequence
from typing import Any, ClassVar

from pydantic import Field

from hiboss.core.contracts.adapter import Account, AdapterSettings, Chat, Checked, Letter, Take
from hiboss.core.contracts.failures import AccountError, EnvelopeError, LaneError, Refused
from hiboss.core.contracts.inbound import Digested, Inbound, Update

POLL_SECONDS = 0.05


class RoughSettings(AdapterSettings):
    path: str = Field(description="the directory of its platform")


class RoughAdapter:
    """Posts and receives over loopback, one connection for each request."""

    type: ClassVar[str] = "rough"
    Settings = RoughSettings

    def __init__(self, account: Account) -> None:
        self._path = os.path.join(account.settings.path, "platform.json")
        self._after = int(account.position or 0)
        self._facts: dict[str, Any] = {}

    @classmethod
    async def check(cls, given: RoughSettings, home: str) -> Checked:
        path = os.path.join(given.path, "platform.json")
        if not os.path.exists(path):
            raise Refused("a rough adapter needs the directory of its platform (--path DIR)")
        return Checked(account="rough", settings=given, chats=[Chat(one) for one in _read(path)["chats"]])

    async def start(self) -> None:
        self._facts = _read(self._path)
        await self._ask({"do": "updates", "after": 0})

    async def stop(self) -> None:
        pass

    async def listen(self, take: Take) -> None:
        while True:
            answer = await self._ask({"do": "updates", "after": self._after})
            chat = self._facts["chats"][0]
            updates = [Update(id=str(number), chat=chat, raw=text) for number, text in answer["updates"]]
            if updates:
                await take(updates, updates[-1].id)
                self._after = int(updates[-1].id)
            await asyncio.sleep(POLL_SECONDS)

    async def digest(
        self, updates: Sequence[Update], downloads: str, *, waited: bool, last_try: bool
    ) -> Digested:
        return Digested(Inbound(chat=updates[0].chat, text=updates[0].raw))

    def chunks(self, letter: Letter) -> list[str]:
        size = self._facts["chunk"]
        return [letter.text[start : start + size] for start in range(0, len(letter.text), size)] or [""]

    async def post(self, letter: Letter, number: int, chunk: str) -> str:
        request = {"do": "post", "chat": letter.place, "envelope": letter.id, "number": number}
        answer = await self._ask({**request, "key": letter.chunk_key(number), "text": chunk})
        if answer["status"] == 400:
            raise EnvelopeError("refused", "the platform never takes this")
        if answer["status"] == 500:
            raise LaneError("server_error", "the platform says 500")
        if answer["status"] == 429:
            kind = LaneError if answer["scope"] == "chat" else AccountError
            raise kind("flood", "the platform says 429", answer["retry_after"])
        return str(answer["id"])

    async def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", self._facts["port"])
        except OSError as error:
            raise AccountError("network", str(error)) from error
        try:
            writer.write(json.dumps(request).encode() + b"\n")
            line = await reader.readline()
        except OSError as error:
            raise LaneError("network", str(error)) from error
        finally:
            writer.close()
        if not line.endswith(b"\n"):
            raise LaneError("network", "the connection ended without an answer")
        answer: dict[str, Any] = json.loads(line)
        if answer["status"] == "crash":
            raise RuntimeError("the platform sent what this adapter cannot read")
        return answer


def _read(path: str) -> dict[str, Any]:
    with open(path, encoding="utf-8") as file:
        found: dict[str, Any] = json.load(file)
    return found


ADAPTERS = [RoughAdapter]
