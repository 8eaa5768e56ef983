"""The rules for entities that a bot gives: what is refused, and what the platform silently mends.

The refusals and the way of mending are those of TDLib, which the real server is built on. Every silent change
is told with `remark`, so that a test can insist that there was none.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations, pairwise
from typing import Any

from .links import link_problem
from .refusals import bad_request
from .text_entities import Entity, part, units

MOST_ENTITIES = 100
STYLES = ("bold", "italic", "underline", "strikethrough", "spoiler")
QUOTES = ("blockquote", "expandable_blockquote")
CODE = ("code", "pre")
# Found by the platform in the text; one that is given is ignored.
FOUND = ("mention", "hashtag", "cashtag", "bot_command", "url", "email", "phone_number", "bank_card_number")
KNOWN = {*STYLES, *QUOTES, *CODE, *FOUND, "text_link", "text_mention", "custom_emoji", "date_time"}
_LARGEST = 1_000_000

Remark = Callable[[str], None]
Span = tuple[int, int]


def read_entities(text: str, given: Any, remark: Remark) -> list[Entity]:
    """Return the entities of a call as the platform keeps them, or refuse."""
    if not isinstance(given, list):
        raise bad_request("expected an Array of MessageEntity")  # a guess at the words
    for one in given:
        _check_form(one)
    for one in given:
        if one["length"] == 0:
            remark(f"an empty {one['type']} at {one['offset']} is dropped")
        elif one["type"] in FOUND:
            remark(f"a given {one['type']} at {one['offset']} is ignored: it is found in the text, or not")
    entities = [dict(one) for one in given if one["length"] > 0]
    for one in entities:
        _check_place(text, one)
    return mended(text, [one for one in entities if one["type"] not in FOUND], remark)


def mended(text: str, entities: list[Entity], remark: Remark) -> list[Entity]:
    """Return entities as the platform keeps them: nested well, none in code, at most a hundred."""
    entities = sorted(entities, key=lambda one: (one["offset"], -one["length"]))
    if len(entities) > MOST_ENTITIES:
        remark(f"{len(entities) - MOST_ENTITIES} entities of {len(entities)} are dropped: there may be 100")
        entities = entities[:MOST_ENTITIES]
    for one in entities:
        if not part(text, one).strip():
            remark(f"{_named(one)} covers only white space")
    for one, other in combinations(entities, 2):
        if problem := _clash(one, other):
            remark(f"{_named(one)} and {_named(other)}: {problem}")
    kept = _whole(entities)
    return sorted([*kept, *_styles(entities, kept)], key=lambda one: (one["offset"], -one["length"]))


def _check_form(one: Any) -> None:
    if not isinstance(one, dict):
        raise _unparseable("MessageEntity must be an Object")  # a guess at the words
    for name in ("type", "offset", "length"):
        if name not in one:
            raise _unparseable(f'Can\'t find field "{name}"')
    if one["type"] not in KNOWN:
        raise _unparseable("Unsupported type specified")
    for name in ("offset", "length"):
        if type(one[name]) is not int:  # True is no number
            raise _unparseable(f'Field "{name}" must be of type Number')
        if not 0 <= one[name] <= _LARGEST:
            raise bad_request(f"receive an entity with incorrect {name} {one[name]}")
    _check_facts(one)


def _check_facts(one: Entity) -> None:
    """Refuse an entity that lacks what its type needs."""
    needed = {"text_link": "url", "text_mention": "user", "custom_emoji": "custom_emoji_id"}.get(one["type"])
    if needed is not None and needed not in one:
        raise _unparseable(f'Can\'t find field "{needed}"')
    if one["type"] == "custom_emoji" and not str(one["custom_emoji_id"]).isdigit():
        raise _unparseable('Field "custom_emoji_id" must be a valid Number')
    if one["type"] == "text_link" and (problem := link_problem(str(one["url"]))):
        raise bad_request(f"entity URL '{one['url']}' is invalid: {problem}")


def _check_place(text: str, one: Entity) -> None:
    start, end = span(one)
    size = units(text)
    if start > size:
        raise bad_request(f"entity begins after the end of the text at UTF-16 offset {start}")
    if end > size:
        raise bad_request(
            f"entity beginning at UTF-16 offset {start} ends after the end of the text at UTF-16 offset {end}"
        )
    if (place := _inside_symbol(text, start)) is not None:
        raise bad_request(f"entity begins in a middle of a UTF-16 symbol at byte offset {place}")
    if (place := _inside_symbol(text, end)) is not None:
        raise bad_request(
            f"entity beginning at UTF-16 offset {start} ends in a middle of a UTF-16 symbol "
            f"at byte offset {place}"
        )


def _inside_symbol(text: str, offset: int) -> int | None:
    """Return where the symbol ends, in bytes, that an offset splits; None if it splits none."""
    at = 0
    for number, sign in enumerate(text):
        if at >= offset:
            return None
        at += 2 if sign > "\uffff" else 1
        if at > offset:
            return len(text[: number + 1].encode("utf-8", "surrogatepass"))
    return None


def _clash(one: Entity, other: Entity) -> str | None:
    """Return what the platform mends about two entities, the first of which does not begin later."""
    (start, end), (begin, stop) = span(one), span(other)
    if begin >= end:
        return None
    kinds = (one["type"], other["type"])
    if stop > end and start != begin:
        return "they overlap in part, and are split or dropped"
    if any(kind in CODE for kind in kinds) and any(kind in STYLES for kind in kinds):
        return "nothing is formatted inside code"
    if kinds[0] in STYLES or kinds[1] in STYLES:
        return "they are merged" if kinds[0] == kinds[1] else None
    quotes = [kind in QUOTES for kind in kinds]
    if all(quotes):
        return "quotations are not nested"
    if quotes[0] or (quotes[1] and (start, end) == (begin, stop)):
        return None  # anything may stand in a quotation
    return "only one of them is kept"


def _whole(entities: list[Entity]) -> list[Entity]:
    """Return the entities that are never split: of two that clash, the quotation or the first."""
    kept: list[Entity] = []
    for one in entities:
        if one["type"] in QUOTES and not any(_touch(one, other) for other in kept):
            kept.append(one)
    quotes = list(kept)
    for one in entities:
        if one["type"] in STYLES or one["type"] in QUOTES:
            continue
        others = [other for other in kept if other not in quotes]
        in_quotes = all(_within(one, quote) for quote in quotes if _touch(one, quote))
        if in_quotes and not any(_touch(one, other) for other in others):
            kept.append(one)
    return kept


def _styles(entities: list[Entity], whole: list[Entity]) -> list[Entity]:
    """Return bold, italic …: merged, cut out of code, and split where they would overlap in part."""
    placed = [span(one) for one in whole]
    code = [span(one) for one in whole if one["type"] in CODE]
    pieces: list[Entity] = []
    for kind in STYLES:
        spans = _merged([span(one) for one in entities if one["type"] == kind])
        spans = [cut for one in spans for cut in _split(one, code, placed)]
        spans = [(a, b) for a, b in spans if not any(start <= a and b <= end for start, end in code)]
        placed += spans
        pieces += [{"type": kind, "offset": start, "length": end - start} for start, end in spans]
    return pieces


def _merged(spans: list[Span]) -> list[Span]:
    merged: list[Span] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _split(one: Span, code: list[Span], others: list[Span]) -> list[Span]:
    """Return the pieces of a span, so that none has code in it or overlaps one of the others in part."""
    start, end = one
    borders = [*code, *(other for other in others if not _nests(one, other))]
    edges = [start, *sorted({edge for other in borders for edge in other if start < edge < end}), end]
    return list(pairwise(edges))


def _nests(one: Span, other: Span) -> bool:
    return one[0] <= other[0] and other[1] <= one[1]


def _touch(one: Entity, other: Entity) -> bool:
    (start, end), (begin, stop) = span(one), span(other)
    return start < stop and begin < end


def _within(one: Entity, other: Entity) -> bool:
    return _nests(span(other), span(one))


def span(one: Entity) -> Span:
    """Return where an entity begins and ends."""
    start = int(one["offset"])
    return start, start + int(one["length"])


def _named(one: Entity) -> str:
    return f"{one['type']} at {one['offset']}+{one['length']}"


def _unparseable(words: str) -> Exception:
    return bad_request(f"can't parse MessageEntity: {words}")
