"""Right requests for the operations about asks, and about rules: the answers to permissions that are remembered."""

from __future__ import annotations

import shlex
import sys
from typing import Any

from tests.api.operation_runs import Answers, Case
from tests.support.parties import Party, agent
from tests.support.waits import wait_until

QUESTION = {"question": "Deploy?"}
FULL = {**QUESTION, "options": ["now", "later"], "timeout": "1h", "default": "later"}


def creates(case: Case) -> list[Any]:
    found = [
        case.ada.call("ask.create", **QUESTION),
        case.ada.call("ask.create", **FULL, to=case.bob.address),
    ]
    assert [one["ask"]["options"] for one in found] == [["yes", "no"], ["now", "later"]]
    assert not any(one["duplicate"] for one in found)
    return found


def _asked(case: Case) -> str:
    """Let ada ask bob; return the id of the ask."""
    return str(case.ada.call("ask.create", **FULL, to=case.bob.address)["ask"]["id"])


def answers(case: Case) -> list[Any]:
    found = [
        case.bob.call("ask.answer", id=_asked(case), choice="now"),
        case.boss.call("ask.answer", id=_asked(case), choice="2", comment="it rains", scope="once"),
    ]
    assert [one["ask"]["answer"] for one in found] == ["now", "later"]
    return found


def cancels(case: Case) -> list[Any]:
    found = [
        case.ada.call("ask.cancel", id=_asked(case)),
        case.boss.call("ask.cancel", id=_asked(case), reason="enough"),
    ]
    assert [one["ask"]["state"] for one in found] == ["cancelled"] * 2
    return found


def shows(case: Case) -> list[Any]:
    number = _asked(case)
    found = [one.call("ask.get", id=number) for one in (case.ada, case.bob, case.boss)]
    assert found[0]["ask"] == found[1]["ask"] == found[2]["ask"]
    return found


def lists(case: Case) -> list[Any]:
    numbers = [_asked(case) for _ in range(3)]
    found = [case.ada.call("ask.list", page_size=2), case.bob.call("ask.list", after=int(numbers[1][1:]))]
    found.append(case.boss.call("ask.list", state="all", page_size=1))
    assert [[one["id"] for one in page["asks"]] for page in found] == [
        numbers[:0:-1],
        numbers[:1],
        numbers[2:],
    ]
    return found


def waits(case: Case) -> list[Any]:
    number = _asked(case)
    found = [case.ada.call("ask.wait", id=number, timeout="0.01s")]
    case.boss.call("ask.answer", id=number, choice="now")
    found += [one.call("ask.wait", id=number) for one in (case.ada, case.bob)]
    assert [one["timed_out"] for one in found] == [True, False, False]
    return found


CALLS_OF_ASKS: dict[str, Answers] = {
    "ask.create": creates,
    "ask.answer": answers,
    "ask.cancel": cancels,
    "ask.get": shows,
    "ask.list": lists,
    "ask.wait": waits,
}

PERMITS = """import json, sys
say = lambda kind, **more: print(json.dumps({"hiboss": kind, **more}), flush=True)
hear = lambda: json.loads(sys.stdin.readline())
hear()
for command in ("git status", "git push"):
    say("ask", text="May I run this?", tool="Bash", detail=command, subject=command)
    hear()
say("final", text="done")
"""


def rule_of(case: Case) -> tuple[Party, list[Any]]:
    """Return an agent with two rules, and these rules, newest first."""
    command = shlex.join([sys.executable, "-I", "-S", "-c", PERMITS])
    asking = agent(case.daemon, settings={"command": command, "input": "open"})
    case.boss.send(asking, from_="user:boss", text="work")
    for number in (1, 2):
        wait_until(lambda: asking.call("ask.list")["asks"])
        [asked] = asking.call("ask.list")["asks"]
        case.boss.call("ask.answer", id=asked["id"], choice="allow", scope="rule")
        wait_until(lambda: len(asking.call("ask.rules")["rules"]) == number)  # noqa: B023 - called here
    return asking, asking.call("ask.rules")["rules"]


def lists_rules(case: Case) -> list[Any]:
    asking, rules = rule_of(case)
    found = [asking.call("ask.rules", page_size=1), asking.call("ask.rules", after=rules[0]["number"])]
    found += [case.boss.call("ask.rules", agent=asking.name), case.ada.call("ask.rules")]
    assert [len(one["rules"]) for one in found] == [1, 1, 2, 0] and found[0]["next"] == rules[0]["number"]
    return found


def removes(case: Case) -> list[Any]:
    asking, rules = rule_of(case)
    found = [case.boss.call("ask.rule.remove", number=rules[0]["number"]) for _ in range(2)]
    assert [one["changed"] for one in found] == [True, False]
    assert asking.call("ask.rules")["rules"] == rules[1:]
    return found


CALLS_OF_RULES: dict[str, Answers] = {"ask.rules": lists_rules, "ask.rule.remove": removes}
