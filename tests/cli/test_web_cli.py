"""`hiboss web`: a link for a browser, which no process list shows; and the state of HTTP in other commands."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import Done, Office, Shell
from tests.support.web_clients import RestClient
from tests.support.web_daemons import WebDaemon, kept_port, web_daemon

# What a browser is given, what it can read, and what everybody can see of its process.
BROWSER = """#!/bin/sh
printf '%s' "$1" > {place}/given
cp "$(echo "$1" | sed s,^file://,,)" {place}/page
tr '\\0' ' ' < /proc/$$/cmdline > {place}/seen
exit {status}
"""


class Desk(Office):
    """A terminal beside a daemon with HTTP, and a browser that notes what it is given."""

    def __init__(self, daemon: WebDaemon, place: Path) -> None:
        super().__init__(daemon)
        self.url = daemon.url
        self.place = place

    def browser(self, status: int = 0) -> dict[str, str]:
        """The environment of a person with a screen; `status`: how the browser ends."""
        program = self.place / f"browser-{status}"
        program.write_text(BROWSER.format(place=self.place, status=status))
        program.chmod(0o700)
        return {"BROWSER": str(program)}

    @property
    def pages(self) -> list[Path]:
        return sorted(Path(self.home.path, "login-pages").glob("*"))

    def noted(self, name: str) -> str:
        return (self.place / name).read_text()


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    with web_daemon(tmp_path_factory.mktemp("d")) as daemon:
        daemon.call("user.register", token=daemon.token("boss"), name="mia", profile=True)
        yield Desk(daemon, tmp_path_factory.mktemp("screen"))


def log_in(desk: Desk, link: str) -> Any:
    """Use a link as its page does."""
    place, _, code = link.partition("/login#")
    assert place == desk.url and code
    client = RestClient(place)
    reply = client.request("POST", "/login", {"code": code})
    client.close()
    return reply.json


def test_print_prints_a_link_that_logs_in_once(desk: Desk) -> None:
    done = desk("web", "--print", env=desk.browser())
    assert (done.rc, done.stderr) == (0, "") and set(done.record) == {"url", "address", "expires-at"}
    assert done.record["address"] == "user:boss" and done.record["expires-at"].endswith("+00:00")
    assert log_in(desk, done.record["url"])["address"] == "user:boss"
    assert log_in(desk, done.record["url"])["error"]["data"]["code"] == "login_refused"
    assert not (desk.place / "given").exists()


def test_a_browser_gets_a_private_page_and_no_process_shows_the_link(desk: Desk) -> None:
    done = desk("web", env=desk.browser())
    assert done.rc == 0 and done.record["opened"] == "true" and "/login#" not in done.stdout + done.stderr
    (page,) = desk.pages
    assert desk.noted("given") == page.as_uri() and page.name in desk.noted("seen")
    assert stat.S_IMODE(page.stat().st_mode) == 0o600 and stat.S_IMODE(page.parent.stat().st_mode) == 0o700
    _, _, rest = desk.noted("page").partition('content="0; url=')
    link = rest.partition('"')[0]
    assert "/login#" in link and link not in desk.noted("seen")
    assert log_in(desk, link)["address"] == "user:boss"


def test_old_pages_are_deleted_by_the_next_command(desk: Desk) -> None:
    desk("web", env=desk.browser())
    old, *_ = desk.pages
    os.utime(old, (1_000_000_000, 1_000_000_000))
    known = set(desk.pages)
    assert desk("web", env=desk.browser()).rc == 0
    assert old not in desk.pages and len(set(desk.pages) - known) == 1  # the young ones are kept


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"SSH_CONNECTION": "192.0.2.1 50000 192.0.2.2 22", "DISPLAY": ":10"},
        {"SSH_TTY": "/dev/pts/1", "BROWSER": "true"},
        {"BROWSER": "/nowhere/browser"},
    ],
)
def test_where_no_browser_can_be_opened_the_link_is_printed(desk: Desk, environment: dict[str, str]) -> None:
    known = desk.pages
    done = desk("web", env=environment)
    port = desk.url.rpartition(":")[2]
    assert done.rc == 0 and f"ssh -L {port}:127.0.0.1:{port} HOST" in done.stderr
    assert log_in(desk, done.record["url"])["address"] == "user:boss" and desk.pages == known


def test_a_browser_that_fails_leaves_no_page(desk: Desk) -> None:
    known = desk.pages
    done = desk("web", env=desk.browser(status=1))
    assert "No browser can be opened here" in done.stderr and done.record["url"]
    assert desk.pages == known


def test_json_shows_the_same(desk: Desk) -> None:
    printed = desk("web", "--print", "--json")
    assert set(printed.json) == {"url", "address", "expires_at", "timezone"} and printed.stderr == ""
    opened = desk("web", "--json", env=desk.browser())
    assert opened.json["opened"] is True and "url" not in opened.json and opened.stderr == ""


def test_the_boss_makes_a_link_for_another_person_and_people_only_for_themselves(desk: Desk) -> None:
    for words in (["--user", "mia"], ["--as", "mia"], ["--as", "mia", "--user", "user:mia"]):
        assert log_in(desk, desk("web", "--print", *words).record["url"])["address"] == "user:mia"
    assert "code: boss_only\n" in desk("web", "--print", "--as", "mia", "--user", "boss").stderr
    assert "code: unknown_user\n" in desk("web", "--print", "--user", "nobody").stderr
    refused = desk("web", "--as", "nex", env=desk.browser())
    assert (refused.rc, "code: not_a_person\n" in refused.stderr) == (1, True)


def test_logout_ends_every_browser(desk: Desk) -> None:
    desk("web", "--logout", "--as", "mia")  # what other tests left
    for _ in range(2):
        log_in(desk, desk("web", "--print", "--as", "mia").record["url"])
    assert desk("web", "--logout", "--as", "mia").record["changed"] == "2"
    assert desk("web", "--logout", "--as", "mia", "--json").json == {"changed": 0}
    assert {desk("web", "--logout", *words).rc for words in (["--print"], ["--user", "mia"])} == {2}


def test_the_status_shows_where_http_is_served(desk: Desk) -> None:
    shown = desk("daemon", "status").record
    assert (shown["web"], shown["web-url"]) == ("listening", desk.url)
    assert "web-error" not in shown and "web-hooks-url" not in shown


# --- a door that is not open -----------------------------------------------------------


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    shell = Shell(tmp_path / "home")
    shell.set_up()
    yield shell
    shell.end_daemon()


def up(shell: Shell, port: int) -> Done:
    return shell("up", "--detach", env={"HIBOSS_WEB_ENABLED": "on", "HIBOSS_WEB_PORT": str(port)})


def test_up_says_where_http_is_served_and_a_link_follows_at_once(shell: Shell) -> None:
    with kept_port() as port:
        done = up(shell, port)
        assert (done.rc, done.values("web")) == (0, [f"http://127.0.0.1:{port}"])
        assert shell("up", "--detach", "--json").json["web"] == f"http://127.0.0.1:{port}"
    assert shell("daemon", "restart", env={"HIBOSS_WEB_ENABLED": "on", "HIBOSS_WEB_PORT": "0"}).rc == 0
    assert shell("web", "--print").record["url"].startswith("http://127.0.0.1:")  # it waits for the door


def test_a_taken_port_is_said_by_up_by_the_status_and_by_web(desk: Desk, shell: Shell) -> None:
    taken = int(desk.url.rpartition(":")[2])
    done = up(shell, taken)
    why = f"127.0.0.1:{taken} cannot be listened on: Address already in use"
    assert done.rc == 0 and f"HTTP is not served: {why}." in done.stderr and not done.values("web")
    status = shell("daemon", "status").record
    assert (status["web"], status["web-error"]) == ("retrying", why)
    refused = shell("web")
    assert why in refused.stderr and "code: web_unavailable\n" in refused.stderr


def test_with_http_off_the_error_says_so(shell: Shell) -> None:
    assert shell("up", "--detach").stderr == ""
    assert shell("daemon", "status").record["web"] == "off"
    refused = shell("web", "--print")
    assert refused.rc == 1 and "it is switched off (web.enabled)" in refused.stderr
