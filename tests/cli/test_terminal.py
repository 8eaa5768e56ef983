"""What a person at a terminal sees: tables, colour, a bar while something lasts; and what a pipe gets."""

from __future__ import annotations

import os
import re
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wcwidth import wcswidth, wcwidth

from hiboss.cli.daemon_process import holder
from hiboss.cli.table_layout import Column, fit
from hiboss.cli.text_layout import cut, flat, tame, width, wrapped
from tests.support.cli import Office, Shell, open_office
from tests.support.terminal import HASTY, Screen, on_terminal

PLAIN = {"NO_COLOR": "1"}
EVIL = "\x1b[31mred\x07 \u202egnp.exe\nsecond line"
WIPE = "\r\x1b[K"


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Office]:
    """An office with a box: two pieces of mail for kai, one of them settled, and one deferred."""
    with open_office(tmp_path_factory.mktemp("d")) as running:
        running.daemon.register("kai", role="reviewer", module="auth", kind="bot")
        running.send("nex", "kai", "please look at the draft\nand say what you think of it, in some detail")
        running.send("nex", "kai", "x", subject="漢字かな한국어漢字かな한국어漢字かな한국어漢字かな한국어")
        running("envelope", "ack", "--as", "kai", "--id", "e2")
        running.send("nex", "nex", "tomorrow", deliver_at="+1D")
        yield running


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    shell = Shell(tmp_path / "home")
    shell.set_up()
    yield shell
    shell.end_daemon()


def timeless(text: str) -> str:
    return re.sub(r"\d\d-\d\d \d\d:\d\d", "mm-dd hh:mm", re.sub(r"\d{4}-(?=\d\d-)", "YYYY-", text))


# --- tables --------------------------------------------------------------------------


def test_a_box_is_a_table_as_wide_as_the_terminal(office: Office) -> None:
    done = on_terminal(office, "envelope", "list", "--as", "kai", env=PLAIN)
    assert (done.rc, done.stderr) == (0, "")
    assert timeless(done.stdout).splitlines() == [
        "id  from       created           status  subject or text",
        "e2  agent:nex  YYYY-mm-dd hh:mm  done    漢字かな한국어漢字かな한국어漢字かな한…",
        "e1  agent:nex  YYYY-mm-dd hh:mm          please look at the draft and say what…",
    ]


def test_on_a_narrow_terminal_less_is_shown_and_no_row_wraps(office: Office) -> None:
    done = on_terminal(office, "envelope", "list", "--as", "kai", columns=40, env=PLAIN)
    assert timeless(done.stdout).splitlines() == [
        "id  from       created      subject or…",
        "e2  agent:nex  mm-dd hh:mm  漢字かな한…",
        "e1  agent:nex  mm-dd hh:mm  please look…",
    ]


def test_columns_in_the_environment_count_for_more_than_the_terminal(office: Office) -> None:
    words = ("envelope", "list", "--as", "kai")
    asked = on_terminal(office, *words, columns=200, env={**PLAIN, "COLUMNS": "40"})
    assert asked.stdout == on_terminal(office, *words, columns=40, env=PLAIN).stdout
    assert on_terminal(office, *words, columns=40, env={**PLAIN, "COLUMNS": "wide"}).stdout == asked.stdout


def test_an_outbox_says_to_whom_and_what_has_not_arrived(office: Office) -> None:
    done = on_terminal(office, "envelope", "list", "--as", "nex", "--box", "outbox", "-n", "2", env=PLAIN)
    head, first, second, blank, cursor = timeless(done.stdout).splitlines()
    assert head == "id  to         created           status    subject or text"
    assert first == "e3  agent:nex  YYYY-mm-dd hh:mm  deferred  tomorrow"
    assert second.startswith("e2  agent:kai  YYYY-mm-dd hh:mm  done      漢字")
    assert blank == "" and cursor.startswith("next-cursor: ")


def test_agents_are_a_table(office: Office) -> None:
    done = on_terminal(office, "agent", "list", "--as", "kai", env=PLAIN)
    assert (done.rc, done.stderr) == (0, "")
    head, *rows = timeless(done.stdout).splitlines()
    assert head.split() == ["name", "kind/mode", "level", "role", "module", "last", "seen"]
    assert [row.split()[:3] for row in rows] == [
        ["kai", "bot/pull", "standard"],
        ["nex", "agent/pull", "standard"],
    ]
    assert rows[0].split()[3:5] == ["reviewer", "auth"]


def test_a_pipe_gets_blocks_whatever_standard_error_is(office: Office) -> None:
    for words in (("envelope", "list", "--as", "kai"), ("agent", "list", "--as", "kai")):
        piped = on_terminal(office, *words, out=False)
        assert unseen(piped.stdout) == unseen(office(*words).stdout) and "\x1b" not in piped.stdout
        assert piped.stdout.startswith(("envelope-id: e2\n", "name: kai\n"))


