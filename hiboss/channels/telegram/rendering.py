"""Renders a letter for Telegram: its type says how its text is read. Pure functions that never raise.

Each chunk has up to three forms that say the same (chunk_form.py), cut at the same places.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from ...core.contracts.adapter import Letter
from . import entity_form, html_reader, markdown_reader, rich_form
from .chunk_form import CAPTION_UNITS, MOST_UNITS, Chunk, units
from .document_builder import BOLD, DocumentBuilder
from .document_cuts import Part, header_text, parts
from .formatted_document import Document, Piece

MOST_ENTITIES = 100  # of one post: the platform drops more
_MOST_READ = 65_536  # characters of Markdown, HTML or JSON; more goes as it is, so that nobody waits for it

Reader = Callable[[str, DocumentBuilder], None]


def render(
    letter: Letter, *, most_units: int = MOST_UNITS, most_entities: int = MOST_ENTITIES
) -> list[Chunk]:
    """Return the chunks of the text of a letter, without its files; none if there is nothing to see in it.

    Joined they are the text, but for white space where it was cut, for the header of an aligned table, which
    stands before its rows in each chunk that they begin, and for the line that names the sender, with which
    each chunk begins: else what follows in the text could name another one.
    """
    document, name = _document(letter), f"{letter.sender.partition(':')[2]}:"
    if not letter.text[: letter.front].endswith(f"{name}\n") or units(name) > most_units // 4:
        name = ""
    spans, room = entity_form.spans(document), units(name) + 1 if name else 0
    found = parts(document, spans, most_units, most_entities, room)
    return [_chunk(document, part, name if number else "") for number, part in enumerate(found)]


def caption(letter: Letter) -> Chunk | None:
    """Return all of the text as what stands under a file; None if it is too long or loses by it, or empty."""
    if len(letter.text) > 20 * CAPTION_UNITS:
        return None
    found = render(letter)
    if len(found) != 1 or found[0].rich is not None or units(found[0].text) > CAPTION_UNITS:
        return None
    return found[0]


def _chunk(document: Document, part: Part, name: str) -> Chunk:
    before = (f"{name}\n" if name else "") + header_text(document, part.header)
    text = before + document.text[part.start : part.end]
    entities = entity_form.entities(part.spans, text, part.start, part.end, len(before))
    return Chunk(text, tuple(entities), rich_form.rich(document, part, name))


def _document(letter: Letter) -> Document:
    reader = {"markdown": markdown_reader.read, "html": html_reader.read, "json": _read_json}.get(letter.type)
    if reader is not None and len(letter.body) <= _MOST_READ:
        try:
            found = _built(letter, reader)
        except Exception:  # noqa: BLE001 - whatever a parser meets in the text of somebody else: the text is posted
            found = None
        if found is not None:
            return found
    return _built(letter, _read_plain) or DocumentBuilder().document()


def _built(letter: Letter, reader: Reader) -> Document | None:
    """Return a letter as a document; None if nothing of its body is seen, like a link that nothing uses."""
    builder = DocumentBuilder()
    if letter.front:
        builder.front(letter.text[: letter.front])
    if letter.subject:
        builder.text([Piece(letter.subject, (BOLD,))])
    before = builder.size
    reader(letter.body, builder)
    if builder.size == before and letter.body.strip() and letter.type != "html":
        return None
    return builder.document()


def _read_plain(source: str, builder: DocumentBuilder) -> None:
    if source:
        builder.plain(source)


def _read_json(source: str, builder: DocumentBuilder) -> None:
    builder.code(_indented(source), "json")


def _indented(source: str) -> str:
    """Return JSON in lines; as it is if it is none, or would not be the same."""
    try:
        value = json.loads(source, object_pairs_hook=_unique)
        text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
        text.encode()  # half an emoji can be written in JSON, but not be sent
    except (ValueError, RecursionError):
        return source
    return text


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name is there twice")
    return found
