"""Formatted text inside the HTML of a rich message."""

from __future__ import annotations

import re
from typing import Any

from .entity_rules import Remark
from .links import rich_link_problem
from .refusals import bad_request
from .rich_blocks import plain
from .rich_tree import BLOCKS, STYLES, Node, wrong

_SPACE = re.compile(r"[ \t\n\r\f]+")
_LITERAL = ("code", "tg-math")  # white space stays as it is


class TextReader:
    """Reads text, and keeps the anchors and the links to them that it met."""

    def __init__(self, remark: Remark) -> None:
        self._remark = remark
        self.anchors: set[str] = {""}  # the top
        self.links: set[str] = set()

    def text(self, children: list[Node | str]) -> Any:
        """Return formatted text, without white space around it. A block cannot be in it."""
        if "\n" in _loose(children).strip():
            self._remark("a line break in the text is shown as a space: only <br> makes a new line")
        parts = self._parts(children)
        while parts and isinstance(parts[0], str) and not parts[0].strip(" "):
            parts.pop(0)
        while parts and isinstance(parts[-1], str) and not parts[-1].strip(" "):
            parts.pop()
        if parts and isinstance(parts[0], str):
            parts[0] = parts[0].lstrip(" ")
        if parts and isinstance(parts[-1], str):
            parts[-1] = parts[-1].rstrip(" ")
        return parts[0] if len(parts) == 1 else parts

    def _parts(self, children: list[Node | str], *, literal: bool = False) -> list[Any]:
        parts: list[Any] = []
        for child in children:
            part: Any = child if literal else _SPACE.sub(" ", child) if isinstance(child, str) else None
            if isinstance(child, Node):
                part = self._inline(child)
            if isinstance(part, str) and parts and isinstance(parts[-1], str):
                parts[-1] += part  # runs without formatting are joined
            elif part != "":
                parts.append(part)
        return parts

    def _inline(self, node: Node) -> Any:
        tag, attributes = node.tag, node.attributes
        if tag == "br":
            return "\n"
        if tag in ("input", "cite"):
            return ""  # read by whoever holds it
        if tag == "tg-math":
            return {"type": "mathematical_expression", "expression": raw(node.children)}
        if tag == "tg-emoji" or is_emoji(node):
            return self._emoji(node)
        if tag in BLOCKS or tag not in (*STYLES, "a", "tg-time", "tg-reference", "tg-button"):
            raise wrong(self._remark, f"<{tag}> cannot stand in a text")
        parts = self._parts(node.children, literal=tag == "code")
        inside = parts[0] if len(parts) == 1 else parts or ""
        if tag in STYLES:
            if not plain(inside).strip():
                self._remark(f"<{tag}> covers no visible text")
            return {"type": STYLES[tag], "text": inside}
        if tag == "tg-time":
            return {"type": "date_time", "text": inside, "unix_time": node.number("unix")}
        if tag == "tg-reference":
            self.anchors.add(attributes.get("name", ""))
            return {"type": "reference", "text": inside, "name": attributes.get("name", "")}
        return {"type": "button", "text": inside} if tag == "tg-button" else self._link(node, inside)

    def _link(self, node: Node, inside: Any) -> Any:
        if "name" in node.attributes and "href" not in node.attributes:
            self.anchors.add(node.attributes["name"])
            return {"type": "anchor", "name": node.attributes["name"]}
        url = node.attributes.get("href", "")
        if rich_link_problem(url):
            self._remark(f"the link to {url!r} is refused")
            raise bad_request("RICH_MESSAGE_URL_INVALID")
        if url.startswith("#"):
            self.links.add(url[1:])
            return {"type": "anchor_link", "text": inside, "anchor_name": url[1:]}
        for scheme, kind in (("mailto:", "email_address"), ("tel:", "phone_number")):
            if url.startswith(scheme):
                return {"type": kind, "text": inside, kind: url.removeprefix(scheme)}
        return {"type": "url", "text": inside, "url": url}

    def _emoji(self, node: Node) -> Any:
        alternative = raw(node.children) or node.attributes.get("alt", "")
        if any(sign.isalnum() for sign in alternative):  # seen: a word in its place is refused
            raise bad_request("RICH_MESSAGE_EMOJI_INVALID")
        number = node.attributes.get("emoji-id") or node.attributes.get("src", "").partition("id=")[2]
        return {"type": "custom_emoji", "custom_emoji_id": number, "alternative_text": alternative}


def is_emoji(node: Node) -> bool:
    return node.tag == "img" and node.attributes.get("src", "").startswith("tg://emoji")


def raw(children: list[Node | str]) -> str:
    """Return a text with its white space and without its tags."""
    inside = (
        (one if isinstance(one, str) else "\n" if one.tag == "br" else raw(one.children)) for one in children
    )
    return "".join(inside)


def _loose(children: list[Node | str]) -> str:
    """Return a text without what keeps its white space; a sign stands for that."""
    return "".join(
        one if isinstance(one, str) else "-" if one.tag in (*_LITERAL, "br") else _loose(one.children)
        for one in children
    )
