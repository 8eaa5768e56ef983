"""Right requests for the operations about conversations and groups."""

from __future__ import annotations

from typing import Any

from tests.api.operation_runs import Answers, Case


def made(case: Case, **params: Any) -> str:
    """Create a group of ada with bob in it; return its name."""
    name = f"group-{case.ada.name}"
    case.ada.call("conversation.create", name=name, participants=[case.bob.address], **params)
    return name


def creates(case: Case) -> list[Any]:
    facts = {"description": "d", "open": True, "history": 3, "respond": "all", "metadata": {"a": [1, None]}}
    other = case.bob.address
    found = [
        case.ada.call("conversation.create", name=f"x-{case.ada.name}"),
        case.ada.call("conversation.create", name=f"y-{case.ada.name}", participants=[other], **facts),
        case.ada.call("conversation.create", type="private", participants=[other], description="d"),
        case.boss.call("conversation.create", type="private", participants=[case.ada.address], name="n"),
    ]
    assert [one["changed"] for one in found] == [True, True, False, True]
    return found


def shows(case: Case) -> list[Any]:
    name = made(case)
    case.ada.send(f"group:{name}")
    private = case.ada.get(case.numbers[0])["conversation"]
    found = [
        *[one.call("conversation.get", conversation=name) for one in (case.ada, case.bob, case.boss)],
        case.ada.call("conversation.get", conversation=private),
        case.ada.call("conversation.get", conversation="group:all"),
        case.boss.call("conversation.get", conversation=private, address=case.bob.address),
    ]
    case.ada.call("conversation.delete", conversation=name, reason="r")
    return [*found, case.bob.call("conversation.get", conversation=found[0]["conversation"]["id"])]


def lists(case: Case) -> list[Any]:
    name = made(case, open=True)
    words: tuple[dict[str, Any], ...] = (
        {},
        {"count": True, "page_size": 1},
        {"type": "group"},
        {"archived": True},
        {"name": name, "past": True},
        {"scope": "open", "count": True},
    )
    found = [case.ada.call("conversation.list", **one) for one in words]
    assert found[1]["next"] and found[4]["conversations"][0]["name"] == name
    return [*found, case.boss.call("conversation.list", scope="all", page_size=1)]


def changes(case: Case) -> list[Any]:
    name, private = made(case), case.ada.get(case.numbers[0])["conversation"]
    facts = {"description": "", "open": True, "history": 1, "metadata": {"a": 1}}
    found = [
        case.ada.call("conversation.set", conversation=name, **facts),
        case.bob.call("conversation.set", conversation=private, name="n", description="d"),
    ]
    assert [one["conversation"]["name"] for one in found] == [name, "n"]
    return found


def archives(case: Case) -> list[Any]:
    name = made(case)
    found = [
        case.ada.call("conversation.archive", conversation=name, archived=archived)
        for archived in (True, True, False)
    ]
    assert [one["changed"] for one in found] == [True, False, True]
    return found


def deletes(case: Case) -> list[Any]:
    name, private = made(case), case.ada.get(case.numbers[0])["conversation"]
    case.ada.send(f"group:{name}", deliver_at="+2h")
    found = [
        case.ada.call("conversation.delete", conversation=name, reason="r"),
        case.boss.call("conversation.delete", conversation=private),
    ]
    assert [one["failed_envelopes"] for one in found] == [1, 0]
    return found


def marks(case: Case) -> list[Any]:
    name, private = made(case), case.ada.get(case.numbers[0])["conversation"]
    case.ada.send(f"group:{name}")
    found = [
        case.bob.call("conversation.markRead", conversation=private, up_to_seq=1, session="s"),
        case.boss.call("conversation.markRead", conversation=private, address=case.bob.address),
        case.ada.call("conversation.markRead", conversation=name),
    ]
    assert [one["changed"] for one in found] == [1, 1, 0]
    return found


def members(verb: str, *params: dict[str, Any]) -> Answers:
    """Of bob, who is in the group of ada; each with these parameters."""

    def asked(case: Case) -> list[Any]:
        name = made(case, open=True)
        of_bob = {"conversation": name, "address": case.bob.address}
        if verb in ("join", "leave"):
            return [case.bob.call(f"participant.{verb}", conversation=name, **one) for one in params]
        return [case.ada.call(f"participant.{verb}", **of_bob, **one) for one in params]

    return asked


CALLS_OF_GROUPS: dict[str, Answers] = {
    "conversation.create": creates,
    "conversation.get": shows,
    "conversation.list": lists,
    "conversation.set": changes,
    "conversation.archive": archives,
    "conversation.delete": deletes,
    "conversation.markRead": marks,
    "participant.add": members("add", {}, {"respond": "claim", "history": 1}),
    "participant.remove": members("remove", {}),
    "participant.role": members("role", {"role": "admin"}, {"respond": "people", "role": "member"}),
    "participant.transfer": members("transfer", {}),
    "participant.join": members("join", {}, {"respond": "all"}),
    "participant.leave": members("leave", {}),
}
