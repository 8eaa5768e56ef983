"""A platform with rules of its own, outside of the daemon. It keeps the book of what it accepted.

It listens on loopback and lives through every death of the daemon. It limits the rate of a chat,
asks to wait (a chat, or the whole account), hangs, loses answers, refuses some envelopes for good,
and makes the adapter crash. What a death or a lost answer may double is counted here: a platform
knows what it accepted and whether the answer was heard. soak_adapter.py connects the daemon to it.
"""

from __future__ import annotations

import json
import random
import socket
import socketserver
import threading
import time
from collections import Counter, defaultdict, deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tests.support.waits import wait_until

CHATS = ("oak", "elm", "ash", "fir", "yew", "keyed")
KEYED = "keyed"  # this chat recognizes a repeated post by its key, as Matrix does
CHUNK = 40  # characters in one post

TOLERANCE = 0.005  # seconds: the daemon counts in whole milliseconds
RATE = 12  # posts of one chat in one second; more are told to wait

# What may happen to a post in a round. The first two name a time; the others make the daemon guess one.
TOLD = {"wait_chat": 5, "wait_account": 1}
GUESSED = ("lost", "lost", "hang_accepted", "hang", "refused_connection", "server_error")

Chunk = tuple[str, int]  # envelope and number, like ("e81", 0)
Answer = dict[str, Any]


class Accepted(NamedTuple):
    """A post in the book."""

    at: float
    chat: str
    envelope: str
    number: int
    text: str
    heard: bool  # whether its answer was sent


