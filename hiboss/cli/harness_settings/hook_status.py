"""What is installed for a harness, which program and agent it names, and what a hook last did."""

from __future__ import annotations

import json
import os
from typing import Any

from ...core.errors import HibossError
from ...core.paths import Home
from . import codex_trust, hook_entries
from .codex_hooks import CODEX, REVIEW
from .harness import Entry, Harness, entries_of, kind_of, named_in
from .hook_entries import HOOKS, Found, same_tools
from .settings_file import SettingsFile

YES, NO, PARTLY, BROKEN = "yes", "no", "partly", "unknown"
NOT_TRUSTED = "installed, not trusted"
NEVER = "no hook has run yet"


def status_of(harness: Harness) -> dict[str, Any]:
    """Return all that `hiboss hooks status` knows about one harness."""
    path = harness.settings_path()
    known: dict[str, Any] = {"client": harness.name, "settings_file": path}
    try:
        text = SettingsFile(path).text
        with hook_entries.refusing(path):
            found = hook_entries.find(text, harness)
    except HibossError as error:
        return known | {"installed": BROKEN, "problem": error.message, "last": last_hook(harness, Home())}
    if not found:
        advice = f"hiboss hooks install --client {harness.name}"
        return known | {"installed": NO, "advice": advice, "last": last_hook(harness, Home())}
    return known | _of_installed(harness, path, found) | _switched_off(text)


def _of_installed(harness: Harness, path: str, found: list[Found]) -> dict[str, Any]:
    command = named_in(found[0].entry)
    asking = {one.event for one in harness.events if one.asks}
    asks = any(one.event in asking for one in found)
    wanted = entries_of(harness, command, asks=asks)
    missing, differing = _compared(harness, wanted, found)
    known: dict[str, Any] = {
        "installed": PARTLY if missing or differing else YES,
        "missing": missing or None,
        "differing": differing or None,
        "program": command.program,
        "program_exists": os.access(command.program, os.X_OK),
        "agent": command.agent,
        "home": command.home,
        "asks": asks,
    }
    if missing or differing:
        known["advice"] = f"hiboss hooks install --client {harness.name}"
    if harness is CODEX:
        known |= _trust(harness, path, known["installed"])
    return known | {"last": last_hook(harness, Home(command.home))}


def _trust(harness: Harness, path: str, installed: str) -> dict[str, Any]:
    trust = codex_trust.ask(harness, path)
    known = {"trust": trust.state, "trust_reason": trust.why}
    if trust.state != codex_trust.NOT_TRUSTED:
        return known
    return known | {"installed": NOT_TRUSTED if installed == YES else installed, "advice": REVIEW}


def _compared(harness: Harness, wanted: dict[str, Entry], found: list[Found]) -> tuple[list[str], list[str]]:
    """Return the events for which a hook is missing, and those for which one is not as it is installed now."""
    missing, differing = [], []
    for event, group in wanted.items():
        here = [one for one in found if one.event == event]
        expected = {kind_of(one, harness.name): one for one in group[HOOKS]}
        if {one.kind for one in here} < expected.keys():
            missing.append(event)
        elif len(here) != len(expected) or any(
            one.entry != expected.get(one.kind) or not same_tools(one.matcher, group.get("matcher"))
            for one in here
        ):
            differing.append(event)
    strange = dict.fromkeys(one.event for one in found if one.event not in wanted)
    return missing, differing + list(strange)


def _switched_off(text: str | None) -> dict[str, Any]:
    """Return whether the settings of Claude Code switch all hooks off."""
    settings = json.loads(text or "{}")
    if settings.get("disableAllHooks") is not True:
        return {}
    return {"problem": "disableAllHooks is true in these settings, so no hook runs"}


def last_hook(harness: Harness, home: Home) -> dict[str, Any] | None:
    """Return what a hook of this harness noted last: event, at, agent, outcome, error. None: nothing."""
    path = os.path.join(home.path, "sessions", f"last-hook-{harness.name}.json")
    try:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def last_in_words(last: dict[str, Any] | None) -> str:
    if last is None:
        return NEVER
    parts = [str(last.get("event") or "a hook")]
    if agent := last.get("agent"):
        parts.append(f"for {agent}")
    if at := last.get("at"):
        parts.append(f"at {at}")
    words = " ".join(parts)
    if outcome := last.get("outcome"):
        words += f": {outcome}"
    return f"{words} (error: {error})" if (error := last.get("error")) else words
