"""What agents and people look like: their settings, their state, the whole team."""

from __future__ import annotations

import sys

from .. import output
from .times import moment, short_moment

TYPE_CHECKING = False  # importing typing would cost every command 3 ms
if TYPE_CHECKING:
    from typing import Any

NO_AGENTS = "No agents found."
LIST_NARROW = 70  # columns; the list of agents has room for the year from here on


def agents(result: dict[str, Any]) -> None:
    """Print the agents with their settings."""
    if output.Mode.json:
        output.document(result)
        return
    zone, found = result["timezone"], result["agents"]
    if not found or not output.on_terminal(sys.stdout):
        output.records((_local(_flat(one), zone) for one in found), empty="no-agents", sentence=NO_AGENTS)
        return
    from ..table_layout import Column

    headed = [
        Column(title="name", least=8),
        Column(title="kind/mode", least=9, leaves=3),
        Column(title="level", least=5, leaves=4),
        Column(title="role", least=6, most=24, leaves=1),
        Column(title="module", least=6, most=24, leaves=2),
        Column(title="last seen", least=11, leaves=1),
    ]
    rows = [
        [
            one["name"],
            f"{one['kind']}/{one['mode']}",
            one["level"] or "",
            one["role"] or "",
            one["module"] or "",
            short_moment(one["last_seen_at"], zone, LIST_NARROW),
        ]
        for one in found
    ]
    output.table(headed, rows)


def settings(one: dict[str, Any]) -> dict[str, Any]:
    """Return the facts of an agent without times and secrets."""
    return {
        name: value
        for name, value in _flat(one).items()
        if not name.endswith("_at") and name not in ("secrets", "found")
    }


def found(result: dict[str, Any]) -> dict[str, Any]:
    """Return what a provider found of what it needs, and the command that helps where something is missing."""
    what = result.get("found") or {}
    return {"found": what.get("found"), "problem": what.get("problem"), "try": what.get("help")}


def _flat(one: dict[str, Any]) -> dict[str, Any]:
    """Return the facts of an agent, with the settings of its provider among them."""
    found: dict[str, Any] = {}
    for name, value in one.items():
        found |= (value or {}) if name == "settings" else {name: value}
    return found


def providers(result: dict[str, Any]) -> None:
    """Print the providers, each with its options."""
    if output.Mode.json:
        output.document(result)
    else:
        output.records(map(_provider, result["providers"]), empty="no-providers", sentence="No providers.")


def adapters(result: dict[str, Any]) -> None:
    """Print the adapters, each with its options."""
    if output.Mode.json:
        output.document(result)
    else:
        output.records(map(_adapter, result["adapters"]), empty="no-adapters", sentence="No adapters.")


def _adapter(one: dict[str, Any]) -> dict[str, Any]:
    return {"adapter": one["name"]} | {
        key: value for key, value in _provider(one).items() if key != "provider"
    }


def _provider(one: dict[str, Any]) -> dict[str, Any]:
    options = {option["flag"]: _option(option) for option in one["options"]}
    can = ", ".join(one["capabilities"]) or None
    return {"provider": one["name"], "summary": one["summary"], "can": can} | options


def _option(option: dict[str, Any]) -> str:
    remarks = [
        "required" if option["required"] else "",
        "secret" if option["secret"] else "",
        "can be repeated" if option["repeated"] else "",
        f"one of {', '.join(option['choices'])}" if option["choices"] else "",
        f"default {option['default']}" if option["default"] not in (None, "", []) else "",
    ]
    told = "; ".join(filter(None, remarks))
    return f"{option['description']} ({told})" if told else str(option["description"])


def instructions(result: dict[str, Any]) -> None:
    """Print the instructions of an agent exactly as it gets them, then its memory."""
    if output.Mode.json:
        output.document(result)
        return
    if not result["given"]:
        whose = (
            f"its provider ({result['provider']})" if result["provider"] else "an agent without a provider"
        )
        output.note(f"note: {whose} takes no instructions; one that does would get these")
    output.rendered(result["text"])
    about = "a new session begins with this" if result["memory"] else "none of its files has anything yet"
    output.rendered(f"\n---- memory: {about} ----")
    if result["memory"]:
        output.rendered(f"\n{result['memory']}")


