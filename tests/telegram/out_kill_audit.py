"""What agents post while their daemon dies, and what must be true of the chats in the end.

All posts are there, and what is there twice is explained.
"""

from __future__ import annotations

import itertools
import json
import random
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hiboss.channels.telegram.chunk_form import decode
from hiboss.core.address import SYSTEM
from hiboss.core.envelope import Status
from hiboss.core.errors import DaemonUnreachable
from hiboss.testing.bot_api.chats import Chat
from hiboss.testing.bot_api.messages import Message
from hiboss.testing.bot_api.people import Person
from hiboss.testing.bot_api.world import Call
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


# --- what is there in the end ---------------------------------------------------------------------


NOTE = "⏳ Queued behind"
LAST_SECONDS = 1.0  # before a death: what was confirmed then may not be recorded
_ENVELOPES = """
SELECT e.id, e.status, e.binding, e.priority, e.arrived, e.error_kind, e.error_text, e.recipient,
       m.text, m.run, a.name AS place, s.fold AS sender
FROM envelope e JOIN message m ON m.id = e.message JOIN address a ON a.id = e.recipient
JOIN address s ON s.id = m.sender
WHERE a.kind = 'channel' ORDER BY e.arrived
"""
_POSTS = """
SELECT envelope, chunk, platform_id, content,
       (SELECT json_group_array(platform_id) FROM post_part t WHERE t.envelope = p.envelope AND t.chunk = p.chunk) AS parts
FROM post p ORDER BY envelope, chunk
"""

Key = tuple[int, int]  # the id of a chat and of a message


@dataclass(kw_only=True)
class Life:
    """A daemon, from its start to its end. One that was not killed has recorded all that it heard."""

    begun: float
    ended: float | None = None
    killed: bool = False

    def __str__(self) -> str:
        return "kill" if self.killed else "stop"

    def has(self, call: Call) -> bool:
        """Tell whether it has made a call; what it sent may be read when it is dead."""
        return self.begun <= call.at and (self.ended is None or call.at <= self.ended + LAST_SECONDS)


