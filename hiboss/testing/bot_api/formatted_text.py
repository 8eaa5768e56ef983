"""The text of a call: read with its parse_mode or entities, cleaned, checked for its length."""

from __future__ import annotations

import re

from .entity_rules import Remark, mended, read_entities
from .html_markup import parse_html
from .links import link_problem
from .markdown_markup import parse_markdown_v2, parse_old_markdown
from .params import Params
from .refusals import bad_request
from .text_entities import Entity, found_entities, stripped, units

TEXT_LIMIT = 4096
CAPTION_LIMIT = 1024
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")

Formatted = tuple[str, list[Entity]]


def read_text(params: Params) -> Formatted:
    """Return the text of a message, or refuse."""
    text, entities = read_formatted(params.text("text"), params, "entities")
    if not text:
        raise bad_request("message text is empty")
    if units(text) > TEXT_LIMIT:
        raise bad_request("message is too long")
    return text, entities


def read_caption(params: Params) -> Formatted:
    """Return the caption of a message, which may be empty, or refuse."""
    text, entities = read_formatted(params.text("caption"), params, "caption_entities")
    if units(text) > CAPTION_LIMIT:
        raise bad_request("message caption is too long")
    return text, entities


def read_formatted(source: str, params: Params, entities_name: str) -> Formatted:
    """Return a text without its markup, with entities."""
    remark = params.remark
    mode = params.text("parse_mode").lower()
    given = params.object(entities_name, "message entities")
    if mode in ("", "none"):
        text, entities = source, read_entities(source, given or [], remark)
    else:
        if given:
            remark(f"{entities_name} are ignored beside a parse_mode")
        text, entities = _parsed(mode, source)
        entities = mended(text, _linked(entities, remark), remark)
    if _CONTROL.search(text):
        remark("control characters become spaces")
    text, entities = without_returns(text, entities)
    text, entities = stripped(re.sub(r"[\x00-\x09\x0b-\x1f]", " ", text), entities)
    return text, found_entities(text, entities)


def _parsed(mode: str, source: str) -> Formatted:
    if mode == "html":
        return parse_html(source)
    if mode == "markdownv2":
        return parse_markdown_v2(source)
    if mode == "markdown":
        return parse_old_markdown(source)
    raise bad_request("unsupported parse_mode")


def _linked(entities: list[Entity], remark: Remark) -> list[Entity]:
    """Drop links that lead nowhere: in a markup they are no reason to refuse a message."""
    kept = []
    for one in entities:
        problem = link_problem(one["url"]) if one["type"] == "text_link" else None
        if problem:
            remark(f"the link to '{one['url']}' is dropped: {problem}")
        else:
            kept.append(one)
    return kept


def without_returns(text: str, entities: list[Entity]) -> Formatted:
    """Remove carriage returns, as the platform does, and move the entities with the text."""
    if "\r" not in text:
        return text, entities
    lost, at = [], 0  # where returns are, in units
    for sign in text:
        if sign == "\r":
            lost.append(at)
        at += 2 if sign > "\uffff" else 1
    moved = []
    for one in entities:
        start, end = one["offset"], one["offset"] + one["length"]
        offset = start - sum(place < start for place in lost)
        length = end - sum(place < end for place in lost) - offset
        if length > 0:
            moved.append({**one, "offset": offset, "length": length})
    return text.replace("\r", ""), moved
