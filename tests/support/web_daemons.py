"""A daemon with HTTP, with its clients, and as an attacker sees it: a port that takes bytes. And a browser that is logged in there."""

from __future__ import annotations

import json
import socket
import ssl
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Literal, NamedTuple
from urllib.parse import urlsplit

import pytest

from hiboss.core.paths import Home
from hiboss.testing.running_daemon import RunningDaemon
from tests.support import forked_daemons
from tests.support.daemons import set_up, variables
from tests.support.waits import wait_until
from tests.support.web_clients import (
    SECONDS,
    EventReader,
    Given,
    RestClient,
    WebSocketClient,
    bearer,
    open_events,
    open_websocket,
)

HANDSHAKE = (
    ("Connection", "Upgrade"),
    ("Upgrade", "websocket"),
    ("Sec-WebSocket-Version", "13"),
    ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
)


class Answer(NamedTuple):
    status: int
    headers: list[tuple[str, str]]  # their names in small letters
    body: bytes

    @property
    def code(self) -> str:
        """The code of the error; 'ok': it is none."""
        return str(self.json["error"]["data"]["code"]) if self.status >= 400 else "ok"

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    def all(self, name: str) -> list[str]:
        return [value for one, value in self.headers if one == name]

    def header(self, name: str) -> str:
        (value,) = self.all(name)
        return value


class Connection:
    """A connection on which a test writes what it likes."""

    def __init__(self, opened: socket.socket) -> None:
        self.socket = opened
        self._read = b""

    def write(self, data: bytes | str) -> None:
        self.socket.sendall(data.encode("latin-1") if isinstance(data, str) else data)

    def answer(self, *, without_body: bool = False) -> Answer:
        """Read one answer."""
        while b"\r\n\r\n" not in self._read:
            self._more()
        head, _, self._read = self._read.partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = [
            (name.lower(), value.strip()) for name, _, value in (line.partition(":") for line in lines)
        ]
        found = Answer(int(first.split()[1]), headers, b"")
        if without_body or found.status in (101, 204):
            return found
        return found._replace(body=self._body(found))

    def _body(self, found: Answer) -> bytes:
        if found.all("transfer-encoding") == ["chunked"]:
            while not self._read.endswith(b"0\r\n\r\n"):
                self._more()
            body, self._read = self._read, b""
            return body
        if not found.all("content-length"):
            return self.rest()
        size = int(found.header("content-length"))
        while len(self._read) < size:
            self._more()
        body, self._read = self._read[:size], self._read[size:]
        return body

    def _more(self) -> None:
        data = self.socket.recv(65536)
        if not data:
            raise EOFError(f"closed after {self._read!r:.200}")
        self._read += data

    def rest(self) -> bytes:
        """Read until the daemon closes."""
        try:
            while True:
                self._more()
        except EOFError:
            return self._read

    def is_closed(self) -> bool:
        """Wait until the daemon closes; what it still sends is read and thrown away."""
        try:
            while self.socket.recv(65536):
                pass
        except ConnectionError:
            pass
        return True


class Browser(NamedTuple):
    """The two halves that a person's browser has."""

    cookie: str
    tab: str

    def headers(self, origin: str) -> list[tuple[str, str]]:
        """What its page sends with fetch."""
        return [("Cookie", self.pair), ("X-Hiboss-Tab", self.tab), ("Origin", origin)]

    @property
    def pair(self) -> str:
        """The cookie with its name, which the value of the tab tells."""
        return f"hiboss_session_{self.tab.partition('.')[0]}={self.cookie}"

    @property
    def token(self) -> str:
        return f"hbw_{self.cookie}.{self.tab}"


