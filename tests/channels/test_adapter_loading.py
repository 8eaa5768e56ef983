"""What the loader refuses in an adapter of somebody's own, so that it does not fail at the first message."""

from __future__ import annotations

from typing import Any

import pytest

from hiboss.channels.registry import BUILT_IN, Registry, what_is_wrong
from hiboss.core.contracts.adapter import Account, Checked
from hiboss.core.errors import BadSetting
from hiboss.testing.scripted_adapter import ScriptedAdapter


class Good:
    type = "good"

    def __init__(self, account: Account) -> None:
        self.account = account

    @classmethod
    async def check(cls, given: Any, home: str) -> Checked:
        return Checked(account="good", settings=given)

    async def start(self) -> None: ...

    async def stop(self) -> None: ...

    async def listen(self, take: Any) -> None: ...

    async def digest(self, updates: Any, downloads: str, *, waited: bool, last_try: bool) -> Any: ...

    def chunks(self, letter: Any) -> list[str]:
        return [letter.text]

    async def post(self, letter: Any, number: int, chunk: str) -> str:
        return letter.id  # type: ignore[no-any-return]


def plain_post(self: Any, letter: Any, number: int, chunk: str) -> str:
    return chunk


async def short_digest(self: Any, updates: Any) -> Any: ...


async def unbound_check(given: Any, home: Any, more: Any = None) -> Any: ...


async def alone(self: Any) -> None: ...


MISTAKES = [
    ({"post": plain_post}, "post must be async: async def post(self, letter, number, chunk)"),
    ({"digest": short_digest}, "digest cannot be called: "),
    ({"listen": None}, "it needs the method listen: async def listen(self, take)"),
    ({"check": None}, "it needs the method check: @classmethod async def check(cls, given, home)"),
    ({"check": unbound_check}, "check must be a class method"),
    ({"digested": alone}, "digested cannot be called: "),
    ({"capabilities": ["files"]}, "capabilities must be a frozenset, not list"),
    ({"capabilities": frozenset({"editing"})}, "editing is no capability; they are "),
    ({"capabilities": frozenset({"edit"})}, "for the capability edit it needs the method edit"),
    ({"capabilities": frozenset({"typing"}), "typing": alone}, "typing cannot be called: "),
]


@pytest.mark.parametrize(("attributes", "expected"), MISTAKES, ids=[text for _, text in MISTAKES])
def test_a_mistake_in_a_class_is_named_with_what_would_be_right(
    attributes: dict[str, Any], expected: str
) -> None:
    found = what_is_wrong(type("Bad", (Good,), attributes))
    assert len(found) == 1 and expected in found[0]


@pytest.mark.parametrize("kind", [*BUILT_IN.values(), ScriptedAdapter, Good], ids=lambda one: one.__name__)
def test_a_class_without_a_mistake_is_taken(kind: type) -> None:
    assert what_is_wrong(kind) == []


def test_something_that_is_no_class_is_refused() -> None:
    assert what_is_wrong(Good(None)) == ["it must be a class"]  # type: ignore[arg-type]


def test_all_mistakes_of_a_class_are_named_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    bad = type("Bad", (Good,), {"post": plain_post, "check": None, "capabilities": frozenset({"editing"})})
    monkeypatch.setattr("tests.channels.test_adapter_loading.ADAPTERS", [bad])
    with pytest.raises(BadSetting) as caught:
        Registry([__name__])
    for words in ("it needs the method check", "post must be async", "editing is no capability"):
        assert words in caught.value.message


ADAPTERS = [Good, Good]


def test_the_same_adapter_listed_twice_is_refused() -> None:
    with pytest.raises(BadSetting, match="there is already another type good"):
        Registry([__name__])
