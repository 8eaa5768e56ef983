"""Receipts: how far an envelope got, in steps with their times. They never say more than is known.

A step is told only when it is stored that it happened. Where somebody may still get something (a post without
an answer, a poll whose answer may be lost), the receipt does not say that they have it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, NamedTuple

from pydantic import Field
from typing_extensions import TypedDict

from ..core import clock
from ..core.envelope import Status, Waits
from ..store import receipts
from ..store.connection import Connection
from ..store.receipts import Known

# In this order where times are equal: it is the way of an envelope.
STEPS = (
    *("accepted", "deferred", "routed", "arrived", "forwarded", "handed_over", "submitted", "held", "seen"),
    *("posted", "unconfirmed", "taken_back", "snoozed", "tried", "waits", "overdue", "acknowledged"),
    *("done", "failed", "cancelled"),
)
_RANK = {name: number for number, name in enumerate(STEPS)}


class Step(TypedDict):
    step: Annotated[
        str,
        Field(
            description="accepted: it is on disk; deferred; routed: to another recipient; arrived: in the "
            "box or the queue of the recipient; forwarded: also to a chat of the boss; handed_over: a run, a "
            "claim or an account took it; submitted: an open session was told; held: its harness holds it "
            "back; seen: the recipient has it; posted; unconfirmed: a post got no answer, and may be there; "
            "taken_back; snoozed; tried: the last try failed; waits: for the next try, or with all that goes "
            "there; overdue: the deadline for acknowledging it passed; acknowledged; done; failed; cancelled"
        ),
    ]
    at: Annotated[str | None, Field(description="when that was; null: the time is not kept")]
    until: Annotated[
        str | None, Field(description="when what is deferred, snoozed, claimed or waiting goes on")
    ]
    text: Annotated[str | None, Field(description="more about it, like the error or the run; null: nothing")]


class Receipt(TypedDict):
    state: Annotated[
        str,
        Field(
            description="how far it got: accepted, deferred, arrived, handed_over, submitted, held, seen, "
            "partly_posted, posted, returned (the open session that had it ended before it was done), "
            "snoozed, waits, acknowledged, done, failed or cancelled. Mail for people is never done: it has "
            "arrived, was seen, or was acknowledged"
        ),
    ]
    overdue: Annotated[bool, Field(description="true: it was not acknowledged in time, and is not until now")]
    run: Annotated[
        str | None, Field(description="the last run of the recipient that had it, like r9; null: none")
    ]
    submitted_at: Annotated[str | None, Field(description="when an open session was told; null: none was")]
    held_at: Annotated[str | None, Field(description="when its harness began to hold it back")]
    seen_at: Annotated[str | None, Field(description="when the recipient had it; null: nobody knows that")]
    done_at: Annotated[str | None, Field(description="when it got its final status")]
    steps: Annotated[list[Step], Field(description="what happened to it, in order")]


class Moment(NamedTuple):
    """A step before it is written."""

    step: str
    at: int | None
    text: str | None = None
    until: int | None = None


def of_envelopes(
    connection: Connection, numbers: list[int], viewer: int | None, now: int
) -> dict[int, Receipt]:
    """Return the receipts of these envelopes, by id. The caller has checked that the viewer may see them."""
    return {
        one.envelope["id"]: _receipt(one, viewer, now) for one in receipts.of_envelopes(connection, numbers)
    }


def _receipt(known: Known, viewer: int | None, now: int) -> Receipt:
    row, turn = known.envelope, known.session_turn
    return {
        "state": _state(known),
        "overdue": _is_late(known, now) and _dealt_with_at(known) is None,
        "run": None if known.run is None else f"r{known.run['id']}",
        "submitted_at": None if turn is None else clock.iso(turn["submitted_at"]),
        "held_at": None if turn is None else clock.iso_or_none(turn["held_at"]),
        "seen_at": clock.iso_or_none(_seen_at(known)),
        "done_at": clock.iso_or_none(row["done_at"]),
        "steps": [_step(one) for one in _in_order(_moments(known, viewer, now))],
    }


def _step(one: Moment) -> Step:
    return {
        "step": one.step,
        "at": clock.iso_or_none(one.at),
        "until": clock.iso_or_none(one.until),
        "text": one.text,
    }


def _in_order(moments: Iterator[Moment]) -> list[Moment]:
    """Sort by time. A step whose time is not kept stands where it belongs on the way."""
    found = sorted(moments, key=lambda one: _RANK[one.step])
    timed = sorted((one for one in found if one.at is not None), key=lambda one: one.at or 0)
    for one in found:
        if one.at is None:
            place = next(
                (n for n, other in enumerate(timed) if _RANK[other.step] > _RANK[one.step]), len(timed)
            )
            timed.insert(place, one)
    return timed


# --- the state -----------------------------------------------------------------------


def _state(known: Known) -> str:
    """Return how far an envelope got, in one word."""
    row = known.envelope
    if row["status"] in (Status.FAILED, Status.CANCELLED):
        return Status(row["status"]).word
    if row["waits"] == Waits.SNOOZE:
        return "snoozed"
    if _only_arrives(known):
        return _with_person(known)
    if row["status"] == Status.DONE:
        return "acknowledged" if row["acked_at"] is not None else "done"
    return _pending(known)


def _only_arrives(known: Known) -> bool:
    """Tell whether nothing more is to be done with it once it has arrived: then `done` says nothing of it."""
    row = known.envelope
    return row["recipient_kind"] in ("user", "group") or bool(row["context"])


def _with_person(known: Known) -> str:
    row = known.envelope
    if row["arrived"] is None:
        return _pending(known)
    if row["acked_at"] is not None:
        return "acknowledged"
    return "seen" if row["read_at"] is not None else "arrived"


def _pending(known: Known) -> str:
    row = known.envelope
    if row["arrived"] is None:
        return "deferred" if row["waits"] == Waits.DEFERRED else "accepted"
    if known.posts.posted:
        return "partly_posted" if known.posts.posted < known.posts.planned else "posted"
    if row["held_by"] is not None or row["waits"] == Waits.LEASE:
        return _in_hand(known)
    if known.session_turn is not None and known.session_turn == known.run:
        return "returned"
    if row["waits"] == Waits.RETRY or known.lane is not None:
        return "waits"
    return "seen" if row["read_at"] is not None else "arrived"


def _in_hand(known: Known) -> str:
    """Return how far whoever has it now got: an open session, a claim, a run, an account."""
    row, turn = known.envelope, known.session_turn
    if turn is None or turn["status"] != "running":
        claimed = row["waits"] == Waits.LEASE
        return "seen" if claimed and row["read_at"] is not None else "handed_over"
    if turn["seen_at"] is not None:
        return "seen"
    return "submitted" if turn["held_at"] is None else "held"


def _seen_at(known: Known) -> int | None:
    """Return when the recipient had it for the first time, by a mark, a run, or an open session."""
    turn = known.session_turn
    times = (known.envelope["read_at"], None if turn is None else turn["seen_at"])
    return min((time for time in times if time is not None), default=None)


def _dealt_with_at(known: Known) -> int | None:
    """Return when its recipient acknowledged it, or was done with it: then no deadline is left."""
    row = known.envelope
    if row["acked_at"] is None and not _only_arrives(known):
        return row["done_at"]  # type: ignore[no-any-return]
    return row["acked_at"]  # type: ignore[no-any-return]


def _is_late(known: Known, now: int) -> bool:
    """Tell whether its deadline passed before that."""
    row, then = known.envelope, _dealt_with_at(known)
    if row["ack_by"] is None or row["status"] in (Status.FAILED, Status.CANCELLED):
        return False
    return bool(row["ack_by"] < (now if then is None else then))


# --- the steps -----------------------------------------------------------------------


def _moments(known: Known, viewer: int | None, now: int) -> Iterator[Moment]:
    row = known.envelope
    yield Moment("accepted", row["created_at"])
    if row["deliver_at"] is not None:
        yield Moment("deferred", row["created_at"], until=row["deliver_at"])
    if row["routed_from_address"] is not None:
        text = f"to {row['recipient_address']}, in the place of {row['routed_from_address']}"
        yield Moment("routed", None, text)
    if row["arrived"] is not None:
        yield Moment("arrived", row["arrived_at"])
    for one in known.forwards:
        # Where the boss has his mail posted is for nobody else to know, unless the sender named that chat.
        if viewer is None or viewer == row["recipient"] or (one["addressed"] and viewer == row["sender"]):
            yield Moment("forwarded", None, f"e{one['id']} to {one['address']}")
    yield from _delivery(known, viewer)
    yield from _marks(known, now)
    yield from _end(known, viewer)


def _delivery(known: Known, viewer: int | None) -> Iterator[Moment]:
    row, turn, posts = known.envelope, known.session_turn, known.posts
    if row["handovers"] and row["handed_at"] is not None:
        yield Moment("handed_over", row["handed_at"], _to_whom(known), _claimed_until(known))
    if turn is not None:
        yield Moment("submitted", turn["submitted_at"], f"r{turn['id']}, of an open session")
        if turn["held_at"] is not None:
            yield Moment("held", turn["held_at"])
    if posts.posted:
        yield Moment("posted", posts.first, f"part 1 of {posts.planned}" if posts.planned > 1 else None)
        if posts.posted > 1:
            yield Moment("posted", posts.last, f"part {posts.posted} of {posts.planned}")
    if row["unconfirmed"] and row["status"] != Status.DONE:
        yield Moment("unconfirmed", None, "a post got no answer; it may be there all the same")
    if posts.taken_back is not None:
        yield Moment("taken_back", posts.taken_back)
    yield from _tries(known, viewer)


def _tries(known: Known, viewer: int | None) -> Iterator[Moment]:
    row, lane = known.envelope, known.lane
    if row["status"] != Status.PENDING:
        return
    if row["waits"] == Waits.RETRY:
        yield Moment("waits", row["error_at"], _why(known, viewer), row["wait_until"])
    elif row["attempts"]:
        yield Moment("tried", row["error_at"], _why(known, viewer))
    if lane is not None and lane["state"] == "paused":
        yield Moment("waits", None, "deliveries there are paused")
    elif lane is not None:
        said = _error(lane["error_kind"], lane["error_text"], own=_is_own(known, viewer))
        yield Moment("waits", lane["error_at"], said, lane["wake_at"])


def _to_whom(known: Known) -> str | None:
    row = known.envelope
    parts = [] if row["handovers"] < 2 else [f"{row['handovers']} times, the last"]
    if row["binding"] is not None:
        parts.append(f"to the account b{row['binding']}")
    elif known.run is not None:
        parts.append(f"to r{known.run['id']}")
    elif row["claim"] is not None:
        parts.append(f"to the claim k{row['claim']}")
    return " ".join(parts) or None


def _claimed_until(known: Known) -> int | None:
    """Return when a claim ends; that of an open session has no end."""
    row = known.envelope
    return row["wait_until"] if row["waits"] == Waits.LEASE and known.run is None else None


def _marks(known: Known, now: int) -> Iterator[Moment]:
    row = known.envelope
    if (seen := _seen_at(known)) is not None:
        yield Moment("seen", seen)
    if row["waits"] == Waits.SNOOZE:
        yield Moment("snoozed", None, until=row["snoozed_until"])
    if row["acked_at"] is not None:
        yield Moment("acknowledged", row["acked_at"])
    if _is_late(known, now):
        yield Moment("overdue", row["ack_by"])


def _end(known: Known, viewer: int | None) -> Iterator[Moment]:
    row = known.envelope
    if row["status"] == Status.DONE and not _only_arrives(known):
        yield Moment("done", row["done_at"])
    elif row["status"] in (Status.FAILED, Status.CANCELLED):
        yield Moment(Status(row["status"]).word, row["done_at"], _why(known, viewer))


def _why(known: Known, viewer: int | None) -> str | None:
    """Return the last error; None if it is older than the end: then it was not why."""
    row = known.envelope
    if row["status"] != Status.PENDING and row["error_at"] != row["done_at"]:
        return None
    return _error(row["error_kind"], row["error_text"], own=_is_own(known, viewer))


def _is_own(known: Known, viewer: int | None) -> bool:
    """Tell whether somebody may read the errors: what the run of another agent said may quote its mail."""
    row = known.envelope
    return viewer is None or viewer == row["recipient"] or row["binding"] is not None


def _error(kind: str | None, text: str | None, *, own: bool) -> str | None:
    """Return an error in words; of others only its kind, as agent.status does."""
    return f"{kind}: {text}" if own and kind and text else kind
