"""The wire format under anything: every stream of bytes is cut, read or refused, and answered.

Nothing a peer writes may raise, be lost, be answered twice, or change on its way.
"""

from __future__ import annotations

import json
import math
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hiboss.core.errors import BadName, BadTime, FrameTooLarge, HibossError, InvalidRequest, ParseError, tree
from hiboss.rpc import codec
from hiboss.rpc.codec import Batch, Framer, Malformed, Request

pytestmark = pytest.mark.slow

LIMIT = 64
CODES = {cls.code: cls.rpc for cls in tree()}
same_each_time = settings(derandomize=True, max_examples=100)

IDS = st.none() | st.text(max_size=8) | st.integers(-(2**63), 2**63 - 1) | st.floats(-1e9, 1e9)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(-1e6, 1e6) | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
# Members that are right, nearly right and wrong, in every combination.
DOCUMENTS = st.fixed_dictionaries(
    {},
    optional={
        "jsonrpc": st.sampled_from(["2.0", "2.0", "2.0", "1.0", 2.0, None]),
        "method": st.sampled_from(["a.b", "", "é\u2028"]) | JSON,
        "params": st.lists(JSON, max_size=3) | st.dictionaries(st.text(max_size=5), JSON, max_size=3) | JSON,
        "id": IDS | JSON,
        "else": JSON,
    },
)
BROKEN = st.sampled_from(
    [
        b"",
        b"{",
        b"[",
        b"]",
        b'{"jsonrpc":"2.0",',
        b'"\\ud800"',
        b"NaN",
        b"-",
        b"1e999",
        b"\xff",
        b"\xef\xbb\xbf{}",
    ]
)
LINES = (
    st.binary(max_size=80).map(lambda data: data.replace(b"\n", b""))
    | (DOCUMENTS | st.lists(DOCUMENTS | JSON, max_size=4) | JSON).map(lambda d: json.dumps(d).encode())
    | st.builds(bytes.__add__, DOCUMENTS.map(lambda d: json.dumps(d).encode()), BROKEN)
    | BROKEN
)


def read(line: bytes) -> Request | Malformed | Batch:
    return codec.parse(line, batch_limit=3)


def answer(line: bytes) -> list[bytes]:
    """What a door that knows no operation says to a line; a notification is not answered."""
    parsed = read(line)
    if isinstance(parsed, Batch):
        found = [said for call in parsed.calls for said in _answer_to(call)]
        return [codec.batch(found)] if found else []
    return _answer_to(parsed)


def _answer_to(call: Request | Malformed) -> list[bytes]:
    if isinstance(call, Malformed):
        return [codec.failure(call.id, call.error)]
    return [] if call.notification else [codec.result(call.id, call.params)]


def loaded(line: bytes) -> Any:
    """JSON as the standard library reads it; it takes NaN, which is none."""

    def refuse(word: str) -> Any:
        raise ValueError(word)

    return json.loads(line, parse_constant=refuse)


# --- from bytes to answers -----------------------------------------------------------


@same_each_time
@given(line=LINES)
@example(line=b"[" * 5_000)
@example(line=b'{"id":' * 5_000)
@example(line=b'{"jsonrpc":"2.0","method":"a","id":1e400}')
@example(line=b'{"jsonrpc":"2.0","method":"a","id":99999999999999999999}')
@example(line=b'{"jsonrpc":"2.0","method":"a","method":1,"id":1}')
@example(line=b'{"jsonrpc":"2.0","method":"a","id":true}')
@example(line=b'{"jsonrpc":"2.0","method":"a","id":[1]}')
@example(line=b'[{"jsonrpc":"2.0","method":"a","id":{}}]')
def test_whatever_stands_on_a_line_is_answered_in_the_form_of_the_protocol(line: bytes) -> None:
    for said in answer(line):
        assert b"\n" not in said
        document = loaded(said)
        for one in document if isinstance(document, list) else [document]:
            assert one["jsonrpc"] == "2.0" and ("result" in one) != ("error" in one)
            assert set(one) - {"result", "error"} == {"jsonrpc", "id"}
            assert one["id"] is None or type(one["id"]) in (str, int, float)
            if "error" in one:
                assert one["error"]["code"] == CODES[one["error"]["data"]["code"]] and one["error"]["message"]


@same_each_time
@given(line=LINES)
def test_what_is_refused_is_no_json_or_no_request(line: bytes) -> None:
    parsed = read(line)
    for call in parsed.calls if isinstance(parsed, Batch) else [parsed]:
        if isinstance(call, Malformed):
            assert type(call.error) in (ParseError, InvalidRequest)
    try:
        document = loaded(line)
    except (ValueError, RecursionError):
        assert isinstance(parsed, Malformed) and isinstance(parsed.error, ParseError)
        return
    if isinstance(parsed, Malformed) and isinstance(parsed.error, ParseError):
        # Python reads a little more than JSON is: half a surrogate pair, and numbers without end.
        text = json.dumps(document)
        assert (
            "\\ud" in text or "Infinity" in text or line.startswith(b"\xef\xbb\xbf") or _has_large(document)
        )


