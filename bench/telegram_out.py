"""Sends to many Telegram chats: how near they come to what the platform's rates allow.

The platform is the test server (hiboss/testing/bot_api), in this process. It answers in 50 ms and refuses
what is too fast: one a second in a chat, 30 a second of a bot. What the rates allow is the least time in
which a server that answers at once can get them all; nothing can be faster.
"""

from __future__ import annotations

from math import ceil
from pathlib import Path
from sqlite3 import Connection
from statistics import median
from time import monotonic, sleep

from hiboss.testing.bot_api import BotApi
from hiboss.testing.bot_api.bots import Bot
from hiboss.testing.running_daemon import RunningDaemon

from .figures import Figure, Ratio
from .homes import AGENT, TEXT, cpu, new_home
from .load import Load, generate
from .rounds import Size, rounds

CHATS = 100
SENDS = 61  # in a round
CHAT_SECONDS = 1.0  # between two posts in one chat
EACH_SECOND = 30  # of the bot
ANSWER_SECONDS = 0.05
FLOOR = 0.8
WAIT_SECONDS = 300.0
LOOK_SECONDS = 0.1
_LEFT = """
    SELECT count(*) FROM envelope e JOIN address a ON a.id = e.recipient
    WHERE a.kind = 'channel' AND e.status = 0
"""


def measure(directory: Path, size: Size) -> list[Figure]:
    seconds: list[float] = []
    each: list[float] = []
    floods: list[float] = []
    with BotApi(limits=True) as api:
        bot = api.add_bot("nexbot")
        daemon = new_home(directory)
        daemon.start(HIBOSS_TELEGRAM_BASE_URL=api.url)
        try:
            chats = _chats(daemon, api, bot)
            api.delay = ANSWER_SECONDS
            for _ in rounds(size.rounds, f"{SENDS} sends to {CHATS} Telegram chats"):
                sleep(CHAT_SECONDS)  # what was posted before does not count any more
                before, refused = cpu(daemon.pid), len(api.floods)
                sent, took = _send(daemon, chats, SENDS)
                each.append((cpu(daemon.pid) - before) / sent)
                seconds.append(took)
                floods.append(len(api.floods) - refused)
            daemon.check()
        finally:
            daemon.stop()
    return _figures(seconds, each, floods)


def _chats(daemon: RunningDaemon, api: BotApi, bot: Bot) -> list[str]:
    """Let so many people write to the bot, and approve them; return the addresses of their chats."""
    boss, settings = daemon.token("boss"), {"adapter_token": bot.token}
    daemon.call("agent.bind", token=boss, name=AGENT, adapter_type="telegram", settings=settings)
    people = [api.add_person(f"Person {number}") for number in range(CHATS)]
    for person in people:
        person.starts(bot)
    chats = [f"channel:telegram:{person.id}" for person in people]
    with daemon.database() as connection:
        _until_none(connection, f"SELECT {CHATS} - count(*) FROM contact")
        for chat in chats:
            daemon.call("contact.approve", token=boss, contact=chat)
        _until_none(connection, _LEFT)  # they are told
    return chats


def _send(daemon: RunningDaemon, chats: list[str], sends: int) -> tuple[int, float]:
    """Send one after the other, round the chats, as fast as it goes.

    Return how many were sent, and the seconds from the first send to the last confirmed post.
    """
    load = Load(
        socket=daemon.home.socket,
        method="envelope.send",
        params={"token": daemon.token(AGENT), "text": TEXT},
        to=chats,
        seconds=WAIT_SECONDS,
        warm_seconds=0.0,
        most=sends,
    )
    with daemon.database() as connection:
        last = connection.execute("SELECT max(id) FROM message").fetchone()[0]
        [sent] = generate(load)
        _until_none(connection, _LEFT)
        posted, begin, end = connection.execute(
            """
            SELECT count(*), min(m.created_at), max(p.posted_at) FROM message m
            JOIN envelope e ON e.message = m.id JOIN post p ON p.envelope = e.id
            WHERE m.id > ? AND e.status = 1
            """,
            (last,),
        ).fetchone()
    if posted != sent.answered:
        raise AssertionError(f"{sent.answered} were sent and {posted} are posted")
    return posted, float(end - begin) / 1000


def _until_none(connection: Connection, query: str) -> None:
    """Wait until a query counts none."""
    end = monotonic() + WAIT_SECONDS
    while left := connection.execute(query).fetchone()[0]:
        if monotonic() > end:
            raise AssertionError(f"{left} are left after {WAIT_SECONDS:.0f} s: {' '.join(query.split())}")
        sleep(LOOK_SECONDS)


def _figures(seconds: list[float], each: list[float], floods: list[float]) -> list[Figure]:
    allowed = max((ceil(SENDS / CHATS) - 1) * CHAT_SECONDS, (ceil(SENDS / EACH_SECOND) - 1) * 1.0)
    reached = Ratio(
        key="allowed",
        value=median(allowed / took for took in seconds),
        of=f"of what the rates allow ({SENDS} in {allowed:.0f} s)",
        floor=FLOOR,
        needs_quiet=True,
    )
    return [
        Figure(
            key="telegram_posts",
            work=f"Telegram: {SENDS} sends to {CHATS} chats",
            taken=[SENDS / took for took in seconds],
            unit="/s",
            ratios=(reached,),
        ),
        Figure(
            key="telegram_floods",
            work="posts that Telegram refused as too fast",
            taken=floods,
            unit="429s",
            at_most=0.0,
            longest=True,
            grain=1.0,
        ),
        Figure(
            key="telegram_post_cpu",
            work="daemon CPU a Telegram post, its arrival included",
            taken=each,
            unit="µs",
        ),
    ]
