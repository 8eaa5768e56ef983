"""Turns: which envelopes they contain, what a program gets, who gets turns, and what others see of runs."""

from __future__ import annotations

import re
from typing import Any

from tests.support.parties import agent
from tests.support.python_agents import QUIET, Boss, PythonAgent, Team, texts, wait_until_idle
from tests.support.waits import wait_until


def collected(ada: Boss, who: PythonAgent, *sends: Any) -> list[list[str]]:
    """Send these while it is paused; return the envelopes of each of its runs after it is resumed."""
    ada.call("agent.pause", name=who.name)
    for send in sends:
        send()
    ada.call_and_wait("agent.resume", name=who.name)
    return [run["envelopes"] for run in who.runs()]


def shown(turn: str) -> list[str]:
    """Return the envelopes of a turn, in the order shown."""
    return re.findall(r"(?m)^envelope-id: (e\d+)$", turn)


# --- what is in a turn ---------------------------------------------------------------------------


def test_a_turn_is_of_one_conversation(team: Team, ada: Boss) -> None:
    kai, zoe, bob = team.hire(QUIET), agent(ada.daemon), agent(ada.daemon)
    ids: list[str] = []
    runs = collected(
        ada,
        kai,
        *[lambda one=one: ids.append(one.tell(kai)) for one in (zoe, bob, zoe, bob)],
        lambda: ids.append(zoe.send(kai, bob)["ids"][0]),  # another conversation, with three members
    )
    assert runs == [[ids[0], ids[2]], [ids[1], ids[3]], [ids[4]]]


def test_a_turn_has_at_most_ten(team: Team, ada: Boss) -> None:
    kai, zoe = team.hire(QUIET), agent(ada.daemon)
    numbers: list[str] = []
    collected(ada, kai, lambda: numbers.extend(zoe.flood(kai, 23)))
    assert [shown(turn) for turn in kai.turns()] == [numbers[:10], numbers[10:20], numbers[20:]]


def test_who_follows_up_takes_one_at_a_time(team: Team, ada: Boss) -> None:
    kai, zoe = team.hire(QUIET, busy="followup"), agent(ada.daemon)
    numbers: list[str] = []
    assert collected(ada, kai, lambda: numbers.extend(zoe.flood(kai, 4))) == [[one] for one in numbers]
    ada.call("agent.set", name=kai.name, busy="collect")
    assert len(collected(ada, kai, lambda: zoe.flood(kai, 4))[-1]) == 4


def test_what_arrives_during_a_turn_is_in_the_next_one(team: Team, ada: Boss) -> None:
    kai, zoe = team.hire('wait_for("seen-due"); print("NO_REPLY")'), agent(ada.daemon)
    first = zoe.tell(kai)
    wait_until(kai.turns)
    more = [zoe.tell(kai), zoe.tell(kai)]
    assert ada.status(kai)["due"] == 2  # without the one that is being delivered
    team.let_go("seen-due")
    assert [run["envelopes"] for run in kai.runs()] == [[first], more]


def test_the_text_of_a_turn_is_the_text_of_its_preview_and_what_it_holds_is_not_due(
    team: Team, ada: Boss
) -> None:
    kai, zoe = team.hire('wait_for("counted"); print("NO_REPLY")'), agent(ada.daemon)
    ada.call("agent.pause", name=kai.name)
    numbers = [zoe.tell(kai), zoe.tell(kai)]
    other = ada.say(kai)["ids"]
    preview = ada.call("turn.preview", address=kai.address)
    ada.call("agent.resume", name=kai.name)
    wait_until(kai.turns)
    [turn] = kai.turns()
    assert shown(turn) == preview["envelopes"] == numbers
    assert turn.partition("\n")[2].strip() == preview["text"].partition("\n")[2].strip()  # but for `now:`
    assert "\npending: 3\n" in turn
    found = {one["name"]: one for one in ada.call("agent.team")["team"]}[kai.name]
    assert (found["due"], ada.status(kai)["due"]) == (1, 1)
    assert "\npending: 1\n" not in turn and other[0] not in turn
    team.let_go("counted")
    assert ada.status(kai)["due"] == 0


# --- who gets turns ------------------------------------------------------------------------------


def test_a_provider_makes_an_agent_that_fetches_one_that_is_given_turns(team: Team, ada: Boss) -> None:
    kai = team.hire(QUIET)
    ada.call("agent.set", name=kai.name, provider="none")
    fetches = ada.status(kai)
    assert (fetches["mode"], fetches["provider"], fetches["state"]) == ("pull", None, "fetches")
    number = ada.say_and_wait(kai)["ids"][0]
    assert kai.turns() == [] and ada.get(number)["status"] == "pending"
    changed = ada.call(
        "agent.set", name=kai.name, provider="command", settings={"command": kai.program.command}
    )
    assert (changed["mode"], changed["settings"]["command"]) == ("run", kai.program.command)
    wait_until_idle(ada.daemon)
    assert ada.get(number)["status"] == "done" and ada.status(kai)["state"] == "idle"


