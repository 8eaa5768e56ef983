"""Schedules beyond a quota: refused, and the boss is asked once; what he answers counts from then on."""

from __future__ import annotations

from typing import Any

import pytest

from hiboss.testing.running_daemon import Answered, RunningDaemon
from tests.support.daemons import daemon_fixture
from tests.support.parties import Party, agent, boss, person

MOST = 3
daemon = daemon_fixture(schedules_per_caller=MOST, schedule_least_seconds=60)


def create(who: Party, every: str = "100h", **params: Any) -> str:
    given = {"to": "nex", "text": "tick", **({} if "at" in params or "cron" in params else {"every": every})}
    return str(who.call("cron.create", **given, **params)["id"])


def refused(who: Party, method: str = "cron.create", **params: Any) -> str:
    """Return the words of the refusal; assert that no schedule was made or changed."""
    before = who.call("cron.list")
    with pytest.raises(Answered) as caught:
        who.call(method, **({"to": "nex", "text": "tick"} if method == "cron.create" else {}), **params)
    assert caught.value.stable_code == "schedule_quota" and who.call("cron.list") == before
    return caught.value.message


def asks_of(who: Party) -> list[dict[str, Any]]:
    found = boss(who.daemon).call("ask.list", state="all", page_size=100)["asks"]
    return [one for one in found if one["asker"] == who.address]


def answer(who: Party, choice: str) -> None:
    """Let the boss answer the open question of a caller."""
    [one] = [one for one in asks_of(who) if one["state"] == "open"]
    boss(who.daemon).call("ask.answer", id=one["id"], choice=choice)


@pytest.mark.parametrize("make", [agent, person])
def test_beyond_the_number_of_schedules_the_boss_is_asked_once_and_his_answer_counts(
    daemon: RunningDaemon, make: Any
) -> None:
    mal = make(daemon)
    made = [create(mal) for _ in range(MOST)]
    for _ in range(3):
        assert f"{mal.address} has {MOST} schedules" in refused(mal, every="100h")
    [asked] = asks_of(mal)
    assert asked["kind"] == "limit" and asked["options"] == ["go on", "no"]
    assert mal.refusal("ask.answer", id=asked["id"], choice="go on") == "own_ask"
    assert mal.refusal("ask.cancel", id=asked["id"]) in ("ask_fixed", "not_asker")
    mal.call("cron.delete", id=made[0])
    made[0] = create(mal)  # a place that became free needs nobody

    answer(mal, "go on")
    assert [one["text"] for one in mal.list(unread=True) if "go on" in one["text"]]
    made += [create(mal) for _ in range(MOST)]
    refused(mal, every="100h")
    answer(mal, "no")
    assert '"no"' in refused(mal, every="100h")
    assert len(asks_of(mal)) == 2 and len(mal.call("cron.list")["schedules"]) == len(made) == 2 * MOST
    mal.call("cron.set", id=made[0], every="50h")  # what is there can be changed


def test_disabled_schedules_count_and_those_whose_time_is_over_do_not(daemon: RunningDaemon) -> None:
    mal = agent(daemon)
    made = [create(mal) for _ in range(MOST - 1)]
    for one in made:
        mal.call("cron.disable", id=one)
    single = create(mal, at="+2h")
    refused(mal, at="+3h")
    with daemon.database() as database:
        database.execute(
            "UPDATE schedule SET at = 1, next_at = NULL, enabled = 0 WHERE id = ?", (single[1:],)
        )
        database.commit()
    create(mal, at="+3h")
    refused(mal, at="+3h")


def test_a_schedule_that_sends_too_often_asks_the_boss_and_he_allows_this_interval(
    daemon: RunningDaemon,
) -> None:
    mal = agent(daemon)
    number = create(mal, every="60s")
    mal.call("cron.set", id=number, cron="* * * * *")
    for every in ("1s", "59s"):
        assert "schedules.least_seconds" in refused(mal, every=every)
    refused(mal, "cron.set", id=number, every="30s")
    [asked] = asks_of(mal)
    assert "every 1 s" in asked["question"]
    answer(mal, "no")
    assert '"no"' in refused(mal, every="1s")
    refused(
        mal, "cron.set", id=number, every="30s", text="tock"
    )  # another interval, of which nothing was said
    answer(mal, "go on")
    mal.call("cron.set", id=number, every="30s")
    create(mal, every="45s")
    refused(mal, every="29s")
    assert len(asks_of(mal)) == 3


def test_the_boss_has_no_quota_and_changes_schedules_of_others_as_he_likes(daemon: RunningDaemon) -> None:
    chief, mal = boss(daemon), agent(daemon)
    made = [create(chief, every="100h") for _ in range(MOST + 1)]
    chief.call("cron.set", id=made[0], every="1s")
    chief.call("cron.set", id=create(mal), every="2s")
    assert asks_of(mal) == []
    for one in chief.call("cron.list")["schedules"]:
        chief.call("cron.delete", id=one["id"])


def test_an_agent_that_waits_for_such_an_answer_works_on_and_a_resume_does_not_take_it_back(
    daemon: RunningDaemon,
) -> None:
    mal = agent(daemon)
    refused(mal, every="1s")
    chief = boss(daemon)
    assert chief.call("agent.status", name=mal.name)["agent"]["state"] != "paused"
    chief.call("agent.pause", name=mal.name)
    chief.call("agent.resume", name=mal.name)
    answer(mal, "go on")
    create(mal, every="1s")
