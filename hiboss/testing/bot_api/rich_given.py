"""Blocks of a rich message as a bot gives them (since 10.2): what is refused, in words that were seen."""

from __future__ import annotations

from typing import Any

from .links import rich_link_problem
from .refusals import bad_request
from .rich_blocks import MEDIA, Block, inner_blocks

_TEXT_TYPES = (
    *("custom_emoji", "mathematical_expression", "anchor", "button", "code"),
    *(
        "bold",
        "italic",
        "underline",
        "strikethrough",
        "spoiler",
        "subscript",
        "superscript",
        "marked",
        "code",
    ),
    *("date_time", "text_mention", "url", "email_address", "phone_number", "anchor_link", "reference"),
    *("reference_link", "mention", "hashtag", "cashtag", "bot_command", "bank_card_number"),
)
_NEEDED = {  # what a block must have; those with nothing need nothing
    "paragraph": ("text",),
    "heading": ("text", "size"),
    "pre": ("text",),
    "footer": ("text",),
    "divider": (),
    "mathematical_expression": ("expression",),
    "anchor": ("name",),
    "list": ("items",),
    "blockquote": ("blocks",),
    "expandable_blockquote": ("text",),
    "pullquote": ("text",),
    "collage": ("blocks",),
    "slideshow": ("blocks",),
    "table": ("cells",),
    "details": ("summary", "blocks"),
    "map": ("location",),
    "thinking": ("text",),
    "buttons": ("buttons",),
    **{kind: (kind,) for kind in MEDIA},
}


def check_given(blocks: Any) -> list[Block]:
    """Return blocks that a bot gave, or refuse what is none."""
    if not isinstance(blocks, list) or not blocks:
        raise bad_request("rich message must be non-empty")
    for block in blocks:
        _check_block(block)
    return blocks


def _check_block(block: Any) -> None:
    kind = _checked_type(block)
    if kind == "heading" and block["size"] not in range(1, 7):
        raise bad_request("invalid section heading size specified")
    if kind == "list":
        _check_items(block["items"])
    if kind == "table":
        _check_cells(block["cells"])
    for name in ("text", "summary", "caption", "credit"):
        _check_text(block.get(name, ""))
    for one in inner_blocks(block):
        _check_block(one)


def _checked_type(block: Any) -> str:
    if not isinstance(block, dict):
        raise bad_request("object expected as InputRichMessageBlock")
    kind = block.get("type")
    if kind is None:
        raise _unparseable('Can\'t find field "type"')
    if kind not in _NEEDED:
        raise _unparseable(f'type "{kind}" is unsupported')
    for name in _NEEDED[kind]:
        if name not in block:
            raise _unparseable(f'Can\'t find field "{name}"')
    return str(kind)


def _check_items(items: Any) -> None:
    if not items:
        raise bad_request("list must be non-empty")
    for item in items:
        if not isinstance(item, dict) or not isinstance(item.get("blocks"), list):
            raise bad_request("object expected as InputRichBlockListItem")


def _check_cells(rows: Any) -> None:
    for row in rows if isinstance(rows, list) else [None]:
        for cell in row if isinstance(row, list) else [None]:
            if not isinstance(cell, dict):
                raise bad_request("richBlockTableCell must be an object")
            _check_text(cell.get("text", ""))


def _check_text(text: Any) -> None:
    if isinstance(text, list):
        for one in text:
            _check_text(one)
    elif isinstance(text, dict):
        if text.get("type") not in _TEXT_TYPES:
            raise bad_request("unsupported rich text type")
        if text["type"] == "url" and rich_link_problem(str(text.get("url", ""))):
            raise bad_request("RICH_MESSAGE_URL_INVALID")
        _check_text(text.get("text", ""))
    elif not isinstance(text, str):
        raise bad_request("invalid rich text specified")


def _unparseable(words: str) -> Exception:
    return bad_request(f"can't parse InputRichBlock: {words}")
