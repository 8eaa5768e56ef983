"""Rigs: they bring each adapter into the situations that the contract test needs.

A new adapter needs a rig here, listed in RIGS."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any, Protocol

from hiboss.channels.folder import FolderAdapter
from hiboss.core.contracts.adapter import Account, Adapter, File, Letter
from hiboss.testing.scripted_adapter import ScriptedAdapter


def letter(text: str = "hello", **facts: Any) -> Letter:
    known: dict[str, Any] = {
        "id": "e1",
        "key": "home-e1",
        "place": "here",
        "text": text,
        "type": "text",
        "subject": None,
        "sender": "agent:nex",
        "sender_name": None,
        "files": (),
        "reply_to": None,
    }
    return Letter(**{**known, **facts})


class Rig(Protocol):
    """One platform account, for which adapters can be made many times."""

    def __init__(self, directory: Path) -> None:
        """Make the account."""

    def good(self) -> dict[str, Any]:
        """Return what the boss gives to bind it."""

    def bad(self) -> list[dict[str, Any]]:
        """Return what must be refused by `bind`."""

    def make(self) -> Adapter:
        """Return a new adapter of this account, as it is made for every start."""

    def comes_in(self, text: str) -> None:
        """Let a message come in on the platform."""

    def originals(self) -> int:
        """Return how many of those the platform would deliver again."""

    def cannot_start(self) -> None:
        """Let the platform refuse the next start."""

    def cannot_post(self) -> None:
        """Let the platform be unreachable for the next post."""

    def impossible(self) -> Letter:
        """Return a letter that can never be posted."""

    def posted(self) -> list[str]:
        """Return the texts that were posted."""


class FolderRig:
    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.root = directory / "here"
        self.root.mkdir()
        self._count = 0

    def good(self) -> dict[str, Any]:
        return {"path": str(self.root), "home": str(self.directory / "home")}

    def bad(self) -> list[dict[str, Any]]:
        home, file = str(self.directory / "home"), self.directory / "file"
        file.write_text("no directory")
        paths = ["", "here", "/", str(file), home, f"{home}/media", str(self.directory)]
        paths += [
            str(self.directory / name) for name in ("with blank", "with:colon", "x" * 129, "line\nbreak")
        ]
        return [{"home": home}, *[{"path": path, "home": home} for path in paths]]

    def make(self) -> Adapter:
        home = str(self.directory / "home")
        return FolderAdapter(Account(binding=1, name="here", settings={"path": str(self.root)}, home=home))

    def comes_in(self, text: str) -> None:
        self._count += 1
        (self.root / "in").mkdir(exist_ok=True)
        file = self.root / "in" / f"{self._count}.txt"
        file.write_text(text)
        os.utime(file, ns=(self._count, self._count))

    def originals(self) -> int:
        return sum(len(list((self.root / name).glob("*"))) for name in ("in", ".taken"))

    def cannot_start(self) -> None:
        shutil.rmtree(self.root)
        self.root.write_text("no directory any more")

    def cannot_post(self) -> None:
        shutil.rmtree(self.root / "out")
        (self.root / "out").write_text("no directory any more")

    def impossible(self) -> Letter:
        return letter(files=(File("gone.pdf", str(self.directory / "gone"), "application/pdf"),))

    def posted(self) -> list[str]:
        return [file.read_text() for file in (self.root / "out").glob("[!.]*")]


class ScriptedRig:
    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.root = directory / "here"
        (self.root / "inbox").mkdir(parents=True)
        self._count = 0

    def good(self) -> dict[str, Any]:
        return {"path": str(self.root), "home": str(self.directory / "home")}

    def bad(self) -> list[dict[str, Any]]:
        return [{}, {"path": ""}, {"path": str(self.directory / "nothing there")}]

    def make(self) -> Adapter:
        home = str(self.directory / "home")
        return ScriptedAdapter(Account(binding=1, name="here", settings={"path": str(self.root)}, home=home))

    def comes_in(self, text: str) -> None:
        self._count += 1
        partial = self.root / "inbox" / f"{self._count}.part"
        partial.write_text(json.dumps({"text": text}))
        partial.rename(partial.with_suffix(".json"))

    def originals(self) -> int:
        return len(list((self.root / "inbox").glob("*.json")))

    def cannot_start(self) -> None:
        (self.root / "settings.json").write_text('{"fail_starts": 1}')

    def cannot_post(self) -> None:
        (self.root / "script.jsonl").write_text('{"do": "lane_error"}\n')

    def impossible(self) -> Letter:
        (self.root / "script.jsonl").write_text('{"do": "envelope_error"}\n')
        return letter()

    def posted(self) -> list[str]:
        return [json.loads(line)["chunk"] for line in (self.root / "posts.jsonl").read_text().splitlines()]


RIGS: list[type[Rig]] = [FolderRig, ScriptedRig]
