"""Handing a conversation to another agent, and agents that stand in for a member of a group."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hiboss.core.errors import HibossError
from hiboss.testing.running_daemon import RunningDaemon
from tests.support.cli import Shell
from tests.support.in_process_daemon import InProcessDaemon, frozen
from tests.support.parties import Envelope, Party, agent, person
from tests.support.phones import Phone
from tests.support.python_agents import Boss, PythonAgent, Team, texts, wait_until_idle
from tests.support.waits import wait_until


@pytest.fixture(scope="module")
def ann(daemon: RunningDaemon) -> Party:
    return person(daemon, "ann")


# It repeats the last thing that was said to it; not a notice about a handoff.
ECHO = 'print("{}: " + [one for one in TEXTS if "conversation c" not in one][-1])'


class Talk:
    """Bob, in a chat of his own with an agent that has turns."""

    def __init__(self, team: Team, ada: Boss, directory: Path) -> None:
        self.daemon, self.ada = team.daemon, ada
        self.nex: PythonAgent = team.hire(ECHO.format("nex"))
        self.bob = Phone(directory)
        self.bob.bound(team.daemon, self.nex)
        self.conversation = self.asks("hello")["conversation"]
        self.bob.post_of("nex: hello")

    def asks(self, text: str, **facts: Any) -> Envelope:
        """Let Bob write; return what it became, as the boss sees it."""
        self.bob.comes_in(f"u{len(self.bob.digested())}-{text[:10]}", text=text, **facts)
        query = (
            "SELECT id FROM envelopes WHERE text = ? AND sender = ? AND forwards IS NULL ORDER BY id LIMIT 1"
        )
        found: list[str] = []

        def look() -> bool:
            with self.daemon.database() as database:
                found[:] = [row["id"] for row in database.execute(query, (text, self.bob.address))]
            return bool(found)

        wait_until(look)
        return self.ada.get(found[0])

    def hand(self, to: Party, by: Party | None = None, **params: Any) -> Any:
        event = {"event": "stream.handoff", "to": to.address, "conversation": self.conversation}
        return (by or self.ada).call("control.send", **event, **params)

    def said(self) -> list[tuple[str, str]]:
        """Return what was said in the conversation, without what hiboss itself noted there."""
        with self.daemon.database() as database:
            rows = database.execute(
                """
                SELECT sender, text FROM messages WHERE conversation = ? AND type <> 'event'
                  AND sender <> 'agent:system' ORDER BY seq
                """,
                (self.conversation,),
            ).fetchall()
        return [(row["sender"], row["text"]) for row in rows]


@pytest.fixture
def talk(team: Team, chief: Boss, tmp_path: Path) -> Iterator[Talk]:
    yield Talk(team, chief, tmp_path)
    wait_until_idle(team.daemon)


def of(who: Party, text: str) -> Envelope:
    """Return the one envelope with this text in somebody's box."""
    [found] = [one for one in who.list(page_size=100) if one["text"] == text]
    return found


def told(who: Party) -> list[str]:
    """Return what hiboss wrote to somebody, oldest first."""
    found = who.list(page_size=100, oldest_first=True)
    return [one["text"] for one in found if one["from"] == "agent:system" and one["type"] != "event"]


def test_ann_has_the_chat_answers_in_it_and_gives_it_back(talk: Talk, ann: Party) -> None:
    assert talk.hand(ann, reason="it is about money")["outcome"] == "applied"
    wait_until_idle(talk.daemon)
    turns = len(talk.nex.turns())
    asked = talk.asks("how much?")
    assert (asked["to"], asked["routed_from"]) == ("user:ann", talk.nex.address)
    ann.send(text="ten", reply_to=of(ann, "how much?")["id"])
    assert talk.bob.post_of("ten")
    ann.send(talk.bob.address, text="or twenty")
    assert talk.bob.post_of("or twenty")
    assert talk.said()[-3:] == [
        (talk.bob.address, "how much?"),
        ("user:ann", "ten"),
        ("user:ann", "or twenty"),
    ]
    assert of(talk.nex, "ten")["context"] and of(talk.nex, "how much?")["status"] == "done"
    assert len(talk.nex.turns()) == turns
    assert talk.hand(talk.nex, reason="settled")["outcome"] == "applied"
    talk.asks("thanks")
    assert talk.bob.post_of("nex: thanks")
    last = talk.nex.turns()[-1]
    assert "meanwhile: 3\n" in last and "> or twenty" in last and "from: user:ann\n" in last
    assert 'is with you again; user:ann had it. Reason: "settled"' in last
    assert ann.refusal("envelope.send", to=[talk.bob.address], text="hi") == "not_bound"


