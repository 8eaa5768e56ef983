"""What a turn shows beside its envelopes costs the same among 20,000 rows as among 1,000.

Counted as in test_flat.py. All old messages were said in a group chat, and each has a reaction.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from hiboss.core.contracts.adapter import Chat
from hiboss.core.contracts.inbound import Author, Inbound
from hiboss.core.contracts.provider import Answer
from hiboss.store import bindings, intake, reactions, run_settlement, run_start, surroundings, turn_selection
from hiboss.store.bindings import NewBinding
from hiboss.store.connection import Connection
from hiboss.store.group_commit import Tx
from hiboss.store.intake import NewUpdate
from tests.store.test_flat import ADA_ID, FRESH, NEX_ID, NOW, SETTLED, Hot, not_flat, write
from tests.store.test_flat_runs import START, with_agents

pytestmark = pytest.mark.slow

MINE = 1
FACTS = '{"chat": {"id": "-9", "kind": "group", "title": "ops"}, "author": {"name": "Bob"}}'


def in_a_group(connection: Connection, size: int, *, to: int = NEX_ID, context: bool = True) -> None:
    """Let the chat be the sender of everything; the fresh ones are for nex, the others around them."""
    tx = with_agents(connection)
    new = NewBinding("folder", "mine", {}, chats=[Chat("-9", "group")])
    for agent in (NEX_ID, ADA_ID):
        assert bindings.add(tx, new, agent, NOW).binding == MINE
    chat = connection.execute("SELECT id FROM address WHERE name = 'folder:-9'").fetchone()[0]
    connection.execute("UPDATE message SET sender = ?, caller = NULL, channel = ?", (chat, FACTS))
    connection.execute("UPDATE message SET context = ? WHERE id <= ?", (context, size))
    connection.execute("UPDATE envelope SET recipient = ? WHERE message <= ?", (to, size))
    connection.execute("INSERT INTO participant (conversation, address) VALUES (1, ?)", (chat,))
    connection.execute("UPDATE conversation SET kind = 'adhoc'")
    connection.execute(
        """
        INSERT INTO platform_update (binding, update_id, chat, platform_id, message, outcome, received_at)
        SELECT ?, 'u' || id, '-9', 'p' || id, id, 'accepted', 1 FROM message
        """,
        (MINE,),
    )
    connection.execute(
        "INSERT INTO reaction (message, person, emoji, agent, at) SELECT id, '7', '👍', ?, 1 FROM message",
        (NEX_ID,),
    )


def around_the_other_agent(connection: Connection, size: int) -> None:
    """The same, but all that is old was for the other agent."""
    in_a_group(connection, size, to=ADA_ID, context=False)


def begun(tx: Tx) -> run_start.Turn:
    turn = run_start.begin(tx, NEX_ID, START)
    assert turn is not None and turn.beside.around is not None
    return turn


def reading(connection: Connection, size: int) -> None:
    [first] = connection.execute("SELECT id FROM envelope WHERE message = ?", (size + 1,)).fetchone()
    beside = turn_selection.preview_beside(connection, NEX_ID, [first])
    assert beside.around is not None
    said = surroundings.read(connection, NEX_ID, beside.around)
    assert len(said.rows) == surroundings.MESSAGES
    assert said.left_out in (size - surroundings.MESSAGES, "1000+")
    assert len(reactions.fetch(connection, beside.reactions.shown)) == reactions.SHOWN


def completing(tx: Tx) -> None:
    run_settlement.complete(tx, begun(tx), Answer(text="NO_REPLY"), NOW)


def coming_in(inbound: Inbound) -> Hot:
    def settle(tx: Tx, size: int) -> None:
        taken = intake.take(tx, MINE, [NewUpdate("new", "-9", None, "{}", about=inbound)], None, NOW)
        intake.settle(tx, MINE, "folder", [taken.waiting["new"]], inbound, (), NOW)

    return write(settle)


GROUP = {"chat": "-9", "chat_kind": "group", "author": Author(id="9", name="Cara")}
HOT: dict[str, Hot] = {
    "what was said around": reading,
    "a turn begins": write(lambda tx, n: begun(tx)),
    "a turn goes well": write(lambda tx, n: completing(tx)),
    "something is said": coming_in(Inbound(text="hm", **GROUP)),  # type: ignore[arg-type]
    "a reaction": coming_in(Inbound(kind="reaction", emojis=["👍"], message="p9", **GROUP)),  # type: ignore[arg-type]
    "an edit": coming_in(Inbound(kind="edit", text="new", message="p9", **GROUP)),  # type: ignore[arg-type]
    "reactions of a page": lambda c, n: reactions.of_messages(c, range(n // 2, n // 2 + 10)),
}


@pytest.mark.parametrize("prepare", [in_a_group, around_the_other_agent])
def test_what_is_shown_beside_a_turn_is_flat(tmp_path: Path, prepare: Hot) -> None:
    assert not_flat(tmp_path, SETTLED, HOT, prepare=prepare) == {}


def test_what_is_counted_is_really_done(tmp_path: Path) -> None:
    """In a small database: a statement that finds nothing would be flat anywhere."""

    def done(connection: Connection, size: int) -> None:
        write(lambda tx, n: completing(tx))(connection, size)
        shown = connection.execute("SELECT count(*) FROM reaction WHERE shown = 1").fetchone()[0]
        row = connection.execute("SELECT shown_upto FROM participant WHERE address = ?", (NEX_ID,)).fetchone()
        assert (shown, row["shown_upto"]) == (reactions.SHOWN, size + FRESH)

    not_flat(tmp_path, SETTLED, {"done": done}, large=1_001, prepare=in_a_group)
