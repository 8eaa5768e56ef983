"""`hiboss message …`, `hiboss thread …`, `hiboss envelope thread`, and the filters of `hiboss inbox`, by hand."""

from __future__ import annotations

from typing import Any

import pytest
from wcwidth import wcswidth

from tests.support.cli import Office
from tests.support.terminal import on_terminal

AUTH = [{"type": "module", "value": "auth"}]


def pair(office: Office) -> tuple[str, str]:
    return office.agent(), office.agent()


def reply(office: Office, who: str, to: str, text: str = "an answer") -> str:
    return str(office.daemon.call("envelope.send", token=office.token(who), reply_to=to, text=text)["ids"][0])


# --- message -------------------------------------------------------------------------


def test_a_list_of_messages_shows_each_in_full_and_how_many_there_are(office: Office) -> None:
    writer, reader = pair(office)
    first = office.send(writer, reader, "one\nmore", subject='a "subject"', scopes=AUTH)
    office.send(writer, reader, "two")
    done = office.ok("message", "list", "--as", reader, "-n", "1")
    assert done.values("from") == [f"agent:{writer}"] and done.values("total") == ["2"]
    assert done.values("unread") == ["2"] and done.values("read") == ["false"]
    (cursor,) = done.values("next-cursor")
    rest = office.ok("message", "list", "--as", reader, "--after", cursor)
    assert rest.values("message-id") == [office.envelope(first)["message"]]
    assert rest.values("subject") == ['"a \\"subject\\""'] and rest.values("scopes") == ['"module:auth"']
    assert "> one\n> more\n" in rest.stdout and rest.values("next-cursor") == []
    assert office.envelope(first)["read_at"] is None


@pytest.mark.parametrize(
    "words",
    [
        ("--scope", "module:auth"),
        ("--ref", "issue:42"),
        ("--mentions",),
        ("--mention-role", "tester"),
        ("--thread", "%e"),
        ("--conversation", "%c"),
        ("--unread",),
        ("--unread-for", "%reader"),
        ("--unread", "--from", "%writer"),
        ("--unread", "--type", "text"),
        ("--unread", "--meta", "n=1"),
        ("--unread", "--trace", "%m"),
        ("--unread", "--created-after", "-1h", "--created-before", "+1h"),
        ("--thread", "%e", "--by-change", "--oldest-first", "--page", "1"),
    ],
    ids=" ".join,
)
def test_every_filter_of_the_list_reaches_the_daemon(office: Office, words: tuple[str, ...]) -> None:
    writer, reader = office.agent(), office.agent(role="tester")
    given: dict[str, Any] = {"scopes": AUTH, "refs": [{"type": "issue", "value": "42"}], "metadata": {"n": 1}}
    sent = office.envelope(office.send(writer, reader, f"@{reader} and @tester", **given))
    other = office.envelope(office.send(writer, reader, "another", type="markdown"))
    office("message", "read", other["message"], "--as", reader)
    facts = {
        "e": sent["id"],
        "m": sent["message"],
        "c": sent["conversation"],
        "reader": reader,
        "writer": writer,
    }
    asked = [facts.get(word[1:], word) if word.startswith("%") else word for word in words]
    done = office.ok("message", "list", "--as", reader, "--json", *asked)
    expected = [sent["message"]]
    if "--conversation" in words:
        expected.insert(0, other["message"])
    assert [one["message_id"] for one in done.json["messages"]] == expected


def test_a_filter_that_is_too_broad_is_wrong_usage_and_says_what_to_add(office: Office) -> None:
    done = office("message", "list", "--as", office.agent(), "--type", "text")
    assert done.rc == 2 and "thread_id" in done.stderr and "code: too_broad" in done.stderr
    wrong = office("message", "list", "--scope", "auth")
    assert wrong.rc == 2 and "module:auth" in wrong.stderr


def test_getting_a_message_marks_it_as_read_in_ones_own_box_only(office: Office) -> None:
    writer, reader = pair(office)
    number = office.send(writer, reader, "look")
    message = office.envelope(number)["message"]
    for words in (("--as", reader, "--peek"), ("--as", writer), ("--as", "boss")):
        assert "> look" in office.ok("message", "get", message, *words).stdout
        assert office.envelope(number)["read_at"] is None
    assert office.ok("message", "get", number, "--as", reader).values("message-id") == [message]
    assert office.envelope(number)["read_at"] is not None
    assert office.ok("message", "get", message, "--as", reader, "--json").json["message"]["is_read"] is True


def test_messages_are_marked_as_read_without_being_shown(office: Office) -> None:
    writer, reader = pair(office)
    numbers = [office.send(writer, reader, "secret") for _ in range(2)]
    assert office.ok("message", "read", *numbers, numbers[0], "--as", reader).stdout == "marked-count: 2\n"
    message = office.envelope(numbers[0])["message"]
    assert office.ok("message", "read", message, "--as", writer).stdout == (
        f"marked-count: 0\nalso-read-by: {message} {reader}\n"
    )


def test_a_deleted_message_is_restored(office: Office) -> None:
    writer, reader = pair(office)
    number = office.send(writer, reader, "precious")
    office.ok("message", "delete", number, "--as", writer, "--reason", "a mistake")
    shown = office.ok("message", "get", number, "--as", reader).stdout
    assert "deleted: true\n" in shown and 'deleted-why: "a mistake"' in shown and "precious" not in shown
    done = office.ok("message", "restore", number, "--as", writer)
    assert done.record == {"message": office.envelope(number)["message"], "changed": "true", "posts": "0"}
    assert "> precious" in office.ok("message", "get", number, "--as", reader).stdout


