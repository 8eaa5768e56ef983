"""The contract of adapters (hiboss/testing/adapter_contract.py), tested with the Telegram adapter."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from hiboss.testing.adapter_contract import FullAdapterContract
from hiboss.testing.adapter_rig import FullRig
from hiboss.testing.adapter_steps import check
from tests.channels.telegram.telegram_rig import TelegramRig


class TestTelegram(FullAdapterContract):
    rig_type: ClassVar[type[FullRig]] = TelegramRig

    def test_a_check_says_who_the_bot_is(self, rig: TelegramRig, tmp_path: Path) -> None:
        checked = check(rig, rig.good(), tmp_path / "home")
        assert (checked.account, checked.name, list(checked.chats)) == (str(rig.bot.id), "@nexbot", [])

    def test_the_contract_is_played_in_full(self, rig: TelegramRig) -> None:
        """Every optional method of a rig is there, so nothing is skipped."""
        optional = ("limited", "locked_out", "command", "posts", "deleted", "reply", "lost_file")
        assert [name for name in optional if getattr(TelegramRig, name) is getattr(FullRig, name)] == []
