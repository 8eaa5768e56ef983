"""Parse a page of the documentation: its blocks, its code in backticks, its links and headings."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from docs.makers.markdown import slug

ROOT = Path(__file__).resolve().parents[2]

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_INLINE = re.compile(r"`([^`]+)`")
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class Block:
    """One fenced block: its language, its content, and its line in the file."""

    language: str
    body: str
    line: int


@dataclass(frozen=True, kw_only=True)
class Page:
    path: str  # from the root of the repository
    text: str

    @classmethod
    def read(cls, path: str) -> Page:
        return cls(path=path, text=(ROOT / path).read_text(encoding="utf-8"))

    def blocks(self, *languages: str) -> list[Block]:
        found = [
            Block(language=m[1], body=m[2], line=self.text.count("\n", 0, m.start()) + 1)
            for m in _FENCE.finditer(self.text)
        ]
        return [block for block in found if not languages or block.language in languages]

    @property
    def prose(self) -> str:
        """The text without its blocks."""
        return _COMMENT.sub("", _FENCE.sub("", self.text))

    def inline(self) -> list[str]:
        """Everything in backticks outside blocks, each on one line."""
        return [" ".join(code.replace("\\|", "|").split()) for code in _INLINE.findall(self.prose)]

    def links(self) -> list[str]:
        return _LINK.findall(_INLINE.sub("", self.prose))

    def anchors(self) -> set[str]:
        return {slug(heading.replace("`", "")) for heading in _HEADING.findall(_FENCE.sub("", self.text))}


def written() -> list[str]:
    """The pages that are written by hand."""
    return ["README.md", *sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").glob("*.md"))]


def every() -> list[str]:
    """All pages, also the generated ones."""
    below = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md"))
    return ["README.md", *below]
