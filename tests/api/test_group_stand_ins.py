"""Who has the mail of an agent of a group answers there in its place, and is a guest of it for so long."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from hiboss.core.errors import HibossError
from hiboss.testing.running_daemon import RunningDaemon
from tests.support.daemons import wait_until
from tests.support.in_process_daemon import InProcessDaemon, frozen
from tests.support.parties import Party, agents
from tests.support.python_agents import Boss, Team, wait_until_idle

GROUP = "group:club"
# It repeats the last thing that was said to it; not a notice about a handoff.
ECHO = 'print("max: " + [one for one in TEXTS if "conversation c" not in one][-1])'


async def club(daemon: InProcessDaemon, *members: str, **fields: Any) -> str:
    """Create a group of the boss with agent nex in it; return its conversation."""
    members = ("agent:nex", *members)
    made = await daemon.ask("conversation.create", name="club", participants=list(members), **fields)
    return str(made["conversation"]["id"])


async def hand(daemon: InProcessDaemon, conversation: str, to: str, event: str = "handoff") -> None:
    target = {"conversation": conversation, "to": to, "agent": "nex"}
    found = await daemon.ask("control.send", event=f"stream.{event}", **target)
    assert found["outcome"] == "applied", found


async def said(daemon: InProcessDaemon) -> list[tuple[str, str]]:
    """Return what was said in the group, without records of controls."""
    page = await daemon.ask("conversation.messages", conversation="club", page_size=100)
    return [(one["from"], one["text"]) for one in page["envelopes"] if one["type"] != "event"]


async def refusal(daemon: InProcessDaemon, who: str, **params: Any) -> str:
    """Return the code with which a message is refused."""
    with pytest.raises(HibossError) as caught:
        await daemon.ask("envelope.send", who, **params)
    return caught.value.code


async def newest(daemon: InProcessDaemon, who: str, text: str) -> dict[str, Any]:
    page = await daemon.ask("envelope.list", who, page_size=100)
    return next(one for one in page["envelopes"] if one["text"] == text)


@pytest.mark.parametrize("event", ["handoff", "route"])
def test_who_has_the_mail_of_an_agent_of_a_group_answers_to_the_group(event: str, tmp_path: Any) -> None:
    @frozen()
    async def story(daemon: InProcessDaemon) -> None:
        await daemon.register("cat", "ada")
        conversation = await club(daemon, "agent:ada")
        await hand(daemon, conversation, "agent:cat", event)
        await daemon.send(GROUP, who="boss", text="@nex who?")
        got = await newest(daemon, "cat", "@nex who?")
        assert got["routed_from"] == "agent:nex"
        sent = await daemon.ask("envelope.send", "cat", reply_to=got["id"], text="me")
        assert sent["conversation"] == conversation and "elsewhere" not in sent
        await daemon.send(GROUP, who="cat", text="still me")
        assert await said(daemon) == [
            ("user:boss", "@nex who?"),
            ("agent:cat", "me"),
            ("agent:cat", "still me"),
        ]
        assert [one for one in await daemon.inbox("ada") if "me" in one] == ["me", "still me"]
        along = [one for one in await daemon.inbox("nex") if "me" in one]
        assert along == (["me", "still me"] if event == "handoff" else [])  # a handoff lets it read along

    story(tmp_path)


@frozen()
async def test_who_got_one_envelope_of_a_group_answers_that_to_the_group_and_writes_nothing_else_there(
    daemon: InProcessDaemon,
) -> None:
    await daemon.register("eve")
    conversation = await club(daemon)
    await daemon.send(GROUP, who="boss", text="@nex who?")
    number = (await newest(daemon, "nex", "@nex who?"))["id"]
    await daemon.ask("control.send", event="stream.route", envelope=number, to="agent:eve")
    sent = await daemon.ask("envelope.send", "eve", reply_to=number, text="me")
    assert sent["conversation"] == conversation
    along = await newest(daemon, "nex", "me")
    assert along["context"] and along["status"] == "done"  # it was said in its place
    assert await refusal(daemon, "eve", to=GROUP, text="more") == "unknown_recipient"
    await daemon.ask("envelope.send", reply_to=sent["message"], text="thank you")
    assert not (await newest(daemon, "nex", "thank you"))["context"]  # it answers what was said for nex


@frozen()
async def test_an_answer_to_what_was_said_in_the_place_of_an_agent_goes_to_who_has_its_mail(
    daemon: InProcessDaemon,
) -> None:
    await daemon.register("cat")
    await hand(daemon, await club(daemon), "agent:cat")
    await daemon.send(GROUP, who="cat", text="ready")
    first = await newest(daemon, "boss", "ready")
    await daemon.ask("envelope.send", reply_to=first["id"], text="go on")
    got = await newest(daemon, "cat", "go on")
    assert (got["routed_from"], got["context"], got["status"]) == ("agent:nex", False, "pending")


@frozen()
async def test_nobody_answers_to_a_group_in_the_place_of_an_agent_that_has_left_it(
    daemon: InProcessDaemon,
) -> None:
    await daemon.register("eve")
    await club(daemon)
    await daemon.send(GROUP, who="boss", text="@nex who?")
    number = (await newest(daemon, "nex", "@nex who?"))["id"]
    await daemon.ask("control.send", event="stream.route", envelope=number, to="agent:eve")
    await daemon.ask("participant.remove", conversation="club", address="agent:nex")
    assert await refusal(daemon, "eve", reply_to=number, text="me") == "unknown_recipient"


@frozen()
async def test_a_deferred_message_in_the_place_of_an_agent_arrives_only_while_the_handoff_holds(
    daemon: InProcessDaemon,
) -> None:
    await daemon.ask("user.register", name="ann", profile=True)
    conversation = await club(daemon, "user:ann")
    await daemon.send(GROUP, who="boss", text="hello")
    await daemon.ask("participant.leave", "ann", conversation="club")
    await hand(daemon, conversation, "user:ann")
    await daemon.send(GROUP, who="ann", text="soon", deliver_at="+5m")
    [late] = await daemon.send(GROUP, who="ann", text="late", deliver_at="+15m")
    await daemon.move(minutes=10)
    await hand(daemon, conversation, "agent:nex")
    await daemon.move(minutes=10)
    assert ("user:ann", "soon") in await said(daemon)
    assert (await daemon.get(late))["status"] == "failed"


@pytest.fixture
def idle(daemon: RunningDaemon) -> Iterator[None]:
    yield
    wait_until_idle(daemon)


@pytest.mark.usefixtures("idle")
def test_the_answer_of_a_run_in_the_place_of_an_agent_goes_to_the_group(team: Team, ada: Boss) -> None:
    nex, max_ = team.hire('wait_for("never")'), team.hire(ECHO)
    ada.call("agent.pause", name=nex.name)
    made = ada.call("conversation.create", type="group", name="crew", participants=[nex.address])
    conversation = made["conversation"]["id"]
    ada.send("group:crew", text=f"@{nex.name} one")
    [number] = [one["id"] for one in nex.list() if one["text"].endswith("one")]
    ada.call("control.send", event="stream.route", envelope=number, to=max_.address)
    wait_until(lambda: _answers(ada, conversation, max_) == [f"max: @{nex.name} one"])
    ada.call("control.send", event="stream.handoff", conversation=conversation, to=max_.address)
    ada.send("group:crew", text=f"@{nex.name} two")
    wait_until(lambda: f"max: @{nex.name} two" in _answers(ada, conversation, max_))


def _answers(ada: Boss, conversation: str, who: Party) -> list[str]:
    page = ada.call("conversation.messages", conversation=conversation, page_size=100)
    return [one["text"] for one in page["envelopes"] if one["from"] == who.address]


def test_a_handoff_to_somebody_who_was_in_the_group_before_ends_and_it_can_join_again(
    daemon: RunningDaemon, ada: Boss
) -> None:
    (nex,) = agents(daemon, 1)
    ann = Party(daemon, "user:ann", ada.call("user.register", name="ann")["token"])
    parties = [nex.address, ann.address]
    made = ada.call("conversation.create", type="group", name="past", participants=parties)
    conversation = made["conversation"]["id"]
    ada.send("group:past", text="hello")
    ann.call("participant.leave", conversation="past")
    for to in (ann, nex, ann):
        ada.call("control.send", event="stream.handoff", conversation=conversation, to=to.address)
        daemon.check()
    ada.send("group:past", text=f"@{nex.name} again")
    assert f"@{nex.name} again" in [one["text"] for one in ann.list()]
    why = ada.refusal("participant.add", conversation="past", address=ann.address)
    assert why == "cannot_be_member"
    ada.call("control.send", event="stream.handoff", conversation=conversation, to=nex.address)
    ada.call("participant.add", conversation="past", address=ann.address)
    daemon.check()
    texts = [one["text"] for one in ann.call("conversation.messages", conversation="past")["envelopes"]]
    assert "hello" in texts


@frozen()
async def test_what_a_person_put_off_wakes_with_the_agent_who_has_the_conversation_again(
    daemon: InProcessDaemon,
) -> None:
    await daemon.ask("user.register", name="ann", profile=True)
    first = await daemon.ask("envelope.send", to=["agent:nex"], text="what now?")
    answered = await daemon.send("agent:nex", who="boss", text="and this?")
    await hand(daemon, first["conversation"], "user:ann")
    numbers = [first["ids"][0], *answered]
    await daemon.ask("envelope.snooze", "ann", ids=numbers, until="+10m")
    await daemon.ask("envelope.send", "ann", reply_to=answered[0], text="this is done")
    await hand(daemon, first["conversation"], "agent:nex")
    await daemon.move(minutes=10)
    got = await daemon.get(numbers[0])
    assert (got["to"], got["status"], got["routed_from"]) == ("agent:nex", "pending", None)
    assert (await daemon.get(answered[0]))["to"] == "user:ann"  # she has answered that
