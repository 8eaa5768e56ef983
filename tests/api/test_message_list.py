"""`message.list`: filters, order, pages and cursors."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from hiboss.store.list_query import FLAT
from hiboss.testing.running_daemon import Answered, RunningDaemon
from tests.support.in_process_daemon import InProcessDaemon, frozen
from tests.support.parties import Party, agents, boss
from tests.support.raising import raised
from tests.support.sweeps import sweep

Message = dict[str, Any]


def listed(party: Party, **params: Any) -> list[Message]:
    return list(party.call("message.list", **{"page_size": 100, **params})["messages"])


def ids(party: Party, **params: Any) -> list[str]:
    return [one["message_id"] for one in listed(party, **params)]


def walked(party: Party, **params: Any) -> list[str]:
    """The ids of all pages, by cursor."""
    found, cursor = [], None
    while True:
        page = party.call("message.list", **params, **({"cursor": cursor} if cursor else {}))
        found += [one["message_id"] for one in page["messages"]]
        if (cursor := page["next"]) is None:
            return found


# --- without a filter ----------------------------------------------------------------


def test_without_a_filter_it_lists_what_is_in_the_inbox_newest_first(ada: Party, bob: Party) -> None:
    sent = [ada.send(bob, text=f"{n}") for n in range(3)]
    bob.send(ada)
    bob.call("envelope.archive", ids=sent[1]["ids"])
    assert ids(bob) == [sent[2]["message"], sent[0]["message"]]
    assert ids(bob, sort_order="asc") == [sent[0]["message"], sent[2]["message"]]
    assert len(ids(ada)) == 1


def test_a_message_to_several_is_listed_once(ada: Party, bob: Party, eve: Party) -> None:
    sent = ada.send(bob, eve)
    assert ids(ada, author_id=ada.name) == ids(bob) == ids(eve) == [sent["message"]]
    assert listed(bob)[0]["to"] == [bob.address, eve.address]


def test_a_message_has_the_fields_of_the_seed(ada: Party, bob: Party) -> None:
    sent = ada.send(bob, text="**done**", type="markdown", scopes=[{"type": "module", "value": "auth"}])
    page = bob.call("message.list")
    (one,) = page["messages"]
    assert one["message_id"] == sent["message"] and one["thread_id"] == sent["thread"]
    assert one["agent_id"] == one["author"]["agent_id"] == ada.name and one["author"]["kind"] == "agent"
    assert one["body"] == {"format": "markdown", "content": "**done**", "structured": ""}
    assert (one["deleted"], one["is_read"], one["updated_at"]) == (False, False, "")
    assert one["scopes"] == [{"type": "module", "value": "auth"}] and one["refs"] == []
    assert one["metadata"] == {"deleted_at": "", "delete_reason": ""}
    numbers = {name: page[name] for name in ("total", "unread", "page", "page_size", "total_pages", "next")}
    assert numbers == {"total": 1, "unread": 1, "page": 1, "page_size": 10, "total_pages": 1, "next": None}


def test_a_json_text_is_also_shown_parsed(ada: Party, bob: Party) -> None:
    ada.send(bob, text='{"a": [1, null]}', type="json")
    ada.send(bob, text="no json", type="json")
    assert [one["body"]["structured"] for one in listed(bob)] == ["", {"a": [1, None]}]


def test_people_are_authors_by_their_address(daemon: RunningDaemon, ada: Party) -> None:
    boss(daemon).send(ada)
    assert listed(ada)[0]["agent_id"] == "user:boss" and listed(ada)[0]["author"]["kind"] == "user"


# --- filters -------------------------------------------------------------------------

Filter = tuple[dict[str, Any], Callable[[Message], bool]]
Office = tuple[Party, Party, Party, list[Message]]


@pytest.fixture(scope="module")
def office(daemon: RunningDaemon) -> Office:
    """bob's conversations with two: threads, tags, own data, formats, mail that was read."""
    chief = boss(daemon)
    ada, eve, bob = agents(daemon, 3)
    chief.call("agent.set", name=bob.name, role="Tester")
    root = ""
    for n in range(24):
        sender = ada if n % 2 else eve
        words: dict[str, Any] = {"metadata": {"n": n, "odd": bool(n % 2), "who": sender.name, "none": None}}
        words["text"] = (f"@{bob.name} {n}", f"{n}", "for @tester", '{"n": 1}')[n % 4]
        words["type"] = "json" if n % 4 == 3 else "text"
        words["scopes"] = [{"type": "module", "value": ("auth", "web")[n % 2]}]
        words["refs"] = [{"type": "issue", "value": f"{n % 3}"}]
        if n % 4 == 3 and root:
            words["reply_to"] = root
        sent = sender.send(bob, **words)
        root = sent["message"] if n % 4 == 1 else root
        if n % 3 == 0:
            bob.call("message.markRead", message_ids=[sent["message"]])
        if n % 5 == 0:
            bob.send(
                reply_to=sent["message"], text=f"answer {n}", scopes=[{"type": "module", "value": "auth"}]
            )
    every = {one["message_id"]: one for one in listed(bob)}
    every |= {one["message_id"]: one for one in listed(bob, author_id=bob.name)}
    return ada, eve, bob, sorted(every.values(), key=lambda one: -int(one["message_id"][1:]))


