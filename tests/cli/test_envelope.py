"""`hiboss envelope …` by hand: what each command prints and does."""

from __future__ import annotations

import re

import pytest

from tests.support.cli import Office


def pair(office: Office) -> tuple[str, str]:
    return office.agent(), office.agent()


# --- send ----------------------------------------------------------------------------


def test_sending_prints_one_id_per_recipient_and_nothing_else(office: Office) -> None:
    writer, reader = pair(office)
    done = office.ok(
        "envelope", "send", "--as", writer, "--to", f"agent:{reader}", "--to", "user:boss", "--text", "hello"
    )
    assert re.fullmatch(r"id: e[1-9]\d*\nid: e[1-9]\d*\n", done.stdout)
    first, second = done.values("id")
    assert office.envelope(first)["to"] == f"agent:{reader}" and office.envelope(second)["to"] == "user:boss"
    assert office.envelope(first)["message"] == office.envelope(second)["message"]


def test_every_option_of_send_reaches_the_envelope(office: Office) -> None:
    writer, reader = pair(office)
    asked = office.send(reader, writer, "how is it going?")
    done = office.ok(
        *(
            "envelope",
            "send",
            "--as",
            "boss",
            "--from",
            f"agent:{writer}",
            "--from-boss",
            "--from-name",
            "Ada L",
        ),
        *("--to", f"agent:{reader}", "--text", "# fine", "--subject", "Re: it", "--priority", "high"),
        *("--type", "markdown", "--trace-id", "trace-7", "--reply-to", asked),
        *("--deliver-at", "2099-01-27 16:30", "--meta", "n=1", "--key", "once", "--json"),
    )
    assert done.json["deliver_at"] == "2099-01-27T16:30:00.000Z" and done.json["duplicate"] is False
    one = office.envelope(done.json["ids"][0])
    expected = {
        "from": f"agent:{writer}",
        "from_boss": True,
        "from_name": "Ada L",
        "to": f"agent:{reader}",
        "text": "# fine",
        "subject": "Re: it",
        "priority": "high",
        "type": "markdown",
        "trace": f"user:boss/trace-7/{done.json['message']}",
        "reply_to": office.envelope(asked)["message"],
        "thread": office.envelope(asked)["thread"],
        "deliver_at": "2099-01-27T16:30:00.000Z",
        "metadata": {"n": 1},
        "status": "pending",
    }
    assert {name: one[name] for name in expected} == expected


def test_a_reply_without_a_recipient_goes_to_who_wrote(office: Office) -> None:
    writer, reader = pair(office)
    asked = office.send(writer, reader, "well?")
    done = office("envelope", "send", "--as", reader, "--reply-to", asked, "--text", "well.")
    (answer,) = done.values("id")
    assert office.envelope(answer)["to"] == f"agent:{writer}"


def test_a_deferred_envelope_prints_its_time_in_the_boss_s_zone(office: Office) -> None:
    writer, reader = pair(office)
    done = office(
        *("envelope", "send", "--as", writer, "--to", f"agent:{reader}", "--text", "later"),
        *("--deliver-at", "2099-01-27T16:30:00+08:00"),
    )
    assert done.rc == 0
    (id_,) = done.values("id")
    assert done.stdout == f"id: {id_}\ndeliver-at: 2099-01-27T08:30:00+00:00\n"
    listed = office("envelope", "list", "--as", writer, "--box", "outbox", "--status", "pending")
    assert listed.values("envelope-id") == [id_]
    assert listed.values("deliver-at") == ["2099-01-27T08:30:00+00:00"]


def test_a_time_in_the_past_may_start_with_a_minus_and_means_now(office: Office) -> None:
    writer, reader = pair(office)
    done = office(
        "envelope", "send", "--as", writer, "--to", f"agent:{reader}", "--text", "x", "--deliver-at", "-15m"
    )
    assert done.rc == 0 and done.values("deliver-at") == []
    assert office("envelope", "list", "--as", reader).values("envelope-id") == done.values("id")


