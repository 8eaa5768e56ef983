"""What an operation is tried with, and right requests for those about runs, people and conversations."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hiboss.testing.running_daemon import RunningDaemon
from tests.support.parties import Party, agent, agents, boss
from tests.support.waits import wait_until


class Case:
    """What an operation is tried with: two agents, mail of every kind between them, a file."""

    def __init__(self, daemon: RunningDaemon, directory: Path) -> None:
        self.daemon = daemon
        self.boss = boss(daemon)
        self.ada, self.bob = agents(daemon, 2)
        file = directory / "file.txt"
        file.write_text("file")
        full = {
            "subject": "s",
            "type": "markdown",
            "priority": "high",
            "attachments": [str(file)],
            "trace_id": "t",
            "metadata": {"a": [1, None, {"b": 0.5}]},
            "key": "k",
        }
        self.full = full
        self.numbers = [self.ada.tell(self.bob), self.ada.tell(self.bob, **full)]
        self.numbers += [self.bob.tell(self.ada, reply_to=self.numbers[0])]
        self.deferred = self.ada.tell(self.bob, deliver_at="+2h")
        gone = agent(daemon)
        self.failed = self.ada.tell(gone)
        self.boss.call("agent.delete", name=gone.name)
        self.boss.send(self.bob, from_="user:boss", from_boss=True, from_name="Ada")
        self.folder = str(directory / self.ada.name)

    def bind(self, agent: Party) -> Any:
        """Let an agent use a folder that has the name of ada."""
        return self.boss.call(
            "agent.bind", name=agent.name, adapter_type="folder", settings={"path": self.folder}
        )

    def unbind(self, agent: Party, **params: Any) -> Any:
        return self.boss.call("agent.unbind", name=agent.name, adapter_type="folder", **params)

    def lane(self, verb: str) -> Any:
        address = f"channel:folder:{self.ada.name}"
        return self.boss.call(f"lane.{verb}", **({} if verb == "list" else {"address": address}))


Answers = Callable[[Case], list[Any]]


def _thinker(case: Case, program: str = "echo fine") -> Party:
    """An agent with a program, to whom the boss has said something."""
    thinker = agent(case.daemon, provider="command", settings={"command": f"sh -c '{program}'"})
    case.boss.send(thinker, from_="user:boss", text="think")
    return thinker


def _run_of(case: Case, thinker: Party, status: str) -> str:
    """The id of its first run that stands like this."""
    found: list[Any] = []

    def there() -> bool:
        found[:] = thinker.call("run.list", status=status)["runs"]
        return bool(found)

    wait_until(there)
    return str(found[-1]["id"])


def _heard(thinker: Party, number: str) -> Any:
    """The first that a run says; one that has only just begun says nothing yet."""
    wait_until(lambda: thinker.call("run.tail", id=number)["parts"])
    return thinker.call("run.tail", id=number)


def run_lists(case: Case) -> list[Any]:
    """One that went well, one that did not, one that goes on; from both sides, and page by page."""
    done, odd, busy = (_thinker(case, program) for program in ("echo fine", "exit 3", "exec sleep 1000"))
    numbers = {_run_of(case, one, status) for one, status in ((done, "completed"), (odd, "failed"))}
    going = _run_of(case, busy, "running")
    found = [case.boss.call("run.list", page_size=1), done.call("run.list", agent=done.name)]
    found += [case.boss.call("run.list", after=found[0]["next"], status="failed", trace="m1")]
    found += [one.call("run.list") for one in (busy, odd, case.ada)]
    assert found[0]["next"] and numbers >= {found[1]["runs"][0]["id"]} and found[-1]["runs"] == []
    case.boss.call("run.cancel", id=going)
    case.boss.call("agent.pause", name=odd.name)
    return found


def run_gets(case: Case) -> list[Any]:
    thinker = _thinker(case)
    number = _run_of(case, thinker, "completed")
    found = [one.call("run.get", id=number) for one in (thinker, case.boss)]
    found += [case.boss.call("run.get", id=number, turn=True)]
    assert found[2]["turn"].startswith("now: ") and found[2]["run"] == found[0]["run"]
    assert found[0] == found[1] and found[0]["run"]["text"] == "fine" and found[0]["run"]["answer"]
    return found


def run_tails(case: Case) -> list[Any]:
    """Of one that talks, with what it says; of the same when nothing more comes; and of one that is over."""
    thinker = _thinker(case, "echo one; exec sleep 1000")
    number = _run_of(case, thinker, "running")
    found = [_heard(thinker, number)]
    found += [case.boss.call("run.tail", id=number, after=found[0]["next"])]
    assert [[part["text"] for part in one["parts"]] for one in found] == [["one\n"], []]
    case.boss.call("run.cancel", id=number)
    _run_of(case, thinker, "cancelled")
    found += [thinker.call("run.tail", id=number)]
    assert found[-1]["run"]["status"] == "cancelled"
    return found


def steers_run(verb: str) -> Answers:
    """Of one that goes on: twice, where the second time may change nothing."""

    def asked(case: Case) -> list[Any]:
        thinker = _thinker(case, "echo one; exec sleep 1000")
        number = _run_of(case, thinker, "running")
        _heard(thinker, number)  # its program runs
        if verb == "resume":
            case.boss.call("run.pause", id=number)
        words = {"reason": "why not"} if verb == "cancel" else {}
        found = [case.boss.call(f"run.{verb}", id=number, **words)]
        if verb != "cancel":
            found += [case.boss.call(f"run.{verb}", id=number)]
            assert case.boss.call("run.get", id=number)["run"]["paused"] is (verb == "pause")
            case.boss.call("run.cancel", id=number)
        assert [one["changed"] for one in found] == [True, False][: len(found)]
        _run_of(case, thinker, "cancelled")
        return found

    return asked


def controls(case: Case) -> list[Any]:
    """One of each outcome, and all three about something else."""
    thinker = _thinker(case, "echo one; exec sleep 1000")
    number = _run_of(case, thinker, "running")
    _heard(thinker, number)
    meant = {"run": number, "reason": "a look", "meta": {"a": 1}}
    found = [case.boss.call("control.send", event="stream.pause", **meant)]
    found += [case.boss.call("control.send", event="stream.pause", agent=case.bob.name)]
    found += [case.boss.call("control.send", event="stream.pause", agent=case.bob.name)]
    found += [case.boss.call("control.send", event="stream.cancel", run=number)]
    _run_of(case, thinker, "cancelled")
    found += [case.boss.call("control.send", event="stream.cancel", run=number, requeue=True)]
    assert [one["outcome"] for one in found] == ["applied", "applied", "refused", "applied", "too-late"]
    case.boss.call("agent.resume", name=case.bob.name)
    return found


def control_lists(case: Case) -> list[Any]:
    controls(case)
    found = [case.boss.call("control.list", page_size=2)]
    found += [case.boss.call("control.list", after=found[0]["next"], actor="user:boss")]
    found += [case.bob.call("control.list"), case.boss.call("control.list", agent=case.bob.name)]
    conversation = found[1]["controls"][0]["conversation"]
    found += [case.boss.call("control.list", conversation=conversation)]
    assert found[0]["next"] and all(one["controls"] for one in found)
    return found


TALKS = """import json, sys
say = lambda kind, **more: print(json.dumps({"hiboss": kind, **more}), flush=True)
hear = lambda: json.loads(sys.stdin.readline())
hear()
say("ask", text="now?", options=["yes", "no"])
say("final", text=hear()["hiboss"])
"""


def talks(verb: str) -> Answers:
    """Of a run that asks, and takes words: in the middle of its turn."""

    def asked(case: Case) -> list[Any]:
        command = shlex.join([sys.executable, "-I", "-S", "-c", TALKS])
        thinker = agent(case.daemon, settings={"command": command, "input": "open"})
        case.boss.send(thinker, from_="user:boss", text="think")
        number = _run_of(case, thinker, "running")
        wait_until(lambda: case.boss.call("run.get", id=number)["questions"])
        words = {"steer": {"text": "hurry"}}
        found = [case.boss.call(f"run.{verb}", id=number, **words[verb])]
        _run_of(case, thinker, "completed")
        assert case.boss.call("run.get", id=number)["run"]["text"] == verb
        return found

    return asked


def statuses(case: Case) -> list[Any]:
    """Of one who fetches, one at work, one whose run is over; as others see it, too."""
    done, busy = _thinker(case), _thinker(case, "exec sleep 1000")
    _run_of(case, done, "completed")
    going = _run_of(case, busy, "running")
    found = [case.ada.call("agent.status", name=one.name) for one in (case.bob, done, busy)]
    found += [case.boss.call("agent.status", name=one.name) for one in (done, busy)]
    assert [one["agent"]["state"] for one in found] == ["fetches", "idle", "running", "idle", "running"]
    assert [bool(one["agent"]["last_run"]) for one in found] == [False, False, False, True, False]
    case.boss.call("run.cancel", id=going)
    return found


def checks(case: Case) -> list[Any]:
    """Of a provider that needs nothing else, by the boss and by itself; and of another one."""
    worker = _thinker(case)
    found = [one.call("agent.check", name=worker.name) for one in (case.boss, worker)]
    found.append(case.boss.call("agent.check", name=worker.name, provider="claude"))
    assert [one["found"] is None for one in found] == [True, True, False]
    return found


def sessions(verb: str) -> Answers:
    """Of one that has a session, by the boss and by itself; and of one that has none."""

    def asked(case: Case) -> list[Any]:
        line = json.dumps({"hiboss": "session", "id": "s-1"}).replace('"', '\\"')
        thinker = _thinker(case, f'echo "{line}"; echo fine')
        _run_of(case, thinker, "completed")
        found = [case.boss.call("agent.sessions", name=one.name) for one in (thinker, case.ada)]
        found.append(thinker.call("agent.sessions", name=thinker.name))
        assert [one["resumed"] for one in found[0]["sessions"]] == [True] and found[1]["sessions"] == []
        if verb == "sessions":
            return found
        number = case.boss.call("conversation.messages", **{"with": thinker.address})["conversation"]
        ended = [case.boss.call("agent.refresh", name=thinker.name, conversation=number)]
        ended.append(case.boss.call("agent.refresh", name=thinker.name))
        assert [one["ended"] for one in ended] == [1, 0]
        return ended

    return asked


def pauses(verb: str) -> Answers:
    def asked(case: Case) -> list[Any]:
        if verb == "resume":
            case.boss.call("agent.pause", name=case.ada.name)
        found = [case.boss.call(f"agent.{verb}", name=case.ada.name) for _ in range(2)]
        assert [one["changed"] for one in found] == [True, False]
        return found

    return asked


def backgrounds(case: Case) -> list[Any]:
    """By an agent itself, and by the boss for it; the result comes back to the agent."""
    thinker = agent(case.daemon, provider="command", settings={"command": "echo NO_REPLY"})
    found = [thinker.call("agent.background", task="this", subject="s")]
    found += [case.boss.call("agent.background", task="that", agent=thinker.name)]
    wait_until(lambda: len(thinker.call("run.list", status="completed")["runs"]) >= 2)
    return found


def said(case: Case) -> list[Any]:
    """Between two who wrote to each other, between two who did not, and as the boss sees it."""
    found = [case.ada.call("conversation.messages", **{"with": case.bob.address})]
    found += [case.ada.call("conversation.messages", **{"with": case.bob.address}, page_size=1, before=3)]
    found += [case.ada.call("conversation.messages", **{"with": "agent:nex"})]
    other = {"with": case.bob.address, "address": case.ada.address}
    found += [case.boss.call("conversation.messages", **other)]
    assert [len(one["envelopes"]) for one in found] == [3, 1, 0, 3] and found[1]["more"]
    return found


def news(case: Case) -> list[Any]:
    """With something said, with nothing new, and while the other one is at work."""
    asked = {"with": case.bob.address}
    found = [case.ada.call("conversation.news", **asked, after=0)]
    found += [case.ada.call("conversation.news", **asked, after=found[0]["last"])]
    thinker = _thinker(case, "echo one; exec sleep 1000")
    number = _run_of(case, thinker, "running")
    _heard(thinker, number)
    busy = {"with": thinker.address, "address": "user:boss"}
    found += [case.boss.call("conversation.news", **busy, after=1)]
    live = found[-1]["run"]
    assert found[0]["envelopes"] and not found[1]["envelopes"] and live["id"] == number and live["parts"]
    case.boss.call("run.cancel", id=number)
    return found


def persons(case: Case) -> list[Any]:
    name = f"{case.ada.name}-p"
    found = [case.boss.call("user.register", name=name, display="P", profile=True)]
    found += [case.boss.call("user.register", name=f"{name}2")]
    assert case.daemon.call("agent.self", token=found[0]["token"])["address"] == f"user:{name}"
    return found


def with_person(verb: str, *answers: dict[str, Any]) -> Answers:
    def asked(case: Case) -> list[Any]:
        name = persons(case)[0]["user"]["name"]
        return [case.boss.call(f"user.{verb}", name=name, **words) for words in answers]

    return asked


def provided(case: Case) -> list[Any]:
    """In each of the three ways, and without any again."""
    ways: tuple[dict[str, Any], ...] = (
        {"provider": "demo", "busy": "followup", "daily_tokens": 5},
        {"provider": "command", "settings": {"command": "echo"}, "reply": "explicit", "daily_cost": 0.5},
        {"provider": "webhook", "settings": {"url": "http://127.0.0.1:1/"}},
        {"settings": {"url": "http://127.0.0.1:2/"}},
        {
            "provider": "none",
            "daily_tokens": 0,
            "daily_cost": 0,
            "session_scope": "agent",
            "session_idle": "6h",
        },
    )
    found = [case.boss.call("agent.set", name=case.bob.name, **way) for way in ways]
    assert [one["mode"] for one in found] == ["run"] * 4 + ["pull"]
    assert [one["provider"] for one in found] == ["demo", "command", "webhook", "webhook", None]
    assert ["secrets" in one for one in found] == [False, False, True, False, False]
    return found


def presences(case: Case) -> list[Any]:
    persons(case)
    _thinker(case)
    return [
        case.ada.call("presence.get", address=one) for one in ("user:boss", case.bob.address, case.bob.name)
    ]


def typings(case: Case) -> list[Any]:
    number = case.ada.call("conversation.messages", **{"with": case.bob.address})["conversation"]
    calls = ({}, {"on": True}, {"on": False}, {"on": False})
    found = [case.ada.call("presence.typing", conversation=number, **one) for one in calls]
    assert [one["changed"] for one in found] == [True, False, True, False]
    return found


def watches(case: Case) -> list[Any]:
    """Ask to be told of an agent that is busy, and of one that is idle."""
    idle = agent(case.daemon)
    found = [
        case.ada.call("agent.notify", name=case.bob.name, when=one) for one in ("idle", "waiting", "finished")
    ]
    found += [case.boss.call("agent.notify", name=idle.name, when="idle")]
    assert [one["told"] for one in found] == [False, False, False, True]
    return found


CALLS_OF_RUNS: dict[str, Answers] = {
    "presence.get": presences,
    "presence.list": lambda case: [one.call("presence.list") for one in (case.ada, case.boss)],
    "presence.typing": typings,
    "agent.notify": watches,
    "agent.notify.list": lambda case: [
        watches(case) and one.call("agent.notify.list") for one in (case.ada, case.boss)
    ],
    "agent.notify.remove": lambda case: [
        watches(case) and case.ada.call("agent.notify.remove", name=case.bob.name, when="idle"),
        case.ada.call("agent.notify.remove", name=case.bob.name),
    ],
    "agent.status": statuses,
    "agent.check": checks,
    "agent.team": lambda case: [_thinker(case) and one.call("agent.team") for one in (case.ada, case.boss)],
    "agent.briefing": lambda case: [
        *(one.call("agent.briefing") for one in (case.ada, case.bob, case.boss)),
        case.boss.call("agent.briefing", name=case.ada.name),
    ],
    "agent.instructions": lambda case: [
        one.call("agent.instructions", name=case.ada.name) for one in (case.ada, case.boss)
    ],
    "agent.sessions": sessions("sessions"),
    "agent.refresh": sessions("refresh"),
    "agent.pause": pauses("pause"),
    "agent.resume": pauses("resume"),
    "agent.background": backgrounds,
    "run.list": run_lists,
    "run.get": run_gets,
    "run.tail": run_tails,
    "run.cancel": steers_run("cancel"),
    "run.pause": steers_run("pause"),
    "run.resume": steers_run("resume"),
    "control.send": controls,
    "control.list": control_lists,
    "run.steer": talks("steer"),
    "provider.list": lambda case: [one.call("provider.list") for one in (case.boss, case.ada)],
    "event.subscribe": lambda case: [case.ada.call("event.subscribe", topics=["envelope.read"])],
    "event.unsubscribe": lambda case: [case.ada.call("event.unsubscribe", subscription=1)],
    "conversation.messages": said,
    "conversation.news": news,
    "user.register": persons,
    "user.list": lambda case: [persons(case) and case.boss.call("user.list"), case.ada.call("user.list")],
    "user.delete": with_person("delete", {}),
    "user.token.rotate": with_person("token.rotate", {}, {"profile": False}, {"profile": True}),
}
