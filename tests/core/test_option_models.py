"""Options declared as a model: described for flags and docs, checked with messages that say what is right."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

import pytest
from pydantic import Field, SecretStr, field_validator, model_validator

from hiboss.core.contracts.failures import Refused
from hiboss.core.option_models import Options, describe, load, mistakes, validate
from tests.support.raising import raised


class Bot(Options):
    """Every kind of field that an adapter or a provider may need."""

    url: str = Field(description="the address of the server")
    path: Path | None = Field(None, description="where files go")
    mode: Literal["fast", "careful"] = Field("fast", description="how it works")
    max_size: int = Field(5, ge=1, le=60, description="the longest message")
    share: float = Field(0.5, description="a part")
    silent: bool = Field(False, description="without sound")
    allowed: tuple[str, ...] = Field((), description="who may write")
    extra: dict[str, Any] = Field(default_factory=dict, description="anything else")
    key: SecretStr = Field(description="the key of the account")
    signing: SecretStr = Field(default_factory=lambda: SecretStr("made-1"), description="signs what is sent")

    @field_validator("url")
    @classmethod
    def _https(cls, value: str) -> str:
        if not value.startswith("https://"):
            raise ValueError("write an address that begins with https://")
        return value.rstrip("/")

    @model_validator(mode="after")
    def _together(self) -> Bot:
        if self.silent and self.mode == "fast":
            raise ValueError("--silent needs --mode careful")
        return self


GIVEN = {"url": "https://example.org/", "key": "very-secret-1"}


def refusal(given: dict[str, Any]) -> str:
    return raised(Refused, validate, Bot, given, "bot").why


def test_a_model_is_described_field_by_field() -> None:
    found = {one.name: one for one in describe(Bot)}
    assert {name: (one.type, one.repeated, one.required, one.secret) for name, one in found.items()} == {
        "url": ("text", False, True, False),
        "path": ("path", False, False, False),
        "mode": ("text", False, False, False),
        "max_size": ("integer", False, False, False),
        "share": ("number", False, False, False),
        "silent": ("boolean", False, False, False),
        "allowed": ("text", True, False, False),
        "extra": ("json", False, False, False),
        "key": ("text", False, True, True),
        "signing": ("text", False, False, True),
    }
    assert found["max_size"].flag == "--max-size" and found["max_size"].default == 5
    assert found["mode"].choices == ("fast", "careful")
    assert found["url"].description == "the address of the server"
    assert json.loads(json.dumps([one._asdict() for one in describe(Bot)]))  # it is JSON


def test_secrets_are_separated_from_what_is_stored() -> None:
    found = validate(Bot, GIVEN, "bot")
    assert found.settings == {"url": "https://example.org"}
    assert (found.secrets, found.made) == ({"key": "very-secret-1", "signing": "made-1"}, ("signing",))
    assert "very-secret-1" not in json.dumps(found.settings)


def test_a_given_secret_is_not_made() -> None:
    found = validate(Bot, {**GIVEN, "signing": "mine"}, "bot")
    assert found.secrets["signing"] == "mine" and found.made == ()


def test_texts_of_the_command_line_and_json_of_the_api_give_the_same() -> None:
    texts = {"max-size": "7", "share": "0.25", "silent": "yes", "mode": "careful", "allowed": "ann"}
    values = {"max_size": 7, "share": 0.25, "silent": True, "mode": "careful", "allowed": ["ann"]}
    texts, values = texts | {"extra": '{"a": 1}', "path": "/x"}, values | {"extra": {"a": 1}, "path": "/x"}
    assert validate(Bot, GIVEN | texts, "bot") == validate(Bot, GIVEN | values, "bot")


def test_what_was_stored_can_be_loaded_again() -> None:
    found = validate(Bot, {**GIVEN, "path": "/x", "allowed": ["ann", "bob"]}, "bot")
    loaded = load(Bot, json.loads(json.dumps(found.settings)), found.secrets)
    assert loaded.path == Path("/x") and loaded.allowed == ("ann", "bob") and loaded.max_size == 5
    assert loaded.key.get_secret_value() == "very-secret-1" and "very-secret-1" not in repr(loaded)


def test_stored_values_that_fit_no_longer_are_refused_by_name() -> None:
    with pytest.raises(Refused, match="--url is missing"):
        load(Bot, {"max_size": 7}, {"key": "x", "signing": "y"})


def test_a_secret_that_was_made_and_is_lost_is_not_made_again() -> None:
    with pytest.raises(Refused, match="--signing is missing"):
        load(Bot, {"url": "https://example.org"}, {"key": "x"})


def test_none_counts_as_not_given() -> None:
    assert validate(Bot, {**GIVEN, "max_size": None}, "bot").settings == {"url": "https://example.org"}


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (
            {**GIVEN, "urll": "x"},
            "--urll is not an option of bot (did you mean --url?); it takes --url, --path",
        ),
        ({"key": "k"}, "--url is missing: the address of the server"),
        ({**GIVEN, "url": "http://x"}, "--url: write an address that begins with https://"),
        ({**GIVEN, "mode": "carefull"}, "--mode must be one of fast, careful (did you mean careful?)"),
        ({**GIVEN, "max_size": "much"}, "--max-size must be a valid integer"),
        ({**GIVEN, "max_size": 61}, "--max-size must be less than or equal to 60"),
        ({**GIVEN, "url": 5}, "--url must be a valid string"),
        ({**GIVEN, "extra": "{"}, "--extra must be a JSON object"),
        ({**GIVEN, "silent": True}, "--silent needs --mode careful"),
        ({**GIVEN, "key": "a\x00b"}, "--key contains a NUL"),
        ({**GIVEN, "key": "\ud800"}, "--key contains half of a surrogate pair"),
        ({**GIVEN, "allowed": ["x" * 10_001]}, "--allowed is longer than 10000 characters"),
    ],
)
def test_an_error_names_the_option_and_what_would_be_right(given: dict[str, Any], told: str) -> None:
    assert refusal(given).startswith(told)


@pytest.mark.parametrize(
    "bad", [{"max_size": "x"}, {"mode": "very-secret-1"}, {"key": 5}, {"nokey": "very-secret-1"}]
)
def test_an_error_never_shows_a_value(bad: dict[str, Any]) -> None:
    assert "very-secret-1" not in refusal({**GIVEN, **bad})


def test_the_author_of_a_model_is_told_what_is_missing_in_it() -> None:
    class Poor(Options):
        url: str
        name: str = Field(description="a name")

    assert mistakes(Bot) == []
    assert mistakes(Poor, reserved=("name",)) == [
        "url needs a description: Field(description=…)",
        "name is taken by the command itself; choose another name",
    ]
    assert mistakes(None) == ["Settings must be a pydantic model (class Settings(Options))"]


def test_an_unknown_name_that_is_a_token_or_endless_is_not_repeated() -> None:
    assert "x" * 20 not in refusal({**GIVEN, "hbb_" + "x" * 43: "v"})
    assert len(refusal({**GIVEN, "n" * 100_000: "v"})) < 300
    assert refusal({**GIVEN, "a\nb": "v"}).startswith("--a\\nb is not an option")
