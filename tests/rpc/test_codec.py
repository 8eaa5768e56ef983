"""The wire format: cutting a stream into lines, reading requests, writing answers."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import PurePath
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hiboss.core.errors import BadName, FrameTooLarge, HibossError, InvalidRequest, ParseError
from hiboss.rpc import codec
from hiboss.rpc.codec import Batch, Framer, Malformed, Request

LIMIT = 8
# Made so that newlines, blanks and lines around the limit are frequent.
STREAMS = st.lists(
    st.sampled_from([b"\n", b"\r\n", b" ", b"a", b"{}", b"x" * (LIMIT - 1), b"x" * LIMIT, b"x" * (LIMIT + 1)])
    | st.binary(max_size=4),
    max_size=30,
).map(b"".join)


def frames(*pieces: bytes, limit: int = LIMIT, end: bool = True) -> list[bytes | str]:
    """What a framer makes of these pieces; the error by its code."""
    framer = Framer(limit)
    found = [frame for piece in pieces for frame in framer.feed(piece)]
    found += framer.end() if end else ()
    return [frame.code if isinstance(frame, FrameTooLarge) else frame for frame in found]


def expected(stream: bytes) -> list[bytes | str]:
    """The same, said in the simplest way."""
    lines = [line for line in stream.split(b"\n") if len(line) > LIMIT or line.strip()]
    return ["frame_too_large" if len(line) > LIMIT else line for line in lines]


# --- lines ---------------------------------------------------------------------------


@given(stream=STREAMS, cuts=st.lists(st.integers(0, 300), max_size=10))
def test_a_stream_gives_the_same_lines_however_it_is_cut(stream: bytes, cuts: list[int]) -> None:
    edges = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    pieces = [stream[a:b] for a, b in pairwise(edges)]
    assert frames(*pieces) == frames(stream) == expected(stream)


@given(stream=STREAMS)
def test_a_stream_gives_the_same_lines_byte_by_byte(stream: bytes) -> None:
    assert frames(*(bytes([byte]) for byte in stream)) == expected(stream)


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


@pytest.mark.parametrize("id_", [1, 0, -1, 1.5, "one", "", 2**53, 2**63 - 1])
def test_a_request_is_read_with_its_id(id_: Any) -> None:
    assert parse(request(id=id_)) == Request("a.b", {"x": 1}, id_, False)


def test_a_request_without_an_id_is_a_notification_and_one_with_null_is_not() -> None:
    assert parse(request(id=...)) == Request("a.b", {"x": 1}, None, True)
    assert parse(request(id=None)) == Request("a.b", {"x": 1}, None, False)


@pytest.mark.parametrize(("params", "read"), [(..., None), ([], []), ([1, "x"], [1, "x"]), ({}, {})])
def test_params_may_be_an_object_an_array_or_missing(params: Any, read: Any) -> None:
    assert parse(request(params=params)) == Request("a.b", read, 1, False)


@pytest.mark.parametrize(
    "line",
    [
        *(
            b"garbage",
            b"{",
            b'{"jsonrpc": "2.0", "method": "a", "params": [1',
            b"\xff\xfe",
            b"\xef\xbb\xbf{}",
        ),
        *(b"{'a': 1}", b'"\\ud800"', b"\x00", b"{}{}", b"NaN", b'{"a": Infinity}'),
        *(b"[" * 100_000, b'{"a":' * 100_000),
    ],
)
def test_what_is_no_json_is_a_parse_error_without_an_id(line: bytes) -> None:
    malformed = codec.parse(line)
    assert isinstance(malformed, Malformed)
    assert isinstance(malformed.error, ParseError)
    assert malformed.id is None
    assert len(malformed.error.message) < 500


@pytest.mark.parametrize(
    ("document", "id_"),
    [
        (None, None),
        (1, None),
        ("text", None),
        (True, None),
        ([], None),
        ({}, None),
        (request(id=True), None),
        (request(id=[1]), None),
        (request(id={"a": 1}), None),
        (request(jsonrpc=...), 1),
        (request(jsonrpc="1.0"), 1),
        (request(jsonrpc=2.0), 1),
        (request(method=...), 1),
        (request(method=1), 1),
        (request(method=["a"]), 1),
        (request(params="x"), 1),
        (request(params=0), 1),
        (request(params=False), 1),
        ({**request(), "params": None}, 1),
        ({"jsonrpc": "2.0", "method": 1, "params": "bar"}, None),
    ],
)
def test_what_is_no_request_is_refused_under_the_id_it_has(document: Any, id_: Any) -> None:
    malformed = parse(document)
    assert isinstance(malformed, Malformed)
    assert isinstance(malformed.error, InvalidRequest)
    assert malformed.id == id_


def test_a_batch_is_read_one_by_one() -> None:
    batch = parse([request(id=1), 1, request(id=...), request(id="x", method=7)])
    assert isinstance(batch, Batch)
    first, second, third, fourth = batch.calls
    assert isinstance(first, Request) and first.id == 1
    assert isinstance(second, Malformed) and second.id is None
    assert isinstance(third, Request) and third.notification
    assert isinstance(fourth, Malformed) and fourth.id == "x"


def test_a_batch_inside_a_batch_is_no_request() -> None:
    batch = parse([[request()]])
    assert isinstance(batch, Batch)
    assert isinstance(batch.calls[0], Malformed)


def test_a_batch_at_the_limit_is_taken_and_one_more_is_not() -> None:
    line = json.dumps([request()] * 3).encode()
    batch = codec.parse(line, batch_limit=3)
    assert isinstance(batch, Batch) and len(batch.calls) == 3
    refused = codec.parse(line, batch_limit=2)
    assert isinstance(refused, Malformed) and isinstance(refused.error, InvalidRequest)
    assert "the batch has 3 requests; the most is 2" in refused.error.message


@given(line=st.binary() | st.text().map(str.encode))
def test_any_line_is_read_or_refused(line: bytes) -> None:
    assert isinstance(codec.parse(line), (Request, Malformed, Batch))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["jsonrpc", "method", "id"]), inner)
    ),
)


@given(document=JSON)
def test_any_json_is_read_or_refused_with_an_id_that_can_be_answered(document: Any) -> None:
    parsed = parse(document)
    for call in parsed.calls if isinstance(parsed, Batch) else [parsed]:
        assert not isinstance(call, Batch)
        assert isinstance(call.id, (str, int, float, type(None))) and not isinstance(call.id, bool)


# --- answers -------------------------------------------------------------------------


@given(id_=st.none() | st.integers(-(2**63), 2**63 - 1) | st.text(), value=JSON)
def test_a_result_is_one_line_under_the_id_asked_with(id_: Any, value: Any) -> None:
    line = codec.result(id_, value)
    assert b"\n" not in line
    assert json.loads(line) == {"jsonrpc": "2.0", "result": value, "id": id_}


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


@pytest.mark.parametrize("fact", ["\ud800", 2**70, {1: 2}, object(), b"bytes", float("nan")])
def test_a_failure_with_a_fact_that_json_cannot_hold_is_answered_all_the_same(fact: Any) -> None:
    error: HibossError = BadName(value=fact, why="so")
    answer = json.loads(codec.failure(7, error))
    assert answer["id"] == 7
    assert answer["error"]["code"] == -32602
    assert answer["error"]["data"]["code"] == "bad_name"
    assert answer["error"]["message"]


def test_a_fact_that_is_no_json_is_written_as_its_text() -> None:
    error = BadName(value=PurePath("/a/b"), why="so")
    answer = json.loads(codec.failure(7, error))
    assert answer["error"]["message"] == error.message
    assert answer["error"]["data"] == {"code": "bad_name", "value": "/a/b", "why": "so"}


def test_a_batch_of_answers_is_one_array() -> None:
    line = codec.batch([codec.result(1, "a"), codec.failure(None, ParseError(detail="x"))])
    assert [answer["id"] for answer in json.loads(line)] == [1, None]