class Platform:
    """The platform and its book. `healthy` ends everything that goes wrong by chance."""

    def __init__(self, root: Path, seed: int) -> None:
        self.root = root
        self.book: list[Accepted] = []
        self.lost: Counter[Chunk] = Counter()  # accepted, and the answer was never sent
        self.repeats = 0  # recognized by their key
        self.refused: set[str] = set()
        self.happened: Counter[str] = Counter()
        self.too_early: list[str] = []  # posts before a time this platform had named
        self.healthy = False
        self.updates: list[str] = []  # texts that come in; the number of an update is its place here
        self._confirmed = 0
        self._chance = random.Random(seed)
        self._weather: deque[str] = deque()
        self._closed: dict[str, float] = {}  # chat, or "" for the account: until when
        self._flying: set[str] = set()  # chats that posted once more after the account was told to wait
        self._recent: dict[str, deque[float]] = defaultdict(lambda: deque(maxlen=RATE))
        self._keys: dict[str, str] = {}
        self._lock = threading.Lock()
        self.active = 0  # connections that are accepted and have not ended
        self._crashes = 0
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.platform = self
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        root.mkdir()
        (root / "platform.json").write_text(
            json.dumps({"port": self._server.server_address[1], "chats": CHATS, "chunk": CHUNK})
        )

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def next_round(self) -> None:
        """Choose what happens to the next posts, and whether the adapter crashes."""
        with self._lock:
            chosen = [*(["ok"] * 45), *(what for what, number in TOLD.items() for _ in range(number))]
            chosen += self._chance.choices(GUESSED, k=self._chance.randrange(1, 4))
            self._chance.shuffle(chosen)
            self._weather = deque(chosen)
            self._crashes = int(self._chance.random() < 0.25)

    def came_in(self, text: str) -> None:
        with self._lock:
            self.updates.append(text)

    def daemon_ended(self) -> None:
        """Return when everything it had sent is read: connections are accepted in order, so all before this one."""
        with socket.create_connection(self._server.server_address) as last, last.makefile("rwb", 0) as line:
            line.write(b'{"do": "nothing"}\n')
            line.readline()
        wait_until(lambda: not self.active)

    def forget_unstored(self, stored: Mapping[str, int]) -> None:
        """After a kill: expect the next daemon to know only the times that are stored, by chat ("": all)."""
        now = time.time()
        with self._lock:
            for who, until in list(self._closed.items()):
                if until <= now:
                    continue
                if stored.get(who, 0) >= (until - TOLERANCE) * 1000:
                    self.happened["told-and-stored-at-a-kill"] += 1
                    continue
                del self._closed[who]
                self.happened["told-and-not-stored-at-a-kill"] += 1
            self._flying.clear()

    # --- one request -------------------------------------------------------------------

    def answer(self, request: dict[str, Any]) -> Answer | None:
        """Return the answer; None: the connection ends without one; "hang": it never ends."""
        with self._lock:
            if request["do"] == "updates":
                return self._updates(int(request["after"]))
            return self._post(request) if request["do"] == "post" else {"status": 200}

    def _updates(self, after: int) -> Answer:
        """Those after a number; that one and all before it are confirmed for good."""
        self._confirmed = max(self._confirmed, after)
        if self._crashes and not self.healthy:
            self._crashes -= 1
            self.happened["adapter-crashes"] += 1
            return {"status": "crash"}
        some = self.updates[self._confirmed : self._confirmed + 10]
        return {"status": 200, "updates": list(enumerate(some, self._confirmed + 1))}

    def _post(self, request: dict[str, Any]) -> Answer | None:
        now, chat = time.time(), request["chat"]
        if wait := self._told_to_wait(chat, now):
            return {"status": 429, "scope": "chat", "retry_after": wait}
        if self._refuses(request["text"], request["number"]):
            self.refused.add(request["envelope"])
            return {"status": 400}
        what = "ok" if self.healthy or not self._weather else self._weather.popleft()
        recent = self._recent[chat]
        if what == "ok" and len(recent) == RATE and recent[0] > now - 1:
            what = "wait_chat"
        if what != "ok":
            self.happened[what] += 1
        if what in TOLD:
            return self._tell_to_wait("" if what == "wait_account" else chat, now)
        if what == "server_error":
            return {"status": 500}
        if what == "refused_connection":
            return None
        if what == "hang":
            return {"status": "hang"}
        recent.append(now)
        heard = what == "ok"
        answer = self._accept(request, now, heard=heard)
        if heard:
            return answer
        self.lost[request["envelope"], request["number"]] += 1
        return None if what == "lost" else {"status": "hang"}

    def _accept(self, request: dict[str, Any], now: float, *, heard: bool) -> Answer:
        key, chat = request["key"], request["chat"]
        if chat == KEYED and key in self._keys:
            self.repeats += 1
            return {"status": 200, "id": self._keys[key]}
        chunk = request["envelope"], request["number"]
        self.book.append(Accepted(now, chat, *chunk, request["text"], heard))
        self._keys[key] = f"{chat}-{len(self.book)}"
        return {"status": 200, "id": self._keys[key]}

    @staticmethod
    def _refuses(text: str, number: int) -> bool:
        """By its text, so always: at once, or only at the second chunk."""
        return "never at all" in text or ("not further" in text and number == 1)

    # --- times it names ----------------------------------------------------------------

    def _tell_to_wait(self, who: str, now: float) -> Answer:
        short = self._chance.random() < 0.7
        seconds = self._chance.uniform(0.1, 0.6) if short and who else self._chance.uniform(1, 4)
        self._closed[who] = now + seconds
        if not who:
            self._flying.clear()
        return {"status": 429, "scope": "chat" if who else "account", "retry_after": seconds}

    def _told_to_wait(self, chat: str, now: float) -> float:
        """Return how long it must still wait; it should have known. Nothing was accepted.

        Of each other chat one post may have begun before the daemon knew that the account must wait.
        """
        for who in ("", chat):
            until = self._closed.get(who, 0.0)
            if now >= until - TOLERANCE:
                continue
            if not who and chat not in self._flying:
                self._flying.add(chat)
                self.happened["in-flight-when-told"] += 1
            else:
                self.too_early.append(
                    f"{chat}: {until - now:.3f} s before the time named for {who or 'the account'}"
                )
            return max(until - now, 0.001)
        return 0.0


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 128
    platform: Platform

    def process_request(self, request: Any, client_address: Any) -> None:
        with self.platform._lock:
            self.platform.active += 1
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        super().shutdown_request(request)
        with self.platform._lock:
            self.platform.active -= 1


class _Handler(socketserver.StreamRequestHandler):
    """One request on one connection."""

    def handle(self) -> None:
        assert isinstance(self.server, _Server)
        line = self.rfile.readline()
        if not line.endswith(b"\n"):
            return  # the daemon died while it wrote
        answer = self.server.platform.answer(json.loads(line))
        if answer is None:
            return
        if answer["status"] == "hang":
            self.rfile.read(1)  # until the other side has had enough
            return
        try:
            self.wfile.write(json.dumps(answer).encode() + b"\n")
        except OSError:
            pass  # the daemon has died meanwhile
