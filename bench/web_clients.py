"""Clients of the HTTP door for `bench.web`: a process of its own, so that its work does not count.

`python -m bench.web_clients` reads a line of JSON from standard input, which says what to do:

- `send`: send over and over on some connections, by the socket, by WebSocket or by REST, one at a time.
- `follow`: open WebSockets and subscribe; write `ready`; note when each is told of each message; when all
  are, write `told`, read when each message was answered to its sender, and write how long it took from there.

Frames and answers are taken apart by hand: a library would take more time than what is measured.
"""

from __future__ import annotations

import base64
import json
import os
import re
import select
import socket
import sys
from collections.abc import Callable
from time import monotonic, perf_counter
from typing import Any
from urllib.parse import urlsplit

SILENCE_SECONDS = 30.0  # longer without anything is an error
READ = 1 << 20
TEXT, PING, PONG = 0x81, 0x89, 0x8A  # the first byte of a frame that is whole
MASKED = 0x80
_LENGTH = re.compile(rb"content-length: (\d+)", re.IGNORECASE)
_MESSAGE = re.compile(rb'"message":"(m\d+)"')


# --- connections -----------------------------------------------------------------------


def by_socket(given: dict[str, Any]) -> socket.socket:
    line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    line.connect(given["socket"])
    return line


def by_tcp(given: dict[str, Any]) -> socket.socket:
    place = urlsplit(given["url"])
    line = socket.create_connection((place.hostname, place.port), timeout=SILENCE_SECONDS)
    line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return line


def by_websocket(given: dict[str, Any]) -> socket.socket:
    line = by_tcp(given)
    key = base64.b64encode(os.urandom(16)).decode()
    words = ["GET /ws HTTP/1.1", f"Host: {urlsplit(given['url']).netloc}", "Upgrade: websocket"]
    words += ["Connection: Upgrade", f"Sec-WebSocket-Key: {key}", "Sec-WebSocket-Version: 13"]
    line.sendall("\r\n".join([*words, f"Authorization: Bearer {given['token']}", "", ""]).encode())
    data = b""
    while not data.endswith(b"\r\n\r\n"):
        data += _read(line)
    if not data.startswith(b"HTTP/1.1 101"):
        raise SystemExit(f"no WebSocket: {data[:500]!r}")
    return line


def _read(line: socket.socket) -> bytes:
    data = line.recv(READ)
    if not data:
        raise SystemExit("the daemon hung up")
    return data


# --- requests, and where their answers end ------------------------------------------------


def frame(payload: bytes, kind: int = TEXT) -> bytes:
    """A frame of a client. Its mask is of zeros, so the payload stays as it is."""
    size = len(payload)
    head = bytes([kind, MASKED | size]) if size < 126 else bytes([kind, MASKED | 126, size >> 8, size & 255])
    return head + bytes(4) + payload


def frames(data: bytes) -> tuple[list[tuple[int, bytes]], bytes]:
    """The whole frames of a server, each with its kind; and what is left."""
    found, at = [], 0
    while len(data) - at >= 4:
        head, size = _measures(data, at)
        if len(data) < at + head + size:
            break
        found.append((data[at], data[at + head : at + head + size]))
        at += head + size
    return found, data[at:]


def _measures(data: bytes, at: int) -> tuple[int, int]:
    """The size of the head and of the payload of a frame; all of them are below 64 KiB here."""
    short = data[at + 1] & 127
    return (2, short) if short < 126 else (4, int.from_bytes(data[at + 2 : at + 4], "big"))


def post(given: dict[str, Any], body: bytes) -> bytes:
    words = ["POST /api/messages HTTP/1.1", f"Host: {urlsplit(given['url']).netloc}"]
    words += [f"Authorization: Bearer {given['token']}", "Content-Type: application/json"]
    return "\r\n".join([*words, f"Content-Length: {len(body)}", "", ""]).encode() + body


def line_ends(data: bytes) -> bool:
    return data.endswith(b"\n")


def frame_ends(data: bytes) -> bool:
    return len(data) >= 4 and len(data) >= sum(_measures(data, 0))


def response_ends(data: bytes) -> bool:
    head, end, body = data.partition(b"\r\n\r\n")
    return bool(end) and (found := _LENGTH.search(head)) is not None and len(body) >= int(found[1])


