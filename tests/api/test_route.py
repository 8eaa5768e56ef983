"""`control route` over the socket: what moves, who sees it then, and who may do it."""

from __future__ import annotations

import threading
from typing import Any

from hiboss.testing.running_daemon import RunningDaemon
from tests.support.followers import following
from tests.support.parties import Envelope, Party, agent, agents, at_once
from tests.support.python_agents import Boss, Team, texts
from tests.support.waits import wait_until


def route(who: Party, to: Party, **target: Any) -> Any:
    return who.call("control.send", event="stream.route", to=to.address, **target)


def mail(who: Party) -> list[Envelope]:
    """Return what somebody got that is to be dealt with: no records of controls, no copies."""
    return [one for one in who.list(page_size=100) if not one["context"]]


def test_a_routed_envelope_is_in_the_box_of_the_other_agent_only(daemon: RunningDaemon, chief: Boss) -> None:
    kai, nex, max_ = agents(daemon, 3)
    number = kai.tell(nex, text="who takes this?")
    with following(daemon) as follower:
        follower.subscribe(nex.token, topics=["envelope.routed"])
        assert route(chief, max_, envelope=number)["outcome"] == "applied"
        fact = follower.next("envelope.routed")
    assert mail(nex) == [] and max_.ids() == [number]
    found = max_.get(number)
    assert (found["to"], found["routed_from"], found["context"]) == (max_.address, nex.address, False)
    assert nex.refusal("envelope.get", id=number) == "not_found"
    assert (fact["envelope"], fact["routed_from"], fact["to"]) == (number, nex.address, max_.address)
    assert max_.call("envelope.claim")["envelopes"][0]["id"] == number


def test_the_sender_sees_who_got_it_and_the_answer_comes_in_the_same_conversation(
    daemon: RunningDaemon, chief: Boss
) -> None:
    kai, nex, max_ = agents(daemon, 3)
    sent = kai.send(nex, text="who takes this?")
    [number] = sent["ids"]
    route(chief, max_, envelope=number)
    assert kai.get(number)["to"] == max_.address
    assert max_.send(text="I do", reply_to=number)["conversation"] == sent["conversation"]
    assert texts(mail(kai)) == ["I do"] and mail(nex) == []


def test_an_agent_with_turns_answers_what_was_routed_to_it(team: Team, chief: Boss) -> None:
    nex, max_ = team.hire('wait_for("never")'), team.hire('print("max here")')
    chief.call("agent.pause", name=nex.name)
    [number] = chief.say(nex, text="hello")["ids"]
    assert route(chief, max_, envelope=number)["outcome"] == "applied"
    wait_until(lambda: chief.get(number)["status"] == "done")
    said = chief.call("conversation.messages", **{"with": nex.address})["envelopes"]
    assert [(one["from"], one["text"]) for one in said if one["type"] != "event"] == [
        ("user:boss", "hello"),
        (max_.address, "max here"),
    ]
    assert f"routed-from: {nex.address}\n" in max_.turns()[0]
    assert mail(nex) == []


def test_what_a_run_has_in_hand_is_too_late_and_comes_after_a_requeue(team: Team, chief: Boss) -> None:
    nex, max_ = team.hire('wait_for("never")'), team.hire('print("max here")')
    [number] = chief.say(nex, text="hello")["ids"]
    wait_until(lambda: [one["status"] for one in nex.runs()] == ["running"])
    late = route(chief, max_, envelope=number)
    [run] = nex.runs()
    assert late["outcome"] == "too-late" and f"{run['id']} works on it" in late["why"]
    chief.call("agent.pause", name=nex.name)
    chief.call("control.send", event="stream.cancel", run=run["id"], requeue=True)
    wait_until(lambda: nex.runs()[0]["status"] != "running")
    assert route(chief, max_, envelope=number)["outcome"] == "applied"
    wait_until(lambda: chief.get(number)["status"] == "done")


def test_all_mail_of_an_agent_moves_at_once_while_more_of_it_comes(
    daemon: RunningDaemon, chief: Boss
) -> None:
    kai, nex, max_ = agents(daemon, 3)
    kai.flood(nex, 300)
    more: list[str] = []
    writer = threading.Thread(target=lambda: more.extend(kai.flood(nex, 300)))
    writer.start()
    outcome = route(chief, max_, agent=nex.name)
    writer.join()
    moved = int(outcome["why"].removeprefix("moved: "))
    assert moved >= 300
    last = route(chief, max_, agent=nex.name)
    moved += int((last["why"] or "moved: 0").removeprefix("moved: ")) if last["outcome"] == "applied" else 0
    assert moved == 600 and mail(nex) == []
    assert sum(map(len, max_.walk(page_size=100))) == 600


