"""`hiboss group …`"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from ...core.errors import InvalidParams
from ...core.paths import Home
from .. import output
from ..call import call, call_as
from ..credentials import find_token
from ..key_values import key_values
from ..options import (
    After,
    As,
    Json,
    Number,
    Reason,
    Text,
    Texts,
    Token,
    Yes,
    argument,
    flag,
    noun,
)
from ..text_input import confirm, unrepeated
from ..views import conversations as views

app = noun("Create groups, and manage who is in them.")

NewName = Annotated[str, argument("NAME", "Letters, digits and single dashes, like core-team.")]
Name = Annotated[str, argument("NAME", "The group's name; hiboss group list shows your groups.")]
Member = Annotated[str, argument("ADDRESS", "Who, like kai, user:ann or channel:telegram:-100.")]
Members = Annotated[Texts, argument("[ADDRESS…]", "Who, like kai user:ann channel:telegram:-100.")]
WithMembers = Annotated[
    Texts, flag("--member", "ADDRESS", "Who: kai, user:ann, channel:telegram:-100. May be repeated.")
]
Description = Annotated[Text, flag("--description", "TEXT", "What it is for.")]
Meta = Annotated[Texts, flag("--meta", "KEY=VALUE", "Your own data about it. May be repeated.")]
Open = Annotated[
    bool | None, flag("--open/--closed", None, "Open: any agent or user may join; closed: who is added.")
]
History = Annotated[
    int | None, flag("--history", "N", "How many earlier messages a newcomer may see; by default none.")
]
RESPOND = Literal["mentioned", "people", "all", "claim", "never"]
Respond = Annotated[
    RESPOND | None,
    flag("--respond", None, "Which messages are for an agent to answer; by default where it is mentioned."),
]


def address(name: str) -> str:
    """Return the address of a group that a command names; a bare name like c12 is no id here."""
    return name if name.lower().startswith("group:") else f"group:{name}"


@app.command()
def create(
    name: NewName,
    member: WithMembers = None,
    open_: Open = None,
    description: Description = None,
    meta: Meta = None,
    history: History = None,
    respond: Respond = None,
    token: Token = None,
    as_: As = None,
    json_: Json = False,
) -> None:
    """Create a group. You own it; send to it as group:NAME.

    Example: hiboss group create core-team --member nex --member user:ann
    """
    params = {
        "name": name.removeprefix("group:"),
        "participants": unrepeated(member or []),
        "open": open_,
        "description": description,
        "metadata": key_values(meta) or None,
        "history": history,
        "respond": respond,
    }
    views.detail(call("conversation.create", params, token=token, profile=as_))


@app.command("list")
def list_(
    open_: Annotated[bool, flag("--open", None, "Groups that anybody may join, not only yours.")] = False,
    all_: Annotated[bool, flag("--all", None, "Every group (boss only).")] = False,
    archived: Annotated[
        bool | None, flag("--archived/--active", None, "Only archived ones, or none.")
    ] = None,
    past: Annotated[bool, flag("--past", None, "Also those you left, and deleted ones.")] = False,
    number: Number = None,
    after: After = None,
    count: Annotated[bool, flag("--count", None, "Also count all of them.")] = False,
    token: Token = None,
    as_: As = None,
    json_: Json = False,
) -> None:
    """List your groups, newest first; or those that you can join.

    group:all is every agent.

    Example: hiboss group list --open
    """
    if open_ and all_:
        raise InvalidParams(detail="give either --open or --all")
    params: dict[str, Any] = {"scope": "all" if all_ else "open" if open_ else "own", "type": "group"}
    params |= {"archived": archived, "past": past, "page_size": number, "after": after, "count": count}
    views.listed(call("conversation.list", params, token=token, profile=as_), groups=True)


@app.command()
def show(name: Name, token: Token = None, as_: As = None, json_: Json = False) -> None:
    """Show a group, and who is in it."""
    views.detail(call("conversation.get", {"conversation": address(name)}, token=token, profile=as_))


@app.command("set")
def set_(
    name: Name,
    open_: Open = None,
    description: Description = None,
    meta: Meta = None,
    history: History = None,
    token: Token = None,
    as_: As = None,
    json_: Json = False,
) -> None:
    """Change a group. --meta replaces all of its data. Needs its owner, an admin, or the boss.

    Example: hiboss group set core-team --open --history 20
    """
    params = {
        "conversation": address(name),
        "open": open_,
        "description": description,
        "metadata": key_values(meta) or None,
        "history": history,
    }
    views.detail(call("conversation.set", params, token=token, profile=as_))


@app.command()
def archive(
    name: Name,
    undo: Annotated[bool, flag("--undo", None, "Let it take messages again.")] = False,
    token: Token = None,
    as_: As = None,
    json_: Json = False,
) -> None:
    """Let a group take no messages any more; it stays readable. --undo opens it again."""
    params = {"conversation": address(name), "archived": not undo}
    views.detail(call("conversation.archive", params, token=token, profile=as_))


@app.command()
def delete(
    name: Name,
    reason: Reason = None,
    yes: Yes = False,
    token: Token = None,
    as_: As = None,
    json_: Json = False,
) -> None:
    """Delete a group. What was said stays readable for those who were in it; the name is free again.

    Needs its owner, or the boss.
    """
    home = Home()
    found = find_token(home, token, as_)  # once: it may be read from standard input
    if not yes:  # first: nobody is asked about a group that is not there
        call_as(home, "conversation.get", {"conversation": address(name)}, found)
    confirm(
        yes,
        f"delete {address(name)}",
        f"Delete {address(name)}? It cannot be undone",
        "hiboss group delete --help",
    )
    result = call_as(home, "conversation.delete", {"conversation": address(name), "reason": reason}, found)
    one = result["conversation"]
    facts = {"id": one["id"], "address": one["address"], "deleted": True}
    output.answer(result, facts | {"failed-envelopes": result["failed_envelopes"]})


# --- who is in it --------------------------------------------------------------------


@app.command()
def add(
    name: Name,
    addresses: Members = None,
    member: WithMembers = None,
    admin: Annotated[bool, flag("--admin", None, "As an admin, who can add and remove members.")] = False,
    history: Annotated[
        int | None,
        flag("--history", "N", "How many earlier messages they may see; by default as the group says."),
    ] = None,
    respond: Respond = None,
    token: Token = None,
    as_: As = None,
    json_: Json = False,
) -> None:
    """Add agents, people or channels to a group. Who is in it already keeps its role.

    Example: hiboss group add core-team kai --respond all
    """
    params = {"history": history, "respond": respond, "role": "admin" if admin else None}
    _each("participant.add", name, [*(addresses or []), *(member or [])], params, token, as_)


@app.command()
def remove(
    name: Name,
    addresses: Members = None,
    member: WithMembers = None,
    token: Token = None,
    as_: As = None,
    json_: Json = False,
) -> None:
    """Remove somebody from a group.

    From now on they neither get nor send anything there. What was said till then they can still read.
    """
    _each("participant.remove", name, [*(addresses or []), *(member or [])], {}, token, as_)


@app.command()
def role(
    name: Name,
    member: Member,
    role: Annotated[
        Literal["admin", "member"] | None, argument("[ROLE]", "admin: can add and remove members; or member.")
    ] = None,
    respond: Respond = None,
    token: Token = None,
    as_: As = None,
    json_: Json = False,
) -> None:
    """Make somebody an admin or a member; set when an agent answers.

    Example: hiboss group role core-team kai admin
    """
    params = {"conversation": address(name), "address": member, "role": role, "respond": respond}
    views.membership(call("participant.role", params, token=token, profile=as_))


@app.command()
def transfer(name: Name, member: Member, token: Token = None, as_: As = None, json_: Json = False) -> None:
    """Give a group that you own to another member. You become an admin."""
    params = {"conversation": address(name), "address": member}
    views.membership(call("participant.transfer", params, token=token, profile=as_))


@app.command()
def join(
    name: Name, respond: Respond = None, token: Token = None, as_: As = None, json_: Json = False
) -> None:
    """Come into an open group."""
    params = {"conversation": address(name), "respond": respond}
    views.membership(call("participant.join", params, token=token, profile=as_))


@app.command()
def leave(name: Name, token: Token = None, as_: As = None, json_: Json = False) -> None:
    """Leave a group. What was said while you were in it you can still read."""
    views.membership(call("participant.leave", {"conversation": address(name)}, token=token, profile=as_))


def _each(
    method: str, name: str, members: list[str], params: dict[str, Any], token: Text, profile: Text
) -> None:
    """Take a step for each of these; the last answer shows the group as it is then."""
    if not members:
        raise InvalidParams(detail="name at least one address, like kai or user:ann")
    home = Home()
    found = find_token(home, token, profile)  # once: it may be read from standard input
    changed, result = False, None
    for one in unrepeated(members):
        result = call_as(home, method, {"conversation": address(name), "address": one, **params}, found)
        changed = changed or result["changed"]
    assert result is not None
    views.membership(result | {"changed": changed})
