"""Make letters: envelopes, and answers that still grow, in the form in which an adapter gets them."""

from __future__ import annotations

import json
import os

from ..core.contracts.adapter import Button, File, Letter
from ..core.envelope import Kind
from ..store.envelope_rows import EnvelopeRow
from ..store.live_posts import Target
from ..store.run_start import Turn

LONGEST_ID = 500  # characters of a platform's message id


def of_envelope(claimed: EnvelopeRow, epoch: str, media: str, buttons: tuple[Button, ...] = ()) -> Letter:
    """Return the letter of an envelope; `claimed` is what hiboss/store/lanes.py returned."""
    files = json.loads(claimed["attachments"]) if claimed["attachments"] else []
    kind, text = Kind(claimed["type"]), claimed["text"]
    if claimed["named"]:
        text = named(claimed["from_address"], text)
        kind = Kind.TEXT if kind is Kind.JSON else kind  # with a line in front it is no JSON any more
    return Letter(
        id=f"e{claimed['id']}",
        key=f"{epoch}-e{claimed['id']}",
        place=claimed["to_address"].split(":", 2)[2],
        text=text,
        type=kind.word,
        subject=claimed["subject"],
        sender=claimed["from_address"],
        sender_name=claimed["from_name"],
        files=tuple(File(one["name"], os.path.join(media, one["file"]), one["mime"]) for one in files),
        reply_to=claimed["platform_reply_to"],
        buttons=buttons,
    )


def of_growing_answer(turn: Turn, target: Target, text: str, epoch: str) -> Letter:
    """Return the letter of an answer that is not finished: like that of the answer, but for id and key."""
    sender = f"agent:{turn.name}"
    return Letter(
        id=f"r{turn.run}",
        key=f"{epoch}-r{turn.run}-{target.lane.binding}-{target.lane.address}",
        place=target.place,
        text=named(sender, text) if target.named else text,
        type=Kind.TEXT.word,
        subject=None,
        sender=sender,
        sender_name=target.display,
        files=(),
        reply_to=target.reply_to,
    )


def named(sender: str, text: str) -> str:
    """Return a text with its sender in the first line: people see in a chat only who posted it there."""
    return f"{sender.split(':', 1)[1]}:\n{text}"


def storable_id(platform_id: object) -> str:
    """Return a platform's id of a post as it is stored: an odd one must not make the recording fail."""
    return str(platform_id).encode("utf-8", "replace").decode()[:LONGEST_ID]
