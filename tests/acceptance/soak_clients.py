"""Clients that send until the daemon dies, and ask again afterwards whether it was heard."""

from __future__ import annotations

import json
import random
import socket
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from hiboss.testing.running_daemon import RunningDaemon

AGENTS = ("nex", "ada", "bob", "eve")
MOST_REQUESTS = 3_000  # of one client in one round, in case the daemon does not die


@dataclass(kw_only=True)
class Asked:
    """One request to send, under its key, and the answer if it came."""

    key: str
    params: dict[str, Any]
    answer: dict[str, Any] | None = None


class Client(threading.Thread):
    """Sends one request after the other on one connection, until that breaks."""

    def __init__(self, daemon: RunningDaemon, name: str, seed: int, agents: Sequence[str] = AGENTS) -> None:
        super().__init__(name=name)
        self.asked: list[Asked] = []
        self._daemon = daemon
        self._chance = random.Random(seed)
        self._token = daemon.token(self._chance.choice(agents))

    def run(self) -> None:
        try:
            with self._daemon.connect() as connection, connection.makefile("rb") as answers:
                for number in range(MOST_REQUESTS):
                    asked = self.next(number)
                    self.asked.append(asked)
                    connection.sendall(request(asked))
                    line = answers.readline()
                    if not line.endswith(b"\n"):
                        return
                    asked.answer = json.loads(line)
        except OSError:
            pass  # the daemon has died; that is what this is about

    def next(self, number: int) -> Asked:
        chance = self._chance
        key = f"{self.name}-{number}"
        text = f"{key} " + "x" * chance.choice((1, 100, 3_000))
        params: dict[str, Any] = {"token": self._token, "key": key, "text": text}
        mine = [one for one in self.asked[-5:] if one.answer and "result" in one.answer]
        kind = chance.randrange(10)
        if kind == 0 and mine:
            params["reply_to"] = chance.choice(mine).answer["result"]["ids"][0]  # type: ignore[index]
        elif kind == 1:
            params |= {"to": f"agent:{chance.choice(AGENTS)}", "deliver_at": "+1D"}
        elif kind == 2:
            params["to"] = ["user:boss", *(f"agent:{name}" for name in chance.sample(AGENTS, 3))]
        elif kind == 3:
            params["to"] = ["agent:nex", "agent:nobody"]  # refused, in the midst of a group
        else:
            params["to"] = f"agent:{chance.choice(AGENTS)}"
        return Asked(key=key, params=params)


def request(asked: Asked) -> bytes:
    document = {"jsonrpc": "2.0", "method": "envelope.send", "params": asked.params, "id": asked.key}
    return json.dumps(document).encode() + b"\n"


def ask_again(daemon: RunningDaemon, asked: list[Asked]) -> Iterator[dict[str, Any]]:
    """The answers to every request made once more, on one connection, some at a time."""
    with daemon.connect() as connection, connection.makefile("rb") as answers:
        for start in range(0, len(asked), 100):
            some = asked[start : start + 100]
            sending = threading.Thread(target=_send_all, args=(connection, some))
            sending.start()
            for one in some:
                answer = json.loads(answers.readline())
                assert answer["id"] == one.key
                yield answer
            sending.join()


def _send_all(connection: socket.socket, some: list[Asked]) -> None:
    connection.sendall(b"".join(request(one) for one in some))
