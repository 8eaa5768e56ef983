"""A real daemon beside the model of mailboxes: each step is taken in both, and their answers compared."""

from __future__ import annotations

import asyncio
import atexit
import functools
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from freezegun import freeze_time

from hiboss.core.errors import HibossError
from hiboss.core.paths import Home
from hiboss.testing.frozen_clock import NOON, own_logs
from tests.support import mailbox_views as views
from tests.support.daemons import set_up
from tests.support.in_process_daemon import InProcessDaemon
from tests.support.mailbox_model import Mailboxes, Message, Party, Refused

AGENTS, USERS = ("ada", "bob", "cal"), ("mia", "tom")
BEGIN = NOON + timedelta(hours=1)
T = TypeVar("T")


@functools.cache
def _template() -> Path:
    """Make a home with these agents and users, of which each story gets a copy."""
    directory = Path(tempfile.mkdtemp(prefix="hiboss-mailboxes-"))
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    home = set_up(directory)

    async def register() -> None:
        daemon = InProcessDaemon(home, clock, {})
        await daemon.open()
        await daemon.register(*AGENTS)
        for name in USERS:
            await daemon.ask("user.register", name=name, profile=True)
        await daemon.close()

    with own_logs(), freeze_time(NOON, real_asyncio=True) as clock:
        asyncio.run(register())
    return directory / "home"


