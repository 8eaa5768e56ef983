"""What is typed in a conversation, and how its texts are broken into lines."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hiboss.cli.chat.conversation import ConversationClient, LiveRun, Other, choose
from hiboss.cli.chat.formatting import asks, content, state, tail, tried_again, working
from hiboss.cli.chat.typed_input import COMMANDS, parse_input
from hiboss.cli.text_layout import width, wrapped
from hiboss.core.errors import InvalidParams
from hiboss.core.paths import Home

WORDS = st.text(alphabet="ab c漢é\n\t\x1b", max_size=200)


@given(WORDS, st.integers(2, 60))
def test_no_line_is_wider_than_asked_for_and_nothing_but_blanks_is_lost(text: str, cells: int) -> None:
    lines = wrapped(text, cells)
    assert [line for line in lines if width(line) > cells] == []
    assert "".join("".join(lines).split()) == "".join(text.replace("\x1b", "\\x1b").split())


def test_lines_are_broken_between_words_where_that_is_possible() -> None:
    assert wrapped("one two three\n\nfour", 8) == ["one two", "three", "", "four"]
    assert wrapped("  kept in", 20) == ["  kept in"]
    assert wrapped("a verylongword b", 6) == ["a", "verylo", "ngword", "b"]
    assert tail("1\n2\n3\n4\n5 and 6\n", 3) == ["4", "5", "and", "6"]


@pytest.mark.parametrize("text", ["x" + " " * 300_000 + "\ny", "x" * 300_000, "\t" * 100_000, "漢" * 100_000])
@pytest.mark.timeout(60)  # they took minutes and longer
def test_a_text_of_any_shape_is_broken_into_rows_without_a_delay(text: str) -> None:
    for cells in (2, 78):
        assert "".join("".join(wrapped(text, cells)).split()) == "".join(text.split())


@pytest.mark.parametrize("word", ["/home/somebody/" + "x" * 80, "https://example.org/" + "x" * 80])
def test_a_long_path_and_a_link_stay_whole_so_that_they_can_be_copied(word: str) -> None:
    assert f"  {word}" in content({"text": f"see {word}", "attachments": []}, 40)


@pytest.mark.parametrize(
    "line",
    [
        "you  14:05",
        "> you  14:05",
        "nex  2026-11-15 14:05",
        "you\u280014\ua78905",
        "x" * 38 + " you  14:05",
        "\u2800" * 80 + "you\u2800\u280014:05" * 9,
        "attachments:",
        "-" * 38 + "from-boss:true" + "-" * 26 + "to:user:boss",
        "-" * 38 + ">forged" + "-" * 38,
        "https://" + "-" * 30 + "from-boss:true",
    ],
)
def test_no_row_of_a_text_looks_like_a_line_of_ours(line: str) -> None:
    for text in (line, f"well\n{line}", f"well\u2028{line}", f"well\r\n\r{line}"):
        rows = content({"text": text, "attachments": []}, 40)
        assert rows and all(row.startswith("  ") or not row for row in rows)
        # A longer word is broken by the terminal; without a colon it cannot look like a line of ours.
        assert all(width(row) <= 40 or re.fullmatch("  [!-9;-=?-~]+", row) for row in rows)


def test_a_text_is_indented_and_otherwise_as_it_was_written() -> None:
    rows = content({"text": "at 14:05 we meet\n  like this:\n\n14:05 too\n", "attachments": []}, 40)
    assert rows == ["  at 14:05 we meet", "    like this:", "", "  14:05 too"]


def test_a_text_is_sent_and_nothing_is_not() -> None:
    assert parse_input("  hello \n", []).text == "  hello"
    assert parse_input("hello", ["/a"]).files == ["/a"]
    assert parse_input("//usr is a path", []).text == "/usr is a path"
    assert [parse_input(typed, []).sends for typed in ("", " \n ", "hello", "//x")] == [
        False,
        False,
        True,
        True,
    ]
    assert parse_input("", ["/a"]).sends  # files are something to send


def test_every_command_is_understood_and_no_other() -> None:
    alone = [name for name in COMMANDS if name not in ("file", "answer", "stop")]
    assert [parse_input(f" /{name} ", []).command for name in alone] == alone
    for typed in ("/", "/hlep", "/status now", "/Quit", "/file", "/file 'open", "/file /nowhere/at/all"):
        asked = parse_input(typed, ["/a"])
        assert asked.error and not asked.sends and not asked.command
        assert asked.files == ["/a"]
    assert "(did you mean /help?)" in parse_input("/hlep", []).error
    assert "(did you mean /answer?)" in parse_input("/anser q2 yes", []).error


def test_an_answer_names_its_ask_and_what_is_said() -> None:
    asked = parse_input(" /answer  q2   yes,  always\nbut be careful ", ["/a"])
    assert (asked.command, asked.words) == ("answer", "q2 yes, always but be careful")
    assert asked.files == ["/a"] and not asked.error and not asked.sends
    for typed in ("/answer", "/answer q2", "/answer yes", "/answer 2 yes", "/answer q yes", "/answer yes q2"):
        asked = parse_input(typed, [])
        assert "like /answer q2 yes" in asked.error and not asked.command, typed


def test_a_stop_of_everything_needs_the_word_all() -> None:
    assert [parse_input(typed, []).command for typed in ("/stop all", "/stop  ALL ")] == ["stop", "stop"]
    for typed in ("/stop", "/stop nex", "/stop all now"):
        asked = parse_input(typed, [])
        assert "/stop all ends" in asked.error and "/cancel" in asked.error and not asked.command, typed


def test_a_file_is_named_as_in_a_shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a b.txt").write_text("")
    path = str(tmp_path / "a b.txt")
    for typed in ("/file 'a b.txt'", "/file ~/a\\ b.txt", f'/file "{path}"'):
        asked = parse_input(typed, [])
        assert (asked.files, asked.sends, asked.error) == ([path], False, "")
    asked = parse_input("/file 'a b.txt' look, it's #1\nand more", ["/z"])
    assert (asked.files, asked.text, asked.sends) == (["/z", path], "look, it's #1\nand more", True)


def test_whom_one_talks_with() -> None:
    kai = {"name": "kai", "address": "agent:kai", "mode": "pull", "provider": None, "created_at": "2"}
    nex = {"name": "nex", "address": "agent:nex", "mode": "run", "provider": "demo", "created_at": "3"}
    old = {**nex, "name": "zed", "address": "agent:zed", "created_at": "1"}

    def chosen(named: str | None, *team: dict[str, Any]) -> Other:
        found = choose(named, list(team))
        assert found is not None
        return found

    assert chosen(None, kai).name == "kai"
    assert chosen(None, kai, nex).name == "nex"
    assert chosen(None, kai, nex, old).name == "zed"  # the oldest that answers
    assert chosen("NEX", kai, nex).address == chosen("agent:Nex", kai, nex).address == "agent:nex"
    assert chosen("kai", kai, nex).fetches and not chosen("nex", kai, nex).fetches
    assert choose("user:ana", [kai]) is choose("ana", [kai]) is None
    for team in ([], [kai, {**kai, "name": "abe"}]):
        with pytest.raises(InvalidParams):
            choose(None, team)


def test_a_question_is_told_once_and_its_state_is_shown_until_it_is_answered() -> None:
    client = ConversationClient(Home("/nowhere"), None)
    client.own, client.other = "user:ann", Other(address="agent:nex", name="nex")
    live = client.live = LiveRun({"id": "r9"})
    ask = {"kind": "ask", "text": "q2 Now?\nyou  14:05 [yes, no]"}
    live.update({"paused": False, "next": 1, "parts": [ask]})
    assert client.new_questions() == [ask["text"]] and client.new_questions() == []
    assert working(live, "nex", 80) == ["nex waits for an answer"]
    assert asks(ask["text"], client) == 'nex asks: "Now? you 14:05 [yes, no]" (the boss can answer)'
    live.progress({"part": 2, "kind": "ask", "text": "q3 And now?"})
    live.progress({"part": 3, "kind": "answer", "text": "yes"})
    assert working(live, "nex", 80) == ["nex waits for an answer"]
    live.progress({"part": 4, "kind": "answer", "text": "no"})
    assert client.new_questions() == []
    assert working(live, "nex", 80)[0].startswith("nex is working, ")


@pytest.mark.parametrize("said", ["", "; hiboss tries again later", "; hiboss tries again"])
def test_that_something_is_tried_again_is_said_once(said: str) -> None:
    client = ConversationClient(Home("/nowhere"), None)
    client.own, client.other = "user:boss", Other(address="agent:kai", name="kai")
    client.state, client.why = "waiting", f"no network, look later{said}"
    told = (
        "kai cannot answer now: no network, look later; hiboss tries again (at once: hiboss agent resume kai)"
    )
    assert state(client) == told
    assert tried_again(f"no network{said}") == "no network; hiboss tries again"
