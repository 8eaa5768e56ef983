"""Two rules of our own for the Markdown parser: details that fold, and addresses with underscores."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_block import StateBlock
    from markdown_it.rules_inline import StateInline

_DEEPEST = 3  # details inside details: what is deeper is text
_OPEN = re.compile(r"<details(?:\s[^<>\n]*)?>", re.IGNORECASE)
_TAG = re.compile(r"<(/?)details(?:\s[^<>\n]*)?>", re.IGNORECASE)
_SUMMARY = re.compile(r"\s*<summary>(.*?)</summary>", re.IGNORECASE | re.DOTALL)
_FENCE = re.compile(r"\s*(```+|~~~+)")
_ADDRESS = re.compile(r"://[^\s<>\[\]()`*~|\"\\&]*")


class _Found(NamedTuple):
    summary: str
    body: str
    tail: str  # behind it, in its last line
    next_line: int


def add_rules(parser: MarkdownIt) -> None:
    """Teach them to a parser."""
    parser.block.ruler.before(
        "reference", "details", _details, {"alt": ["paragraph", "reference", "blockquote", "list"]}
    )
    parser.inline.ruler.after("text", "bare_address", _bare_address)


def _details(state: StateBlock, start_line: int, end_line: int, silent: bool) -> bool:
    """Read <details><summary>…</summary> … </details>; what is in it is Markdown too."""
    place = state.bMarks[start_line] + state.tShift[start_line]
    depth: int = state.env.setdefault("details", 0)
    if state.is_code_block(start_line) or depth > _DEEPEST or not _OPEN.match(state.src, place):
        return False
    if silent:
        return True
    found = _find_end(state, start_line, end_line)
    if found is None:
        return False
    state.push("details_open", "details", 1)
    summary = state.push("inline", "", 0)
    summary.content, summary.children = " ".join(found.summary.split()), []
    state.env["details"] = depth + 1
    state.md.block.parse(found.body, state.md, state.env, state.tokens)
    state.env["details"] = depth
    state.push("details_close", "details", -1)
    if found.tail.strip():
        state.md.block.parse(found.tail, state.md, state.env, state.tokens)
    state.line = found.next_line
    return True


def _find_end(state: StateBlock, start_line: int, end_line: int) -> _Found | None:
    """Return what belongs to details; without an end, all that follows: the text may still grow."""
    if state.env.get("details_without_end"):  # looked for before, in all that follows
        end_line = start_line + 1
    lines: list[str] = []
    depth, fence = 0, ""
    line = start_line
    for line in range(start_line, end_line):
        if line > start_line and not state.isEmpty(line) and state.sCount[line] < state.blkIndent:
            break
        text = state.getLines(line, line + 1, state.blkIndent, False)
        if (mark := _FENCE.match(text)) and (not fence or mark[1].startswith(fence)):
            fence = "" if fence else mark[1]
        for tag in () if fence else _TAG.finditer(text):
            depth += -1 if tag[1] else 1
            if depth == 0:
                lines.append(text[: tag.start()])
                return _parted("\n".join(lines), text[tag.end() :], line + 1)
        lines.append(text)
    else:
        line = end_line
    state.env["details_without_end"] = True
    found = _parted("\n".join(lines), "", line)
    return found if found.summary else None


def _parted(source: str, tail: str, next_line: int) -> _Found:
    body = _OPEN.sub("", source, count=1)
    summary = _SUMMARY.match(body)
    if summary is None:
        return _Found("", body, tail, next_line)
    return _Found(summary[1], body[summary.end() :], tail, next_line)


def _bare_address(state: StateInline, silent: bool) -> bool:
    """Take an address in the text as it is: _x_ in it is no emphasis."""
    found = _ADDRESS.match(state.src, state.pos, state.posMax)
    if found is None or not state.src[max(0, state.pos - 5) : state.pos].lower().endswith(("http", "https")):
        return False
    taken = found.group().rstrip("_")
    if not silent:
        state.pending += taken
    state.pos += len(taken)
    return True
