"""Who takes a turn when something is said in a group: by `respond`, by mentions, and of several the first."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.group_talks import (
    ALONG,
    copies,
    group,
    hired,
    say,
    states,
    turns,
)
from tests.support.in_process_daemon import InProcessDaemon, frozen
from tests.support.python_agents import QUIET, hire, idle_after_until, runs_of

# --- respond --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("respond", "wanted"),
    [
        ("mentioned", [False, False, True, True, True, True]),
        ("people", [True, False, True, True, True, True]),
        ("all", [True, True, True, True, True, True]),
        ("never", [False, False, False, False, False, False]),
        ("claim", [True, True, True, True, True, True]),
    ],
)
def test_respond_decides_which_messages_are_for_an_agent_to_answer(
    tmp_path: Path, respond: str, wanted: list[bool]
) -> None:
    @frozen()
    async def story(daemon: InProcessDaemon) -> None:
        await daemon.register("kai", "max")
        await daemon.ask("agent.set", name="kai", role="Reviewer")
        await group(daemon, "kai", "max", respond=respond)
        await daemon.ask("participant.role", conversation="core", address="agent:max", respond="never")
        said = ["of a person", "of an agent", "@kai by name", "@reviewer by role", "@all of you"]
        for text in said:
            await daemon.send("group:core", text=text, who="max" if text == "of an agent" else "boss")
        await daemon.send("group:core", text="said by kai", who="kai")
        (own,) = [
            one
            for one in (await daemon.ask("envelope.list", "max"))["envelopes"]
            if one["text"] == "said by kai"
        ]
        await daemon.ask("envelope.send", "max", text="to kai", reply_to=own["id"])
        got = [(await copies(daemon, text))["agent:kai"] for text in [*said, "to kai"]]
        assert [not one["context"] for one in got] == [one["status"] == "pending" for one in got] == wanted
        listed = (await daemon.ask("envelope.list", "kai", unread=True))["envelopes"]
        assert {one["text"] for one in listed} == {one["text"] for one in got if not one["context"]}

    story(tmp_path)


@frozen()
async def test_what_is_not_to_be_answered_starts_no_turn_and_what_is_does(daemon: InProcessDaemon) -> None:
    programs = await hired(daemon, "kai", "max")
    await group(daemon, "kai", "max")
    await say(daemon, "to nobody")
    assert turns(programs) == [0, 0]
    await say(daemon, "@kai please")
    assert turns(programs) == [1, 0]
    await say(daemon, "@KAI and @Max, both")
    assert turns(programs) == [2, 1]


@frozen()
async def test_one_message_in_a_group_of_fifty_starts_only_the_turns_it_should(
    daemon: InProcessDaemon,
) -> None:
    names = [f"a{number}" for number in range(50)]
    programs = await hired(daemon, *names)
    await group(daemon, *names)
    await say(daemon, "good morning")
    await say(daemon, "@a7 and `@a8` and x@a9.com")
    assert [name for name, one in zip(names, programs, strict=True) if one.turns()] == ["a7"]
    (row,) = daemon.rows("SELECT count(*) FROM run")
    assert row[0] == 1


@frozen()
async def test_what_a_machine_made_starts_a_turn_only_of_those_whom_it_names(daemon: InProcessDaemon) -> None:
    kai = await hire(daemon, "kai", 'print("I ask @max")')
    others = await hired(daemon, "max", "eve")
    await group(daemon, "kai", "max", "eve", respond="all")
    await say(daemon, "@kai go")  # for all of them, as all answer everything
    assert turns([kai]) == [1] and turns(others) == [2, 1]
    assert (await copies(daemon, "I ask @max"))["agent:eve"]["context"]
    assert (await copies(daemon, "I ask @max"))["user:boss"]["auto"]


@frozen()
async def test_two_agents_that_answer_everything_come_to_an_end(daemon: InProcessDaemon) -> None:
    programs = [await hire(daemon, name, f'print("{name} says so")') for name in ("kai", "max")]
    await group(daemon, "kai", "max", respond="all")
    await say(daemon, "discuss")
    assert turns(programs) == [1, 1]
    assert await states(daemon, "kai says so", "max") == [ALONG]


@frozen()
async def test_an_automatic_answer_stays_in_the_group_and_goes_to_all_of_it(daemon: InProcessDaemon) -> None:
    await hire(daemon, "kai", 'print("here you are")')
    await daemon.register("max")
    await group(daemon, "kai", "max")
    await say(daemon, "@kai well?")
    found = await copies(daemon, "here you are")
    assert set(found) == {"group:core", "agent:max", "user:boss"}
    assert {one["group"] for one in found.values()} == {"core"} and found["agent:max"]["context"]


@frozen()
async def test_the_automatic_answer_to_a_broadcast_goes_to_who_sent_it(daemon: InProcessDaemon) -> None:
    programs = [await hire(daemon, name, f'print("{name} is here")') for name in ("kai", "max")]
    await say(daemon, "@kai @max, who is there?", to="group:all")
    assert turns(programs) == [1, 1]
    for name in ("kai", "max"):
        assert set(await copies(daemon, f"{name} is here")) == {"user:boss"}
    assert sorted(await daemon.inbox("boss")) == ["kai is here", "max is here"]


@frozen()
async def test_a_member_that_mentions_itself_starts_no_turn_of_its_own(daemon: InProcessDaemon) -> None:
    kai = await hire(daemon, "kai", QUIET)
    await daemon.register("max")
    await group(daemon, "kai", "max", respond="all")
    await say(daemon, "I, @kai, and @all", who="kai")
    assert turns([kai]) == [0] and set(await copies(daemon, "I, @kai, and @all")) == {
        "group:core",
        "agent:max",
        "user:boss",
    }


# --- what is read along ------------------------------------------------------------------------------


@frozen()
async def test_what_was_said_meanwhile_is_shown_in_the_next_turn_there_once_and_read_by_that_run(
    daemon: InProcessDaemon,
) -> None:
    kai = await hire(daemon, "kai", QUIET)
    await daemon.register("max")
    await group(daemon, "kai", "max")
    await say(daemon, "first remark")
    await say(daemon, "second remark", who="max")
    await say(daemon, "an aside to kai", to="agent:kai")  # another conversation
    await say(daemon, "@kai your turn")
    await say(daemon, "@kai again")
    aside, shown, again = kai.turns()
    assert "remark" not in aside and "remark" not in again
    assert shown.index("first remark") < shown.index("second remark") < shown.index("@kai your turn")
    run = (await runs_of(daemon, "kai"))[1]["id"]
    for text in ("first remark", "second remark"):
        read = (await copies(daemon, text))["agent:kai"]
        assert [(one["address"], one["session"]) for one in read["read_by"]] == [("agent:kai", run)]
        assert read["read_at"] is not None


@frozen(quiet=False)
async def test_a_turn_that_failed_shows_it_again(daemon: InProcessDaemon) -> None:
    kai = await hire(daemon, "kai", "sys.exit(1)")
    await group(daemon, "kai")
    await say(daemon, "a remark")
    await daemon.send("group:core", text="@kai go", who="boss")
    await idle_after_until(daemon, kai.turns)
    kai.write(QUIET)
    await daemon.move(hours=1)
    await idle_after_until(daemon, lambda: len(kai.turns()) == 2)
    assert ["a remark" in one for one in kai.turns()] == [True, True]


@frozen()
async def test_what_was_deleted_meanwhile_is_not_shown(daemon: InProcessDaemon) -> None:
    kai = await hire(daemon, "kai", QUIET)
    await group(daemon, "kai")
    await daemon.ask("message.delete", id=await say(daemon, "a mistake"))
    await say(daemon, "@kai go")
    assert "a mistake" not in kai.turns()[0]
