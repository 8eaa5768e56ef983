"""`thread.list`, `thread.get` and `thread.chain`: which threads somebody is shown, and what of them."""

from __future__ import annotations

from typing import Any

import pytest

from hiboss.testing.running_daemon import Answered, RunningDaemon
from tests.support.in_process_daemon import InProcessDaemon, frozen
from tests.support.parties import Party, agent, boss

Thread = dict[str, Any]


def threads(party: Party, **params: Any) -> list[Thread]:
    return list(party.call("thread.list", **{"page_size": 100, **params})["threads"])


def ids(party: Party, **params: Any) -> list[str]:
    return [one["thread_id"] for one in threads(party, **params)]


def talk(ada: Party, bob: Party, text: str = "question", **params: Any) -> Any:
    """A thread with one answer; return what was sent first."""
    first = ada.send(bob, text=text, **params)
    bob.send(ada, reply_to=first["message"], text="answer")
    return first


# --- lists ---------------------------------------------------------------------------


def test_a_thread_is_listed_when_it_has_a_reply(ada: Party, bob: Party) -> None:
    first = ada.send(bob, text="Auth module\nand more")
    assert ids(ada) == ids(bob) == []
    bob.send(reply_to=first["message"], text="all tests pass")
    (one,) = threads(ada)
    assert one == {
        "thread_id": first["thread"],
        "title": "Auth module",
        "created_by": ada.name,
        "created_at": one["created_at"],
        "message_count": 2,
        "unread_count": 1,
        "last_activity": one["last_activity"],
        "last_sender": bob.name,
        "preview": "all tests pass",
    }
    assert one["created_at"] <= one["last_activity"]


def test_the_title_is_the_subject_or_the_first_line(ada: Party, bob: Party) -> None:
    named = talk(ada, bob, "text", subject="the subject")
    plain = talk(ada, bob, "\n  \n  the first line \nthe second")
    empty = talk(ada, bob, "x" * 500)
    titles = {one["thread_id"]: one["title"] for one in threads(ada)}
    assert titles[named["thread"]] == "the subject" and titles[plain["thread"]] == "the first line"
    assert len(titles[empty["thread"]]) == 80


