"""What lists and answers show of an envelope, also where they are answered with bytes kept from the last look."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from hiboss.core.paths import Home
from hiboss.core.shown_envelope import ShownEnvelope
from hiboss.store import envelope_details, envelope_rows
from hiboss.store.connection import KEPT, KEPT_BYTES, Reader, connect
from hiboss.testing.running_daemon import RunningDaemon, set_up_home
from tests.support.in_process_daemon import InProcessDaemon, frozen
from tests.support.parties import Party, agents, boss

AUTH = {"type": "module", "value": "auth"}
ISSUE = {"type": "issue", "value": "42"}


def everywhere(who: Party, number: str) -> list[dict[str, Any]]:
    """Return an envelope as it is shown alone, and in a list."""
    (listed,) = [one for one in who.list(page_size=100) if one["id"] == number]
    return [who.get(number), listed]


def test_scopes_and_refs_are_shown_as_they_were_given_and_a_mention_is_a_ref(nex: Party, kai: Party) -> None:
    for found in everywhere(kai, nex.tell(kai, text=f"look, @{kai.name}", scopes=[AUTH], refs=[ISSUE])):
        assert found["scopes"] == [AUTH]
        assert found["refs"] == [{"type": "mention", "value": kai.name.lower()}, ISSUE]
    plain = nex.tell(kai, text="nothing")
    assert [(one["scopes"], one["refs"]) for one in everywhere(kai, plain)] == [([], [])] * 2


def test_a_deleted_message_shows_no_scopes_and_no_refs(nex: Party, kai: Party) -> None:
    number = nex.tell(kai, text=f"look, @{kai.name}", scopes=[AUTH], refs=[ISSUE])
    nex.call("message.delete", id=number)
    found = kai.get(number)
    assert (found["deleted"], found["scopes"], found["refs"]) == (True, [], [])


def test_whoever_has_read_it_is_named_with_the_session_and_the_boss_as_himself(
    daemon: RunningDaemon, nex: Party, kai: Party
) -> None:
    number = nex.tell(kai)
    assert kai.get(number)["read_by"] == []
    kai.call("envelope.poll", session="morning")
    boss(daemon).call("envelope.read", ids=[number], address=kai.address)
    kai.call("envelope.read", ids=[number])
    for found in (*everywhere(kai, number), nex.get(number)):
        assert sorted([(one["address"], one["session"]) for one in found["read_by"]], key=str) == sorted(
            [(kai.address, "morning"), ("user:boss", None), (kai.address, None)], key=str
        )
        assert found["read_at"] == min(one["at"] for one in found["read_by"] if one["read"])


@frozen()
async def test_of_many_readers_the_first_are_shown(daemon: InProcessDaemon) -> None:
    await daemon.register("kai")
    [number] = await daemon.send("agent:kai")
    for one in range(envelope_details.READERS + 3):
        await daemon.ask("envelope.poll", "kai", session=f"session-{one:02}")
        await daemon.move(seconds=1)
    assert [one["session"] for one in (await daemon.get(number))["read_by"]] == [
        f"session-{one:02}" for one in range(envelope_details.READERS)
    ]


@frozen()
async def test_a_turn_shows_the_deadline_and_what_it_is_about_but_not_who_has_read_it(
    daemon: InProcessDaemon,
) -> None:
    await daemon.register("kai")
    [number] = await daemon.send("agent:kai", ack_by="30m", scopes=[AUTH], refs=[ISSUE])
    await daemon.ask("envelope.poll", "kai", session="morning")
    found = await daemon.ask("turn.preview", "kai")
    lines = found["text"].splitlines()
    for line in ("ack-by: 2030-06-01T12:30:00+00:00", 'scopes: "module:auth"', 'refs: "issue:42"'):
        assert line in lines
    assert "morning" not in found["text"] and found["envelopes"] == [number]


def test_who_only_reads_along_in_a_group_is_told_so(nex: Party, kai: Party) -> None:
    nex.call("conversation.create", type="group", name=f"talk-{nex.name}", participants=[kai.address])
    nex.send(f"group:talk-{nex.name}", text="to nobody")
    nex.send(f"group:talk-{nex.name}", text=f"to @{kai.name}")
    found = {one["text"]: one["context"] for one in kai.list()}
    assert found == {"to nobody": True, f"to @{kai.name}": False}
    assert [one["text"] for one in kai.list(unread=True)] == [f"to @{kai.name}"]


# --- kept answers ------------------------------------------------------------------


TAG = {"type": "module", "value": "auth"}


def changes(number: str) -> list[tuple[str, str, dict[str, Any]]]:
    """What changes how an envelope is shown: who does it, by which operation."""
    return [
        ("kai", "envelope.poll", {"session": "morning"}),
        ("kai", "envelope.read", {"ids": [number]}),
        ("kai", "reaction.set", {"id": number, "emoji": "👍"}),
        ("nex", "message.edit", {"id": number, "text": "new words"}),
        ("kai", "envelope.ack", {"ids": [number]}),
        ("boss", "agent.set", {"name": "", "display": "Nexus"}),
        ("nex", "message.delete", {"id": number, "reason": "by mistake"}),
    ]


def test_after_every_change_a_list_shows_what_a_look_at_the_envelope_shows(
    daemon: RunningDaemon, nex: Party, kai: Party
) -> None:
    number = nex.tell(kai, text=f"look, @{kai.name}", scopes=[TAG], metadata={"a": 1})
    who = {"nex": nex, "kai": kai, "boss": boss(daemon)}
    before: list[dict[str, Any]] = []
    for name, method, params in changes(number):
        if "name" in params:
            params["name"] = nex.name
        who[name].call(method, **params)
        first, again = kai.list(), kai.list()
        assert first == again == [kai.get(number)]
        assert list(first[0]) == list(kai.get(number))  # also the order of the fields
        assert first != before, f"{method} changed nothing that is shown"
        before = first


def test_a_quote_is_kept_only_for_the_one_who_may_see_it(daemon: RunningDaemon) -> None:
    nex, kai, zed = agents(daemon, 3)
    question = nex.tell(kai, text="between us")
    answer = kai.call("envelope.send", to=[nex.address, zed.address], text="yes", reply_to=question)
    for _ in range(2):
        (shown,) = [one for one in nex.list() if one["message"] == answer["message"]]
        (hidden,) = zed.list()
        assert (shown["quote"], hidden["quote"]) == ("between us", None)


def test_a_page_that_is_too_large_to_keep_is_listed_as_it_is(nex: Party, kai: Party) -> None:
    texts = [f"{one}" * KEPT_BYTES for one in range(10, 14)]
    for text in texts:
        nex.tell(kai, text=text)
    for _ in range(2):
        assert [one["text"] for one in kai.list(page_size=100, oldest_first=True)] == texts


def test_each_filter_and_each_reader_has_a_page_of_its_own(
    daemon: RunningDaemon, nex: Party, kai: Party
) -> None:
    numbers = [nex.tell(kai) for _ in range(3)]
    kai.call("envelope.ack", ids=numbers[:1])
    for _ in range(2):
        assert [one["id"] for one in kai.list(oldest_first=True)] == numbers
        assert [one["id"] for one in kai.list(status="pending", oldest_first=True)] == numbers[1:]
        assert [one["id"] for one in kai.list(page_size=1)] == numbers[-1:]
        assert [one["id"] for one in boss(daemon).list(address=kai.address)] == numbers[::-1]
        assert nex.list() == []
        assert "total" not in kai.call("envelope.list")
        assert kai.call("envelope.list", count=True)["total"] == 3


def test_a_page_of_messages_is_that_of_its_filter_and_of_now(nex: Party, kai: Party) -> None:
    one = nex.call("envelope.send", to=kai.address, text="one", metadata={"n": 1})["message"]
    true = nex.call("envelope.send", to=kai.address, text="true", metadata={"n": True})["message"]

    def found(**params: Any) -> list[str]:
        return [message["message_id"] for message in kai.call("message.list", **params)["messages"]]

    for _ in range(2):
        assert found() == [true, one]
        assert (found(page=2, page_size=1), found(page=1, page_size=1)) == ([one], [true])
        assert found(thread_id=one, meta={"n": 1}) == [one] and found(thread_id=one, meta={"n": True}) == []
    nex.call("message.edit", id=one, text="two")
    assert kai.call("message.list")["messages"][1]["body"]["content"] == "two"


@pytest.fixture
def reader(tmp_path: Path) -> Any:
    home = Home(str(tmp_path / "home"))
    set_up_home(home)
    with closing(connect(home, wait_seconds=1, read_only=True)) as connection:
        yield connection


def test_a_reader_keeps_things_until_another_connection_commits(reader: Reader) -> None:
    reader.kept()["one"] = 1
    assert reader.kept() == {"one": 1}
    (path,) = [row["file"] for row in reader.execute("PRAGMA database_list")]
    with closing(sqlite3.connect(path)) as other:
        other.execute("UPDATE counter SET value = value + 1")
        assert reader.kept() == {"one": 1}
        other.commit()
    assert reader.kept() == {}


def test_a_reader_does_not_keep_more_and_more(reader: Reader) -> None:
    for number in range(3 * KEPT):
        reader.kept()[number] = number
        assert len(reader.kept()) <= KEPT + 1


def test_the_columns_that_are_read_are_those_that_are_shown(reader: Reader) -> None:
    names = [column[0] for column in reader.execute(envelope_rows.SHOWN).description]
    assert tuple(names) == ShownEnvelope._fields
