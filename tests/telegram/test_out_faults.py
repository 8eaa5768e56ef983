"""What can go wrong with each method that posts: nothing is lost, out of order or replayed, and it is named.

Each test is a row of the table. It meets its fault with all methods at once, each in a booth of its own. What
goes wrong with changes, live posts and signs is in test_change_faults.py.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from tests.support.telegram_booths import (
    RICH_WAYS,
    VERSIONS,
    WAYS,
    Booth,
    Booths,
    TopicOwner,
    each,
    notices,
    ways,
)
from tests.support.telegram_bots import address
from tests.support.waits import wait_until

pytestmark = pytest.mark.slow

ENVIRONMENT = {"HIBOSS_DELIVERY_POST_SECONDS": "2"}

Fault = dict[str, Any]
TEXT = WAYS["sendMessage"]
FILE_WAYS = [one for one in WAYS.values() if one.files]
AFTER_A_CHUNK = RICH_WAYS["sendRichMessage after another chunk"]


def others_go_on(booths: Booths, found: list[Booth]) -> None:
    """Send to the other chats of these booths, and wait until that is there."""
    booths.wait_for_status([booth.say("meanwhile") for booth in found], "done")


def are_posted(found: list[Booth], *words: str) -> None:
    """See that exactly these letters are posted in the chats of all booths, in this order."""
    for booth in found:
        expected = [one for word in words for one in booth.way.becomes(word)]
        assert booth.posted(*words) == expected, booth.way


def told(booth: Booth, words: str) -> int:
    """Return how often the boss was told this of the account of a booth."""
    return len(booth.notices("user:boss", f"telegram:{booth.bot.id} ", words))


# --- the chat waits, and keeps its order -----------------------------------------------------------

WAITS: dict[str, tuple[Fault, str]] = {
    "500": ({"status": 500}, "with 500: Internal Server Error"),
    "502 with html": ({"status": 502}, "with 502: the server is in trouble"),
    "garbage": ({"do": "garbage"}, "is not one of the Bot API"),
    "a cut connection": ({"do": "drop"}, "cannot be reached any more"),
    "no answer": ({"do": "hang"}, "no answer within 2 seconds"),
    "429 for a minute": ({"retry_after": 60}, "with 429: Too Many Requests"),
}


@each("name", WAITS)
def test_trouble_in_a_chat_holds_what_is_for_it_and_nothing_else(booths: Booths, name: str) -> None:
    what, words = WAITS[name]
    with booths.borrowed(ways(booths.office)) as found:
        faults = [booth.fault(times=None, **what) for booth in found]
        waiting = [booth.send("while") for booth in found]
        booths.wait_for_error(found, words)
        waiting += [booth.send("after") for booth in found]
        others_go_on(booths, found)
        assert booths.statuses(waiting) == {"pending"}
        for booth, fault in zip(found, faults, strict=True):
            fault.clear()
            booth.retry()
        booths.wait_for_status(waiting, "done")
        are_posted(found, "while", "after")


UNHEARD: dict[str, Fault] = {
    "a lost answer": {"do": "lose_answer"},
    "500 for what was done": {"status": 500, "carry_out": True},
    "garbage for what was done": {"do": "garbage", "carry_out": True},
    "no answer for what was done": {"do": "hang", "carry_out": True},
}


@each("name", UNHEARD)
def test_what_was_done_unheard_is_all_that_is_doubled(booths: Booths, name: str) -> None:
    with booths.borrowed(ways(booths.office)) as found:
        faults = [booth.fault(**UNHEARD[name]) for booth in found]
        sent = [booth.send("while") for booth in found]
        booths.wait_for_error(found, "")
        sent += [booth.send("after") for booth in found]
        for booth, fault in zip(found, faults, strict=True):
            fault.clear()
            booth.retry()
        booths.wait_for_status(sent, "done")
        are_posted(found, "while", "after")
        assert [len(booth.unheard()) for booth in found] == [len(booth.way.posts) for booth in found]


def test_after_429_a_chat_waits_as_long_as_was_named_and_goes_on_by_itself(booths: Booths) -> None:
    with booths.borrowed(ways(booths.office)) as found:
        for booth in found:
            booth.fault(retry_after=1)
        booths.wait_for_status([booth.send(word) for word in ("while", "after") for booth in found], "done")
        are_posted(found, "while", "after")
        for booth in found:
            calls = [one for one in booths.office.api.calls if one.bot is booth.bot]
            refused = max(number for number, one in enumerate(calls) if one.status == 429)
            goes_on = next(one for one in calls[refused + 1 :] if one.method == booth.way.method)
            assert goes_on.at >= calls[refused].at + 1


def test_429_in_two_chats_at_once_holds_the_whole_bot_and_no_other(booths: Booths) -> None:
    with booths.borrowed(ways(booths.office)) as found, booths.borrowed([TEXT]) as untouched:
        thirds = [booth.open_third() for booth in found]
        for booth in found:
            booth.fault("sendMessage", retry_after=30, chat=booth.other.id)
        sent = [booth.say("first") for booth in found]
        for booth in found:
            wait_until(partial(booths.waits, booth, chat=booth.other))
        faults = [booth.fault(retry_after=30) for booth in found]
        sent += [booth.send("while") for booth in found]
        booths.office.api.wait_for(lambda: all(fault.hits for fault in faults))
        booths.wait_for_error(found, "with 429")
        assert {booths.lane(booth)["address"] for booth in found} == {None}  # that of the account
        third = [
            booth.send("third", to=address(chat), way=TEXT) for booth, chat in zip(found, thirds, strict=True)
        ]
        booths.wait_for_status([booth.send("untouched") for booth in untouched], "done")
        assert booths.statuses([*sent, *third]) == {"pending"}
        for booth in found:
            booth.retry()
            booth.retry(booth.other)
        booths.wait_for_status([*sent, *third], "done")
        are_posted(found, "while")


# --- it fails, and can be retried ------------------------------------------------------------------

REFUSALS: dict[str, Fault] = {
    "blocked": {"status": 403, "description": "Forbidden: bot was blocked by the user"},
    "unknown chat": {"status": 400, "description": "Bad Request: chat not found"},
    "no topic": {"status": 400, "description": "Bad Request: message thread not found"},
}


@each("name", REFUSALS)
def test_a_refusal_for_good_fails_with_its_words_and_can_be_retried(booths: Booths, name: str) -> None:
    nex, words = booths.office.nex, REFUSALS[name]["description"]
    with booths.borrowed(ways(booths.office)) as found:
        faults = [booth.fault(times=None, **REFUSALS[name]) for booth in found]
        failing = [booth.send("while") for booth in found]
        booths.wait_for_status(failing, "failed")
        listed = {one["id"]: one for one in nex.list(status="failed", page_size=100)}
        for booth, fault, envelope in zip(found, faults, failing, strict=True):
            assert words in listed[envelope]["last_error"]["text"]
            assert len(booth.notices("agent:nex", f"Not delivered: {envelope} to", words)) == 1
            fault.clear()
        booths.wait_for_status([booth.send("after") for booth in found], "done")  # the lane goes on
        nex.call("envelope.retry", ids=failing)
        booths.wait_for_status(failing, "done")
        for booth in found:
            rest = booth.way.becomes("while")
            begun = [rest.pop(0) for _ in booth.way.earlier]
            expected = [*begun, *booth.way.becomes("after"), *rest]
            assert booth.posted("while", "after") == expected, booth.way


# --- another form of it is taken -------------------------------------------------------------------


def test_markup_that_is_refused_goes_without_it_and_once(booths: Booths) -> None:
    with booths.borrowed(ways(booths.office)) as found:
        for booth in found:
            words = "Bad Request: can't parse entities: unsupported entity"
            if booth.way.method == "sendRichMessage":
                booth.fault(status=400, description="Bad Request: RICH_MESSAGE_TOO_MANY_BLOCKS")
            else:
                booth.fault("sendMessage" if booth.way.earlier else None, status=400, description=words)
        booths.wait_for_status([booth.send(word) for word in ("while", "after") for booth in found], "done")
        are_posted(found, "while", "after")
        for booth in found:
            shown = booth.messages()
            refused, taken = shown[: len(shown) // 2], shown[len(shown) // 2 :]
            assert not any(one.rich_source for one in refused)
            if booth.way.method == "sendRichMessage":
                assert taken[-1].rich_source and refused[-1].entities[0]["type"] == "pre"
            else:
                assert (refused[0].entities, taken[0].entities[0]["type"]) == ([], "bold")


def test_rich_text_goes_plain_if_neither_form_of_it_is_taken(booths: Booths) -> None:
    """On an old server the first form is one that it does not have."""
    with booths.borrowed([RICH_WAYS["sendRichMessage"]]) as (booth,):
        if booths.is_new:
            booth.fault(status=400, description="Bad Request: RICH_MESSAGE_INVALID")
        booth.fault("sendMessage", status=400, description="Bad Request: can't parse entities: odd")
        booths.wait_for_status([booth.send("while"), booth.send("after")], "done")
        are_posted([booth], "while", "after")
        plain, after = booth.messages()
        assert plain.entities == [] and plain.rich_source is None
        assert bool(after.rich_source) is booths.is_new and bool(after.entities) is not booths.is_new


def test_a_server_without_rich_messages_is_asked_once_and_shows_tables_all_the_same(booths: Booths) -> None:
    booth = booths.opened(AFTER_A_CHUNK)
    if booths.is_new:
        booth.fault(status=404)
    booths.wait_for_status([booth.send(word) for word in ("while", "after")], "done")
    are_posted([booth], "while", "after")
    assert [one.rich_source for one in booth.messages()] == [None] * 4
    assert [one.entities[0]["type"] for one in booth.messages()[1::2]] == ["pre", "pre"]
    asked = [one for one in booths.office.api.calls_of("sendRichMessage") if one.bot is booth.bot]
    assert [one.status for one in asked] == [404]


def test_a_file_that_is_not_taken_as_what_it_is_goes_as_a_document(booths: Booths) -> None:
    with booths.borrowed([one for one in FILE_WAYS if one.method != "sendDocument"]) as found:
        for booth in found:
            booth.fault(status=400, description="Bad Request: IMAGE_PROCESS_FAILED")
        booths.wait_for_status([booth.send(word) for word in ("while", "after") for booth in found], "done")
        for booth in found:
            files = [one for one in booth.messages() if one.files]
            assert len(files) == 2 * len(booth.way.files)
            assert all("document" in one.media for one in files[: len(booth.way.files)]), booth.way
            assert len(booth.messages()) == 2 * len(booth.way.becomes(""))


def test_a_file_that_telegram_does_not_know_any_more_is_uploaded_again(booths: Booths) -> None:
    with booths.borrowed(FILE_WAYS) as found:
        booths.wait_for_status([booth.send("first", files="kept") for booth in found], "done")
        for booth in found:
            booth.fault(status=400, description="Bad Request: wrong file identifier/HTTP URL specified")
        booths.wait_for_status([booth.send("again", files="kept") for booth in found], "done")
        are_posted(found, "first", "again")
        for booth in found:
            calls = [one for one in booths.office.api.calls_of(booth.way.method) if one.bot is booth.bot]
            by_id, uploaded = calls[-2:]
            assert not by_id.uploads and len(uploaded.uploads) == len(booth.way.files)
            assert (by_id.status, uploaded.status) == (400, 200)


TOO_BIG: dict[str, Fault] = {
    "413": {"status": 413, "description": "Request Entity Too Large"},
    "400": {"status": 400, "description": "Bad Request: file is too big"},
}


@each("name", TOO_BIG)
def test_a_file_that_is_not_taken_at_all_is_named_and_its_text_goes(booths: Booths, name: str) -> None:
    with booths.borrowed(FILE_WAYS) as found:
        for booth in found:
            for method in {booth.way.method, "sendDocument"}:
                booth.fault(method, times=None, **TOO_BIG[name])
        sent = [booth.send("while") for booth in found]
        booths.wait_for_status(sent, "done")
        for booth, envelope in zip(found, sent, strict=True):
            shown, words = booth.messages(), "was not posted: Telegram answered"
            assert "while" in shown[0].text and words in shown[-1].text
            assert TOO_BIG[name]["description"] in shown[-1].text
            assert len(shown) == len(booth.way.earlier) + 1 and not any(one.files for one in shown)
            assert len(booth.notices("agent:nex", f"Not all of {envelope} to", words)) == 1


# --- the place is another one ----------------------------------------------------------------------


def test_what_is_for_a_group_that_has_moved_goes_to_its_new_id(booths: Booths) -> None:
    with booths.borrowed(ways(booths.office)) as found:
        groups = [booth.open_group(supergroup=False) for booth in found]
        silence = booths.silence(found)  # nobody is told of the move
        before = address(found[0].chat)
        moved = [group.migrate() for group in groups]
        booths.wait_for_status([booth.send("while") for booth in found], "done")
        for booth, group in zip(found, moved, strict=True):
            assert booth.posted("while") == []
            booth.look_at(group, first=0)
        silence.clear()
        booths.office.settle()
        booths.wait_for_status([booth.send("after") for booth in found], "done")
        are_posted(found, "while", "after")
        assert not booths.office.rows("SELECT 1 FROM envelopes WHERE \"to\" = ? AND status <> 'done'", before)


def test_what_is_for_a_topic_that_is_gone_goes_to_the_chat_and_says_so(booths: Booths) -> None:
    with booths.borrowed([one for one in ways(booths.office) if one is not AFTER_A_CHUNK]) as found:
        sent = []
        for booth in found:
            group = booth.open_group(forum=True)
            topic = group.create_topic("Deploys")
            with group.changed:
                del group.topics[topic.id]
            booth.look_at(group)
            sent += [booth.send(word, to=address(group, topic.id)) for word in ("while", "after")]
        booths.wait_for_status(sent, "done")
        are_posted(found, "while", "after")
        for booth in found:
            labelled = ["which is gone" in one.text for one in booth.messages()]
            letter = [True] + [False] * (len(booth.way.becomes("")) - 1)
            assert labelled == letter * 2, booth.way


NO_NEW_TOPIC: dict[str, Fault] = {
    "500": {"status": 500},
    "502 with html": {"status": 502},
    "garbage": {"do": "garbage"},
    "a cut connection": {"do": "drop"},
    "a lost answer": {"do": "lose_answer"},  # so there are two of it
    "no answer": {"do": "hang"},
    "429": {"retry_after": 60},
    "401": {"status": 401},
}
NEVER_A_TOPIC: dict[str, Fault] = {
    "no topics": {"status": 400, "description": "Bad Request: the chat is not a forum"},
    "no rights": {"status": 400, "description": "Bad Request: not enough rights to create a topic"},
    "a server without topics": {"status": 404},
}


@pytest.mark.parametrize(
    "booths", VERSIONS[:1], indirect=True
)  # an old server has no topics in private chats
def test_what_is_for_an_own_topic_waits_until_it_is_made_again_or_goes_to_the_chat(booths: Booths) -> None:
    office, table = booths.office, {**NO_NEW_TOPIC, **NEVER_A_TOPIC}
    ada = office.api.add_person("Ada")
    office.boss.call("boss.set", ids={"telegram": str(ada.id)})
    owners = [TopicOwner(office, ada, number) for number in range(len(table))]
    faults = [owner.loses_topic(**what) for owner, what in zip(owners, table.values(), strict=True)]
    sent = [owner.send(word) for word in ("while", "after") for owner in owners]
    office.api.wait_for(lambda: all(fault.hits for fault in faults))
    booths.wait_for_status([booths.opened(TEXT).send("meanwhile")], "done")
    office.api.clear_faults()
    for owner in owners:
        office.bind(owner.bot, owner.agent.name)  # so a topic is made again now, and not after a minute
    booths.wait_for_status(sent, "done")
    for owner, name in zip(owners, table, strict=True):
        complaints = notices(office, "user:boss", f"{owner.agent.address} has no topic of its own")
        if name in NEVER_A_TOPIC:
            label = f"(for the topic {owner.topic.id}, which is gone)\n"
            assert owner.posted() == [(None, f"{label}{owner.label}{word}") for word in ("while", "after")]
            assert len(complaints) == 1
        else:
            new = max(owner.chat.topics)
            assert owner.posted() == [(new, f"{owner.label}{word}") for word in ("while", "after")], name
            assert complaints == []


# --- nothing can be posted with this account -------------------------------------------------------


@each("status", [401, 404])
def test_a_token_that_is_not_accepted_holds_the_whole_account_and_the_boss_is_told_once(
    booths: Booths, status: int
) -> None:
    words = "does not accept the token"
    with booths.borrowed(WAYS.values()) as found, booths.borrowed([TEXT]) as healthy:
        before = [told(booth, words) for booth in found]
        faults = [booth.fault(status=status, times=None, chat=None) for booth in found]
        sent = [booth.send("while") for booth in found]
        booths.wait_for_error(found, words)
        sent += [booth.send("after") for booth in found]
        sent += [booth.say("meanwhile") for booth in found]
        booths.wait_for_status([booth.send("healthy") for booth in healthy], "done")
        assert booths.statuses(sent) == {"pending"}
        for booth, fault in zip(found, faults, strict=True):
            fault.clear()
            booth.retry()
        booths.wait_for_status(sent, "done")
        are_posted(found, "while", "after")
        assert [told(booth, words) for booth in found] == [number + 1 for number in before]


def test_what_is_sent_while_the_server_is_gone_is_posted_when_it_is_back(booths: Booths) -> None:
    words = "cannot be reached: "
    with booths.borrowed(ways(booths.office)) as found:
        booths.office.api.stop_listening()
        try:
            sent = [booth.send("while") for booth in found]
            booths.wait_for_error(found, words)
            sent += [booth.send("after") for booth in found]
            sent += [booth.say("meanwhile") for booth in found]
            assert booths.statuses(sent) == {"pending"}
        finally:
            booths.office.api.listen_again()
        for booth in found:
            booth.retry()
        booths.wait_for_status(sent, "done")
        are_posted(found, "while", "after")
        assert {told(booth, words) for booth in found} == {1}


# --- it takes long ---------------------------------------------------------------------------------


def test_a_slow_upload_holds_nobody_else(booths: Booths) -> None:
    with booths.borrowed(FILE_WAYS) as found:
        booths.office.api.upload_pace = 50_000
        try:
            sent = [booth.send("while", size=1_000_000) for booth in found]
            sent += [booth.send("after") for booth in found]
            others_go_on(booths, found)
            assert booths.statuses(sent) == {"pending"}
        finally:
            booths.office.api.upload_pace = None
        booths.wait_for_status(sent, "done")
        are_posted(found, "while", "after")
