"""Right requests for the operations about rules: the answers to permissions that are remembered."""

from __future__ import annotations

import shlex
import sys
from typing import Any

from tests.api.operation_runs import Answers, Case
from tests.support.daemons import wait_until
from tests.support.parties import Party, agent

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


def lists(case: Case) -> list[Any]:
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


CALLS_OF_RULES: dict[str, Answers] = {"ask.rules": lists, "ask.rule.remove": removes}
