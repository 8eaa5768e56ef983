"""A daemon that paces what it posts is never refused by a server that counts, and keeps the order."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from hiboss.testing.bot_api import BotApi
from hiboss.testing.bot_api.chats import Chat
from tests.support.telegram_bots import TelegramDaemon, address, telegram_daemon
from tests.support.waits import wait_until

pytestmark = pytest.mark.slow

MOST = 4096
NUMBER = re.compile(r"mark (\d+)")
GROWS = """
while not os.path.exists(os.path.join(HERE, "go")):
    print("word"); sys.stdout.flush()
    time.sleep(0.1)
print("the end")
"""


def posts(chat: Chat) -> list[str]:
    """Return what the bot posted in a chat, as far as a test sent it."""
    return [one.text for one in chat.messages if one.sender is not None and one.sender.is_bot]


def marks(chat: Chat) -> list[int]:
    """Return the numbers in what was posted, in the order in which it stands there."""
    return [int(number) for text in posts(chat) for number in NUMBER.findall(text)]


def send(telegram: TelegramDaemon, chat: Chat, text: str) -> dict[str, Any]:
    return dict(telegram.nex.call("envelope.send", to=address(chat), text=text))


def test_nothing_is_refused_and_the_order_is_kept(tmp_path: Path) -> None:
    with telegram_daemon(tmp_path, HIBOSS_DELIVERY_PACING="on") as telegram:
        bot = telegram.bound_bot("nexbot", privacy=False)
        ada, bob = telegram.api.add_person("Ada"), telegram.api.add_person("Bob")
        chats = [telegram.approved(ada, bot), telegram.approved(bob, bot)]
        team = telegram.api.add_group("Team", [ada, bot])
        ada.says(team, "hello")
        telegram.approve(team)
        telegram.api.limit(True)
        long = "".join(f"mark {number}: {'many words ' * 10}\n" for number in range(1, 80))
        assert len(long) > 2 * MOST
        for chat in (*chats, team):
            send(telegram, chat, "mark 0")
            send(telegram, chat, long)
            send(telegram, chat, "mark 80")
        for chat in (*chats, team):
            chat.wait_for(lambda _, chat=chat: 80 in marks(chat), 60)  # type: ignore[misc]
            assert marks(chat) == [*range(81)]
            assert len([text for text in posts(chat) if "mark" in text]) == 5
        assert telegram.api.floods == []
        assert [one.status for one in telegram.api.calls_of("sendMessage")].count(429) == 0


def test_a_stop_does_not_wait_for_what_may_not_go_yet(tmp_path: Path) -> None:
    with telegram_daemon(
        tmp_path, HIBOSS_DELIVERY_PACING="on", HIBOSS_DELIVERY_DRAIN_SECONDS="600"
    ) as telegram:
        bot = telegram.bound_bot("nexbot")
        chat = telegram.approved(telegram.api.add_person("Ada"), bot)
        sent = [send(telegram, chat, f"mark {number}") for number in range(40)]
        chat.wait_for(lambda _: 1 in marks(chat))
        telegram.nex.call("envelope.cancel", ids=sent[38]["ids"])  # it is not in hand while it waits
        assert telegram.daemon.stop() == 0  # within 30 seconds, and these would take 40
        posted = marks(chat)
        assert posted == [*range(len(posted))] and 39 not in posted
        assert telegram.rows("SELECT id FROM envelope WHERE held_by IS NOT NULL") == []
        telegram.start(HIBOSS_DELIVERY_PACING="off")
        chat.wait_for(lambda _: 39 in marks(chat))
        assert marks(chat) == [*range(38), 39]


def test_an_answer_that_grows_and_edits_take_no_more_than_final_texts_leave(tmp_path: Path) -> None:
    old = partial(BotApi, version="9.0")  # without drafts, so it grows by edits
    with telegram_daemon(tmp_path, old, HIBOSS_DELIVERY_PACING="on") as telegram:
        writer = telegram.team.hire(GROWS, name="writer")
        ada = telegram.api.add_person("Ada")
        chat = telegram.pair(ada, telegram.bound_bot("writerbot", "writer"))
        telegram.api.limit(True)
        asked = ada.says(chat, "how far?")
        telegram.api.wait_for_call("editMessageText", seconds=60)
        for number in range(4):
            sent = writer.call("envelope.send", to=address(chat), text=f"mark {number}")
        for number in range(5, 8):
            writer.call("message.edit", id=sent["message"], text=f"mark {number}")
        telegram.team.place("go").touch()
        chat.wait_for(lambda _: marks(chat) == [0, 1, 2, 7], 60)
        answer = chat.wait_for_text("the end")
        assert answer.reply_to is asked and len(answer.text.split("word")) > 2
        assert telegram.api.floods == []


def test_an_answer_and_what_its_run_sent_before_go_before_what_waits_in_the_chat(
    tmp_path: Path,
) -> None:
    with telegram_daemon(tmp_path, HIBOSS_DELIVERY_PACING="on", HIBOSS_TELEGRAM_LIVE="off") as telegram:
        kai = telegram.team.hire("", name="kai")
        bot = telegram.bound_bot("kaibot", "kai")
        bob = telegram.api.add_person("Bob")
        chat = telegram.approved(bob, bot)
        kai.program.write(
            f"send('{address(chat)}', 'a step'); print('the answer')", telegram.daemon.home.socket
        )
        hangs = telegram.api.fault("sendMessage", chat=chat, do="hang", times=1)
        for number in range(4):
            kai.call("envelope.send", to=address(chat), text=f"mark {number}")
        wait_until(lambda: hangs.hits)
        bob.says(chat, "what is it?")
        written = "SELECT id FROM message WHERE text IN ('a step', 'the answer')"
        wait_until(lambda: len(telegram.rows(written)) == 2)
        assert marks(chat) == []
        hangs.release()
        chat.wait_for(lambda _: 3 in marks(chat), 60)
        seen = posts(chat)
        answer, step = seen.index("the answer"), seen.index("a step")
        assert step < answer < len(seen) - 1 and marks(chat) == [*range(4)]
