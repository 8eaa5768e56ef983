"""The provider of an agent: checked when given, stored with its secrets apart, shown without them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from ..agents import provider_finding
from ..agents.providers.demo import Demo
from ..core.contracts.failures import Refused
from ..core.contracts.provider import Provider
from ..core.errors import BadProvider, HibossError, InvalidParams
from ..core.option_models import Validated, describe, flag, presentable, shown_flag, validate
from ..core.plugins import no_exit
from ..core.quoting import nearest
from ..store import secret_files
from ..store.connection import Row
from .context import Context

NONE = "none"  # removes a provider
NAMED = 5  # options that a message names
REMOVED = {"provider": None, "provider_config": None, "provider_secrets": None, "mode": "pull"}


class ProviderChoice:
    """A provider chosen for an agent: columns to write, and secrets that were made, to show once."""

    def __init__(self, context: Context, columns: dict[str, Any]) -> None:
        self._context = context
        self.columns = columns
        self.made: dict[str, str] = {}
        self._new_file: str | None = None

    def keep_secrets(self, checked: Validated, before: str | None) -> None:
        """Store the secrets in a new file, unless they are the ones of the file before."""
        name = before
        if checked.secrets != self._context.home.secrets_of(before):
            home, epoch = self._context.home, self._context.store.epoch
            name = self._new_file = home.keep_secrets(checked.secrets, epoch) if checked.secrets else None
        self.columns["provider_secrets"] = name
        self.made = {one: checked.secrets[one] for one in checked.made}

    def undo(self) -> None:
        """Delete new secrets, unless the agent was written with them all the same."""
        with suppress(HibossError):  # the store cannot be read: the next start cleans up
            if self._new_file not in self._context.store.read(secret_files.named):
                self._context.home.forget_secrets(self._new_file)


@contextmanager
def chosen(
    context: Context, name: str | None, settings: Mapping[str, Any], before: Row | None
) -> Iterator[ProviderChoice]:
    """Choose a provider; the block writes the agent. If it fails, new secrets are deleted.

    Use it in `context.changing`: `before` and its secrets must stay as they are until the agent is written.
    """
    choice = _choose(context, name, settings, before)
    try:
        yield choice
    except Exception:  # not a cancellation: the agent may be written all the same
        choice.undo()
        raise


def _choose(
    context: Context, name: str | None, settings: Mapping[str, Any], before: Row | None
) -> ProviderChoice:
    """Check the provider and the settings asked for; without any there is nothing to write.

    Settings alone change those of the agent's own provider, or choose one for an agent without.
    The provider that it has, named again, keeps its settings too.
    """
    given = {one.replace("-", "_"): value for one, value in settings.items() if value is not None}
    # An empty text removes a setting, like every other text of an agent.
    values = {one: value for one, value in given.items() if value != ""}
    if name in (NONE, ""):
        if values:
            raise InvalidParams(detail=f"without a provider there can be no {_flags(values)}")
        return ProviderChoice(context, dict(REMOVED))
    if name is None and not given:
        return ProviderChoice(context, {})
    own = before["provider"] if before is not None else None
    chosen = name if name is not None else _implied(context, set(given), own)
    kind = context.runner.providers.kind(chosen)
    kept: dict[str, Any] = {}
    if chosen == own and before is not None:
        kept = _kept(context, kind, before, named=name is not None)
        kept = {one: value for one, value in kept.items() if one not in given}
    checked = _checked(kind, {**kept, **values})
    choice = ProviderChoice(context, {"provider": chosen, "mode": "run"})
    choice.columns["provider_config"] = json.dumps(checked.settings) if checked.settings else None
    choice.keep_secrets(checked, before["provider_secrets"] if kept and before is not None else None)
    return choice


def _kept(context: Context, kind: type[Provider], before: Row, *, named: bool) -> dict[str, Any]:
    """Return the settings and secrets that the agent has. `named`: its provider is chosen again.

    Then hiboss makes the secrets that it makes anew, and settings that fit no longer are left out: so
    an agent that no turn can be given any more is mended.
    """
    settings, secrets = _stored(before), context.home.secrets_of(before["provider_secrets"])
    if not named:
        return {**settings, **secrets}
    fields = kind.Settings.model_fields
    secrets = {
        one: value for one, value in secrets.items() if one in fields and fields[one].default_factory is None
    }
    try:
        _checked(kind, {**settings, **secrets})
    except BadProvider:
        return {}
    return {**settings, **secrets}


def _implied(context: Context, given: set[str], own: str | None) -> str:
    """Return the provider that settings alone mean: the agent's own, or the one that has them."""
    kinds = context.runner.providers.known
    known = {name: set(kind.Settings.model_fields) for name, kind in kinds.items()}
    if own is not None and given <= known.get(own, set()):
        return own
    having = sorted(name for name, fields in known.items() if given <= fields)
    # `--command` is an option of several, and the name of one: that is meant.
    named = [name for name in having if name in given]
    # Of the others, those that need nothing else come first.
    complete = [name for name in having if _required(kinds[name]) <= given]
    which = " or ".join(f"--provider {name}" for name in complete or having)
    if own is not None and own != Demo.name:  # an option must not change who answers
        change = f"; to change the provider give {which}" if which else ""
        raise BadProvider(why=_lacks(own, given, known) + change)
    for choices in (named, complete, having):
        if len(choices) == 1:
            return choices[0]
    if which:
        raise BadProvider(why=f"{', '.join(complete or having)} take {_flags(given)}: say which with {which}")
    raise BadProvider(
        why=f"no provider takes {_flags(given)}{_alike(given, known, ' together')}; "
        "hiboss agent providers shows their options"
    )


