"""Running a bot: gaps, what is kept and for how long, binding without a check, binding again, being blocked."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from hiboss.core import clock
from tests.support.telegram_bots import TelegramDaemon, address, telegram_daemon
from tests.support.waits import wait_until

DAY = 86_400_000  # milliseconds


@pytest.fixture
def office(tmp_path: Path) -> Iterator[TelegramDaemon]:
    with telegram_daemon(tmp_path) as running:
        yield running


def notices(office: TelegramDaemon, words: str) -> list[str]:
    found = office.boss.call("envelope.list", page_size=50)["envelopes"]
    return [one["text"] for one in found if words in one["text"]]


def test_after_more_than_a_day_the_boss_is_told_once_from_when_to_when_messages_may_be_missing(
    office: TelegramDaemon,
) -> None:
    bot = office.bound_bot("nexbot")
    with office.daemon.database() as database:
        wait_until(lambda: database.execute("SELECT position FROM binding").fetchone()[0] is not None)
    office.daemon.stop()
    since = clock.wall() - 2 * DAY
    with office.daemon.database() as database:
        position = json.loads(database.execute("SELECT position FROM binding").fetchone()[0])
        stored = json.dumps(position | {"at": since})
        database.execute("UPDATE binding SET position = ?", (stored,))
        database.commit()
    office.start()
    wait_until(lambda: notices(office, "may be missing"))
    polls = len(office.polls(bot))
    office.daemon.stop()
    office.start()
    office.api.wait_for(lambda: len(office.polls(bot)) > polls)
    (told,) = notices(office, "may be missing")
    assert clock.iso(since)[:16] in told and "telegram:@nexbot" in told


def test_how_updates_came_is_forgotten_after_a_week_but_not_of_what_is_held_or_waits(
    office: TelegramDaemon,
) -> None:
    bot, ada, eve = office.bound_bot("nexbot"), office.api.add_person("Ada"), office.api.add_person("Eve")
    chat = office.pair(ada, bot)
    ada.says(chat, "hello")
    stranger = eve.starts(bot)
    eve.says(stranger, "let me in")
    wait_until(lambda: office.texts(chat) == ["hello"] and office.contact(stranger)["held"] == 1)
    office.daemon.stop()
    with office.daemon.database() as database:
        database.execute("UPDATE platform_update SET received_at = received_at - ?", (8 * DAY,))
        before = database.execute("SELECT count(*) FROM platform_update WHERE raw IS NOT NULL").fetchone()[0]
        database.commit()
    assert before == 2
    office.start(HIBOSS_DAEMON_HEARTBEAT_SECONDS="1")

    def kept() -> list[str]:
        with office.daemon.database() as database:
            rows = database.execute("SELECT outcome FROM platform_update WHERE raw IS NOT NULL")
            return [row["outcome"] for row in rows]

    wait_until(lambda: kept() == ["held"])
    office.approve(stranger)
    wait_until(lambda: office.texts(stranger) == ["let me in"])
    (hello,) = [one for one in chat.messages if one.text == "hello"]
    ada.says(chat, "and now?", reply_to=hello)  # the row is still there, so the reply is linked
    answer = office.wait_for_stored(chat, "and now?")
    assert answer["reply_to"] == office.stored(chat)[0]["id"]


def test_a_bot_is_bound_without_a_check_while_nothing_answers_and_works_later(office: TelegramDaemon) -> None:
    bot, ada = office.api.add_bot("nexbot"), office.api.add_person("Ada")
    office.api.stop_listening()
    settings = {"adapter_token": bot.token}
    params = {"name": "nex", "adapter_type": "telegram", "settings": settings}
    assert office.boss.refusal("agent.bind", **params) == "account_refused"
    assert office.boss.call("agent.bind", **params, connect=False)["created"] is True
    wait_until(lambda: office.binding(bot)["last_error"])
    office.api.listen_again()
    chat = office.pair(ada, bot)
    ada.says(chat, "hello")
    wait_until(lambda: office.texts(chat) == ["hello"])


def test_the_boss_who_blocks_the_bot_and_lets_it_write_again_is_reached_again(office: TelegramDaemon) -> None:
    bot, ada = office.bound_bot("nexbot"), office.api.add_person("Ada")
    chat = office.pair(ada, bot)
    assert office.boss.call("boss.get")["reach"] == address(chat)
    ada.blocks(bot)
    wait_until(lambda: office.boss.call("boss.get")["reach"] is None)
    ada.unblocks(bot)
    wait_until(lambda: office.boss.call("boss.get")["reach"] == address(chat))
