"""What others are shown of an agent: live output only where the answer goes, and no error texts."""

from __future__ import annotations

from hiboss.testing.running_daemon import RunningDaemon
from tests.support.daemons import wait_until
from tests.support.parties import Party, agent
from tests.support.python_agents import Boss, Team, wait_until_idle


def test_live_output_is_shown_only_where_the_answer_goes(team: Team, ada: Boss) -> None:
    lin = team.hire('print("my opinion")')
    kai = team.hire(f"""
if "ask" in TURN: send("{lin.address}", "your opinion?"); print("I will ask.")
else: print("Dear boss, lin is wrong.", flush=True); wait_for("go-on")
""")
    ada.say(kai, text="ask lin")
    wait_until(lambda: len(kai.turns()) == 2)  # the second is about the answer of lin, and goes to the boss
    try:
        heard: list[str] = []

        def live() -> bool:
            found = ada.call("conversation.news", **{"with": kai.address}, after=10**9)["run"]
            heard.extend(part["text"] for part in (found or {"parts": []})["parts"])
            return "Dear boss" in "".join(heard)

        wait_until(live)
        seen = lin.call("conversation.news", **{"with": kai.address}, after=10**9)
        assert seen["run"] is None
    finally:
        team.place("go-on").touch()
    wait_until_idle(team.daemon)


def test_live_output_that_is_never_sent_is_shown_to_the_boss_alone(team: Team, ada: Boss) -> None:
    lin = team.hire("")
    kai = team.hire('print("my thoughts", flush=True); wait_for("think-on")', reply="explicit")
    lin.tell(kai)
    try:
        wait_until(kai.turns)
        number = kai.runs()[0]["id"]
        wait_until(lambda: ada.call("run.tail", id=number)["parts"])
        follow = {"with": kai.address, "after": 10**9}
        assert lin.call("conversation.news", **follow)["run"] is None
        seen = ada.call("conversation.news", **follow, address=lin.address)["run"]
        assert "my thoughts" in "".join(part["text"] for part in seen["parts"])
    finally:
        team.place("think-on").touch()
    wait_until_idle(team.daemon)


def test_why_an_agent_waits_is_told_to_the_boss_and_the_agent_alone(daemon: RunningDaemon, ada: Boss) -> None:
    kai, lin = agent(daemon, settings={"command": "/nowhere/secret-program"}), agent(daemon)
    ada.tell(kai, text="hello")

    def state(who: object) -> tuple[str | None, str | None]:
        found = who.call("conversation.news", **{"with": kai.address}, after=10**9)  # type: ignore[attr-defined]
        return found["state"], found["why"]

    wait_until(lambda: state(ada)[0] == "waiting")
    assert "secret-program" in (state(ada)[1] or "")
    assert state(lin) == ("waiting", None)


def test_the_error_of_an_agents_turn_is_told_by_no_list_of_lanes(daemon: RunningDaemon, ada: Boss) -> None:
    kai, lin = agent(daemon, settings={"command": "/nowhere/secret-program"}), agent(daemon)
    ada.call("agent.permission.set", name=lin.name, level="privileged")
    ada.tell(kai, text="hello")

    def error(method: str, who: Party | None) -> str | None:
        answer = daemon.call(method) if who is None else who.call(method)
        (lane,) = [one for one in answer["lanes"] if one["address"] == kai.address]
        found: str | None = lane["last_error"]
        return found

    wait_until(lambda: ada.status(kai)["state"] == "waiting")
    assert [error("daemon.status", who) for who in (None, lin)] == [None, None]
    assert error("lane.list", lin) is None
    for who, method in ((ada, "daemon.status"), (ada, "lane.list"), (kai, "daemon.status")):
        assert "secret-program" in (error(method, who) or "")
