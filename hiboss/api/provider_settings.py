"""How an agent thinks: its provider, as it is given, kept and shown."""

from __future__ import annotations

import json
from typing import Any

from ..agents.providers.webhook import new_secret
from ..core.contracts.failures import Refused
from ..core.errors import BadProvider, InvalidParams
from ..store.connection import Row
from .context import Context

NONE = "none"  # the word that takes a provider away
IMPLIED = {"command": "command", "url": "webhook"}  # an option that says which provider is meant
SECRET = "secret"


class ProviderChoice:
    """A provider chosen for an agent: columns to write, and a secret to show once."""

    def __init__(self, context: Context, columns: dict[str, Any]) -> None:
        self._context = context
        self.columns = columns
        self.secret: str | None = None
        self._kept: str | None = None

    def add_secret(self, settings: dict[str, Any], name: str | None) -> None:
        """A name of one kept before, or a new one."""
        if name is None:
            self.secret = new_secret()
            name = self._kept = self._context.home.keep_secret(self.secret)
        settings[SECRET] = name

    def undo(self) -> None:
        """Nothing of it was stored after all."""
        if self._kept is not None:
            self._context.home.forget_secret(self._kept)


def choose(context: Context, given: dict[str, Any], before: Row | None) -> ProviderChoice:
    """The provider that was asked for (`provider`, and what it takes), checked; nothing asked: no columns."""
    name, options = given.get("provider"), {k: v for k, v in given.items() if k != "provider" and v}
    if name in (NONE, ""):
        if options:
            raise InvalidParams(detail=f"without a provider there is no {', '.join(sorted(options))}")
        return ProviderChoice(context, {"provider": None, "provider_config": None, "mode": "pull"})
    if name is None and not options:
        return ProviderChoice(context, {})
    if name is None:
        name = before["provider"] if before is not None else None
    if name is None:
        name = IMPLIED[next(iter(options))]
    kind = context.runner.providers.kind(name)
    settings = _settings(kind, name, options)
    choice = ProviderChoice(context, {"provider": name, "mode": "run"})
    if name == "webhook":
        same = given.get("provider") is None and before is not None and before["provider"] == name
        choice.add_secret(settings, secret_of(before) if same else None)
    choice.columns["provider_config"] = json.dumps(settings) if settings else None
    return choice


def _settings(kind: Any, name: str, options: dict[str, Any]) -> dict[str, Any]:
    foreign = sorted(set(options) - set(kind.options))
    if foreign:
        takes = ", ".join(f"--{option}" for option in kind.options) or "nothing more"
        raise BadProvider(why=f"{name} takes {takes}, and was given --{foreign[0]}")
    try:
        settings: dict[str, Any] = kind.configure(options)
    except Refused as refused:
        raise BadProvider(why=refused.why) from None
    return settings


def secret_of(row: Row | None) -> str | None:
    """The name of the secret kept for an agent's provider."""
    if row is None or not row["provider_config"]:
        return None
    found: str | None = json.loads(row["provider_config"]).get(SECRET)
    return found


def shown(row: Row) -> dict[str, Any]:
    """The settings of an agent's provider that may be seen."""
    settings = json.loads(row["provider_config"]) if row["provider_config"] else {}
    return {name: value for name, value in settings.items() if name != SECRET}