@pytest.mark.parametrize("letter", ["👨\u200d👩\u200d👧\u200d👦", "🇩🇪", "e\u0301", "👍🏽", "각"])
def test_previews_and_titles_are_cut_at_whole_characters(ada: Party, bob: Party, letter: str) -> None:
    for shift in range(8):
        first = ada.send(bob, text="x" * shift + letter * 60)
        bob.send(reply_to=first["message"], text="x" * shift + letter * 60)
        one = threads(ada)[0]
        for shown in (one["title"], one["preview"]):
            kept = shown.removesuffix("…").removeprefix("x" * shift)
            assert kept == letter * (len(kept) // len(letter))


def test_the_last_active_thread_is_first(ada: Party, bob: Party) -> None:
    first, second = talk(ada, bob), talk(ada, bob)
    assert ids(ada) == ids(bob) == [second["thread"], first["thread"]]
    bob.send(reply_to=first["message"])
    assert ids(ada) == [first["thread"], second["thread"]]
    assert [one["message_count"] for one in threads(ada)] == [3, 2]


def test_pages_of_threads_follow_each_other(ada: Party, bob: Party) -> None:
    made = [talk(ada, bob)["thread"] for _ in range(7)][::-1]
    pages = [ada.call("thread.list", page=n, page_size=3) for n in (1, 2, 3)]
    assert [one["thread_id"] for page in pages for one in page["threads"]] == made
    assert [(page["total"], page["total_pages"], page["total_capped"]) for page in pages] == [
        (7, 3, False)
    ] * 3
    cursor, walked = None, []
    while True:
        page = ada.call("thread.list", page_size=2, **({"cursor": cursor} if cursor else {}))
        walked += [one["thread_id"] for one in page["threads"]]
        if (cursor := page["next"]) is None:
            break
    assert walked == made


def test_only_threads_of_ones_own_conversations_are_listed(
    daemon: RunningDaemon, ada: Party, bob: Party, eve: Party
) -> None:
    first = talk(ada, bob)
    assert ids(eve) == [] and eve.refusal("thread.list", address=ada.address) == "boss_only"
    assert first["thread"] in ids(boss(daemon), address=ada.address)
    assert first["thread"] not in ids(boss(daemon))


def test_a_thread_in_two_conversations_is_listed_once_with_all_its_messages(
    ada: Party, bob: Party, eve: Party
) -> None:
    first = talk(ada, bob, "hello")
    bob.send(ada, eve, reply_to=first["message"], text="for both")
    for size in (1, 100):
        found, cursor = [], None
        while True:
            page = ada.call("thread.list", page_size=size, **({"cursor": cursor} if cursor else {}))
            found += page["threads"]
            if (cursor := page["next"]) is None:
                break
        assert [one["thread_id"] for one in found] == [first["thread"]]
    assert (found[0]["message_count"], found[0]["preview"]) == (3, "for both")
    (seen,) = threads(eve)
    assert (seen["thread_id"], seen["message_count"]) == (first["thread"], 1)
    assert (seen["title"], seen["created_by"]) == ("for both", bob.name)  # she does not see the first message


def test_unread_messages_are_counted_for_each_thread(ada: Party, bob: Party) -> None:
    first, second = ada.send(bob), ada.send(bob)
    for _ in range(3):
        ada.send(bob, reply_to=first["message"])
    ada.send(bob, reply_to=second["message"])

    def unread() -> dict[str, int]:
        return {one["thread_id"]: one["unread_count"] for one in threads(bob)}

    assert unread() == {first["thread"]: 4, second["thread"]: 2}
    bob.call("message.markRead", message_ids=[first["message"]])
    assert unread() == {first["thread"]: 3, second["thread"]: 2}
    assert {one["unread_count"] for one in threads(ada)} == {0}


def test_threads_are_found_by_the_scope_of_any_message_in_them(ada: Party, bob: Party, eve: Party) -> None:
    scope = {"type": "module", "value": "auth"}
    first, _, third = talk(ada, bob, scopes=[scope]), talk(ada, bob), talk(ada, bob)
    bob.send(reply_to=third["message"], scopes=[scope])
    ada.send(bob, scopes=[scope])  # which nobody has answered
    talk(ada, eve, scopes=[scope])
    assert ids(bob, scope=scope) == [third["thread"], first["thread"]]
    page = bob.call("thread.list", scope=scope, page_size=1)
    assert (page["total"], page["total_pages"]) == (2, 2)
    rest = bob.call("thread.list", scope=scope, page_size=1, cursor=page["next"])
    assert [one["thread_id"] for one in rest["threads"]] == [first["thread"]] and rest["next"] is None
    assert ids(bob, scope={"type": "module", "value": "Auth"}) == []


def test_a_deleted_message_is_neither_title_nor_preview(ada: Party, bob: Party) -> None:
    first = talk(ada, bob, "secret", subject="secret too")
    answer = bob.send(reply_to=first["message"], text="secret as well")
    ada.call("message.delete", id=first["message"])
    bob.call("message.delete", id=answer["message"])
    (one,) = threads(bob)
    assert (one["title"], one["preview"], one["message_count"]) == ("", "", 3)
    assert "secret" not in str(bob.call("thread.get", thread_id=first["thread"]))


# --- one thread ----------------------------------------------------------------------


def test_a_thread_shows_its_messages_oldest_first(ada: Party, bob: Party) -> None:
    first = ada.send(bob, text="0")
    sent = [first["message"]]
    sent += [(ada if n % 2 else bob).send(reply_to=sent[-1], text=f"{n}")["message"] for n in range(1, 5)]
    answer = bob.call("thread.get", thread_id=first["thread"])
    assert [one["message_id"] for one in answer["messages"]] == sent
    assert (answer["total"], answer["total_pages"], answer["page"]) == (5, 1, 1)
    assert answer["thread"]["thread_id"] == first["thread"] and answer["thread"]["message_count"] == 5
    newest = bob.call("thread.get", thread_id=first["thread"], sort_order="desc", page_size=2)
    assert [one["message_id"] for one in newest["messages"]] == [sent[4], sent[3]]
    second = bob.call("thread.get", thread_id=first["thread"], page_size=2, page=2)
    assert [one["message_id"] for one in second["messages"]] == sent[2:4]
    third = bob.call("thread.get", thread_id=first["thread"], page_size=2, cursor=second["next"])
    assert [one["message_id"] for one in third["messages"]] == sent[4:] and third["next"] is None


def test_a_thread_is_found_by_any_id_in_it_also_without_a_reply(ada: Party, bob: Party) -> None:
    first = ada.send(bob)
    alone = bob.call("thread.get", thread_id=first["thread"])
    assert (alone["total"], alone["thread"]["message_count"], alone["thread"]["unread_count"]) == (1, 1, 1)
    second = bob.send(reply_to=first["message"])
    assert {
        bob.call("thread.get", thread_id=given)["thread"]["thread_id"]
        for given in (first["thread"], first["message"], first["ids"][0], second["message"], second["ids"][0])
    } == {first["thread"]}


def test_a_thread_that_one_may_not_see_is_not_told_from_one_that_never_was(
    ada: Party, bob: Party, eve: Party
) -> None:
    first = talk(ada, bob)
    for operation, name in (("thread.get", "thread_id"), ("thread.chain", "id")):
        given = first["thread"] if name == "thread_id" else first["message"]
        with pytest.raises(Answered) as caught:
            eve.call(operation, **{name: given})
        with pytest.raises(Answered) as unknown:
            eve.call(operation, **{name: f"{given[0]}999999"})
        assert caught.value.stable_code == unknown.value.stable_code == "not_found"
        assert str(caught.value).replace(given, "") == str(unknown.value).replace(f"{given[0]}999999", "")


def test_a_message_within_a_thread_is_no_thread_of_its_own(ada: Party, bob: Party) -> None:
    second = bob.send(reply_to=ada.send(bob)["message"])
    assert ada.refusal("thread.get", thread_id=f"t{second['message'][1:]}") == "not_found"


@frozen()
async def test_a_deferred_reply_makes_a_thread_when_it_arrives(daemon: InProcessDaemon) -> None:
    await daemon.register("ada", "bob")
    first = await daemon.ask("envelope.send", "ada", to="bob", text="one")
    late = {"reply_to": first["message"], "text": "late", "deliver_at": "+2h"}
    await daemon.ask("envelope.send", "bob", to="ada", **late)
    assert (await daemon.ask("thread.list", "ada"))["threads"] == []
    await daemon.move(hours=2)
    (one,) = (await daemon.ask("thread.list", "ada"))["threads"]
    assert (one["message_count"], one["preview"], one["unread_count"]) == (2, "late", 1)


def test_a_page_of_a_thread_that_is_too_large_is_cut_and_by_number_refused(ada: Party, bob: Party) -> None:
    first = ada.send(bob, text="\x01" * 300_000)
    for _ in range(4):
        ada.send(bob, reply_to=first["message"], text="\x01" * 300_000)
    page = bob.call("thread.get", thread_id=first["thread"])
    rest = bob.call("thread.get", thread_id=first["thread"], cursor=page["next"])
    assert 0 < len(page["messages"]) < 5 and rest["messages"]
    assert bob.refusal("thread.get", thread_id=first["thread"], page=1) == "too_large"


# --- the chain to the root -----------------------------------------------------------


def test_the_chain_goes_from_the_first_message_to_the_one_asked_for(ada: Party, bob: Party) -> None:
    first = ada.send(bob, text="root")
    second = bob.send(reply_to=first["message"], text="second")
    bob.send(reply_to=first["message"], text="beside it")
    third = ada.send(reply_to=second["message"], text="third")
    for given in (third["ids"][0], third["message"]):
        found = bob.call("thread.chain", id=given)
        assert [one["message"]["body"]["content"] for one in found["chain"]] == ["root", "second", "third"]
        assert (found["thread_id"], found["left_out"]) == (first["thread"], 0)


def test_the_chain_has_one_gap_where_messages_are_not_for_the_caller(
    daemon: RunningDaemon, ada: Party, bob: Party, eve: Party
) -> None:
    aside = ada.send(bob, reply_to=ada.send(bob, eve, text="root")["message"], text="aside")
    more = bob.send(ada, reply_to=aside["message"], text="more")
    back = ada.send(eve, reply_to=more["message"], text="back")

    def texts(party: Party) -> list[str | None]:
        found = party.call("thread.chain", id=back["message"])["chain"]
        return [one["message"] and one["message"]["body"]["content"] for one in found]

    assert texts(ada) == texts(boss(daemon)) == ["root", "aside", "more", "back"]
    assert texts(eve) == ["root", None, "back"]


def test_a_long_chain_leaves_out_its_beginning(ada: Party, bob: Party) -> None:
    last = ada.send(bob, text="0")["message"]
    for n in range(1, 105):
        last = ada.send(bob, reply_to=last, text=f"{n}")["message"]
    found = ada.call("thread.chain", id=last)
    assert found["left_out"] == 5 and len(found["chain"]) == 100
    assert found["chain"][-1]["message"]["body"]["content"] == "104"


def test_the_boss_reads_a_thread_as_an_agent_does_and_nobody_else_as_another(daemon: RunningDaemon) -> None:
    ada, bob, chief = agent(daemon), agent(daemon), boss(daemon)
    sent = ada.send(bob, text="first")
    ada.send(bob, text="second", reply_to=sent["message"])
    number = f"t{sent['message'][1:]}"
    assert chief.call("thread.get", thread_id=number)["thread"]["unread_count"] == 0
    seen = chief.call("thread.get", thread_id=number, address=bob.address)
    assert seen["thread"] == bob.call("thread.get", thread_id=number)["thread"]
    assert (seen["thread"]["unread_count"], len(seen["messages"])) == (2, 2)
    assert bob.refusal("thread.get", thread_id=number, address=ada.address) == "boss_only"
    assert chief.refusal("thread.get", thread_id=number, address=agent(daemon).address) == "not_found"