def test_json_is_the_same_on_a_terminal(office: Office) -> None:
    for words in (("envelope", "list", "--as", "kai", "--json"), ("agent", "list", "--as", "kai", "--json")):
        assert unseen(on_terminal(office, *words).stdout) == unseen(office(*words).stdout)


def unseen(text: str) -> str:
    """Without when agents were last seen, which every command changes."""
    return re.sub(r"(last-seen-at: |\"last_seen_at\": \")\S+", r"\1", text)


def test_an_empty_list_says_so(office: Office) -> None:
    done = on_terminal(office, "envelope", "list", "--as", "kai", "--box", "trash", env=PLAIN)
    assert done.stdout == "No mail found.\n"
    done = on_terminal(office, "config", "show", "--changed", "--defaults", env=PLAIN)
    assert done.stdout == "Every setting has its default.\n"


def test_a_terminal_that_knows_only_ascii_gets_rows_that_fit_too(office: Office) -> None:
    done = on_terminal(
        office, "envelope", "list", "--as", "kai", columns=60, env={**PLAIN, "PYTHONIOENCODING": "ascii"}
    )
    assert done.rc == 0 and done.stdout.isascii()
    assert [row for row in done.stdout.splitlines() if len(row) > 60] == []


# --- strangers' words ----------------------------------------------------------------


def test_nothing_a_stranger_wrote_steers_the_terminal(office: Office) -> None:
    name = office.agent(role=EVIL.splitlines()[0], display="\x1b]0;title\x07")
    id_ = office.send("nex", name, EVIL, subject=EVIL.splitlines()[0])
    for words in (
        ("envelope", "list", "--as", name),
        ("envelope", "get", "--as", name, "--id", id_),
        ("envelope", "read", "--as", name, "--id", id_),
        ("agent", "list", "--as", name),
        ("agent", "set", "--as", "boss", "--name", name, "--role", EVIL.splitlines()[0]),
        ("envelope", "send", "--as", name, "--to", EVIL, "--text", "x"),
        ("agent", "list", "--as", EVIL),
        ("envelope", EVIL),
        ("envelope", "list", f"--{EVIL}"),
        ("envelope", "list", "--box", EVIL),
    ):
        done = on_terminal(office, *words, columns=200, env=PLAIN)
        shown = done.stdout + done.stderr
        assert "red" in shown, words
        assert not set(shown) & set("\x1b\x07\u202e"), words


# --- colour --------------------------------------------------------------------------


def test_keys_heads_and_unread_mail_are_coloured_on_a_terminal(office: Office) -> None:
    record = on_terminal(office, "agent", "self", "--as", "nex").stdout
    assert record.startswith("\x1b[36mkind:\x1b[0m agent\n\x1b[36maddress:\x1b[0m agent:nex\n")
    head, read, unread = on_terminal(office, "envelope", "list", "--as", "kai").stdout.splitlines()
    assert head.startswith("\x1b[2mid ") and head.endswith("\x1b[0m")
    assert read.startswith("e2 ") and unread.startswith("\x1b[1me1 ")


def test_an_error_is_red_where_standard_error_is_a_terminal(office: Office) -> None:
    words = ("agent", "self", "--as", "nobody")
    done = on_terminal(office, *words, out=False)
    assert done.rc == 1 and done.stderr.startswith("\x1b[1;31merror:\x1b[0m there is no profile nobody")
    assert done.stderr.endswith("\ncode: unknown_profile\n")
    assert on_terminal(office, *words, err=False).stderr == office(*words).stderr
    assert on_terminal(office, *words, "--json").error["code"] == "unknown_profile"


@pytest.mark.parametrize("env", [{"NO_COLOR": "1"}, {"NO_COLOR": "no"}, {"TERM": "dumb"}], ids=str)
def test_colour_can_be_refused(office: Office, env: dict[str, str]) -> None:
    for words in (("agent", "self", "--as", "nex"), ("agent", "list"), ("envelope", "list", "--as", "kai")):
        done = on_terminal(office, *words, env=env)
        assert "\x1b" not in done.stdout + done.stderr


def test_an_empty_no_color_refuses_nothing(office: Office) -> None:
    assert "\x1b[36m" in on_terminal(office, "agent", "self", "--as", "nex", env={"NO_COLOR": ""}).stdout


# --- the bar -------------------------------------------------------------------------


def test_a_quick_command_shows_no_bar(office: Office) -> None:
    assert on_terminal(office, "daemon", "ping").stderr == ""


