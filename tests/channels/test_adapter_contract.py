"""The contract of adapters, tested with every adapter of ours; and what the loader refuses."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest

from hiboss.channels import folder
from hiboss.channels.registry import BUILT_IN, Registry, what_is_wrong
from hiboss.core.contracts.adapter import Account, Checked
from hiboss.core.contracts.failures import EnvelopeError
from hiboss.core.errors import BadSetting
from hiboss.testing.adapter_contract import TEXTS, AdapterContract, FullAdapterContract
from hiboss.testing.adapter_rig import FullRig, Rig
from hiboss.testing.adapter_steps import started
from hiboss.testing.scripted_adapter import ScriptedAdapter
from tests.channels.adapter_rigs import FolderRig, ScriptedRig, WebhookRig
from tests.channels.telegram.telegram_rig import TelegramRig


class TestFolder(AdapterContract):
    rig_type: ClassVar[type[Rig]] = FolderRig

    @pytest.fixture(autouse=True)
    def without_pauses(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        monkeypatch.setattr(folder, "POLL_SECONDS", 0.005)  # nothing here needs the longer pause
        yield

    def test_a_folder_changes_no_character_of_a_text(self, tmp_path: Path) -> None:
        rig = FolderRig(tmp_path)
        assert [rig.make().chunks(rig.letter(text)) for text in TEXTS] == [[text] for text in TEXTS]


class TestWebhook(AdapterContract):
    rig_type: ClassVar[type[Rig]] = WebhookRig


class TestScripted(FullAdapterContract):
    rig_type: ClassVar[type[FullRig]] = ScriptedRig


def test_every_adapter_of_ours_is_held_against_the_contract(tmp_path: Path) -> None:
    for name in ("folder", "telegram", "webhook"):
        (tmp_path / name).mkdir()
    rigs: list[Rig] = [FolderRig(tmp_path / "folder"), TelegramRig(tmp_path / "telegram")]
    rigs += [WebhookRig(tmp_path / "webhook")]
    assert set(BUILT_IN.values()) == {type(rig.make()) for rig in rigs}
    for rig in rigs:
        rig.close()


@pytest.mark.parametrize("name", ["../in/x.txt", "e1.txt/../../x", ".taken", "", "e1.txt\x00", "secret.txt"])
async def test_a_folder_changes_only_what_it_posted(tmp_path: Path, name: str) -> None:
    async with started(FolderRig(tmp_path)) as adapter:
        mine = tmp_path / "here" / "out" / "secret.txt"
        mine.write_text("of somebody else")
        with pytest.raises(EnvelopeError):
            await adapter.edit("here", name, "mine", "key")
        await adapter.delete("here", name)
        assert mine.read_text() == "of somebody else"


# --- classes with mistakes ------------------------------------------------------------


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
    monkeypatch.setattr("tests.channels.test_adapter_contract.ADAPTERS", [bad])
    with pytest.raises(BadSetting) as caught:
        Registry([__name__])
    for words in ("it needs the method check", "post must be async", "editing is no capability"):
        assert words in caught.value.message


ADAPTERS = [Good, Good]


def test_the_same_adapter_listed_twice_is_refused() -> None:
    with pytest.raises(BadSetting, match="there is already another type good"):
        Registry([__name__])
