"""What every list, answer and turn shows of an envelope: who has read it, its deadline, what it is about."""

from __future__ import annotations

from typing import Any

from hiboss.store import envelope_details
from hiboss.testing.running_daemon import RunningDaemon
from tests.support.in_process_daemon import InProcessDaemon, frozen
from tests.support.parties import Party, agents, boss

AUTH = {"type": "module", "value": "auth"}
ISSUE = {"type": "issue", "value": "42"}


def everywhere(who: Party, number: str) -> list[dict[str, Any]]:
    """Return an envelope as it is shown alone, and in a list."""
    (listed,) = [one for one in who.list(page_size=100) if one["id"] == number]
    return [who.get(number), listed]


def test_scopes_and_refs_are_shown_as_they_were_given_and_a_mention_is_a_ref(daemon: RunningDaemon) -> None:
    nex, kai = agents(daemon, 2)
    number = nex.tell(kai, text=f"look, @{kai.name}", scopes=[AUTH], refs=[ISSUE])
    for found in everywhere(kai, number):
        assert found["scopes"] == [AUTH]
        assert found["refs"] == [{"type": "mention", "value": kai.name.lower()}, ISSUE]
    plain = nex.tell(kai, text="nothing")
    assert [(one["scopes"], one["refs"]) for one in everywhere(kai, plain)] == [([], [])] * 2


def test_a_deleted_message_shows_no_scopes_and_no_refs(daemon: RunningDaemon) -> None:
    nex, kai = agents(daemon, 2)
    number = nex.tell(kai, text=f"look, @{kai.name}", scopes=[AUTH], refs=[ISSUE])
    nex.call("message.delete", id=number)
    found = kai.get(number)
    assert (found["deleted"], found["scopes"], found["refs"]) == (True, [], [])


def test_whoever_has_read_it_is_named_with_the_session_and_the_boss_as_himself(daemon: RunningDaemon) -> None:
    nex, kai = agents(daemon, 2)
    number = nex.tell(kai)
    assert kai.get(number)["read_by"] == []
    kai.call("envelope.poll", session="morning")
    boss(daemon).call("envelope.read", ids=[number], address=kai.address)
    kai.call("envelope.read", ids=[number])
    for found in (*everywhere(kai, number), nex.get(number)):
        seen = [(one["address"], one["session"]) for one in found["read_by"]]
        assert sorted(seen, key=str) == sorted(
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
    found = await daemon.get(number)
    assert [one["session"] for one in found["read_by"]] == [
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


def test_who_only_reads_along_in_a_group_is_told_so(daemon: RunningDaemon) -> None:
    nex, kai = agents(daemon, 2)
    nex.call("conversation.create", type="group", name=f"talk-{nex.name}", participants=[kai.address])
    nex.send(f"group:talk-{nex.name}", text="to nobody")
    nex.send(f"group:talk-{nex.name}", text=f"to @{kai.name}")
    found = {one["text"]: one["context"] for one in kai.list()}
    assert found == {"to nobody": True, f"to @{kai.name}": False}
    assert [one["text"] for one in kai.list(unread=True)] == [f"to @{kai.name}"]