def test_the_same_key_prints_the_first_id_again_and_says_so(office: Office) -> None:
    writer, reader = pair(office)
    words = ("envelope", "send", "--as", writer, "--to", f"agent:{reader}", "--text", "x", "--key", "k1")
    first, again = office(*words), office(*words)
    assert again.rc == 0 and first.values("duplicate") == []
    assert again.stdout == f"{first.stdout}duplicate: true\n"
    other = office(*words[:-3], "y", "--key", "k1")
    assert other.rc == 1 and "code: key_reused" in other.stderr
    assert office("envelope", "list", "--as", reader).values("envelope-id") == first.values("id")


# --- list, get, read -----------------------------------------------------------------


def test_an_empty_list_says_so(office: Office) -> None:
    nobody = office.agent()
    done = office("envelope", "list", "--as", nobody)
    assert (done.rc, done.stdout, done.stderr) == (0, "no-envelopes: true\n", "")
    assert office("envelope", "list", "--as", nobody, "--json").json["envelopes"] == []


def test_envelopes_are_listed_newest_first_in_blocks_with_one_blank_line_between(office: Office) -> None:
    writer, reader = pair(office)
    ids = [office.send(writer, reader, text) for text in ("one", "two", "three")]
    blocks = office.ok("envelope", "list", "--as", reader).stdout.removesuffix("\n").split("\n\n")
    assert [block.splitlines()[0] for block in blocks] == [f"envelope-id: {id_}" for id_ in reversed(ids)]
    assert [block.splitlines()[-2:] for block in blocks] == [
        ["text:", "> three"],
        ["text:", "> two"],
        ["text:", "> one"],
    ]
    lines = blocks[0].splitlines()
    assert lines[1:3] == [f"from: agent:{writer}", f"to: agent:{reader}"]
    assert re.fullmatch(r"created-at: \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", lines[3])
    assert "status: pending" in lines


def test_a_list_is_read_page_by_page_with_the_cursor_it_prints(office: Office) -> None:
    writer, reader = pair(office)
    ids = [office.send(writer, reader) for _ in range(5)]
    seen: list[str] = []
    words: tuple[str, ...] = ()
    while True:
        page = office("envelope", "list", "--as", reader, "--oldest-first", "-n", "2", "--count", *words)
        assert page.values("total") == ["5"]
        seen += page.values("envelope-id")
        if not page.values("next-cursor"):
            break
        words = ("--after", *page.values("next-cursor"))
    assert seen == ids


def test_a_list_can_be_narrowed(office: Office) -> None:
    writer, reader = pair(office)
    third = office.agent()
    one, two = office.send(writer, reader), office.send(third, reader)
    reply = office.send(reader, writer, reply_to=one)
    office("envelope", "read", "--as", reader, "--id", one)
    office("envelope", "ack", "--as", reader, "--id", two)

    def listed(*words: str) -> list[str]:
        return office.ok("envelope", "list", "--as", reader, *words).values("envelope-id")

    assert listed("--unread") == []
    assert listed("--status", "pending") == [one]
    assert listed("--status", "done") == listed("--from", f"agent:{third}") == [two]
    assert listed("--box", "outbox", "--to", f"agent:{writer}") == [reply]
    assert listed("--thread", one) == [reply, one]
    assert listed("--thread", one, "--box", "inbox") == [one]
    assert listed("--created-after", "-1D") == [two, one]
    assert listed("--created-before", "-1D") == []


def test_getting_shows_an_envelope_in_full_and_marks_nothing(office: Office) -> None:
    writer, reader = pair(office)
    id_ = office.send(writer, reader, "a\n\nb", subject="Two lines", priority="low", metadata={"k": [1]})
    done = office.ok("envelope", "get", "--as", reader, "--id", id_)
    assert done.values("subject") == ['"Two lines"'] and done.values("priority") == ["low"]
    assert done.values("metadata") == ['{"k": [1]}']
    assert "\ntext:\n> a\n>\n> b\n\nreceipt: arrived\n" in done.stdout
    assert office.envelope(id_)["read_at"] is None
    bare = office("envelope", "get", "--as", reader, "--id", id_.removeprefix("e"), "--json")
    assert bare.json["envelope"]["id"] == id_


