"""The tools about the chat of an agent and the boss."""

from __future__ import annotations

from typing import Any

from .caller import Caller
from .tool import Arguments, Tool

ID = {"type": "string"}  # a number is taken too, but some clients refuse a schema with two types
LIMIT = {"type": "integer"}


async def _read(caller: Caller, given: Arguments) -> dict[str, Any]:
    found: dict[str, Any] = await caller.chat("read", **given)
    return found


async def _post(caller: Caller, author: str, given: Arguments) -> dict[str, Any]:
    posted: dict[str, Any] = await caller.chat("post", **{**given, "author": author})
    caller.posted.append(posted["id"])
    return posted


async def _human_post(caller: Caller, given: Arguments) -> dict[str, Any]:
    return await _post(caller, "user", given)


async def _assistant_post(caller: Caller, given: Arguments) -> dict[str, Any]:
    return await _post(caller, "assistant", given)


async def _ack(caller: Caller, given: Arguments) -> dict[str, Any]:
    found: dict[str, Any] = await caller.chat("ack", **given)
    return found


POST = {
    "mime": "text/markdown (default), text/plain, text/html, application/json",
    "content": "what to say",
    "reply_to": {**ID, "description": "the entry it answers; it leaves by that one's door"},
    "key": "a repeated call with the same key posts nothing",
}
TOOLS = (
    Tool(
        name="chat_read_since",
        description="Entries of the chat between the agent and the boss after an id, oldest first. Moves "
        "nothing: call chat_ack when you have processed them.",
        operations=("chat.read",),
        run=_read,
        params={
            "after_id": {**ID, "description": "default: the subscriber's position"},
            "limit": LIMIT,
            "subscriber": "a name, if you have several readers",
        },
    ),
    Tool(
        name="chat_human_post",
        description="Say something to the agent as the boss (needs the boss's token).",
        operations=("chat.post",),
        run=_human_post,
        params=POST,
        required=("content",),
        dotted="chat.human.post",
    ),
    Tool(
        name="chat_assistant_post",
        description="Say something to the boss as the agent (needs the agent's token).",
        operations=("chat.post",),
        run=_assistant_post,
        params=POST,
        required=("content",),
        dotted="chat.assistant.post",
    ),
    Tool(
        name="chat_ack",
        description="Move your position in the chat up to this entry: it is processed.",
        operations=("chat.ack",),
        run=_ack,
        params={"id": ID, "subscriber": "as in chat_read_since"},
        required=("id",),
    ),
)