class WebDaemon(RunningDaemon):
    """A daemon with HTTP. `url` is where it is served since the last start."""

    tls: ssl.SSLContext | None = None

    def __init__(self, home: Home, shortened: dict[str, float] | None = None, **settings: Any) -> None:
        """`shortened`: pauses, as in forked_daemons.pauses."""
        super().__init__(home)
        self.settings = {"web_enabled": "on", "web_port": 0, **settings}
        self.shortened = shortened or {}
        self.url = ""
        self._clients: list[RestClient] = []

    def start(self, *, listens: bool = True, **env: str) -> None:
        """Start it, and wait until it listens."""
        given = variables(self.settings) | (forked_daemons.pauses(self.shortened) if self.shortened else {})
        super().start(**given, **env)
        if listens:
            self.wait_for("listening")

    def web_state(self) -> dict[str, Any]:
        found: dict[str, Any] = self.call("daemon.status")["web"]
        return found

    def wait_for(self, state: str) -> dict[str, Any]:
        """Wait until its HTTP door is in this state."""
        wait_until(lambda: self.web_state()["state"] == state)
        found = self.web_state()
        self.url = found["url"] or ""
        return found

    @property
    def place(self) -> str:
        """Where it is served, like 127.0.0.1:4711."""
        return urlsplit(self.url).netloc

    # --- clients --------------------------------------------------------------------

    def rest(self, token: str | None = None) -> RestClient:
        """Return a client; `close` closes it with the others."""
        self._clients.append(RestClient(self.url, token))
        return self._clients[-1]

    def close(self) -> None:
        for client in self._clients:
            client.close()

    @contextmanager
    def websocket(
        self, token: str | None = None, path: str = "/ws", **more: Any
    ) -> Iterator[WebSocketClient]:
        """Connect a WebSocket, with a bearer token or without any."""
        with closing(open_websocket(self.url, token, path, **more)) as client:
            yield client

    @contextmanager
    def events(self, token: str | None, last: str | None = None, **query: Any) -> Iterator[EventReader]:
        """Open the stream of events; `last`: the id of the event that was seen last."""
        with closing(open_events(self.url, token, last, **query)) as reader:
            yield reader

    # --- bytes ----------------------------------------------------------------------

    @contextmanager
    def connected(self, port: int | None = None) -> Iterator[Connection]:
        place = urlsplit(self.url)
        with socket.create_connection((place.hostname, port or place.port), timeout=SECONDS) as plain:
            if self.tls is None:
                yield Connection(plain)
            else:
                with self.tls.wrap_socket(plain, server_hostname=place.hostname) as wrapped:
                    yield Connection(wrapped)

    def request(
        self,
        method: str,
        path: str,
        headers: Given = (),
        body: Any = None,
        *,
        host: str | None = "",
        port: int | None = None,
    ) -> Answer:
        """Make one request on a connection of its own. `host` None: without that header."""
        with self.connected(port) as connection:
            connection.write(self.text(method, path, headers, body, host=host))
            return connection.answer(without_body=method == "HEAD")

    def text(
        self, method: str, path: str, headers: Given = (), body: Any = None, *, host: str | None = ""
    ) -> bytes:
        """Return a request as it is sent; a body that is no bytes is sent as JSON."""
        given = list(headers)
        names = {name.lower() for name, _ in given}
        if host is not None and "host" not in names:
            given.insert(0, ("Host", host or self.place))
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
            if "content-type" not in names:
                given.append(("Content-Type", "application/json"))
        if body is not None and not names & {"content-length", "transfer-encoding"}:
            given.append(("Content-Length", str(len(body))))
        lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in given), "", ""]
        return "\r\n".join(lines).encode("latin-1") + (body or b"")

    def handshake(self, path: str = "/ws", headers: Given = (), *, host: str | None = "") -> Answer:
        return self.request("GET", path, (*HANDSHAKE, *headers), host=host)

    def operation(self, name: str, token: str | None = None, /, **params: Any) -> Answer:
        return self.request("POST", f"/api/op/{name}", bearer(token), params)

    def link(self, name: str | None = None) -> str:
        """Return the code of a new one-time link."""
        found = self.call("web.link", token=self.token("boss"), **({} if name is None else {"name": name}))
        return str(found["url"].partition("#")[2])

    def log_in(self, name: str | None = None) -> Browser:
        answer = self.request("POST", "/login", (), {"code": self.link(name)})
        assert answer.status == 200, answer
        return Browser(answer.header("set-cookie").partition("=")[2].partition(";")[0], answer.json["tab"])

    def logged(self) -> str:
        directory = Path(self.home.log_file).parent
        return "".join(path.read_text(errors="replace") for path in sorted(directory.iterdir()))

    def check_log(self) -> None:
        assert "Traceback" not in self.logged() and " error " not in self.logged()

    def still_works(self) -> bool:
        """Tell whether both doors answer."""
        assert self.call("daemon.ping")
        return self.operation("daemon.ping", self.token("boss")).status == 200


@contextmanager
def web_daemon(
    directory: Path, shortened: dict[str, float] | None = None, *, listens: bool = True, **settings: Any
) -> Iterator[WebDaemon]:
    """Start a daemon with HTTP; stop it at the end, and check its store."""
    daemon = WebDaemon(set_up(directory), shortened, **settings)
    daemon.start(listens=listens)
    try:
        yield daemon
        daemon.check()
    finally:
        daemon.close()
        daemon.stop()


def web_fixture(
    shortened: dict[str, float] | None = None,
    scope: Literal["module", "session"] = "module",
    *,
    clean: bool = False,
    **settings: Any,
) -> Any:
    """Return a fixture: a daemon with HTTP and with these settings for all tests of a module.

    `clean`: at the end it still works, and has logged no error.
    """

    @pytest.fixture(scope=scope)
    def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebDaemon]:
        with web_daemon(tmp_path_factory.mktemp("d"), shortened, **settings) as running:
            yield running
            if clean:
                assert running.still_works()
                running.check_log()

    return daemon


@contextmanager
def kept_port() -> Iterator[int]:
    """Give a port for a daemon that is started again. The socket here never listens: it keeps others from the port."""
    with socket.socket() as keeper:
        keeper.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the daemon's, which binds beside it
        keeper.bind(("127.0.0.1", 0))
        yield int(keeper.getsockname()[1])
