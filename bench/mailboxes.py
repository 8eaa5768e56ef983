"""Mailboxes: every list and count in a home of a million messages, against the same in one of ten thousand.

One connection to each, call by call in turns; what counts is that both cost about the same. The sets of
filters are those of the named list in the code (FLAT), so a new one is measured too. Then, in the small home,
sends to a group of fifty against sends to one, in turns as well.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from hiboss.store.list_query import FLAT, Position
from hiboss.testing.running_daemon import RunningDaemon

from .figures import AT_MOST, Figure, Ratio
from .homes import AGENT, TEXT, say
from .load import Load, Outcome, generate
from .mailbox_homes import (
    AGENTS,
    FIFTY,
    GROUP,
    LONG_THREAD,
    OTHERS,
    ROLE,
    RUN,
    SHORT_THREAD,
    TEAM,
    mailbox_home,
)

SMALL = 10_000  # messages of the small home
LIMIT, GROUP_LIMIT = 3.0, 10.0
ONE_OF_MANY = OTHERS[6]  # has a hundredth of what there is; AGENT has a third
CREW = "crew-0"
SCOPE, REF = {"type": "module", "value": "auth"}, {"type": "issue", "value": "42"}

# A value for each parameter of a flat set of filters. c0 is the conversation of CREW.
FILTERS: dict[str, Any] = {
    "unread": True,
    "unread_for_agent": AGENT,
    "snoozed": True,
    "thread_id": LONG_THREAD,
    "conversation_id": "c0",
    "scope": SCOPE,
    "ref": REF,
    "mentions": True,
    "mention_role": ROLE,
    "run_id": f"r{RUN}",
    "author_id": AGENT,
}


@dataclass(frozen=True, kw_only=True)
class Look:
    """One way to look into a mailbox. The answer must have so many in this field."""

    key: str
    work: str
    method: str
    params: dict[str, Any] = field(default_factory=dict)
    answer: str = "messages"
    number: int = 10
    who: str = AGENT
    deep: bool = False  # a page by cursor, in the middle of the list


def flat_looks() -> list[Look]:
    """A look for each parameter of a flat set of filters, and for each box without any."""
    found = []
    for name, parameters in FLAT.items():
        for parameter in parameters or ("",):
            if parameter and parameter not in FILTERS:
                raise AssertionError(
                    f"bench/mailboxes.py has no value for {parameter}, of the flat set {name}"
                )
            params = {parameter: FILTERS[parameter]} if parameter else _by_box(name)
            work = f"message.list, {parameter or params.get('box', 'the inbox')}"
            key = f"messages_{parameter or name}"
            found.append(Look(key=key, work=work, method="message.list", params=params))
    return found


def _by_box(name: str) -> dict[str, Any]:
    """Return the parameters of a set that is asked for by the name of a box; the inbox needs none."""
    return {} if name == "box" else {"box": name}


def _messages(key: str, work: str, **params: Any) -> Look:
    return Look(key=f"messages_{key}", work=f"message.list, {work}", method="message.list", params=params)


def _thread(key: str, work: str, thread: str) -> Look:
    params = {"thread_id": thread, "sort_order": "desc"}
    return Look(key=key, work=f"thread.get, {work}", method="thread.get", params=params)


OF_MESSAGES = (
    replace(_messages("count", "one message and the count", page_size=1), number=1),
    replace(_messages("hundred", "100 of the inbox", page_size=100), number=100),
    replace(_messages("deep", "the inbox, in the middle"), deep=True),
    replace(_messages("thread_deep", "thread_id, in the middle", thread_id=LONG_THREAD), deep=True),
    replace(_messages("one_of_many", f"the inbox of one of {AGENTS}"), who=ONE_OF_MANY),
    replace(_messages("author_by_boss", "author_id, by the boss", author_id=ONE_OF_MANY), who="boss"),
)
OF_THREADS = (
    Look(key="threads", work="thread.list", method="thread.list", answer="threads"),
    Look(
        key="threads_deep",
        work="thread.list, in the middle",
        method="thread.list",
        answer="threads",
        deep=True,
    ),
    Look(
        key="threads_scope",
        work="thread.list, scope",
        method="thread.list",
        params={"scope": SCOPE},
        answer="threads",
    ),
    _thread("thread_long", "a tenth of all messages", LONG_THREAD),
    replace(_thread("thread", "a thousandth of all messages", SHORT_THREAD), number=7),
)
OF_BOXES = (
    Look(
        key="conversations",
        work="conversation.list, with count",
        method="conversation.list",
        params={"count": True},
        answer="conversations",
    ),
    Look(
        key="conversation",
        work="conversation.messages",
        method="conversation.messages",
        params={"conversation": CREW},
        answer="envelopes",
    ),
    Look(
        key="envelopes_unread",
        work="envelope.list, unread",
        method="envelope.list",
        params={"unread": True},
        answer="envelopes",
    ),
    Look(
        key="envelopes_count",
        work="envelope.list, with count",
        method="envelope.list",
        params={"count": True},
        answer="envelopes",
    ),
    Look(key="briefing", work="agent.briefing", method="agent.briefing", answer="newest", number=5),
)


def looks() -> list[Look]:
    """All that are measured."""
    return [*flat_looks(), *OF_MESSAGES, *OF_THREADS, *OF_BOXES]


def measure(directory: Path, rows: int, seconds: float) -> list[Figure]:
    """Measure in two homes, of so many messages and of SMALL; each look for so many seconds."""
    say(f"writing {rows:,} and {SMALL:,} messages of {AGENTS} agents")
    homes = mailbox_home(directory / "mailboxes", rows), mailbox_home(directory / "few-mails", SMALL)
    try:
        for daemon in homes:
            daemon.start()
        say(f"{len(looks())} lists in both, {seconds:g} s each")
        figures = [_flat(look, homes, rows, seconds) for look in looks()]
        figures += _group_sends(homes[1], 2 * seconds)
        homes[1].check()
    finally:
        for daemon in homes:
            daemon.stop()
    return figures


# --- looking ---------------------------------------------------------------------------


def _flat(look: Look, homes: tuple[RunningDaemon, ...], rows: int, seconds: float) -> Figure:
    large, small = generate(*(_load(daemon, look, seconds) for daemon in homes))
    of = f"× the same in {SMALL:,} ({small.p50:.2f} ms)"
    flat = Ratio(key="flat", value=large.p50 / small.p50, of=of, sense=AT_MOST, floor=LIMIT)
    work = f"{look.work}, of {rows:,} messages"
    return _figure(look.key, work, large, flat)


def _load(daemon: RunningDaemon, look: Look, seconds: float) -> Load:
    params = {"token": daemon.token(look.who), **look.params}
    if "conversation_id" in params:
        shown = daemon.call("conversation.get", token=params["token"], conversation=CREW)
        params["conversation_id"] = shown["conversation"]["id"]
    if look.deep:
        params["cursor"] = _middle(daemon, look.method, params)
    answer = daemon.call(look.method, **params)
    if len(answer[look.answer]) < look.number:
        raise AssertionError(f"{look.key} found {len(answer[look.answer])}, not {look.number}")
    return Load(socket=daemon.home.socket, method=look.method, params=params, seconds=seconds)


def _middle(daemon: RunningDaemon, method: str, params: dict[str, Any]) -> str:
    """The cursor of a page in the middle of a list."""
    cursor: str = daemon.call(method, **params, page_size=100, page=3)["next"]
    if method == "thread.list":  # however long the threads are, there are as many
        return cursor
    epoch = cursor.partition("-")[0]
    position = Position.parse(cursor, epoch)
    return position._replace(number=position.number // 2).text(epoch)


# --- sending ---------------------------------------------------------------------------


def _group_sends(daemon: RunningDaemon, seconds: float) -> list[Figure]:
    """Send to one, to a group that reads along, and to one of which each member is to answer, in turns."""
    say(f"sends to one and to groups of {FIFTY}, in turns")
    addresses = (f"agent:{OTHERS[0]}", f"group:{GROUP}", f"group:{TEAM}")
    one, group, team = generate(*(_send(daemon, to, seconds) for to in addresses))
    work = f"send to a group of {FIFTY}, one connection"
    return [
        _group_figure("group_send", f"{work}, who read along", group, one),
        _group_figure("group_send_all", f"{work}, who are all to answer", team, one),
    ]


def _group_figure(key: str, work: str, sent: Outcome, one: Outcome) -> Figure:
    of = f"× a send to one ({one.p50:.2f} ms)"
    ratio = Ratio(key="to_one", value=sent.p50 / one.p50, of=of, sense=AT_MOST, floor=GROUP_LIMIT)
    return _figure(key, work, sent, ratio)


def _send(daemon: RunningDaemon, to: str, seconds: float) -> Load:
    params = {"token": daemon.token(AGENT), "to": to, "text": TEXT}
    return Load(socket=daemon.home.socket, method="envelope.send", params=params, seconds=seconds)


def _figure(key: str, work: str, taken: Outcome, ratio: Ratio) -> Figure:
    return Figure(
        key=key, work=work, value=taken.p50, unit="ms", p50=taken.p50, p99=taken.p99, ratios=(ratio,)
    )
