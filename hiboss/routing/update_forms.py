"""Updates and what they mean, in the form in which they are stored, and back."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from ..core.address import parse_address
from ..core.contracts.failures import Refused
from ..core.contracts.inbound import Author, Inbound, Update
from ..core.errors import BadAddress
from ..core.settings import Settings
from ..store import intake
from ..store.connection import Row
from ..store.intake import NewUpdate
from .inbound_text import clean_id, tidy

LARGEST_RAW = 1024 * 1024  # bytes of an update in JSON


def stored_update(row: Row) -> Update:
    raw = json.loads(row["raw"])
    return Update(id=row["update_id"], chat=row["chat"], message=row["platform_id"], raw=raw)


def new_update(update: Update, limits: Settings, *, acts: bool) -> NewUpdate:
    """Return an update in the form in which it is stored."""
    about = None if update.about is None else tidy(update.about, limits)
    return _stored_form(update, acts=acts)._replace(about=about)


def _stored_form(update: Update, *, acts: bool) -> NewUpdate:
    message = None if update.message is None else clean_id(update.message)
    fields = clean_id(update.id), clean_id(update.chat), message
    if acts and update.act is not None:
        # A command that is not the boss's is digested after all.
        kept = update.raw if update.act.kind == "command" else None
        raw = json.dumps({"act": asdict(update.act), "raw": kept}, separators=(",", ":"))
        if len(raw) <= LARGEST_RAW or update.act.kind != "command":
            return _sized(fields, raw, update.act)
    raw = json.dumps(update.raw, separators=(",", ":"))
    return _sized(fields, " " + raw if raw.startswith(intake.ACT) else raw)  # it only looks like one


def _sized(fields: tuple[str, str, str | None], raw: str, act: Inbound | None = None) -> NewUpdate:
    if len(raw) > LARGEST_RAW:
        return NewUpdate(*fields, None, f"it has {len(raw)} bytes, and the limit is {LARGEST_RAW}")
    return NewUpdate(*fields, raw, act=act)


def stored_inbound(stored: dict[str, Any]) -> Inbound:
    """Return an inbound from its stored form."""
    emojis = None if stored.get("emojis") is None else tuple(stored["emojis"])
    fields = {"author": Author(*stored["author"]), "files": tuple(stored["files"]), "emojis": emojis}
    return Inbound(**{**stored, **fields})


def check_place(adapter: str, inbound: Inbound) -> None:
    """Raise Refused if the place cannot be an address."""
    if "/" in f"{inbound.chat}{inbound.topic or ''}{inbound.renamed_to or ''}":
        raise Refused("the id of a chat or a topic cannot have a slash")
    try:
        for chat in filter(None, (inbound.place, inbound.renamed_to)):
            parse_address(f"channel:{adapter}:{chat}")
    except BadAddress as error:
        raise Refused(error.message) from error