class Audit:
    """Compares what is stored with what people see. `wrong` says what is not right, best nothing."""

    def __init__(self, office: TelegramDaemon, traffic: OutTraffic, lives: list[Life]) -> None:
        self._office = office
        self._api = office.api
        self._traffic = traffic
        self._lives = lives
        self.wrong: list[str] = []
        self.figures: Counter[str] = Counter()
        self._known: Counter[Key] = Counter()  # what is recorded, by how many posts
        self._chunks: set[tuple[int, str]] = set()  # texts of chunks, by chat
        self._chats: dict[int, Chat] = {
            chat.id: chat for chat in (*self._api.world.private.values(), *self._api.world.groups.values())
        }
        self._look()

    def __str__(self) -> str:
        figures = self.figures
        return (
            f"sends: {figures['sends']} ({figures['multi']} of several chunks, {figures['answers']} answers, "
            f"{figures['system']} of hiboss)\nchunks: {figures['chunks']} in {figures['messages']} messages\n"
            f"grown: {figures['drafts']} drafts; live posts: {figures['became']} became answers, "
            f"{figures['removed']} were removed\n"
            f"doubles: {figures['chunk']} chunks, {figures['live']} live posts, {figures['note']} notes; "
            f"of these not heard {figures['unheard']}, heard and not recorded {figures['unrecorded']}\n"
            f"doubles-unexplained: {figures['unexplained']}\n"
            f"calls-into-a-wait: {sum(one.during_wait for one in self._api.floods)}\n"
            f"complaints: {len(self._api.complaints)}\nwrong: {len(self.wrong)}"
        )

    def _look(self) -> None:
        posts: dict[int, list[dict[str, Any]]] = {}
        for row in self._office.rows(_POSTS):
            posts.setdefault(row["envelope"], []).append(row)
        envelopes = self._office.rows(_ENVELOPES)
        for one in envelopes:
            self._envelope(one, posts.get(one["id"], []))
        self._accepted({f"e{one['id']}": one for one in envelopes})
        self._order(envelopes, posts)
        for key, number in self._known.items():
            if number > 1:
                self.wrong.append(f"{key} is recorded {number} times")
        explained = self._explanations()
        for chat in self._chats.values():
            for message in self._own(chat):
                if (chat.id, message.id) not in self._known:
                    self._double(chat, message, explained)
            self._grown(chat)
            if chat.draft is not None:
                self.wrong.append(f"a draft stays in {chat}: {chat.draft}")

    # --- what is recorded --------------------------------------------------------------------

    def _envelope(self, one: dict[str, Any], posts: list[dict[str, Any]]) -> None:
        """Look whether the posts of an envelope are there, and say all of its text."""
        self.figures["sends"] += 1
        self.figures["multi"] += len(posts) > 1
        self.figures["answers"] += one["run"] is not None
        self.figures["system"] += one["sender"] == SYSTEM.fold
        self.figures["chunks"] += len(posts)
        if one["status"] != Status.DONE:
            why = f"{one['error_kind']}: {one['error_text']}"
            self.wrong.append(f"e{one['id']} is {Status(one['status']).word}: {why}")
        seen: list[Message] = []
        for post in posts:
            seen += self._post(one, post)
        marks = [mark for message in seen for mark in MARK.findall(message.text)]
        if marks != MARK.findall(one["text"]):
            self.wrong.append(f"e{one['id']}: {one['text'][:30]!r} is seen as {marks}")
        if [message.id for message in seen] != sorted(message.id for message in seen):
            self.wrong.append(f"e{one['id']}: its posts are not in order: {seen}")

    def _post(self, one: dict[str, Any], post: dict[str, Any]) -> list[Message]:
        """Return the messages of a recorded chunk."""
        place, _, topic = one["place"].partition(":")[2].partition("/")
        chat, content = self._chats[int(place)], decode(post["content"])
        self._chunks.add((chat.id, content.text))
        ids = [post["platform_id"], *json.loads(post["parts"])]
        found = [message for number in ids if (message := chat.find(int(number or 0))) is not None]
        what = f"e{one['id']}.{post['chunk']}"
        if len(found) != len(ids) or len(ids) != max(1, len(content.files)):
            self.wrong.append(f"{what}: of {ids} there are {found}")
        for message in found:
            self._known[chat.id, message.id] += 1
            self.figures["messages"] += 1
            if str(message.topic or "") != topic:
                self.wrong.append(f"{what}: {message} is in the topic {message.topic}")
        if found and found[0].rich_source is None and found[0].text.strip() != content.text.strip():
            self.wrong.append(f"{what}: {found[0].text[:60]!r} is not {content.text[:60]!r}")
        if found and found[0].rich_source not in (None, content.rich):
            self.wrong.append(f"{what}: the rich message is not that of the chunk")
        return found

    def _accepted(self, envelopes: dict[str, dict[str, Any]]) -> None:
        """Look whether all is stored that the daemon has accepted."""
        for one in self._traffic.sendings:
            stored = envelopes.get(one.id or "")
            if stored is None or stored["text"] != one.params["text"]:
                self.wrong.append(f"{one.key} was accepted as {one.id} and is not there")

    def _order(self, envelopes: list[dict[str, Any]], posts: dict[int, list[dict[str, Any]]]) -> None:
        """Look whether the first chunks of each lane came in the order in which their envelopes arrived."""
        last: dict[tuple[int, int, int], tuple[int, int]] = {}
        for one in envelopes:
            if not posts.get(one["id"]):
                continue
            lane = one["recipient"], one["binding"], one["priority"]
            number = int(posts[one["id"]][0]["platform_id"] or 0)
            before, earlier = last.get(lane, (0, 0))
            if number < before:
                self.wrong.append(f"e{one['id']} is message {number}, before {before} of e{earlier}")
            last[lane] = number, one["id"]

    # --- what nobody recorded ----------------------------------------------------------------

    def _own(self, chat: Chat) -> list[Message]:
        return [one for one in chat.messages if one.sender is self._traffic.bot and not one.service]

    def _grown(self, chat: Chat) -> None:
        """Count what grew."""
        self.figures["drafts"] += len(chat.drafts)
        for message in [one for one in chat.history.values() if one.sender is self._traffic.bot]:
            self.figures["removed"] += message.deleted and not message.text.startswith(NOTE)
            self.figures["became"] += len(set(message.texts)) > 1 and not message.deleted

    def _double(self, chat: Chat, message: Message, explained: dict[Key, str]) -> None:
        """Count a message that no post is recorded for."""
        why = explained.get((chat.id, message.id), "unexplained")
        is_chunk = message.files or (chat.id, message.text) in self._chunks or message.rich_source
        kind = "note" if message.text.startswith(NOTE) else "chunk" if is_chunk else "live"
        self.figures[why] += 1
        self.figures[kind] += 1
        if why == "unexplained":
            when = self._when(chat, message)
            self.wrong.append(
                f"nobody knows {message!r:.200} in {chat}, nor why it is there ({kind}, {when})"
            )

    def _when(self, chat: Chat, message: Message) -> str:
        """Say when a message was posted: how long before which end of the daemon."""
        for call in self._api.calls:
            if message.id in _made(call) and int(call.params["chat_id"]) == chat.id:
                ends = [(life.ended - call.at, life) for life in self._lives if life.ended and life.has(call)]
                return ", ".join(f"{left:.2f} s before a {life}" for left, life in ends) or "by the last one"
        return "by a call that nobody knows"

    def _explanations(self) -> dict[Key, str]:
        """Return why messages may be there that are not recorded."""
        found: dict[Key, str] = {}
        made = [(call, _made(call)) for call in self._api.calls]
        for life in self._lives:
            if not life.killed or life.ended is None:
                continue
            in_life = [(call, ids) for call, ids in made if ids and life.has(call)]
            last = {_place(call): call for call, _ in in_life}
            for call, ids in in_life:
                # Nothing is posted in a place before the last is recorded, but for what grows there.
                if call is last[_place(call)] or call.at > life.ended - LAST_SECONDS:
                    found |= {(int(call.params["chat_id"]), one): "unrecorded" for one in ids}
        for unheard in self._api.carried_out:
            chat = int(unheard.call.params["chat_id"])
            found |= {(chat, one): "unheard" for one in unheard.message_ids}
        return found


def _made(call: Call) -> list[int]:
    """Return the messages that a call has made, as its caller was told."""
    if not call.method.startswith("send") or call.status != 200:
        return []
    answers = call.answer if isinstance(call.answer, list) else [call.answer]
    return [one["message_id"] for one in answers if isinstance(one, dict) and "message_id" in one]


def _place(call: Call) -> tuple[str, str]:
    return str(call.params["chat_id"]), str(call.params.get("message_thread_id") or "")
