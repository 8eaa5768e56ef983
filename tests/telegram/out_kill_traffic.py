"""What agents post in several chats while their daemon dies again and again: long texts, files, answers that grow."""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hiboss.core.errors import DaemonUnreachable
from hiboss.testing.bot_api.chats import Chat
from hiboss.testing.bot_api.people import Person
from tests.support.telegram_bots import TelegramDaemon, address

MARK = re.compile(r"s\d+-\d+x")  # each paragraph of a text has one: none may be missing, or come twice
CHUNK = 3_500  # characters: about what goes into one post
WORDS = (
    "the quick fox 🦊",
    "jumps",
    "over",
    "**a lazy dog**",
    "`in code`",
    "while _nobody_",
    "looks 👩\u200d💻",
    "at it",
)
FILES = {
    "one.jpg": b"\xff\xd8one" * 300,
    "two.jpg": b"\xff\xd8two" * 900,
    "three.png": b"\x89PNGthree" * 50,
    "notes.txt": b"notes\n" * 200,
    "report.pdf": b"%PDF-1.4 report" * 100,
    "song.mp3": b"ID3song" * 400,
}

# The program of the agents that answer. What it is asked names the way, and a file with the text to say.
PROGRAM = """
how, name, seconds = re.findall(r"please (\\w+) (\\w+) ([0-9.]+)", "\\n".join(TEXTS))[-1]
text = open(os.path.join(HERE, name)).read()
if how == "fail" and not os.path.exists(os.path.join(HERE, name + ".failed")):
    open(os.path.join(HERE, name + ".failed"), "w").close()
    sys.exit("no disk")
if how == "silent":
    print("NO_REPLY")
    sys.exit()
pieces = [text[at:at + 1500] for at in range(0, len(text), 1500)]
for piece in pieces:
    print(json.dumps({"hiboss": "delta", "text": piece}), flush=True)
    time.sleep(float(seconds) / len(pieces))
print(json.dumps({"hiboss": "final", "text": "NO_REPLY" if how == "hush" else text}), flush=True)
"""


@dataclass(frozen=True, kw_only=True)
class Spot:
    """Where agents post, and who asks them there."""

    chat: Chat
    person: Person
    topic: Any = None
    tag: str = ""  # how the bot is addressed there

    @property
    def address(self) -> str:
        return address(self.chat, self.topic.id if self.topic else None)


@dataclass(kw_only=True)
class Sending:
    """Something that an agent sends, under its key, until it is accepted."""

    key: str
    params: dict[str, Any]
    id: str | None = None  # of the envelope


