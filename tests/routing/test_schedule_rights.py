"""A schedule sends with the rights that its owner has at that moment, not with those of its creation."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hiboss.testing.running_daemon import RunningDaemon
from tests.support.parties import Party, agent, boss, person
from tests.support.waits import wait_until

NEW_YEAR = "0 0 1 1 *"  # so that none fires by itself during a test


def create(who: Party, to: Party | str, **params: Any) -> str:
    address = to if isinstance(to, str) else to.address
    return str(who.call("cron.create", **({"cron": NEW_YEAR, "to": address, "text": "tick"} | params))["id"])


def show(who: Party, number: str) -> dict[str, Any]:
    found: dict[str, Any] = who.call("cron.show", id=number)
    return found


def channel_of(ada: Party, directory: Path) -> str:
    """Bind an agent to a folder of its own and return the address of the folder."""
    bound = boss(ada.daemon).call(
        "agent.bind", name=ada.name, adapter_type="folder", settings={"path": str(directory / ada.name)}
    )
    return str(bound["address"])


def posted(ada: Party, directory: Path) -> list[Path]:
    return list((directory / ada.name / "out").glob("*"))


def refused_now(owner: Party, number: str) -> str:
    """Run a schedule that may not send, check that it is disabled, and return the recorded reason."""
    ran = boss(owner.daemon).call("cron.run", id=number)
    assert (ran["fired"], ran["ids"]) == (False, [])
    found = show(boss(owner.daemon), number)
    assert ran["why"] == found["slots"][0]["reason"]
    assert (found["enabled"], found["next_at"]) == (False, None)
    assert found["slots"][0]["outcome"] == "failed" and found["slots"][0]["message"] is None
    return str(found["slots"][0]["reason"])


def told(who: Party, number: str) -> list[str]:
    notices = who.list(page_size=100)
    return [one["text"] for one in notices if one["from"] == "agent:system" and f"{number} " in one["text"]]


# --- channels ------------------------------------------------------------------------------------


def test_a_channel_the_owner_may_not_post_to_is_refused_when_set_as_when_created(
    two: tuple[Party, Party], tmp_path: Path
) -> None:
    ada, bob = two
    place, ann = channel_of(ada, tmp_path), person(ada.daemon)
    for stranger in (ann, bob):
        assert stranger.refusal("cron.create", cron=NEW_YEAR, to=place, text="x") == "not_bound"
        number = create(stranger, ada)
        assert stranger.refusal("cron.set", id=number, to=place) == "not_bound"
        # Nor can the boss set it for them: the owner sends it.
        assert boss(ada.daemon).refusal("cron.set", id=number, to=place) == "not_bound"
        assert show(stranger, number)["to"] == [ada.address]
        assert stranger.call("cron.run", id=number)["fired"]
    assert posted(ada, tmp_path) == []


def test_a_channel_that_got_into_a_stored_schedule_is_not_posted_to(
    two: tuple[Party, Party], tmp_path: Path
) -> None:
    """As with a schedule stored by an earlier version: it is checked again when it sends."""
    ada, _ = two
    place, ann = channel_of(ada, tmp_path), person(ada.daemon)
    number = create(ann, ada)
    with ada.daemon.database() as database:
        database.execute(
            "UPDATE schedule SET draft = json_set(draft, '$.to', json_array(?)) WHERE id = ?",
            (place, int(number[1:])),
        )
        database.commit()
    assert place in refused_now(ann, number) and posted(ada, tmp_path) == []
    assert len(told(ann, number)) == 1


def test_the_boss_posts_where_he_may_and_in_the_name_of_an_agent_only_where_it_may(
    two: tuple[Party, Party], tmp_path: Path
) -> None:
    ada, bob = two
    chief, place = boss(ada.daemon), channel_of(ada, tmp_path)
    for name in (None, ada.address):
        number = create(chief, place, **({} if name is None else {"from_": name}))
        (envelope,) = chief.call("cron.run", id=number)["ids"]
        wait_until(lambda: chief.get(envelope)["status"] == "done")  # noqa: B023 - called here
    refused = chief.refusal("cron.create", cron=NEW_YEAR, to=place, text="x", from_=bob.address)
    assert refused == "not_bound" and len(posted(ada, tmp_path)) == 2


# --- levels, policy and tokens -------------------------------------------------------------------


def lower(ada: Party) -> None:
    boss(ada.daemon).call("agent.permission.set", name=ada.name, level="restricted")


def revoke(ada: Party) -> None:
    boss(ada.daemon).call("agent.token.revoke", name=ada.name)


@pytest.mark.parametrize(
    ("change", "reason"),
    [(lower, "envelope.send needs the level standard"), (revoke, "its owner has no valid token any more")],
)
def test_a_lowered_level_or_a_revoked_token_stops_the_schedules_of_an_agent(
    two: tuple[Party, Party], change: Callable[[Party], None], reason: str
) -> None:
    ada, bob = two
    chief = boss(ada.daemon)
    number, own = create(ada, bob), create(chief, bob, from_=ada.address)
    change(ada)
    assert reason in refused_now(ada, number) and bob.list() == []
    [notice] = [one["text"] for one in chief.list(address=ada.address) if f"{number} " in one["text"]]
    assert "is disabled" in notice and show(chief, number)["slots"][0]["reason"] in notice
    # What the boss schedules in its name is sent with the rights of the boss.
    assert chief.call("cron.run", id=own)["fired"]


def test_a_lowered_level_stops_a_schedule_at_its_time_and_the_owner_is_told_once(
    two: tuple[Party, Party],
) -> None:
    ada, bob = two
    number = create(ada, bob, cron=None, every="1s", overlap="queue")
    lower(ada)
    wait_until(lambda: not show(ada, number)["enabled"])
    sent, outcomes = len(bob.list()), [one["outcome"] for one in show(ada, number)["slots"]]
    assert outcomes.count("failed") == 1 and outcomes.count("fired") == sent
    assert len(told(ada, number)) == 1


def test_a_policy_that_lets_only_others_send_stops_schedules_and_refuses_new_ones(
    two: tuple[Party, Party],
) -> None:
    ada, bob = two
    chief, ann = boss(ada.daemon), person(ada.daemon)
    made = {who.address: create(who, bob) for who in (ada, ann, chief)}
    chief.call("permission.policy.set", policy={"envelope.send": "privileged"})
    try:
        for who in (ada, ann):
            assert who.refusal("cron.create", cron=NEW_YEAR, to=bob.address, text="x") == "forbidden"
            assert who.refusal("cron.set", id=made[who.address], text="y") == "forbidden"
            assert "envelope.send needs the level privileged" in refused_now(who, made[who.address])
        assert chief.call("cron.run", id=made[chief.address])["fired"]
        chief.call("agent.permission.set", name=ada.name, level="privileged")
        ada.call("cron.enable", id=made[ada.address])
        assert ada.call("cron.run", id=made[ada.address])["fired"]
    finally:
        chief.call("permission.policy.set", policy={})
    assert len(bob.list()) == 2


# --- names that belong to somebody else by now ---------------------------------------------------


def test_a_schedule_does_not_go_to_a_new_agent_of_the_same_name(two: tuple[Party, Party]) -> None:
    ada, bob = two
    chief = boss(ada.daemon)
    number = create(ada, bob)
    chief.call("agent.delete", name=bob.name)
    new = agent(ada.daemon, bob.name)
    assert bob.address in refused_now(ada, number) and new.list() == []
    ada.call("cron.set", id=number, to=bob.address)  # meant for the new one
    ada.call("cron.enable", id=number)
    assert ada.call("cron.run", id=number)["fired"] and len(new.list()) == 1


def test_a_schedule_in_the_name_of_an_agent_is_not_sent_in_that_of_its_successor(
    two: tuple[Party, Party],
) -> None:
    ada, bob = two
    chief = boss(ada.daemon)
    number = create(chief, bob, from_=ada.address)
    chief.call("agent.delete", name=ada.name)
    agent(ada.daemon, ada.name)
    assert ada.address in refused_now(chief, number) and bob.list() == []


def test_the_successor_of_an_owner_has_none_of_its_schedules(two: tuple[Party, Party]) -> None:
    ada, bob = two
    number = create(ada, bob, cron=None, every="1s")
    boss(ada.daemon).call("agent.delete", name=ada.name)
    new = agent(ada.daemon, ada.name)
    assert new.call("cron.list")["schedules"] == [] and new.refusal("cron.run", id=number) == "not_found"


def test_a_task_given_by_a_schedule_is_answered_to_its_owner(daemon: RunningDaemon) -> None:
    """Its messages are those of its owner, and not of agent:system, which reads no mail."""
    kai = agent(daemon, provider="demo")
    assert kai.call("cron.run", id=create(kai, "agent:background", text="count"))["fired"]
    wait_until(lambda: [one for one in kai.list() if one["from"] == "agent:background"])
    assert told(boss(daemon), kai.address) == []
