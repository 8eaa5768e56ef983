"""What random stories about mailboxes and groups found (tests/acceptance/test_mailboxes_property.py)."""

from __future__ import annotations

from typing import Any

from tests.support.in_process_daemon import InProcessDaemon, frozen


async def club(daemon: InProcessDaemon, *members: str, **fields: Any) -> str:
    """Create a group of nex; return its address."""
    await daemon.ask("conversation.create", "nex", name="club", participants=list(members), **fields)
    return "group:club"


async def texts(daemon: InProcessDaemon, who: str) -> list[str]:
    """Return what somebody is shown of that group."""
    page = await daemon.ask("conversation.messages", who, conversation="club", page_size=100)
    return [one["text"] for one in page["envelopes"]]


@frozen()
async def test_a_reply_to_my_own_message_to_myself_and_others_goes_only_to_the_others(
    daemon: InProcessDaemon,
) -> None:
    await daemon.register("ada")
    first = await daemon.send("agent:nex", "agent:ada", text="for both")
    sent = await daemon.ask("envelope.send", "nex", reply_to=first[0], text="and this")
    assert await daemon.inbox("ada") == ["for both", "and this"]
    assert await daemon.inbox("nex") == ["for both"] and "elsewhere" not in sent


@frozen()
async def test_a_reply_to_my_post_in_a_group_that_was_deleted_goes_to_the_others_of_the_thread(
    daemon: InProcessDaemon,
) -> None:
    await daemon.register("ada")
    first = await daemon.ask("envelope.send", "nex", to=await club(daemon, "agent:ada"), text="who takes it?")
    await daemon.ask("envelope.send", "ada", reply_to=first["message"], to_sender=True, text="only to you")
    await daemon.ask("conversation.delete", "nex", conversation="club")
    sent = await daemon.ask("envelope.send", "nex", reply_to=first["message"], text="you then")
    assert sent["elsewhere"] and (await daemon.inbox("ada"))[-1] == "you then"


@frozen()
async def test_a_deferred_message_of_the_boss_arrives_in_a_group_that_he_has_left(
    daemon: InProcessDaemon,
) -> None:
    await daemon.register("ada")
    group = await club(daemon, "agent:ada", "user:boss")
    await daemon.send(group, who="boss", text="@ada later", deliver_at="+10m")
    await daemon.ask("participant.leave", conversation="club")
    await daemon.move(minutes=10)
    assert await daemon.inbox("ada") == await daemon.inbox("nex") == ["@ada later"]


@frozen()
async def test_history_shows_the_last_messages_also_to_one_who_was_in_the_group_before(
    daemon: InProcessDaemon,
) -> None:
    await daemon.register("ada", "bob")
    group = await club(daemon, "agent:bob")

    async def stay(history: int, *said: str) -> None:
        add = {"conversation": "club", "address": "agent:ada", "history": history}
        await daemon.ask("participant.add", "nex", **add)
        for text in said:
            await daemon.send(group, text=text)
        await daemon.ask("participant.remove", "nex", conversation="club", address="agent:ada")

    for text in ("one", "two"):
        await daemon.send(group, text=text)
    await stay(0)
    assert await texts(daemon, "ada") == []
    await stay(1)  # nothing was said since then
    assert await texts(daemon, "ada") == ["two"]
    await daemon.send(group, text="three")
    await stay(0, "four")
    assert await texts(daemon, "ada") == ["two", "four"]
    await daemon.send(group, text="five")
    await stay(3, "six")  # with what was said between two stays; each once
    assert await texts(daemon, "ada") == ["two", "three", "four", "five", "six"]
    await stay(9)
    assert await texts(daemon, "ada") == ["one", "two", "three", "four", "five", "six"]


@frozen()
async def test_a_thread_counts_what_i_see_of_it_in_my_conversations_wherever_its_replies_are(
    daemon: InProcessDaemon,
) -> None:
    await daemon.register("ada", "bob")
    group = await club(daemon, "agent:bob")
    first = await daemon.ask("envelope.send", "nex", to=group, text="before ada came")
    await daemon.ask("participant.add", "nex", conversation="club", address="agent:ada")
    await daemon.send("agent:ada", text="besides", reply_to=first["message"])
    [thread] = (await daemon.ask("thread.list", "ada"))["threads"]
    assert (thread["message_count"], thread["title"]) == (1, "besides")


@frozen()
async def test_a_thread_counts_what_i_see_of_a_deferred_message_that_has_replies_before_it_arrives(
    daemon: InProcessDaemon,
) -> None:
    await daemon.register("ada", "bob")
    group = await club(daemon, "agent:bob", open=True)
    first = await daemon.ask("envelope.send", "nex", to=group, text="later", deliver_at="+10m")
    await daemon.ask("envelope.send", "nex", reply_to=first["message"], text="before ada came")
    await daemon.ask("participant.join", "ada", conversation="club")
    await daemon.move(minutes=10)
    [thread] = (await daemon.ask("thread.list", "ada"))["threads"]
    assert (thread["message_count"], thread["title"]) == (1, "later")
