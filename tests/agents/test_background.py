"""Tasks in the background: single runs of the sender's own provider, at the same time as its turns."""

from __future__ import annotations

import pytest

from tests.support.parties import Envelope, Party, agent
from tests.support.python_agents import Boss, PythonAgent, Run, Team, texts, wait_until_idle
from tests.support.waits import wait_until

BACKGROUND = "agent:background"
# In the background it does the task; in a turn it reads what came.
DOER = """
if "task" in TEXTS[0] and "result" not in TEXTS[0]: print("result of " + TEXTS[0])
else: note(TEXTS)
"""


def background(who: PythonAgent) -> list[Run]:
    return [one for one in who.runs() if one["kind"] == "background"]


def from_background(who: Party) -> list[Envelope]:
    return [one for one in who.list(oldest_first=True, page_size=100) if one["from"] == BACKGROUND]


# --- by the operation, and by the address ------------------------------------------------------


@pytest.mark.parametrize("way", ["operation", "address"])
def test_the_result_comes_in_the_same_thread_as_an_automatic_message(team: Team, ada: Boss, way: str) -> None:
    kai = team.hire(DOER)
    if way == "operation":
        sent = kai.call("agent.background", task="task 1", subject="work")
    else:
        sent = kai.send(BACKGROUND, text="task 1", subject="work")
    wait_until_idle(ada.daemon)
    [result] = from_background(kai)
    assert (result["text"], result["auto"], result["to"]) == ("result of task 1", True, kai.address)
    assert (result["reply_to"], result["thread"], result["conversation"]) == (
        sent["message"],
        sent["thread"],
        sent["conversation"],
    )
    [run] = background(kai)
    assert run == run | {"status": "completed", "provider": "command", "envelopes": sent["ids"], "hops": 0}
    assert (result["run"], result["trace"], result["hops"]) == (run["id"], sent["message"], 1)
    assert ada.get(sent["ids"][0])["status"] == "done"
    # It was read in a turn and not answered: it makes no task.
    [turn] = [one for one in kai.runs() if one["kind"] == "turn"]
    assert turn["envelopes"] == [result["id"]] and turn["answer"] is None
    assert kai.program.notes() == [["result of task 1"]]


def test_what_it_is_shown_is_the_task_and_no_more(team: Team, ada: Boss) -> None:
    kai = team.hire(DOER)
    kai.send(BACKGROUND, text="task 1")
    kai.send(BACKGROUND, text="task 2")
    wait_until_idle(ada.daemon)
    shown = [turn for turn in kai.turns() if f"to: {BACKGROUND}" in turn]
    assert sorted(turn.count("envelope-id:") for turn in shown) == [1, 1]
    assert all(turn.splitlines()[1] == f"agent: {kai.name}" for turn in shown)
    assert sorted(texts(from_background(kai))) == ["result of task 1", "result of task 2"]


def test_given_from_within_a_turn_the_result_finds_its_way_to_who_asked(team: Team, ada: Boss) -> None:
    kai = team.hire("""
if TEXTS[0] == "please": call("agent.background", task="dig")
elif TEXTS[0] == "dig": print("a bone")
else: print("found: " + TEXTS[0])
""")
    asked = ada.say_and_wait(kai, text="please")
    [heard] = ada.heard(kai)
    assert (heard["text"], heard["reply_to"], heard["trace"]) == (
        "found: a bone",
        asked["message"],
        asked["message"],
    )
    runs = ada.call("run.list", trace=asked["message"])["runs"]
    assert [(one["kind"], one["hops"]) for one in reversed(runs)] == [
        ("turn", 0),
        ("background", 1),
        ("turn", 2),
    ]


def test_what_a_task_asks_of_others_finds_its_way_to_who_asked_for_the_task(team: Team, ada: Boss) -> None:
    zoe = team.hire('print("an answer")')
    kai = team.hire(f"""
if TEXTS[0] == "please": call("agent.background", task="dig")
elif TEXTS[0] == "dig": send("{zoe.address}", "what do you know?")
else: print("heard: " + TEXTS[0])
""")
    asked = ada.say_and_wait(kai, text="please")
    assert len(background(kai)) == 1
    assert texts(ada.heard(kai)) == ["heard: an answer"] and ada.heard(kai)[0]["reply_to"] == asked["message"]


def test_what_a_task_asks_of_others_never_becomes_a_task(team: Team, ada: Boss) -> None:
    zoe = team.hire('print("an answer")')
    kai = team.hire(f"""
if TEXTS[0] == "dig": send("{zoe.address}", "what do you know?")
else: print("heard: " + TEXTS[0])
""")
    kai.call("agent.background", task="dig")  # outside a run: there is no conversation to answer to
    wait_until_idle(ada.daemon)
    assert len(background(kai)) == 1
    last = kai.runs()[-1]
    assert (last["text"], last["answer"]) == ("heard: an answer", None)


def test_a_task_without_a_result_sends_nothing(team: Team, ada: Boss) -> None:
    kai = team.hire("")
    kai.call_and_wait("agent.background", task="think of nothing")
    assert from_background(kai) == [] and [one["status"] for one in kai.runs()] == ["completed"]


