"""Deferred mail that failed before its time, and is retried when its message has arrived for the others."""

from __future__ import annotations

from pathlib import Path

from hiboss.core import clock
from tests.support.in_process_daemon import InProcessDaemon, frozen

MESSAGE = "SELECT conversation, seq, arrived_at FROM message WHERE id = ?"
SEQS = "SELECT seq FROM message WHERE conversation = ? ORDER BY seq"


@frozen(adapter_modules="hiboss.testing.scripted_adapter")
async def test_a_retried_envelope_of_a_message_that_has_arrived_leaves_its_number_as_it_is(
    daemon: InProcessDaemon,
) -> None:
    await daemon.register("pia")
    directory = Path(daemon.home.database).parent.parent / "chat"
    chat = await daemon.bind(directory)
    to = ["agent:pia", chat]
    first = await daemon.ask("envelope.send", "nex", to=to, text="first")
    later = await daemon.ask(
        "envelope.send", "nex", to=to, text="later", deliver_at="+1h", reply_to=first["ids"][0]
    )
    await daemon.until(lambda: daemon.rows("SELECT 1 FROM envelope WHERE status = 1 AND binding IS NOT NULL"))
    await daemon.ask("agent.unbind", name="nex", adapter_type="scripted")
    await daemon.move(hours=1)
    number = int(later["message"][1:])
    [before] = daemon.rows(MESSAGE, number)
    assert before["seq"] == 2 and await daemon.inbox("pia") == ["first", "later"]
    [failed] = [one for one in later["ids"] if (await daemon.get(one))["to"] == chat]
    assert (await daemon.get(failed))["status"] == "failed"

    await daemon.ask("agent.bind", name="nex", adapter_type="scripted", settings={"path": str(directory)})
    daemon.tick(minutes=5)
    await daemon.ask("envelope.send", "nex", to=to, text="in between")
    assert (await daemon.ask("envelope.retry", "nex", ids=[failed]))["changed"] == 1
    await daemon.until(lambda: "later" in (directory / "posts.jsonl").read_text())

    assert tuple(daemon.rows(MESSAGE, number)[0]) == tuple(before)
    assert [row["seq"] for row in daemon.rows(SEQS, before["conversation"])] == [1, 2, 3]
    assert before["arrived_at"] < clock.now()
    assert sorted(await daemon.inbox("pia")) == ["first", "in between", "later"]
    [again] = daemon.rows("SELECT status, arrived FROM envelope WHERE id = ?", int(failed[1:]))
    last = daemon.rows("SELECT max(arrived) FROM envelope")[0][0]
    assert again["arrived"] == last  # it arrives in the chat now, and there only