class Scene:
    """One story: a daemon with a home of its own, a clock that is moved by hand, and the model."""

    answers: ClassVar[Counter[str]] = Counter()  # of all stories, by operation and code

    def __init__(self) -> None:
        template = _template()
        with ExitStack() as stack:
            self._directory = Path(tempfile.mkdtemp(prefix="hiboss-mailboxes-"))
            stack.callback(shutil.rmtree, self._directory)
            home = self._directory / "home"
            shutil.copytree(template, home)
            stack.enter_context(own_logs())
            frost = freeze_time(BEGIN, real_asyncio=True, ignore=["hypothesis"])
            self.daemon = InProcessDaemon(Home(str(home)), stack.enter_context(frost), {})
            self._runner = stack.enter_context(asyncio.Runner())
            self._run(self.daemon.open())
            stack.callback(lambda: self._run(self.daemon.close()))
            self._open = stack.pop_all()
        agents, users = [Party("agent", one) for one in AGENTS], [Party("user", one) for one in USERS]
        self.boxes = Mailboxes([Party("user", "boss"), *agents, *users])  # as they were registered
        self._learned = 0
        self.learn()
        self.checked = 0

    def close(self) -> None:
        self._open.close()

    def _run(self, step: Any) -> Any:
        return self._runner.run(step)

    # --- calls -------------------------------------------------------------------------

    def ask(self, who: Party, method: str, **params: Any) -> Any:
        return self._run(self.daemon.ask(method, who.name, **params))

    def both(self, who: Party, method: str, model: Callable[[], T], **params: Any) -> tuple[T, Any] | None:
        """Take a step in the model and in the daemon; None: both refuse it, with the same code."""
        refused: tuple[str, ...] = ()
        try:
            expected = model()
        except Refused as refusal:
            refused = refusal.codes
        try:
            found = self.ask(who, method, **params)
        except HibossError as error:
            assert error.code in refused, f"{method} of {who}: {error.code}, expected {refused or 'no error'}"
            self.answers[f"{method} {error.code}"] += 1
            return None
        assert not refused, f"{method} of {who} was accepted, expected {refused}"
        self.answers[f"{method} ok"] += 1
        self.learn()
        return expected, found

    def changed(self, who: Party, method: str, model: Callable[[], Any], **params: Any) -> None:
        """Take a step whose answer says how much, or whether, it changed."""
        taken = self.both(who, method, model, **params)
        if taken is not None:
            assert taken[1]["changed"] == taken[0], (method, taken[1]["changed"], taken[0])

    def learn(self) -> None:
        """Give mail and conversations of the model the ids that they have in the daemon."""
        for row in self.daemon.rows(
            """
            SELECT e.id, e.message, m.conversation, a.kind, a.kind || ':' || a.name AS address
            FROM envelope e JOIN message m ON m.id = e.message JOIN address a ON a.id = e.recipient
            WHERE e.id > ? ORDER BY e.id
            """,
            self._learned,
        ):
            self._learned = row["id"]
            assert row["message"] <= len(self.boxes.messages), f"nobody sent m{row['message']}"
            message = self.boxes.messages[row["message"] - 1]
            message.talk.number = f"c{row['conversation']}"
            message.first_envelope = message.first_envelope or row["id"]
            if row["kind"] != "group":
                owners = {one.address: mail for one, mail in message.mails.items()}
                assert row["address"] in owners, f"{row['address']} got m{row['message']}, and should not"
                owners[row["address"]].number = row["id"]
        for message in self.boxes.messages:
            lost = [one for one in message.mails.values() if not one.number]
            assert not lost, f"{[one.owner for one in lost]} did not get {message}"

    # --- time and restarts -------------------------------------------------------------

    def move(self, minutes: int) -> None:
        self.boxes.move(minutes)
        self._run(self.daemon.move(minutes=minutes))
        self.learn()

    def restart(self, minutes: int) -> None:
        """Stop the daemon, and start it again after a while."""
        self.boxes.move(minutes)
        self._run(self.daemon.restart(minutes=minutes))
        self.learn()

    def crash(self) -> None:
        """Start the daemon with what was on disk in the middle of its life, as after a kill."""
        home = Path(self.daemon.home.database).parent
        shutil.copytree(home, self._directory / "crashed", ignore=shutil.ignore_patterns("*-shm", "*.sock"))
        self._run(self.daemon.close())
        shutil.rmtree(home)
        (self._directory / "crashed").rename(home)
        self._run(self.daemon.open())
        self._run(self.daemon.settle())
        self.learn()

    # --- comparing ---------------------------------------------------------------------

    def check_all(self) -> None:
        for who in self.boxes.live:
            self.check(who)
        self.check_groups()
        self.daemon.check()

    def check(self, who: Party) -> None:
        """Compare all that somebody is shown with the model."""
        self.checked += 1
        self._check_boxes(who)
        self._check_messages(who)
        self._check_talks(who)
        self._check_threads(who)

    def _same(self, who: Party, what: str, found: Any, expected: Any) -> None:
        assert found == expected, f"{what} of {who}:\n  found    {found}\n  expected {expected}"

    def _check_boxes(self, who: Party) -> None:
        only = {"arrived": True} if who.is_boss else {}
        for box in ("inbox", "snoozed", "archived", "trash"):
            page = self.ask(
                who, "envelope.list", box=box, oldest_first=True, page_size=100, count=True, **only
            )
            expected = views.box(self.boxes, who, box)
            self._same(who, box, [_envelope(one) for one in page["envelopes"]], expected)
            self._same(who, f"total of {box}", page["total"], len(expected))
        page = self.ask(who, "envelope.list", unread=True, oldest_first=True, page_size=100, count=True)
        self._same(who, "unread", [one["id"] for one in page["envelopes"]], views.unread(self.boxes, who))
        self._same(who, "number of unread", page["total"], len(page["envelopes"]))

    def _check_messages(self, who: Party) -> None:
        unread = len(views.unread(self.boxes, who))
        for params, expected in (
            ({}, views.listed(self.boxes, who)),
            ({"unread": True}, views.listed(self.boxes, who, only_unread=True)),
            ({"snoozed": True}, views.listed(self.boxes, who, snoozed=True)),
            ({"author_id": who.address}, views.own_messages(self.boxes, who)),
        ):
            page = self._page(who, "message.list", **params)
            self._same(who, f"messages {params}", [_message(one) for one in page["messages"]], expected)
            self._same(who, f"total {params}", (page["total"], page["unread"]), (len(expected), unread))
        for one in self.boxes.messages[self.checked % 3 :: 3]:
            self._check_message(who, one)

    def _check_message(self, who: Party, one: Message) -> None:
        shown = self._or_none(who, "message.get", message_id=one.id)
        expected = views.message(self.boxes, who, one) if self.boxes.sees(who, one) else None
        self._same(who, one.id, shown and _message(shown["message"]), expected)

    def _check_talks(self, who: Party) -> None:
        for past in (False, True):
            page = self.ask(who, "conversation.list", page_size=100, past=past, count=True)
            found = {one["id"]: one["unread"] for one in page["conversations"]}
            empty = {number for number in found if number not in {one.number for one in self.boxes.talks}}
            expected = views.own_talks(self.boxes, who, past=past)
            self._same(who, "conversations", {k: v for k, v in found.items() if k not in empty}, expected)
            self._same(who, "number of conversations", page["total"], len(page["conversations"]))
        for talk in self.boxes.talks:
            if talk.number:
                self._check_talk(who, talk)

    def _check_talk(self, who: Party, talk: views.Talk) -> None:
        page = self._or_none(who, "conversation.messages", conversation=talk.number, page_size=100)
        found = page and [(one["seq"], one["message"], _text(one)) for one in page["envelopes"]]
        self._same(who, f"what was said in {talk.number}", found, views.said(self.boxes, who, talk))
        if page is not None and page["envelopes"]:
            parts = [number for one in page["visible"] for number in range(one["first"], one["last"] + 1)]
            self._same(who, f"the numbers of {talk.number}", [one[0] for one in found], parts)
        page = self._or_none(who, "message.list", conversation_id=talk.number, page_size=100)
        found = page and [_message(one) for one in page["messages"]]
        self._same(who, f"the messages of {talk.number}", found, views.messages_of(self.boxes, who, talk))

    def _check_threads(self, who: Party) -> None:
        page = self._page(who, "thread.list")
        expected = views.threads(self.boxes, who)
        self._same(
            who,
            "threads",
            [_thread(*pair) for pair in zip(page["threads"], expected, strict=False)],
            expected,
        )
        self._same(who, "number of threads", (page["total"], len(page["threads"])), (len(expected),) * 2)
        for root in [one for one in self.boxes.messages if one.answers is None][self.checked % 4 :: 4]:
            found = self._or_none(who, "message.list", thread_id=f"t{root.number}", page_size=100)
            shown = found and [_message(one) for one in found["messages"]]
            self._same(who, f"t{root.number}", shown, views.thread_messages(self.boxes, who, root))
            if found is not None:
                unread = sum(mail.unread for mail in self.boxes.mails(who) if mail.message.root is root)
                self._same(who, f"unread of t{root.number}", found["unread"], unread)

    def check_groups(self) -> None:
        for group in self.boxes.groups:
            if group.number and not group.deleted:
                page = self.ask(self.boxes.boss, "conversation.get", conversation=group.number)
                found = {one["address"]: one["role"] for one in page["participants"]}
                self._same(self.boxes.boss, f"the members of {group.name}", found, views.roles(group))

    def _page(self, who: Party, method: str, **params: Any) -> Any:
        return self.ask(who, method, page_size=100, **params)

    def _or_none(self, who: Party, method: str, **params: Any) -> Any:
        """Return an answer; None: there is no such thing for this one."""
        try:
            return self.ask(who, method, **params)
        except HibossError as error:
            assert error.code == "not_found", f"{method} of {who}: {error.code}"
            return None


# --- answers in the form of the model ------------------------------------------------------


def _text(one: Any) -> str:
    return views.NOTICE if one["sender"] == "agent:system" else str(one["text"])


def _envelope(one: Any) -> views.Row:
    marks = one["read_at"] is not None, one["acked_at"] is not None, one["snoozed_until"] is not None
    return one["id"], one["message"], _text(one), one["status"], *marks


def _message(one: Any) -> views.Row:
    text = views.NOTICE if one["agent_id"] == "system" else one["body"]["content"]
    return one["message_id"], text, one["deleted"], one["seq"], one["is_read"]


def _thread(one: Any, expected: views.Thread) -> views.Thread:
    title = views.NOTICE if one["created_by"] == "system" else one["title"]
    last = one["last_sender"] if expected.last_sender is not None else None
    return views.Thread(
        one["thread_id"], one["message_count"], one["unread_count"], one["created_by"], title, last
    )
