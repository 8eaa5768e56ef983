"""The contract of adapters with the Telegram adapter; binding a bot: who it is, what its owner is told, and its token shows nowhere."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
import traceback
from pathlib import Path
from typing import Any, ClassVar

import pytest

from hiboss.channels.telegram.adapter import TelegramAdapter
from hiboss.core.contracts.adapter import Checked
from hiboss.core.contracts.failures import AccountError, EnvelopeError, LaneError, Refused
from hiboss.testing.adapter_contract import FullAdapterContract
from hiboss.testing.adapter_rig import FullRig
from hiboss.testing.adapter_steps import check, started, until
from tests.channels.telegram.telegram_rig import Taker, TelegramRig, polling_adapter


def checked(rig: TelegramRig) -> Checked:
    return check(rig, rig.good(), rig.home)


@pytest.mark.parametrize(
    ("privacy", "topics", "webhook", "words"),
    [
        (False, True, "", []),
        (True, True, "", ["/setprivacy"]),
        (False, False, "", ["Threads Settings"]),
        (True, False, "https://example.org", ["/setprivacy", "Threads Settings", "deleteWebhook"]),
    ],
)
def test_the_owner_is_told_what_the_bot_cannot_do(
    rig: TelegramRig, privacy: bool, topics: bool, webhook: str, words: list[str]
) -> None:
    rig.bot.privacy, rig.bot.topics, rig.bot.webhook.url = privacy, topics, webhook
    notes = checked(rig).notes
    assert len(notes) == len(words)
    assert all(word in note for word, note in zip(words, notes, strict=True))


def test_without_a_check_the_account_is_the_same(rig: TelegramRig) -> None:
    settings = checked(rig).settings
    rig.api.stop_listening()
    assert TelegramAdapter.unchecked(settings).account == str(rig.bot.id)


@pytest.mark.parametrize(
    "fault", [{"status": 500}, {"status": 502}, {"do": "drop"}, {"do": "garbage"}], ids=str
)
@pytest.mark.parametrize("method", ["getMe", "getWebhookInfo"])
def test_a_server_that_cannot_be_asked_now_is_an_account_error(
    rig: TelegramRig, method: str, fault: dict[str, Any]
) -> None:
    rig.fault(method, **fault)
    if "status" in fault and method == "getWebhookInfo":
        assert checked(rig).account  # it is only for a note
        return
    with pytest.raises(LaneError):
        checked(rig)


def test_a_wrong_token_is_refused_with_where_to_get_the_right_one(rig: TelegramRig) -> None:
    with pytest.raises(Refused) as caught:
        check(rig, {"adapter_token": f"{rig.bot.id}:wrong"}, rig.home)
    assert "@BotFather" in caught.value.why


def test_blanks_around_a_token_do_not_matter(rig: TelegramRig) -> None:
    assert check(rig, {"adapter_token": f" {rig.bot.token}\n"}, rig.home) == checked(rig)


def test_the_adapter_is_known_without_importing_the_library() -> None:
    code = "import hiboss.channels.registry, sys; print([one for one in ('telegram', 'httpx') if one in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# --- the token ------------------------------------------------------------------------------


def everything_about(error: BaseException) -> str:
    """Return all that can be shown of an exception, and of those that it is chained to, hidden or not."""
    found = ["".join(traceback.format_exception(error)), repr(error), str(vars(error))]
    for other in (error.__cause__, error.__context__):
        if other is not None:
            found.append(everything_about(other))
    return "\n".join(found)


FAULTS: list[dict[str, Any]] = [
    {"status": 401},
    {"status": 404},
    {"status": 409},
    {"status": 500},
    {"status": 400},
    {"retry_after": 0},
    {"do": "garbage"},
    {"do": "drop"},
]


@pytest.mark.parametrize("fault", FAULTS, ids=str)
async def test_the_token_is_in_no_error_and_no_log_line(
    rig: TelegramRig, tmp_path: Path, caplog: pytest.LogCaptureFixture, fault: dict[str, Any]
) -> None:
    caplog.set_level(logging.DEBUG)
    shown: list[str] = []
    take = Taker(rig)
    rig.ada.sends_document(rig.private, "notes.txt", b"notes")
    async with polling_adapter(rig, take) as (adapter, task):
        post = await adapter.post(rig.letter(), 0, "hello")
        await until(lambda: take.updates)
        failing = [rig.fault(method, times=None, **fault) for method in ("*", "file")]
        other = rig.make()
        calls = [
            adapter.post(rig.letter(), 0, "hello"),
            adapter.edit(rig.chat, post, "new", "key"),
            adapter.typing(rig.chat),
            adapter.create_topic(rig.chat, "plans"),
            adapter.digest(take.updates, str(tmp_path), waited=False, last_try=False),
            other.start(),
            TelegramAdapter.check(adapter.Settings(adapter_token=rig.bot.token), str(rig.home)),  # type: ignore[arg-type]
        ]
        errors = await asyncio.gather(*calls, return_exceptions=True)
        await other.stop()
        assert all(isinstance(one, LaneError | EnvelopeError | Refused) for one in errors)
        await until(lambda: task.done() or adapter.trouble)
        shown.append(str(adapter.trouble))
        errors += [task.exception()] if task.done() and not task.cancelled() else []
        shown.extend(everything_about(one) for one in errors if isinstance(one, BaseException))
        shown.append(f"{adapter!r} {vars(adapter)}")
        for one in failing:
            one.clear()
    secret = rig.bot.token.partition(":")[2]
    assert secret not in "\n".join(shown) and secret not in caplog.text
    assert [one for one in caplog.records if secret in f"{one.args} {one.exc_text}"] == []


def test_the_canary_would_be_seen(rig: TelegramRig) -> None:
    """The check above looks where a token would be."""
    secret = rig.bot.token.partition(":")[2]
    try:
        try:
            raise ValueError(f"http://host/bot1:{secret}/getMe")
        except ValueError:
            raise AccountError("unreachable", "no") from None
    except AccountError as error:
        assert secret in everything_about(error)


async def test_a_server_that_is_away_says_so_at_the_start(rig: TelegramRig) -> None:
    rig.api.stop_listening()
    with pytest.raises(AccountError) as caught:
        async with started(rig):
            pass
    assert caught.value.kind == "unreachable"


# --- the contract ---------------------------------------------------------------------


class TestTelegram(FullAdapterContract):
    rig_type: ClassVar[type[FullRig]] = TelegramRig

    def test_a_check_says_who_the_bot_is(self, rig: TelegramRig, tmp_path: Path) -> None:
        checked = check(rig, rig.good(), tmp_path / "home")
        assert (checked.account, checked.name, list(checked.chats)) == (str(rig.bot.id), "@nexbot", [])

    def test_the_contract_is_played_in_full(self, rig: TelegramRig) -> None:
        """Every optional method of a rig is there, so nothing is skipped."""
        optional = ("limited", "locked_out", "command", "posts", "deleted", "reply", "lost_file")
        assert [name for name in optional if getattr(TelegramRig, name) is getattr(FullRig, name)] == []
