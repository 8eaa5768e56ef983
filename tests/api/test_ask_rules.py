"""Rules at the socket: who sees them, who takes them back, page by page."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hiboss.testing.running_daemon import RunningDaemon
from tests.agents.test_permission_asks import PERMITS, asked, does
from tests.support.daemons import daemon_with
from tests.support.parties import agent
from tests.support.shell_agents import Boss, Worker, end_all
from tests.support.waits import wait_until


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDaemon]:
    with daemon_with(tmp_path_factory.mktemp("d"), finish_seconds=0.1) as running:
        yield running
        end_all(running)
        running.check()


@pytest.fixture
def ada(daemon: RunningDaemon) -> Boss:
    return Boss(daemon)


@pytest.fixture
def ruled(daemon: RunningDaemon, ada: Boss, tmp_path: Path) -> Worker:
    """An agent with a rule for each of three commands."""
    made = Worker(daemon, tmp_path)
    made.change(settings={"input": "open"})
    does(made, PERMITS)
    ada.tell(made, text="one\ntwo\nthree")
    for number in (1, 2, 3):
        ada.call("ask.answer", id=asked(ada, made)[1], choice="allow", scope="rule")
        wait_until(lambda: len(made.call("ask.rules")["rules"]) == number)  # noqa: B023 - called here
    made.settled()
    return made


def test_an_agent_sees_its_own_rules_and_the_boss_those_of_each(ada: Boss, ruled: Worker) -> None:
    found = ruled.call("ask.rules")["rules"]
    assert [one["subject"] for one in found] == ["three", "two", "one"]
    assert {one["agent"] for one in found} == {ruled.name}
    assert {(one["answer"], one["created_by"], one["session"]) for one in found} == {
        ("allow", "user:boss", None)
    }
    assert ada.call("ask.rules", agent=ruled.name)["rules"] == found
    other = agent(ruled.daemon)
    assert other.call("ask.rules")["rules"] == []
    assert other.refusal("ask.rules", agent=ruled.name) == "boss_only"


def test_rules_come_page_by_page(ada: Boss, ruled: Worker) -> None:
    subjects, after = [], None
    for _ in range(3):
        page = ruled.call("ask.rules", page_size=1, **({} if after is None else {"after": after}))
        subjects += [one["subject"] for one in page["rules"]]
        after = page["next"]
    assert subjects == ["three", "two", "one"] and after is None


def test_only_the_boss_takes_a_rule_back_whatever_the_policy(ada: Boss, ruled: Worker) -> None:
    number = ruled.call("ask.rules")["rules"][0]["number"]
    assert ruled.refusal("ask.rule.remove", number=number) == "forbidden"
    assert ada.refusal("permission.policy.set", policy={"ask.rule.remove": "restricted"}) == "fixed_level"
    answer = ada.call("ask.rule.remove", number=number)
    assert (answer["changed"], answer["rule"]["subject"]) == (True, "three")
    assert not ada.call("ask.rule.remove", number=number)["changed"]
    assert [one["subject"] for one in ruled.call("ask.rules")["rules"]] == ["two", "one"]


def test_the_rules_of_a_deleted_agent_are_gone(ada: Boss, ruled: Worker) -> None:
    numbers = {one["number"] for one in ruled.call("ask.rules")["rules"]}
    ada.call("agent.delete", name=ruled.name)
    assert not numbers & {one["number"] for one in ada.call("ask.rules", page_size=100)["rules"]}