def _lacks(own: str, given: set[str], known: Mapping[str, set[str]]) -> str:
    """Return that an agent's provider has no such options, and those that it has."""
    if own not in known:
        return f"the agent's provider {own} is not there any more"
    lacking = given - known[own]
    has = ", ".join(map(flag, sorted(known[own]))) or "no options"
    return f"{own} has no {_flags(lacking)}{_alike(lacking, known)}; it takes {has}"


def _alike(given: set[str], known: Mapping[str, set[str]], otherwise: str = "") -> str:
    """Return what an option that no provider has may be meant for; `otherwise`: when each has one."""
    every = sorted({flag(one) for fields in known.values() for one in fields})
    unknown = next((flag(one) for one in sorted(given) if flag(one) not in every), "")
    return nearest(unknown, every) if unknown else otherwise


def _required(kind: type[Provider]) -> set[str]:
    return {name for name, field in kind.Settings.model_fields.items() if field.is_required()}


def _flags(given: Iterable[str]) -> str:
    """Return the options that were given, for a message."""
    names = sorted(given)
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(map(shown_flag, names[:NAMED])) + more


def _checked(kind: type[Provider], given: Mapping[str, Any]) -> Validated:
    """Return the settings and secrets of a provider; raises BadProvider."""
    try:
        with no_exit():
            return validate(kind.Settings, given, kind.name)
    except Refused as refused:
        raise BadProvider(why=refused.why) from None


def _stored(row: Row | Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(row["provider_config"]) if row["provider_config"] else {}
    return found


def current(context: Context, row: Row | Mapping[str, Any]) -> Provider:
    """Return the provider of an agent as it is set; raises BadProvider."""
    kind = context.runner.providers.kind(row["provider"])
    return _made(kind, _stored(row), context.home.secrets_of(row["provider_secrets"]))


def default(context: Context, name: str) -> Provider:
    """Return a provider with its default settings; raises BadProvider."""
    kind = context.runner.providers.kind(name)
    checked = _checked(kind, {})
    return _made(kind, checked.settings, checked.secrets)


def _made(kind: type[Provider], settings: Mapping[str, Any], secrets: Mapping[str, str]) -> Provider:
    made = provider_finding.made(kind, settings, secrets)
    if made is None:
        raise BadProvider(why=f"{kind.name} cannot be made with them any more; set the provider again")
    return made


def shown(context: Context, row: Row) -> dict[str, Any]:
    """Return the settings of an agent's provider without secrets, with the defaults of those not given."""
    kind = context.runner.providers.known.get(row["provider"])
    defaults = {one.name: one.default for one in describe(kind.Settings) if not one.secret} if kind else {}
    return {**defaults, **presentable(_stored(row))}
