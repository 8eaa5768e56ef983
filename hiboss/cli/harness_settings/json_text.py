"""Edits of JSON text that keep every byte they do not change: white space, key order, escapes, line ends.

`without` is the way back from `appended`, to the byte. A container that was empty before is filled with
KEPT behind its bracket, which nobody sees at the end of a line. So the way back knows that it was there
and must stay; one without it came with our entry and goes with it.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from json import JSONDecodeError
from typing import Any, NamedTuple

KEPT = "  "  # two spaces: `{ "a": 1 }` with one is a style that people use
_BLANK = re.compile(r"[ \t\n\r]*")
_CLOSING = {"{": "}", "[": "]"}
_INDENT = "  "  # for a file that shows no style


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


_scalars = json.JSONDecoder(parse_constant=_refuse_constant)

Path = tuple[str | int, ...]  # the keys and numbers that lead from the root to a value


class Child(NamedTuple):
    """One member of an object, or one element of an array."""

    key: str | None  # None in an array
    start: int  # of its key; in an array, of the value
    node: Node


@dataclass(frozen=True, kw_only=True)
class Node:
    """A value and its place in the text."""

    start: int
    end: int
    value: Any
    children: tuple[Child, ...] = ()

    def at(self, path: Path) -> Node:
        """Return the value at a path that is there."""
        node = self
        for step in path:
            found = (one for number, one in enumerate(node.children) if step in (one.key, number))
            node = next(found).node
        return node


# --- reading -------------------------------------------------------------------------


def parse(text: str) -> Node:
    """Return the value of a JSON text with all places. Raises JSONDecodeError, also for a key given twice."""
    try:
        root = _value(text, _skip(text, 0))
    except RecursionError:
        raise JSONDecodeError("it is nested too deeply", text, 0) from None
    if (end := _skip(text, root.end)) != len(text):
        raise JSONDecodeError("something stands behind the end of the value", text, end)
    return root


def is_blank(text: str) -> bool:
    return _skip(text, 0) == len(text)


def _skip(text: str, at: int) -> int:
    found = _BLANK.match(text, at)
    return found.end() if found else at


def _value(text: str, start: int) -> Node:
    if text[start : start + 1] in _CLOSING:
        return _container(text, start)
    value, end = _scalar(text, start)
    return Node(start=start, end=end, value=value)


def _scalar(text: str, start: int) -> tuple[Any, int]:
    try:
        return _scalars.raw_decode(text, start)
    except JSONDecodeError:
        raise
    except ValueError as error:
        raise JSONDecodeError(str(error), text, start) from None


def _container(text: str, start: int) -> Node:
    closing = _CLOSING[text[start]]
    children: list[Child] = []
    keys: set[str] = set()
    at = _skip(text, start + 1)
    while text[at : at + 1] != closing or children:  # behind a comma, a child must come
        child = _member(text, at, keys) if closing == "}" else Child(None, at, _value(text, at))
        children.append(child)
        at = _skip(text, child.node.end)
        if text[at : at + 1] == closing:
            break
        at = _skip(text, _expect(text, at, ","))
    values = [child.node.value for child in children]
    value: Any = dict(zip((one.key for one in children), values, strict=True)) if closing == "}" else values
    return Node(start=start, end=at + 1, value=value, children=tuple(children))


def _member(text: str, start: int, before: set[str]) -> Child:
    if text[start : start + 1] != '"':
        raise JSONDecodeError("a key in double quotes is missing", text, start)
    key, end = _scalar(text, start)
    if key in before:
        raise JSONDecodeError(f"the key {json.dumps(key)} is given twice", text, start)
    before.add(key)
    at = _expect(text, _skip(text, end), ":")
    return Child(key, start, _value(text, _skip(text, at)))


def _expect(text: str, at: int, sign: str) -> int:
    if text[at : at + 1] != sign:
        raise JSONDecodeError(f"a {sign!r} is missing", text, at)
    return at + 1


# --- the style of a text -------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Style:
    """How a text is laid out, as its first member shows."""

    in_lines: bool = True
    line_end: str = "\n"
    indent: str = _INDENT
    gap: str = " "  # behind a colon, and behind a comma in one line

    def shown(self, value: Any, before: str | None) -> str:
        """Return a value as text; `before` is the white space before its lines, None: in one line."""
        if before is None:
            return json.dumps(value, ensure_ascii=False, separators=(f",{self.gap}", f":{self.gap}"))
        separators = (",", f":{self.gap}")
        text = json.dumps(value, ensure_ascii=False, indent=self.indent, separators=separators)
        return text.replace("\n", self.line_end + before)

    def child(self, key: str | None, value: Any, before: str | None) -> str:
        name = "" if key is None else f"{json.dumps(key, ensure_ascii=False)}:{self.gap}"
        return name + self.shown(value, before)


def style_of(text: str, root: Node) -> Style:
    # With any \r in the text: `_blank_of` could not tell a \r of ours from one before it.
    line_end = "\r\n" if "\r" in text else "\n"
    if not root.children:
        return Style(line_end=line_end)
    first = root.children[0]
    lead = text[root.start + 1 : first.start]
    gap = " " if text[first.node.start - 1] in " \t\r\n" else ""
    if "\n" not in lead:
        return Style(in_lines=False, line_end=line_end, gap=gap)
    return Style(line_end=line_end, indent=lead.rpartition("\n")[2], gap=gap)


def _indentation(text: str, at: int) -> str:
    """Return the white space at the beginning of the line of a place."""
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip(" \t"))]


# --- editing -------------------------------------------------------------------------


def appended(text: str, path: Path, value: Any, key: str | None = None) -> str:
    """Put a value at the end of the array at a path, or a key and its value at the end of the object."""
    root = parse(text)
    node, style = root.at(path), style_of(text, root)
    if not node.children:
        return _filled(text, node, style, key, value)
    end = node.children[-1].node.end
    lead = _lead(text, node, len(node.children) - 1)
    if len(node.children) == 1 and lead.startswith(KEPT):
        blank = _blank_of(lead)
        lead = lead[len(KEPT) + len(blank) :]
    if not lead and len(node.children) == 1:
        lead = style.gap  # the first stands at its bracket; others are shown nowhere
    before = lead.rpartition("\n")[2] if "\n" in lead else None
    return f"{text[:end]},{lead}{style.child(key, value, before)}{text[end:]}"


def _lead(text: str, node: Node, number: int) -> str:
    """Return the white space before a child."""
    start = node.children[number].start
    return text[len(text[:start].rstrip(" \t\r\n")) : start]


def _filled(text: str, node: Node, style: Style, key: str | None, value: Any) -> str:
    """Put the first child into a container that is empty."""
    blank = text[node.start + 1 : node.end - 1]
    lead, tail, before = KEPT + blank, "", None
    if style.in_lines:
        outer = _indentation(text, node.start)
        before = outer + style.indent
        lead, tail = lead + style.line_end + before, style.line_end + outer
    elif "\n" in blank:
        lead += style.line_end  # `_blank_of` takes the last line end away
    return text[: node.start + 1] + lead + style.child(key, value, before) + tail + text[node.end - 1 :]


def _blank_of(lead: str) -> str:
    """Return what was in a container before `_filled` put this before its first child."""
    blank, line_end, _ = lead.removeprefix(KEPT).rpartition("\n")
    if not line_end:
        return lead.removeprefix(KEPT)
    return blank.removesuffix("\r")


def replaced(text: str, path: Path, value: Any) -> str:
    """Put another value at a path; in lines or in one line, as the old one is."""
    root = parse(text)
    node = root.at(path)
    before = _indentation(text, node.start) if "\n" in text[node.start : node.end] else None
    return text[: node.start] + style_of(text, root).shown(value, before) + text[node.end :]


def without(text: str, path: Path) -> str:
    """Take out the value at a path, and every container that it leaves empty and that came with it.

    When even the root goes, what stood around the root is left: white space.
    """
    root = parse(text)
    if not path:
        return text[: root.start] + text[root.end :]
    node = root.at(path[:-1])
    children = node.children
    number = next(n for n, one in enumerate(children) if path[-1] in (one.key, n))
    if len(children) == 1:
        lead = _lead(text, node, 0)
        if not lead.startswith(KEPT):
            return without(text, path[:-1])
        return text[: node.start + 1] + _blank_of(lead) + text[node.end - 1 :]
    if number == 0:
        return text[: children[0].start] + text[children[1].start :]
    return text[: children[number - 1].node.end] + text[children[number].node.end :]
