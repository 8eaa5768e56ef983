"""HTML of a rich message as blocks: how the platform reads it, as far as it is documented or was seen.

A line break in the source is white space, as in any HTML; only <br> makes a new line.
"""

from __future__ import annotations

from .entity_rules import Remark
from .refusals import bad_request
from .rich_blocks import Block
from .rich_inline import TextReader, is_emoji, raw
from .rich_tree import BLOCKS, HEADINGS, MEDIA, Node, parse_tree, wrong

_TEXTS = {"p": "paragraph", "footer": "footer", "tg-thinking": "thinking"}
_MEDIA_TYPES = {"img": "photo", "video": "video", "audio": "audio"}


def parse_rich_html(source: str, remark: Remark, *, draft: bool = False) -> list[Block]:
    """Return the blocks of some HTML, or refuse it. Only a draft may think."""
    reader = _BlockReader(remark, draft)
    blocks = reader.blocks(parse_tree(source, remark).children)
    for name in reader.links - reader.anchors:
        remark(f"the link to #{name} leads nowhere: there is no such anchor")
    return blocks


class _BlockReader(TextReader):
    def __init__(self, remark: Remark, draft: bool) -> None:
        super().__init__(remark)
        self._draft = draft

    def blocks(self, children: list[Node | str]) -> list[Block]:
        """Return what stands in a container: blocks, and text between them as paragraphs."""
        blocks: list[Block] = []
        loose: list[Node | str] = []
        for child in [*children, None]:
            if child is None or (isinstance(child, Node) and child.tag in BLOCKS and not is_emoji(child)):
                if text := self.text(loose):
                    blocks.append({"type": "paragraph", "text": text})
                loose = []
            if isinstance(child, Node) and child.tag in BLOCKS and not is_emoji(child):
                blocks.append(self._block(child))
            elif child is not None:
                loose.append(child)
        return blocks

    def _block(self, node: Node) -> Block:
        tag = node.tag
        if tag == "tg-thinking" and not self._draft:
            raise wrong(self._remark, "<tg-thinking> can stand in a draft only")
        if tag in _TEXTS:
            return {"type": _TEXTS[tag], "text": self.text(node.children)}
        if tag in HEADINGS:
            return {"type": "heading", "text": self.text(node.children), "size": int(tag[1])}
        if tag == "hr":
            return {"type": "divider"}
        if tag == "tg-math-block":
            return {"type": "mathematical_expression", "expression": raw(node.children).strip()}
        readers = {
            "pre": self._code,
            **dict.fromkeys(("ul", "ol"), self._list),
            **dict.fromkeys(("blockquote", "aside"), self._quotation),
            "table": self._table,
            "details": self._details,
        }
        return readers.get(tag, self._media)(node)

    def _code(self, node: Node) -> Block:
        inner = [child for child in node.children if isinstance(child, Node)]
        language = ""
        if len(inner) == 1 and inner[0].tag == "code" and len(node.children) == 1:
            language = inner[0].attributes.get("class", "").removeprefix("language-")
        block: Block = {"type": "pre", "text": raw(node.children)}
        return {**block, "language": language} if language else block

    def _list(self, node: Node) -> Block:
        items = []
        value = node.number("start", 1)
        for child in self._only(node, "li"):
            box = next((one for one in child.children if isinstance(one, Node) and one.tag == "input"), None)
            value = child.number("value", value)
            item: Block = {"label": f"{value}." if node.tag == "ol" else "•"}
            if node.tag == "ol":
                item["value"] = value
            if box is not None:
                item["has_checkbox"] = True
                item |= {"is_checked": True} if "checked" in box.attributes else {}
            items.append({**item, "blocks": self.blocks(child.children)})
            value += -1 if "reversed" in node.attributes else 1
        if not items:
            raise bad_request("list must be non-empty")
        return {"type": "list", "items": items}

    def _quotation(self, node: Node) -> Block:
        cite = next((one for one in node.children if isinstance(one, Node) and one.tag == "cite"), None)
        credit = {"credit": self.text(cite.children)} if cite is not None else {}
        if node.tag == "aside":
            return {"type": "pullquote", "text": self.text(node.children), **credit}
        kind = "expandable_blockquote" if "expandable" in node.attributes else "blockquote"
        return {"type": kind, "blocks": self.blocks(node.children), **credit}

    def _table(self, node: Node) -> Block:
        block: Block = {"type": "table", "cells": []}
        for child in self._only(node, "tr", "caption"):
            if child.tag == "caption":
                block["caption"] = self.text(child.children)
                continue
            block["cells"].append([self._cell(cell) for cell in self._only(child, "td", "th")])
        if not any(block["cells"]):
            raise wrong(self._remark, "<table> has no cells")
        for name in ("bordered", "striped", "compact"):
            block |= {f"is_{name}": True} if name in node.attributes else {}
        return block

    def _cell(self, node: Node) -> Block:
        cell: Block = {"text": self.text(node.children), "align": node.attributes.get("align", "left")}
        cell["valign"] = node.attributes.get("valign", "top")
        cell |= {"is_header": True} if node.tag == "th" else {}
        spans = {name: node.number(name, 1) for name in ("colspan", "rowspan") if name in node.attributes}
        return cell | spans

    def _details(self, node: Node) -> Block:
        children = [one for one in node.children if not (isinstance(one, str) and not one.strip())]
        first = children[0] if children else ""
        if not isinstance(first, Node) or first.tag != "summary":
            raise wrong(self._remark, "<details> does not begin with <summary>")
        if any(isinstance(one, Node) and one.tag == "summary" for one in children[1:]):
            raise wrong(self._remark, "<details> has a second <summary>")
        block: Block = {"type": "details", "summary": self.text(first.children)}
        block["blocks"] = self.blocks(children[1:])
        return block | ({"is_open": True} if "open" in node.attributes else {})

    def _media(self, node: Node) -> Block:
        """Return a photo, a map, a collage …; this server reaches nothing outside."""
        if node.tag in MEDIA:
            kind = _MEDIA_TYPES[node.tag]
            if not node.attributes.get("src", "").startswith("tg://"):
                raise bad_request(f"RICH_MESSAGE_{kind.upper()}_NO_MEDIA_FOUND")
            return {"type": kind, kind: {"media": node.attributes["src"]}}
        inner = self.blocks(
            [one for one in node.children if isinstance(one, Node) and one.tag != "figcaption"]
        )
        caption = next(
            (one for one in node.children if isinstance(one, Node) and one.tag == "figcaption"), None
        )
        more = {"caption": self.text(caption.children)} if caption is not None else {}
        if node.tag == "figure":
            return {**(inner[0] if inner else {"type": "divider"}), **more}
        if node.tag == "tg-map":
            return {"type": "map", "location": dict(node.attributes), **more}
        return {"type": node.tag.removeprefix("tg-"), "blocks": inner, **more}

    def _only(self, node: Node, *tags: str) -> list[Node]:
        """Return the tags that may stand here, or refuse what else does."""
        for child in node.children:
            if (isinstance(child, str) and child.strip()) or (
                isinstance(child, Node) and child.tag not in tags
            ):
                name = "text" if isinstance(child, str) else f"<{child.tag}>"
                raise wrong(self._remark, f"{name} stands in <{node.tag}>")
        return [child for child in node.children if isinstance(child, Node)]
