"""What can go wrong with each method that changes something in a chat: it is made in the end, or said why not.

Each test is a row of the table, and meets its fault with all methods at once, each in a booth of its own. Live posts,
drafts and signs are at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from hiboss.testing.bot_api import BotApi
from hiboss.testing.bot_api.chats import Chat
from hiboss.testing.bot_api.faults import Fault
from hiboss.testing.bot_api.messages import Message
from hiboss.testing.bot_api.world import Call
from tests.support import bulk
from tests.support.telegram_booths import (
    RICH_WAYS,
    WAYS,
    Booth,
    Booths,
    Way,
    each,
    secrets_shown,
    unheard_posts,
    wait_for_status,
)
from tests.support.telegram_bots import TelegramDaemon, address, telegram_daemon
from tests.support.waits import wait_until

pytestmark = pytest.mark.slow

Facts = dict[str, Any]


class Change(NamedTuple):
    """A method that changes something, and what was sent before."""

    method: str
    way: Way


TEXT = WAYS["sendMessage"]
EDITS = [Change("editMessageText", TEXT), Change("editMessageCaption", WAYS["sendPhoto"])]
RICH_EDIT = Change("editMessageText", RICH_WAYS["sendRichMessage"])
REACTION = Change("setMessageReaction", TEXT)
CHANGES = [
    *EDITS,
    Change("editMessageCaption", WAYS["sendMediaGroup"]),
    Change("deleteMessage", TEXT),
    Change("deleteMessage", WAYS["sendMediaGroup"]),
    REACTION,
]


class Wish:
    """Something that is to be changed in the chat of a booth."""

    def __init__(self, change: Change, booth: Booth) -> None:
        self.change = change
        self.booth = booth
        self.envelope = booth.send("before")
        wait_for_status(booth.office, [self.envelope], "done")
        self.posts = booth.messages()
        if change is REACTION:
            said = booth.bob.says(booth.chat, f"do you like it? {self.envelope}")
            stored = booth.office.wait_for_stored(booth.chat, said.text)
            self.posts, self.envelope = [said], f"m{stored['id']}"
        self._before = len(self._notices())

    def fault(self, **what: Any) -> Any:
        return self.booth.fault(self.change.method, **what)

    def utter(self) -> None:
        """Let the agent ask for it."""
        call = self.booth.office.nex.call
        if self.change is REACTION:
            call("reaction.set", id=self.envelope, emoji="👍")
        elif self.change.method == "deleteMessage":
            call("message.delete", id=self.envelope)
        else:
            call("message.edit", id=self.envelope, text=self.change.way.text.format("changed"))

    def is_granted(self) -> bool:
        """Tell whether people see all of it."""
        if self.change is REACTION:
            return self.posts[0].reactions_of(self.booth.bot) == ["👍"]
        if self.change.method == "deleteMessage":
            return all(one.deleted for one in self.posts)
        return "changed" in self.posts[0].text and not any(one.deleted for one in self.posts)

    def is_untouched(self) -> bool:
        """Tell whether people see what they saw before."""
        if self.change is REACTION:
            return self.posts[0].reactions_of(self.booth.bot) == []
        return "before" in self.posts[0].text and not any(one.deleted for one in self.posts)

    def is_over(self) -> bool:
        """Tell whether nothing more is to be done about it."""
        return self._failures() is None

    def is_over_or_retried(self) -> bool:
        if not (over := self.is_over()):
            self.booth.retry()
        return over

    def waits(self) -> bool:
        """Tell whether it was tried and is to be tried again."""
        return bool(self._failures())

    def _failures(self) -> int | None:
        query = "SELECT failures FROM post_change WHERE envelope = ?"
        if self.change is REACTION:
            query = "SELECT failures FROM reaction_change WHERE message = ?"
        rows = self.booth.office.rows(query, int(self.envelope[1:]))
        return rows[0]["failures"] if rows else None

    def complaints(self) -> list[str]:
        """Return what the agent was told about it since."""
        return self._notices()[self._before :]

    def _notices(self) -> list[str]:
        return self.booth.notices("agent:nex", f"telegram:{self.booth.chat.id}")


@contextmanager
def wishes(booths: Booths, changes: list[Change]) -> Iterator[list[Wish]]:
    """Lend booths with something to change in each."""
    with booths.borrowed([one.way for one in changes]) as found:
        yield [Wish(*both) for both in zip(changes, found, strict=True)]


def changes_of(booths: Booths) -> list[Change]:
    return [*CHANGES, *([RICH_EDIT] if booths.is_new else [])]


def wait_until_over(found: list[Wish]) -> None:
    for one in found:
        wait_until(one.is_over)


TROUBLES: dict[str, Facts] = {
    "500": {"status": 500},
    "502 with html": {"status": 502},
    "garbage": {"do": "garbage"},
    "a cut connection": {"do": "drop"},
    "a token that is not accepted": {"status": 401},
    "no answer": {"do": "hang"},
}


@each("name", TROUBLES)
def test_a_change_is_made_after_a_trouble_which_holds_no_post(booths: Booths, name: str) -> None:
    with wishes(booths, changes_of(booths)) as found:
        faults = [one.fault(times=None, **TROUBLES[name]) for one in found]
        for one in found:
            one.utter()
        booths.office.api.wait_for(partial(_were_met, faults))
        booths.wait_for_status([one.booth.send("meanwhile", way=TEXT) for one in found], "done")
        assert all(one.is_untouched() and not one.is_over() for one in found)
        for one, fault in zip(found, faults, strict=True):
            fault.clear()
            one.booth.retry()
        wait_until_over(found)
        assert all(one.is_granted() for one in found) and not any(one.complaints() for one in found)


def test_a_wait_that_is_named_for_a_change_holds_its_chat_and_no_other(booths: Booths) -> None:
    with wishes(booths, changes_of(booths)) as found:
        faults = [one.fault(retry_after=60) for one in found]
        for one in found:
            one.utter()
        booths.wait_for_error([one.booth for one in found], "429")
        held = [one.booth.send("held", way=TEXT) for one in found]
        booths.wait_for_status([one.booth.say("meanwhile") for one in found], "done")
        assert booths.statuses(held) == {"pending"}
        assert all(one.is_untouched() and not one.is_over() for one in found)
        for one in found:
            one.booth.retry()
        booths.wait_for_status(held, "done")
        wait_until_over(found)
        assert all(one.is_granted() for one in found) and {fault.hits for fault in faults} == {1}


@each("what", [{"do": "lose_answer"}, {"status": 500, "carry_out": True}])
def test_a_change_that_was_made_unheard_is_a_success_the_next_time(booths: Booths, what: Facts) -> None:
    with wishes(booths, changes_of(booths)) as found:
        faults = [one.fault(**what) for one in found]
        for one in found:
            one.utter()
        booths.office.api.wait_for(partial(_were_met, faults))
        for one in found:
            wait_until(one.is_over_or_retried)
        assert all(one.is_granted() and one.posts[0].revision <= 1 for one in found)
        assert not any(one.complaints() for one in found)


REFUSALS: dict[str, dict[str, str]] = {  # by the method; "": of all
    "blocked": {"": "403 Forbidden: bot was blocked by the user"},
    "unknown chat": {"": "400 Bad Request: chat not found"},
    "not any more": {
        "editMessageText": "400 Bad Request: message can't be edited",
        "editMessageCaption": "400 Bad Request: message can't be edited",
        "deleteMessage": "400 Bad Request: message can't be deleted for everyone",
        "setMessageReaction": "400 Bad Request: REACTION_INVALID",
    },
}


@each("name", REFUSALS)
def test_a_change_that_is_refused_is_given_up_and_its_agent_is_told(booths: Booths, name: str) -> None:
    with wishes(booths, changes_of(booths)) as found:
        for one in found:
            given = REFUSALS[name]
            status, _, words = given.get(one.change.method, given.get("", "")).partition(" ")
            one.fault(times=None, status=int(status), description=words)
            one.utter()
            wait_until(one.is_over)
            assert one.is_untouched(), one.change
            assert [words in told for told in one.complaints()] == [True], one.change
        booths.wait_for_status([one.booth.send("after", way=TEXT) for one in found], "done")


def test_what_is_so_already_is_a_success(booths: Booths) -> None:
    words = {
        "editMessageText": "message is not modified: specified new message content is the same",
        "editMessageCaption": "message is not modified: specified new message content is the same",
        "deleteMessage": "message to delete not found",
    }
    with wishes(booths, [one for one in changes_of(booths) if one is not REACTION]) as found:
        for one in found:
            one.fault(times=None, status=400, description=f"Bad Request: {words[one.change.method]}")
            one.utter()
        wait_until_over(found)
        assert not any(one.complaints() for one in found)


def test_an_edit_whose_markup_is_refused_goes_without_it(booths: Booths) -> None:
    with wishes(booths, [*EDITS, *([RICH_EDIT] if booths.is_new else [])]) as found:
        for one in found:
            words = "RICH_MESSAGE_INVALID" if one.change is RICH_EDIT else "can't parse entities: odd"
            one.fault(status=400, description=f"Bad Request: {words}")
            one.utter()
        wait_until_over(found)
        assert all(one.is_granted() for one in found)
        text, caption, *rich = [one.posts[0] for one in found]
        assert text.entities == caption.entities == []
        assert [(one.rich_source, one.entities[0]["type"]) for one in rich] == [(None, "pre")] * len(rich)


def test_what_is_changed_while_the_server_is_gone_is_changed_when_it_is_back(booths: Booths) -> None:
    with wishes(booths, changes_of(booths)) as found:
        booths.office.api.stop_listening()
        try:
            for one in found:
                one.utter()
            for one in found:
                wait_until(one.waits)
        finally:
            booths.office.api.listen_again()
        for one in found:
            wait_until(one.is_over_or_retried)
        assert all(one.is_granted() for one in found) and not any(one.complaints() for one in found)


def _is_approved(office: TelegramDaemon, chat: Chat) -> bool:
    return bool(office.contact(chat)["state"] == "allowed")


def _were_met(faults: list[Fault]) -> bool:
    return all(fault.hits for fault in faults)


def test_a_press_acts_whatever_goes_wrong_with_what_is_shown_of_it(booths: Booths) -> None:
    office, api = booths.office, booths.office.api
    bot, ada = office.bound_bot("deskbot"), api.add_person("Ada")
    api.fault("setMyCommands", bot=bot, status=500)
    desk = office.pair(ada, bot)
    for number, what in enumerate([*TROUBLES.values(), {"status": 400}, {"retry_after": 60}]):
        stranger = api.add_person(f"Stranger {number}")
        chat = stranger.starts(bot)
        notice = desk.wait_for_text(stranger.first_name)
        wait_until(partial(office.rows, "SELECT 1 FROM post WHERE platform_id = ?", str(notice.id)))
        faults = [
            api.fault(one, bot=bot, **what) for one in ("answerCallbackQuery", "editMessageReplyMarkup")
        ]
        (approve,) = [one.data for one in notice.buttons if one.text == "Approve"]
        ada.presses(notice, str(approve))
        wait_until(partial(_is_approved, office, chat))
        api.wait_for(partial(_were_met, faults))
        api.clear_faults()
    lanes = office.rows("SELECT state, failures FROM lanes WHERE address = ?", address(desk))
    assert lanes in ([], [{"state": "open", "failures": 0}])


# --- live posts, drafts and signs -----------------------------------------------------------------


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
            assert (secrets_shown(office), office.api.complaints) == ([], [])


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
