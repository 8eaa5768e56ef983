"""What the boss wrote to two chats, and changed, before they became one."""

from __future__ import annotations

from pathlib import Path

from hiboss.testing.running_daemon import RunningDaemon
from tests.channels.test_renamed_chats import merged, rename
from tests.support.parties import agent, boss


def test_changed_messages_of_the_boss_go_along_when_their_chat_becomes_one_with_another(
    daemon: RunningDaemon, tmp_path: Path
) -> None:
    place, address = merged(daemon, tmp_path)
    chief, kai = boss(daemon), agent(daemon)
    chief.tell(kai, text="as in every chat")
    changed = chief.list(box="outbox", page_size=1)[0]["message"]
    assert chief.call("message.edit", id=changed, text="an entry of their chat")["changed"]
    [row] = chief.call("chat.read", agent=kai.name, limit=5)["messages"][-1:]
    assert row["content"] == "an entry of their chat"

    numbers = []
    for to in (address, place.address):
        [number] = chief.send(to, text="hello")["ids"]
        place.wait_for_status(number, "done")
        message = chief.list(box="outbox", page_size=1)[0]["message"]
        assert chief.call("message.edit", id=message, text="hello again")["changed"]
        numbers.append(number)
    rename(place, address.rpartition(":")[2])
    assert [chief.get(number)["text"] for number in numbers] == ["hello again"] * 2
    daemon.check()
