"""Frames of a WebSocket that say they are text, and are not."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from tests.support.web_daemons import web_daemon
from tests.web.test_websocket_ends import CLOSE, raw_client

NO_TEXT = b"\x81\x82" + bytes(4) + b"\xff\xff"
CLOSING = b"\x88\x82" + bytes(4) + struct.pack("!H", 1000)


def test_frames_that_are_no_text_close_the_connection_and_leave_no_line_in_the_log(tmp_path: Path) -> None:
    ping = b"\x89\x80" + bytes(4)
    cases = [(NO_TEXT, 1007), (2 * NO_TEXT, 1007), (NO_TEXT + ping, 1007), (NO_TEXT + CLOSING, 1000)]
    with web_daemon(tmp_path) as daemon:
        for segment, answer in cases:
            with raw_client(daemon, daemon.token("nex")) as client:
                client.ask(1, "daemon.ping")
                assert client.read_json()["result"]["pong"]
                client.socket.sendall(segment)
                frames = []
                with pytest.raises(EOFError):
                    while True:
                        frames.append(client.read())
                assert frames[-1] == (CLOSE, struct.pack("!H", answer)), (segment, frames)
        assert "Traceback" not in daemon.logged()
