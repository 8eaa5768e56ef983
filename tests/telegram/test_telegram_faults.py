"""What can go wrong between the daemon and Telegram: nothing is lost, and the trouble is named."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, NamedTuple

import pytest

from hiboss.testing.bot_api.bots import Bot, Webhook
from hiboss.testing.bot_api.chats import Chat
from hiboss.testing.bot_api.people import Person
from tests.support.python_agents import PythonAgent
from tests.support.telegram_bots import TelegramDaemon, address, answer_to, hash_of
from tests.support.waits import wait_until

pytestmark = pytest.mark.slow

MEGABYTE = 1024 * 1024
_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def ada(office: TelegramDaemon) -> Person:
    """The boss on Telegram."""
    person = office.api.add_person("Ada")
    office.boss.call("boss.set", ids={"telegram": str(person.id)})
    return person


@pytest.fixture(scope="module")
def kai(office: TelegramDaemon) -> PythonAgent:
    """An agent that has nothing to do with Telegram."""
    return office.team.hire('print("I am here")', "kai")


class Scene(NamedTuple):
    """A bot of its own, its chat with the boss, and one with somebody else."""

    office: TelegramDaemon
    bot: Bot
    ada: Person
    chat: Chat
    bob: Person
    other: Chat

    def note(self, text: str) -> str | None:
        """Return what the agent is told about a message."""
        found: dict[str, Any] = json.loads(self.office.wait_for_stored(self.chat, text)["channel"])
        return found.get("note")


@pytest.fixture
def scene(office: TelegramDaemon, ada: Person) -> Iterator[Scene]:
    number = next(_numbers)
    bot, bob = office.bound_bot(f"bot{number}"), office.api.add_person(f"Bob{number}")
    chat = ada.starts(bot)
    answer_to(chat, chat.messages[0])
    other = office.approved(bob, bot)
    office.look_from_here()
    yield Scene(office, bot, ada, chat, bob, other)
    office.api.clear_faults()
    office.boss.call("agent.unbind", name="nex", adapter_type="telegram", account=str(bot.id))


Trouble = Callable[[Scene], AbstractContextManager[list[str]]]


def answers(method: str, **fault: Any) -> Trouble:
    """Return a trouble: the server answers so, until it is over."""

    @contextmanager
    def trouble(scene: Scene) -> Iterator[list[str]]:
        made = scene.office.api.fault(method, bot=scene.bot, times=None, **fault)
        scene.office.api.wait_for(lambda: made.hits > 0)
        yield []
        made.clear()

    return trouble


@contextmanager
def other_poller(scene: Scene) -> Iterator[list[str]]:
    """Another program fetches the same updates, again and again."""
    over = threading.Event()

    def poll() -> None:
        while not over.wait(0.02):
            if not scene.bot.pending:  # it must not be the one that gets them
                scene.bot.updates.fetch(0, 1, 0)

    thread = threading.Thread(target=poll)
    thread.start()
    yield []
    over.set()
    thread.join()


@contextmanager
def webhook(scene: Scene) -> Iterator[list[str]]:
    scene.bot.webhook = Webhook(url="https://example.org/hook")
    scene.office.api.interrupt_polls()
    yield []
    scene.bot.webhook = Webhook()


@contextmanager
def refused_connections(scene: Scene) -> Iterator[list[str]]:
    scene.office.api.stop_listening()
    yield []
    scene.office.api.listen_again()


@contextmanager
def odd_updates(scene: Scene) -> Iterator[list[str]]:
    """In one batch with others: updates that nobody understands."""
    with scene.office.api.world.changed:
        scene.ada.says(scene.chat, "first of the batch")
        chat = {"chat": {"id": scene.chat.id, "type": "private"}}
        odd: list[dict[str, Any]] = [
            {"message": "no object"},
            {"message": {"message_id": "x", "chat": 5}},
            {"message": {**chat, "message_id": 10**9, "date": "never", "text": 7, "entities": {}}},
            {"hologram": {**chat, "shape": "cube"}},
            {},
        ]
        for one in odd:
            scene.bot.inject(one)
        scene.ada.says(scene.chat, "last of the batch")
    wait_until(lambda: "last of the batch" in scene.office.texts(scene.chat))
    found = scene.office.texts(scene.chat)
    between = found[found.index("first of the batch") + 1 : found.index("last of the batch")]
    assert all(one.startswith("[") for one in between), "words for what nobody understands"
    yield ["first of the batch", *between, "last of the batch"]


@contextmanager
def hanging_file(scene: Scene) -> Iterator[list[str]]:
    """A file does not come: other chats and commands go on, and its own chat keeps its order."""
    hanging = scene.office.api.fault("file", bot=scene.bot, do="hang", times=1)
    scene.ada.sends_document(scene.chat, "slow.txt", b"slow" * 1000, caption="with a slow file")
    scene.office.api.wait_for(lambda: hanging.hits == 1)
    scene.bob.says(scene.other, "meanwhile")
    scene.office.wait_for_stored(scene.other, "meanwhile")
    answer_to(scene.chat, scene.ada.says(scene.chat, "/help"))
    assert "with a slow file" not in scene.office.texts(scene.chat)
    yield ["with a slow file"]
    hanging.release()


@contextmanager
def slow_file(scene: Scene) -> Iterator[list[str]]:
    scene.office.api.fault("file", bot=scene.bot, bytes_per_second=200_000)
    scene.ada.sends_document(scene.chat, "slow.txt", b"slow" * 30_000, caption="with a slow file")
    yield ["with a slow file"]


@contextmanager
def huge_file(scene: Scene) -> Iterator[list[str]]:
    scene.ada.sends_document(scene.chat, "film.mkv", b"x", caption="a film", size=21 * MEGABYTE)
    yield ["a film"]


@contextmanager
def vanished_file(scene: Scene) -> Iterator[list[str]]:
    with scene.office.api.world.changed:
        scene.ada.sends_document(scene.chat, "gone.txt", b"gone", caption="it is gone").files[0].vanish()
    yield ["it is gone"]


@contextmanager
def deleted_reply(scene: Scene) -> Iterator[list[str]]:
    """Both ways: an answer to what was deleted is posted, and a reply to a post that was deleted comes in."""
    sent = scene.ada.says(scene.chat, "forget this")
    stored = scene.office.wait_for_stored(scene.chat, "forget this")
    scene.ada.deletes(sent)
    scene.office.nex.send(text="I do", reply_to=f"m{stored['id']}")
    post = scene.chat.wait_for_text("I do")
    assert post.reply_to is None
    scene.ada.deletes(post)
    scene.ada.says(scene.chat, "do you?", reply_to=post)
    yield ["forget this", "do you?"]


class Row(NamedTuple):
    """One row of the table."""

    trouble: Trouble
    shown: str = ""  # words of last_error while it lasts
    state: str = "running"
    told: str = ""  # words of the notice to the boss
    note: str = ""  # words about what is missing


TABLE = {
    "401": Row(answers("*", status=401), "does not accept the token", "failed", "does not accept the token"),
    "409 by another poller": Row(
        other_poller, "another program fetches", "failed", "another program fetches"
    ),
    "409 by a webhook": Row(webhook, "has a webhook", "failed", "has a webhook"),
    "429": Row(answers("getUpdates", retry_after=1), "429"),
    "500": Row(answers("getUpdates", status=500), "500"),
    "502 with html": Row(answers("getUpdates", status=502), "502"),
    "garbage": Row(answers("getUpdates", do="garbage"), "is not one of the Bot API"),
    "a cut connection": Row(answers("getUpdates", do="drop"), "cannot be reached"),
    "a lost answer": Row(answers("getUpdates", do="lose_answer"), "cannot be reached"),
    "hanging": Row(answers("getUpdates", do="hang")),
    "refused connections": Row(refused_connections, "cannot be reached"),
    "odd updates": Row(odd_updates),
    "a hanging file": Row(hanging_file),
    "a slow file": Row(slow_file),
    "a huge file": Row(huge_file, note="no file over 20 MB"),
    "a vanished file": Row(vanished_file, note="could not be fetched"),
    "a reply to a deleted message": Row(deleted_reply),
}


@pytest.mark.parametrize("name", TABLE)
def test_what_came_before_while_and_after_a_trouble_is_there_once_and_in_order(
    scene: Scene, kai: PythonAgent, name: str
) -> None:
    office, row = scene.office, TABLE[name]
    scene.ada.says(scene.chat, "before")
    office.wait_for_stored(scene.chat, "before")
    told = len(office.boss.told())
    with row.trouble(scene) as came:
        scene.ada.says(scene.chat, "while it lasts")
        if row.shown:
            office.wait_for_error(scene.bot, row.shown, row.state)
        if row.told:
            wait_until(lambda: any(row.told in one for one in office.boss.told()[told:]))
        heard = len(office.boss.heard(kai))
        office.boss.say(kai)
        wait_until(lambda: len(office.boss.heard(kai)) > heard)
    if row.state == "failed":
        office.boss.call("lane.retry", address=address(scene.chat))
    scene.ada.says(scene.chat, "after")
    office.wait_for_texts(scene.chat, "before", *came, "while it lasts", "after")
    wait_until(lambda: office.binding(scene.bot)["state"] == "running")
    wait_until(lambda: office.binding(scene.bot)["last_error"] is None)
    if row.note:
        assert row.note in (scene.note(came[0]) or "") and office.messages(scene.chat)[1].files == ()
    elif "file" in name:
        assert office.messages(scene.chat)[1].files == (
            hash_of(b"slow" * (30_000 if name == "a slow file" else 1000)),
        )


def test_stop_acts_while_a_large_file_trickles_in_in_the_same_chat(
    office: TelegramDaemon, ada: Person
) -> None:
    busy = office.team.hire('wait_for("never")', "busy")
    bot = office.bound_bot("busybot", "busy")
    chat = ada.starts(bot)
    ada.says(chat, "work on this")
    wait_until(lambda: [one["status"] for one in busy.runs()] == ["running"])
    slow = office.api.fault("file", bot=bot, bytes_per_second=100_000)
    ada.sends_document(chat, "film.mp4", b"x" * 15 * MEGABYTE, caption="the film")
    office.api.wait_for(lambda: slow.hits == 1)
    assert "Stopped" in answer_to(chat, ada.says(chat, "/stop")).text
    wait_until(lambda: [one["status"] for one in busy.runs()] == ["cancelled"])
    assert "the film" not in office.texts(chat)  # it trickles on
    assert office.outcomes(chat)[-2:] == [None, "command"]
    office.boss.call("agent.unbind", name="busy", adapter_type="telegram")
