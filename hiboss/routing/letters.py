"""Make letters: envelopes, and answers that still grow, in the form in which an adapter gets them."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

from ..core.contracts.adapter import Button, File, Letter, Posted
from ..core.envelope import Kind
from ..store.envelope_rows import EnvelopeRow
from ..store.live_posts import Target
from ..store.run_start import Turn

QUICK_CHARACTERS = 4_096  # of a letter that is made into chunks at once
GROWN_CHARACTERS = 8_192  # of a growing answer: only its first chunk is shown
LONGEST_ID = 500  # characters of a platform's message id


def of_envelope(
    claimed: EnvelopeRow,
    epoch: str,
    media: str,
    buttons: tuple[Button, ...] = (),
    file_ids: Sequence[str | None] = (),
) -> Letter:
    """Return the letter of an envelope; `claimed` is what hiboss/store/lanes.py returned.

    `file_ids`: the platform's ids of its files, as far as they are known there.
    """
    stored = attachments(claimed)
    known = file_ids or [None] * len(stored)
    files = [_file(one, media, number) for one, number in zip(stored, known, strict=True)]
    kind = Kind(claimed["type"] if claimed["parse_mode"] is None else claimed["parse_mode"])
    front = _name_line(claimed["from_address"]) if claimed["named"] else ""
    place = claimed["to_address"].split(":", 2)[2]
    if claimed["topic_gone_at"] is not None:
        place, _, topic = place.partition("/")
        front = gone_line(topic) + front
    return Letter(
        id=f"e{claimed['id']}",
        key=f"{epoch}-e{claimed['id']}",
        place=place,
        text=front + claimed["text"],
        type=kind.word,
        subject=claimed["subject"],
        sender=claimed["from_address"],
        sender_name=claimed["from_name"],
        files=tuple(files),
        reply_to=claimed["platform_reply_to"],
        buttons=buttons,
        front=len(front),
    )


def attachments(claimed: EnvelopeRow) -> list[dict[str, Any]]:
    """Return what is stored of the files of an envelope."""
    return json.loads(claimed["attachments"]) if claimed["attachments"] else []


def _file(stored: Mapping[str, Any], media: str, platform_id: str | None) -> File:
    path = os.path.join(media, stored["file"])
    return File(stored["name"], path, stored["mime"], stored["size"], platform_id)


def of_growing_answer(turn: Turn, target: Target, text: str, epoch: str) -> Letter:
    """Return the letter of an answer that is not finished: like that of the answer, but for id and key."""
    sender = f"agent:{turn.name}"
    front = _name_line(sender) if target.named else ""
    if target.gone_topic is not None:
        front = gone_line(target.gone_topic) + front
    return Letter(
        id=f"r{turn.run}",
        key=f"{epoch}-r{turn.run}-{target.lane.binding}-{target.lane.address}",
        place=target.place,
        text=front + text[:GROWN_CHARACTERS],
        type=Kind.MARKDOWN.word,
        subject=None,
        sender=sender,
        sender_name=target.display,
        files=(),
        reply_to=target.reply_to,
        front=len(front),
    )


def _name_line(sender: str) -> str:
    """Return the line that names the sender: people see in a chat only which account posted something."""
    return f"{sender.split(':', 1)[1]}:\n"


def gone_line(topic: str) -> str:
    """Return the line that says why something is posted to the chat itself."""
    return f"(for the topic {topic}, which is gone)\n"


async def chunks(adapter: Any, letter: Letter) -> list[str]:
    """Return the chunks of a letter. Of a long one they are made in another thread: it can take a second."""
    if len(letter.text) <= QUICK_CHARACTERS:
        return list(adapter.chunks(letter))
    return list(await asyncio.to_thread(adapter.chunks, letter))


def posted(given: object) -> Posted:
    """Return what an adapter said of a post, in a form that can be stored."""
    if not isinstance(given, Posted):
        return Posted((storable_id(given),))
    return given._replace(ids=[storable_id(one) for one in given.ids] or [""])


def storable_id(platform_id: object) -> str:
    """Return a platform's id of a post as it is stored: an odd one must not make the recording fail."""
    return str(platform_id).encode("utf-8", "replace").decode()[:LONGEST_ID]
