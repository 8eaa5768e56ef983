"""Who has nothing to do with a closed group or a chat does not learn from any request that there is one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hiboss.testing.running_daemon import Answered, RunningDaemon
from tests.support.parties import Party, agents
from tests.support.python_agents import Boss

ASKED: list[tuple[str, str, dict[str, Any]]] = [
    ("message.list", "author_id", {"unread": True}),
    ("envelope.list", "from", {}),
    ("envelope.list", "to", {"box": "outbox"}),
    ("control.list", "actor", {}),
    ("presence.get", "address", {}),
    ("conversation.messages", "with", {}),
    ("envelope.send", "to", {"text": "x"}),
]


@pytest.fixture(scope="module")
def cast(daemon: RunningDaemon, ada: Boss, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    owner, stranger = agents(daemon, 2)
    owner.call("conversation.create", type="group", name="secret-1", participants=[])
    owner.call("conversation.create", type="group", name="public-1", participants=[], open=True)
    box = tmp_path_factory.mktemp("folder") / "chat1"
    bound = {"name": owner.name, "adapter_type": "folder", "settings": {"path": str(Path(box))}}
    yield owner, stranger, ada.call("agent.bind", **bound)["address"]


def told(who: Party, method: str, **params: Any) -> str:
    """Return the code and the text of a refusal; without them if there is none."""
    try:
        who.call(method, **params)
    except Answered as error:
        return f"{error.stable_code}: {error}"
    return "done"


@pytest.mark.parametrize(("method", "name", "beside"), ASKED)
def test_a_closed_group_and_a_chat_are_for_a_stranger_as_if_there_were_none(
    cast: tuple[Party, Party, str], method: str, name: str, beside: dict[str, Any]
) -> None:
    _, stranger, chat = cast
    pairs = [("secret-1", "secret-2"), ("group:secret-1", "group:secret-2")]
    if method != "envelope.send":  # to a chat it says that the sender has no account there
        pairs.append((chat, "channel:folder:chat2"))
    for hidden, missing in pairs:
        answers = [told(stranger, method, **beside, **{name: one}) for one in (hidden, missing)]
        same = answers[0].replace("secret-1", "secret-2").replace("chat1", "chat2")
        assert same == answers[1] != "done"


def test_who_is_in_the_group_or_uses_the_chat_knows_it_and_so_does_the_boss(
    cast: tuple[Party, Party, str], ada: Boss
) -> None:
    owner, stranger, chat = cast
    for who in (owner, ada):
        for address in ("secret-1", "group:secret-1", chat):
            assert told(who, "message.list", author_id=address, unread=True) == "done"
    assert told(stranger, "message.list", author_id="public-1", unread=True) == "done"


def test_only_who_knows_a_group_mentions_it(cast: tuple[Party, Party, str]) -> None:
    owner, stranger, _ = cast
    text = "@secret-1 and @public-1, @secret-2"
    for who, known in ((owner, ["public-1", "secret-1"]), (stranger, ["public-1"])):
        sent, later = who.send(who, text=text), who.send(who, text="nothing")
        who.call("message.edit", id=later["message"], text=text)
        assert mentioned(who, sent) == mentioned(who, later) == known


def mentioned(who: Party, sent: Any) -> list[str]:
    refs = who.call("message.get", message_id=sent["message"])["message"]["refs"]
    return sorted(one["value"] for one in refs if one["type"] == "mention")
