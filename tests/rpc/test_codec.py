"""The wire format: its limits, and what a failure carries. Everything else of it: test_codec_fuzz.py."""

from __future__ import annotations

import json
from pathlib import PurePath
from typing import Any

from hiboss.core.errors import BadName, FrameTooLarge, InvalidRequest
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


def test_a_line_at_the_limit_is_taken_and_one_byte_more_is_not() -> None:
    assert frames(b"x" * LIMIT + b"\n") == [b"x" * LIMIT]
    assert frames(b"x" * (LIMIT + 1) + b"\n") == ["frame_too_large"]


def test_a_line_over_the_limit_is_told_once_at_once_and_the_next_line_is_taken() -> None:
    assert frames(b"x" * (LIMIT + 1), end=False) == ["frame_too_large"]
    assert frames(*[b"x" * LIMIT] * 100, b"\nnext\n") == ["frame_too_large", b"next"]


def test_nothing_of_a_line_over_the_limit_is_kept() -> None:
    framer = Framer(LIMIT)
    for _ in range(100):
        list(framer.feed(b"x" * LIMIT))
    held = [part for value in vars(framer).values() if isinstance(value, list) for part in value]
    assert held == []


def test_the_error_names_the_limit() -> None:
    (error,) = Framer(4096).feed(b"x" * 5000)
    assert isinstance(error, FrameTooLarge)
    assert error.limit == 4096


def test_blank_lines_are_passed_over() -> None:
    assert frames(b"\n\r\n \n\t\n\n{}\n\n") == [b"{}"]


def test_a_carriage_return_before_the_newline_does_not_matter() -> None:
    lines = frames(b'{"jsonrpc":"2.0","method":"a"}\r\n', limit=100)
    assert [codec.parse(line) for line in lines if isinstance(line, bytes)] == [
        Request("a", None, None, True)
    ]


def test_what_stands_after_the_last_newline_counts_when_the_stream_ends() -> None:
    assert frames(b"one\ntwo", end=False) == [b"one"]
    assert frames(b"one\ntwo") == [b"one", b"two"]
    assert frames(b"one\n  ") == [b"one"]


# --- requests ------------------------------------------------------------------------


def parse(document: Any) -> Request | Malformed | Batch:
    return codec.parse(json.dumps(document).encode())


def request(**changes: Any) -> dict[str, Any]:
    document = {"jsonrpc": "2.0", "method": "a.b", "params": {"x": 1}, "id": 1, **changes}
    return {name: value for name, value in document.items() if value is not ...}


def test_a_batch_at_the_limit_is_taken_and_one_more_is_not() -> None:
    line = json.dumps([request()] * 3).encode()
    batch = codec.parse(line, batch_limit=3)
    assert isinstance(batch, Batch) and len(batch.calls) == 3
    refused = codec.parse(line, batch_limit=2)
    assert isinstance(refused, Malformed) and isinstance(refused.error, InvalidRequest)
    assert "the batch has 3 requests; the most is 2" in refused.error.message


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
