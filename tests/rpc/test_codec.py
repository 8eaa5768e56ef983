"""The wire format: its limits, and what a failure carries. Everything else of it: test_codec_fuzz.py."""

from __future__ import annotations

import json
from pathlib import PurePath
from typing import Any

from hiboss.core.errors import BadName, FrameTooLarge
from hiboss.rpc import codec
from hiboss.rpc.codec import Batch, Framer, Malformed, Request

LIMIT = 8


def frames(*pieces: bytes, limit: int = LIMIT, end: bool = True) -> list[bytes | str]:
    """What a framer makes of these pieces; the error by its code."""
    framer = Framer(limit)
    found = [frame for piece in pieces for frame in framer.feed(piece)]
    found += framer.end() if end else ()
    return [frame.code if isinstance(frame, FrameTooLarge) else frame for frame in found]


# --- lines ---------------------------------------------------------------------------


def test_nothing_of_a_line_over_the_limit_is_kept() -> None:
    framer = Framer(LIMIT)
    for _ in range(100):
        list(framer.feed(b"x" * LIMIT))
    assert [part for value in vars(framer).values() if isinstance(value, list) for part in value] == []


def test_the_error_names_the_limit() -> None:
    (error,) = Framer(4096).feed(b"x" * 5000)
    assert isinstance(error, FrameTooLarge) and error.limit == 4096


def test_a_carriage_return_before_the_newline_does_not_matter() -> None:
    lines = frames(b'{"jsonrpc":"2.0","method":"a"}\r\n', limit=100)
    assert [codec.parse(line) for line in lines if isinstance(line, bytes)] == [
        Request("a", None, None, True)
    ]


# --- requests ------------------------------------------------------------------------


def parse(document: Any) -> Request | Malformed | Batch:
    return codec.parse(json.dumps(document).encode())


def request(**changes: Any) -> dict[str, Any]:
    document = {"jsonrpc": "2.0", "method": "a.b", "params": {"x": 1}, "id": 1, **changes}
    return {name: value for name, value in document.items() if value is not ...}


# --- answers -------------------------------------------------------------------------


def test_a_failure_carries_code_message_and_facts() -> None:
    error = BadName(value="a\nb", why="so")
    line = codec.failure("x", error)
    assert b"\n" not in line
    assert json.loads(line) == {
        "jsonrpc": "2.0",
        "id": "x",
        "error": {
            "code": -32602,
            "message": error.message,
            "data": {"code": "bad_name", "value": "a\nb", "why": "so"},
        },
    }


def test_a_fact_that_is_no_json_is_written_as_its_text() -> None:
    error = BadName(value=PurePath("/a/b"), why="so")
    answer = json.loads(codec.failure(7, error))
    assert answer["error"]["message"] == error.message
    assert answer["error"]["data"] == {"code": "bad_name", "value": "/a/b", "why": "so"}
