"""Kill -9 under load, again and again: what the spike has answered is stored once, with that id."""

from __future__ import annotations

import random
import threading
from collections import Counter
from pathlib import Path
from time import sleep

import orjson

from .homes import AGENT, say
from .journal import HEAD, records
from .spike_process import Spike

SENDERS = 8
LONGEST_SECONDS = 1.0
SIZE = 64 << 10  # small journal files: they are changed several times a second


def kills(spike: Spike, times: int) -> str:
    """A sentence about it; raises AssertionError when something is lost, doubled or changed."""
    say(f"killing the spike {times} times")
    answered: dict[str, str] = {}  # id by text
    replayed = spike.start()
    for number in range(times):
        senders = [threading.Thread(target=_send, args=(spike, number, n, answered)) for n in range(SENDERS)]
        for one in senders:
            one.start()
        sleep(random.uniform(0.05, LONGEST_SECONDS))
        spike.kill()
        for one in senders:
            one.join()
        _tear(spike)
        replayed += spike.start()
    spike.wait()
    spike.kill()
    return _verdict(spike, answered, times, replayed)


def _send(spike: Spike, kill: int, sender: int, answered: dict[str, str]) -> None:
    """Until it is killed, one after the other on one connection."""
    params = {"token": spike.token, "to": f"agent:{AGENT}"}
    with spike.connected() as line, line.makefile("rb") as answers:
        for number in range(1_000_000):
            text = f"{kill} {sender} {number}"
            request = {"id": 1, "method": "envelope.send", "params": {**params, "text": text}}
            try:
                line.sendall(orjson.dumps(request) + b"\n")
                answer = answers.readline()
            except OSError:
                return
            if not answer.endswith(b"\n"):
                return
            answered[text] = orjson.loads(answer)["result"]["id"]


def _tear(spike: Spike) -> None:
    """Half a record after the last one, as a power cut can leave it: a replay must not take it."""
    ends = []
    for path in Path(spike.home.path).glob("journal.*"):
        found = list(records(path.read_bytes()))
        offset = sum(HEAD.size + len(payload) for _, payload in found)
        ends.append((found[-1][0] if found else 0, offset, path))
    last, offset, path = max(ends)
    with path.open("r+b") as file:
        file.seek(offset)
        file.write(HEAD.pack(300, 0, last + 1) + b"[1, 2")


def _verdict(spike: Spike, answered: dict[str, str], times: int, replayed: int) -> str:
    stored = spike.texts()
    doubled = [text for text, count in Counter(text for _, text in stored).items() if count > 1]
    found = {text: number for number, text in stored}
    lost = [text for text, number in answered.items() if found.get(text) != number]
    spike.check()
    if not answered:
        raise AssertionError("it was killed before it had answered anything")
    if lost or doubled:
        raise AssertionError(f"lost or changed: {lost[:5]} ({len(lost)}); doubled: {doubled[:5]}")
    more = len(found) - len(answered)
    return (
        f"{times} times kill -9 under {SENDERS} senders: {len(answered):,} answered, 0 lost, 0 doubled; "
        f"{more} stored without an answer; {replayed:,} replayed at the starts"
    )
