"""A right request for every operation about messages, threads, and the chat of an agent and the boss, for test_operations.py."""

from __future__ import annotations

from typing import Any

from tests.api.operation_runs import Answers, Case
from tests.support.uploaded_files import put

AUTH = {"type": "module", "value": "auth"}


def _talk(case: Case) -> Any:
    """A thread of two messages, with tags; return what was sent first."""
    words = {"scopes": [AUTH], "refs": [{"type": "issue", "value": "42"}], "metadata": {"a": 1}}
    first = case.ada.send(case.bob, text=f"for @{case.bob.name}", **words)
    case.bob.send(reply_to=first["message"], text='{"n": [1]}', type="json", subject="s")
    return first


def lists(case: Case) -> list[Any]:
    first = _talk(case)
    asked: list[dict[str, Any]] = [
        {},
        {"unread": True, "type": "text", "meta": {"a": 1}},
        {"thread_id": first["thread"], "sort_by": "updated_at", "sort_order": "asc"},
        {"conversation_id": first["conversation"], "page_size": 1},
        {"scope": AUTH, "page": 1},
        {"ref": {"type": "mention", "value": case.bob.name}},
        {"mentions": True, "created_after": "-1h"},
        {"author_id": case.bob.name},
    ]
    found = [case.bob.call("message.list", **one) for one in asked]
    found += [case.boss.call("message.list", unread_for_agent=case.bob.name)]
    assert all(one["messages"] for one in found) and found[3]["next"]
    return found


def gets(case: Case) -> list[Any]:
    first = _talk(case)
    found = [one.call("message.get", message_id=first["message"]) for one in (case.ada, case.bob, case.boss)]
    case.ada.call("message.delete", id=first["message"], reason="a mistake")
    return [*found, case.bob.call("message.get", message_id=first["ids"][0])]


def marks(case: Case) -> list[Any]:
    sent = case.ada.send(case.bob, case.boss)["message"]
    found = [
        case.bob.call("message.markRead", message_ids=[sent], **words) for words in ({}, {"session": "s"})
    ]
    found += [case.boss.call("message.markRead", message_ids=[sent])]
    assert [one["marked_count"] for one in found] == [1, 0, 1] and "also_read_by" in found[2]
    return found


def restores(case: Case) -> list[Any]:
    sent = case.ada.send(case.bob)["message"]
    case.ada.call("message.delete", id=sent)
    found = [case.ada.call("message.restore", id=sent) for _ in range(2)]
    assert [one["changed"] for one in found] == [True, False]
    return found


def threads(case: Case) -> list[Any]:
    _talk(case)
    asked: list[dict[str, Any]] = [{}, {"scope": AUTH}, {"page_size": 1, "page": 1}]
    found = [case.bob.call("thread.list", **one) for one in asked]
    assert all(one["threads"] for one in found)
    return [*found, case.boss.call("thread.list", address=case.ada.address)]


def thread(case: Case) -> list[Any]:
    first = _talk(case)
    words: tuple[dict[str, Any], ...] = ({}, {"page_size": 1}, {"sort_order": "desc"})
    return [case.bob.call("thread.get", thread_id=first["thread"], **one) for one in words]


def chains(case: Case) -> list[Any]:
    answer = case.ada.send(case.bob, reply_to=_talk(case)["message"])
    found = [case.bob.call("thread.chain", id=answer[name]) for name in ("message",)]
    assert len(found[0]["chain"]) == 2
    return found


def counts(case: Case) -> list[Any]:
    case.ada.send(case.bob)
    found = [case.bob.call("envelope.unread"), case.boss.call("envelope.unread", address=case.bob.address)]
    assert found[0] == found[1] and found[0]["unread"] > 0
    return found


def uploads(case: Case) -> list[Any]:
    number = put(case.bob)
    found = [one.call("upload.list") for one in (case.bob, case.boss)]
    assert number in [one["id"] for one in found[0]["uploads"]]
    return found


def deletes_uploads(case: Case) -> list[Any]:
    return [case.bob.call("upload.delete", ids=[put(case.bob) for _ in range(2)])]


CALLS_OF_MESSAGES: dict[str, Answers] = {
    "envelope.unread": counts,
    "upload.list": uploads,
    "upload.delete": deletes_uploads,
    "message.list": lists,
    "message.get": gets,
    "message.markRead": marks,
    "message.restore": restores,
    "thread.list": threads,
    "thread.get": thread,
    "thread.chain": chains,
}


def chats(verb: str) -> Answers:
    """Post, edit, delete, read and acknowledge, each as both; return the answers of one operation."""

    def asked(case: Case) -> list[Any]:
        whose = {"agent": case.ada.name}
        posted = [
            case.boss.call(
                "chat.post", content="ready?", mime="text/plain", key=f"k-{case.ada.name}-{verb}", **whose
            ),
            case.boss.call(
                "chat.post", content="ready?", mime="text/plain", key=f"k-{case.ada.name}-{verb}", **whose
            ),
        ]
        posted.append(
            case.ada.call("chat.post", content="*yes*", reply_to=posted[0]["id"], author="assistant")
        )
        case.ada.call("message.edit", id=posted[2]["message"], text="*yes!*")
        case.boss.call("message.delete", id=posted[0]["message"])
        case.ada.call(
            "envelope.send",
            to="user:boss",
            text="a file",
            **{**case.full, "key": f"other-{case.ada.name}-{verb}"},
        )
        found: dict[str, list[Any]] = {"post": posted}
        found["read"] = [
            case.ada.call("chat.read", **words)
            for words in (
                {},
                {"limit": 1},
                {"newest": True},
                {"after_id": "1", "subscriber": "s"},
                {"id": "2"},
            )
        ]
        found["read"].append(case.boss.call("chat.read", **whose))
        last = found["read"][0]["last_id"]
        found["ack"] = [case.ada.call("chat.ack", id=last) for _ in range(2)]
        found["status"] = [
            case.ada.call("chat.status"),
            case.boss.call("chat.status", subscriber="s", **whose),
        ]
        return found[verb]

    return asked


CALLS_OF_CHATS = {f"chat.{verb}": chats(verb) for verb in ("read", "post", "ack", "status")}
