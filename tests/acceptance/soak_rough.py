"""The rough platform in a post office: who sends there, and its book compared with the database.

Lost: done in the database, and not in the book. Doubled: in the book more often than deaths and lost
answers explain. Early: before its time, or before a time the platform had named.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hiboss.core import clock
from tests.acceptance.soak_clients import Asked, Client
from tests.acceptance.soak_platform import CHATS, CHUNK, KEYED, Accepted, Chunk, Platform
from tests.acceptance.soak_post import Death, Post, Row
from tests.support.waits import wait_until

SENDERS = 2
PRIORITIES = ("low", "normal", "normal", "normal", "high", "critical")
DRAIN_SECONDS = 90  # a healthy platform has everything by then: two guessed waits, of 5 and 30 seconds

Fault = tuple[str, str]  # lost, double or fault; and what it is


class RoughSender(Client):
    """Sends to the chats of the rough platform, at every priority, also what it never takes."""

    def __init__(self, post: Post, name: str, seed: int) -> None:
        super().__init__(post.daemon, name, seed, agents=("nex",))

    def next(self, number: int) -> Asked:
        chance = self._chance
        time.sleep(chance.uniform(0, 0.06))
        key = f"{self.name}-{number}"
        text = f"{key} ".ljust(chance.choice((CHUNK // 2, CHUNK // 2, 2 * CHUNK, 4 * CHUNK)), "x")
        if chance.random() < 0.05:
            text = f"{key} never at all".ljust(chance.choice((CHUNK, 2 * CHUNK)), "x")
        elif chance.random() < 0.03:
            text = f"{key} ".ljust(CHUNK, "x") + "not further".ljust(2 * CHUNK, "x")
        params: dict[str, Any] = {"token": self._token, "key": key, "text": text}
        params |= {"to": f"channel:rough:{chance.choice(CHATS)}", "priority": chance.choice(PRIORITIES)}
        if chance.random() < 0.2:
            params["deliver_at"] = clock.iso(clock.now() + chance.randrange(10, 1500))
        return Asked(key=key, params=params)


class Rough:
    """The binding of a post office to the rough platform, through many deaths of its daemon."""

    def __init__(self, post: Post, directory: Path, seed: int) -> None:
        self.platform = Platform(directory / "rough", seed)
        self.windows: Counter[Chunk] = Counter()  # accepted, and not recorded when the daemon died
        self._post = post
        self._seen = 0  # how much of the book was there at the last death
        post.boss("agent.bind", name="nex", adapter_type="rough", settings={"path": str(self.platform.root)})
        post.wait_for_adapters()

    def senders(self, name: str, seeds: list[int]) -> list[RoughSender]:
        return [RoughSender(self._post, f"{name}-r{number}", seed) for number, seed in enumerate(seeds)]

    def daemon_ended(self, death: Death, *, killed: bool) -> None:
        """Count what this death may double. What was lost on the network is counted there."""
        if killed:
            chats = {name.removeprefix("rough:"): at for name, at in death.told.items() if name != "rough"}
            self.platform.forget_unstored({**chats, "": death.told.get("rough", 0)})
        new, self._seen = self.platform.book[self._seen :], len(self.platform.book)
        last = {(one.envelope, one.number): one for one in new}
        self.windows.update(chunk for chunk, one in last.items() if one.heard and chunk not in death.recorded)

    def drain(self) -> None:
        """Nothing goes wrong any more: everything must be settled soon, by itself."""
        self.platform.healthy = True
        try:
            wait_until(lambda: not self._pending() and not self._updates_left(), DRAIN_SECONDS)
        except AssertionError:
            lanes = self._post.rows("SELECT * FROM lane")
            raise AssertionError(
                f"stuck with a healthy platform: {self._pending()[:5]}, {self._updates_left()[:5]}, {lanes}"
            ) from None

    def _pending(self) -> list[Row]:
        return self._post.rows(
            """
            SELECT e.id, a.name, e.waits, e.wake_at, e.held_by, e.attempts, e.error_text FROM envelope e
            JOIN address a ON a.id = e.recipient
            WHERE e.status = 0 AND a.kind = 'channel' AND a.name LIKE 'rough:%'
            """
        )

    def _updates_left(self) -> list[str]:
        came = {row["text"] for row in self._post.received(f"rough:{CHATS[0]}")}
        return [text for text in self.platform.updates if text not in came]

    # --- figures -------------------------------------------------------------------------

    def figures(self) -> Counter[str]:
        book, platform = self.platform.book, self.platform
        times = Counter((one.envelope, one.number) for one in book)
        found = Counter({f"platform-{what}": number for what, number in platform.happened.items()})
        found["platform-accepted"] = len(book)
        found["platform-refused-for-good"] = len(platform.refused)
        found["platform-recognized-repeats"] = platform.repeats
        found["platform-updates-sent"] = len(platform.updates)
        found["windows-of-kills"] = self.windows.total()
        found["windows-of-lost-answers"] = platform.lost.total()
        found["doubled-on-the-platform"] = sum(number - 1 for number in times.values())
        found["posted-before-a-named-time"] = len(platform.too_early)
        return found

    # --- looking -------------------------------------------------------------------------

    def faults(self) -> Iterator[Fault]:
        """What nothing explains."""
        for what in self.platform.too_early:
            yield "fault", f"posted too early: {what}"
        yield from Comparison(
            book=self.platform.book,
            rows={row["id"]: row for row in self._envelopes()},
            windows=self.windows + self.platform.lost,
            refused=self.platform.refused,
        ).faults()
        came = Counter(row["text"] for row in self._post.received(f"rough:{CHATS[0]}"))
        for text, number in came.items():
            if number > 1 or text not in self.platform.updates:
                yield "double", f"{text} came in {number} times"

    def _envelopes(self) -> list[Row]:
        return self._post.rows(
            """
            SELECT 'e' || e.id AS id, e.status, e.priority, e.arrived, e.error_kind, m.text, m.deliver_at
            FROM envelope e JOIN message m ON m.id = e.message JOIN address a ON a.id = e.recipient
            WHERE a.kind = 'channel' AND a.name LIKE 'rough:%'
            """
        )


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """The book of a platform beside the rows of the database."""

    book: list[Accepted]
    rows: dict[str, Row]  # of envelopes, by id
    windows: Counter[Chunk]  # how often each chunk may have been accepted without being recorded
    refused: set[str] = field(default_factory=set)

    def faults(self) -> Iterator[Fault]:
        yield from self._doubled()
        yield from self._settled()
        yield from self._not_early()
        for chat in CHATS:
            posted = [one for one in self.book if one.chat == chat and one.envelope in self.rows]
            yield from self._in_one_piece(posted)
            yield from self._in_order(posted)

    def _doubled(self) -> Iterator[Fault]:
        times = Counter((one.envelope, one.number, one.chat) for one in self.book)
        for (envelope, number, chat), found in times.items():
            explained = 0 if chat == KEYED else self.windows[envelope, number]
            if found - 1 > explained:
                yield "double", f"{envelope}.{number} was accepted {found} times; {explained} are explained"

    def _settled(self) -> Iterator[Fault]:
        chunks = {(one.envelope, one.number): one.text for one in self.book}
        if unknown := {one.envelope for one in self.book} - self.rows.keys():
            yield "fault", f"on the platform and not stored: {sorted(unknown)[:5]}"
        for number, row in self.rows.items():
            if row["status"] == 1:
                wanted = [row["text"][at : at + CHUNK] for at in range(0, len(row["text"]), CHUNK)]
                if [chunks.get((number, place)) for place in range(len(wanted))] != wanted:
                    yield "lost", f"{number} is done and not on the platform"
                if number in self.refused:
                    yield "fault", f"{number} was refused and is done"
            elif row["status"] == 2 and row["error_kind"] not in ("refused", "crashed"):
                yield "fault", f"{number} failed: {row['error_kind']}"

    def _not_early(self) -> Iterator[Fault]:
        for one in self.book:
            time_of_it = self.rows.get(one.envelope, {}).get("deliver_at")
            if time_of_it is not None and one.at * 1000 < time_of_it - 1:
                yield "fault", f"{one.envelope} was posted {time_of_it - one.at * 1000:.0f} ms early"

    def _in_one_piece(self, posted: list[Accepted]) -> Iterator[Fault]:
        """What is partly posted goes first: nothing else is between its chunks, and they are in order."""
        partly: Accepted | None = None
        for one in posted:
            if partly is None or self.rows[partly.envelope]["status"] == 2:
                pass  # what failed in the middle is over
            elif one.envelope != partly.envelope:
                # The first chunk may not have been recorded: then nobody knows that it has begun.
                if partly.number or not self.windows[partly.envelope, 0]:
                    yield "fault", f"{one.envelope} was posted between the chunks of {partly.envelope}"
            elif one.number not in (partly.number, partly.number + 1):
                yield "fault", f"{one.envelope}: chunk {one.number} came after chunk {partly.number}"
            last = (len(self.rows[one.envelope]["text"]) - 1) // CHUNK
            partly = None if one.number == last else one

    def _in_order(self, posted: list[Accepted]) -> Iterator[Fault]:
        """Those of one priority begin in the order of their arrival."""
        begun: dict[int, Row] = {}
        for number in dict.fromkeys(one.envelope for one in posted):
            row = self.rows[number]
            before = begun.get(row["priority"])
            if before is not None and row["arrived"] < before["arrived"]:
                yield "fault", f"{number} was posted after {before['id']}, which arrived later"
            begun[row["priority"]] = row