def test_an_agent_may_fetch_for_a_while_and_keep_its_provider(team: Team, ada: Boss) -> None:
    kai = team.hire(QUIET)
    changed = ada.call("agent.set", name=kai.name, mode="pull")
    assert (changed["mode"], changed["provider"]) == ("pull", "command")
    number = ada.say_and_wait(kai)["ids"][0]
    assert texts(kai.call("envelope.claim")["envelopes"]) == ["hello"] and kai.turns() == []
    kai.call("envelope.release", ids=[number])
    ada.call_and_wait("agent.set", name=kai.name, mode="run")
    assert kai.runs()[0]["envelopes"] == [number]


def test_what_cannot_work_is_refused_and_changes_nothing(team: Team, ada: Boss) -> None:
    kai, zoe = team.hire(QUIET), agent(ada.daemon)
    for who, fields, code in (
        (zoe, {"mode": "run"}, "no_provider"),
        (zoe, {"settings": {"command": "unclosed '"}}, "bad_provider"),
        (zoe, {"provider": "command"}, "bad_provider"),
        (zoe, {"provider": "comand", "settings": {"command": "x"}}, "bad_provider"),
        (kai, {"provider": "demo", "settings": {"command": "x"}}, "bad_provider"),
        (kai, {"settings": {"command": "unclosed '"}}, "bad_provider"),
        (kai, {"provider": "webhook", "settings": {"url": "http://example.org"}}, "bad_provider"),
        (kai, {"provider": "none", "settings": {"command": "x"}}, "invalid_params"),
        (kai, {"reply": "never"}, "invalid_params"),
        (kai, {"busy": "drop"}, "invalid_params"),
        (kai, {"daily_tokens": -1}, "invalid_params"),
    ):
        before = ada.call("agent.status", name=who.name)
        assert ada.refusal("agent.set", name=who.name, **fields) == code, fields
        assert ada.call("agent.status", name=who.name) == before


def test_a_paused_agent_gets_no_turn_and_loses_nothing(team: Team, ada: Boss) -> None:
    kai = team.hire(QUIET)
    assert ada.call("agent.pause", name=kai.name, reason="a day off") == {"name": kai.name, "changed": True}
    assert ada.call("agent.pause", name=kai.name, reason="another") == {"name": kai.name, "changed": False}
    number = ada.say_and_wait(kai)["ids"][0]
    found = ada.status(kai)
    assert (found["state"], found["why"], found["due"], found["until"]) == ("paused", "a day off", 1, None)
    assert found["oldest_unanswered_at"] == ada.get(number)["created_at"] and kai.turns() == []
    assert ada.call("agent.resume", name=kai.name)["changed"]
    wait_until_idle(ada.daemon)
    assert ada.get(number)["status"] == "done" and not ada.call("agent.resume", name=kai.name)["changed"]
    found = ada.status(kai)
    assert (found["state"], found["why"], found["oldest_unanswered_at"]) == ("idle", None, None)


# --- the status of agents ------------------------------------------------------------------------


def test_a_team_in_all_its_states(team: Team, ada: Boss) -> None:
    idle, fetches = team.hire(QUIET), agent(ada.daemon)
    running, paused, waiting = team.hire('wait_for("seen")'), team.hire(QUIET), team.hire(QUIET)
    ada.call("agent.set", name=waiting.name, settings={"command": "/no/such/program"})
    ada.call("agent.pause", name=paused.name)
    for one in (running, paused, waiting):
        ada.say(one)
    wait_until(running.turns)
    wait_until(lambda: ada.status(waiting)["state"] == "waiting")
    found = {one["name"]: one for one in ada.call("agent.team")["team"]}
    states = {one.name: found[one.name]["state"] for one in (idle, fetches, running, paused, waiting)}
    assert list(states.values()) == ["idle", "fetches", "running", "paused", "waiting"]
    assert [run["status"] for run in found[running.name]["running"]] == ["running"]
    assert found[running.name]["running"][0]["pid"] and found[running.name]["last_run"] is None
    assert found[waiting.name]["why"].startswith("the program /no/such/program was not found")
    assert found[waiting.name]["until"] and found[waiting.name]["last_run"]["error_kind"] == "no_program"
    assert found[idle.name]["last_run"] is None and found[idle.name]["due"] == 0
    for one in (running, paused, waiting):
        assert found[one.name] == ada.status(one)
        assert found[one.name]["due"] == (0 if one is running else 1)  # what is being delivered is not due

    # Others see its state, but not its runs.
    for other in (fetches, running):
        seen = {one["name"]: one for one in other.call("agent.team")["team"]}
        assert {name: seen[name]["state"] for name in states} == states
        assert bool(seen[running.name]["running"]) == (other is running)
        assert seen[waiting.name]["last_run"] is None
    team.place("seen").touch()
    ada.call_and_wait("agent.delete", name=waiting.name)


