"""A web server on this machine that takes what webhooks post, checks the signatures, and says what it is told.

It runs in threads of its own, so it also serves a daemon in another process.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, BinaryIO, NamedTuple

from hiboss.core.webhook_signatures import key_of, verified


class Post(NamedTuple):
    id: str  # the webhook-id
    body: bytes
    path: str
    headers: dict[str, str]  # by name in small letters
    status: int  # what was answered; 0: nothing was

    @property
    def fact(self) -> Any:
        return json.loads(self.body)


class FactReceiver:
    """Takes posts; `answers` are used up one after the other, then `usual` is the answer.

    An answer is a status, or a status and headers; 0 closes the connection without one, -1 keeps the caller
    waiting until `release`. With `body` the status is followed by what that writes, until it returns.
    """

    def __init__(self) -> None:
        self.posts: list[Post] = []
        self.answers: list[Any] = []
        self.usual: Any = 204
        self.secret: str | None = None  # None: whatever is signed is taken
        self.forged: list[Post] = []
        self.body: Callable[[BinaryIO], None] | None = None
        self.released = threading.Event()
        self._lock = threading.Lock()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                receiver._take(self)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/facts?key=a-word-of-the-url"

    @property
    def taken(self) -> list[Post]:
        """Return what it has confirmed, each id once."""
        return list({one.id: one for one in self.posts if 200 <= one.status < 300}.values())

    def facts(self, *topics: str) -> list[Any]:
        """Return the data of the facts that it has confirmed, in order; only of these topics."""
        found = [one.fact for one in self.taken]
        return [one["data"] for one in found if not topics or one["type"] in topics]

    def close(self) -> None:
        self.released.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _take(self, request: BaseHTTPRequestHandler) -> None:
        headers = {name.lower(): value for name, value in request.headers.items()}
        size = int(headers.get("content-length", "0"))
        if len(body := request.rfile.read(size)) < size:  # its sender ended in the middle of it
            request.close_connection = True
            return
        with self._lock:
            answer = self.answers.pop(0) if self.answers else self.usual
            status, more = answer if isinstance(answer, tuple) else (answer, {})
            post = Post(headers.get("webhook-id", ""), body, request.path, headers, max(status, 0))
            self.posts.append(post)
            if self.secret is not None and not self._is_right(post):
                self.forged.append(post)
        if status == -1:
            self.released.wait(60)
        if status <= 0:
            request.close_connection = True
            return
        request.send_response(status)
        for name, value in more.items():
            request.send_header(name, value)
        if self.body is None:
            request.send_header("content-length", "0")
            request.end_headers()
            return
        request.send_header("content-length", "1000000000")
        request.end_headers()
        request.close_connection = True
        with suppress(OSError):  # the other side has read enough
            self.body(request.wfile)

    def _is_right(self, post: Post) -> bool:
        assert self.secret is not None
        key = key_of(self.secret) or b""
        return verified((key, b""), post.headers, post.body, int(time.time() * 1000)) == post.id


@contextmanager
def fact_receiver() -> Iterator[FactReceiver]:
    made = FactReceiver()
    try:
        yield made
    finally:
        made.close()
