"""The parameter rich_message: HTML, Markdown or blocks, read into blocks and into what people see."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from .params import Params
from .refusals import bad_request
from .rich_blocks import MEDIA, Block, check_limits, visible, walk
from .rich_given import check_given
from .rich_html import parse_rich_html
from .rich_markdown import markdown_to_html
from .world import World

_FORMATS = ("blocks", "markdown", "html")  # seen: of several, the first of these is taken
# What looks like "openai:ada@example.org" is made into a link, and the link is then refused.
_BAD_EMAIL = re.compile(r"(?<![\w.-])[\w.-]+:[\w.+-]+@[\w-]+\.\w+")


@dataclass(frozen=True, kw_only=True)
class Rich:
    """A rich message: what people see, how it was written, and how a bot gets it back."""

    text: str
    source: str
    as_json: dict[str, Any]


def read_rich(world: World, params: Params, *, draft: bool = False) -> Rich:
    """Return the rich message of a call, or refuse it."""
    given = params.object("rich_message", "rich message")
    if given is None:
        raise bad_request("rich message must be non-empty")
    if not isinstance(given, dict):
        raise bad_request("object expected as rich message")
    name = _format(world, given, params)
    content = given[name]
    if name == "blocks":
        blocks, source = check_given(content), json.dumps(content, ensure_ascii=False)
    else:
        source = str(content)
        blocks = _parsed(name, source, params, draft)
    if not draft and any(block["type"] == "thinking" for block in walk(blocks)):
        raise bad_request("thinking blocks can be used only in rich message drafts")  # a guess at the words
    check_limits(blocks, params.remark)
    text = visible(blocks)
    if not text.strip() and not any(block["type"] in MEDIA for block in walk(blocks)):
        raise bad_request("RICH_MESSAGE_EMPTY")
    if not given.get("skip_entity_detection") and _BAD_EMAIL.search(text):
        raise bad_request("RICH_MESSAGE_EMAIL_INVALID")
    answer: dict[str, Any] = {"blocks": blocks}
    return Rich(text=text, source=source, as_json=answer | ({"is_rtl": True} if given.get("is_rtl") else {}))


def _format(world: World, given: dict[str, Any], params: Params) -> str:
    """Return which source a rich message has. Blocks came with 10.2; before, they are not seen."""
    named = [name for name in _FORMATS if given.get(name) is not None]
    if "blocks" in named and not world.has("10.2"):
        named.remove("blocks")
    if not named or not given[named[0]]:
        raise bad_request("rich message must be non-empty")
    if len(named) > 1:
        params.remark(f"of {' and '.join(named)} only {named[0]} is taken")
    return named[0]


def _parsed(name: str, source: str, params: Params, draft: bool) -> list[Block]:
    if name == "markdown":
        source = markdown_to_html(source, params.remark)
    return parse_rich_html(source, params.remark, draft=draft)
