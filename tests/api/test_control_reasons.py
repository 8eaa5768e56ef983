"""The reason of a control is for those whom it concerns: no operation shows it to the others of a group."""

from __future__ import annotations

import itertools
from typing import Any

from hiboss.api.operation import REGISTRY
from hiboss.testing.running_daemon import Answered, RunningDaemon
from tests.support.parties import Party, agent
from tests.support.python_agents import Boss, Team
from tests.support.waits import wait_until

SECRET = "REASON-FOR-THE-BOSS-AND-HER"
CERTAIN = {
    "control.list",
    "conversation.messages",
    "envelope.trace",
    "message.get",
    "message.list",
    "thread.chain",
    "thread.get",
    "thread.list",
}


def answers(party: Party, ids: list[str], values: dict[str, Any]) -> dict[str, str]:
    """Call every operation that only reads, in each way these values allow; return what was answered."""
    found: dict[str, str] = {}
    for name, operation in REGISTRY.items():
        if operation.effect != "read" or operation.waits or operation.follows:
            continue
        known = [one for one in operation.params.model_fields if one in values]
        for number in range(min(3, len(known)) + 1):
            for some in itertools.combinations(known, number):
                params = {one: values[one] for one in some}
                for given in [{"id": one} for one in ids] if "id" in some else [{}]:
                    try:
                        answer = party.call(name, **params | given)
                    except Answered:
                        continue
                    found[name] = found.get(name, "") + str(answer)
    return found


def test_no_reading_operation_shows_a_member_the_reason_of_a_control(
    daemon: RunningDaemon, team: Team, chief: Boss
) -> None:
    asker, other, worker = agent(daemon), agent(daemon), team.hire('wait_for("go")')
    name = f"ops-{worker.name}"
    parties = [one.address for one in (asker, other, worker)]
    group = chief.call("conversation.create", name=name, participants=parties)["conversation"]
    asker.send(f"group:{name}", text=f"@{worker.name} please look")
    wait_until(worker.turns)
    [run] = [one["id"] for one in worker.runs()]
    meta = {"who": SECRET}
    record = chief.call("control.send", event="stream.cancel", run=run, reason=SECRET, meta=meta)["message"]
    values = {
        "id": None,
        "message_id": record,
        "message": record,
        "thread": f"t{record[1:]}",
        "thread_id": f"t{record[1:]}",
        "conversation": group["id"],
        "conversation_id": group["id"],
        "run_id": run,
        "agent": worker.name,
        "address": other.address,
        "meta": meta,
    }
    ids = [record, run, group["id"], f"t{record[1:]}"]
    told = answers(other, ids, values)
    assert set(told) >= CERTAIN, CERTAIN - set(told)
    assert [one for one, text in told.items() if SECRET in text] == []
    assert other.call("message.list", conversation_id=group["id"], meta=meta)["messages"] == []
    told = answers(chief, ids, values)
    assert {"control.list", "conversation.messages", "message.get"} <= {
        one for one, text in told.items() if SECRET in text
    }
