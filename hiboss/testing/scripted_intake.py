"""What comes in through the scripted adapter (hiboss/testing/scripted_adapter.py).

A file `inbox/<update>.json` is an update: the fields of an Inbound, where `place` stands for chat and topic
and `group` for the title of a group. Further keys:

- "act": true: it acts at once, before it is digested (press, membership, command)
- "album": "a1": it is one message together with all that have the same album, also if others came between
  them; their end is known `album_seconds` (0.05) after the last part that came
- "downloads": [{"name": "a.txt", "content": "…", "gate": "/a/file"}]: files to fetch; with a gate this takes
  until that file exists; {"name": "a.txt", "lost": true}: it cannot be fetched; with an "id" it has that
  one on the platform, and keeps its name as it is

The file is deleted when `take` has returned. With {"keeps_updates": true} in settings.json it stays, as
on a platform that delivers its updates again until its offset is advanced: only those after
the position come again. `digest.jsonl` says what happens to the next digestions, like `script.jsonl`,
and {"do": "refused"}. `digested.jsonl` lists the updates that were digested, and their problems.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Sequence
from typing import Any

from ..core.contracts.adapter import Take
from ..core.contracts.failures import LaneError, Refused
from ..core.contracts.inbound import Author, Digested, Inbound, NotYet, ReceivedFile, Update, download_path

POLL_SECONDS = 0.02
_EXTRA = ("act", "album", "downloads")


class ScriptedIntake:
    """The part of the scripted adapter that listens and digests."""

    _name: str
    _root: str
    _settings: dict[str, Any]
    _position: str | None

    async def listen(self, take: Take) -> None:
        if self._countdown("fail_listens"):
            raise RuntimeError("the script crashes this adapter")
        while True:
            if updates := self._updates():
                await take(updates, updates[-1].id)
                self._position = updates[-1].id
                if not self._settings.get("keeps_updates"):
                    for update in updates:
                        os.unlink(self._file(update.id))
            await asyncio.sleep(POLL_SECONDS)

    def _countdown(self, name: str) -> bool:
        raise NotImplementedError

    async def _follow_script(self, script: str) -> str:
        raise NotImplementedError

    def _file(self, update: str) -> str:
        return os.path.join(self._root, "inbox", f"{update}.json")

    def _updates(self) -> list[Update]:
        names = sorted(os.listdir(os.path.join(self._root, "inbox")))
        ids = [name.removesuffix(".json") for name in names if name.endswith(".json")]
        if self._settings.get("keeps_updates") and self._position is not None:
            ids = [one for one in ids if one > self._position]
        return [self._update(one) for one in ids]

    def _update(self, number: str) -> Update:
        with open(self._file(number), encoding="utf-8") as file:
            raw = json.load(file)
        inbound = self._inbound(raw)
        act = inbound if raw.get("act") else None
        return Update(id=number, chat=inbound.chat, raw=raw, message=inbound.message, act=act)

    def _inbound(self, raw: dict[str, Any], files: Sequence[str | ReceivedFile] = ()) -> Inbound:
        fields = {key: value for key, value in raw.items() if key not in _EXTRA}
        chat, _, topic = fields.pop("place", self._name).partition("/")
        group = fields.pop("group", None)
        if group is not None:
            fields |= {"title": group, "chat_kind": "group"}
        fields["author"] = Author(**fields.get("author", {}))
        fields["files"] = [*fields.get("files", ()), *files]
        return Inbound(**{"chat": chat, "topic": topic or None, **fields})

    async def digest(
        self, updates: Sequence[Update], downloads: str, *, waited: bool, last_try: bool
    ) -> Digested | NotYet:
        if await self._follow_script("digest") == "refused":
            raise Refused("the script refuses this update")
        first = updates[0].raw
        if "album" not in first:
            return Digested(await self._with_files(first, downloads, last_try))
        album = [one for one in updates if one.raw.get("album") == first["album"]]
        if not waited:
            return NotYet(self._settings.get("album_seconds", 0.05), last=album[-1])
        files = [path for one in album for path in await _download(one.raw, downloads)]
        text = "\n".join(one.raw["text"] for one in album if one.raw.get("text"))
        return Digested(self._inbound({**first, "text": text}, files), uses=album)

    async def _with_files(self, raw: dict[str, Any], downloads: str, last_try: bool) -> Inbound:
        try:
            return self._inbound(raw, await _download(raw, downloads))
        except LaneError as error:
            if not last_try:
                raise
            return self._inbound({**raw, "note": error.text})

    async def digested(self, update: Update, problem: str | None) -> None:
        note = json.dumps({"update": update.id, "problem": problem})
        _write(os.path.join(self._root, "digested.jsonl"), note + "\n")


async def _download(raw: dict[str, Any], directory: str) -> list[str | ReceivedFile]:
    """Fetch the files of an update."""
    found: list[str | ReceivedFile] = []
    for one in raw.get("downloads", ()):
        while "gate" in one and not os.path.exists(one["gate"]):  # noqa: ASYNC110 - another process opens it
            await asyncio.sleep(POLL_SECONDS)
        if one.get("lost"):
            raise LaneError("not_found", f"{one['name']} could not be fetched")
        path = download_path(directory, one["name"])
        _write(path, one["content"])
        found.append(ReceivedFile(path, one["name"], one["id"]) if "id" in one else path)
    return found


def _write(path: str, text: str) -> None:
    with open(path, "a", encoding="utf-8") as file:
        file.write(text)
