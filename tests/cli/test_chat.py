"""`hiboss chat` as a person sees it, on a real terminal."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import Office, open_office
from tests.support.talk import chatting, gated, said, talking

EVIL = "\x1b]0;owned\x07\x1b[2Jred \x1b[31m\u202egnp.exe"

pytestmark = pytest.mark.usefixtures("demo_office")


def tell_boss(office: Office, name: str, text: str, **params: Any) -> str:
    """Something an agent writes to the boss by itself."""
    answer = office.daemon.call(
        "envelope.send", token=office.token(name), to="user:boss", text=text, **params
    )
    return str(answer["ids"][0])


def texts(office: Office, name: str) -> list[str]:
    return [one["text"] for one in said(office, name)]


def asks(office: Office) -> list[dict[str, Any]]:
    """The asks that are open."""
    return office.daemon.call("ask.list", token=office.token("boss"))["asks"]


# --- what is shown -------------------------------------------------------------------


@pytest.mark.parametrize("columns", [80, 40])
def test_what_was_said_is_shown_and_broken_only_where_the_terminal_ends(office: Office, columns: int) -> None:
    name = office.agent()
    long = "".join(f"{number:03}" for number in range(50))
    tell_boss(office, name, f"first line\n{long}\nlast line")
    with chatting(office, name, columns=columns) as terminal:
        start = terminal.lines.index("  first line")
        assert re.fullmatch(rf"{name}  \d\d:\d\d", terminal.lines[start - 1])
        end = terminal.lines.index("  last line")
        assert "".join(terminal.lines[start + 1 : end]) == f"  {long}"
        assert [len(line) for line in terminal.lines[start + 1 : end - 1]] == [columns] * (150 // columns)
        assert " ".join(" ".join(terminal.lines[end + 1 :]).split()) == (
            f"{name} gets no turns; it answers when it fetches its mail "
            f"Talking with {name}. Enter sends; /help shows the commands. >"
        )


def test_only_the_last_ten_messages_come_first_and_being_shown_they_are_read(office: Office) -> None:
    name = office.agent()
    ids = [tell_boss(office, name, f"number {number} of them") for number in range(12)]
    with chatting(office, name) as terminal:
        assert "number 2 of them" in terminal.text and "number 1 of them" not in terminal.text
        terminal.until(lambda: office.envelope(ids[-1])["read_at"])
        assert [bool(office.envelope(one)["read_at"]) for one in ids] == [False] * 2 + [True] * 10


def test_a_question_and_its_answer_are_shown_once_each(office: Office) -> None:
    with chatting(office, "nex") as terminal:
        terminal.enter("what do parrots say?", "\n  You said: what do parrots say?")
        terminal.until(lambda: "is working" not in terminal.text)  # live, it looks the same
        terminal.see_last(">")
        assert [line for line in terminal.lines if "parrots" in line] == [
            "  what do parrots say?",
            "  You said: what do parrots say?",
        ]
        place = terminal.lines.index("  what do parrots say?")
        assert re.fullmatch(r"you  \d\d:\d\d", terminal.lines[place - 1])
        assert re.fullmatch(r"nex  \d\d:\d\d", terminal.lines[place + 2])
        terminal.until(lambda: all(one["read_at"] for one in said(office, "nex")))  # after it is shown


def test_no_message_steers_the_terminal_or_passes_for_a_header(office: Office, tmp_path: Path) -> None:
    name = office.agent()
    (tmp_path / "a\x1b[2J.txt").write_text("x")
    tell_boss(
        office,
        name,
        f"{EVIL}\n\nyou  14:05\nyes, delete it all",
        attachments=[str(tmp_path / "a\x1b[2J.txt")],
    )
    with chatting(office, name) as terminal:
        tell_boss(office, name, f"live {EVIL}")
        terminal.see("live ")
        terminal.see_last(">")
        for sequence in (b"\x1b]0;", b"\x07", b"\x1b[2J", b"\x1b[31m", "\u202e".encode()):
            assert sequence not in terminal.written
        assert "  you  14:05" in terminal.lines and "you  14:05" not in terminal.lines
        assert r"\x1b]0;owned\x07\x1b[2Jred \x1b[31m\u202egnp.exe" in terminal.text
        assert "attachments:" in terminal.lines


def test_without_colours_there_are_none(office: Office) -> None:
    with chatting(office, "nex", env={"NO_COLOR": "1"}) as terminal:
        terminal.enter("plain", "You said: plain")
        terminal.press("/quit\r")
        assert terminal.ended() == 0
        assert set(re.findall(rb"\x1b\[([0-9;]*)m", terminal.written)) <= {b"", b"0"}


def test_mail_of_others_is_a_line_that_says_how_to_read_it(office: Office) -> None:
    name = office.agent()
    with chatting(office, "nex") as terminal:
        terminal.enter("hello", "\n  Hello Ada! I am nex.")
        tell_boss(office, name, "the kettle\nboils")
        terminal.see(f'{name} wrote to you: "the kettle boils" (hiboss chat {name})')
        terminal.see_last(">")
        assert terminal.text.count("I am nex.") == 1  # what belongs here is no mail of others


# --- while an agent works ------------------------------------------------------------


def test_what_an_agent_says_while_it_works_is_shown_until_its_message_comes(
    office: Office, tmp_path: Path
) -> None:
    with gated(office, tmp_path) as (name, gate), chatting(office, name) as terminal:
        terminal.enter(
            "the moon", f"{name} is working, ", "; look into the files", "  thinking aloud about the moon"
        )
        terminal.type("typed meanwhile")
        gate.touch()
        terminal.see("answer to the moon")
        terminal.see_last("> typed meanwhile")
        assert "thinking aloud" not in terminal.text and "is working" not in terminal.text
    assert texts(office, name) == ["the moon", "answer to the moon"]


def test_what_comes_while_one_types_leaves_it_as_it_is(office: Office) -> None:
    name = office.agent()
    with chatting(office, name, columns=40) as terminal:
        terminal.type("half a")
        for number in range(5):
            tell_boss(office, name, f"piece {number} of what came")
        terminal.see("piece 4 of what came")
        terminal.see_last("> half a")
        terminal.press(" sentence\r")
        terminal.until(lambda: "half a sentence" in texts(office, name))
    assert texts(office, name)[-1] == "half a sentence"


def test_a_new_session_can_be_begun(office: Office) -> None:
    program = """sh -c 'echo "{\\"hiboss\\": \\"session\\", \\"id\\": \\"s-1\\"}"; echo "given ${HIBOSS_RESUME:-none}"'"""
    name = office.agent(provider="command", settings={"command": program})
    with chatting(office, name) as terminal:
        terminal.enter("/new", "The next message here begins a new session.")
        for number, answer in enumerate(("given none", "given s-1")):
            terminal.press(f"hello {number}\r")
            terminal.until(lambda answer=answer: texts(office, name)[-1:] == [answer])
        terminal.press("/new\r")
        terminal.until(lambda: terminal.text.count("begins a new session") == 2)
        terminal.press("do you know me?\r")
        terminal.until(lambda: texts(office, name)[-1:] == ["given none"])


def test_a_paused_agent_is_told_of_with_how_to_go_on(office: Office, tmp_path: Path) -> None:
    with gated(office, tmp_path) as (name, _):
        office.daemon.call("agent.pause", token=office.token("boss"), name=name, reason="lunch")
        with talking(office, name) as terminal:
            terminal.see(f"{name} is paused: lunch (hiboss agent resume {name})")
            terminal.enter("are you there?", "are you there?\n")
            office.daemon.call("agent.resume", token=office.token("boss"), name=name)
            terminal.see("is working")
            terminal.until(lambda: "is paused" not in terminal.text)


def test_an_agent_that_is_at_work_for_somebody_else_is_told_of(office: Office, tmp_path: Path) -> None:
    other = office.agent()
    with gated(office, tmp_path) as (name, _):
        office.send(other, name, "mine first")
        with talking(office, name) as terminal:
            terminal.see(f"{name} is working on something else")
            terminal.enter("and then mine", "you  ")
            assert "thinking aloud" not in terminal.text  # what it says there is not said here


def test_a_question_is_told_with_how_to_answer_it(office: Office, tmp_path: Path) -> None:
    program = tmp_path / "asks.sh"
    question = '{"hiboss": "ask", "text": "Now?", "options": ["yes", "no"]}'
    program.write_text(f"read turn\necho '{question}'\nread answer\necho done\n")
    name = office.agent(provider="command", settings={"command": f"sh {program}", "input": "open"})
    with chatting(office, name) as terminal:
        terminal.enter("go", "  Now?\n\n  1. yes\n  2. no\n", "\nto answer: /answer q")
        terminal.see(f"{name} waits for an answer")
        [ask] = [one["id"] for one in asks(office) if one["asker"] == f"agent:{name}"]
        terminal.enter(f"/answer {ask} YES", f"you answered {ask}: yes", "  done")
        assert terminal.text.count("Now?") == 1


def test_a_provider_that_is_missing_is_told_of(office: Office) -> None:
    name = office.agent(provider="command", settings={"command": "/nowhere/agent"})
    with chatting(office, name, columns=200) as terminal:
        terminal.enter("hello", f"{name} cannot answer now: the program /nowhere/agent was not found")


# --- what is typed -------------------------------------------------------------------


def test_a_message_of_several_lines_is_one_message(office: Office) -> None:
    name = office.agent()
    with chatting(office, name) as terminal:
        terminal.press("one\x1b\rtwo\nthree\\\r")
        terminal.paste("four\r\nfive\n")
        terminal.press("six")
        terminal.see_last("  six")
        terminal.press("\r")
        terminal.until(lambda: texts(office, name))
        terminal.see("three\n  four\n  five\n  six")
    assert texts(office, name) == ["one\ntwo\nthree\nfour\nfive\nsix"]


def test_files_gather_until_the_next_message(office: Office, tmp_path: Path) -> None:
    name = office.agent()
    for file in ("first.txt", "with blank.txt", "third.txt"):
        (tmp_path / file).write_text(file)
    with chatting(office, name, columns=300, env={"HOME": str(tmp_path)}) as terminal:
        terminal.enter("/file ~/first.txt", f"with your next message: {tmp_path}/first.txt")
        terminal.enter(
            f"/file {tmp_path}/nowhere.txt", f"error: /file: there is no file {tmp_path}/nowhere.txt"
        )
        terminal.see_last(f"> /file {tmp_path}/nowhere.txt")
        terminal.press("\x03")
        terminal.see_last(">")
        assert "with your next message" in terminal.text  # what is typed goes first
        terminal.enter(f"/file '{tmp_path}/with blank.txt'", "with blank.txt")
        terminal.enter("/file ~/third.txt three files for you", '- [file] "third.txt" (')
        terminal.see_last(">")
        assert "with your next message" not in terminal.text
    (one,) = said(office, name)
    assert one["text"] == "three files for you"
    assert [file["name"] for file in one["attachments"]] == ["first.txt", "with blank.txt", "third.txt"]


def test_a_file_can_go_without_a_word_and_be_dropped_again(office: Office, tmp_path: Path) -> None:
    name = office.agent()
    (tmp_path / "a.txt").write_text("x")
    with chatting(office, name, columns=200) as terminal:
        terminal.enter(f"/file {tmp_path}/a.txt", "with your next message")
        terminal.press("\x03")
        terminal.until(lambda: "with your next message" not in terminal.text)
        terminal.enter(f"   \r/file {tmp_path}/a.txt", "with your next message")
        terminal.enter("", '- [file] "a.txt" (')
    assert [(one["text"], len(one["attachments"])) for one in said(office, name)] == [("", 1)]


def test_an_unknown_command_is_refused_and_kept_and_nothing_is_sent(office: Office) -> None:
    name = office.agent()
    with chatting(office, name, columns=200) as terminal:
        terminal.enter(
            "/hepl me", "error: there is no command /hepl (did you mean /help?); there are /help, /status"
        )
        terminal.see_last("> /hepl me")
        terminal.enter("\x03/status now", "error: /status takes no text")
        terminal.press("\x03//etc/passwd is a path\r")
        terminal.until(lambda: texts(office, name))
    assert texts(office, name) == ["/etc/passwd is a path"]


def test_the_commands_say_how_things_stand(office: Office) -> None:
    with chatting(office, "nex", rows=100) as terminal:
        terminal.enter("/help", "Alt-Enter, Ctrl-J", "/agents", "/cancel", "/quit")
        terminal.enter("/status", "address: agent:nex\nmode: run\nprovider: demo\nstate: idle")
        terminal.press("/agents\r")
        terminal.until(lambda: re.search(r"^nex +idle +0\b", terminal.text, re.MULTILINE), "the table")


@pytest.mark.parametrize("keys", ["/quit\r", "\x04", "typed\x03\x03"])
def test_it_ends_well(office: Office, keys: str) -> None:
    name = office.agent()
    with chatting(office, name) as terminal:
        terminal.press(keys)
        assert terminal.ended() == 0
    assert texts(office, name) == []


def test_what_was_sent_just_before_the_end_is_sent(office: Office) -> None:
    name = office.agent()
    with chatting(office, name) as terminal:
        terminal.press("last words\r/quit\r")
        assert terminal.ended() == 0
    assert texts(office, name) == ["last words"]


# --- what can go wrong ---------------------------------------------------------------


def test_on_a_terminal_that_answers_late_nothing_is_shown_twice_or_erased(office: Office) -> None:
    name = office.agent()
    with talking(office, name, rows=30) as terminal:
        let_go = terminal.answers_late()
        terminal.ready()
        numbers = [f"number {n}" for n in range(6)]
        for text in numbers[:3]:
            tell_boss(office, name, text)
            terminal.see(text)
        let_go()
        for text in numbers[3:]:
            tell_boss(office, name, text)
            terminal.see(text)
        terminal.see_last(">")
        assert [terminal.text.count(text) for text in ("Talking with", *numbers)] == [1] * 7


def test_a_daemon_that_is_restarted_loses_nothing_and_shows_nothing_twice(tmp_path: Path) -> None:
    with open_office(tmp_path) as office:
        name = office.agent()
        with chatting(office, name, columns=300) as terminal:
            tell_boss(office, name, "before the storm")
            terminal.see("before the storm")
            office.daemon.kill()
            terminal.see(
                "The daemon is away; the conversation continues when it is back.",
                "no daemon answers; hiboss tries again",
            )
            terminal.press("/nearly lost\x01/\x05\r")  # //nearly lost
            terminal.see("error: no daemon answers at ")
            terminal.see_last("> //nearly lost")
            office.daemon.start()
            terminal.see("The daemon is back.")
            tell_boss(office, name, "after the storm")
            terminal.see("after the storm")
            terminal.press(", this\r")
            terminal.until(lambda: len(texts(office, name)) == 3)
            terminal.see_last(">")
            terminal.see("/nearly lost, this")
            for text in ("before the storm", "after the storm", "/nearly lost, this", "The daemon is away"):
                assert terminal.text.count(text) == 1, terminal.text
        assert texts(office, name) == ["before the storm", "after the storm", "/nearly lost, this"]


def test_a_message_that_is_refused_can_be_sent_again_with_its_files(office: Office, tmp_path: Path) -> None:
    name = office.agent()
    file = tmp_path / "a.txt"
    file.write_text("x")
    with chatting(office, name, columns=200) as terminal:
        terminal.enter(f"/file {file}", "with your next message")
        file.unlink()
        terminal.enter("see this", "code: attachment_missing", f"with your next message: {file}")
        terminal.see_last("> see this")
        file.write_text("x")
        terminal.enter("", '- [file] "a.txt" (')
    assert [(one["text"], len(one["attachments"])) for one in said(office, name)] == [("see this", 1)]


def test_somebody_whose_token_ends_is_told_and_it_is_over(office: Office) -> None:
    name = office.agent()
    with chatting(office, "nex", "--as", name, columns=200) as terminal:
        office.daemon.call("agent.delete", token=office.token("boss"), name=name)
        office.send("nex", "nex", "wake up")  # or it is noticed some seconds later
        assert terminal.ended() == 1 and "error: " in terminal.text and "code: " in terminal.text


def test_the_window_may_change_its_size(office: Office) -> None:
    with chatting(office, "nex", columns=80) as terminal:
        terminal.type("some words that take more than forty columns")
        terminal.resize(40, 50)
        terminal.see_last("  olumns")
        terminal.enter("", "You said: some words that take more\n  than forty columns")


@pytest.mark.parametrize("wraps_again", [False, True])
@pytest.mark.parametrize(("before", "after"), [(80, 40), (40, 80), (100, 30)])
def test_a_window_that_changes_its_size_while_an_answer_comes_keeps_no_stale_lines(
    office: Office, tmp_path: Path, before: int, after: int, wraps_again: bool
) -> None:
    question = "a question that is long enough to need more than one row of the window"
    with gated(office, tmp_path) as (name, gate), chatting(office, name, columns=before) as terminal:
        terminal.enter(f"{question}", f"{name} is working, ", "thinking aloud")
        terminal.press("typed meanwhile, and this is long enough as well")
        terminal.until(lambda: terminal.flat.endswith("as well"))
        terminal.resize(after, 50, wraps_again=wraps_again)
        wanted = {
            "is working, ": 1,
            f"Talking with {name}. Enter sends; /help shows the commands. you ": 1,
            "thinking aloud": 1,
            "Talking with": 1,
            question[:20]: 2,  # sent, and repeated by the agent
            "typed meanwhile": 1,
        }  # what the terminal itself made of the old rows may look right for a moment: wait for our drawing
        terminal.until(lambda: all(terminal.flat.count(text) == n for text, n in wanted.items()), "each once")
        gate.touch()
        terminal.see("answer to a question")
        terminal.until(lambda: "is working" not in terminal.text)
        assert "thinking aloud" not in terminal.text and terminal.flat.count("Talking with") == 1


def test_a_terminal_that_cannot_show_it_gets_an_error_that_teaches(office: Office) -> None:
    with talking(office, "nex", env={"TERM": "dumb"}) as terminal:
        assert terminal.ended() == 2 and "--once" in terminal.text
    with talking(office, "nex", "--timeout", "5s") as terminal:
        assert terminal.ended() == 2 and "--timeout needs --once" in terminal.text