def test_the_result_comes_also_to_an_agent_that_sends_its_answers_itself(team: Team, ada: Boss) -> None:
    kai = team.hire(DOER, reply="explicit")
    kai.call_and_wait("agent.background", task="task")
    assert texts(from_background(kai)) == ["result of task"]


def test_an_agent_that_fetches_its_mail_can_have_tasks_done(team: Team, ada: Boss) -> None:
    kai = team.hire(DOER, mode="pull")
    kai.call_and_wait("agent.background", task="task")
    assert texts(kai.call("envelope.claim")["envelopes"]) == ["result of task"]


def test_the_boss_gives_a_task_in_an_agents_name(team: Team, ada: Boss) -> None:
    kai = team.hire(DOER)
    threads = [
        ada.call("agent.background", task="task", agent=name)["thread"] for name in (kai.name, kai.address)
    ]
    wait_until_idle(ada.daemon)
    results = [one for one in from_background(ada) if one["thread"] in threads]
    assert texts(results) == ["result of task"] * 2 and from_background(kai) == []


# --- at the same time as turns -----------------------------------------------------------------


def test_a_task_goes_on_beside_a_turn_and_a_turn_beside_tasks(team: Team, ada: Boss) -> None:
    """Each waits for a file that only another one makes."""
    kai = team.hire("""
if TEXTS[0] == "turn": open(HERE + "/turn", "w"); wait_for("task 1"); wait_for("task 2"); print("turn over")
elif TEXTS[0].startswith("task"): open(HERE + "/" + TEXTS[0], "w"); wait_for("turn"); wait_for("task 1"); wait_for("task 2")
""")
    ada.say(kai, text="turn")
    wait_until(lambda: team.place("turn").exists())
    kai.call("agent.background", task="task 1")
    kai.call_and_wait("agent.background", task="task 2")
    assert texts(ada.heard(kai)) == ["turn over"]
    assert [one["status"] for one in kai.runs()] == ["completed"] * 3


def test_an_agent_whose_task_is_under_way_is_idle_and_the_task_is_seen(team: Team, ada: Boss) -> None:
    kai = team.hire('wait_for("seen")')
    kai.call("agent.background", task="long")
    wait_until(kai.turns)
    found = ada.status(kai)
    assert (found["state"], [one["kind"] for one in found["running"]]) == ("idle", ["background"])
    team.let_go("seen")


def test_more_tasks_than_places_are_all_done(team: Team, ada: Boss) -> None:
    kai = agent(ada.daemon, provider="demo")
    ada.call("agent.pause", name=kai.name)
    number = 105  # more than the runner reads at once
    tasks = kai.flood(Party(ada.daemon, BACKGROUND, ""), number)
    ada.call("agent.resume", name=kai.name)
    with ada.daemon.database() as database:
        marks = ",".join("?" * number)
        query = f"SELECT count(*) FROM envelope WHERE status = 1 AND id IN ({marks})"
        values = [int(one[1:]) for one in tasks]
        wait_until(lambda: database.execute(query, values).fetchone()[0] == number)
    ada.call("agent.delete", name=kai.name)


def test_tasks_of_a_paused_agent_wait_and_keep_nobody_elses_back(team: Team, ada: Boss) -> None:
    kai, zoe = agent(ada.daemon, provider="demo"), team.hire(DOER)
    ada.call("agent.pause", name=kai.name)
    tasks = kai.flood(Party(ada.daemon, BACKGROUND, ""), 201)  # more than the event loop looks through
    zoe.call("agent.background", task="task")
    wait_until(lambda: from_background(zoe))
    assert {ada.get(one)["status"] for one in tasks[:3]} == {"pending"}
    ada.call_and_wait("agent.delete", name=kai.name)


# --- the agent's status ----------------------------------------------------------------------


def test_tasks_wait_for_a_provider_that_was_taken_away(team: Team, ada: Boss) -> None:
    kai = team.hire(DOER)
    ada.call("agent.pause", name=kai.name)
    sent = kai.call("agent.background", task="task")
    ada.call("agent.set", name=kai.name, provider="none")
    ada.call("agent.resume", name=kai.name)
    assert ada.get(sent["ids"][0])["status"] == "pending"
    ada.call("agent.set", name=kai.name, provider="command", settings={"command": kai.program.command})
    ada.wait_until_idle_and(lambda: texts(from_background(kai)) == ["result of task"])


def test_tasks_of_an_agent_whose_tokens_were_revoked_go_on_with_a_new_one(team: Team, ada: Boss) -> None:
    kai = team.hire(DOER)
    ada.call("agent.token.revoke", name=kai.name)
    sent = ada.call("agent.background", task="task", agent=kai.name)
    assert ada.get(sent["ids"][0])["status"] == "pending" and kai.turns() == []
    kai.token = ada.call("agent.token.rotate", name=kai.name)["token"]
    ada.wait_until_idle_and(
        lambda: [one for one in from_background(ada) if one["thread"] == sent["thread"]] != []
    )


def test_tasks_of_an_agent_that_was_deleted_fail(team: Team, ada: Boss) -> None:
    kai = team.hire(DOER)
    ada.call("agent.pause", name=kai.name)
    sent = kai.call("agent.background", task="task")
    ada.call("agent.delete", name=kai.name)
    assert ada.get(sent["ids"][0])["status"] == "failed"


# --- refusals ------------------------------------------------------------------------------------