def _has_large(document: Any) -> bool:
    inner = (
        document.values() if isinstance(document, dict) else document if isinstance(document, list) else ()
    )
    return any(map(_has_large, inner)) or (isinstance(document, float) and math.isinf(document))


@same_each_time
@given(
    method=st.text(max_size=20),
    params=st.lists(JSON, max_size=3) | st.dictionaries(st.text(max_size=5), JSON, max_size=3),
    id_=IDS,
)
def test_a_right_request_is_read_to_the_letter(method: str, params: Any, id_: Any) -> None:
    document = {"jsonrpc": "2.0", "method": method, "params": params, "id": id_}
    for ascii_ in (True, False):
        found = codec.parse(json.dumps(document, ensure_ascii=ascii_).encode())
        assert found == Request(method, params, id_, False)
        assert isinstance(found, Request) and type(found.id) is type(id_)
    del document["id"]
    assert codec.parse(json.dumps(document).encode()) == Request(method, params, None, True)


@same_each_time
@given(members=st.lists(DOCUMENTS | JSON, max_size=5), limit=st.integers(1, 5))
def test_a_batch_reads_each_member_as_it_would_be_read_alone(members: list[Any], limit: int) -> None:
    parsed = codec.parse(json.dumps(members).encode(), batch_limit=limit)
    if not 1 <= len(members) <= limit:
        assert isinstance(parsed, Malformed) and isinstance(parsed.error, InvalidRequest)
        return
    assert isinstance(parsed, Batch) and len(parsed.calls) == len(members)
    for member, call in zip(members, parsed.calls, strict=True):
        if isinstance(member, list):  # alone it would be a batch; in one it is nothing
            assert isinstance(call, Malformed)
            continue
        assert _facts(codec.parse(json.dumps(member).encode())) == _facts(call)


def _facts(call: Request | Malformed | Batch) -> Any:
    return (call.error.message, call.id) if isinstance(call, Malformed) else call


# --- from a stream to lines ----------------------------------------------------------


@same_each_time
@given(
    lines=st.lists(LINES | st.sampled_from([b" ", b"x" * LIMIT, b"x" * (LIMIT + 1)]), max_size=8),
    ends=st.lists(st.sampled_from([b"\n", b"\r\n", b"\n\n"]), min_size=8, max_size=8),
    cuts=st.lists(st.integers(0, 800), max_size=12),
    closed=st.booleans(),
)
def test_a_stream_cut_anywhere_gives_every_line_once_and_in_order(
    lines: list[bytes], ends: list[bytes], cuts: list[int], closed: bool
) -> None:
    stream = b"".join(map(bytes.__add__, lines, ends))
    if not closed:
        stream = stream.rstrip(b"\n")
    edges = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    framer = Framer(LIMIT)
    found = [frame for a, b in pairwise(edges) for frame in framer.feed(stream[a:b])]
    found += framer.end()
    wanted = [part for part in stream.split(b"\n") if len(part) > LIMIT or part.strip()]
    assert len(found) == len(wanted)
    for frame, part in zip(found, wanted, strict=True):
        if len(part) > LIMIT:
            assert isinstance(frame, FrameTooLarge) and frame.limit == LIMIT
        else:
            assert frame == part
            assert isinstance(read(part), (Request, Malformed, Batch))
    assert list(framer.end()) == []  # it kept nothing


# --- from answers to bytes and back --------------------------------------------------


@same_each_time
@given(id_=IDS, value=JSON)
def test_a_result_comes_back_as_it_went(id_: Any, value: Any) -> None:
    line = codec.result(id_, value)
    assert loaded(line) == {"jsonrpc": "2.0", "result": value, "id": id_}
    (frame,) = Framer(1 << 20).feed(line + b"\n")
    assert frame == line


ANY_TEXT = st.text(st.characters(), max_size=20)  # half surrogate pairs too
FACTS = st.one_of(
    JSON, ANY_TEXT, st.binary(max_size=5), st.integers(2**64, 2**80), st.floats(), st.just(object())
)


@same_each_time
@given(id_=IDS, fact=FACTS, why=ANY_TEXT, cls=st.sampled_from([BadName, BadTime]))
def test_a_failure_keeps_its_code_and_its_id_whatever_its_facts_are(
    id_: Any, fact: Any, why: str, cls: type[HibossError]
) -> None:
    line = codec.failure(id_, cls(value=fact, why=why))
    assert b"\n" not in line
    document = loaded(line)
    assert document["id"] == id_ and document["error"]["code"] == cls.rpc
    assert document["error"]["data"]["code"] == cls.code and document["error"]["message"]


@same_each_time
@given(ids=st.lists(IDS, min_size=1, max_size=5))
def test_a_batch_of_answers_holds_each_in_its_place(ids: list[Any]) -> None:
    answers = [
        codec.result(id_, n) if n % 2 else codec.failure(id_, ParseError(detail="x"))
        for n, id_ in enumerate(ids)
    ]
    assert [one["id"] for one in loaded(codec.batch(answers))] == ids
