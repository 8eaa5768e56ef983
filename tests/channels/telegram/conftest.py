"""What all tests of the Telegram adapter share: a bot on a server, and pauses that are short."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from hiboss.channels.telegram import polling
from hiboss.core.contracts.adapter import Adapter
from hiboss.testing.adapter_steps import started
from tests.channels.telegram.telegram_rig import OLD, TelegramRig, running_rig


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[TelegramRig]:
    with running_rig(tmp_path) as made:
        yield made


@pytest.fixture
def adapter(rig: TelegramRig) -> AbstractAsyncContextManager[Adapter]:
    """Give a test that is a coroutine a running adapter (tests/support/async_tests.py)."""
    return started(rig)


@pytest.fixture
def old_rig(tmp_path: Path) -> Iterator[TelegramRig]:
    """A server from before drafts and rich messages."""
    with running_rig(tmp_path, OLD) as made:
        yield made


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(polling, "PAUSES", (0.001, 0.01))
    monkeypatch.setattr(polling, "QUICK_PAUSES", (0.0,))
