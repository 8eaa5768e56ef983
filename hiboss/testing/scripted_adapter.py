"""An adapter that follows a script, for tests of delivery and for authors of adapters.

All its files are in the directory it is bound to, so a test can control it from another process:

- `script.jsonl`: what happens to the next posts, one line each: {"do": "ok"}, {"do": "lane_error",
  "text": "…", "retry_after": 0.1}, {"do": "account_error", …}, {"do": "envelope_error"}, {"do": "crash"},
  {"do": "hang"}; with "after": 0.5 it happens so many seconds later, with "until": "FILE" when there is
  that file; when there is no line, a post succeeds
- `edit.jsonl`, `delete.jsonl`, `typing.jsonl`, `draft.jsonl`, `react.jsonl`: the same for these calls
- `posts.jsonl`: what was posted, one line each, written before the post is confirmed
- `changes.jsonl`: posts that were edited or deleted; `signs.jsonl`: typing, drafts and reactions
- `refused.jsonl`: what came too soon in a chat (`chat_seconds`), and was refused with that wait
- `inbox/<update>.json`: an update ({"text": "hello"}), see hiboss/testing/scripted_intake.py
- `settings.json`, read at each start: {"places": […], "chunk": 10, "fail_starts": 2, "fail_listens": 1,
  "refuses": "…" (what `check` answers),
  "capabilities": ["edit", "delete"], "limit": 4096 (characters of a post), "chat_seconds": 1,
  "parts": 3 (posts of each chunk), "emojis": ["👍"] (those that can be put on a message)}

Name it in `adapters.modules` (HIBOSS_ADAPTERS_MODULES=hiboss.testing.scripted_adapter) and bind it with
`--adapter-type scripted --path DIR`.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from pydantic import Field, SecretStr

from ..core.contracts.adapter import (
    CAPABILITIES,
    Account,
    AdapterSettings,
    Chat,
    Checked,
    Command,
    Letter,
    Posted,
)
from ..core.contracts.failures import AccountError, EnvelopeError, LaneError, Refused
from .scripted_intake import ScriptedIntake


class ScriptedSettings(AdapterSettings):
    """What a binding of the scripted adapter needs."""

    path: Path = Field(description="the directory with its files; it must exist")
    password: SecretStr | None = Field(None, description="any text, to see what becomes of a secret")


class ScriptedAdapter(ScriptedIntake):
    """A platform played by a script: does with each post what its next line says."""

    type: ClassVar[str] = "scripted"
    Settings = ScriptedSettings
    capabilities: ClassVar[frozenset[str]] = CAPABILITIES
    open_to_all: ClassVar[bool] = True

    def __init__(self, account: Account) -> None:
        self._name = account.name
        self._root = str(account.settings.path)
        self._position = account.position
        self._settings: dict[str, Any] = {}
        self._posts: Any = None
        self._there: set[str] = set()  # the ids of the posts that can be edited
        self._free_at: dict[str, float] = {}  # by chat: when it takes the next post

    @classmethod
    async def check(cls, given: ScriptedSettings, home: str) -> Checked:
        path = str(given.path)
        if not os.path.isabs(path) or not os.path.isdir(path):
            raise Refused("a scripted adapter needs a directory that exists (--path DIR)")
        settings = _settings(path)
        if "refuses" in settings:
            raise AccountError("refused", settings["refuses"])
        name = os.path.basename(path)
        chats = [Chat(name), *[Chat(place) for place in settings.get("places", [])]]
        return Checked(account=name, settings=given, chats=chats)

    async def start(self) -> None:
        self._settings = _settings(self._root)
        if self._countdown("fail_starts"):
            raise AccountError("refused", "the script refuses this start")
        os.makedirs(os.path.join(self._root, "inbox"), exist_ok=True)
        self._posts = _append(os.path.join(self._root, "posts.jsonl"))
        self._there = self._read_posts()
        # A platform that can do little, unless the test wants more.
        self.capabilities = frozenset(self._settings.get("capabilities", ["files", "threads"]))  # type: ignore[misc]
        self.emojis = None if "emojis" not in self._settings else frozenset(self._settings["emojis"])

    async def stop(self) -> None:
        if self._posts is not None:
            self._posts.close()

    def chunks(self, letter: Letter) -> list[str]:
        size = self._settings.get("chunk") or max(len(letter.text), 1)
        return [letter.text[start : start + size] for start in range(0, len(letter.text), size)] or [""]

    async def post(self, letter: Letter, number: int, chunk: str) -> str | Posted:
        await self._follow_script("script", letter.chat, chunk)
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
        ids = _ids(letter.id, number, self._settings.get("parts", 1))
        self._there.update(ids)
        return ids[0] if len(ids) == 1 else Posted(ids)

    # --- only if settings.json declares the capability -----------------------------------

    async def edit(self, place: str, platform_id: str, chunk: str, key: str) -> None:
        await self._follow_script("edit", place.partition("/")[0], chunk)
        if platform_id not in self._there:
            raise EnvelopeError("not_found", f"there is no post {platform_id}")
        self._note_change(do="edit", id=platform_id, place=place, chunk=chunk, key=key)

    async def delete(self, place: str, platform_id: str) -> None:
        await self._follow_script("delete")
        if platform_id in self._there:
            self._there.remove(platform_id)
            self._note_change(do="delete", id=platform_id, place=place)

    async def remove_buttons(self, place: str, platform_id: str) -> None:
        if platform_id not in self._there:
            raise EnvelopeError("not_found", f"there is no post {platform_id}")
        self._note_change(do="remove_buttons", id=platform_id, place=place)

    async def react(self, place: str, platform_id: str, emoji: str | None) -> None:
        await self._follow_script("react")
        self._note_sign(sign="react", place=place, id=platform_id, emoji=emoji)

    async def typing(self, place: str) -> None:
        await self._follow_script("typing")
        self._note_sign(sign="typing", place=place)

    async def create_topic(self, chat: str, name: str) -> str:
        await self._follow_script("topic")
        self._note_sign(sign="topic", place=chat, text=name)
        return f"topic-of-{name}"

    async def show_commands(self, chat: str, commands: Sequence[Command]) -> None:
        self._note_sign(sign="menu", place=chat, text=" ".join(one.name for one in commands))

    async def draft(self, place: str, number: int, chunk: str) -> None:
        await self._follow_script("draft", place.partition("/")[0])
        self._note_sign(sign="draft", place=place, number=str(number), text=chunk)

    def _note_change(self, **facts: str) -> None:
        with _append(os.path.join(self._root, "changes.jsonl")) as file:
            file.write(json.dumps(facts) + "\n")

    def _note_sign(self, **facts: str | None) -> None:
        with _append(os.path.join(self._root, "signs.jsonl")) as file:
            file.write(json.dumps(facts) + "\n")

    def _read_posts(self) -> set[str]:
        """Return the ids of what is there, as the platform knows them after a restart of the daemon."""
        there = set()
        for note in _lines(os.path.join(self._root, "posts.jsonl")):
            there.update(_ids(note["id"], note["number"], self._settings.get("parts", 1)))
        changes = _lines(os.path.join(self._root, "changes.jsonl"))
        gone = {one["id"] for one in changes if one["do"] == "delete"}
        return there - gone

    async def _follow_script(self, script: str, chat: str | None = None, chunk: str = "") -> str:
        """Do what the next line of a script says, and keep the rules of the platform."""
        step = self._next_step(script)
        what = step.get("do", "ok")
        text = step.get("text", f"the script says {what}")
        if "after" in step:
            await asyncio.sleep(step["after"])
        while "until" in step and not os.path.exists(step["until"]):  # noqa: ASYNC110 - of another process
            await asyncio.sleep(0.01)
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
        limit = self._settings.get("limit")
        if limit and len(chunk) > limit:
            raise EnvelopeError("too_long", f"it has {len(chunk)} characters, and the limit is {limit}")
        if chat is not None:
            self._pace(chat)
        return str(what)

    def _pace(self, chat: str) -> None:
        """Refuse what comes too soon after the last thing in a chat, in whichever topic: 429."""
        pause = self._settings.get("chat_seconds", 0)
        if not pause:
            return
        now = asyncio.get_running_loop().time()
        left = self._free_at.get(chat, now) - now
        if left > 0:
            with _append(os.path.join(self._root, "refused.jsonl")) as file:
                file.write(json.dumps({"chat": chat, "left": left}) + "\n")
            raise LaneError("rate_limited", "too many posts in this chat", left)
        self._free_at[chat] = now + pause

    def _next_step(self, script: str) -> dict[str, Any]:
        """Remove the first line of a script and return it."""
        path = os.path.join(self._root, f"{script}.jsonl")
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


def _ids(letter: str, number: int, parts: int) -> list[str]:
    """Return the ids of the posts that a chunk makes: several with the setting `parts`, like an album."""
    first = f"{letter}.{number}"
    return [first, *[f"{first}+{part}" for part in range(1, parts)]]


def _append(path: str) -> Any:
    return open(path, "a", encoding="utf-8")


def _lines(path: str) -> list[dict[str, Any]]:
    try:
        with open(path, encoding="utf-8") as file:
            return [json.loads(line) for line in file]
    except FileNotFoundError:
        return []


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
