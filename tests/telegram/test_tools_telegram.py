"""What people see in Telegram of the tools and thoughts of a run, and when its turn is given up."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from hiboss.testing.bot_api import BotApi
from tests.support.live_providers import staged
from tests.support.telegram_bots import TelegramDaemon, telegram_daemon
from tests.support.waits import wait_until
from tests.telegram.test_telegram_live import Talk

MODULES = {"HIBOSS_PROVIDERS_MODULES": "tests.support.live_providers"}


@pytest.fixture(scope="module")
def drafts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TelegramDaemon]:
    with telegram_daemon(tmp_path_factory.mktemp("d"), **MODULES) as running:
        yield running


@pytest.fixture(scope="module")
def posts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TelegramDaemon]:
    """A server on which answers grow as posts."""
    with telegram_daemon(tmp_path_factory.mktemp("p"), partial(BotApi, version="9.0"), **MODULES) as running:
        yield running


def talk_with(office: TelegramDaemon, name: str, directory: Path) -> Talk:
    talk = Talk(office, name)
    office.boss.call("agent.set", name=name, provider="staged", workspace=str(directory))
    return talk


def test_a_draft_shows_what_the_agent_does_and_the_answer_does_not(
    drafts: TelegramDaemon, tmp_path: Path
) -> None:
    talk = talk_with(drafts, "doer", tmp_path)
    secret = "it was " + "x" * 5_000
    waits = [("wait", name) for name in ("one", "two", "three")]
    staged(
        tmp_path,
        ("tool", "Bash git status\n--short"),
        waits[0],
        ("tool_result", secret),
        ("delta", "All is well"),
        ("tool", "Read a_file_name.py"),
        waits[1],
        ("thinking", secret),
        waits[2],
        ("final", "All is well."),
    )

    def shows(text: str) -> None:
        drafts.api.wait_for(lambda: talk.chat.draft is not None and talk.chat.draft.text == f"doer:\n{text}")

    talk.asks()
    shows("⚙️ Bash git status --short")
    (tmp_path / "one").touch()
    shows("All is well\n\n⚙️ Read a_file_name.py")
    (tmp_path / "two").touch()
    shows("All is well\n\n💭")
    (tmp_path / "three").touch()
    talk.chat.wait_for_text("All is well.")
    assert [one.text for one in talk.posts()] == ["doer:\nAll is well."]


def test_where_there_are_no_drafts_nobody_is_notified_of_a_tool(
    posts: TelegramDaemon, tmp_path: Path
) -> None:
    talk = talk_with(posts, "poster", tmp_path)
    words = ("tool", "Bash ls"), ("wait", "one"), ("delta", "I look."), ("tool", "Bash cat"), ("wait", "two")
    staged(tmp_path, *words, ("final", "I have looked."))
    talk.asks()
    wait_until((tmp_path / "turns").exists)
    (tmp_path / "one").touch()
    talk.chat.wait_for_text("I look.\n\n⚙️ Bash cat")
    (post,) = talk.posts()
    assert post.text == "poster:\nI look.\n\n⚙️ Bash cat"
    (tmp_path / "two").touch()
    talk.chat.wait_for_text("I have looked.")
    assert [one.text for one in talk.posts()] == ["poster:\nI have looked."]  # the same post
    assert talk.posts() == [post]


def test_others_see_the_words_of_the_answer_and_nothing_of_the_tools(
    drafts: TelegramDaemon, tmp_path: Path
) -> None:
    talk = talk_with(drafts, "discreet", tmp_path)
    bob = drafts.api.add_person("Bob")
    chat = drafts.approved(bob, talk.bot)
    staged(tmp_path, ("delta", "Well"), ("tool", "Bash cat /etc/passwd"), ("wait", "go"), ("final", "Well."))
    bob.says(chat, "hello")
    drafts.api.wait_for(lambda: chat.draft is not None)
    assert chat.draft is not None and chat.draft.text == "Well"
    (tmp_path / "go").touch()
    chat.wait_for_text("Well.")


def test_a_turn_that_is_given_up_is_told_once_and_comes_again_by_hand(
    drafts: TelegramDaemon, tmp_path: Path
) -> None:
    talk = talk_with(drafts, "spender", tmp_path)
    staged(tmp_path, ("fail", "over_budget", "it used 900 of its 500 tokens", False))
    asked = talk.asks("count everything")
    talk.chat.wait_for_text("gave up on this")
    (post,) = talk.posts()
    (row,) = drafts.rows(
        "SELECT e.id FROM envelope e JOIN message m ON m.id = e.message WHERE m.text = 'count everything'"
    )
    assert '⚠️ spender gave up on this: "it used 900 of its 500 tokens"' in post.text
    assert f"To retry: hiboss envelope retry e{row['id']}" in post.text and post.reply_to is asked
    staged(tmp_path, ("final", "Counted."))
    drafts.boss.call("envelope.retry", ids=[f"e{row['id']}"])
    talk.chat.wait_for_text("Counted.")
    assert len(talk.posts()) == 2