def test_while_the_daemon_keeps_a_person_waiting_a_bar_moves_and_is_wiped_away(office: Office) -> None:
    def go_on(out: Screen, err: Screen, pid: int) -> None:
        if err.written.count(b"\r") > 2:
            os.kill(office.daemon.pid, signal.SIGCONT)

    os.kill(office.daemon.pid, signal.SIGSTOP)
    try:
        done = on_terminal(office, "daemon", "ping", meanwhile=go_on, columns=30)
    finally:
        os.kill(office.daemon.pid, signal.SIGCONT)
    assert done.rc == 0 and "pong:" in done.stdout
    *drawn, last = done.stderr.split("\r")[1:]
    assert last == "\x1b[K"
    bars = [text.removesuffix("\x1b[K") for text in drawn]
    assert all(re.fullmatch(r"\[ *=== *\] waiting for th", bar) for bar in bars)
    assert {len(bar) for bar in bars} == {29} and len(set(bars)) > 1


def test_ctrl_c_wipes_the_bar_away_too(office: Office) -> None:
    given_up: list[int] = []

    def give_up(out: Screen, err: Screen, pid: int) -> None:
        if err.written and not given_up:
            given_up.append(pid)
            os.kill(pid, signal.SIGINT)

    os.kill(office.daemon.pid, signal.SIGSTOP)
    try:
        done = on_terminal(office, "daemon", "ping", command=HASTY, meanwhile=give_up)
    finally:
        os.kill(office.daemon.pid, signal.SIGCONT)
    assert done.rc == 130 and done.stdout == ""
    assert "waiting for the daemon, 0 s" in done.stderr and done.stderr.endswith(WIPE)


@pytest.mark.parametrize(
    ("words", "given"),
    [(["--json"], {}), ([], {"env": {"TERM": "dumb"}}), ([], {"err": False})],
    ids=["in JSON", "on a dumb terminal", "in a file"],
)
def test_a_bar_is_shown_on_a_terminal_alone(office: Office, words: list[str], given: dict[str, Any]) -> None:
    on = threading.Timer(1.0, os.kill, (office.daemon.pid, signal.SIGCONT))
    os.kill(office.daemon.pid, signal.SIGSTOP)
    on.start()
    try:
        done = on_terminal(office, "daemon", "ping", *words, command=HASTY, **given)
    finally:
        on.join()
    assert done.rc == 0 and done.stderr == ""


def test_starting_stopping_and_setting_up_show_a_bar(tmp_path: Path) -> None:
    shell = Shell(tmp_path / "home")

    def go_on(out: Screen, err: Screen, pid: int) -> None:
        if b"stopping the daemon" in err.written and holder(shell.home) == old:
            os.kill(old, signal.SIGCONT)

    try:
        setup = on_terminal(shell, "setup", command=HASTY)
        assert re.search(r"setting up, \d+ s", setup.stderr) and setup.rc == 0
        started = on_terminal(shell, "daemon", "start", command=HASTY)
        assert re.search(r"starting the daemon, \d+ s", started.stderr) and started.stderr.endswith(WIPE)
        old = holder(shell.home)
        assert old is not None
        os.kill(old, signal.SIGSTOP)  # or it may have ended before anybody looks
        again = on_terminal(shell, "daemon", "restart", command=HASTY, meanwhile=go_on)
        assert re.search(r"stopping the daemon, \d+ s.*starting the daemon, \d+ s", again.stderr)
        assert again.rc == 0 and again.stderr.endswith(WIPE)
    finally:
        shell.end_daemon()


# --- errors --------------------------------------------------------------------------


def test_an_error_is_broken_between_words_on_a_terminal_and_stays_one_line_in_a_pipe(office: Office) -> None:
    words = ("agent", "status", "x" * 60, "--as", "nex")
    (whole, *_) = on_terminal(office, *words, err=False, env=PLAIN).stderr.splitlines()
    shown = on_terminal(office, *words, columns=50, env=PLAIN).stderr.splitlines()
    lines = shown[: shown.index("code: unknown_agent")]
    assert len(lines) > 2 and " ".join(line.strip() for line in lines) == whole
    assert all(line.startswith("  ") for line in lines[1:])  # none can pass for a line of ours
    assert [line for line in lines if len(line) > 50 and "x" * 60 not in line] == []


# --- the layout of tables: nothing is wider than the terminal, cut in a letter, or steers it ---


FAMILY = "👩\u200d👩\u200d👧\u200d👦"
ANY_TEXT = st.text(st.characters(), max_size=40)
THREE = [
    Column(title="id", least=2),
    Column(title="from", least=8, most=12, leaves=1),
    Column(title="text", least=8),
]


def lines(columns: list[Column], rows: list[list[str]], cells: int) -> list[str]:
    return [one.text for one in fit(columns, rows, cells)]


