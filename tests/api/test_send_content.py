"""Sending: what can be said, what is refused, and the limits at and one over."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hiboss.testing.running_daemon import Answered, RunningDaemon
from tests.support.daemons import code, line
from tests.support.parties import Party, agents, boss, stored

MIB = 1024 * 1024


@pytest.fixture(scope="module")
def two(daemon: RunningDaemon) -> tuple[Party, Party]:
    ada, bob = agents(daemon, 2)
    return ada, bob


def refused_and_nothing_stored(sender: Party, **params: Any) -> str:
    before = stored(sender.daemon)
    refusal = sender.refusal("envelope.send", **params)
    assert stored(sender.daemon) == before
    return refusal


# --- what can be said ----------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "x",
        " x ",
        "a\nb\r\nc\td",
        "Ünïcødé",
        "\U0001f44d\U0001f3fd",
        "e\u0301",
        "\u202eabc",
        "\u2028\ufeff\x7f\x01",
        "'\";--%s{}\\",
    ],
    ids=ascii,
)
def test_a_text_comes_back_to_the_letter(two: tuple[Party, Party], text: str) -> None:
    ada, bob = two
    assert bob.get(ada.tell(bob, text=text, subject=text))["text"] == text
    assert bob.list(page_size=1)[0]["subject"] == text


@pytest.mark.parametrize("priority", ["critical", "high", "normal", "low"])
def test_a_priority_is_kept(two: tuple[Party, Party], priority: str) -> None:
    ada, bob = two
    assert bob.get(ada.tell(bob, priority=priority))["priority"] == priority


@pytest.mark.parametrize("type_", ["text", "markdown", "json", "html"])
def test_a_type_is_kept(two: tuple[Party, Party], type_: str) -> None:
    ada, bob = two
    assert bob.get(ada.tell(bob, type=type_))["type"] == type_


def test_what_is_not_said_has_its_plain_value(two: tuple[Party, Party]) -> None:
    ada, bob = two
    got = bob.get(ada.tell(bob))
    assert (got["priority"], got["type"], got["interruptible"], got["auto"]) == (
        "normal",
        "text",
        True,
        False,
    )
    assert (got["subject"], got["deliver_at"], got["reply_to"], got["run"]) == (None, None, None, None)
    assert got["metadata"] == {} and got["attachments"] == [] and got["trace"] == got["message"]


def test_trace_metadata_and_interruptible_are_kept(two: tuple[Party, Party]) -> None:
    ada, bob = two
    metadata = {"n": 1, "f": 0.5, "deep": {"list": [None, True, "ü\x00"]}, "": "empty", "big": 2**63 - 1}
    got = bob.get(ada.tell(bob, metadata=metadata, trace_id="trace-7", interruptible=False))
    assert got["metadata"] == metadata
    assert got["trace"] == f"{ada.address}/trace-7/{got['message']}" and got["interruptible"] is False


@pytest.mark.parametrize("key", [{}, {"key": "k"}], ids=["without a key", "with a key"])
@pytest.mark.parametrize("depth", [20, 300, 1000])
def test_deeply_nested_metadata_does_not_shut_the_recipients_box(
    daemon: RunningDaemon, depth: int, key: dict[str, str]
) -> None:
    ada, bob = agents(daemon, 2)
    nested = '{"a":' * depth + "{}" + "}" * depth
    sending = line("envelope.send", token=ada.token, to=bob.address, text="x", metadata="?", **key)
    before = stored(daemon)
    (answer,) = daemon.exchange(sending.strip().replace(b'"?"', nested.encode()), answers=1)
    assert code(answer) in ("ok", "invalid_params", "too_large")
    if code(answer) == "ok":
        assert [json.dumps(one["metadata"], separators=(",", ":")) for one in bob.list()] == [nested]
    else:
        assert stored(daemon) == before and depth > 100
    ada.send(bob, text="next")
    assert bob.list()[0]["text"] == "next"


# --- what is refused -----------------------------------------------------------------


@pytest.mark.parametrize("field", ["text", "subject", "trace_id", "key"])
def test_a_nul_character_is_refused(two: tuple[Party, Party], field: str) -> None:
    ada, bob = two
    assert refused_and_nothing_stored(ada, **{"to": bob.address, "text": "x", field: "a\x00b"}) == "bad_text"


@pytest.mark.parametrize("half", ["\ud800", "\udfff", "a\ud83db"], ids=ascii)
@pytest.mark.parametrize("field", ["text", "subject", "key", "to"])
def test_half_a_surrogate_pair_is_refused(two: tuple[Party, Party], field: str, half: str) -> None:
    ada, bob = two
    params = {"to": bob.address, "text": "x", field: half}
    assert refused_and_nothing_stored(ada, **params) in ("bad_text", "parse_error")


@pytest.mark.parametrize("text", ["", " ", "\n\t \r\n", "\u00a0\u2003"], ids=ascii)
def test_a_message_without_a_word_is_refused(two: tuple[Party, Party], text: str) -> None:
    ada, bob = two
    assert refused_and_nothing_stored(ada, to=bob.address, text=text) == "empty_message"


def test_a_subject_alone_is_no_message(two: tuple[Party, Party]) -> None:
    ada, bob = two
    assert refused_and_nothing_stored(ada, to=bob.address, subject="only this") == "empty_message"


@pytest.mark.parametrize(
    "wrong",
    [
        {"text": 5},
        {"text": None},
        {"text": ["a"]},
        {"to": 5},
        {"to": {"agent": "nex"}},
        {"to": [5]},
        {"to": None},
        {"subject": 5},
        {"type": "event"},
        {"type": "TEXT"},
        {"priority": "urgent"},
        {"priority": 1},
        {"attachments": "/etc/hostname"},
        {"attachments": [5]},
        {"deliver_at": 1767225600},
        {"reply_to": True},
        {"reply_to": 1.5},
        {"reply_to": ["e1"]},
        {"interruptible": "yes"},
        {"interruptible": 1},
        {"metadata": "{}"},
        {"metadata": ["a"]},
        {"metadata": None},
        {"key": ""},
        {"key": 7},
        {"from_boss": "true"},
    ],
    ids=json.dumps,
)
def test_a_parameter_of_the_wrong_kind_is_refused_by_name(
    two: tuple[Party, Party], wrong: dict[str, Any]
) -> None:
    ada, bob = two
    before = stored(ada.daemon)
    with pytest.raises(Answered, match=next(iter(wrong))) as caught:
        ada.call("envelope.send", **{"to": bob.address, "text": "x", **wrong})
    assert caught.value.stable_code == "invalid_params"
    assert stored(ada.daemon) == before


@pytest.mark.parametrize(
    ("unknown", "meant"),
    [("txt", "text"), ("form", "from"), ("reply-to", "reply_to"), ("deliverAt", "deliver_at")],
)
def test_an_unknown_parameter_is_refused_with_the_nearest_known_one(
    two: tuple[Party, Party], unknown: str, meant: str
) -> None:
    ada, bob = two
    with pytest.raises(Answered, match=rf"{unknown} is not a parameter \(did you mean {meant}\?\)") as caught:
        ada.call("envelope.send", **{"to": bob.address, "text": "x", unknown: "y"})
    assert caught.value.stable_code == "invalid_params"


def test_a_secret_given_in_the_wrong_place_is_not_repeated(two: tuple[Party, Party]) -> None:
    ada, bob = two
    with pytest.raises(Answered) as caught:
        ada.call("envelope.send", to=bob.address, text="x", tokn=ada.token, subject={"token": ada.token})
    assert ada.token not in json.dumps([caught.value.message, caught.value.facts])


# --- limits --------------------------------------------------------------------------


@pytest.mark.parametrize("sign", ["a", "ü", "漢", "\U0001f600"], ids=ascii)
def test_a_text_may_have_one_mebibyte_and_not_a_byte_more(two: tuple[Party, Party], sign: str) -> None:
    ada, bob = two
    whole = sign * (MIB // len(sign.encode()))
    whole += "." * (MIB - len(whole.encode()))
    assert bob.get(ada.tell(bob, text=whole))["text"] == whole
    assert refused_and_nothing_stored(ada, to=bob.address, text=whole + ".") == "too_large"


def test_a_text_too_long_is_told_its_size_the_limit_and_a_way_out(two: tuple[Party, Party]) -> None:
    ada, bob = two
    with pytest.raises(Answered, match=r"1048577 bytes.* 1048576.*attachment"):
        ada.send(bob, text="a" * (MIB + 1))


@pytest.mark.parametrize(("field", "limit"), [("subject", 1024), ("trace_id", 256), ("key", 256)])
@pytest.mark.parametrize("sign", ["a", "ü"])
def test_a_word_may_have_so_many_bytes_and_not_one_more(
    two: tuple[Party, Party], field: str, limit: int, sign: str
) -> None:
    ada, bob = two
    whole = sign * (limit // len(sign.encode()))
    ada.tell(bob, **{field: whole})
    assert refused_and_nothing_stored(ada, to=bob.address, text="x", **{field: whole + "."}) == "too_large"


def test_a_shown_name_may_have_256_bytes(two: tuple[Party, Party]) -> None:
    ada, bob = two
    chief = boss(ada.daemon)
    chief.send(bob, from_="user:boss", from_name="n" * 256)
    params = {"from_": "user:boss", "to": bob.address, "text": "x", "from_name": "n" * 257}
    assert refused_and_nothing_stored(chief, **params) == "too_large"


def test_metadata_may_have_16_kibibytes(two: tuple[Party, Party]) -> None:
    ada, bob = two
    room = 16 * 1024 - len(json.dumps({"k": ""}))
    got = bob.get(ada.tell(bob, metadata={"k": "v" * room}))
    assert got["metadata"] == {"k": "v" * room}
    assert (
        refused_and_nothing_stored(ada, to=bob.address, text="x", metadata={"k": "v" * room + "v"})
        == "too_large"
    )
    assert (
        refused_and_nothing_stored(ada, to=bob.address, text="x", metadata={"k": "ü" * room}) == "too_large"
    )


def test_a_message_may_go_to_100_and_not_to_101(daemon: RunningDaemon) -> None:
    ada, *others = agents(daemon, 102)
    assert len(ada.send(*others[:100])["ids"]) == 100
    assert others[99].list() != []
    assert refused_and_nothing_stored(ada, to=[one.address for one in others], text="x") == "too_large"
    assert others[100].list() == []


def test_a_message_may_have_20_attachments_and_not_21(two: tuple[Party, Party], tmp_path: Path) -> None:
    ada, bob = two
    files = [tmp_path / f"{i}.txt" for i in range(21)]
    for file in files:
        file.write_text(file.name)
    paths = [str(file) for file in files]
    got = bob.get(ada.tell(bob, attachments=paths[:20]))
    assert [one["name"] for one in got["attachments"]] == [file.name for file in files[:20]]
    assert refused_and_nothing_stored(ada, to=bob.address, text="x", attachments=paths) == "too_large"
