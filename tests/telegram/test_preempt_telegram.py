"""Runs that are set aside while their answer grows in a chat: what was shown of it goes, and one answer comes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest

from hiboss.testing.bot_api import BotApi
from tests.support.parties import agent
from tests.support.telegram_bots import TelegramDaemon, telegram_daemon
from tests.support.waits import wait_until
from tests.telegram.test_telegram_live import Talk

GROWS = """
if "hold" in TURN and "never mind" not in TURN:
    print("Half of it"); sys.stdout.flush()
    wait_for("{go}")
print("the end of", ", ".join(TEXTS))
"""


@pytest.fixture(scope="module", params=["drafts", "posts"])
def office(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[TelegramDaemon]:
    """A server that knows drafts, and one on which answers grow as posts."""
    make = BotApi if request.param == "drafts" else partial(BotApi, version="9.0")
    with telegram_daemon(tmp_path_factory.mktemp("d"), make) as running:
        yield running


def grows(office: TelegramDaemon, talk: Talk) -> None:
    """Wait until the answer grows in the chat, as a draft or as a post."""
    office.api.wait_for(
        lambda: (
            (talk.chat.draft is not None and "Half of it" in talk.chat.draft.text)
            or any("Half of it" in text for text in talk.texts())
        )
    )


def statuses(talk: Talk) -> list[tuple[str, str | None]]:
    return [(one["status"], one["error_kind"]) for one in talk.agent.runs()]


def test_a_person_who_writes_again_gets_one_answer_to_both(office: TelegramDaemon) -> None:
    talk = Talk(office, "again", GROWS, busy="interrupt")
    first = talk.asks("hold this")
    grows(office, talk)
    second = talk.asks("never mind")
    talk.chat.wait_for_text("the end of")
    wait_until(lambda: statuses(talk) == [("interrupted", "preempted"), ("completed", None)])
    office.api.wait_for(lambda: len(talk.posts()) == 1 and talk.chat.draft is None)
    (answer,) = talk.posts()
    assert answer.text == "again:\nthe end of hold this, never mind" and answer.reply_to is second
    assert talk.reactions(first) == talk.reactions(second) == ["👀"]


def test_critical_mail_takes_the_growing_answer_away_and_it_comes_later(office: TelegramDaemon) -> None:
    talk = Talk(office, "urgent", GROWS)
    asked = talk.asks("hold this")
    grows(office, talk)
    agent(office.daemon).tell(talk.agent, text="fire", priority="critical")
    wait_until(lambda: len(talk.agent.turns()) == 3)
    assert ["text:\n> fire" in turn for turn in talk.agent.turns()] == [False, True, False]
    talk.goes_on()
    talk.chat.wait_for_text("the end of")
    wait_until(lambda: statuses(talk) == [("interrupted", "preempted"), *[("completed", None)] * 2])
    office.api.wait_for(lambda: len(talk.posts()) == 1 and talk.chat.draft is None)
    (answer,) = talk.posts()
    assert answer.text == "urgent:\nHalf of it\nthe end of hold this" and answer.reply_to is asked
