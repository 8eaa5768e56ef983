"""What can go wrong with what is shown of a run: 👀, typing, drafts, live posts. The answer comes once, whatever it is.

All rows of the table are met at the same time, each by an agent of its own, whose answer grows step by step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from hiboss.testing.bot_api import BotApi
from hiboss.testing.bot_api.faults import Fault
from hiboss.testing.bot_api.messages import Message
from hiboss.testing.bot_api.world import Call
from tests.support import bulk
from tests.support.telegram_booths import secrets_shown, unheard_posts
from tests.support.telegram_bots import TelegramDaemon, address, telegram_daemon
from tests.support.waits import wait_until

pytestmark = pytest.mark.slow

PROGRAM = """
def pause(name):
    while not os.path.exists(os.path.join(HERE, name)):
        time.sleep(0.05)
print("First words"); sys.stdout.flush()
pause("NAME.more")
print("more words"); sys.stdout.flush()
pause("NAME.go")
print("and the end")
"""
ANSWER = "First words\nmore words\nand the end"
SIGNS = ("sendChatAction", "setMessageReaction")

FAULTS: dict[str, dict[str, Any]] = {
    "500": {"status": 500},
    "502 with html": {"status": 502},
    "garbage": {"do": "garbage"},
    "a cut connection": {"do": "drop"},
    "a lost answer": {"do": "lose_answer"},
    "refused": {"status": 400, "description": "Bad Request: it is not allowed"},
    "blocked": {"status": 403, "description": "Forbidden: bot was blocked by the user"},
    "401": {"status": 401},
    "no answer": {"do": "hang"},
}
FLOOD = {"retry_after": 2}


NOT_EDITABLE = {"status": 400, "description": "Bad Request: message can't be edited"}


class Row(NamedTuple):
    """What goes wrong, and when: `begun` is from the question on, then the answer grows, then it ends."""

    methods: tuple[str, ...]
    fault: dict[str, Any]
    when: str = "begun"  # or grows, or ends


def rows(*, is_new: bool) -> dict[str, Row]:
    """Return the table for a server."""
    signs = (*SIGNS, "sendMessageDraft") if is_new else SIGNS
    found = {f"all signs: {name}": Row(signs, fault) for name, fault in FAULTS.items()}
    found |= {f"{method}: 429": Row((method,), FLOOD) for method in signs}
    for name, fault in {**FAULTS, "429": FLOOD}.items():
        found[f"the live post: {name}"] = Row(("sendMessage",), fault)
        found[f"an edit of the live post: {name}"] = Row(("editMessageText",), fault, "grows")
        found[f"the edit that makes it the answer: {name}"] = Row(("editMessageText",), fault, "ends")
        found[f"the deletion of the live post: {name}"] = Row(("deleteMessage",), fault, "ends")
    return found


class Talk:
    """Bob talks with an agent of its own bot, and something goes wrong."""

    def __init__(self, office: TelegramDaemon, number: int, row: Row) -> None:
        self.office = office
        self.row = row
        self.name = f"talker{number}"
        self.agent = office.team.hire(PROGRAM.replace("NAME", self.name), name=self.name)
        self.bot = office.bound_bot(f"{self.name}bot", self.name)
        self.bob = office.api.add_person("Bob")
        self.chat = self.bob.starts(self.bot)
        self._first = self.chat.wait_for_text("Your code is").id
        office.boss.call("contact.approve", contact=address(self.chat))
        self.faults: list[Fault] = []
        self.is_about_signs = row.methods[0] in SIGNS or row.methods[0] == "sendMessageDraft"
        if not self.is_about_signs:  # the answer grows as a live post, also on a new server
            self._fault("sendMessageDraft", times=None, status=404)

    def _fault(self, method: str, **what: Any) -> Fault:
        return self.office.api.fault(method, bot=self.bot.id, **what)

    def step(self, when: str) -> None:
        """Let it go wrong if it is time for that, and let the run go on."""
        if self.row.when == when:
            self.faults = [self._fault(method, **self.row.fault) for method in self.row.methods]
            if "deleteMessage" in self.row.methods:
                self._fault("editMessageText", **NOT_EDITABLE)
        if when == "begun":
            self.bob.says(self.chat, "how far?")
        else:
            self.office.team.place(f"{self.name}.{'more' if when == 'grows' else 'go'}").touch()

    def has_met(self) -> bool:
        """Tell whether it has gone wrong with all methods."""
        return all(fault.hits for fault in self.faults)

    def shows(self) -> bool:
        """Tell whether it shows the live post with which something is to go wrong."""
        return bool(self.posts()) or self.row.when == "begun"

    def posts(self) -> list[Message]:
        """Return what the bot has posted and heard of."""
        unheard = unheard_posts(self.office, self.bot, self.chat)
        own = [one for one in self.chat.messages if one.sender is self.bot and one.id > self._first]
        return [one for one in own if one.id not in unheard]

    def stays(self) -> bool:
        """Tell whether the platform wants the live post to stay beside the answer."""
        return "deleteMessage" in self.row.methods and self.row.fault.get("status") in (400, 403)

    def says_more(self) -> None:
        """Post one more thing: what is left of a live post is looked at then."""
        self.agent.send(address(self.chat), text="by the way")

    def is_over(self) -> bool:
        """Tell whether the answer is there once, and what grew is not beside it."""
        *live, answer, last = ["", "", *(one.text for one in self.posts())]
        query = "SELECT 1 FROM live_post l JOIN addresses a ON a.id = l.address WHERE a.address = ?"
        left = self.office.rows(query, address(self.chat))
        return (any(live) == self.stays()) and (answer, last) == (ANSWER, "by the way") and not left

    def lane(self) -> dict[str, Any]:
        (found,) = self.office.rows("SELECT * FROM lanes WHERE address = ?", address(self.chat)) or [{}]
        return {"state": "open", "failures": 0, "error_text": None, **found}

    def calls(self, *methods: str) -> list[Call]:
        return [one for one in self.office.api.calls if one.bot is self.bot and one.method in methods]


@pytest.fixture
def offices(tmp_path: Path) -> Iterator[dict[str, TelegramDaemon]]:
    """Return a daemon with a new server, and one with an old one, which has no drafts."""
    env = {"HIBOSS_RUNS_PARALLEL_RUNS": "64"}
    with ExitStack() as running:
        found = {}
        for version in ("10.3", "9.0"):
            (tmp_path / version).mkdir()
            make = partial(BotApi, version=version)
            found[version] = running.enter_context(telegram_daemon(tmp_path / version, make, **env))
        yield found
        for office in found.values():
            assert secrets_shown(office) == []
            assert office.api.complaints == []


def wait_for_all(talks: dict[str, Talk], what: Callable[[Talk], bool]) -> None:
    for name, talk in talks.items():
        try:
            wait_until(partial(what, talk))
        except AssertionError:
            raise AssertionError(f"{name}: {talk.chat.messages} {talk.lane()} {talk.faults}") from None


def test_whatever_goes_wrong_with_what_is_shown_the_answer_comes_once(
    offices: dict[str, TelegramDaemon],
) -> None:
    every = [(version, one) for version in offices for one in rows(is_new=version == "10.3").items()]
    # Each row with one of the servers; in a soak, and where they are compared below, with both.
    some = bulk.some(every, lambda row: (row[1][0], row[0] if row[1][1].fault is FLOOD else ""))
    talks: dict[str, Talk] = {}
    for version, (name, row) in some:
        talks[f"{version}, {name}"] = Talk(offices[version], len(talks), row)
    for when in ("begun", "grows", "ends"):
        for talk in talks.values():
            talk.step(when)
        wait_for_all(talks, Talk.has_met)
        if when == "begun":
            wait_for_all(talks, Talk.shows)
    for office in offices.values():
        office.api.clear_faults()
    wait_for_all(talks, lambda talk: any(one.text == ANSWER for one in talk.posts()))
    for talk in talks.values():
        talk.says_more()
    wait_for_all(talks, Talk.is_over)
    for name, talk in talks.items():
        check_lane(name, talk)
    assert len(talks["10.3, sendMessageDraft: 429"].calls("sendMessageDraft")) == 1  # it grows no more
    for version in offices:
        grown = talks[f"{version}, an edit of the live post: 429"]
        assert len(grown.calls("editMessageText")) == 2  # the other one made it the answer


def check_lane(name: str, talk: Talk) -> None:
    """See that the chat has waited only if the platform named a wait, and then as long as that."""
    assert talk.lane()["failures"] == 0, name
    if talk.is_about_signs:
        assert talk.lane()["error_text"] is None, name
    elif talk.row.fault is FLOOD:
        calls = talk.calls("sendMessage", "editMessageText", "deleteMessage")
        refused = next(number for number, one in enumerate(calls) if one.status == 429)
        assert calls[refused + 1].at >= calls[refused].at + FLOOD["retry_after"], name