class OutTraffic:
    """Sends and asks. What is asked in a group or a topic is answered by other agents than in private."""

    def __init__(
        self, office: TelegramDaemon, directory: Path, chance: random.Random, *, hurry: bool = False
    ) -> None:
        """Bind agents to a bot, and let people know it. `hurry`: no run takes long, and none is tried again."""
        self.office = office
        self._hurry = hurry
        self.chance = chance
        self.sendings: list[Sending] = []
        self.asked: dict[str, int] = {}  # how often, by the way in which it is answered
        self._numbers = itertools.count(1)
        self._files = directory / "files"
        self._files.mkdir()
        for name, data in FILES.items():
            (self._files / name).write_bytes(data)
        self.spots, self.quiet = self._spots()  # in the quiet ones nothing overtakes what grows
        self._steps: list[tuple[Callable[[], object], int]] = [
            (self.send, 6),
            (self.send_files, 2),
            (self.ask_something, 3),
        ]

    def _spots(self) -> tuple[list[Spot], list[Spot]]:
        office, api = self.office, self.office.api
        ada, bob, cyd = (api.add_person(name, username=name.lower()) for name in ("Ada", "Bob", "Cyd"))
        for name in ("kai", "mia", "lea", "noa", "ida"):
            office.team.hire(PROGRAM, name)
        self.bot = office.bound_bot("housebot", "kai", privacy=False)
        for name in ("mia", "lea", "noa", "ida", "nex"):
            office.bind(self.bot, name)
        desk, private, other = office.pair(ada, self.bot), bob.starts(self.bot), cyd.starts(self.bot)
        group = api.add_group("Team", [ada, bob, self.bot])
        hall = api.add_group("Hall", [ada, bob, self.bot])
        forum = api.add_group("Forum", [ada, bob, self.bot], forum=True)
        for chat, agent in ((private, "kai"), (group, "mia"), (forum, "lea"), (other, "noa"), (hall, "ida")):
            office.approve(chat)
            office.boss.call("contact.route", contact=address(chat), agent=agent)
        tag, topic = f"@{self.bot.name} ", forum.create_topic("Deploys")
        spots = [
            Spot(chat=desk, person=ada),
            Spot(chat=private, person=bob),
            Spot(chat=group, person=bob, tag=tag),
            Spot(chat=forum, person=ada, topic=topic, tag=tag),
        ]
        quiet = [Spot(chat=other, person=cyd), Spot(chat=hall, person=bob, tag=tag)]
        for spot in spots:  # a topic is known when something came from it
            self.ask(spot, "silent", 0)
        office.settle()
        return spots, quiet

    # --- what happens ----------------------------------------------------------------------

    def step(self) -> None:
        """Let something be sent or asked."""
        steps, weights = zip(*self._steps, strict=True)
        self.chance.choices(steps, weights)[0]()

    def send(self, spot: Spot | None = None, chunks: int | None = None, **params: Any) -> Sending:
        """Let nex send a long text; it is tried until the daemon has accepted it."""
        number = next(self._numbers)
        kind = self.chance.choice(("markdown", "markdown", "markdown", "text"))
        chosen = {"text": self.text(number, chunks or self.chance.choice((1, 2, 2, 3, 4, 6))), "type": kind}
        spot = spot or self.chance.choice(self.spots)
        sending = Sending(key=f"out-{number}", params={"to": spot.address, **chosen, **params})
        self.sendings.append(sending)
        self.flush()
        return sending

    def send_files(self) -> None:
        """Let nex send files: one, or some that become albums; the text is a caption, or apart."""
        names = self.chance.sample(sorted(FILES), self.chance.randint(1, 4))
        self.send(chunks=self.chance.choice((0, 2)), attachments=[str(self._files / name) for name in names])

    def ask_something(self) -> None:
        """Let a person ask an agent: the answer grows, or fails once, or never comes."""
        how = self.chance.choices(("grow", "silent", "hush", "fail"), (6, 1, 2, 0 if self._hurry else 1))[0]
        seconds = self.chance.choice((0, 0.5) if self._hurry else (0, 1, 4, 5, 10))
        self.ask(self.chance.choice([*self.spots, *self.quiet]), how, seconds)

    def ask(self, spot: Spot, how: str, seconds: float) -> None:
        """Let somebody ask there. `seconds`: how long the run takes."""
        number = next(self._numbers)
        name = f"text{number}"
        self.office.team.place(name).write_text(self.text(number, self.chance.randint(1, 4)))
        self.asked[how] = self.asked.get(how, 0) + 1
        words = f"{spot.tag}please {how} {name} {seconds}"
        spot.person.says(spot.chat, words, **({"topic": spot.topic} if spot.topic else {}))

    def flush(self) -> bool:
        """Send what is not accepted yet, in order; return whether all of it is now."""
        for one in self.sendings:
            if one.id is not None:
                continue
            try:
                (one.id,) = self.office.nex.send(**{**one.params, "key": one.key})["ids"]
            except DaemonUnreachable:
                return False
        return True

    # --- texts -----------------------------------------------------------------------------

    def text(self, number: int, chunks: int) -> str:
        """Return Markdown that fills about so many posts; 0: a few words."""
        marks = (f"s{number}-{part}x" for part in itertools.count(1))
        kinds = (self._prose, self._prose, self._code, self._table, self._list)
        parts = [f"{next(marks)} begins"]
        while sum(map(len, parts)) < (chunks - 0.5) * CHUNK:
            parts.append(self.chance.choice(kinds)(marks))
        return "\n\n".join(parts)

    def _words(self, most: int) -> str:
        return " ".join(self.chance.choices(WORDS, k=self.chance.randint(1, most)))

    def _prose(self, marks: Any) -> str:
        return f"{next(marks)} {self._words(120)}"

    def _code(self, marks: Any) -> str:
        lines = [f"{next(marks)} = {self.chance.random()}  # 🦊" for _ in range(self.chance.randint(1, 60))]
        return "\n".join(["```python", *lines, "```"])

    def _table(self, marks: Any) -> str:
        rows = [f"| {next(marks)} | {self._words(3)} |" for _ in range(self.chance.randint(1, 15))]
        return "\n".join(["| mark | words |", "|---|---|", *rows])

    def _list(self, marks: Any) -> str:
        return "\n".join(f"- {next(marks)} {self._words(10)}" for _ in range(self.chance.randint(1, 15)))