def has(one: Message, kind: str, value: str) -> bool:
    return {"type": kind, "value": value} in [*one["scopes"], *one["refs"]]


@pytest.mark.slow
def test_each_flat_filter_shows_what_matches_alone_and_with_each_other_filter(office: Office) -> None:
    ada, _, bob, everything = office
    received = [one for one in everything if one["agent_id"] != bob.name]
    middle, thread = received[12], next(one["thread_id"] for one in received if one["reply_to"])
    talk = next(one["conversation_id"] for one in received if one["agent_id"] == ada.name)
    flat: list[Filter] = [
        ({"thread_id": thread}, lambda one: one["thread_id"] == thread),
        ({"conversation_id": talk}, lambda one: one["conversation_id"] == talk),
        ({"scope": {"type": "module", "value": "auth"}}, lambda one: has(one, "module", "auth")),
        ({"ref": {"type": "issue", "value": "1"}}, lambda one: has(one, "issue", "1")),
        ({"ref": {"type": "mention", "value": "TESTER"}}, lambda one: has(one, "mention", "tester")),
        (
            {"mentions": True},
            lambda one: has(one, "mention", "tester") or has(one, "mention", bob.name.lower()),
        ),
        ({"mention_role": "tester"}, lambda one: has(one, "mention", "tester")),
        ({"unread": True}, lambda one: not one["is_read"]),
        ({"unread_for_agent": bob.name}, lambda one: not one["is_read"]),
        ({"author_id": bob.name}, lambda one: one["agent_id"] == bob.name),
        ({"run_id": "r999"}, lambda one: False),
    ]
    beside: list[Filter] = [
        ({"type": "json"}, lambda one: one["body"]["format"] == "json"),
        ({"author_id": ada.address}, lambda one: one["agent_id"] == ada.name),
        ({"created_after": middle["created_at"]}, lambda one: one["created_at"] > middle["created_at"]),
        ({"created_before": middle["created_at"]}, lambda one: one["created_at"] < middle["created_at"]),
        ({"meta": {"odd": True}}, lambda one: one["meta"].get("odd") is True),
        ({"meta": {"n": 3.0}}, lambda one: one["meta"].get("n") == 3),
        ({"meta": {"who": ada.name, "none": None}}, lambda one: one["meta"].get("who") == ada.name),
        ({"trace_id": middle["trace_id"]}, lambda one: one["trace_id"] == middle["trace_id"]),
    ]
    for (first, matches), (second, also) in itertools.product(flat, flat + beside):
        if first.keys() & second.keys() and first is not second:
            continue
        page = bob.call("message.list", **{**first, **second}, page_size=100)
        expected = [one["message_id"] for one in everything if matches(one) and also(one)]
        found = [one["message_id"] for one in page["messages"]]
        assert sorted(found) == sorted(expected), (first, second)
        assert (page["total"], page["total_capped"]) == (len(expected), False)
        assert walked(bob, **{**first, **second}, page_size=3) == found
        assert walked(bob, **{**first, **second}, page_size=3, sort_order="asc") == found[::-1]


