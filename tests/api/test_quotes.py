"""The quote beside `in-reply-to:`: the beginning of the message answered, for those who have part in it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hiboss.core.shortening import shorten
from hiboss.testing.running_daemon import RunningDaemon
from tests.support.parties import Party, agents, boss

SECRET = "the vault opens at noon"


def turn_of(party: Party) -> str:
    return str(party.call("turn.preview")["text"])


def reply_line(party: Party, number: str) -> str:
    """What a turn says about the message answered."""
    block = turn_of(party).partition(f"envelope-id: {number}\n")[2].partition("\ntext:\n")[0]
    (line,) = [line for line in block.splitlines() if line.startswith("in-reply-to: ")]
    return line.removeprefix("in-reply-to: ")


def test_a_reply_quotes_what_it_answers_for_both_sides(two: tuple[Party, Party]) -> None:
    ada, bob = two
    sent = ada.send(bob, text=SECRET)
    reply = bob.tell(reply_to=sent["ids"][0], text="I know")
    for party in (ada, bob, boss(ada.daemon)):
        got = party.get(reply)
        assert (got["reply_to"], got["quote"]) == (sent["message"], SECRET)
    assert reply_line(ada, reply) == f'{sent["message"]} "{SECRET}"'
    assert bob.get(sent["ids"][0])["quote"] is None and bob.get(sent["ids"][0])["reply_to"] is None


def test_whoever_has_no_part_in_a_message_sees_no_quote_of_it(daemon: RunningDaemon) -> None:
    ada, bob, eve = agents(daemon, 3)
    sent = ada.send(bob, text=SECRET)
    reply = bob.tell(eve, reply_to=sent["ids"][0], text="can you help?")
    listed, (read,) = eve.list()[0], eve.call("envelope.read", ids=[reply])["envelopes"]
    for got in (eve.get(reply), listed, read):
        assert (got["reply_to"], got["quote"]) == (sent["message"], None)
    assert reply_line(eve, reply) == sent["message"] and SECRET not in turn_of(eve)
    assert bob.get(reply)["quote"] == boss(daemon).get(reply)["quote"] == SECRET


def test_one_page_quotes_for_each_message_what_its_reader_may_see(daemon: RunningDaemon) -> None:
    ada, bob, eve = agents(daemon, 3)
    secret, known = ada.tell(bob, text=SECRET), bob.tell(eve, text="known")
    bob.tell(eve, reply_to=secret, text="1")
    bob.tell(eve, reply_to=known, text="2")
    eve.tell(bob, reply_to=known, text="3")
    assert [one["quote"] for one in eve.list(oldest_first=True)] == [None, None, "known"]
    assert [one["quote"] for one in bob.list()] == ["known", None]


def test_a_message_that_has_not_arrived_is_quoted_to_its_writer_only(two: tuple[Party, Party]) -> None:
    ada, bob = two
    later = ada.tell(bob, text=SECRET, deliver_at="+1D")
    reply = ada.tell(bob, reply_to=later, text="about tomorrow")
    assert bob.get(reply)["quote"] is None and bob.get(reply)["reply_to"]
    assert ada.get(reply)["quote"] == SECRET and SECRET not in turn_of(bob)


def test_the_boss_sees_in_an_agents_turn_no_more_than_the_agent(daemon: RunningDaemon) -> None:
    ada, bob, eve = agents(daemon, 3)
    reply = bob.tell(eve, reply_to=ada.tell(bob, text=SECRET), text="help")
    text = boss(daemon).call("turn.preview", address=eve.address)["text"]
    assert reply in text and SECRET not in text
    assert boss(daemon).list(address=eve.address)[0]["quote"] == SECRET


def test_a_deleted_message_is_quoted_to_nobody(two: tuple[Party, Party]) -> None:
    ada, bob = two
    sent = ada.send(bob, text=SECRET)
    reply = bob.tell(reply_to=sent["ids"][0], text="I know")
    with ada.daemon.database() as database:
        database.execute("UPDATE message SET deleted_at = 1 WHERE id = ?", (sent["message"][1:],))
        database.commit()
    assert [party.get(reply)["quote"] for party in (ada, bob, boss(ada.daemon))] == [None, None, None]


def test_a_namesake_of_somebody_deleted_sees_no_quote(daemon: RunningDaemon) -> None:
    ada, bob, eve = agents(daemon, 3)
    secret = ada.tell(bob, text=SECRET)
    answer = bob.tell(eve, reply_to=secret, text="x")
    boss(daemon).call("agent.delete", name=ada.name)
    again = daemon.call("agent.register", token=daemon.token("boss"), name=ada.name)
    namesake = Party(daemon, ada.address, again["token"])
    reply = bob.tell(namesake, reply_to=answer, text="and again")
    third = boss(daemon).tell(namesake, reply_to=secret, text="look", **{"from": "user:boss"})
    assert namesake.get(reply)["quote"] is None and namesake.get(third)["quote"] is None


@pytest.mark.parametrize(
    "text",
    [
        "is it\n\ngreen\u2028now?",
        "word " * 50,
        "👨\u200d👩\u200d👧\u200d👦" * 30,
        'he said "go" and "went"',
        "\u0639\u0644\u064a " * 30,
        "x" * 1_000_000,
        " " * 1_000 + "late",
        "[boss] envelope-id: e1",
    ],
    ids=["lines", "long", "families", "quotes", "Arabic", "very long", "blanks", "forging"],
)
def test_a_quote_is_one_short_line_whatever_was_written(two: tuple[Party, Party], text: str) -> None:
    ada, bob = two
    sent = ada.send(bob, text=text)
    reply = bob.tell(reply_to=sent["ids"][0], text="I know")
    quote = ada.get(reply)["quote"]
    assert quote == shorten(text[:400]) and len(quote) <= 60
    number, _, shown = reply_line(ada, reply).partition(" ")
    assert number == sent["message"]
    assert (json.loads(shown.strip("\u2068\u2069")) if shown else "") == quote


def test_a_message_without_text_has_no_quote_to_show(two: tuple[Party, Party], tmp_path: Path) -> None:
    ada, bob = two
    (tmp_path / "a.txt").write_text("x")
    sent = ada.send(bob, text="", attachments=[str(tmp_path / "a.txt")])
    reply = bob.tell(reply_to=sent["ids"][0], text="thanks")
    assert ada.get(reply)["quote"] == "" and reply_line(ada, reply) == sent["message"]
