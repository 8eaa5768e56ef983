"""The WebSocket: what its first message must be, and frames that no browser sends."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.support.sweeps import sweep
from tests.support.waits import wait_until
from tests.support.web_clients import bearer
from tests.support.web_daemons import HANDSHAKE, Browser, Connection, WebDaemon, web_fixture

NOT_LOGGED_IN = 4401
TEXT, BINARY, CONTINUED, CLOSE, PING, PONG = 0x1, 0x2, 0x0, 0x8, 0x9, 0xA
LIMIT = 256 * 1024


web = web_fixture({"web.websockets.FIRST_SECONDS": 1.0}, clean=True, frame_bytes=LIMIT)


def frame(
    kind: int, data: bytes | str, *, last: bool = True, masked: bool = True, reserved: int = 0
) -> bytes:
    """Return a frame, masked with zeros as its own data."""
    content = data.encode() if isinstance(data, str) else data
    mask = 0x80 if masked else 0
    if len(content) < 126:
        size = bytes([mask | len(content)])
    elif len(content) < 0x10000:
        size = bytes([mask | 126]) + struct.pack(">H", len(content))
    else:
        size = bytes([mask | 127]) + struct.pack(">Q", len(content))
    return bytes([0x80 * last | reserved | kind]) + size + (b"\0\0\0\0" if masked else b"") + content


class Frames:
    """A WebSocket on which a test writes any bytes."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection

    def write(self, *frames: bytes) -> None:
        self.connection.write(b"".join(frames))

    def ask(self, method: str, **params: Any) -> None:
        self.write(frame(TEXT, json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})))

    def read(self) -> tuple[int, bytes]:
        """Return the next frame: its kind and its content."""
        first, size = self._take(2)
        if size == 126:
            (size,) = struct.unpack(">H", self._take(2))
        elif size == 127:
            (size,) = struct.unpack(">Q", self._take(8))
        return first & 0xF, self._take(size)

    def answer(self) -> Any:
        kind, content = self.read()
        assert kind == TEXT, (kind, content)
        return json.loads(content)

    def closed_with(self) -> int:
        kind, content = self.read()
        assert kind == CLOSE, (kind, content)
        (code,) = struct.unpack(">H", content[:2])
        return int(code)

    def _take(self, size: int) -> bytes:
        while len(self.connection._read) < size:
            self.connection._more()
        taken, self.connection._read = self.connection._read[:size], self.connection._read[size:]
        return taken


@contextmanager
def opened(web: WebDaemon, headers: list[tuple[str, str]]) -> Iterator[Frames]:
    with web.connected() as connection:
        connection.write(web.text("GET", "/ws", [*HANDSHAKE, *headers]))
        assert connection.answer().status == 101
        yield Frames(connection)


def page(web: WebDaemon, browser: Browser) -> list[tuple[str, str]]:
    """What the browser sends with the handshake for our page: the cookie, and not the value of the tab."""
    return [("Cookie", browser.pair), ("Origin", web.url)]


# --- the first message of a browser -----------------------------------------------------------------


def test_a_page_that_sends_the_value_of_its_tab_first_is_logged_in(web: WebDaemon, browser: Browser) -> None:
    with opened(web, page(web, browser)) as socket:
        socket.write(frame(TEXT, json.dumps({"tab": browser.tab})))
        socket.ask("web.link")
        assert socket.answer()["result"]["address"] == "user:boss"


WRONG_FIRST: dict[str, bytes] = {
    "nothing in it": frame(TEXT, ""),
    "no JSON": frame(TEXT, "{"),
    "no object": frame(TEXT, "[]"),
    "null": frame(TEXT, "null"),
    "no tab": frame(TEXT, "{}"),
    "a tab that is no text": frame(TEXT, '{"tab": 7}'),
    "an empty tab": frame(TEXT, '{"tab": ""}'),
    "a wrong tab": frame(TEXT, '{"tab": "wrong"}'),
    "a long tab": frame(TEXT, json.dumps({"tab": "x" * 10_000})),
    "half a surrogate pair": frame(TEXT, '{"tab": "\\ud800"}'),
    "a deep one": frame(TEXT, "[" * 100_000),
    "a call": frame(TEXT, '{"jsonrpc": "2.0", "id": 1, "method": "daemon.stop", "params": {}}'),
    "a binary one": frame(BINARY, b"\xff\xfe"),
    "a ping before a wrong one": frame(PING, "x") + frame(TEXT, "{}"),
}


def test_a_page_whose_first_message_is_wrong_is_not_logged_in(web: WebDaemon, browser: Browser) -> None:
    with sweep() as row:
        for what, first in WRONG_FIRST.items():
            with row(what), opened(web, page(web, browser)) as socket:
                socket.write(first)
                if what.startswith("a ping"):
                    assert socket.read() == (PONG, b"x")
                assert socket.closed_with() == NOT_LOGGED_IN


def test_a_page_that_sends_nothing_is_not_waited_for(web: WebDaemon, browser: Browser) -> None:
    with opened(web, page(web, browser)) as socket:
        socket.write(frame(PING, "still here"))
        assert socket.read() == (PONG, b"still here")
        assert socket.closed_with() == NOT_LOGGED_IN


def test_a_page_that_goes_before_its_first_message_leaves_nothing(web: WebDaemon, browser: Browser) -> None:
    before = web.logged()
    for goodbye in (b"", frame(CLOSE, struct.pack(">H", 1000)), frame(TEXT, '{"tab"', last=False)):
        with opened(web, page(web, browser)) as socket:
            socket.write(goodbye)
    with opened(web, page(web, browser)) as socket:
        assert socket.closed_with() == NOT_LOGGED_IN
    assert web.logged() == before


