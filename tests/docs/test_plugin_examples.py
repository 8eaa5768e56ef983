"""The examples that authors copy from the pages keep the contract: the forum, and the provider with a program."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from hiboss.core.contracts.adapter import Account, Adapter, File, Letter
from hiboss.core.contracts.provider import Provider
from hiboss.core.option_models import Options
from hiboss.testing.adapter_contract import FullAdapterContract
from hiboss.testing.adapter_rig import FullRig, Post
from hiboss.testing.provider_contract import OutsideContract, ProviderContract
from tests.agents.provider_rigs import CommandRig
from tests.docs.pages import Page


def example(page: str, name: str, old: str = "", new: str = "") -> Any:
    """Return a module that a page writes with `cat`, with one change."""
    found = re.search(rf"^cat > {name}\.py <<'PYTHON'\n(.*?)^PYTHON$", Page.read(page).text, re.S | re.M)
    assert found is not None and old in found[1]
    module = ModuleType(name)
    exec(compile(found[1].replace(old, new), f"{page}:{name}.py", "exec", dont_inherit=True), vars(module))
    return module


forum = example("docs/adapters.md", "forum")
counter = example("docs/providers.md", "counter", '["wc", "-w"]', '["sh", "agent.sh"]')


class ForumRig(FullRig):
    chat = "club"

    def __init__(self, directory: Path) -> None:
        self.home, self.path = directory / "home", directory / "forum"
        self.path.mkdir()
        (self.path / "updates.jsonl").touch()
        self._lines = 0
        self._last = ""

    def good(self) -> dict[str, Any]:
        return {"path": str(self.path), "password": "sesame"}

    def bad(self) -> list[dict[str, Any]]:
        return [{}, {"path": str(self.path)}, {"path": str(self.path), "password": "wrong"}]

    def make(self) -> Adapter:
        made: Adapter = forum.Forum(
            Account(
                binding=1,
                name="reader",
                settings=forum.ForumSettings(path=self.path, password="sesame"),
                home=str(self.home),
                position=self.position,
            )
        )
        return made

    def _add(self, **more: str) -> None:
        self._lines += 1
        line = {"n": self._lines, "chat": self.chat, "from": "Ann", **more}
        with open(self.path / "updates.jsonl", "a") as file:
            file.write(json.dumps(line) + "\n")

    def _message(self, **more: str) -> None:
        self._last = f"m{self._lines + 1}"
        self._add(id=self._last, **more)

    def comes_in(self, text: str) -> None:
        self._message(text=text)

    def originals(self) -> int:
        return self._lines - int(self.position or 0)

    def cannot_start(self) -> None:
        shutil.rmtree(self.path)

    def cannot_post(self) -> None:
        (self.path / "posts.jsonl").mkdir()

    def impossible(self) -> Letter:
        return self.letter(files=(File("a.pdf", "/nowhere/a.pdf", "application/pdf"),))

    def posted(self) -> list[str]:
        return [post.text for post in self.posts()]

    def posts(self) -> list[Post]:
        lines = map(json.loads, (self.path / "posts.jsonl").read_text().splitlines())
        return [
            Post(one["id"], "/".join(filter(None, (one["chat"], one["topic"]))), one["text"], one["reply_to"])
            for one in lines
        ]

    def reply(self, post: str, text: str) -> None:
        self._message(reply_to=post, text=text)

    def lost_file(self, text: str) -> None:
        self._message(album="a", photo="lost.jpg", text=text)

    def edit(self, text: str) -> None:
        self._add(edited=self._last, text=text)

    def press(self, post: str, value: str) -> None:
        self._add(pressed=post, button=value)

    def album(self, *files: tuple[str, str]) -> None:
        for name, content in files:
            self._message(album="a", photo=name, data=content)

    def in_topic(self, topic: str, text: str) -> None:
        self._message(topic=topic, text=text)


class TestForum(FullAdapterContract):
    rig_type = ForumRig


class CounterRig(CommandRig):
    def good(self) -> dict[str, Any]:
        return {}

    def bad(self) -> list[dict[str, Any]]:
        return [{"program": "wc"}]

    def make(self) -> Provider:
        return counter.Counter(Options())

    def answers_for(self, text: str, **usage: Any) -> None:
        pytest.skip("it reports no usage")

    def is_away(self) -> None:
        self.directory = self.directory / "nowhere"


class TestCounter(ProviderContract, OutsideContract):
    rig_class = CounterRig
