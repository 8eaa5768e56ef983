"""Sending: who gets it, what can be said, in whose name, and once for each key."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hiboss.testing.running_daemon import Answered, RunningDaemon
from tests.support.daemons import code, line
from tests.support.parties import Party, agent, agents, at_once, boss, stored
from tests.support.raising import raised
from tests.support.sweeps import sweep


def request(method: str, id_: int, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": method, "id": id_, "params": params}


# --- recipients ----------------------------------------------------------------------


def test_a_message_reaches_its_recipient_and_nobody_else(ada: Party, bob: Party, eve: Party) -> None:
    sent = ada.send(bob, text="are you there?")
    (got,) = bob.list()
    assert [got["id"]] == sent["ids"] and got["message"] == sent["message"]
    assert (got["from"], got["to"], got["text"]) == (ada.address, bob.address, "are you there?")
    assert got["status"] == "pending" and got["box"] == "inbox" and got["read_at"] is None
    assert sent["duplicate"] is False and sent["deliver_at"] is None
    assert eve.list() == [] and ada.list() == []
    assert eve.refusal("envelope.get", id=got["id"]) == "not_found"


def test_several_recipients_get_one_message_and_an_envelope_each_in_the_order_given(
    daemon: RunningDaemon,
) -> None:
    ada, *others = agents(daemon, 6)
    sent = ada.send(*reversed(others), text="all of you")
    numbers = [int(number[1:]) for number in sent["ids"]]
    assert numbers == sorted(numbers) and len(set(numbers)) == 5
    got = [ada.get(number) for number in sent["ids"]]
    assert [one["to"] for one in got] == [one.address for one in reversed(others)]
    assert {one["message"] for one in got} == {sent["message"]} and len({one["seq"] for one in got}) == 1
    assert ada.call("envelope.get", id=sent["ids"][0])["recipients"] == [
        one.address for one in reversed(others)
    ]
    assert {len(other.list()) for other in others} == {1}


def test_to_may_be_one_address_or_a_list(ada: Party, bob: Party) -> None:
    ada.call("envelope.send", to=bob.address, text="one")
    ada.call("envelope.send", to=[bob.address], text="listed")
    assert [one["text"] for one in bob.list()] == ["listed", "one"]


def test_a_recipient_named_twice_gets_one_envelope(ada: Party, bob: Party, eve: Party) -> None:
    sent = ada.send(bob, eve, bob, bob.address.upper().replace("AGENT:", "agent:"))
    assert [ada.get(number)["to"] for number in sent["ids"]] == [bob.address, eve.address]
    assert len(bob.list()) == 1


def test_one_can_write_to_oneself(ada: Party) -> None:
    sent = ada.send(ada, text="note to self")
    again = ada.send(ada, text="another")
    assert ada.ids() == [*again["ids"], *sent["ids"]] == ada.ids(box="outbox")
    assert again["conversation"] == sent["conversation"]
    assert [one["seq"] for one in ada.list()] == [2, 1]


# --- conversations -------------------------------------------------------------------


def test_two_share_one_conversation_whoever_writes_and_its_sequence_has_no_gap(
    ada: Party, bob: Party, eve: Party
) -> None:
    sent = [ada.send(bob), bob.send(ada), ada.send(bob)]
    assert len({one["conversation"] for one in sent}) == 1
    other = ada.send(eve)
    assert other["conversation"] != sent[0]["conversation"]
    assert [ada.get(one["ids"][0])["seq"] for one in [*sent, other]] == [1, 2, 3, 1]


def test_the_same_set_of_three_shares_a_conversation_and_any_other_set_has_another(
    daemon: RunningDaemon,
) -> None:
    ada, bob, eve, dan = agents(daemon, 4)
    first, turned, by_another = ada.send(bob, eve), ada.send(eve, bob), eve.send(ada, bob)
    assert first["conversation"] == turned["conversation"] == by_another["conversation"]
    others = [ada.send(bob), ada.send(bob, eve, dan), ada.send(bob, dan)]
    assert len({first["conversation"], *(one["conversation"] for one in others)}) == 4
    assert [ada.get(first["ids"][0])["seq"], eve.get(by_another["ids"][0])["seq"]] == [1, 3]
    with daemon.database() as database:
        kinds = dict(database.execute("SELECT id, kind FROM conversations").fetchall())
    assert kinds[first["conversation"]] == "adhoc" and kinds[others[0]["conversation"]] == "private"


def test_a_copy_to_oneself_does_not_make_a_private_conversation_another(ada: Party, bob: Party) -> None:
    assert ada.send(bob)["conversation"] == ada.send(bob, ada)["conversation"] and len(ada.list()) == 1


def test_a_refused_send_leaves_no_gap_in_the_sequence(ada: Party, bob: Party) -> None:
    ada.send(bob)
    assert (
        ada.refusal("envelope.send", to=[bob.address, "agent:nobody-here"], text="x") == "unknown_recipient"
    )
    assert ada.refusal("envelope.send", to=bob.address, text="x", reply_to="m999999") == "not_found"
    assert ada.get(ada.tell(bob))["seq"] == 2


def test_sequences_stay_gapless_when_many_write_at_once(ada: Party, bob: Party) -> None:
    at_once([lambda: ada.send(bob), lambda: bob.send(ada)] * 16)
    assert sorted([one["seq"] for me in (ada, bob) for one in me.list(page_size=100)]) == list(range(1, 33))


def test_refused_sends_leave_no_trace_in_those_written_together_with_them(
    daemon: RunningDaemon, ada: Party, bob: Party
) -> None:
    place = f"channel:telegram:{ada.name}"
    boss(daemon).send(ada, from_=place)
    before = stored(daemon)
    to = {
        0: [bob.address, "agent:nobody-here"],  # refused before anything is written
        1: [bob.address, place],  # refused when half of it is written
    }
    requests = [
        request("envelope.send", n, token=ada.token, to=to.get(n % 5, [bob.address]), text=f"{n}")
        for n in range(40)
    ]
    codes = [code(one) for one in daemon.exchange(*requests, answers=40)]
    assert codes == ["unknown_recipient", "not_bound", "ok", "ok", "ok"] * 8
    assert [one["seq"] for one in bob.list(page_size=100, oldest_first=True)] == list(range(1, 25))
    grown = [now - then for now, then in zip(stored(daemon), before, strict=True)]
    assert grown == [24, 24, 1, 2, 0, 0]  # messages, envelopes, a conversation of two


# --- threads -------------------------------------------------------------------------


@pytest.mark.parametrize("by", ["envelope", "message", "bare number"])
def test_a_reply_lies_in_the_thread_and_goes_to_who_wrote(ada: Party, bob: Party, by: str) -> None:
    sent = ada.send(bob, text="question")
    target = {"envelope": sent["ids"][0], "message": sent["message"], "bare number": int(sent["ids"][0][1:])}[
        by
    ]
    answer = bob.send(text="answer", reply_to=target)
    (got,) = ada.list()
    assert (got["text"], got["from"], got["reply_to"]) == ("answer", bob.address, sent["message"])
    assert got["thread"] == answer["thread"] == sent["thread"] == "t" + sent["message"][1:]
    assert got["conversation"] == sent["conversation"] and got["seq"] == 2


def test_a_reply_to_a_reply_stays_in_the_first_thread(ada: Party, bob: Party) -> None:
    first = ada.send(bob)
    second = bob.send(reply_to=first["ids"][0])
    third = ada.send(reply_to=second["message"], text="third")
    assert third["thread"] == first["thread"]
    got = bob.get(third["ids"][0])
    assert got["reply_to"] == second["message"] and got["to"] == bob.address


def test_a_reply_may_go_to_others_than_the_writer(ada: Party, bob: Party, eve: Party) -> None:
    first = ada.send(bob)
    sent = bob.send(eve, reply_to=first["ids"][0])
    assert sent["thread"] == first["thread"] and sent["conversation"] != first["conversation"]
    assert eve.ids() == sent["ids"] and ada.list() == []


def test_what_has_not_arrived_cannot_be_replied_to_by_its_recipient(ada: Party, bob: Party) -> None:
    sent = ada.send(bob, deliver_at="+2h")
    assert bob.refusal("envelope.send", text="x", reply_to=sent["ids"][0]) == "not_found"
    assert ada.send(bob, reply_to=sent["ids"][0])["thread"] == sent["thread"]


def test_a_reply_never_reaches_a_namesake_who_came_later(
    daemon: RunningDaemon, ada: Party, bob: Party
) -> None:
    number = ada.tell(bob)
    boss(daemon).call("agent.delete", name=ada.name)
    assert bob.refusal("envelope.send", text="x", reply_to=number) == "unknown_recipient"
    namesake = agent(daemon, ada.name)
    assert bob.refusal("envelope.send", text="x", reply_to=number) == "unknown_recipient"
    assert namesake.list() == []


# --- in whose name -------------------------------------------------------------------


def test_the_boss_sends_for_others_and_without_a_name_as_user_boss(
    ada: Party, bob: Party, chief: Party
) -> None:
    chief.send(bob)
    chief.send(bob, from_="user:boss")
    chief.send(bob, from_=ada.address, from_boss=True, from_name="Ada Lovelace")
    assert [(one["from"], one["from_boss"], one["from_name"]) for one in bob.list()] == [
        (ada.address, True, "Ada Lovelace"),
        ("user:boss", True, "Ada"),
        ("user:boss", True, "Ada"),
    ]
    assert len(ada.ids(box="outbox")) == 1


def test_an_agent_may_name_itself(ada: Party, bob: Party) -> None:
    ada.send(bob, from_=ada.address)
    assert [(one["from"], one["from_boss"]) for one in bob.list()] == [(ada.address, False)]


def test_the_boss_may_speak_for_a_channel(daemon: RunningDaemon, ada: Party, bob: Party) -> None:
    chief, place = boss(daemon), "channel:telegram:-100/7"
    first = chief.send(ada, from_=place, from_name="Grace")
    assert first["conversation"] == chief.send(ada, from_=place)["conversation"]
    assert [one["from"] for one in ada.list()] == [place, place]
    assert ada.refusal("envelope.send", text="x", reply_to=first["ids"][0]) == "not_bound"
    assert bob.refusal("envelope.send", text="x", to=place) == "not_bound"


def test_the_boss_may_reply_to_anything(daemon: RunningDaemon, ada: Party, bob: Party) -> None:
    sent = ada.send(bob)
    answer = boss(daemon).send(from_="user:boss", reply_to=sent["ids"][0], text="from above")
    assert answer["thread"] == sent["thread"] and [one["text"] for one in ada.list()] == ["from above"]


def test_a_deleted_agents_last_words_are_not_put_into_its_namesakes_mouth(
    daemon: RunningDaemon, chief: Party, ada: Party, bob: Party
) -> None:
    ada.call("agent.self")  # its token is known to the daemon
    (answers,) = daemon.exchange(
        [
            request("agent.delete", 1, token=chief.token, name=ada.name),
            request("agent.register", 2, token=chief.token, name=ada.name),
            request("envelope.send", 3, token=ada.token, to=bob.address, text="ghost"),
        ],
        answers=1,
    )
    assert Party(daemon, ada.address, answers[1]["result"]["token"]).list(box="outbox") == []


def test_mail_to_the_boss_is_done_on_arrival(daemon: RunningDaemon, ada: Party) -> None:
    number = ada.tell(boss(daemon), text="report")
    got = boss(daemon).get(number)
    assert got["status"] == "done" and got["done_at"] and got["read_at"] is None and got["acked_at"] is None
    assert number in boss(daemon).ids(unread=True)


# --- content -----------------------------------------------------------------------


MIB = 1024 * 1024


def refused_and_nothing_stored(sender: Party, **params: Any) -> str:
    before = stored(sender.daemon)
    refusal = sender.refusal("envelope.send", **params)
    assert stored(sender.daemon) == before
    return refusal


# --- what can be said ----------------------------------------------------------------


def test_what_is_said_comes_back_to_the_letter(ada: Party, bob: Party) -> None:
    texts = ("x", " x ", "a\nb\r\nc\td", "Ünïcødé", "\U0001f44d\U0001f3fd", "e\u0301", "\u202eabc")
    texts += ("\u2028\ufeff\x7f\x01", "'\";--%s{}\\")
    with sweep() as kept:
        for given in (
            *({"text": text, "subject": text} for text in texts),
            *({"priority": priority} for priority in ("critical", "high", "normal", "low")),
            *({"type": type_} for type_ in ("text", "markdown", "json", "html")),
        ):
            with kept(given):
                found = bob.get(ada.tell(bob, **given))
                assert {name: found[name] for name in given} == given


def test_what_is_not_said_has_its_plain_value(ada: Party, bob: Party) -> None:
    got = bob.get(ada.tell(bob))
    assert (got["priority"], got["type"], got["interruptible"], got["auto"]) == (
        "normal",
        "text",
        True,
        False,
    )
    assert (got["subject"], got["deliver_at"], got["reply_to"], got["run"]) == (None, None, None, None)
    assert got["metadata"] == {} and got["attachments"] == [] and got["trace"] == got["message"]


def test_trace_metadata_and_interruptible_are_kept(ada: Party, bob: Party) -> None:
    metadata = {"n": 1, "f": 0.5, "deep": {"list": [None, True, "ü\x00"]}, "": "empty", "big": 2**63 - 1}
    got = bob.get(ada.tell(bob, metadata=metadata, trace_id="trace-7", interruptible=False))
    assert got["metadata"] == metadata
    assert got["trace"] == f"{ada.address}/trace-7/{got['message']}" and got["interruptible"] is False


@pytest.mark.parametrize("key", [{}, {"key": "k"}], ids=["without a key", "with a key"])
@pytest.mark.parametrize("depth", [20, 300, 1000])
def test_deeply_nested_metadata_does_not_shut_the_recipients_box(
    daemon: RunningDaemon, ada: Party, bob: Party, depth: int, key: dict[str, str]
) -> None:
    nested = '{"a":' * depth + "{}" + "}" * depth
    sending = line("envelope.send", token=ada.token, to=bob.address, text="x", metadata="?", **key)
    before = stored(daemon)
    (answer,) = daemon.exchange(sending.strip().replace(b'"?"', nested.encode()), answers=1)
    assert code(answer) in ("ok", "invalid_params", "too_large")
    if code(answer) == "ok":
        assert [json.dumps(one["metadata"], separators=(",", ":")) for one in bob.list()] == [nested]
    else:
        assert stored(daemon) == before and depth > 100
    ada.send(bob, text="next")
    assert bob.list()[0]["text"] == "next"


# --- what is refused -----------------------------------------------------------------


def test_a_secret_given_in_the_wrong_place_is_not_repeated(ada: Party, bob: Party) -> None:
    error = raised(
        Answered,
        ada.call,
        "envelope.send",
        to=bob.address,
        text="x",
        tokn=ada.token,
        subject={"token": ada.token},
    )
    assert ada.token not in json.dumps([error.message, error.facts])


# --- limits --------------------------------------------------------------------------


@pytest.mark.parametrize("sign", ["a", "ü", "漢", "\U0001f600"], ids=ascii)
def test_a_text_may_have_one_mebibyte_and_not_a_byte_more(ada: Party, bob: Party, sign: str) -> None:
    whole = sign * (MIB // len(sign.encode()))
    whole += "." * (MIB - len(whole.encode()))
    assert bob.get(ada.tell(bob, text=whole))["text"] == whole
    assert refused_and_nothing_stored(ada, to=bob.address, text=whole + ".") == "too_large"


def test_a_text_too_long_is_told_its_size_the_limit_and_a_way_out(ada: Party, bob: Party) -> None:
    with pytest.raises(Answered, match=r"1048577 bytes.* 1048576.*attachment"):
        ada.send(bob, text="a" * (MIB + 1))


def test_a_message_may_go_to_100_and_not_to_101(daemon: RunningDaemon) -> None:
    ada, *others = agents(daemon, 102)
    assert len(ada.send(*others[:100])["ids"]) == 100
    assert others[99].list() != []
    assert refused_and_nothing_stored(ada, to=[one.address for one in others], text="x") == "too_large"
    assert others[100].list() == []


# --- keys --------------------------------------------------------------------------


def but_for_duplicate(answer: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in answer.items() if name != "duplicate"}


def test_the_same_key_gives_the_first_answer_again(ada: Party, bob: Party) -> None:
    first = ada.send(bob, ada, text="once", key="k1")
    before = stored(ada.daemon)
    again = ada.send(bob, ada, text="once", key="k1")
    assert first["duplicate"] is False and again["duplicate"] is True
    assert but_for_duplicate(again) == but_for_duplicate(first)
    assert stored(ada.daemon) == before
    assert len(bob.list()) == 1


def test_a_repeated_reply_gives_the_first_answer_with_its_thread(ada: Party, bob: Party) -> None:
    asked = ada.send(bob)
    first = bob.send(reply_to=asked["ids"][0], key="k")
    again = bob.send(reply_to=asked["ids"][0], key="k")
    assert again["duplicate"] is True and again["thread"] == asked["thread"]
    assert but_for_duplicate(again) == but_for_duplicate(first)


def test_a_relative_time_asked_again_later_is_the_same_request(ada: Party, bob: Party) -> None:
    first = ada.send(bob, key="k", deliver_at="+2h")
    again = ada.send(bob, key="k", deliver_at="+2h")
    assert again["duplicate"] is True and again["deliver_at"] == first["deliver_at"]
    assert but_for_duplicate(again) == but_for_duplicate(first)


def test_a_repeat_needs_no_attachment_any_more(ada: Party, bob: Party, tmp_path: Path) -> None:
    file = tmp_path / "gone.txt"
    file.write_text("soon gone")
    first = ada.send(bob, key="k", attachments=[str(file)])
    file.unlink()
    again = ada.send(bob, key="k", attachments=[str(file)])
    assert again["duplicate"] is True and again["ids"] == first["ids"]
    (got,) = bob.list()
    assert Path(got["attachments"][0]["path"]).read_text() == "soon gone"


def test_a_repeat_is_answered_after_the_recipient_has_gone(ada: Party, bob: Party) -> None:
    first = ada.send(bob, key="k")
    boss(ada.daemon).call("agent.delete", name=bob.name)
    namesake = agent(ada.daemon, bob.name)
    assert ada.send(bob, key="k")["ids"] == first["ids"]
    assert namesake.list() == []


def test_a_repeat_is_answered_after_the_envelope_was_cancelled(ada: Party, bob: Party) -> None:
    first = ada.send(bob, key="k")
    ada.call("envelope.cancel", ids=first["ids"])
    assert ada.send(bob, key="k")["ids"] == first["ids"]
    assert [one["status"] for one in bob.list()] == ["cancelled"]


@pytest.mark.parametrize(
    "other",
    [
        {"text": "other"},
        {"subject": "s"},
        {"priority": "high"},
        {"type": "markdown"},
        {"deliver_at": "+2h"},
        {"metadata": {"a": 1}},
        {"trace_id": "t"},
        {"interruptible": False},
        {"attachments": ["/etc/hostname"]},
    ],
    ids=lambda one: next(iter(one)),
)
def test_the_same_key_with_other_content_is_refused(ada: Party, bob: Party, other: dict[str, Any]) -> None:
    first = ada.send(bob, key="k")
    before = stored(ada.daemon)
    error = raised(Answered, ada.send, bob, key="k", **other)
    assert error.stable_code == "key_reused" and error.facts["id"] == first["ids"][0]
    assert stored(ada.daemon) == before


def test_the_same_key_to_somebody_else_is_refused(ada: Party, bob: Party, eve: Party) -> None:
    ada.send(bob, key="k")
    assert ada.refusal("envelope.send", to=[eve.address], text="hello", key="k") == "key_reused"
    assert eve.list() == []


def test_keys_are_told_apart_to_the_letter(ada: Party, bob: Party) -> None:
    assert len({ada.tell(bob, key=key) for key in ("k", "K", " k", "k ", "ќ")}) == 5


def test_without_a_key_the_same_words_are_sent_twice(ada: Party, bob: Party) -> None:
    assert ada.tell(bob) != ada.tell(bob)
    assert len(bob.list()) == 2


@pytest.mark.parametrize("text", ["a secret", "something else"])
def test_another_caller_may_use_the_same_key_and_learns_nothing(
    ada: Party, bob: Party, eve: Party, text: str
) -> None:
    first = ada.send(bob, text="a secret", key="k")
    theirs = eve.send(bob, text=text, key="k")
    assert theirs["duplicate"] is False and theirs["ids"] != first["ids"]
    assert theirs["conversation"] != first["conversation"]
    assert eve.send(bob, text=text, key="k")["ids"] == theirs["ids"]
    assert ada.send(bob, text="a secret", key="k")["ids"] == first["ids"]


def test_a_namesake_does_not_inherit_keys(ada: Party, bob: Party) -> None:
    first = ada.send(bob, key="k")
    boss(ada.daemon).call("agent.delete", name=ada.name)
    theirs = agent(ada.daemon, ada.name).send(bob, key="k", text="something else")
    assert theirs["duplicate"] is False and theirs["ids"] != first["ids"]


def test_a_refused_send_does_not_use_its_key_up(ada: Party, bob: Party) -> None:
    assert (
        ada.refusal("envelope.send", to=[bob.address, "agent:nobody-here"], text="x", key="k")
        == "unknown_recipient"
    )
    assert ada.send(bob, text="y", key="k")["duplicate"] is False


@pytest.mark.parametrize("with_file", [False, True])
def test_of_32_at_once_with_one_key_one_is_stored(
    ada: Party, bob: Party, with_file: bool, tmp_path: Path
) -> None:
    (tmp_path / "f.txt").write_text("f")
    files = [str(tmp_path / "f.txt")] if with_file else []
    results = at_once([lambda: ada.send(bob, key="k", attachments=files)] * 32)
    assert len({tuple(one["ids"]) for one in results}) == 1
    assert [one["duplicate"] for one in results].count(False) == len(bob.list()) == 1