def test_own_data_is_compared_by_its_type(office: Office) -> None:
    _, _, bob, everything = office
    thread = everything[-2]["thread_id"]
    for value in ("3", True, None, 3.5, 2**63 - 1, 2**64 - 1, "'; DROP TABLE tag; --", "%"):
        assert ids(bob, thread_id=thread, meta={"n": value}) == []
    for key in ("$.n", '"', "n'", '") OR 1=1 --', "", "*", "$"):
        assert ids(bob, thread_id=thread, meta={key: 1}) == []


def test_times_are_compared_with_and_without_fractions(ada: Party, bob: Party) -> None:
    sent = ada.send(bob)
    at = listed(bob)[0]["created_at"]
    whole = at.partition(".")[0] + "Z"
    talk = {"conversation_id": sent["conversation"]}
    assert ids(bob, **talk, created_after=at) == ids(bob, **talk, created_before=whole) == []
    for before in (whole, whole.replace("Z", ".000Z"), whole.replace("Z", "+00:00")):
        assert ids(bob, **talk, created_before=before) == []
    assert ids(bob, **talk, created_after="2020-01-01T00:00:00Z") == [sent["message"]]
    assert ids(bob, **talk, created_after="2020-01-01T00:00:00.5Z") == [sent["message"]]


def test_a_role_that_nobody_has_is_mentioned_nowhere(ada: Party, bob: Party) -> None:
    ada.send(bob, text="for @nobody-has-this")
    assert ids(bob, mentions=True) == [] and ids(bob, mention_role="nobody-has-this") == []


def test_a_mention_of_oneself_by_oneself_is_listed_too(ada: Party, bob: Party) -> None:
    sent = ada.send(bob, text=f"I, @{ada.name}, wrote this")
    assert ids(ada, mentions=True) == [sent["message"]] and ids(bob, mentions=True) == []


def test_with_a_thread_or_a_tag_also_what_one_sent_is_listed(two: tuple[Party, Party]) -> None:
    ada, bob = two
    first = ada.send(bob, scopes=[{"type": "s", "value": "1"}])
    second = bob.send(reply_to=first["message"], scopes=[{"type": "s", "value": "1"}])
    both = [second["message"], first["message"]]
    for party in two:
        assert ids(party, thread_id=first["thread"]) == both
        assert ids(party, conversation_id=first["conversation"]) == both
        assert ids(party, scope={"type": "s", "value": "1"}) == both


def test_what_is_snoozed_is_listed_alone_and_not_in_the_inbox(ada: Party, bob: Party) -> None:
    later, now = ada.send(bob), ada.send(bob)
    bob.call("envelope.snooze", ids=later["ids"], until="+1h")
    assert ids(bob) == ids(bob, unread=True) == [now["message"]]
    assert ids(bob, snoozed=True) == [later["message"]]
    for words in ({"snoozed": True}, {"box": "snoozed"}):
        assert [one["id"] for one in bob.call("envelope.list", **words)["envelopes"]] == later["ids"]
    assert ids(bob, conversation_id=now["conversation"], snoozed=True) == [later["message"]]


# --- what is too broad ---------------------------------------------------------------


def test_a_filter_that_is_not_flat_needs_a_flat_one_beside_it(ada: Party, bob: Party) -> None:
    with sweep() as row:
        for broad in (
            {"type": "text"},
            {"author_id": "boss"},
            {"meta": {"a": 1}},
            {"trace_id": "m1"},
            {"created_after": "-1h"},
            {"created_before": "+1h"},
            {"type": "text", "created_after": "-1h"},
            {"sort_by": "updated_at"},
            {"sort_by": "updated_at", "unread": True},
        ):
            with row(broad):
                assert ada.refusal("message.list", **broad) == "too_broad"
                ada.call("message.list", **broad, thread_id=bob.send(ada)["thread"])


def test_the_error_names_every_filter_that_would_do(two: tuple[Party, Party]) -> None:
    error = raised(Answered, two[0].call, "message.list", type="text")
    assert all(name in str(error) for names in FLAT.values() for name in names)