def test_ann_is_told_what_was_said_and_gets_the_summary_of_the_agent(talk: Talk, ann: Party) -> None:
    talk.hand(ann, reason="it is about money")
    wait_until_idle(talk.daemon)
    [first] = [text for text in told(ann) if f"{talk.conversation} " in text]
    assert 'Reason: "it is about money"' in first
    assert f'{talk.bob.address}: "hello"' in first and f'{talk.nex.address}: "nex: hello"' in first
    [summary] = [one for one in ann.list(page_size=100) if one["from"] == talk.nex.address]
    assert summary["text"].startswith("nex: This conversation") and summary["auto"]
    assert not any("This conversation" in text for text in talk.bob.texts())


def test_ann_sees_what_she_got_in_the_chat_and_nothing_older(talk: Talk, ann: Party) -> None:
    talk.hand(ann)
    talk.asks("only for ann")
    ann.send(talk.bob.address, text="I see")
    page = ann.call("conversation.messages", **{"with": talk.bob.address})
    assert page["conversation"] == talk.conversation and texts(page["envelopes"]) == ["only for ann", "I see"]
    first = talk.ada.call("conversation.messages", **{"with": talk.bob.address, "address": talk.nex.name})
    assert "nex: hello" in texts(first["envelopes"])
    wait_until_idle(talk.daemon)
    talk.hand(talk.nex)
    assert ann.call("conversation.messages", **{"with": talk.bob.address})["conversation"] is None


def test_an_agent_without_an_account_answers_in_the_chat_of_another_one(
    talk: Talk, team: Team, tmp_path: Path
) -> None:
    max_ = team.hire(ECHO.format("max").replace("conversation c", "onversation"))
    talk.hand(max_)
    wait_until_idle(talk.daemon)
    talk.asks("who are you?")
    assert talk.bob.post_of("max: who are you?")
    assert f"routed-from: {talk.nex.address}" in max_.turns()[-1]
    assert "The last messages there" in max_.turns()[-1]
    talk.asks("answering max", reply_to=talk.bob.post_of("max: who are you?"))
    assert talk.bob.post_of("max: answering max")
    assert talk.said()[-2:] == [(talk.bob.address, "answering max"), (max_.address, "max: answering max")]


def test_an_agent_hands_its_chat_over_in_its_run_and_writes_the_summary(
    team: Team, chief: Boss, ann: Party, tmp_path: Path
) -> None:
    talk = Talk(team, chief, tmp_path)
    talk.nex.program.write(
        f"""
note(call("control.send", event="stream.handoff", conversation="{talk.conversation}", to="user:ann",
          reason="Bob wants to pay"))
print("Ann will write to you.")
""",
        talk.daemon.home.socket,
    )
    chief.call("agent.permission.set", name=talk.nex.name, level="privileged")
    talk.asks("I want to pay")
    assert talk.bob.post_of("Ann will write to you.")
    [done] = talk.nex.program.notes()
    assert done["outcome"] == "applied" and "its answer still goes out" in done["why"]
    [first] = [text for text in told(ann) if f"{talk.conversation} " in text]
    assert first.endswith(f"The summary of {talk.nex.address}:\n> Bob wants to pay")
    assert of(ann, "Ann will write to you.")["context"]
    assert talk.asks("here is money")["to"] == "user:ann"


