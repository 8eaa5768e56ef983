"""Rigs of our own adapters, for the contract test (hiboss/testing/adapter_contract.py)."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from hiboss.channels.folder import FolderAdapter
from hiboss.channels.webhook.adapter import WebhookAdapter
from hiboss.core.contracts.adapter import Account, Adapter, File, Letter, Take
from hiboss.core.webhook_signatures import new_secret
from hiboss.testing.adapter_rig import FullRig, Post, Rig
from hiboss.testing.scripted_adapter import ScriptedAdapter
from tests.support.fact_receivers import FactReceiver


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


class WebhookRig(Rig):
    """A webhook that both receives and posts: a program posts to it, and a web server takes its posts."""

    chat = "here"

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.server = FactReceiver()
        self._secret = new_secret()
        self._damaged = False
        self._waiting: list[tuple[str, bytes]] = []  # what the program posts until it is confirmed
        self._count = 0

    def close(self) -> None:
        self.server.close()

    def good(self) -> dict[str, Any]:
        return {"hook": "here", "secret": self._secret, "url": self.server.url}

    def bad(self) -> list[dict[str, Any]]:
        good = self.good()
        wrong: list[dict[str, Any]] = [{"hook": name} for name in ("", "Two", "a b", "a:b", "a" * 65, 5)]
        wrong += [{"secret": one} for one in ("", "x", "whsec_", "whsec_!!!!", new_secret()[:-16])]
        wrong += [{"url": one} for one in ("", "x", "http://example.org/", "https://a:b@example.org/")]
        wrong += [{"template": "x"}, {"subject": "x"}, {"hok": "x"}]
        without_url = {"hook": "here", "secret": self._secret}
        found = [{}, {"hook": "here"}, {**without_url, "template": "{"}, {**without_url, "subject": "}"}]
        return found + [{**good, **one} for one in wrong]

    def make(self) -> Adapter:
        settings = WebhookAdapter.Settings(**self.good())
        if self._damaged:
            settings = settings.model_copy(update={"secret": SecretStr("whsec_!!!")})
        home = str(self.directory / "home")
        adapter = WebhookAdapter(Account(binding=1, name="here", settings=settings, home=home))
        listen = adapter.listen

        async def listen_and_post(take: Take) -> None:
            listening = asyncio.create_task(listen(take))
            try:
                while True:
                    while self._waiting:
                        delivery, body = self._waiting[0]
                        await adapter.receive(delivery, {}, body)
                        self._waiting.pop(0)
                    await asyncio.sleep(0.002)
            finally:
                listening.cancel()
                await asyncio.wait([listening])

        adapter.listen = listen_and_post  # type: ignore[method-assign]
        return adapter

    def comes_in(self, text: str) -> None:
        self._count += 1
        self._waiting.append((f"d{self._count}", text.encode()))

    def originals(self) -> int:
        return len(self._waiting)

    def cannot_start(self) -> None:
        self._damaged = True

    def cannot_post(self) -> None:
        self.server.usual = 500

    def impossible(self) -> Letter:
        self.server.answers.append(410)
        return self.letter()

    def posted(self) -> list[str]:
        return [post.fact["data"]["text"] for post in self.server.taken]

    def limited(self, seconds: int) -> None:
        self.server.answers.append((429, {"retry-after": str(seconds)}))

    def locked_out(self) -> None:
        self.server.usual = 401


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
