"""Blocks of a rich message: what people see of them, and how many there may be."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .entity_rules import Remark
from .refusals import bad_request

TEXT_LIMIT = 32768
BLOCK_LIMIT = 500
DEPTH_LIMIT = 16
COLUMN_LIMIT = 20
MEDIA_LIMIT = 50
MEDIA = ("photo", "video", "animation", "audio", "voice_note", "document")
Block = dict[str, Any]


def visible(blocks: list[Block]) -> str:
    """Return what people see of blocks: a line for each, the cells of a row beside each other."""
    return "\n".join(line for block in blocks for line in _lines(block))


def check_limits(blocks: list[Block], remark: Remark) -> None:
    """Refuse what is too much, with the words that were seen on the platform."""
    if len(visible(blocks)) > TEXT_LIMIT:
        raise bad_request("RICH_MESSAGE_TEXT_TOO_LONG")
    if len(blocks) > BLOCK_LIMIT:  # seen: only the outermost count
        raise bad_request("RICH_MESSAGE_BLOCKS_TOO_MANY")
    counted = sum(1 + _rows(block) for block in walk(blocks))
    if counted > BLOCK_LIMIT:  # documented: all count, with items and rows
        remark(f"there are {counted} blocks, items and rows; {BLOCK_LIMIT} are documented")
    if max((_depth(block) for block in blocks), default=0) > DEPTH_LIMIT:
        raise bad_request("RICH_MESSAGE_DEPTH_INVALID")
    if sum(block["type"] in MEDIA for block in walk(blocks)) > MEDIA_LIMIT:
        raise bad_request("RICH_MESSAGE_MEDIA_TOO_MANY")
    for block in walk(blocks):
        rows = block.get("cells", [])
        if any(sum(int(cell.get("colspan", 1)) for cell in row) > COLUMN_LIMIT for row in rows):
            raise bad_request("RICH_MESSAGE_TABLE_COLS_TOO_MANY")


def plain(text: Any) -> str:
    """Return a rich text without its formatting."""
    if isinstance(text, str):
        return text
    if isinstance(text, list):
        return "".join(plain(one) for one in text)
    if isinstance(text, dict):
        return plain(text.get("text") or text.get("expression") or text.get("alternative_text") or "")
    return ""


def walk(blocks: list[Block]) -> Iterator[Block]:
    """Return all blocks with those inside of them."""
    for block in blocks:
        yield block
        yield from walk(inner_blocks(block))


def inner_blocks(block: Block) -> list[Block]:
    """Return the blocks right inside of a block."""
    items = block.get("items", [])
    return [*block.get("blocks", []), *(one for item in items for one in item["blocks"])]


def _rows(block: Block) -> int:
    return len(block.get("items", [])) + len(block.get("cells", []))


def _depth(block: Block) -> int:
    texts = [block.get("text"), block.get("summary"), block.get("caption")]
    texts += [cell.get("text") for row in block.get("cells", []) for cell in row]
    deepest = max((_text_depth(text) for text in texts), default=0)
    return 1 + max([deepest, *(_depth(one) for one in inner_blocks(block))])


def _text_depth(text: Any) -> int:
    if isinstance(text, list):
        return max((_text_depth(one) for one in text), default=0)
    return 1 + _text_depth(text.get("text")) if isinstance(text, dict) else 0


def _lines(block: Block) -> Iterator[str]:
    kind = block["type"]
    if kind == "list":
        for item in block["items"]:
            yield from _item_lines(item)
    elif kind == "mathematical_expression":
        yield block["expression"]
    elif kind == "buttons":
        yield " ".join(plain(one.get("text")) for one in block["buttons"])
    else:
        yield from (plain(block[name]) for name in ("summary", "text") if name in block)
        for row in block.get("cells", []):
            yield " | ".join(plain(cell.get("text")) for cell in row)
        yield from (line for one in block.get("blocks", []) for line in _lines(one))
        yield from (plain(block[name]) for name in ("caption", "credit") if name in block)


def _item_lines(item: Block) -> Iterator[str]:
    label = str(item.get("label") or ("•" if "value" not in item else f"{item['value']}."))
    if item.get("has_checkbox"):
        label = "☑" if item.get("is_checked") else "☐"
    lines = [line for block in item["blocks"] for line in _lines(block)]
    yield f"{label} {lines[0] if lines else ''}".rstrip()
    yield from lines[1:]
