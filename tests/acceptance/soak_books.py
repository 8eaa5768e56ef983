"""The books of a post office: all deaths of its daemon, compared with what came of it in the end."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from tests.acceptance.soak_post import CHUNK, PLACES, Chunk, Death, Post
from tests.acceptance.soak_turns import Turns


@dataclass(kw_only=True)
class Books:
    """Deaths, and what they may explain. What nothing explains is a fault."""

    kills: int = 0
    stops: int = 0  # clean ones
    accepted: int = 0
    posts: int = 0
    in_hand: int = 0  # at a death; came back
    lost: int = 0
    doubled_in_window: int = 0
    doubled_elsewhere: int = 0
    invariants_broken: int = 0
    by_cause: Counter[str] = field(default_factory=Counter)
    faults: dict[str, None] = field(default_factory=dict)  # each once, in order
    files: Counter[str] = field(default_factory=Counter)
    turns: Turns = field(default_factory=Turns)  # of agents at work
    figures: Counter[str] = field(default_factory=Counter)  # of the rough platform and the schedules

    def __str__(self) -> str:
        causes = ", ".join(f"{cause} {number}" for cause, number in sorted(self.by_cause.items()))
        lines = [
            f"kills: {self.kills} ({causes})",
            f"clean-stops: {self.stops}",
            f"accepted: {self.accepted}",
            f"posts-confirmed: {self.posts}",
            f"files-received: {self.files.total()}",
            f"in-hand-at-a-kill: {self.in_hand}",
            f"lost: {self.lost}",
            f"doubled-between-confirmed-and-settled: {self.doubled_in_window}",
            f"doubled-elsewhere: {self.doubled_elsewhere}",
            str(self.turns),
            *(f"{name}: {number}" for name, number in sorted(self.figures.items())),
            f"invariants-broken: {self.invariants_broken}",
            f"faults: {len(self.faults)}",
            *(f"fault: {fault}" for fault in list(self.faults)[:20]),
        ]
        return "\n".join(lines)

    def death(self, death: Death, cause: str) -> None:
        self.kills += 1
        self.by_cause[cause] += 1
        self.in_hand += len(death.held)
        for envelope, _ in death.window:
            if envelope not in death.held:
                self.fault(f"{envelope} was posted and not marked as in hand")

    def fault(self, what: str) -> None:
        self.faults[what] = None

    def lose(self, what: str) -> None:
        self.lost += what not in self.faults
        self.fault(what)

    def double(self, what: str) -> None:
        self.doubled_elsewhere += what not in self.faults
        self.fault(what)

    def files_of(self, address: str, found: list[str], wanted: set[str]) -> None:
        """What came in from a channel: each file once."""
        self.files[address] = len(found)
        for name, number in Counter(found).items():
            if number > 1:
                self.double(f"{name} came {number} times from {address}")
            if name not in wanted:
                self.fault(f"{name} came from {address}, and nobody put it there")
        for name in wanted - set(found):
            self.lose(f"{name} did not come from {address}")

    def doubled_messages(self, texts: list[str]) -> None:
        for text in texts:
            self.double(f"stored twice: {text[:60]}")

    def add(self, other: Books) -> None:
        """The books of another home, closed for good."""
        for name in ("kills", "stops", "accepted", "posts", "in_hand", "lost", "doubled_in_window"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.doubled_elsewhere += other.doubled_elsewhere
        self.invariants_broken += other.invariants_broken
        self.by_cause += other.by_cause
        self.files += other.files
        self.turns.add(other.turns)
        for name, number in other.figures.items():  # `+` would drop the zeros
            self.figures[name] += number
        self.faults |= other.faults

    def close(self, post: Post, deaths: list[Death]) -> None:
        """Everything is quiet: is each envelope where it belongs, and each post explained?"""
        self._invariants(post)
        self._posts(post, deaths)
        self._handovers(post, deaths)

    def _invariants(self, post: Post) -> None:
        try:
            post.daemon.check()
        except AssertionError as error:
            self.invariants_broken += 1
            self.fault(str(error))

    def _posts(self, post: Post, deaths: list[Death]) -> None:
        window = Counter(chunk for death in deaths for chunk in death.window)
        times = Counter((one["id"], one["number"]) for one in post.posts())
        self.posts = sum(times.values())
        self.doubled_in_window = sum(min(times[one] - 1, window[one]) for one in times)
        for one, number in times.items():
            if number - 1 > window[one]:
                self.double(f"{one} was posted {number} times, and {window[one]} kills explain it")
        self._each_is_posted(post, times)
        for place in PLACES:
            self._in_order(post, place)

    def _each_is_posted(self, post: Post, times: Counter[Chunk]) -> None:
        # The rows first: schedules fire all the time, and what is done now is there afterwards.
        rows = _posted_rows(post)
        out = post.out()
        settled = {row["id"] for row in rows if row["status"] != 0}
        later = {f"{row['id']}.txt" for row in _posted_rows(post) if row["id"] not in settled}
        for row in rows:
            if row["error_kind"] == "crashed":  # parked; it may have been posted at each of these deaths
                out.pop(f"{row['id']}.txt", None)
            if row["status"] != 1:
                continue
            text = row["text"]
            if row["name"] == "folder:tray":
                is_there = out.pop(f"{row['id']}.txt", None) == text
            else:
                is_there = all(times[row["id"], number] for number in range(-(-len(text) // CHUNK)))
            if not is_there:
                self.lose(f"{row['id']} to {row['name']} is done and not posted")
        if unknown_files := set(out) - later:
            self.fault(f"files that nobody sent: {sorted(unknown_files)}")
        if unknown := {one[0] for one in times} - {row["id"] for row in rows}:
            self.fault(f"posted and not stored: {unknown}")

    def _in_order(self, post: Post, place: str) -> None:
        """One at a time, in the order of arrival; only the one in hand may come again."""
        rows = post.rows("SELECT 'e' || id AS id, arrived FROM envelope WHERE arrived IS NOT NULL")
        rank = {row["id"]: row["arrived"] for row in rows}
        posted = [(rank.get(one, -1), number) for one, number in post.posted(place)]
        for before, after in pairwise(posted):
            if after < before:
                self.fault(f"{place}: {after} was posted after {before}")

    def _handovers(self, post: Post, deaths: list[Death]) -> None:
        """One for the last, one for each failure, one for each death in hand, one for a stop between chunks."""
        died = Counter(envelope for death in deaths for envelope in death.held)
        rows = post.rows(
            """
            SELECT 'e' || e.id AS id, e.status, e.handovers, e.attempts,
                   (SELECT count(*) FROM post p WHERE p.envelope = e.id) > 1 AS in_chunks
            FROM envelope e JOIN address a ON a.id = e.recipient
            WHERE a.kind = 'channel' AND a.name NOT LIKE 'rough:%' AND e.status IN (1, 2)
            """
        )
        for row in rows:
            expected = row["attempts"] + died[row["id"]] + (row["status"] == 1)
            stopped = self.stops if row["in_chunks"] else 0
            if not expected <= row["handovers"] <= expected + stopped:
                self.fault(f"{row['id']} was handed over {row['handovers']} times, not {expected}")


def _posted_rows(post: Post) -> list[dict[str, Any]]:
    """The envelopes to the folder and the scripted places."""
    return post.rows(
        """
        SELECT 'e' || e.id AS id, e.status, e.error_kind, a.name, m.text FROM envelope e
        JOIN message m ON m.id = e.message JOIN address a ON a.id = e.recipient
        WHERE a.kind = 'channel' AND a.name NOT LIKE 'rough:%'
        """
    )
