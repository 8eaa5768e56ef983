"""The contract of adapters (hiboss/testing/adapter_contract.py), tested with every adapter of ours."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import pytest

from hiboss.channels import folder
from hiboss.channels.registry import BUILT_IN
from hiboss.core.contracts.failures import EnvelopeError
from hiboss.testing.adapter_contract import TEXTS, AdapterContract, FullAdapterContract
from hiboss.testing.adapter_rig import FullRig, Rig
from hiboss.testing.adapter_steps import started
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
        for text in TEXTS:
            assert rig.make().chunks(rig.letter(text)) == [text]


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
    rig = FolderRig(tmp_path)
    async with started(rig) as adapter:
        mine = tmp_path / "here" / "out" / "secret.txt"
        mine.write_text("of somebody else")
        with pytest.raises(EnvelopeError):
            await adapter.edit("here", name, "mine", "key")
        await adapter.delete("here", name)
        assert mine.read_text() == "of somebody else"
