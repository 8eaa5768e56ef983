"""Mentions in a text: `@nex`, `@reviewer`. What is code is not looked at."""

from __future__ import annotations

import re
from collections import defaultdict

from .address import NAME_LIMIT
from .envelope import Kind

MOST = 50  # different words of one text
SCANNED = 65_536  # characters at its beginning, so that a huge text holds nobody up
EVERYBODY = "all"  # @all in a group

# A line that begins with ```x``` is no fence: what follows backticks there has none.
_FENCED = re.compile(
    r"^[ \t]{0,3}(?:(`{3,})[^\n`]*|(~{3,})[^\n]*)$.*?(?:^[ \t]{0,3}(?:\1|\2)[`~]*[ \t]*$|\Z)", re.M | re.S
)
_PARAGRAPHS = re.compile(r"\n[ \t]*\n")  # no code goes on in the next one, but for what is fenced
_TICKS = re.compile(r"(?<!\\)`+")
_HTML_CODE = re.compile(r"<(pre|code)\b.*?(?:</\1\s*>|\Z)", re.I | re.S)
# Letters of scripts that put spaces between words. Beside others, like Chinese, a name needs none.
_LETTERS = r"0-9A-Za-z_\u00c0-\u1fff"
# Not within a word (an email address), nor before a slash (a package like @types/node).
_MENTION = re.compile(
    rf"(?<![{_LETTERS}@./+-])@([A-Za-z0-9]+(?:-[A-Za-z0-9]+)*)(?![{_LETTERS}@/]|-[{_LETTERS}])"
)


def find(text: str, kind: Kind = Kind.TEXT) -> tuple[str, ...]:
    """Return the words after an @, in lower case, each once, in their order; at most MOST."""
    if "@" not in text or kind in (Kind.JSON, Kind.EVENT):
        return ()
    is_cut, text = len(text) > SCANNED, text[:SCANNED]
    if kind is Kind.HTML:
        text = _HTML_CODE.sub(" ", text)
    elif "`" in text or "~~~" in text:
        text = "\n\n".join(map(_without_spans, _PARAGRAPHS.split(_FENCED.sub(" ", text))))
    found: dict[str, None] = {}
    for match in _MENTION.finditer(text):
        if is_cut and match.end() == len(text):
            break  # it may be the beginning of a longer name
        if len(match[1]) <= NAME_LIMIT:
            found[match[1].lower()] = None
        if len(found) == MOST:
            break
    return tuple(found)


def _without_spans(text: str) -> str:
    """Return a text without what stands between backticks: as many before it as after it.

    Reads the text once: an expression with a back reference would try each pair.
    """
    ticks = [match.span() for match in _TICKS.finditer(text)]
    later: defaultdict[int, list[int]] = defaultdict(list)  # by their number, the last place first
    for place in range(len(ticks) - 1, -1, -1):
        begin, end = ticks[place]
        later[end - begin].append(place)
    parts, upto, place = [], 0, 0
    while place < len(ticks):
        begin, end = ticks[place]
        same = later[end - begin]
        while same and same[-1] <= place:
            same.pop()
        if same:
            parts.append(text[upto:begin])
            place = same[-1]
            upto = ticks[place][1]
        place += 1
    return " ".join([*parts, text[upto:]])