def sessions(result: dict[str, Any]) -> None:
    """Print the sessions of an agent."""
    if output.Mode.json:
        output.document(result)
        return
    zone = result["timezone"]
    times = ("begun_at", "used_at")
    found = [one | {name: moment(one[name], zone) for name in times} for one in result["sessions"]]
    output.records(found, empty="no-sessions", sentence="No sessions yet.")
    if result["more"]:
        output.note("There are older ones.")


def users(result: dict[str, Any]) -> None:
    """Print the people who have a box here."""
    if output.Mode.json:
        output.document(result)
    else:
        zone = result["timezone"]
        output.records(
            (_local(one, zone) for one in result["users"]),
            empty="no-users",
            sentence="Nobody else has a box here.",
        )


def _local(one: dict[str, Any], zone: str) -> dict[str, Any]:
    """Return what is known of an agent or a person, in local time; each fact once."""
    known = {name: value for name, value in one.items() if name not in ("agent_id", "registered_at")}
    return known | {name: moment(one[name], zone) for name in ("created_at", "last_seen_at")}


# --- state ---------------------------------------------------------------------------


def status(result: dict[str, Any]) -> None:
    """Print the state of one agent."""
    if output.Mode.json:
        output.document(result)
    else:
        output.record(status_record(result["agent"], result["timezone"]))
        _show_cure([result["agent"]])


def team(result: dict[str, Any]) -> None:
    """Print the state of every agent."""
    if output.Mode.json:
        output.document(result)
        return
    zone, found = result["timezone"], result["team"]
    if not found or not output.on_terminal(sys.stdout):
        output.records((status_record(one, zone) for one in found), empty="no-agents", sentence=NO_AGENTS)
        return
    output.table(*team_table(found, zone))
    _show_cure(found)


def team_table(found: list[dict[str, Any]], zone: str) -> tuple[list[Any], list[list[str]]]:
    """The columns and rows of the team."""
    from ..table_layout import Column

    headed = [
        Column(title="agent", least=6, most=24),
        Column(title="state", least=7),
        Column(title="due", least=3),
        Column(title="oldest unanswered", least=11, leaves=2),
        Column(title="last run", least=8, leaves=1),
        Column(title="why", least=8, most=60, leaves=3),
    ]
    return headed, [_row(one, zone) for one in found]


def _show_cure(found: list[dict[str, Any]]) -> None:
    """Tell a person at a terminal how to resume paused agents, and which ones wait for an answer."""
    if output.on_terminal(sys.stdout):
        for one in found:
            if one["state"] == "paused":
                output.note(f"To resume {one['name']}: hiboss agent resume {one['name']}")
            if one["state"] == "asks" and one["why"]:
                output.note(output.shown(output.word(one["why"]), sys.stderr))


def _row(one: dict[str, Any], zone: str) -> list[str]:
    return [
        one["name"],
        one["state"],
        str(one["due"]),
        short_moment(one["oldest_unanswered_at"], zone),
        _last_run(one["last_run"]) or "",
        one["why"] or "; ".join(_attached(session, zone) for session in one["attached"]),
    ]


def _attached(session: dict[str, Any], zone: str) -> str:
    """An open session in a line: which harness, what it does since when, and where."""
    since = short_moment(session["since"], zone)
    return f"{session['client']} {session['state']} since {since} in {session['directory']}"


def _last_run(one: dict[str, Any] | None) -> str | None:
    return None if one is None else f"{one['id']} {one['status']}"


def status_record(one: dict[str, Any], zone: str) -> dict[str, Any]:
    """The state of an agent, by key; None where there is nothing to say."""
    known = {name: one[name] for name in ("name", "address", "mode", "provider", "state", "presence", "why")}
    known_times = ("until", "oldest_unanswered_at", "last_seen_at", "counted_since")
    times = {name: moment(one[name], zone) for name in known_times}
    last = one["last_run"]
    return (
        known
        | {"until": times["until"], "due": one["due"], "oldest_unanswered_at": times["oldest_unanswered_at"]}
        | {"running": [run["id"] for run in one["running"]] or None, "last_run": _last_run(last)}
        | {"last_error": last["error"] if last else None}
        | {"tokens_today": one["tokens_today"] or None, "daily_tokens": one["daily_tokens"]}
        | {"cost_today": one["cost_today"] or None, "daily_cost": one["daily_cost"]}
        | {"counted_since": times["counted_since"], "last_seen_at": times["last_seen_at"]}
        | {"attached": [_attached(session, zone) for session in one["attached"]] or None}
    )
