"""No policy lets an agent change another agent or a person: the rule is declared with each operation."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hiboss.api import dispatch  # noqa: F401 - it declares the operations
from hiboss.api.operation import REGISTRY
from hiboss.testing.running_daemon import RunningDaemon
from tests.support.parties import Party, agents, boss

CHANGING = {name: operation for name, operation in REGISTRY.items() if operation.changes is not None}
LANES = ("lane.pause", "lane.resume", "lane.retry")
# What each takes beside the name; nothing of it happens when it is refused.
MORE: dict[str, dict[str, Any]] = {
    "agent.bind": {"adapter_type": "folder", "settings": {"path": "/nowhere/at-all"}},
    "agent.unbind": {"adapter_type": "folder"},
    "agent.set": {"role": "thief"},
}
# They take a name and change nobody who exists; or, the last one, no policy can give them to an agent.
NOT_CHANGING = {
    "agent.register",
    "user.register",
    "agent.status",
    "agent.briefing",
    "agent.instructions",
    "agent.sessions",
    "agent.check",
    "agent.notify",
    "agent.notify.remove",
    "agent.permission.get",
    "agent.permission.set",
}


@pytest.fixture
def lowered(daemon: RunningDaemon) -> Iterator[None]:
    """Every operation that a policy may decide is open to agents of the lowest level."""
    chief = boss(daemon)
    names = [name for name in (*CHANGING, *LANES) if not REGISTRY[name].fixed]
    chief.call("permission.policy.set", policy=dict.fromkeys(names, "restricted"))
    yield
    chief.call("permission.policy.set", policy={})


def named(operation: str, other: Party, person: str) -> dict[str, Any]:
    return {
        "name": person if CHANGING[operation].changes == "user" else other.name,
        **MORE.get(operation, {}),
    }


def test_every_operation_that_takes_a_name_says_whether_it_changes_whom_it_names() -> None:
    takes_a_name = {name for name, one in REGISTRY.items() if "name" in one.params.model_fields}
    about = {name for name in takes_a_name if name.startswith(("agent.", "user."))}
    assert about == set(CHANGING) | NOT_CHANGING


@pytest.mark.parametrize("operation", sorted(CHANGING))
def test_an_agent_changes_no_agent_and_no_person_but_itself_whatever_the_policy_says(
    daemon: RunningDaemon, lowered: None, operation: str
) -> None:
    ada, bob = agents(daemon, 2)
    person = f"ann-{operation.replace('.', '-')}"
    token = boss(daemon).call("user.register", name=person)["token"]
    before = boss(daemon).call("agent.list"), boss(daemon).call("user.list")
    params = named(operation, bob, person)
    for form in (params["name"], params["name"].upper(), f"{CHANGING[operation].changes}:{params['name']}"):
        assert ada.refusal(operation, **{**params, "name": form}) == "boss_only"
    for left, right in zip(
        before, (boss(daemon).call("agent.list"), boss(daemon).call("user.list")), strict=True
    ):
        for one, other in zip(left.popitem()[1], right.popitem()[1], strict=False):
            if isinstance(one, dict):
                assert one | {"last_seen_at": None} == other | {"last_seen_at": None}
    daemon.call("agent.self", token=bob.token)  # and their tokens still work
    daemon.call("agent.self", token=token)


@pytest.mark.parametrize("operation", LANES)
def test_an_agent_steers_no_lane_of_another_agent(
    daemon: RunningDaemon, lowered: None, operation: str
) -> None:
    ada, bob = agents(daemon, 2)
    assert ada.refusal(operation, address=bob.address) == "boss_only"
    assert ada.call(operation, address=ada.name)["changed"] in (0, 1)


@pytest.mark.parametrize("operation", LANES)
def test_an_agent_steers_no_lane_of_a_channel_that_it_is_not_bound_to(
    daemon: RunningDaemon, lowered: None, operation: str, tmp_path: Path
) -> None:
    ada, bob = agents(daemon, 2)
    folder = boss(daemon).call(
        "agent.bind", name=bob.name, adapter_type="folder", settings={"path": str(tmp_path)}
    )
    assert ada.refusal(operation, address=folder["address"]) == "unknown_address"  # as if it were not there
    assert bob.call(operation, address=folder["address"])["changed"] in (0, 1)
    boss(daemon).call("agent.unbind", name=bob.name, adapter_type="folder")


def test_an_agent_that_may_changes_itself(daemon: RunningDaemon, lowered: None) -> None:
    (ada,) = agents(daemon, 1)
    assert ada.call("agent.set", name=ada.address.upper().replace("AGENT", "agent"), role="x")["role"] == "x"
    assert ada.call("agent.pause", name=ada.name)["changed"] is True
    assert ada.call("agent.resume", name=ada.name)["changed"] is True
