"""The rest of an envelope whose topic went while it was posted: it goes to the chat, behind a line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ..core.contracts.adapter import Letter
from ..store import posts
from ..store.connection import Row
from ..store.envelope_rows import EnvelopeRow
from ..store.store import Store
from . import letters


async def planned(store: Store, adapter: Any, letter: Letter, claimed: EnvelopeRow) -> Sequence[Row]:
    """Return the stored chunks of an envelope; the line is among them if a part was posted in the topic.

    One of which nothing was posted there has the line in its text.
    """
    found: Sequence[Row] = claimed["posted"]
    gone_at, number = claimed["topic_gone_at"], int(claimed["id"])
    posted_at = [row["posted_at"] for row in found if row["posted_at"] is not None]
    if gone_at is None or not posted_at or max(posted_at) >= gone_at or len(posted_at) == len(found):
        return found
    topic = str(claimed["to_address"]).rpartition("/")[2]
    text = letters.gone_line(topic).strip()
    line = replace(letter, text=text, front=len(text), subject=None, files=(), buttons=(), reply_to=None)
    first = next(row for row in found if row["posted_at"] is None)
    chunk = adapter.chunks(line)[0]
    if first["content"] != chunk:  # else it was put there before, and not posted yet
        await store.write(lambda tx: posts.insert(tx, number, first["chunk"], chunk))
    return store.read(lambda c: posts.posted(c, number))
