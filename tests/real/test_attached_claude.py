"""Mail for the real Claude Code that is open in a terminal: from Ada's phone, and answered there."""

from __future__ import annotations

from hiboss.testing.model_server import ModelServer, Say
from tests.real.attached_desk import Desk, last_input, told_once, when_busy
from tests.support.waits import wait_until


@told_once
def test_an_idle_session_answers_a_question_from_the_phone(desk: Desk, server: ModelServer) -> None:
    server.script(Say("All is green."))
    envelope = desk.asks("How is the build?")
    desk.wait_answer("All is green.")
    receipt = desk.wait_receipt(envelope, "done")
    assert receipt["submitted_at"] <= receipt["seen_at"] <= receipt["done_at"]
    [request] = server.turns
    assert "> How is the build?" in last_input(request)
    desk.wait_idle()
    server.script(Say("Still green."))
    second = desk.asks("And now?")
    desk.wait_answer("Still green.")
    desk.check_done(envelope, second)
    assert desk.count("green") == 2


@told_once
def test_receipts_go_from_submitted_to_seen_while_the_model_works(desk: Desk, server: ModelServer) -> None:
    server.script(Say("All is green.", hold=True))
    envelope = desk.asks("How is the build?")
    server.wait_held()
    assert desk.receipt(envelope)["state"] == "seen"
    assert [one["state"] for one in desk.attached()] == ["busy"]
    server.go_on()
    desk.wait_answer("All is green.")
    desk.check_done(envelope)


@when_busy()
def test_a_busy_session_answers_once_and_the_persons_own_answer_is_not_sent(
    desk: Desk, server: ModelServer
) -> None:
    server.script(desk.long_tool(), Say("The herons are counted."))
    server.when(lambda one: "Before you stop" in last_input(one), *[Say("All is green.")] * 3)
    server.when(
        lambda one: "tool ended" not in last_input(one) and "> How" in last_input(one), Say("All is green.")
    )
    desk.claude.enter("count the herons")
    desk.wait_tool()
    envelope = desk.asks("How is the build?")
    desk.finish_tool()
    desk.wait_answer("All is green.")
    desk.claude.wait_for("The herons are counted.")
    desk.check_done(envelope)
    desk.wait_idle()
    assert desk.count("green") == 1
    assert desk.count("heron") == 0


@when_busy()
def test_mail_that_comes_while_a_session_writes_is_answered_after_it(desk: Desk, server: ModelServer) -> None:
    server.script(Say("The herons are counted.", hold=True))
    desk.says("How is the build?", "All is green.")
    desk.claude.enter("count the herons")
    server.wait_held()
    envelope = desk.asks("How is the build?")
    server.go_on()
    desk.wait_answer("All is green.")
    desk.claude.wait_for("The herons are counted.")
    desk.check_done(envelope)
    assert desk.count("green") == 1
    assert desk.count("heron") == 0


@told_once
def test_several_messages_while_it_is_busy_are_all_answered_each_in_its_place(
    desk: Desk, server: ModelServer
) -> None:
    kai = desk.office.daemon.register("kai", mode="pull")
    server.script(desk.long_tool(), Say("The herons are counted."))
    desk.says("And the weather?", "All is green, and it rains.")
    desk.says("Where is the key?", "It is under the mat.")
    desk.claude.enter("count the herons")
    desk.wait_tool()
    first = desk.asks("How is the build?")
    sent = desk.office.daemon.call("envelope.send", token=kai, to="agent:nex", text="Where is the key?")
    last = desk.asks("And the weather?")
    desk.finish_tool()
    desk.wait_answer("it rains")
    wait_until(lambda: _inbox(desk, kai), 60)
    desk.check_done(first, last, str(sent["ids"][0]))
    assert _inbox(desk, kai) == ["It is under the mat."]
    assert desk.count("it rains") == 1
    assert desk.count("mat") == desk.count("heron") == 0


def _inbox(desk: Desk, token: str) -> list[str]:
    found = desk.office.daemon.call("envelope.list", token=token)["envelopes"]
    return [one["text"] for one in found]


@when_busy("between")
def test_a_session_that_gets_mail_in_its_turn_answers_by_hand(desk: Desk, server: ModelServer) -> None:
    server.script(desk.long_tool(), Say("The herons are counted."))
    desk.claude.enter("count the herons")
    desk.wait_tool()
    envelope = desk.asks("How is the build?")
    reply = desk.tool(f"hiboss reply {envelope} 'All is green.'")
    server.when(lambda one: "tool ended" in last_input(one), reply)
    desk.finish_tool()
    desk.wait_answer("All is green.")
    desk.claude.wait_for("The herons are counted.")
    desk.check_done(envelope)
    assert desk.count("green") == 1
    assert desk.count("heron") == 0


@told_once
def test_more_messages_than_a_session_is_kept_from_stopping_are_all_answered(
    desk: Desk, server: ModelServer
) -> None:
    """Each comes while the one before is worked on, so that none waits for an idle session."""
    for number in range(8):
        desk.answers(f"question {number}.", Say(f"answer {number}.", hold=True))
    envelopes = [desk.asks("question 0.")]
    for number in range(1, 8):
        server.wait_held()
        envelopes.append(desk.asks(f"question {number}."))
        server.go_on()
        desk.wait_answer(f"answer {number - 1}.")
    server.wait_held()
    server.go_on()
    desk.wait_answer("answer 7.")
    desk.check_done(*envelopes)
    assert [desk.count(f"answer {number}.") for number in range(8)] == [1] * 8
