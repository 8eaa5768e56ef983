"""What a request to a webhook says: the text of its body, the fields that a template can name, and files.

A body in JSON is shown with a field on each line. What is not text, and what is too long to be shown, is
attached whole.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs

from ...core.contracts.inbound import Author, Inbound, ReceivedFile, Update, download_path
from . import templates

TEXT_BYTES = 64 * 1024  # of the text; a longer one is cut, and the body is attached
SUBJECT_CHARACTERS = 200
HEADER_CHARACTERS = 200
# The headers that are stored, and that a template can name. No others: some have secrets.
HEADERS = ("content-type", "user-agent", "x-github-event")
SPECIAL = frozenset({"@body", *(f"@headers.{name}" for name in HEADERS)})
_FORM = "application/x-www-form-urlencoded"


def update(delivery: str, chat: str, headers: Mapping[str, str], body: bytes) -> Update:
    """Return a request as it is stored. In base64: whatever its bytes are, its size is known."""
    kept = {name: headers[name][:HEADER_CHARACTERS] for name in HEADERS if name in headers}
    raw = {"headers": kept, "body": base64.b64encode(body).decode()}
    return Update(id=delivery, chat=chat, raw=raw)


@dataclass(frozen=True, kw_only=True, slots=True)
class Wording:
    """How a webhook words what comes in."""

    template: str | None = None  # of the text; None: the body itself
    subject: str | None = None  # a template too; None: the name of a GitHub event, else none
    most_bytes: int = TEXT_BYTES

    def inbound(self, came: Update, downloads: str) -> Inbound:
        """Return what a stored request means. Files are written into the directory `downloads`."""
        headers, body = came.raw["headers"], base64.b64decode(came.raw["body"])
        text = _decoded(body)
        document = _document(text, headers.get("content-type", ""))
        shown, kind = self._body(text, document)
        special = {f"@headers.{name}": value for name, value in headers.items()} | {"@body": shown}
        subject = headers.get("x-github-event")
        if self.subject is not None:
            subject = templates.fill(self.subject, document, special, SUBJECT_CHARACTERS)
        if self.template is not None:
            shown, kind = templates.fill(self.template, document, special, self.most_bytes), "text"
        files, note = [], _empty(shown, body)
        cut = _cut(shown, self.most_bytes)
        if cut is not None or text is None:
            shown, kind, note = cut or shown, "text", _attached(body, text)
            files = [_file(body, text, document, downloads)]
        return Inbound(
            chat=came.chat,
            author=Author(bot=True),
            text=shown,
            type="json" if kind == "json" else "text",
            subject=subject,
            files=files,
            note=note,
            auto=True,
        )

    def _body(self, text: str | None, document: Any) -> tuple[str, str]:
        """Return the body as it is shown without a template, and its type."""
        if not isinstance(document, (dict, list)):
            return text or "", "text"
        try:
            return _with_lines(document, self.most_bytes), "json"
        except RecursionError:
            return text or "", "text"


def _with_lines(document: Any, most: int) -> str:
    """Return a document with a field on each line; not more of it than is shown.

    Piece by piece: deep documents with many lines would become huge.
    """
    size, parts = 0, []
    for part in json.JSONEncoder(ensure_ascii=False, indent=2).iterencode(document):
        parts.append(part)
        size += len(part)
        if size > most:
            break
    return "".join(parts)


def _decoded(body: bytes) -> str | None:
    """Return the body as a text; None: it is none."""
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
    return None if "\x00" in text else text


def _document(text: str | None, content_type: str) -> Any:
    """Return the JSON document that a text is, or that a form has as `payload` (as of GitHub); else None."""
    if text is None:
        return None
    if content_type.partition(";")[0].strip().lower() == _FORM:
        try:
            text = parse_qs(text, max_num_fields=100).get("payload", [text])[0]
        except ValueError:
            return None
    try:
        return json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None


def _refuse(word: str) -> None:
    raise ValueError(f"{word} is no JSON")


def _empty(shown: str, body: bytes) -> str | None:
    if shown.strip():
        return None
    return "the request has no body" if not body else "the request says nothing"


def _cut(text: str, most: int) -> str | None:
    """Return the beginning of a text that is too long; None: it is not."""
    whole = text.encode("utf-8", "replace")
    return None if len(whole) <= most else whole[:most].decode("utf-8", "ignore") + "…"


def _attached(body: bytes, text: str | None) -> str:
    why = "is no text" if text is None else "is too long to be shown whole"
    return f"the body of {len(body)} bytes {why}; it is attached"


def _file(body: bytes, text: str | None, document: Any, downloads: str) -> ReceivedFile:
    ending = "bin" if text is None else "txt" if document is None else "json"
    path = download_path(downloads, f"body.{ending}")
    with open(path, "wb") as file:
        file.write(body)
    return ReceivedFile(path, f"body.{ending}")
