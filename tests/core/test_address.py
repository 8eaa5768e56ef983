"""Addresses and names: which are valid, which are equal, and which names a new agent may have."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hiboss.core.address import BOSS, RESERVED, Address, check_agent_name, parse_address
from hiboss.core.errors import BadAddress, BadName
from tests.support.raising import raised

NAMES = st.from_regex(r"\A[A-Za-z0-9]{1,8}(-[A-Za-z0-9]{1,8}){0,3}\Z")


@pytest.mark.parametrize(
    ("text", "kind", "name"),
    [
        ("agent:nex", "agent", "nex"),
        ("agent:Code-Review-2", "agent", "Code-Review-2"),
        ("agent:7", "agent", "7"),
        ("user:boss", "user", "boss"),
        ("group:core-team", "group", "core-team"),
        ("channel:telegram:12345", "channel", "telegram:12345"),
        ("channel:telegram:-100123/45", "channel", "telegram:-100123/45"),
        ("channel:my-folder2:größe", "channel", "my-folder2:größe"),
        ("agent:" + "a" * 64, "agent", "a" * 64),
        (
            "channel:telegram:" + "1" * 128 + "/" + "2" * 128,
            "channel",
            "telegram:" + "1" * 128 + "/" + "2" * 128,
        ),
    ],
)
def test_an_address_is_read_and_written_unchanged(text: str, kind: str, name: str) -> None:
    assert parse_address(text) == Address(kind, name) and str(parse_address(text)) == text


@pytest.mark.parametrize(
    "text",
    [
        *("", ":", "nex", ":nex", "agent", "agent:", "agent: nex", " agent:nex", "agent:nex ", "agent:nex\n"),
        *(
            "agent:a--b",
            "agent:-a",
            "agent:a-",
            "agent:a_b",
            "agent:a.b",
            "agent:ä",
            "agent:a:b",
            "agent:a/b",
        ),
        *("agent:\x00", "agent:nex@host", "Agent:nex", "bot:nex"),
        *("agent:" + "a" * 65, "user:" + "a" * 65, "group:" + "a" * 65, "agent:" + "a" * 1_000_000),
        *("channel:", "channel:telegram", "channel:telegram:", "channel::1", "channel:Telegram:1"),
        *("channel:telegram:1/", "channel:telegram:/1", "channel:telegram:1/2/3", "channel:telegram:1:2"),
        *(
            "channel:telegram:1 2",
            "channel:telegram:1\n",
            "channel:telegram:\x7f",
            "channel:-a:1",
            "channel:a-:1",
        ),
        *("channel:9a:1", "channel:telegram:" + "1" * 129, "channel:telegram:1/" + "2" * 129),
    ],
)
def test_what_is_no_address_is_refused_with_what_one_looks_like(text: str) -> None:
    with pytest.raises(BadAddress) as refused:
        parse_address(text)
    assert "addresses look like agent:nex" in refused.value.message and len(refused.value.message) < 500


def test_an_adapters_name_has_a_limit_like_every_name() -> None:
    assert parse_address("channel:" + "a" * 64 + ":1").adapter == "a" * 64
    with pytest.raises(BadAddress):
        parse_address("channel:" + "a" * 65 + ":1")


def test_a_forgotten_kind_is_suggested() -> None:
    assert "(agent:nex?)" in raised(BadAddress, parse_address, "nex").message


@given(name=NAMES, kind=st.sampled_from(["agent", "user", "group"]))
def test_names_are_the_same_whatever_the_case(name: str, kind: str) -> None:
    folds = {
        parse_address(f"{kind}:{form}").fold for form in (name, name.lower(), name.upper(), name.swapcase())
    }
    assert folds == {f"{kind}:{name.lower()}"}


def test_channels_are_the_same_to_the_letter_only() -> None:
    assert parse_address("channel:slack:C0A").fold != parse_address("channel:slack:c0a").fold


def test_kinds_are_never_the_same() -> None:
    assert len({parse_address(f"{kind}:nex").fold for kind in ("agent", "user", "group")}) == 3


def test_a_channel_knows_its_adapter() -> None:
    assert parse_address("channel:telegram:12345/6").adapter == "telegram"


def test_the_bosss_address_is_an_address() -> None:
    assert parse_address("user:boss") == BOSS


# --- names of new agents -------------------------------------------------------------


@given(name=NAMES.filter(lambda name: name.lower() not in RESERVED))
def test_a_good_name_is_taken_as_it_is_and_makes_an_address(name: str) -> None:
    assert check_agent_name(name) == parse_address(f"agent:{name}").name == name


def test_a_name_of_64_characters_is_the_longest() -> None:
    assert check_agent_name("a" * 64) == "a" * 64
    assert raised(BadName, check_agent_name, "a" * 65).why == "it has 65 characters"


@pytest.mark.parametrize("name", ["background", "boss", "system", "all", "BOSS", "System", "aLL"])
def test_a_reserved_name_is_refused_whatever_the_case(name: str) -> None:
    assert raised(BadName, check_agent_name, name).why == "it is reserved"


@pytest.mark.parametrize(
    "name",
    [
        "",
        " ",
        "-",
        "a-",
        "-a",
        "a--b",
        "a b",
        "a_b",
        "a.b",
        "../a",
        "ä",
        "a\n",
        "a\x00",
        "agent:a",
        "a/b",
        "²",
    ],
)
def test_what_cannot_be_a_name_is_refused_with_what_can(name: str) -> None:
    error = raised(BadName, check_agent_name, name)
    assert "1 to 64 characters: letters, digits, and single dashes" in error.message


@given(text=st.text() | st.from_regex(r"\A(agent|user|group|channel):[\x00-\x7f]{0,10}"))
def test_any_text_is_an_address_or_refused_as_none(text: str) -> None:
    try:
        address = parse_address(text)
    except BadAddress:
        return
    assert str(address) == text
    assert not any(character.isspace() or character == "\x00" for character in text)
