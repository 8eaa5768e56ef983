"""What a conversation looks like: messages, notices, and the present state. Nothing here prints.

The texts come from others: none may control the terminal, and each row of them is indented, so
that none can look like a line of ours.
"""

from __future__ import annotations

from ...core import clock, rendering
from ...core.escaping import quote
from ..text_layout import INDENT, LONGEST, cut, flat, hanging, tame, wrapped
from .conversation import ConversationClient, Envelope, LiveRun

LIVE_LINES = 4  # of what an agent writes while it works


def header(one: Envelope, client: ConversationClient) -> str:
    """`nex  14:03`: the sender and the time, in the boss's zone; with the place, if it was written in a chat.

    A message that was edited or deleted says so.
    """
    zone = clock.zone(client.timezone)
    written, today = rendering.moment(one["created_at"], zone), clock.local(clock.now(), zone)
    when = written[11:16] if written[:10] == today[:10] else written[:16].replace("T", " ")
    subject = f"  {quote(one['subject'])}" if one["subject"] else ""
    place = "" if one["from"] == one["sender"] else f" ({one['from']})"
    edited = "  (deleted)" if one.get("deleted") else "  (edited)" if one["edited_at"] else ""
    return tame(f"{who(one['sender'], client)}{place}  {when}{edited}{subject}")


def who(address: str, client: ConversationClient) -> str:
    if address == client.own:
        return "you"
    return address.removeprefix("agent:")


def content(one: Envelope, cells: int) -> list[str]:
    """The text and the files, as shown below the header; the text is indented."""
    if one.get("deleted"):
        return [f"(deleted: {quote(one['deleted_why'])})" if one["deleted_why"] else "(deleted)"]
    files = rendering.attachments(one["attachments"])
    rows = [*indented(one["text"].rstrip(), cells), *(row for line in files for row in hanging(line, cells))]
    return rows or ["(nothing)"]


def indented(text: str, cells: int) -> list[str]:
    """A text of somebody else in rows that fit."""
    return [(INDENT + row).rstrip() for row in wrapped(text, cells - len(INDENT), whole_words=True)]


def elsewhere(one: Envelope, client: ConversationClient) -> str:
    """One line about mail of another conversation."""
    sender, text = one["from"], flat(one["subject"] or one["text"])
    name = flat(who(sender, client))
    if sender == "agent:system":
        whole = told_in_full(one)
        lines = f"\n{INDENT}".join(one["text"].rstrip().splitlines())
        return f"notice: {lines}" if whole else f"notice: {text}… (hiboss read {one['id']})"
    plain = one["group"] is None and sender.startswith(("agent:", "user:"))
    how = f"hiboss chat {name}" if plain and one["channel"] is None else f"hiboss read {one['id']}"
    return f"{name} wrote to you: {quote(cut(text, 200))} ({how})"


def told_in_full(one: Envelope) -> bool:
    """Whether the line about it contains all of it."""
    return bool(one["from"] == "agent:system" and len(one["text"]) <= LONGEST and not one["attachments"])


def state(client: ConversationClient) -> str:
    """Why the other side does not answer now, and the command that helps; empty when nothing is wrong."""
    name, resume = client.other.name, f"hiboss agent resume {client.other.name}"
    why = f": {flat(client.why)}" if client.why else ""
    if client.live is not None:
        return ""
    if client.state == "paused":
        helps = "" if why.endswith(")") else f" ({resume})"  # a reason may name what helps, like hiboss go
        return f"{name} is paused{why}{helps}"
    if client.state == "waiting":
        return f"{name} cannot answer now{tried_again(why)} (at once: {resume})"
    if client.state == "asks" and client.is_elsewhere:
        return f"{name} waits for an answer to something else{why}"
    return f"{name} is working on something else" if client.is_elsewhere else ""


def tried_again(why: str) -> str:
    """An error that does not last, with the note that it does not; some providers say so themselves."""
    again = "; hiboss tries again"
    return why.removesuffix(f"{again} later").removesuffix(again) + again


def asks(text: str, client: ConversationClient) -> str:
    """A question of the run that works for this conversation; the boss, who can answer it, has it as a message."""
    question = text.partition(" ")[2]  # the id of the ask is before it
    return f"{client.other.name} asks: {quote(flat(question))} (the boss can answer)"


def event(one: Envelope, client: ConversationClient) -> str:
    """One line about a control, like `you: pause r9: applied`."""
    return f"{flat(who(one['sender'], client))}: {flat(one['text'])}"


def fetches(client: ConversationClient) -> str:
    return f"{client.other.name} gets no turns; it answers when it fetches its mail"


def working(live: LiveRun, name: str, cells: int, *, asks: bool = False) -> list[str]:
    """`nex is working, 3 s`, and the end of what it has written so far. `asks`: it waits for an answer."""
    paused = " (paused; /resume lets it go on)" if live.paused else ""
    tool = f"; {flat(live.tool)}" if live.tool else ""
    first = f"{name} is working, {live.seconds} s{paused}{tool}"
    if live.questions or asks:
        first = f"{name} waits for an answer{paused}"
    return [cut(first, cells), *(INDENT + text for text in tail(live.text, cells - len(INDENT)))]


def tail(text: str, cells: int, number: int = LIVE_LINES) -> list[str]:
    """The last lines of a text on a terminal of this width."""
    return wrapped("\n".join(text.rstrip().splitlines()[-number:]), cells)[-number:]
