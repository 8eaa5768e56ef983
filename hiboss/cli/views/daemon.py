"""What the daemon's status, its lanes and its settings look like."""

from __future__ import annotations

import sys
from typing import Any

from .. import output
from .breaker import pulled
from .times import moment


def status(result: dict[str, Any]) -> None:
    """Print the daemon's status, then each lane and adapter that has something to report."""
    if output.Mode.json:
        output.document(result)
        return
    zone = result["timezone"]
    times = {name: moment(result[name], zone) for name in ("started_at", "next_wake_at", "oldest_due_at")}
    shown = result | times | {"breaker": pulled(result["breaker"], zone)}
    output.record(
        {
            known: one
            for name, value in shown.items()
            if name not in ("lanes", "adapters")
            for known, one in (_web(value) if name == "web" else {name: value}).items()
        }
    )
    for lane in result["lanes"]:
        output.line()
        output.record({"lane": lane["address"]} | _lane(lane, zone))
    for adapter in result["adapters"]:
        output.line()
        facts = {name: adapter[name] for name in ("state", "agents", "last_error")}
        account = f"{adapter['adapter_type']}:{adapter['account']}"
        output.record({"adapter": account} | facts | _account(adapter, zone))


def _web(found: dict[str, Any]) -> dict[str, Any]:
    """The HTTP door: its state as `web`, then where it is or why it is not."""
    return {"web": found["state"]} | {f"web_{name}": found[name] for name in ("url", "hooks_url", "error")}


def lanes(result: dict[str, Any]) -> None:
    """Print the lanes, a block each."""
    if output.Mode.json:
        output.document(result)
        return
    blocks = ({"address": one["address"]} | _lane(one, result["timezone"]) for one in result["lanes"])
    output.records(blocks, empty="no-lanes", sentence="No lanes found.")


def bindings(result: dict[str, Any]) -> None:
    """Print the bindings, a block each."""
    if output.Mode.json:
        output.document(result)
        return
    blocks = (_binding(one, result["timezone"]) for one in result["bindings"])
    output.records(blocks, empty="no-bindings", sentence="No agent is connected to a platform.")


def _binding(one: dict[str, Any], zone: str) -> dict[str, Any]:
    chats = [f"{chat['address']} {chat['name'] or ''}".strip() for chat in one["chats"]]
    return one | {"chats": chats or None} | _account(one, zone)


def _account(one: dict[str, Any], zone: str) -> dict[str, Any]:
    """Return the times of an account that waits."""
    return {name: moment(one[name], zone) for name in ("failing_since", "next_try_at") if one[name]}


def _lane(one: dict[str, Any], zone: str) -> dict[str, Any]:
    times = {
        name: moment(one[name], zone)
        for name in ("next_try_at", "failing_since", "last_error_at")
        if one[name]
    }
    return {k: v for k, v in (one | times).items() if k != "address" and (k != "failures" or v)}


# --- settings ------------------------------------------------------------------------


def settings(result: dict[str, Any]) -> None:
    """Print the settings: their values and where each comes from."""
    if output.Mode.json:
        output.document(result)
    elif output.on_terminal(sys.stdout) and result["settings"]:
        _settings_table(result["settings"])
    else:
        shown = ("setting", "value", "source", "variable")
        blocks = ({name: one[name] for name in shown} | _next_start(one) for one in result["settings"])
        output.records(blocks, empty="no-settings", sentence="Every setting has its default.")


def _settings_table(found: list[dict[str, Any]]) -> None:
    from ..table_layout import Column

    headed = [
        Column(title="setting", least=12),
        Column(title="value", least=8, most=40),
        Column(title="from", least=7, most=40, leaves=1),
        Column(title="next start", least=4, leaves=2),
    ]
    rows = [
        [
            one["setting"],
            output.word(one["value"]),
            one["source"],
            output.word(one["next_value"]) if one["next_start"] else "",
        ]
        for one in found
    ]
    output.table(headed, rows)


def _next_start(one: dict[str, Any]) -> dict[str, Any]:
    return {"next-start": one["next_value"]} if one["next_start"] else {}