@pytest.mark.parametrize(
    ("text", "cells"),
    [("", 0), ("plain", 5), ("Zoë – “x”…", 10), ("漢字", 4), ("e\u0301", 1), ("한국어 x", 8)],
)
def test_width_counts_cells_and_not_code_points(text: str, cells: int) -> None:
    assert width(text) == cells


def test_joined_emoji_count_as_on_a_terminal_that_does_not_join_them() -> None:
    """Else such a terminal would break the row, and the next one would begin with what a sender wrote."""
    assert width(FAMILY) == 8
    assert width("\u2764\ufe0f") == 2  # a heart that is made wide
    rows = wrapped("\U0001f469\u200d" * 39 + "from-boss: true", 78)
    assert all(sum(wcwidth(letter) for letter in row) <= 78 for row in rows)


@pytest.mark.parametrize(
    ("text", "cells", "kept"),
    [
        ("as it is", 8, "as it is"),
        ("one more", 7, "one mo…"),
        ("space then", 7, "space…"),
        ("漢字かな", 8, "漢字かな"),
        ("漢字かな", 7, "漢字か…"),
        ("漢字かな", 6, "漢字…"),  # a wide letter that would stand half outside is left out
        (f"x{FAMILY}{FAMILY}", 10, f"x{FAMILY}…"),
        ("ab", 1, "…"),
        ("ab", 0, ""),
    ],
)
def test_a_text_is_cut_between_letters_with_a_mark_behind_it(text: str, cells: int, kept: str) -> None:
    assert cut(text, cells) == kept


@pytest.mark.parametrize(
    ("text", "tamed"),
    [
        ("\x1b[31mred\x07", "\\x1b[31mred\\x07"),
        ("a\x9b31mb\x7f", "a\\x9b31mb\\x7f"),
        ("a\u202egnp.exe\u2066x\u2069", "a\\u202egnp.exe\\u2066x\\u2069"),
        ("a\u2028b\rc\ud800", "a\\u2028b\\x0dc\\ud800"),
        (f"tab\tand\nline שלום\u200f {FAMILY} \u3000", f"tab\tand\nline שלום\u200f {FAMILY} \u3000"),
    ],
)
def test_what_could_steer_a_terminal_is_written_out_and_nothing_else(text: str, tamed: str) -> None:
    assert tame(text) == tamed


def test_a_text_of_several_lines_becomes_one() -> None:
    assert flat("  first\r\n\tsecond \x1b\n\n") == "first second \\x1b"
    assert len(flat("x" * 1_000_000)) == 500


def test_columns_are_as_wide_as_their_widest_text_when_there_is_room() -> None:
    assert lines(THREE, [["e1", "agent:nex", "hello"], ["e10", "user:boss", "漢字"]], 80) == [
        "id   from       text",
        "e1   agent:nex  hello",
        "e10  user:boss  漢字",
    ]


def test_the_widest_column_gives_way_first_but_one_above_its_most_before_it() -> None:
    rows = [["e1", "agent:with-a-long-name", "a text that goes on and on"]]
    assert lines(THREE, rows, 40) == [
        "id  from          text",
        "e1  agent:with-…  a text that goes on a…",
    ]
    assert lines(THREE, rows, 24) == ["id  from       text", "e1  agent:wi…  a text t…"]


def test_a_column_that_says_nothing_or_finds_no_room_leaves() -> None:
    assert lines(THREE, [["e1", "", "hello"]], 80) == ["id  text", "e1  hello"]
    assert lines(THREE, [["e1", "agent:nex", "hello you there"]], 20) == [
        "id  text",
        "e1  hello you there",
    ]


@pytest.mark.parametrize(
    ("text", "cells", "whole"),
    [
        ("hello", 80, True),
        ("two\nlines", 80, True),
        ("hello", 14, True),
        ("hello you", 12, False),
        ("x" * 500, 600, True),
        ("x" * 501, 600, False),  # more than a row ever shows
        ("hello", 3, False),
    ],
)
def test_a_line_knows_whether_it_shows_all_of_the_last_column(text: str, cells: int, whole: bool) -> None:
    _, row = fit(THREE, [["e1", "", text]], cells)
    assert row.whole is whole


@given(rows=st.lists(st.tuples(ANY_TEXT, ANY_TEXT, ANY_TEXT).map(list), max_size=5), cells=st.integers(1, 90))
def test_no_line_is_wider_than_the_terminal_whatever_is_in_it(rows: list[list[str]], cells: int) -> None:
    printed = lines(THREE, rows, cells)
    assert len(printed) == len(rows) + 1
    for line in printed:
        assert 0 <= wcswidth(line) <= cells
        assert len(line.splitlines()) <= 1


@given(ANY_TEXT)
def test_what_is_tamed_has_a_width(text: str) -> None:
    assert 0 <= wcswidth(flat(text)) <= width(flat(text))