# --- ack, cancel, archive, trash, restore --------------------------------------------


def test_acknowledging_settles_what_is_named_or_everything_or_everything_up_to_one(office: Office) -> None:
    writer, reader = pair(office)
    ids = [office.send(writer, reader) for _ in range(5)]

    def pending() -> list[str]:
        return office("envelope", "list", "--as", reader, "--status", "pending").values("envelope-id")

    named = office("envelope", "ack", "--as", reader, "--id", ids[1], "--id", ids[0])
    assert (named.rc, named.stdout) == (0, "changed: 2\n") and pending() == ids[:1:-1]
    assert office("envelope", "ack", "--as", reader, "--id", ids[0]).stdout == "changed: 0\n"
    upto = office("envelope", "ack", "--as", reader, "--all", "--up-to", ids[2])
    assert upto.stdout == "changed: 1\n" and pending() == [ids[4], ids[3]]
    assert office("envelope", "ack", "--as", reader, "--all").stdout == "changed: 2\n"
    assert pending() == []


def test_acknowledging_nothing_or_both_is_wrong_usage_in_words_of_the_command_line(office: Office) -> None:
    writer, reader = pair(office)
    id_ = office.send(writer, reader)
    for words in ((), ("--all", id_), ("--up-to", id_)):
        done = office("envelope", "ack", "--as", reader, *words)
        assert done.rc == 2 and "ids" in done.stderr and "--all" in done.stderr
    assert office.envelope(id_)["status"] == "pending"


def test_cancelling_takes_back_what_nobody_has_dealt_with(office: Office) -> None:
    writer, reader = pair(office)
    first, second = office.send(writer, reader), office.send(writer, reader)
    done = office("envelope", "cancel", "--as", writer, "--id", first)
    assert (done.rc, done.stdout, done.stderr) == (0, "changed: 1\npartly-posted: 0\n", "")
    assert office.envelope(first)["status"] == "cancelled"
    office("envelope", "ack", "--as", reader, "--id", second)
    late = office("envelope", "cancel", "--as", writer, "--id", second)
    assert late.rc == 1 and f"{second} can no longer be cancelled" in late.stderr


@pytest.mark.parametrize(("verb", "box"), [("archive", "archived"), ("trash", "trash")])
def test_an_envelope_is_put_away_and_back(office: Office, verb: str, box: str) -> None:
    writer, reader = pair(office)
    id_ = office.send(writer, reader)
    away = office("envelope", verb, "--as", reader, "--id", id_)
    assert (away.rc, away.stdout, away.stderr) == (0, "changed: 1\n", "")
    assert office("envelope", "list", "--as", reader).stdout == "no-envelopes: true\n"
    there = office("envelope", "list", "--as", reader, "--box", box)
    assert there.values("envelope-id") == [id_] and there.values("box") == [box]
    assert office("envelope", "restore", "--as", reader, "--id", id_).stdout == "changed: 1\n"
    assert office("envelope", "list", "--as", reader).values("envelope-id") == [id_]


def test_recipients_are_split_at_commas_and_an_id_given_twice_is_shown_once(office: Office) -> None:
    one, two = office.agent(), office.agent()
    sent = office("envelope", "send", "--to", f"{one}, {two}", "--text", "x")
    assert len(sent.values("id")) == 2
    first = sent.values("id")[0]
    for words in (("read",), ("envelope", "read")):
        assert office(*words, first, first, "--as", one).values("envelope-id") == [first]
    made = office("cron", "create", "--to", f"{one},{two}", "--every", "2h", "--text", "x")
    assert office("cron", "show", made.record["schedule-id"]).values("to") == [f"agent:{one}, agent:{two}"]
