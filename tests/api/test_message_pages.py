"""`message.list`: pages, totals and cursors, and the order of what is listed."""

from __future__ import annotations

from typing import Any

import pytest

from hiboss.testing.running_daemon import Answered, RunningDaemon
from tests.api.test_message_list import ids, walked
from tests.support.in_process_daemon import InProcessDaemon, frozen
from tests.support.parties import Party, agents

# --- pages and totals ----------------------------------------------------------------


@pytest.mark.parametrize("wrong", [0, -1, 101, 10**9, 2**64, 10**30, "10", 1.5, True, [10]], ids=repr)
def test_a_page_size_outside_1_to_100_is_refused(two: tuple[Party, Party], wrong: Any) -> None:
    assert two[0].refusal("message.list", page_size=wrong) == "invalid_params"


@pytest.mark.parametrize("wrong", [0, -1, -(2**63), 101, 10**9, 2**63, "1", 1.5, True], ids=repr)
def test_a_page_number_outside_the_first_1000_is_refused(two: tuple[Party, Party], wrong: Any) -> None:
    assert two[0].refusal("message.list", page=wrong) == "invalid_params"


def test_the_refusal_of_a_deep_page_tells_to_use_a_cursor(two: tuple[Party, Party]) -> None:
    with pytest.raises(Answered, match="cursor"):
        two[0].call("message.list", page=11, page_size=100)
    assert two[0].call("message.list", page=10, page_size=100)["messages"] == []
    assert two[0].refusal("message.list", page=1, cursor="x") == "invalid_params"


def test_pages_by_number_and_by_cursor_show_the_same(two: tuple[Party, Party]) -> None:
    ada, bob = two
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
    two: tuple[Party, Party],
) -> None:
    ada, bob = two
    before = [ada.send(bob)["message"] for _ in range(4)]
    page = bob.call("message.list", page_size=2)
    between = ada.send(bob)["message"]
    rest = bob.call("message.list", page_size=10, cursor=page["next"])
    assert [one["message_id"] for one in page["messages"] + rest["messages"]] == before[::-1]
    assert ids(bob)[0] == between


def test_totals_are_numbers_also_when_they_are_capped(two: tuple[Party, Party]) -> None:
    ada, bob = two
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


def test_unread_is_of_the_thread_or_the_conversation_that_is_asked_for(daemon: RunningDaemon) -> None:
    ada, bob, eve = agents(daemon, 3)
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


@pytest.mark.parametrize(
    "wrong", ["", "5", "-", "{epoch}-", "{epoch}-s", "{epoch}-m5", "{epoch}-a5.5", "{epoch}-u5", "{epoch}-q5"]
)
def test_what_is_no_cursor_is_refused(two: tuple[Party, Party], wrong: str) -> None:
    ada, bob = two
    for _ in range(2):
        ada.send(bob)
    epoch = bob.call("message.list", page_size=1)["next"].partition("-")[0]
    assert bob.refusal("message.list", cursor=wrong.format(epoch=epoch)) == "bad_cursor"


def test_a_cursor_of_another_list_or_store_is_refused(two: tuple[Party, Party]) -> None:
    ada, bob = two
    first = ada.send(bob)
    ada.send(bob, reply_to=first["message"])
    inbox = bob.call("message.list", page_size=1)["next"]
    thread = bob.call("message.list", page_size=1, thread_id=first["thread"])["next"]
    assert bob.refusal("message.list", cursor=thread) == "bad_cursor"
    assert bob.refusal("message.list", cursor=inbox, thread_id=first["thread"]) == "bad_cursor"
    changed = {"thread_id": first["thread"], "sort_by": "updated_at"}
    assert bob.refusal("message.list", cursor=thread, **changed) == "bad_cursor"
    assert bob.refusal("message.list", cursor="00000000-" + inbox.partition("-")[2]) == "gap"


def test_a_page_is_bounded_in_bytes_and_goes_on_by_cursor(two: tuple[Party, Party]) -> None:
    ada, bob = two
    sent = [ada.send(bob, text="\x01" * 300_000)["message"] for _ in range(6)]
    page = bob.call("message.list", page_size=6)
    assert 0 < len(page["messages"]) < 6 and page["next"]
    assert walked(bob, page_size=6) == sent[::-1]
    assert bob.refusal("message.list", page_size=6, page=1) == "too_large"


# --- order ---------------------------------------------------------------------------


def test_by_the_last_change_an_edited_or_deleted_message_comes_first(two: tuple[Party, Party]) -> None:
    ada, bob = two
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