def test_the_boss_answers_on_his_phone_what_was_handed_to_him(
    talk: Talk, team: Team, chief: Boss, tmp_path: Path
) -> None:
    phone = Phone(tmp_path / "his").bound(talk.daemon, team.hire('print("NO_REPLY")')).reached()
    try:
        assert talk.hand(chief)["outcome"] == "applied"
        talk.asks("for the boss himself")
        phone.comes_in("his-answer", text="here I am", reply_to=phone.post_of("for the boss himself"))
        assert talk.bob.post_of("here I am") and talk.said()[-1] == ("user:boss", "here I am")
        assert of(talk.nex, "here I am")["context"]
        talk.hand(talk.nex)
        talk.asks("and now?")
        assert talk.bob.post_of("nex: and now?")
    finally:
        chief.call("boss.set", reach="")


def test_the_command_line_hands_over_and_answers(talk: Talk, ann: Party) -> None:
    shell = Shell(talk.daemon.home.path)
    handing = ("control", "handoff", "--conversation", talk.conversation, "--to", "user:ann")
    done, again = shell(*handing), shell(*handing)
    assert (done.rc, done.values("outcome")) == (0, ["applied"])
    assert (again.rc, again.values("outcome")) == (1, ["refused"])
    talk.asks("by the shell")
    number = of(ann, "by the shell")["id"]
    assert shell("reply", number, "from ann's shell", env={"HIBOSS_TOKEN": ann.token}).rc == 0
    assert talk.bob.post_of("from ann's shell")


def test_a_handoff_waits_for_its_account_and_ends_when_the_person_is_deleted(
    team: Team, chief: Boss, tmp_path: Path
) -> None:
    talk = Talk(team, chief, tmp_path)
    eve = person(chief.daemon, "eve")
    talk.hand(eve)
    wait_until_idle(talk.daemon)
    asked = talk.asks("before the account goes")
    talk.bob.unbind()
    assert eve.refusal("envelope.send", text="too late", reply_to=asked["message"]) == "not_bound"
    talk.bob.bind(talk.nex)
    talk.bob.wait_for_state("running")
    eve.send(text="bound again", reply_to=asked["message"])
    assert talk.bob.post_of("bound again")
    chief.call("user.delete", name="eve")
    talk.asks("who is there?")
    assert talk.bob.post_of("nex: who is there?")
    assert any("user:eve is deleted" in text and talk.conversation in text for text in chief.told())


def test_a_handoff_needs_the_right_and_a_conversation_that_one_sees(talk: Talk, ann: Party) -> None:
    handing = {"event": "stream.handoff", "to": "user:ann", "conversation": talk.conversation}
    assert ann.refusal("control.send", **handing) == "not_found"
    assert talk.nex.refusal("control.send", **handing) == "forbidden"
    talk.hand(ann)
    assert ann.refusal("control.send", **{**handing, "to": "user:boss"}) == "forbidden"  # she only sees it
    routed = {"event": "stream.route", "to": talk.nex.address, "conversation": talk.conversation}
    assert ann.refusal("control.send", **routed) == "forbidden"


def test_who_got_a_conversation_gives_it_back_with_the_command_that_was_told(talk: Talk, ann: Party) -> None:
    talk.hand(ann)
    [first] = [text for text in told(ann) if f"{talk.conversation} " in text]
    [line] = [one for one in first.splitlines() if one.startswith("To give it back: hiboss ")]
    shell = Shell(talk.daemon.home.path)
    done = shell(*line.removeprefix("To give it back: hiboss ").split(), env={"HIBOSS_TOKEN": ann.token})
    assert (done.rc, done.values("outcome")) == (0, ["applied"])
    assert talk.asks("who has it?")["to"] == talk.nex.address
    again = {"event": "stream.handoff", "to": talk.nex.address, "conversation": talk.conversation}
    assert ann.refusal("control.send", **again) == "not_found"


