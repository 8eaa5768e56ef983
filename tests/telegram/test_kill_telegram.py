"""kill -9 while agents post in Telegram, and while updates stream in.

Of what goes out nothing is missing, and only what was confirmed and not recorded is doubled. Each update is one message,
in the order of its chat, and none is lost.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from hiboss.core.crashpoint import (
    CHANGE_MADE,
    CHANGE_NOTED,
    CHANGE_PLANNED,
    CLAIMED,
    LIVE_BECAME,
    LIVE_BEGUN,
    LIVE_DELETED,
    LIVE_NOTED,
    LIVE_POSTED,
    POSTED,
    REACTED,
    SETTLED,
    TAKEN,
)
from hiboss.core.errors import DaemonUnreachable
from hiboss.testing.bot_api import BotApi
from hiboss.testing.bot_api.messages import Message
from tests.support.failures import seeded
from tests.support.python_agents import QUIET, wait_until_idle
from tests.support.telegram_bots import Stored, TelegramDaemon, address, hash_of, telegram_daemon
from tests.support.waits import wait_until
from tests.telegram.kill_soak import POINTS, Killing
from tests.telegram.out_kill_soak import OLD, SETTINGS, killing

pytestmark = pytest.mark.slow

RANDOM_KILLS = 4
SEED = 20261118
PAGE = "All of this is one post, and not two. " * 80  # of 4,096 characters, so that each paragraph is a chunk
THREE = f"first {PAGE}\n\nsecond {PAGE}\n\nthird {PAGE}"
_LEFT = """
SELECT e.id FROM envelope e JOIN address a ON a.id = e.recipient WHERE a.kind = 'channel' AND e.status = 0
UNION ALL SELECT run FROM live_post UNION ALL SELECT envelope FROM post_change
UNION ALL SELECT message FROM reaction_change
"""


@pytest.mark.parametrize("version", [None, OLD], ids=["newest", "old"])
def test_all_is_posted_once_but_for_what_was_not_recorded(version: str | None, tmp_path: Path) -> None:
    with killing(tmp_path, seeded(SEED), version, hurry=True) as mortal:
        for _ in range(RANDOM_KILLS):
            mortal.at_random(burst=6, seconds=mortal.chance.uniform(0.2, 1.5))
        audit = mortal.finish()
        sys.stdout.write(f"{mortal}\n{audit}\n")
        assert mortal.multi_chunk > 0
        assert audit.wrong == []


# --- one death at each point ---------------------------------------------------------------------


class Story:
    """A daemon that dies, and an agent that posts in a private chat. There are no drafts."""

    def __init__(self, office: TelegramDaemon) -> None:
        self.office = office
        self.agent = office.team.hire("", "mortal")
        self.bot = office.bound_bot("mortalbot", "mortal")
        self.bob = office.api.add_person("Bob")
        self.chat = office.approved(self.bob, self.bot)
        self._numbers = itertools.count(1)

    def begin(self) -> None:
        """Forget what other tests did."""
        if self.office.daemon.process is None:
            self.office.start()
        self._number = next(self._numbers)
        self.go = self.office.team.place(f"go-{self._number}")
        self._before = {one.id for one in self.chat.messages}

    def dies_at(self, point: str, do: Callable[[], object], *, passes: int = 1) -> None:
        """Let the daemon die when it passes a point, after something that the test does."""
        self.office.daemon.stop()
        armed = self.office.team.place(f"armed-{self._number}")
        self.office.start(HIBOSS_CRASH_AT=f"{point}:{passes}@{armed}")
        armed.touch()
        with suppress(DaemonUnreachable):  # it may die before it answers
            do()
        assert self.office.daemon.wait_for_death() == -9

    def goes_on(self) -> None:
        """Start it, and return when all is posted and changed."""
        self.office.start()
        wait_until_idle(self.office.daemon)
        wait_until(lambda: not self.office.rows(_LEFT))
        self.office.daemon.check()

    def send(self, text: str = THREE, **params: Any) -> str:
        (number,) = self.agent.send(address(self.chat), text=text, **params)["ids"]
        return str(number)

    def posted(self, text: str = THREE) -> str:
        """Send a text, and return its envelope when it is posted."""
        number = self.send(text)
        wait_until(lambda: self.agent.get(number)["status"] == "done")
        return number

    def posts(self) -> list[Message]:
        own = [one for one in self.chat.messages if one.sender is self.bot and one.id not in self._before]
        return [one for one in own if "hiboss was restarted" not in one.text]

    def seen(self) -> list[str]:
        """Return the first words of what the agent has posted and people see."""
        return [one.text.split()[0] for one in self.posts()]

    def asks(self, end: str = 'print("and the end")') -> None:
        """Let Bob ask something. The answer begins with a word that is shown, and goes on when the file is there."""
        body = f'print("well…", flush=True); wait_for("{self.go.name}"); {end}'
        self.agent.program.write(body, self.office.daemon.home.socket)
        self.bob.says(self.chat, "how far?")

    def asks_and_sees(self, end: str = 'print("and the end")') -> None:
        """Let him ask, and let the answer go on when people see its first word."""
        self.asks(end)
        wait_until(lambda: self.office.rows("SELECT 1 FROM live_post WHERE platform_id IS NOT NULL"))
        self.go.touch()


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    """Return one whose server has no drafts: answers grow in posts, in private chats too."""
    make = partial(BotApi, version=OLD)
    with telegram_daemon(tmp_path_factory.mktemp("points"), make, **SETTINGS) as office:
        yield Story(office)


@pytest.fixture
def story(told: Story) -> Story:
    told.begin()
    return told


@pytest.mark.parametrize(
    ("point", "passes", "before", "after"),
    [
        (CLAIMED, 1, [], ["first", "second", "third"]),
        (POSTED, 1, ["first"], ["first", "first", "second", "third"]),
        (POSTED, 2, ["first", "second"], ["first", "second", "second", "third"]),
        (POSTED, 3, ["first", "second", "third"], ["first", "second", "third", "third"]),
        (SETTLED, 1, [], ["first", "second", "third"]),
        (SETTLED, 2, ["first", "second", "third"], ["first", "second", "third"]),
    ],
)
def test_a_text_in_chunks_goes_on_where_it_was(
    story: Story, point: str, passes: int, before: list[str], after: list[str]
) -> None:
    story.dies_at(point, story.send, passes=passes)
    assert story.seen() == before
    story.goes_on()
    assert story.seen() == after


def test_an_album_that_was_not_recorded_comes_again_as_a_whole(story: Story, tmp_path: Path) -> None:
    for name in ("one.jpg", "two.jpg"):
        (tmp_path / name).write_bytes(b"\xff\xd8" + name.encode())
    files = [str(tmp_path / name) for name in ("one.jpg", "two.jpg")]
    story.dies_at(POSTED, lambda: story.send("look", attachments=files))
    story.goes_on()
    first, second, again, last = story.posts()
    assert first.more["media_group_id"] == second.more["media_group_id"] != again.more["media_group_id"]
    recorded = story.office.rows(
        "SELECT platform_id FROM post WHERE platform_id = ?1 UNION SELECT platform_id FROM post_part WHERE platform_id = ?2",
        str(again.id),
        str(last.id),
    )
    assert [int(row["platform_id"]) for row in recorded] == [again.id, last.id]


@pytest.mark.parametrize(
    ("point", "before", "after"),
    [
        (LIVE_BEGUN, [], ["well…"]),
        (LIVE_POSTED, ["well…"], ["well…", "well…"]),  # nobody knows its id, so it stays
        (LIVE_NOTED, ["well…"], ["well…"]),
    ],
)
def test_what_grew_when_it_died_is_removed_if_its_id_is_known(
    story: Story, point: str, before: list[str], after: list[str]
) -> None:
    story.dies_at(point, story.asks)
    assert story.seen() == before
    story.go.touch()
    story.goes_on()
    assert story.seen() == after and [one.text for one in story.posts()][-1].endswith("and the end")


def test_an_answer_that_was_not_recorded_is_the_post_that_grew(story: Story) -> None:
    story.dies_at(LIVE_BECAME, story.asks_and_sees)
    (grown,) = story.posts()
    story.goes_on()
    assert story.posts() == [grown]
    assert grown.text.endswith("and the end")


def test_what_was_removed_stays_so_and_nothing_is_left(story: Story) -> None:
    silent = 'print(json.dumps({"hiboss": "final", "text": "NO_REPLY"}))'
    story.dies_at(LIVE_DELETED, lambda: story.asks_and_sees(silent))
    assert story.posts() == []
    story.goes_on()
    assert story.posts() == []


# --- changes of what is posted -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("point", "passes", "doubles"),
    [
        (CHANGE_PLANNED, 1, 0),
        (CHANGE_MADE, 1, 0),
        (CHANGE_MADE, 2, 1),
        (CHANGE_NOTED, 1, 0),
        (CHANGE_NOTED, 2, 0),
    ],
)
def test_a_message_that_was_being_edited_shows_its_new_text(
    story: Story, point: str, passes: int, doubles: int
) -> None:
    """The one post is edited, and another one is added: that can come twice."""
    number = story.posted("first words")
    text = f"new {PAGE}\n\nadded {PAGE}"
    story.dies_at(point, lambda: story.agent.call("message.edit", id=number, text=text), passes=passes)
    story.goes_on()
    assert story.seen() == ["new", *["added"] * (1 + doubles)]


@pytest.mark.parametrize("point", [CHANGE_PLANNED, CHANGE_MADE, CHANGE_NOTED])
def test_a_message_that_was_being_deleted_is_gone(story: Story, point: str) -> None:
    number = story.posted()
    story.dies_at(point, lambda: story.agent.call("message.delete", id=number))
    story.goes_on()
    assert story.posts() == []


def test_a_reaction_that_was_not_recorded_is_there(story: Story) -> None:
    story.agent.program.write(QUIET, story.office.daemon.home.socket)
    asked = story.bob.says(story.chat, "look")
    said = story.office.wait_for_stored(story.chat, "look")
    story.dies_at(REACTED, lambda: story.agent.call("reaction.set", id=f"m{said['id']}", emoji="👍"))
    story.goes_on()
    assert asked.reactions_of(story.bot) == ["👍"]


# --- a stop that is no death -----------------------------------------------------------------------


def test_a_note_that_was_being_posted_at_a_stop_is_removed(story: Story) -> None:
    """If nobody waited for the platform's answer, nobody would know which post it is."""
    office = story.office
    cyd = office.api.add_person("Cyd")
    chat = office.approved(cyd, story.bot)
    story.asks()
    wait_until(lambda: [one["status"] for one in story.agent.runs()[-1:]] == ["running"])
    office.settle()
    cyd.says(chat, "me too")
    office.settle()
    office.api.delay = 1.0
    chat.wait_for_text("Queued behind r")
    office.daemon.stop()
    office.api.delay = 0
    story.go.touch()
    story.goes_on()
    assert not [one for one in chat.messages if "Queued" in one.text]


