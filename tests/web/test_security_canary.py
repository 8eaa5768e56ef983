"""A canary token given to the HTTP door, rightly and wrongly, appears nowhere: neither in files nor in errors.

The same search as in tests/acceptance/test_canary.py, where the story is about the command and the socket.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from hiboss.store import tokens
from tests.acceptance.canary import Canary, Evidence
from tests.support.web_clients import Given, bearer
from tests.support.web_daemons import HANDSHAKE, Answer, WebDaemon, web_daemon

RECORD = re.compile(r"(20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d\d\dZ (debug|info|warning|error) \[|  )")


class Story:
    """A home, what was tried on its HTTP door, and what could be read of it."""

    def __init__(self, web: WebDaemon) -> None:
        self.web = web
        self.evidence = Evidence()
        self.canaries: list[Canary] = []
        self.statuses: set[int] = set()
        self.strange = self.know("the token of another home", tokens.new("boss"))
        self.boss = self.know("the boss's token", web.token("boss"))
        self.code = self.know_half("the code of a link", web.link())
        self.unused = self.know_half("the code of a link that nobody used", web.link())
        self.browser = web.log_in()
        self.know_half("the cookie", self.browser.cookie)
        self.know_half("the value of the tab", self.browser.tab.partition(".")[2])

    def know(self, name: str, token: str) -> str:
        self.canaries.append(Canary(name=name, token=token))
        return token

    def know_half(self, name: str, value: str) -> str:
        """What has no prefix by which it is known. Whoever puts it somewhere else gets it back, and nobody else."""
        self.canaries.append(Canary(name=name, token=f"hbw_{value}", may=("answer",)))
        return value

    def ask(self, method: str, path: str, headers: Given = (), body: object = None) -> Answer:
        answer = self.web.request(method, path, headers, body)
        self.statuses.add(answer.status)
        if answer.status >= 400:
            shown = f"{method} {path}"[:60].replace(self.boss, "BOSS").replace(self.strange, "STRANGE")
            self.evidence.add(f"answer to {shown}", json.dumps(answer.headers).encode() + answer.body)
        return answer

    def tell(self) -> None:
        self.ask("POST", "/login", (), {"code": self.code})
        self.ask("POST", "/login", (), {"code": self.code})
        self.in_its_place()
        for secret in (self.boss, self.strange, self.code, self.unused, *self.browser, self.browser.token):
            self.in_urls(secret)
            self.in_headers(secret)
            self.in_bodies(secret)
        self.in_websockets()
        self.ask("POST", "/logout", self.browser.headers(self.web.url), {})
        self.ask("GET", "/api/agents", self.browser.headers(self.web.url))
        self.evidence.add_home(self.web.home.path, "at the end")

    def in_its_place(self) -> None:
        for headers in (bearer(self.boss), bearer(self.strange), self.browser.headers(self.web.url)):
            for path in ("/api/agents", "/api/messages?page_size=x", "/nothing", "/api/runs/r999999"):
                self.ask("GET", path, headers)
            self.ask("POST", "/api/op/daemon.ping", headers, {})
            self.ask("POST", "/api/op/daemon.ping", headers, b"{")
            self.ask("GET", "/api/agents", [*headers, ("Host", "evil.example")])
            self.ask("POST", "/api/messages", headers, {"to": "agent:nex", "text": "hello", "nonsense": 1})

    def in_urls(self, secret: str) -> None:
        """Where they do not belong. `token=` is refused, with the advice to rotate it."""
        word = quote(secret)
        for path in (
            f"/api/agents?token={word}",
            f"/api/events?token={word}",
            f"/api/messages?{word}=1",
            f"/api/messages?agent={word}",
            f"/api/messages?page_size={word}",
            f"/api/messages/{word}",
            f"/api/conversations/{word}/messages",
            f"/api/{word}",
            f"/{word}",
            f"/login?{word}",
            f"/static/{word}",
        ):
            self.ask("GET", path, bearer(self.boss))
        self.ask("POST", f"/hooks/{word}", (), {})
        self.ask("POST", f"/api/op/{word}", bearer(self.boss), {})
        self.ask("POST", f"/api/op/daemon.ping?token={word}", (), {})
        self.ask("GET", f"/ws?token={word}", HANDSHAKE)

    def in_headers(self, secret: str) -> None:
        coded = base64.b64encode(f"boss:{secret}".encode()).decode()
        for name, value in {
            "Authorization": secret,
            "authorization": f"Basic {coded}",
            "Cookie": f"hiboss_session={secret}",
            "X-Hiboss-Tab": secret,
            "Idempotency-Key": secret,
            "Last-Event-ID": secret,
            "Content-Type": secret,
            "Origin": f"http://{secret}",
            "Host": secret,
            "Referer": f"http://127.0.0.1/#{secret}",
            "User-Agent": secret,
            "Transfer-Encoding": secret,
            "Content-Length": secret,
            "Sec-WebSocket-Key": secret,
            "Sec-WebSocket-Protocol": secret,
            secret.replace(".", "-"): "x",
        }.items():
            for start in ((), HANDSHAKE[:3]):
                self.ask("POST", "/api/op/daemon.ping", [*start, (name, value)], b"{}")
                if name != "Last-Event-ID" or start:
                    self.ask("GET", "/api/agents", [*start, (name, value)])
        self.ask(secret.replace(".", "-"), "/")

    def in_bodies(self, secret: str) -> None:
        boss = bearer(self.boss)
        for body in (
            {secret: 1},
            {"token": secret},
            {"token": [secret]},
            {"name": secret},
            {"code": secret, "x": 1},
            secret,
            [secret],
        ):
            self.ask("POST", "/api/op/agent.status", boss, body)
            if not (isinstance(body, dict) and "name" in body):  # an agent of that name would be content
                self.ask("POST", "/api/agents", boss, body)
            if not (isinstance(body, dict) and set(body) == {"code"}):
                self.ask("POST", "/login", (), body)
        for content in (secret.encode(), f'{{"{secret}'.encode(), f'"{secret}"'.encode()):
            self.ask("POST", "/api/op/daemon.ping", [*boss, ("Content-Type", "application/json")], content)

    def in_websockets(self) -> None:
        page = [("Cookie", self.browser.pair), ("Origin", self.web.url)]
        for headers in ([], page, bearer(self.boss), bearer(self.strange)):
            for word in (self.boss, self.strange, self.browser.tab, self.unused):
                text = json.dumps(
                    {"tab": word, "method": word, "params": {"token": word, word: word}}
                ).encode()
                for data in (text, text[:-9], word.encode()):
                    with self.web.connected() as connection:
                        connection.write(self.web.text("GET", "/ws", [*HANDSHAKE, *headers]))
                        if connection.answer(without_body=True).status != 101:
                            break
                        mask = b"\0\0\0\0"
                        size = bytes([0x80 | 126]) + len(data).to_bytes(2, "big")
                        connection.write(b"\x81" + size + mask + data)
                        connection.write(b"\x88\x82" + mask + b"\x03\xe8")
                        connection.is_closed()


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    with web_daemon(tmp_path_factory.mktemp("d"), log_level="debug") as web:
        story = Story(web)
        story.tell()
        yield story


def test_the_story_was_answered_in_every_way(story: Story) -> None:
    assert story.statuses >= {200, 400, 401, 403, 404, 405, 415, 421}
    assert not [status for status in story.statuses if status >= 500]
    names = {place.split()[1] for place, _ in story.evidence.gathered if place.startswith("file ")}
    assert {"hiboss.db", "logs/daemon.log"} <= names


def test_no_secret_of_a_request_is_in_a_file(story: Story) -> None:
    assert story.evidence.leaks(story.canaries, "file") == []


def test_no_token_is_in_an_error(story: Story) -> None:
    assert story.evidence.leaks(story.canaries, "answer") == []


def test_the_search_finds_what_there_is_to_find(story: Story) -> None:
    for canary in story.canaries:
        planted = Evidence([("file logs/daemon.log", b"before " + canary.token[4:].encode() + b" after")])
        assert len(planted.leaks([canary])) == 1


# --- lines ------------------------------------------------------------------------------------------


def test_no_request_writes_a_line_of_its_own_into_the_log(story: Story) -> None:
    web = story.web
    forged = "\n2026-01-01T00:00:00.000Z info [web] The boss logged in.\x1b[2J\x07\u2028"
    boss = bearer(web.token("boss"))
    for text in (forged, forged.replace("\n", "\r\n"), forged.replace("\n", "\r")):
        word = quote(text)
        for path in (f"/{word}", f"/api/messages/{word}", f"/api/messages?agent={word}", f"/hooks/{word}"):
            web.request("GET", path, boss)
            web.request("POST", path, boss, {text: text})
        web.request("POST", f"/api/op/{word}", boss, {})
        web.request("POST", "/api/agents", boss, {"name": text, "role": text})
        web.request("POST", "/login", (), {"code": text})
        web.handshake(f"/{word}", boss)
        with web.connected() as connection:
            connection.write(f"GET {text}".encode() + b" HTTP/1.1\r\n\r\n")
            connection.is_closed()
    log = Path(web.home.log_file).read_text()
    assert "The boss logged in" not in re.sub(r"\\x[0-9a-f]{2}.*", "", log)
    assert [line for line in log.splitlines() if not RECORD.match(line)] == []
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029]", log)
