"""The text of a call: read with its parse_mode or entities, checked for its length."""

from __future__ import annotations

from .html_markup import parse_html
from .markdown_markup import parse_markdown_v2, parse_old_markdown
from .params import Params
from .refusals import bad_request
from .text_entities import Entity, found_entities, stripped, units

TEXT_LIMIT = 4096
CAPTION_LIMIT = 1024

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
    mode = params.text("parse_mode").lower()
    if mode in ("", "none"):
        given = params.object(entities_name, "message entities") or []
        text, entities = source, _checked(source, given)
    elif mode == "html":
        text, entities = parse_html(source)
    elif mode == "markdownv2":
        text, entities = parse_markdown_v2(source)
    elif mode == "markdown":
        text, entities = parse_old_markdown(source)
    else:
        raise bad_request("unsupported parse_mode")
    text, entities = stripped(text, entities)
    return text, found_entities(text, entities)


def _checked(text: str, entities: list[Entity]) -> list[Entity]:
    """Return the entities that lie in the text; the platform drops those that are empty."""
    end = units(text)
    kept = []
    for entity in entities:
        for name in ("type", "offset", "length"):
            if name not in entity:
                raise bad_request(f"can't parse MessageEntity: Can't find field \"{name}\"")
        if entity["offset"] < 0 or entity["offset"] + entity["length"] > end:
            raise bad_request(
                f"entity beginning at UTF-16 offset {entity['offset']} ends after the end of the text "
                f"at UTF-16 offset {entity['offset'] + entity['length']}"
            )
        if entity["length"] > 0:
            kept.append(dict(entity))
    return kept
