"""The provider of an agent: checked when given, stored with its secret, shown without it."""

from __future__ import annotations

import json
from typing import Any

from ..agents.providers.webhook import new_secret
from ..core.contracts.failures import Refused
from ..core.errors import BadProvider, InvalidParams
from ..core.plugins import no_exit
from ..store.connection import Row
from .context import Context

NONE = "none"  # removes a provider
IMPLIED = {"command": "command", "url": "webhook"}  # the provider meant by an option alone
SECRET = "secret"


class ProviderChoice:
    """A provider chosen for an agent: columns to write, and a new secret to show once."""

    def __init__(self, context: Context, columns: dict[str, Any]) -> None:
        self._context = context
        self.columns = columns
        self.secret: str | None = None
        self._stored_secret: str | None = None  # its name

    def add_secret(self, settings: dict[str, Any], name: str | None) -> None:
        """Use the secret stored under this name, or store a new one."""
        if name is None:
            self.secret = new_secret()
            name = self._stored_secret = self._context.home.keep_secret(self.secret)
        settings[SECRET] = name

    def undo(self) -> None:
        """Delete a new secret: the agent was not written."""
        if self._stored_secret is not None:
            self._context.home.forget_secret(self._stored_secret)


def choose(context: Context, given: dict[str, Any], before: Row | None) -> ProviderChoice:
    """Check the provider asked for (`provider` and its options); without one there is nothing to write."""
    name, options = given.get("provider"), {k: v for k, v in given.items() if k != "provider" and v}
    if name in (NONE, ""):
        if options:
            raise InvalidParams(detail=f"without a provider there can be no {', '.join(sorted(options))}")
        return ProviderChoice(context, {"provider": None, "provider_config": None, "mode": "pull"})
    if name is None and not options:
        return ProviderChoice(context, {})
    if name is None:
        name = _implied(context, options, before)
    kind = context.runner.providers.kind(name)
    settings = _settings(kind, name, options)
    choice = ProviderChoice(context, {"provider": name, "mode": "run"})
    if name == "webhook":
        same = given.get("provider") is None and before is not None and before["provider"] == name
        choice.add_secret(settings, secret_of(before) if same else None)
    choice.columns["provider_config"] = json.dumps(settings) if settings else None
    return choice


def _implied(context: Context, options: dict[str, Any], before: Row | None) -> str:
    """Return the provider that options alone mean: the agent's own if it takes them, else ours that does."""
    own = before["provider"] if before is not None else None
    if own is not None and set(options) <= set(context.runner.providers.kind(own).options):
        return str(own)
    return IMPLIED[next(iter(options))]


def _settings(kind: Any, name: str, options: dict[str, Any]) -> dict[str, Any]:
    """Return the provider's settings for these options; raises BadProvider."""
    foreign = sorted(set(options) - set(kind.options))
    if foreign:
        takes = ", ".join(f"--{option}" for option in kind.options) or "none"
        raise BadProvider(why=f"--{foreign[0]} is not an option of {name}, which takes {takes}")
    try:
        with no_exit():
            settings: dict[str, Any] = kind.configure(options)
    except Refused as refused:
        raise BadProvider(why=refused.why) from None
    return settings


def secret_of(row: Row | None) -> str | None:
    """Return the name under which the secret of an agent's provider is stored."""
    if row is None or not row["provider_config"]:
        return None
    found: str | None = json.loads(row["provider_config"]).get(SECRET)
    return found


def shown(row: Row) -> dict[str, Any]:
    """Return the settings of an agent's provider without the secret."""
    settings = json.loads(row["provider_config"]) if row["provider_config"] else {}
    return {name: value for name, value in settings.items() if name != SECRET}