def test_an_empty_list_says_so(office: Office) -> None:
    name = office.agent()
    assert "no-messages: true" in office.ok("message", "list", "--as", name).stdout
    assert "no-threads: true" in office.ok("thread", "list", "--as", name).stdout
    assert "No messages found." in on_terminal(office, "message", "list", "--as", name).stdout


# --- threads -------------------------------------------------------------------------


def test_threads_are_listed_and_shown_with_their_messages(office: Office) -> None:
    writer, reader = pair(office)
    number = office.send(writer, reader, "the question\nin detail", scopes=AUTH)
    answer = reply(office, reader, number)
    thread = office.envelope(number)["thread"]
    for words in ((), ("--scope", "module:auth"), ("-n", "1", "--page", "1")):
        done = office.ok("thread", "list", "--as", writer, *words)
        facts = {name: done.values(name) for name in ("thread", "title", "messages", "unread", "last-sender")}
        assert facts == {
            "thread": [thread],
            "title": ['"the question"'],
            "messages": ["2"],
            "unread": ["1"],
            "last-sender": [reader],
        }
    shown = office.ok("thread", "show", answer, "--as", writer)
    assert shown.values("thread")[0] == thread and shown.values("total") == ["2"]
    assert shown.stdout.index("> the question") < shown.stdout.index("> an answer")
    turned = office.ok("thread", "show", thread, "--as", writer, "--newest-first", "--json").json
    assert [one["body"]["content"] for one in turned["messages"]] == ["an answer", "the question\nin detail"]
    assert office.envelope(answer)["read_at"] is None


def test_the_chain_of_an_envelope_begins_with_the_first_message(office: Office) -> None:
    writer, reader = pair(office)
    answer = reply(office, reader, office.send(writer, reader, "root"), "second")
    last = reply(office, writer, answer, "third")
    done = office.ok("envelope", "thread", last, "--as", reader)
    texts = [line for line in done.stdout.splitlines() if line.startswith("> ")]
    assert texts == ["> root", "> second", "> third"]
    assert len(office.ok("envelope", "thread", last, "--as", reader, "--json").json["chain"]) == 3


def test_the_chain_has_a_line_for_what_one_may_not_see(office: Office) -> None:
    writer, reader = pair(office)
    third = office.agent()
    back = office.send(reader, third, "back", reply_to=office.send(writer, reader, "root"))
    lines = office.ok("envelope", "thread", back, "--as", third).stdout.splitlines()
    assert (
        lines[:2] == ["(messages that you may not see)", ""] and "> back" in lines and "> root" not in lines
    )


# --- the inbox -----------------------------------------------------------------------


def test_the_inbox_is_filtered_by_mentions_tags_and_threads(office: Office) -> None:
    writer, reader = pair(office)
    plain = office.send(writer, reader, "plain")
    named = office.send(
        writer, reader, f"for @{reader}", scopes=AUTH, refs=[{"type": "issue", "value": "42"}]
    )
    answer = reply(office, writer, named, "more")
    for command in (("inbox", "--peek"), ("envelope", "list")):
        for words, expected in (
            (("--mentions",), [named]),
            (("--scope", "module:auth"), [named]),
            (("--ref", "issue:42"), [named]),
            (("--ref", f"mention:{reader}"), [named]),
            (("--thread", named), [answer, named]),
            (("--mentions", "--scope", "module:web"), []),
            ((), [answer, named, plain]),
        ):
            done = office.ok(*command, "--as", reader, *words)
            assert done.values("envelope-id") == expected, (command, words)


def test_what_is_snoozed_is_listed_only_when_asked_for_and_stays_unread(office: Office) -> None:
    writer, reader = pair(office)
    number = office.send(writer, reader, "later")
    office.ok("envelope", "snooze", number, "--until", "+1h", "--as", reader)
    assert office.ok("inbox", "--as", reader).values("envelope-id") == []
    for words in (
        ("inbox", "--snoozed"),
        ("envelope", "list", "--snoozed"),
        ("envelope", "list", "--box", "snoozed"),
    ):
        assert office.ok(*words, "--as", reader).values("envelope-id") == [number]
    assert office.envelope(number)["read_at"] is None


# --- at a terminal -------------------------------------------------------------------


@pytest.mark.parametrize("columns", [20, 40, 80, 200])
def test_tables_of_messages_and_threads_fit_the_terminal(office: Office, columns: int) -> None:
    writer, reader = pair(office)
    number = office.send(writer, reader, "漢字かな한국어 " * 20, subject="a long subject " * 9)
    reply(office, reader, number, "\x1b[31mred\x07 \u202egnp.exe")
    for words in (("message", "list", "--thread", number), ("thread", "list")):
        done = on_terminal(office, *words, "--as", writer, columns=columns, env={"NO_COLOR": "1"})
        assert done.rc == 0 and "\x1b" not in done.stdout and "\u202e" not in done.stdout
        rows = done.stdout.split("\n\n")[0].splitlines()
        assert len(rows) >= 2 and all(wcswidth(row) <= columns for row in rows)
