"""kill -9 of a daemon while updates of Telegram stream in: each is one message in the end, in its order.

`python -m tests.telegram.kill_soak --updates 1000 --seed 7` does it for minutes and prints figures;
test_kill_telegram.py does the same with a few kills.
"""

from __future__ import annotations

import argparse
import itertools
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from hiboss.core.crashpoint import (
    AFTER_COMMIT,
    BEFORE_WRITE,
    COMMANDED,
    DIGESTED,
    IN_GROUP,
    MEDIA_COPIED,
    MEDIA_PLACED,
    TAKEN,
)
from hiboss.testing.bot_api.chats import Chat
from hiboss.testing.bot_api.messages import Message
from hiboss.testing.bot_api.people import Person
from tests.support.telegram_bots import Stored, TelegramDaemon, hash_of, telegram_daemon
from tests.support.waits import wait_until

MOST_HELD = 12  # updates of a stranger: more than 20 would not be kept
HELP = "Commands of hiboss"  # how the answer to /help begins


@dataclass(kw_only=True)
class Expected:
    """A message that must be stored once."""

    text: str
    files: list[str] = field(default_factory=list)
    sent: Message  # its last edit is one of this


class Traffic:
    """Writes, edits, and remembers what each chat must have."""

    def __init__(self, office: TelegramDaemon, chance: random.Random) -> None:
        self.office = office
        self.chance = chance
        self.bot = office.bound_bot("nexbot", privacy=False)
        self.expected: dict[Chat, list[Expected]] = {}
        self.commands = 0
        self.albums = 0
        self.eras = 0
        self.strangers: list[tuple[Person, Chat]] = []  # not approved yet
        self._numbers = itertools.count(1)
        api = office.api
        self.ada = api.add_person("Ada", username="ada")
        self.bob = api.add_person("Bob", username="bob")
        self.cyd = api.add_person("Cyd")
        self.desk = office.pair(self.ada, self.bot)
        group = api.add_group("Team", [self.ada, self.bob, self.cyd, self.bot])
        office.approve(group)
        self.known: list[tuple[Person, Chat]] = [(self.ada, self.desk), (self.ada, group), (self.bob, group)]
        self.known += [(one, office.approved(one, self.bot)) for one in (self.bob, self.cyd)]
        self.group = group
        office.settle()
        self._steps: list[tuple[Callable[[], None], int]] = [
            (self.text, 8),
            (self.photo, 2),
            (self.album, 1),
            (self.edit, 2),
            (self.command, 1),
            (self.stranger, 2),
        ]

    @property
    def updates(self) -> int:
        """Return how many updates there were."""
        return self.bot.confirmed + len(self.bot.pending)

    # --- what people do ----------------------------------------------------------------

    def step(self) -> None:
        """Let somebody do something."""
        steps, weights = zip(*self._steps, strict=True)
        self.chance.choices(steps, weights)[0]()

    def everything(self) -> list[Callable[[], None]]:
        """Return steps that pass every point of the intake."""
        return [
            self.text,
            self.photo,
            self.command,
            self.stranger,
            self.album,
            self.edit,
            self.photo,
            self.text,
        ]

    def text(self) -> None:
        person, chat = self.chance.choice(self.known)
        self._says(person, chat)

    def photo(self) -> None:
        person, chat = self.chance.choice(self.known)
        self._sends_photo(person, chat)

    def album(self) -> None:
        """Send an album; in the group somebody writes between its parts."""
        person, chat = self.chance.choice(self.known)
        self._sends_album(person, chat)

    def edit(self) -> None:
        """Change a text or a caption, now and then without a change that can be seen."""
        written = [one for found in self.expected.values() for one in found if len(one.files) <= 1]
        if not written:
            return self.text()
        chosen = self.chance.choice(written)
        if self.office.api.world.chat_of(chosen.sent) in [one for _, one in self.strangers]:
            return self.text()  # more of a stranger than is held would be dropped
        if self.chance.random() < 0.2:
            self.ada.edits(chosen.sent)
        else:
            chosen.text = f"{self._words()} (edited)"
            self.ada.edits(chosen.sent, chosen.text)
        return None

    def command(self) -> None:
        self.ada.says(self.desk, "/help")
        self.commands += 1

    def stranger(self) -> None:
        """Let a stranger write, a new one or one who waits; some are approved."""
        if self.strangers and self.chance.random() < 0.4:
            self.approve_one()
        if not self.strangers or (len(self.strangers) < 3 and self.chance.random() < 0.5):
            person = self.office.api.add_person(f"Eve{next(self._numbers)}")
            self.strangers.append((person, self.office.api.private_chat(person, self.bot)))
        person, chat = self.chance.choice(self.strangers)
        if len(chat.history) > MOST_HELD - 4:
            return
        self.chance.choice([self._says, self._says, self._sends_photo, self._sends_album])(person, chat)

    def approve_one(self) -> None:
        """Approve a stranger, if the daemon runs and knows them already."""
        person, chat = self.chance.choice(self.strangers)
        known = self.office.rows("SELECT state FROM contact WHERE platform_id = ?", str(chat.id))
        if not known or self.office.daemon.process is None:
            return
        if self.office.try_approve(chat):
            self.strangers.remove((person, chat))
            self.known.append((person, chat))

    def begin_new_ids(self) -> None:
        """Let the server count anew. Nothing may be pending."""
        assert not self.bot.pending
        self.eras += 1
        if self.chance.random() < 0.5:
            self.office.api.advance(days=8)
        else:
            self.bot.updates.next_id = self.chance.randrange(
                1_000, max(2_000, self.bot.updates.next_id - 5_000)
            )

    def _says(self, person: Person, chat: Chat) -> None:
        words = self._words()
        self._expect(chat, person.says(chat, words), words)

    def _sends_photo(self, person: Person, chat: Chat) -> None:
        words, data = self._words(), self._data()
        self._expect(chat, person.sends_photo(chat, data, caption=words), words, data)

    def _sends_album(self, person: Person, chat: Chat) -> None:
        words, album = self._words(), person.begins_album(chat)
        parts = [self._data() for _ in range(self.chance.randint(2, 4))]
        self.albums += 1
        for number, data in enumerate(parts):
            sent = album.add(data, words if number == 0 else "")
            if number == 0:
                self._expect(chat, sent, words, *parts)
                if chat is self.group:
                    self._says(self.cyd, chat)

    def _expect(self, chat: Chat, sent: Message, text: str, *files: bytes) -> None:
        found = Expected(text=text, files=[hash_of(one) for one in files], sent=sent)
        self.expected.setdefault(chat, []).append(found)

    def _words(self) -> str:
        return f"words {next(self._numbers)}"

    def _data(self) -> bytes:
        return b"\xff\xd8" + self.chance.randbytes(self.chance.randint(10, 60_000))

    # --- what must be there --------------------------------------------------------------

    def faults(self) -> list[str]:
        """Compare what is stored with what was sent; return what is wrong, best nothing."""
        found = [problem for chat in self.expected for problem in self._faults_of(chat)]
        rows = self.office.rows("SELECT update_id, outcome, error FROM platform_update")
        found += [f"an update was given up: {one}" for one in rows if one["outcome"] in (None, "failed")]
        if len(rows) != self.updates:
            found.append(f"{self.updates} updates are {len(rows)} rows")
        answers = self.office.rows("SELECT id FROM message WHERE text LIKE ?", f"{HELP}%")
        if len(answers) != self.commands + len(self._started()):
            found.append(f"{self.commands} commands have {len(answers)} answers")
        return found

    def _started(self) -> list[Message]:
        """Return what the boss sent that is answered as /help is: none, since he was paired with a code."""
        return [one for one in self.desk.messages if one.text == "/start"]

    def _faults_of(self, chat: Chat) -> list[str]:
        wanted = [Stored(one.text, tuple(one.files)) for one in self.expected[chat]]
        stored = self.office.messages(chat)
        if wanted == stored:
            return []
        lost, more = Counter(wanted) - Counter(stored), Counter(stored) - Counter(wanted)
        order = [] if lost or more else ["the order is another one"]
        return [f"{chat}: {problem}" for problem in (*order, *map(_lost, lost), *map(_more, more))]


