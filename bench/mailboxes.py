"""Mailboxes: every list and count in a home of a million messages, against the same in one of ten thousand.

The sets of filters are those of the named list in the code (FLAT), so a new one is measured too. Then, in the
small home, sends to a group of fifty against sends to one, in turns as well.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

from hiboss.store.list_query import FLAT, Position
from hiboss.testing.running_daemon import RunningDaemon

from . import looks as looking
from .figures import AT_MOST, Figure, Ratio, middle_ratio, timed
from .homes import AGENT, TEXT
from .load import Outcome, generate
from .looks import Look
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
from .rounds import Size, rounds, say

SMALL = 10_000  # messages of the small home
GROUP_LIMIT = 10.0
GROUP_CALLS = 20  # of each kind in a round
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
            work = f"message.list of {{rows}}, {parameter or params.get('box', 'the inbox')}"
            key = f"messages_{parameter or name}"
            found.append(Look(key=key, work=work, method="message.list", params=params))
    return found


def _by_box(name: str) -> dict[str, Any]:
    """Return the parameters of a set that is asked for by the name of a box; the inbox needs none."""
    return {} if name == "box" else {"box": name}


def _messages(key: str, work: str, **params: Any) -> Look:
    return Look(
        key=f"messages_{key}", work=f"message.list of {{rows}}, {work}", method="message.list", params=params
    )


def _thread(key: str, work: str, thread: str) -> Look:
    params = {"thread_id": thread, "sort_order": "desc"}
    return Look(key=key, work=f"thread.get of {{rows}}, {work}", method="thread.get", params=params)


OF_MESSAGES = (
    replace(_messages("count", "one message and the count", page_size=1), number=1),
    replace(_messages("hundred", "100 of the inbox", page_size=100), number=100),
    replace(_messages("deep", "the inbox, in the middle"), deep=True),
    replace(_messages("thread_deep", "thread_id, in the middle", thread_id=LONG_THREAD), deep=True),
    replace(_messages("one_of_many", f"the inbox of one of {AGENTS}"), who=ONE_OF_MANY),
    replace(_messages("author_by_boss", "author_id, by the boss", author_id=ONE_OF_MANY), who="boss"),
)
OF_THREADS = (
    Look(key="threads", work="thread.list of {rows}", method="thread.list", answer="threads"),
    Look(
        key="threads_deep",
        work="thread.list of {rows}, in the middle",
        method="thread.list",
        answer="threads",
        deep=True,
    ),
    Look(
        key="threads_scope",
        work="thread.list of {rows}, scope",
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
        work="conversation.list of {rows}, with count",
        method="conversation.list",
        params={"count": True},
        answer="conversations",
    ),
    Look(
        key="conversation",
        work="conversation.messages of {rows}",
        method="conversation.messages",
        params={"conversation": CREW},
        answer="envelopes",
    ),
    Look(
        key="envelopes_unread",
        work="envelope.list of {rows}, unread",
        method="envelope.list",
        params={"unread": True},
        answer="envelopes",
    ),
    Look(
        key="envelopes_count",
        work="envelope.list of {rows}, with count",
        method="envelope.list",
        params={"count": True},
        answer="envelopes",
    ),
    Look(key="briefing", work="agent.briefing of {rows}", method="agent.briefing", answer="newest", number=5),
)


def looks() -> list[Look]:
    """All that are measured."""
    return [*flat_looks(), *OF_MESSAGES, *OF_THREADS, *OF_BOXES]


def measure(directory: Path, size: Size) -> list[Figure]:
    """Measure in two homes, of as many messages as wanted and of SMALL."""
    rows = max(size.rows, 10 * SMALL)
    say(f"writing {rows:,} and {SMALL:,} messages of {AGENTS} agents")
    homes = mailbox_home(directory / "many", rows), mailbox_home(directory / "few", SMALL)
    try:
        for daemon in homes:
            daemon.start()
        figures = looking.measure(looks(), homes, _params, (rows, SMALL), size, writer=OTHERS[-1])
        figures += _group_sends(homes[1], size)
        homes[1].check()
    finally:
        for daemon in homes:
            daemon.stop()
    return figures


def _params(daemon: RunningDaemon, look: Look) -> dict[str, Any]:
    params = {"token": daemon.token(look.who), **look.params}
    if "conversation_id" in params:
        shown = daemon.call("conversation.get", token=params["token"], conversation=CREW)
        params["conversation_id"] = shown["conversation"]["id"]
    if look.deep:
        params["cursor"] = _middle(daemon, look.method, params)
    return looking.checked(daemon, look, params)


def _middle(daemon: RunningDaemon, method: str, params: dict[str, Any]) -> str:
    """The cursor of a page in the middle of a list."""
    cursor: str = daemon.call(method, **params, page_size=100, page=3)["next"]
    if method == "thread.list":  # however long the threads are, there are as many
        return cursor
    epoch = cursor.partition("-")[0]
    position = Position.parse(cursor, epoch)
    return position._replace(number=position.number // 2).text(epoch)


# --- sending ---------------------------------------------------------------------------


def _group_sends(daemon: RunningDaemon, size: Size) -> list[Figure]:
    """Send to one, to a group that reads along, and to one of which each member is to answer, in turns."""
    token, socket = daemon.token(AGENT), daemon.home.socket
    loads = [
        looking.call(socket, "envelope.send", GROUP_CALLS, token=token, to=to, text=TEXT)
        for to in (f"agent:{OTHERS[0]}", f"group:{GROUP}", f"group:{TEAM}")
    ]
    found = [generate(*loads) for _ in rounds(size.rounds, f"sends to one and to groups of {FIFTY}")]
    one, group, team = zip(*found, strict=True)
    work = f"send to a group of {FIFTY}, one connection"
    return [
        _group_figure("group_send", f"{work}, who read along", group, one),
        _group_figure("group_send_all", f"{work}, who are all to answer", team, one),
    ]


def _group_figure(key: str, work: str, sent: tuple[Outcome, ...], one: tuple[Outcome, ...]) -> Figure:
    base = [outcome.p50 for outcome in one]
    ratio = Ratio(
        key="to_one",
        value=middle_ratio([outcome.p50 for outcome in sent], base),
        of=f"× a send to one ({median(base):.2f} ms)",
        sense=AT_MOST,
        floor=GROUP_LIMIT,
    )
    return timed(key, work, sent, ratio)
