"""The adapter for the platform of soak_platform.py; the daemon loads it with HIBOSS_ADAPTERS_MODULES."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Mapping
from typing import Any, ClassVar

from hiboss.core.contracts.adapter import Account, Inbound, Letter, Receive
from hiboss.core.contracts.failures import AccountError, EnvelopeError, LaneError, Refused

POLL_SECONDS = 0.05


class RoughAdapter:
    """Posts and receives over loopback, one connection for each request."""

    type: ClassVar[str] = "rough"

    def __init__(self, account: Account) -> None:
        self._path = os.path.join(str(account.settings["path"]), "platform.json")
        self._facts: dict[str, Any] = {}

    @classmethod
    def bind(cls, given: Mapping[str, Any]) -> tuple[str, dict[str, Any], list[str]]:
        path = given.get("path")
        if not path or not os.path.exists(os.path.join(path, "platform.json")):
            raise Refused("a rough adapter needs the directory of its platform (--path DIR)")
        return "rough", {"path": path}, list(_read(os.path.join(path, "platform.json"))["chats"])

    async def start(self) -> None:
        self._facts = _read(self._path)
        await self._ask({"do": "updates", "after": 0})

    async def stop(self) -> None:
        pass

    async def listen(self, receive: Receive) -> None:
        after = 0
        while True:
            answer = await self._ask({"do": "updates", "after": after})
            for number, text in answer["updates"]:
                await receive(Inbound(update=str(number), place=self._facts["chats"][0], text=text))
                after = number
            await asyncio.sleep(POLL_SECONDS)

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
