"""What the Responses API refuses: a request that is not well-formed gets 400, with the reason."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .request import Refusal

JSON = dict[str, Any]
ROLES = ("user", "assistant", "system", "developer")
# Calls that the API answers itself: they have no output from the client.
OWN_CALLS = ("web_search_call", "file_search_call", "image_generation_call", "code_interpreter_call")

SEARCHED = (
    "tool_search_output"  # the tools that a search of the client found: the model has them from then on
)


def check(body: JSON, headers: Mapping[str, str]) -> None:
    """Raise Refusal if the real API would refuse the request."""
    if not isinstance(body.get("model"), str) or not body["model"]:
        raise _bad("Missing required parameter: 'model'.")
    if not isinstance(body.get("input"), str | list) or not body["input"]:
        raise _bad("Missing required parameter: 'input'.")
    for index, item in enumerate(items_of(body)):
        _check_item(index, item)
    _check_calls(items_of(body))
    if body.get("previous_response_id"):
        raise _bad(f"Previous response with id '{body['previous_response_id']}' not found.")


def items_of(body: JSON) -> list[JSON]:
    """Return the input as items."""
    if isinstance(body["input"], str):
        return [{"type": "message", "role": "user", "content": body["input"]}]
    return [{"type": "message", **one} if isinstance(one, dict) else one for one in body["input"]]


def tools_of(body: JSON) -> dict[str, JSON]:
    """Return all tools by name: those of the request, those that its input adds, and those of namespaces."""
    given = list(body.get("tools") or [])
    for item in items_of(body):
        if item["type"] in ("additional_tools", SEARCHED):
            given += item.get("tools") or []
    found: dict[str, JSON] = {}
    for tool in given:
        if tool.get("type") == "namespace":
            found |= {one["name"]: {**one, "namespace": tool["name"]} for one in tool.get("tools") or []}
        else:
            found[tool.get("name") or tool.get("type")] = tool
    return found


def _bad(message: str) -> Refusal:
    return Refusal(400, "invalid_request_error", message)


def _check_item(index: int, item: Any) -> None:
    if not isinstance(item, dict) or not isinstance(item["type"], str):
        raise _bad(f"Invalid type for 'input[{index}]': expected an object with a type.")
    if item["type"] == "message":
        if item.get("role") not in ROLES:
            raise _bad(f"Invalid value: '{item.get('role')}'. Supported values are: {', '.join(ROLES)}.")
        if not isinstance(item.get("content"), str | list):
            raise _bad(f"Missing required parameter: 'input[{index}].content'.")
    elif _has_call_id(item["type"]) and not (isinstance(item.get("call_id"), str) and item["call_id"]):
        raise _bad(f"Missing required parameter: 'input[{index}].call_id'.")


def _check_calls(items: list[JSON]) -> None:
    """Each call of a tool has its output, and each output its call before it."""
    calls: set[str] = set()
    answered: set[str] = set()
    for item in items:
        if item["type"].endswith("_call_output") or item["type"] == SEARCHED:
            if item["call_id"] not in calls:
                raise _bad(f"No tool call found for function call output with call_id {item['call_id']}.")
            answered.add(item["call_id"])
        elif _has_call_id(item["type"]):
            calls.add(item["call_id"])
    if missing := calls - answered:
        raise _bad(f"No tool output found for function call {sorted(missing)[0]}.")


def _has_call_id(kind: str) -> bool:
    return kind.endswith(("_call", "_call_output")) and kind not in OWN_CALLS
