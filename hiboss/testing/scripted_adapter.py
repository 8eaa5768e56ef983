"""An adapter that follows a script, for tests of delivery and for authors of adapters.

All its files are in the directory it is bound to, so a test can control it from another process:

- `script.jsonl`: what happens to the next posts, one line each: {"do": "ok"}, {"do": "lane_error",
  "text": "…", "retry_after": 0.1}, {"do": "account_error", …}, {"do": "envelope_error"}, {"do": "crash"},
  {"do": "hang"}; with "after": 0.5 it happens so many seconds later; when there is no line, a post succeeds
- `posts.jsonl`: what was posted, one line each, written before the post is confirmed
- `inbox/<update>.json`: an incoming message ({"text": "hello"}); deleted when it was received
- `settings.json`, read at each start: {"places": […], "chunk": 10, "fail_starts": 2, "fail_listens": 1}

Name it in `adapters.modules` (HIBOSS_ADAPTERS_MODULES=hiboss.testing.scripted_adapter) and bind it with
`--adapter-type scripted --path DIR`.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Mapping
from typing import Any, ClassVar

from ..core.contracts.adapter import Account, Inbound, Letter, Receive
from ..core.contracts.failures import AccountError, EnvelopeError, LaneError, Refused

POLL_SECONDS = 0.02


class ScriptedAdapter:
    """Does with each post what the next line of the script says."""

    type: ClassVar[str] = "scripted"

    def __init__(self, account: Account) -> None:
        self._name = account.name
        self._root = str(account.settings["path"])
        self._settings: dict[str, Any] = {}
        self._posts: Any = None

    @classmethod
    def bind(cls, given: Mapping[str, Any]) -> tuple[str, dict[str, Any], list[str]]:
        path = given.get("path")
        if not path or not os.path.isdir(path):
            raise Refused("a scripted adapter needs a directory that exists (--path DIR)")
        name = os.path.basename(path)
        return name, {"path": path}, [name, *_settings(path).get("places", [])]

    async def start(self) -> None:
        self._settings = _settings(self._root)
        if self._countdown("fail_starts"):
            raise AccountError("refused", "the script refuses this start")
        os.makedirs(os.path.join(self._root, "inbox"), exist_ok=True)
        self._posts = _append(os.path.join(self._root, "posts.jsonl"))

    async def stop(self) -> None:
        if self._posts is not None:
            self._posts.close()

    async def listen(self, receive: Receive) -> None:
        if self._countdown("fail_listens"):
            raise RuntimeError("the script crashes this adapter")
        inbox = os.path.join(self._root, "inbox")
        while True:
            for name in sorted(os.listdir(inbox)):
                if name.endswith(".json"):
                    await self._receive(os.path.join(inbox, name), receive)
            await asyncio.sleep(POLL_SECONDS)

    async def _receive(self, path: str, receive: Receive) -> None:
        fields = _read(path)
        update = os.path.basename(path).removesuffix(".json")
        try:
            await receive(Inbound(update=update, place=fields.pop("place", self._name), **fields))
        except Refused as refusal:
            with _append(path + ".refused") as file:
                file.write(refusal.why)
        os.unlink(path)

    def chunks(self, letter: Letter) -> list[str]:
        size = self._settings.get("chunk") or max(len(letter.text), 1)
        return [letter.text[start : start + size] for start in range(0, len(letter.text), size)] or [""]

    async def post(self, letter: Letter, number: int, chunk: str) -> str:
        step = self._next_step()
        what = step.get("do", "ok")
        text = step.get("text", f"the script says {what}")
        if "after" in step:
            await asyncio.sleep(step["after"])
        if what == "lane_error":
            raise LaneError(step.get("kind", "scripted"), text, step.get("retry_after"))
        if what == "account_error":
            raise AccountError(step.get("kind", "scripted"), text, step.get("retry_after"))
        if what == "envelope_error":
            raise EnvelopeError(step.get("kind", "scripted"), text)
        if what == "crash":
            raise RuntimeError(text)
        if what == "hang":
            await asyncio.sleep(step.get("seconds", 3600))
        note = {
            "id": letter.id,
            "key": letter.chunk_key(number),
            "place": letter.place,
            "number": number,
            "chunk": chunk,
            "reply_to": letter.reply_to,
        }
        self._posts.write(json.dumps(note) + "\n")
        self._posts.flush()
        return f"{letter.id}.{number}"

    def _next_step(self) -> dict[str, Any]:
        """Remove the first line of the script and return it."""
        path = os.path.join(self._root, "script.jsonl")
        try:
            with open(path, encoding="utf-8") as file:
                lines = file.read().splitlines()
        except FileNotFoundError:
            return {}
        if not lines:
            return {}
        with open(path + ".new", "w", encoding="utf-8") as file:
            file.write("".join(f"{line}\n" for line in lines[1:]))
        os.replace(path + ".new", path)
        step: dict[str, Any] = json.loads(lines[0])
        return step

    def _countdown(self, name: str) -> bool:
        """Return whether this setting is above zero, and reduce it by one, also in the settings file."""
        left = self._settings.get(name, 0)
        if not left:
            return False
        self._settings[name] = left - 1
        path = os.path.join(self._root, "settings.json")
        with open(path + ".new", "w", encoding="utf-8") as file:
            json.dump(self._settings, file)
        os.replace(path + ".new", path)  # in one step: a test may read it at any time
        return True


def _append(path: str) -> Any:
    return open(path, "a", encoding="utf-8")


def _read(path: str) -> dict[str, Any]:
    with open(path, encoding="utf-8") as file:
        found: dict[str, Any] = json.load(file)
    return found


def _settings(root: str) -> dict[str, Any]:
    try:
        return _read(os.path.join(root, "settings.json"))
    except FileNotFoundError:
        return {}


ADAPTERS = [ScriptedAdapter]