def test_a_conversation_is_routed_until_the_agent_itself_is_named(daemon: RunningDaemon, chief: Boss) -> None:
    nex, max_ = agents(daemon, 2)
    sent = chief.say(nex, text="one")
    assert route(chief, max_, conversation=sent["conversation"])["outcome"] == "applied"
    chief.say(nex, text="two")
    assert sorted(texts(mail(max_))) == ["one", "two"] and mail(nex) == []
    assert route(chief, nex, conversation=sent["conversation"])["outcome"] == "applied"
    assert sorted(texts(mail(nex))) == ["one", "two"] and mail(max_) == []


def test_a_route_survives_a_restart(daemon: RunningDaemon, chief: Boss) -> None:
    nex, max_ = agents(daemon, 2)
    number = chief.say(nex, text="one")["conversation"]
    route(chief, max_, conversation=number)
    daemon.stop()
    daemon.start()
    chief.say(nex, text="two")
    assert sorted(texts(mail(max_))) == ["one", "two"]
    route(chief, nex, conversation=number)


def test_routing_needs_the_right_and_shows_nothing_of_foreign_mail(
    daemon: RunningDaemon, chief: Boss
) -> None:
    kai, nex, max_ = agents(daemon, 3)
    sent = kai.send(nex)
    target = {"event": "stream.route", "to": max_.address}
    assert nex.refusal("control.send", **target, envelope=sent["ids"][0]) == "forbidden"
    assert max_.refusal("control.send", **target, envelope=sent["ids"][0]) == "not_found"
    assert max_.refusal("control.send", **target, conversation=sent["conversation"]) == "not_found"
    chief.call("agent.permission.set", name=nex.name, level="privileged")
    assert route(nex, max_, envelope=sent["ids"][0])["outcome"] == "applied"


def test_nobody_but_the_boss_moves_all_mail_of_another_agent(daemon: RunningDaemon, chief: Boss) -> None:
    kai, nex, spy = agents(daemon, 3)
    kai.send(nex, text="for nex alone")
    chief.call("agent.permission.set", name=spy.name, level="privileged")
    everything = {"event": "stream.route", "to": spy.address, "agent": nex.name}
    assert spy.refusal("control.send", **everything) == "boss_only"
    assert mail(spy) == [] and texts(mail(nex)) == ["for nex alone"]
    chief.call("agent.permission.set", name=nex.name, level="privileged")
    assert route(nex, spy, agent=nex.name)["outcome"] == "applied"
    assert texts(mail(spy)) == ["for nex alone"]


def test_a_run_routes_its_mail_with_the_right_of_its_agent(team: Team, chief: Boss) -> None:
    max_ = agent(team.daemon)
    nex = team.hire(
        f"""
number = re.search(r"(?m)^envelope-id: (e[0-9]+)$", TURN)[1]
found = call("envelope.get", id=number)["envelope"]
note(call("control.send", event="stream.route", to="{max_.address}", conversation=found["conversation"]))
print("max has it from now on")
"""
    )
    chief.say_and_wait(nex, text="one")
    assert nex.program.notes()[0]["code"] == "forbidden"
    chief.call("agent.permission.set", name=nex.name, level="privileged")
    chief.say_and_wait(nex, text="two")
    chief.say(nex, text="three")
    assert nex.program.notes()[1]["outcome"] == "applied"
    assert texts(mail(max_)) == ["three"]


def test_two_routes_at_once_leave_one_that_holds(daemon: RunningDaemon, chief: Boss) -> None:
    nex, *others = agents(daemon, 9)
    sent = chief.say(nex, text="one")
    answers = at_once(
        [lambda one=one: route(chief, one, conversation=sent["conversation"]) for one in others]
    )
    assert {one["outcome"] for one in answers} == {"applied"}
    chief.say(nex, text="two")
    has = [one for one in others if mail(one)]
    assert len(has) == 1 and sorted(texts(mail(has[0]))) == ["one", "two"]


def test_what_has_no_box_of_an_agent_gets_no_routed_mail(chief: Boss, nex: Party) -> None:
    [number] = chief.say(nex)["ids"]
    for to, why in {
        "user:boss": "route gives mail to an agent; to give a conversation to user:boss: handoff",
        "agent:background": "agent:background is no agent and no person: it has no box for this mail",
    }.items():
        answer = chief.call("control.send", event="stream.route", envelope=number, to=to)
        assert (answer["outcome"], answer["why"]) == ("refused", why)
    unknown = {"event": "stream.route", "envelope": number, "to": "agent:nobody-here"}
    assert chief.refusal("control.send", **unknown) == "unknown_address"