def test_the_boss_may_list_what_anybody_wrote(ada: Party, bob: Party) -> None:
    sent = ada.send(bob)
    assert ids(boss(ada.daemon), author_id=ada.name) == [sent["message"]]
    assert bob.refusal("message.list", author_id=ada.name) == "too_broad"


# --- who sees what -------------------------------------------------------------------


def test_foreign_ids_reveal_nothing(ada: Party, bob: Party, eve: Party) -> None:
    sent = ada.send(bob, scopes=[{"type": "own", "value": "x"}], text=f"@{eve.name} is not here")
    for name in ("thread_id", "conversation_id"):
        real = sent["thread"] if name == "thread_id" else sent["conversation"]
        unknown = real[0] + "999999"
        with pytest.raises(Answered) as known:
            eve.call("message.list", **{name: real})
        with pytest.raises(Answered) as other:
            eve.call("message.list", **{name: unknown})
        assert known.value.stable_code == other.value.stable_code == "not_found"
        assert str(known.value).replace(real, "ID") == str(other.value).replace(unknown, "ID")
    assert {
        eve.refusal("message.list", thread_id=thread) for thread in (sent["message"], sent["ids"][0])
    } == {"not_found"}
    assert ids(eve, scope={"type": "own", "value": "x"}) == ids(eve, mentions=True) == []
    assert ids(bob, scope={"type": "own", "value": "x"}) == [sent["message"]]


def test_what_others_have_not_read_is_for_the_boss_only(ada: Party, bob: Party, chief: Party) -> None:
    sent = ada.send(bob)
    assert ada.refusal("message.list", unread_for_agent=bob.name) == "boss_only"
    assert ada.refusal("message.list", unread_for_agent="nobody-here") == "boss_only"
    assert (
        ids(bob, unread_for_agent=bob.address) == ids(chief, unread_for_agent=bob.name) == [sent["message"]]
    )
    assert ids(chief, address=bob.address, unread_for_agent=bob.name) == [sent["message"]]
    assert chief.refusal("message.list", address=ada.address, unread_for_agent=bob.name) == "invalid_params"


def test_the_boss_sees_every_message_of_a_thread_and_as_another_only_what_that_one_sees(
    ada: Party, bob: Party, eve: Party, chief: Party
) -> None:
    first = ada.send(bob)
    aside = bob.send(eve, reply_to=first["message"])
    assert ids(chief, thread_id=first["thread"]) == [aside["message"], first["message"]]
    assert ids(chief, thread_id=first["thread"], address=eve.address) == [aside["message"]]
    assert ids(eve, thread_id=first["thread"]) == [aside["message"]]
    assert ids(chief, address=bob.address) == [first["message"]]


def test_looking_changes_nothing(ada: Party, bob: Party) -> None:
    sent = ada.send(bob)
    for _ in range(2):
        assert listed(bob)[0]["is_read"] is False
        assert bob.call("message.get", message_id=sent["message"])["message"]["is_read"] is False
    assert bob.get(sent["ids"][0])["read_at"] is None


def test_a_deleted_message_stays_in_lists_without_its_text(ada: Party, bob: Party) -> None:
    facts = {"subject": "secret", "metadata": {"secret": 1}, "scopes": [{"type": "s", "value": "secret"}]}
    sent = ada.send(bob, text=f"secret @{bob.name}", **facts)
    ada.call("message.delete", id=sent["message"], reason="a mistake")
    (one,) = listed(bob, conversation_id=sent["conversation"])
    assert one["deleted"] and one["metadata"]["delete_reason"] == "a mistake"
    assert one["metadata"]["deleted_at"] == one["updated_at"] != ""
    assert "secret" not in str(one) and one["body"]["content"] == "" and one["refs"] == []
    assert ids(bob, conversation_id=sent["conversation"], meta={"secret": 1}) == []


# --- pages -------------------------------------------------------------------------


# --- pages and totals ----------------------------------------------------------------


