"""The parameters of a call: from the query, a form, a multipart form or JSON."""

from __future__ import annotations

import json
from dataclasses import dataclass
from email.parser import BytesParser
from email.policy import HTTP
from typing import Any
from urllib.parse import parse_qsl

from .refusals import Refusal, bad_request


@dataclass(frozen=True)
class Upload:
    """A file that came with a call."""

    name: str
    mime: str
    data: bytes


class Params:
    """Parameters by name. What nobody asks for is ignored, as the real server does.

    `remarks` are about what the platform would silently drop, mend or ignore of this call.
    """

    def __init__(
        self, values: dict[str, Any], uploads: dict[str, Upload], remarks: list[str] | None = None
    ) -> None:
        self.values = values
        self.uploads = uploads
        self.remarks = [] if remarks is None else remarks
        self.method = ""

    def remark(self, sentence: str) -> None:
        self.remarks.append(sentence)

    def part(self, values: dict[str, Any]) -> Params:
        """Return one part of the call, like an item of an album, with parameters of its own."""
        return Params(values, self.uploads, self.remarks)

    @classmethod
    def read(cls, query: str, content_type: str, body: bytes) -> Params:
        values: dict[str, Any] = dict(parse_qsl(query, keep_blank_values=True))
        uploads: dict[str, Upload] = {}
        kind = content_type.partition(";")[0].strip().lower()
        if kind == "multipart/form-data":
            fields, uploads = _multipart(content_type, body)
            values |= fields
        elif kind == "application/json":
            values |= _json_body(body)
        elif body:
            values |= dict(parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True))
        return cls(values, uploads)

    def text(self, name: str) -> str:
        value = self.values.get(name)
        if value is None:
            return ""
        return value if isinstance(value, str) else json.dumps(value)

    def number(self, name: str, default: int = 0) -> int:
        """Return a whole number; what is none counts as the default."""
        try:
            return int(self.values.get(name, default))
        except (TypeError, ValueError):
            return default

    def real(self, name: str) -> float:
        try:
            return float(self.values.get(name, 0))
        except (TypeError, ValueError):
            return 0.0

    def flag(self, name: str) -> bool:
        return str(self.values.get(name, "")).lower() in ("true", "1", "yes")

    def has(self, name: str) -> bool:
        return self.values.get(name) not in (None, "")

    def object(self, name: str, what: str) -> Any:
        """Return a JSON value; None if there is none."""
        value = self.values.get(name)
        if not isinstance(value, str):
            return value
        if not value:
            return None
        try:
            return json.loads(value)
        except ValueError:
            raise bad_request(f"can't parse {what} JSON object") from None


def _json_body(body: bytes) -> dict[str, Any]:
    try:
        found = json.loads(body or b"{}")
    except ValueError:
        raise Refusal(400, "Bad Request: can't parse JSON object") from None
    if not isinstance(found, dict):
        raise Refusal(400, "Bad Request: object expected as JSON body")
    return found


def _multipart(content_type: str, body: bytes) -> tuple[dict[str, str], dict[str, Upload]]:
    head = f"Content-Type: {content_type}\r\n\r\n".encode()
    fields: dict[str, str] = {}
    uploads: dict[str, Upload] = {}
    for part in BytesParser(policy=HTTP).parsebytes(head + body).iter_parts():
        name = str(part.get_param("name", header="content-disposition") or "")
        data = part.get_payload(decode=True)
        assert isinstance(data, bytes)
        filename = part.get_filename()
        if filename is None:
            fields[name] = data.decode("utf-8", "replace")
        else:
            uploads[name] = Upload(filename, part.get_content_type(), data)
    return fields, uploads