def ways(given: dict[str, Any]) -> dict[str, tuple[Callable[..., socket.socket], bytes, Callable[..., bool]]]:
    """How to connect, what to send, and when an answer has ended."""
    params = json.dumps({"to": given["to"], "text": given["text"]}).encode()
    own = {"to": given["to"], "text": given["text"], "token": given["token"]}
    call = {"jsonrpc": "2.0", "id": 1, "method": "envelope.send", "params": own}
    called = json.dumps(call).encode()
    return {
        "socket": (by_socket, called + b"\n", line_ends),
        "websocket": (by_websocket, frame(called), frame_ends),
        "rest": (by_tcp, post(given, params), response_ends),
    }


# --- what is done ------------------------------------------------------------------------


def send(given: dict[str, Any]) -> dict[str, Any]:
    """Send by one way for some seconds; return how many were answered, and how long each took."""
    connect, request, ends = ways(given)[given["way"]]
    poll = select.epoll()
    lines = {line.fileno(): line for line in (connect(given) for _ in range(given["connections"]))}
    begun: dict[int, float] = {}
    data = dict.fromkeys(lines, b"")
    taken: list[float] = []
    for number, line in lines.items():
        poll.register(number, select.EPOLLIN)
        begun[number] = perf_counter()
        line.sendall(request)
    end = perf_counter() + given["seconds"]
    while begun:
        ready = poll.poll(SILENCE_SECONDS)
        if not ready:
            raise SystemExit("no answer came")
        for number, _ in ready:
            data[number] += _read(lines[number])
            if not ends(data[number]):
                continue
            now = perf_counter()
            if b'"error":' in data[number]:
                raise SystemExit(f"the daemon answered: {data[number][:1000]!r}")
            taken.append(now - begun.pop(number))
            data[number] = b""
            if now < end:
                begun[number] = now
                lines[number].sendall(request)
    taken.sort()
    return {"answered": len(taken)} | _quantiles(taken)


def subscribed(given: dict[str, Any]) -> socket.socket:
    line = by_websocket(given)
    params = {"topics": ["envelope.arrived"]}
    call = {"jsonrpc": "2.0", "id": 1, "method": "event.subscribe", "params": params}
    line.sendall(frame(json.dumps(call).encode()))
    if b'"result"' not in _read(line):
        raise SystemExit("a subscription was refused")
    return line


def follow(given: dict[str, Any]) -> dict[str, Any]:
    """Follow with so many WebSockets until each is told of all messages."""
    lines = {line.fileno(): line for line in (subscribed(given) for _ in range(given["followers"]))}
    poll = select.epoll()
    for number in lines:
        poll.register(number, select.EPOLLIN)
    print("ready", flush=True)
    told: dict[int, list[tuple[bytes, float]]] = {number: [] for number in lines}
    rest = dict.fromkeys(lines, b"")
    while any(len(noted) < given["messages"] for noted in told.values()):
        numbers = [number for number, _ in poll.poll(SILENCE_SECONDS)]
        if not numbers:
            raise SystemExit("not everybody was told of everything")
        now = monotonic()  # of the machine: that of the sender is the same
        for number in numbers:
            heard, rest[number] = frames(rest[number] + _read(lines[number]))
            for kind, payload in heard:
                if kind == PING:
                    lines[number].sendall(frame(payload, PONG))
                elif found := _MESSAGE.search(payload):
                    told[number].append((found[1], now))
    print("told", flush=True)
    answered = {name.encode(): at for name, at in json.loads(sys.stdin.readline()).items()}
    for number, noted in told.items():
        if {name for name, _ in noted} != answered.keys() or len(noted) != len(answered):
            raise SystemExit(f"connection {number} was told of {len(noted)} of {len(answered)} messages")
    taken = sorted(max(0.0, at - answered[name]) for noted in told.values() for name, at in noted)
    return {"told": len(taken)} | _quantiles(taken)


def _quantiles(taken: list[float]) -> dict[str, float]:
    def quantile(share: float) -> float:
        return taken[min(len(taken) - 1, int(len(taken) * share))] * 1000

    return {"p50": quantile(0.5), "p99": quantile(0.99)}


if __name__ == "__main__":
    asked = json.loads(sys.stdin.readline())
    print(json.dumps({"send": send, "follow": follow}[asked["do"]](asked)), flush=True)