def test_the_refusal_of_a_deep_page_tells_to_use_a_cursor(two: tuple[Party, Party]) -> None:
    with pytest.raises(Answered, match="cursor"):
        two[0].call("message.list", page=11, page_size=100)
    assert two[0].call("message.list", page=10, page_size=100)["messages"] == []
    assert two[0].refusal("message.list", page=1, cursor="x") == "invalid_params"


def test_pages_by_number_and_by_cursor_show_the_same(ada: Party, bob: Party) -> None:
    for n in range(7):
        ada.send(bob, text=f"{n}")
    everything = ids(bob)
    pages = [bob.call("message.list", page=n, page_size=3) for n in (1, 2, 3, 4)]
    assert [one["message_id"] for page in pages for one in page["messages"]] == everything
    assert [(page["page"], page["total"], page["total_pages"]) for page in pages] == [
        (n, 7, 3) for n in (1, 2, 3, 4)
    ]
    assert walked(bob, page_size=3) == everything
    second = bob.call("message.list", page_size=3, cursor=pages[0]["next"])
    assert second["messages"] == pages[1]["messages"] and second["page"] is None and second["total"] == 7
    assert pages[2]["next"] is None


def test_mail_that_arrives_between_two_pages_is_neither_skipped_nor_shown_twice(
    ada: Party, bob: Party
) -> None:
    before = [ada.send(bob)["message"] for _ in range(4)]
    page = bob.call("message.list", page_size=2)
    between = ada.send(bob)["message"]
    rest = bob.call("message.list", page_size=10, cursor=page["next"])
    assert [one["message_id"] for one in page["messages"] + rest["messages"]] == before[::-1]
    assert ids(bob)[0] == between


def test_totals_are_numbers_also_when_they_are_capped(ada: Party, bob: Party) -> None:
    ada.flood(bob, 1000)
    page = bob.call("message.list", page_size=7)
    assert (page["total"], page["total_capped"], page["total_pages"]) == (1000, False, 143)
    assert (page["unread"], page["unread_capped"]) == (1000, False)
    ada.tell(bob)
    page = bob.call("message.list", page_size=7)
    assert (page["total"], page["total_capped"], page["total_pages"]) == (1000, True, None)
    assert (page["unread"], page["unread_capped"]) == (1000, True)
    last = bob.call("message.list", page=10, page_size=100)
    beyond = bob.call("message.list", page_size=100, cursor=last["next"])
    assert len(beyond["messages"]) == 1 and beyond["next"] is None


def test_unread_is_of_the_thread_or_the_conversation_that_is_asked_for(
    ada: Party, bob: Party, eve: Party
) -> None:
    first = ada.send(bob)
    ada.send(bob, reply_to=first["message"])
    other = ada.send(bob)
    eve.send(bob)

    def unread(**params: Any) -> int:
        return int(bob.call("message.list", **params)["unread"])

    assert unread() == 4 and unread(conversation_id=first["conversation"]) == 3
    assert unread(thread_id=first["thread"]) == 2 and unread(thread_id=other["thread"]) == 1
    bob.call("message.markRead", message_ids=[first["message"]])
    assert unread() == 3 and unread(thread_id=first["thread"]) == 1


def test_what_is_no_cursor_is_refused(ada: Party, bob: Party) -> None:
    with sweep() as row:
        for wrong in (
            "",
            "5",
            "-",
            "{epoch}-",
            "{epoch}-s",
            "{epoch}-m5",
            "{epoch}-a5.5",
            "{epoch}-u5",
            "{epoch}-q5",
        ):
            with row(wrong):
                for _ in range(2):
                    ada.send(bob)
                epoch = bob.call("message.list", page_size=1)["next"].partition("-")[0]
                assert bob.refusal("message.list", cursor=wrong.format(epoch=epoch)) == "bad_cursor"