def test_the_other_side_reads_neither_the_reason_nor_the_request_for_a_summary(
    talk: Talk, team: Team, chief: Boss, ann: Party
) -> None:
    nex, max_ = team.hire(ECHO.format("nex")), agent(talk.daemon)
    number = ann.send(nex, text="hello nex")["conversation"]
    wait_until_idle(talk.daemon)
    event = {"event": "stream.handoff", "conversation": number, "to": max_.address}
    assert chief.call("control.send", **event, reason="ann is rude", meta={"summary": "rude"})["why"] is None
    wait_until_idle(talk.daemon)

    def seen(who: Party, **other: str) -> Any:
        return (
            who.call("conversation.messages", **other, page_size=100)["envelopes"],
            who.call("conversation.news", **other)["envelopes"],
            who.call("control.list", conversation=number)["controls"],
        )

    page, news, listed = seen(ann, **{"with": nex.address})
    for found in (page, news):
        [record] = [one for one in found if one["type"] == "event"]
        assert record["text"] == f"handoff {number} to {max_.address}: applied"
        assert record["metadata"]["control"]["reason"] is None
        assert all(one["from"] != "agent:system" for one in found)
    assert "rude" not in str((page, news, listed)) and [one["outcome"] for one in listed] == ["applied"]
    for who, other in ((chief, {"with": nex.address, "address": "user:ann"}), (nex, {"with": "user:ann"})):
        page, news, listed = seen(who, **other)
        for found in (page, news):
            assert any(
                one["text"].endswith('Reason: "ann is rude"') for one in found if one["type"] == "event"
            )
            assert any(one["from"] == "agent:system" for one in found)
        assert listed[0]["reason"] == "ann is rude"
    assert max_.call("control.list", conversation=number)["controls"][0]["reason"] == "ann is rude"


# --- in groups ---------------------------------------------------------------------


GROUP = "group:club"
# It repeats the last thing that was said to it; not a notice about a handoff.
REPEATS = 'print("max: " + [one for one in TEXTS if "conversation c" not in one][-1])'


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
    await daemon.ask("envelope.send", reply_to=(await newest(daemon, "boss", "ready"))["id"], text="go on")
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
def test_the_answer_of_a_run_in_the_place_of_an_agent_goes_to_the_group(team: Team, chief: Boss) -> None:
    nex, max_ = team.hire('wait_for("never")'), team.hire(REPEATS)
    chief.call("agent.pause", name=nex.name)
    made = chief.call("conversation.create", type="group", name="crew", participants=[nex.address])
    conversation = made["conversation"]["id"]
    chief.send("group:crew", text=f"@{nex.name} one")
    [number] = [one["id"] for one in nex.list() if one["text"].endswith("one")]
    chief.call("control.send", event="stream.route", envelope=number, to=max_.address)
    wait_until(lambda: _answers(chief, conversation, max_) == [f"max: @{nex.name} one"])
    chief.call("control.send", event="stream.handoff", conversation=conversation, to=max_.address)
    chief.send("group:crew", text=f"@{nex.name} two")
    wait_until(lambda: f"max: @{nex.name} two" in _answers(chief, conversation, max_))


def _answers(ada: Boss, conversation: str, who: Party) -> list[str]:
    page = ada.call("conversation.messages", conversation=conversation, page_size=100)
    return [one["text"] for one in page["envelopes"] if one["from"] == who.address]


def test_a_handoff_to_somebody_who_was_in_the_group_before_ends_and_it_can_join_again(
    daemon: RunningDaemon, chief: Boss, nex: Party, ann: Party
) -> None:
    parties = [nex.address, ann.address]
    made = chief.call("conversation.create", type="group", name="past", participants=parties)
    conversation = made["conversation"]["id"]
    chief.send("group:past", text="hello")
    ann.call("participant.leave", conversation="past")
    for to in (ann, nex, ann):
        chief.call("control.send", event="stream.handoff", conversation=conversation, to=to.address)
        daemon.check()
    chief.send("group:past", text=f"@{nex.name} again")
    assert f"@{nex.name} again" in [one["text"] for one in ann.list()]
    assert chief.refusal("participant.add", conversation="past", address=ann.address) == "cannot_be_member"
    chief.call("control.send", event="stream.handoff", conversation=conversation, to=nex.address)
    chief.call("participant.add", conversation="past", address=ann.address)
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
