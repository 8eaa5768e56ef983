"""What is rendered is taken by the Bot API server as it is: nothing refused, nothing silently mended."""

from __future__ import annotations

import json
import urllib.request
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from hiboss.channels.telegram import rendering
from hiboss.testing.adapter_rig import letter
from hiboss.testing.bot_api import BotApi

from . import generated_texts as texts
from .test_rendering import HTML, LISTS, MARKDOWN


class Chat:
    """A private chat with a bot, which is called without any library."""

    def __init__(self, api: BotApi) -> None:
        self.api = api
        self._bot = api.add_bot("nexbot")
        ada = api.add_person("Ada")
        self._id = api.private_chat(ada, self._bot).id
        api.world.started.add((ada.id, self._bot.id))

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        data = json.dumps({"chat_id": self._id, **params}).encode()
        address = f"{self.api.url}/bot{self._bot.token}/{method}"
        request = urllib.request.Request(address, data, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request) as answer:
            result: dict[str, Any] = json.load(answer)["result"]
        return result

    def post(self, kind: str, text: str, limit: int = 4096) -> None:
        """Post all chunks of a letter, in each form, and look what the server made of them."""
        for chunk in rendering.render(letter("7", text, type=kind), most_units=limit):
            posted = self.call("sendMessage", text=chunk.text, entities=list(chunk.entities))
            mine = {"bold", "italic", "pre", "code", "text_link", "blockquote", "expandable_blockquote"}
            kept = [one["type"] for one in posted.get("entities", ()) if one["type"] in mine]
            assert sorted(kept) == sorted(one["type"] for one in chunk.entities if one["type"] in mine)
            self.call("sendMessage", text=chunk.text)
            if chunk.rich is not None:
                self.call("sendRichMessage", rich_message={"html": chunk.rich, "skip_entity_detection": True})
        assert self.api.complaints == []


def test_every_example_is_accepted() -> None:
    with BotApi() as api:
        chat = Chat(api)
        for source, _, _ in [*MARKDOWN.values(), *LISTS.values()]:
            chat.post("markdown", source)
        for source, _, _ in HTML.values():
            chat.post("html", source)


def test_whatever_is_generated_is_accepted() -> None:
    with BotApi() as api:
        chat = Chat(api)

        @settings(max_examples=30)
        @given(
            st.one_of(
                st.tuples(st.just("markdown"), texts.nested_markdown), st.tuples(st.just("html"), texts.html)
            ),
            texts.limits,
        )
        def accepted(typed: tuple[str, str], limit: int) -> None:
            chat.post(*typed, limit)

        accepted()