def test_a_cursor_of_another_list_or_store_is_refused(ada: Party, bob: Party) -> None:
    first = ada.send(bob)
    ada.send(bob, reply_to=first["message"])
    inbox = bob.call("message.list", page_size=1)["next"]
    thread = bob.call("message.list", page_size=1, thread_id=first["thread"])["next"]
    assert bob.refusal("message.list", cursor=thread) == "bad_cursor"
    assert bob.refusal("message.list", cursor=inbox, thread_id=first["thread"]) == "bad_cursor"
    changed = {"thread_id": first["thread"], "sort_by": "updated_at"}
    assert bob.refusal("message.list", cursor=thread, **changed) == "bad_cursor"
    assert bob.refusal("message.list", cursor="00000000-" + inbox.partition("-")[2]) == "gap"


def test_a_page_is_bounded_in_bytes_and_goes_on_by_cursor(ada: Party, bob: Party) -> None:
    sent = [ada.send(bob, text="\x01" * 300_000)["message"] for _ in range(6)]
    page = bob.call("message.list", page_size=6)
    assert 0 < len(page["messages"]) < 6 and page["next"]
    assert walked(bob, page_size=6) == sent[::-1]
    assert bob.refusal("message.list", page_size=6, page=1) == "too_large"


# --- order ---------------------------------------------------------------------------


def test_by_the_last_change_an_edited_or_deleted_message_comes_first(ada: Party, bob: Party) -> None:
    sent = [ada.send(bob, text=f"{n}") for n in range(4)]
    names = [one["message"] for one in sent]
    talk = {"conversation_id": sent[0]["conversation"], "sort_by": "updated_at"}
    assert ids(bob, **talk) == names[::-1]
    ada.call("message.edit", id=names[1], text="new")
    ada.call("message.delete", id=names[0])
    expected = [names[0], names[1], names[3], names[2]]
    assert ids(bob, **talk) == walked(bob, **talk, page_size=1) == expected
    assert ids(bob, **talk, sort_order="asc") == walked(bob, **talk, page_size=3, sort_order="asc")
    assert ids(bob, **talk, sort_order="asc") == expected[::-1]


@frozen()
async def test_deferred_mail_is_shown_to_its_sender_and_the_boss_only_until_it_arrives(
    daemon: InProcessDaemon,
) -> None:
    await daemon.register("ada", "bob")
    first = await daemon.ask("envelope.send", "ada", to="bob", text="one")
    late = await daemon.ask(
        "envelope.send", "ada", to="bob", text="late", reply_to=first["message"], deliver_at="+2h"
    )

    async def seen(who: str) -> list[str]:
        page = await daemon.ask("message.list", who, thread_id=first["thread"])
        return [one["body"]["content"] for one in page["messages"]]

    assert await seen("ada") == await seen("boss") == ["late", "one"] and await seen("bob") == ["one"]
    await daemon.move(hours=2)
    assert await seen("bob") == ["late", "one"]
    assert (await daemon.ask("message.get", "bob", message_id=late["message"]))["message"]["seq"] == 2


@frozen()
async def test_a_cursor_does_not_skip_deferred_mail_that_arrives_later(daemon: InProcessDaemon) -> None:
    await daemon.register("ada", "bob")
    scope = [{"type": "module", "value": "auth"}]
    first = await daemon.ask("envelope.send", "ada", to="bob", text="1", scopes=scope)
    rest = {"to": "bob", "reply_to": first["message"], "scopes": scope}
    await daemon.ask("envelope.send", "ada", **rest, text="late", deliver_at="+2h")
    for text in ("2", "3", "4"):
        await daemon.ask("envelope.send", "ada", **rest, text=text)
    asked: list[dict[str, Any]] = [
        {"thread_id": first["thread"]},
        {"scope": scope[0]},
        {"conversation_id": first["conversation"]},
        {},
    ]
    pages = [await daemon.ask("message.list", "bob", **one, sort_order="asc", page_size=3) for one in asked]
    await daemon.move(hours=2)
    for one, page in zip(asked, pages, strict=True):
        texts, cursor = [message["body"]["content"] for message in page["messages"]], page["next"]
        while cursor is not None:
            page = await daemon.ask(
                "message.list", "bob", **one, sort_order="asc", page_size=1, cursor=cursor
            )
            texts += [message["body"]["content"] for message in page["messages"]]
            cursor = page["next"]
        assert sorted(texts) == ["1", "2", "3", "4", "late"], one
