"""Rigs of our own adapters, for the contract test (hiboss/testing/adapter_contract.py)."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

from hiboss.channels.folder import FolderAdapter
from hiboss.core.contracts.adapter import Account, Adapter, File, Letter
from hiboss.testing.adapter_rig import FullRig, Post, Rig
from hiboss.testing.scripted_adapter import ScriptedAdapter


class FolderRig(Rig):
    chat = "here"

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.root = directory / "here"
        self.root.mkdir()
        self._count = 0

    def good(self) -> dict[str, Any]:
        return {"path": str(self.root)}

    def bad(self) -> list[dict[str, Any]]:
        home, file = str(self.directory / "home"), self.directory / "file"
        file.write_text("no directory")
        paths = ["", "here", "/", str(file), home, f"{home}/media", str(self.directory)]
        paths += [
            str(self.directory / name) for name in ("with blank", "with:colon", "x" * 129, "line\nbreak")
        ]
        return [{}, {"path": 5}, {"pth": str(self.root)}, *[{"path": path} for path in paths]]

    def make(self) -> Adapter:
        home = str(self.directory / "home")
        settings = FolderAdapter.Settings(path=self.root)
        return FolderAdapter(Account(binding=1, name="here", settings=settings, home=home))

    def comes_in(self, text: str) -> None:
        self._put("txt", text)

    def command(self, name: str, arguments: str) -> None:
        self._put("json", json.dumps({"command": name, "arguments": arguments}))

    def _put(self, ending: str, text: str) -> None:
        self._count += 1
        (self.root / "in").mkdir(exist_ok=True)
        file = self.root / "in" / f"{self._count}.{ending}"
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
        return self.letter(files=(File("gone.pdf", str(self.directory / "gone"), "application/pdf"),))

    def posted(self) -> list[str]:
        return [file.read_text() for file in (self.root / "out").glob("[!.]*")]


class ScriptedRig(FullRig):
    chat = "here"

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.root = directory / "here"
        (self.root / "inbox").mkdir(parents=True)
        self._count = 0

    def good(self) -> dict[str, Any]:
        return {"path": str(self.root)}

    def bad(self) -> list[dict[str, Any]]:
        return [{}, {"path": ""}, {"path": str(self.directory / "nothing there")}, {"paht": "/tmp"}]

    def make(self) -> Adapter:
        home = str(self.directory / "home")
        settings = ScriptedAdapter.Settings(path=self.root)
        return ScriptedAdapter(Account(binding=1, name="here", settings=settings, home=home))

    def comes_in(self, text: str) -> None:
        self._put(text=text, message=f"m{self._count + 1}")

    def _put(self, **fields: Any) -> None:
        self._count += 1
        partial = self.root / "inbox" / f"{self._count}.part"
        partial.write_text(json.dumps(fields))
        partial.rename(partial.with_suffix(".json"))

    def edit(self, text: str) -> None:
        self._put(kind="edit", text=text, message=f"m{self._count}")

    def press(self, post: str, value: str) -> None:
        self._put(kind="press", act=True, message=post, button=value, author={"id": "7", "name": "Ann"})

    def command(self, name: str, arguments: str) -> None:
        self._put(kind="command", act=True, command=name, arguments=arguments)

    def album(self, *files: tuple[str, str]) -> None:
        for name, content in files:
            self._put(album="a", text=name, downloads=[{"name": name, "content": content}])

    def in_topic(self, topic: str, text: str) -> None:
        self._put(text=text, place=f"here/{topic}")

    def originals(self) -> int:
        return len(list((self.root / "inbox").glob("*.json")))

    def cannot_start(self) -> None:
        (self.root / "settings.json").write_text('{"fail_starts": 1}')

    def cannot_post(self) -> None:
        self._script(do="lane_error")

    def impossible(self) -> Letter:
        self._script(do="envelope_error")
        return self.letter()

    def posted(self) -> list[str]:
        return [post.text for post in self.posts()]

    def posts(self) -> list[Post]:
        found = {}
        for one in self._lines("posts"):
            post = Post(f"{one['id']}.{one['number']}", one["place"], one["chunk"], one["reply_to"])
            found[post.id] = post
        for change in self._lines("changes"):
            if change["do"] == "delete":
                del found[change["id"]]
            elif (post := found[change["id"]]).place == change["place"] and change["do"] == "edit":
                found[post.id] = post._replace(text=change["chunk"])
        return list(found.values())

    def limited(self, seconds: int) -> None:
        self._script(do="lane_error", retry_after=seconds)

    def locked_out(self) -> None:
        self._script(do="account_error")

    def deleted(self) -> str:
        return "m0"

    def reply(self, post: str, text: str) -> None:
        self._put(text=text, reply_to=post)

    def lost_file(self, text: str) -> None:
        self._put(text=text, downloads=[{"name": "lost.jpg", "lost": True}])

    def _script(self, **step: Any) -> None:
        (self.root / "script.jsonl").write_text(json.dumps(step) + "\n")

    def _lines(self, name: str) -> list[dict[str, Any]]:
        file = self.root / f"{name}.jsonl"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