# --- what comes in --------------------------------------------------------------------------------


UPDATES = 80  # about; the soak has more (kill_soak.py)


@pytest.fixture
def office(tmp_path: Path) -> Iterator[TelegramDaemon]:
    with telegram_daemon(tmp_path) as running:
        yield running


@pytest.fixture
def incoming(office: TelegramDaemon, tmp_path: Path) -> Killing:
    return Killing(office, tmp_path, seeded(SEED))


def test_every_update_is_one_message_wherever_the_intake_dies(incoming: Killing) -> None:
    for point in POINTS:
        incoming.at_point(point)
    faults = incoming.finish()
    sys.stdout.write(f"{incoming}\n")
    assert ({*incoming.causes}, faults) == ({*POINTS}, [])


def test_every_update_is_one_message_after_deaths_at_random_moments(incoming: Killing) -> None:
    for step in incoming.traffic.everything():
        step()
    # The first round ends this daemon: an end in the middle of work would be one more in a row.
    incoming.office.settle(60)
    for left in range(RANDOM_KILLS, 0, -1):
        incoming.at_random(burst=max(4, (UPDATES - incoming.traffic.updates) // left))
    faults = incoming.finish()
    sys.stdout.write(f"{incoming}\n")
    assert incoming.traffic.eras > 0 and incoming.traffic.albums > 0
    assert faults == []


def test_an_album_whose_parts_came_before_and_after_a_death_is_one_message(
    office: TelegramDaemon, tmp_path: Path
) -> None:
    """However long it lasts: the parts that came meanwhile are fetched before the album is sealed."""
    ada = office.api.add_person("Ada")
    chat = office.pair(ada, office.bound_bot("nexbot"))
    armed = tmp_path / "armed"
    office.daemon.kill()
    # A kill by the test could come after the album is sealed.
    office.start(HIBOSS_CRASH_AT=f"{TAKEN}@{armed}")
    office.settle()
    album = ada.begins_album(chat)
    armed.touch()
    album.add(b"one", "the album")
    office.daemon.wait_for_death()
    album.add(b"two")
    ada.says(chat, "after it")
    with office.daemon.database() as database:  # as if it had been stored an hour ago
        database.execute("UPDATE platform_update SET received_at = received_at - 3600000")
        database.commit()
    office.start()
    office.settle()
    assert office.messages(chat) == [
        Stored("the album", (hash_of(b"one"), hash_of(b"two"))),
        Stored("after it"),
    ]