def _lost(one: Stored) -> str:
    return f"lost: {one.text!r} with {len(one.files)} files"


def _more(one: Stored) -> str:
    return f"too much: {one.text!r} with {len(one.files)} files"


# --- the kills ------------------------------------------------------------------------------------


POINTS = (TAKEN, DIGESTED, COMMANDED, MEDIA_COPIED, MEDIA_PLACED, BEFORE_WRITE, IN_GROUP, AFTER_COMMIT)
IN_A_ROW = 3  # kills: after one more, an update that was digested at each of them is given up
BURST = 10  # steps of the traffic in one round, about


class Killing:
    """A daemon with traffic, killed in rounds. Between some of them it comes to rest."""

    def __init__(self, office: TelegramDaemon, directory: Path, chance: random.Random) -> None:
        self.office = office
        self.chance = chance
        self.traffic = Traffic(office, self.chance)
        self.causes: Counter[str] = Counter()
        self.slowest = 0.0  # seconds from a start until everything was read
        self._directory = directory
        self._in_a_row = 0

    @property
    def kills(self) -> int:
        return self.causes.total()

    def at_point(self, point: str, passes: int = 1) -> None:
        """Let the daemon die at a named point, while a bit of everything comes in."""
        self._rest_if_needed()
        armed = self._start(point, passes)
        for is_armed in (self.chance.random() < 0.5, True):
            if is_armed:
                armed.touch()
            steps = self.traffic.everything()
            self._stream(steps, len(steps))
        assert self.office.daemon.wait_for_death(30) == -9, f"it did not pass {point}"
        self._died(point)

    def at_random(self, burst: int = BURST) -> None:
        """Kill the daemon while updates stream in, maybe when it has hardly started."""
        self._rest_if_needed()
        polls = len(self.office.polls(self.traffic.bot))
        point = self.chance.choice((None, None, *POINTS))
        armed = self._start(point, self.chance.randint(1, 4))
        if self.chance.random() < 0.7:
            self._wait(lambda: len(self.office.polls(self.traffic.bot)) > polls)
        armed.touch()
        steps = [self.traffic.step] * self.chance.randint(burst // 2, 2 * burst)
        self._stream(steps, self.chance.randint(1, len(steps)))
        died = self.office.daemon.process is None or self.office.daemon.process.poll() is not None
        self.office.daemon.kill()
        self._died(point if died and point is not None else "at random")
        for step in steps[: self.chance.randint(0, 3)]:
            step()  # while nobody listens

    def rest(self) -> None:
        """Start it, and wait until everything that came in is read. Now and then the ids begin anew."""
        started = time.monotonic()
        self.office.start()
        self.office.settle(60)
        self.slowest = max(self.slowest, time.monotonic() - started)
        self._in_a_row = 0
        self.office.daemon.check()
        self.traffic.begin_new_ids()

    def finish(self) -> list[str]:
        """Bring it to rest with everybody approved; return what is wrong."""
        if self.office.daemon.process is None:
            self.rest()
        for _, chat in self.traffic.strangers:
            if chat.history:  # some have written nothing yet
                self.office.approve(chat)
        self.office.settle(60)
        self.office.daemon.check()
        return self.traffic.faults()

    def _rest_if_needed(self) -> None:
        if self._in_a_row >= IN_A_ROW:
            self.rest()

    def _start(self, point: str | None, passes: int) -> Path:
        """Start the daemon so that it dies at this point once a file is there; return the file."""
        armed = self._directory / f"armed-{self.kills}"
        self.office.daemon.kill()  # it is at rest, if it runs
        self.office.start(**({"HIBOSS_CRASH_AT": f"{point}:{passes}@{armed}"} if point else {}))
        return armed

    def _stream(self, steps: list[Callable[[], None]], upto: int) -> None:
        """Let steps happen at an uneven pace, so that polls bring one or many."""
        for step in steps[:upto]:
            step()
            time.sleep(self.chance.choice((0, 0, 0.002, 0.02)))

    def _wait(self, condition: Callable[[], bool]) -> None:
        process = self.office.daemon.process
        wait_until(lambda: condition() or process is None or process.poll() is not None)

    def _died(self, cause: str) -> None:
        self.causes[cause] += 1
        self._in_a_row += 1

    def __str__(self) -> str:
        traffic = self.traffic
        causes = ", ".join(f"{cause} {number}" for cause, number in sorted(self.causes.items()))
        messages = sum(map(len, traffic.expected.values()))
        return (
            f"updates: {traffic.updates}\nmessages: {messages} ({traffic.albums} albums) in "
            f"{len(traffic.expected)} chats\ncommands: {traffic.commands}\nnew-ids: {traffic.eras}\n"
            f"kills: {self.kills} ({causes})\nslowest-recovery: {self.slowest:.1f} s"
        )


def _soak(directory: Path, updates: int, seed: int) -> list[str]:
    with telegram_daemon(directory) as office:
        killing = Killing(office, directory, random.Random(seed))
        for point in POINTS:
            killing.at_point(point)
        while killing.traffic.updates < updates:
            killing.at_random()
        faults = killing.finish()
        sys.stdout.write(f"{killing}\nfaults: {len(faults)}\n")
        sys.stdout.write("".join(f"  {one}\n" for one in faults))
        return faults


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--updates", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    given = parser.parse_args()
    sys.stdout.write(f"seed: {given.seed}\n")
    with tempfile.TemporaryDirectory(prefix="hiboss-kill-") as made:
        faults = _soak(Path(made), given.updates, given.seed)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
