"""A right request for every operation about the chat of an agent and the boss, for test_operations.py."""

from __future__ import annotations

from typing import Any

from tests.api.operation_runs import Answers, Case


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
