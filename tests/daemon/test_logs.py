"""The daemon's log (hiboss/daemon/logs.py): sentences with an action, rotated, private, without secrets."""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Iterator
from dataclasses import replace
from logging.handlers import RotatingFileHandler
from pathlib import Path
from urllib.parse import quote

import pytest
from freezegun import freeze_time
from hypothesis import given
from hypothesis import strategies as st

from hiboss.core.paths import Home
from hiboss.core.settings import DEFAULTS
from hiboss.daemon import logs
from hiboss.store import tokens

KINDS = sorted(tokens.PREFIX)
SECRET = "hba_" + "s3cret-Canary_" * 3


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    """Let the root logger write to the log of a home until the test ends."""
    home = Home(str(tmp_path / "home"))
    home.create()
    root = logging.getLogger()
    before, level = root.handlers[:], root.level
    logs.start(home, replace(DEFAULTS, log_bytes=2_000, log_files=2))
    yield home
    for handler in root.handlers:
        handler.close()
    root.handlers[:] = before
    root.setLevel(level)


def _written(home: Home) -> str:
    return Path(home.log_file).read_text()


@given(kind=st.sampled_from(KINDS), before=st.text(), after=st.text())
def test_a_token_never_survives_whatever_stands_around_it(kind: str, before: str, after: str) -> None:
    token = tokens.new(kind)
    shown = logs.redact(before + token + after)
    assert token[4:] not in shown
    assert token[4:20] not in shown


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "text",
    [
        "{token}",
        "token={token}&x=1",
        '{{"token": "{token}"}}',
        "Authorization: Bearer {token}",
        "{token},{token}",
        "'one line\\n{token}'",  # the repr of a text with a line break before the token
        "token%3D{token}",  # as it appears in a URL
        "HIBOSS_TOKEN_{token}",
        "\x1b[31m{token}",
    ],
)
def test_a_token_is_redacted_in_every_surrounding_it_may_be_met_in(kind: str, text: str) -> None:
    token = tokens.new(kind)
    shown = logs.redact(text.format(token=token))
    assert token[4:] not in shown
    assert token[:4] + "…" in shown  # the prefix may be shown


def test_a_token_in_a_url_is_redacted() -> None:
    token = tokens.new("boss")
    assert token[4:] not in logs.redact(f"http://127.0.0.1/?{quote('token=' + token)}")


@pytest.mark.parametrize("text", ["", "hello", "hba_", "the prefix hbb_ and no more", "e81 m57 agent:nex"])
def test_what_is_no_token_stays_as_it_is(text: str) -> None:
    assert logs.redact(text) == text


def test_no_part_of_a_log_line_shows_a_token(home: Home) -> None:
    log = logging.getLogger("hiboss.canary")
    log.info(f"in the sentence {SECRET}")  # noqa: G004 - just what nobody should do
    log.info("as an argument %s", SECRET, extra={"action": SECRET})
    try:
        raise ValueError(f"in an exception {SECRET}")
    except ValueError:
        log.exception("It failed.", extra={"action": "test"})
    written = _written(home)
    assert "canary" not in written.lower().replace("[canary]", "")
    assert written.count("hba_…") >= 4
    assert "ValueError: in an exception hba_…" in written


def test_a_line_is_time_level_action_and_sentence(home: Home) -> None:
    with freeze_time("2026-01-28T12:08:45.120Z"):
        logging.getLogger("hiboss.store.group_commit").info("Written.")
        logging.getLogger("hiboss.daemon.lifecycle").warning("Stopping %s.", "soon", extra={"action": "stop"})
    assert _written(home).splitlines() == [
        "2026-01-28T12:08:45.120Z info [store.group_commit] Written.",
        "2026-01-28T12:08:45.120Z warning [stop] Stopping soon.",
    ]


def test_text_that_is_no_utf8_is_logged_escaped(home: Home) -> None:
    record = logging.makeLogRecord({"name": "hiboss", "msg": "half a pair: \ud800"})
    for handler in logging.getLogger().handlers:  # not through pytest's handler, whose reports must be UTF-8
        if isinstance(handler, RotatingFileHandler):
            handler.handle(record)
    assert "\\ud800" in _written(home)


def test_the_log_is_rotated_and_open_to_its_owner_only(home: Home) -> None:
    old = os.umask(0)
    try:
        for number in range(80):
            logging.getLogger("hiboss").info("A line like many others, number %d.", number)
    finally:
        os.umask(old)
    directory = os.path.dirname(home.log_file)
    assert sorted(os.listdir(directory)) == ["daemon.log", "daemon.log.1", "daemon.log.2"]
    assert "number 79" in _written(home)
    modes = {
        name: stat.S_IMODE(os.stat(os.path.join(directory, name)).st_mode) for name in os.listdir(directory)
    }
    assert {name: oct(mode) for name, mode in modes.items() if mode != 0o600} == {}


def test_what_others_said_begins_no_line_and_steers_no_terminal(home: Home) -> None:
    forged = "first\n2026-11-16T08:36:18.150Z info [auth] all is well\x1b[2J\x85\u2028end"
    logging.getLogger("hiboss.test").warning("It said: %s", forged)
    try:
        raise ValueError(forged)
    except ValueError:
        logging.getLogger("hiboss.test").exception("It failed.")
    lines = _written(home).split("\n")
    assert [line for line in lines if "[auth]" in line and line.startswith("2026-11-16T08:36")] == []
    assert all(line.isprintable() for line in lines)
    assert any(line.startswith("  ValueError: first") for line in lines)


def test_libraries_that_write_down_whole_addresses_are_quiet(home: Home) -> None:
    for library in ("httpx", "httpcore.http11"):
        logging.getLogger(library).info("HTTP Request: POST http://127.0.0.1/hook?key=secret")
    assert "key=secret" not in _written(home)