# --- what can be seen of runs ----------------------------------------------------------------------


def test_runs_are_listed_newest_first_in_pages(team: Team, ada: Boss) -> None:
    kai, zoe = team.hire(QUIET, busy="followup"), agent(ada.daemon)
    collected(ada, kai, lambda: zoe.flood(kai, 5))
    every = [one["id"] for one in kai.call("run.list")["runs"]]
    assert every == sorted(every, key=lambda one: -int(one[1:])) and len(every) == 5
    pages, after = [], None
    while True:
        page = kai.call("run.list", page_size=2, **({"after": after} if after else {}))
        pages.append([one["id"] for one in page["runs"]])
        after = page["next"]
        if after is None:
            break
    assert pages == [every[:2], every[2:4], every[4:]]


def test_runs_are_found_by_agent_status_and_trace(team: Team, ada: Boss) -> None:
    zoe = team.hire('print("fine")')
    kai = team.hire(f'send("{zoe.address}", "you?") if "how" in TEXTS[0] else sys.exit(3)')
    trace = ada.say_and_wait(kai, text="how?")["message"]

    def found(**params: Any) -> list[tuple[str, str]]:
        return [(one["agent"], one["status"]) for one in ada.call("run.list", **params)["runs"]]

    asked, answered, failed = (kai.name, "completed"), (zoe.name, "completed"), (kai.name, "failed")
    assert found(trace=trace) == [failed, answered, asked]
    assert found(agent=kai.name) == found(agent=kai.address) == [failed, asked]
    assert found(agent=kai.name, status="failed") == [failed]
    assert found(trace=trace, status="completed", agent=zoe.name) == [answered]
    assert found(trace="m0") == [] and found(agent=zoe.name, status="running") == []
    ada.call("agent.delete", name=kai.name)


def test_an_agent_sees_its_own_runs_and_no_others(team: Team, ada: Boss) -> None:
    kai, zoe = team.hire(QUIET), team.hire(QUIET)
    ada.say_and_wait(kai)
    [run] = kai.runs()
    assert kai.call("run.get", id=run["id"])["run"] == run == ada.call("run.get", id=run["id"])["run"]
    assert zoe.runs() == [] and zoe.refusal("run.list", agent=kai.name) == "boss_only"
    for method in ("run.get", "run.tail"):
        assert zoe.refusal(method, id=run["id"]) == "not_found"
        assert ada.refusal(method, id="r999999") == "not_found" and ada.refusal(method, id="e1") == "bad_id"
    assert kai.refusal("run.cancel", id=run["id"]) == "forbidden"
    assert ada.refusal("run.cancel", id=run["id"]) == "not_running"
    assert ada.refusal("run.list", agent="nobody") == "unknown_agent"
    assert (
        ada.refusal("run.list", after="e1") == "bad_id"
        and ada.refusal("run.list", status="done") == "invalid_params"
    )


def test_what_a_run_says_is_heard_while_it_goes_on(team: Team, ada: Boss) -> None:
    kai = team.hire("""
print(json.dumps({"hiboss": "tool", "name": "search", "text": "for words"}), flush=True)
print(json.dumps({"hiboss": "delta", "text": "Once "}), flush=True)
wait_for("told")
print(json.dumps({"hiboss": "delta", "text": "upon a time"}), flush=True)
""")
    ada.say(kai)
    wait_until(kai.runs)
    number = kai.runs()[0]["id"]
    wait_until(lambda: len(ada.call("run.tail", id=number)["parts"]) == 2)
    told = ada.call("run.tail", id=number)
    assert told["parts"] == [
        {"kind": "tool", "text": "search for words"},
        {"kind": "delta", "text": "Once "},
    ]
    later = ada.call("run.tail", id=number, after=told["next"])
    assert later["parts"] == [] and later["next"] == told["next"] and later["run"]["status"] == "running"
    team.place("told").touch()
    wait_until(lambda: ada.call("run.get", id=number)["run"]["status"] == "completed")
    wait_until(lambda: ada.call("run.tail", id=number)["parts"] == [])  # it is not stored
    assert ada.call("run.tail", id=number)["run"]["text"] == "Once upon a time"


def test_an_answer_stays_in_its_conversation_when_one_of_its_parties_was_deleted(
    team: Team, ada: Boss
) -> None:
    kai, zoe = team.hire('wait_for("two-left"); print("for those who are left")'), agent(ada.daemon)
    asked = ada.say(kai, zoe)
    wait_until(kai.runs)
    ada.call("agent.delete", name=zoe.name)
    team.let_go("two-left")
    [answer] = ada.list(**{"from": kai.address})
    assert (answer["text"], answer["conversation"]) == ("for those who are left", asked["conversation"])