def test_the_value_of_a_tab_is_worth_nothing_with_another_cookie(web: WebDaemon, browser: Browser) -> None:
    with opened(web, page(web, web.log_in())) as socket:
        socket.write(frame(TEXT, json.dumps({"tab": browser.tab})))
        assert socket.closed_with() == NOT_LOGGED_IN
    with opened(web, [("Origin", web.url)]) as socket:  # without a cookie it is a message like others
        socket.write(frame(TEXT, json.dumps({"tab": browser.tab})))
        assert socket.answer()["error"]["code"] == -32600


def test_who_has_no_token_may_do_nothing(web: WebDaemon) -> None:
    with opened(web, []) as socket:
        for method in (
            "daemon.ping",
            "daemon.status",
            "daemon.stop",
            "event.subscribe",
            "setup.check",
            "boss.get",
        ):
            socket.ask(method)
            assert socket.answer()["error"]["data"]["code"] in ("no_token", "door_refused"), method


def test_a_login_that_ends_ends_what_the_page_follows_too(web: WebDaemon) -> None:
    browser = web.log_in()
    with opened(web, page(web, browser)) as socket:
        socket.write(frame(TEXT, json.dumps({"tab": browser.tab})))
        socket.ask("event.subscribe", topics=["envelope.arrived"])
        assert "result" in socket.answer()
        assert web.request("POST", "/logout", browser.headers(web.url), {}).status == 200
        assert socket.answer()["params"]["topic"] == "closed"
        web.call("envelope.send", token=web.token("boss"), to="agent:nex", text="not for them")
        socket.ask("boss.get")
        assert socket.answer()["error"]["data"]["code"] == "bad_token"


# --- frames ------------------------------------------------------------------------------------------

WRONG_FRAMES: dict[str, tuple[bytes, int]] = {
    "one that is not masked": (frame(TEXT, "{}", masked=False), 1002),
    "one with a reserved bit": (frame(TEXT, "{}", reserved=0x40), 1002),
    "one of an unknown kind": (frame(0x3, "{}"), 1002),
    "a continuation of nothing": (frame(CONTINUED, "{}"), 1002),
    "a message within a message": (frame(TEXT, "{", last=False) + frame(TEXT, "}"), 1002),
    "a ping in pieces": (frame(PING, "x", last=False), 1002),
    "a ping of 126 bytes": (frame(PING, "x" * 126), 1002),
    "a close of one byte": (frame(CLOSE, b"x"), 1002),
    "a close with a wrong code": (frame(CLOSE, struct.pack(">H", 1005)), 1002),
    "a text that is no UTF-8": (frame(TEXT, b"\xff\xfe"), 1007),
    "a text that is no UTF-8 in pieces": (frame(TEXT, b"\xc3", last=False) + frame(CONTINUED, b"\x28"), 1007),
    "one that is too large": (b"\x81\xff" + struct.pack(">Q", LIMIT + 1) + b"\0\0\0\0", 1009),
    "one of 2^63 bytes": (b"\x81\xff" + struct.pack(">Q", 2**63) + b"\0\0\0\0", 1009),
    "pieces that are too large": (
        frame(TEXT, "[", last=False) + frame(CONTINUED, " " * 65_000, last=False) * 5 + frame(CONTINUED, "]"),
        1009,
    ),
}


def test_a_wrong_frame_ends_the_connection_with_the_code_for_it(web: WebDaemon) -> None:
    with sweep() as row:
        for what, (data, code) in WRONG_FRAMES.items():
            for headers in ([], bearer(web.token("boss"))):
                with row((what, headers)), opened(web, headers) as socket:
                    socket.write(data)
                    assert socket.closed_with() == code


def test_a_message_in_many_pieces_with_pings_between_is_one_message(web: WebDaemon) -> None:
    text = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "daemon.ping", "params": {}})
    with opened(web, bearer(web.token("boss"))) as socket:
        first, *rest = text
        socket.write(frame(TEXT, first, last=False))
        for letter in rest:
            socket.write(frame(PING, letter), frame(CONTINUED, letter, last=False))
        socket.write(frame(CONTINUED, ""))
        assert [socket.read() for _ in rest] == [(PONG, letter.encode()) for letter in rest]
        assert socket.answer()["result"]["pong"] is True


def test_many_empty_pieces_are_no_message(web: WebDaemon) -> None:
    with opened(web, bearer(web.token("boss"))) as socket:
        socket.write(frame(TEXT, "", last=False), frame(CONTINUED, "", last=False) * 10_000)
        socket.write(frame(CONTINUED, ""))
        assert socket.answer()["error"]["data"]["code"] == "parse_error"


def test_what_a_message_asks_with_a_token_is_done_for_that_caller_only(web: WebDaemon) -> None:
    with opened(web, bearer(web.token("nex"))) as socket:
        for token, address in ((web.token("boss"), "user:boss"), (None, "agent:nex")):
            proof = {} if token is None else {"token": token}
            socket.ask("envelope.send", to="agent:nex", text="x", **proof)
            number = socket.answer()["result"]["ids"][0]
            assert web.call("envelope.get", token=web.token("boss"), id=number)["envelope"]["from"] == address


def test_unasked_pongs_and_closes_change_nothing(web: WebDaemon) -> None:
    with opened(web, bearer(web.token("boss"))) as socket:
        socket.write(frame(PONG, "x") * 1_000)
        socket.ask("daemon.ping")
        assert socket.answer()["result"]["pong"] is True
        socket.write(frame(CLOSE, struct.pack(">H", 1000)))
        assert socket.closed_with() == 1000 and socket.connection.is_closed()
    wait_until(web.still_works)
