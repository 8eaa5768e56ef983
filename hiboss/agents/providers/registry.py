"""Find a provider by name: the built-in ones, and those of the modules in `providers.modules`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.contracts.provider import CAPABILITIES, INTERRUPT, SESSION, STEER, Provider
from ...core.errors import BadProvider, BadSetting
from ...core.option_models import mistakes
from ...core.plugins import load, method_mistake
from ...core.quoting import nearest, printable
from ...store.provider_sessions import SessionKind
from .acp.provider import Acp
from .claude.provider import Claude
from .codex.provider import Codex
from .command import Command
from .demo import Demo
from .webhook import Webhook

BUILT_IN: dict[str, type[Provider]] = {one.name: one for one in (Command, Webhook, Demo, Acp, Claude, Codex)}
# Flags that `agent register` and `agent set` have already.
RESERVED = frozenset(
    {"name", "kind", "mode", "description", "role", "module", "display", "workspace", "provider", "settings"}
    | {"session_scope", "session_reset", "session_idle", "session_context"}
    | {"reply", "busy", "daily_tokens", "daily_cost", "profile", "no_profile", "token", "as", "json", "help"}
)


class Providers:
    """The known provider classes, by name."""

    def __init__(self, modules: Sequence[str]) -> None:
        self.known = dict(BUILT_IN)
        for module in modules:
            found = load(module, "PROVIDERS", "name", self.known, "providers.modules")
            for name, kind in found.items():
                if wrong := check(kind):
                    wants = f"providers as docs/providers.md describes them; {name}: {'; '.join(wrong)}"[:900]
                    raise BadSetting(where="providers.modules", value=module, wants=wants)
            self.known |= found

    def kind(self, name: str) -> type[Provider]:
        """Return the provider class of this name."""
        if name not in self.known:
            known = sorted(self.known)
            asked = printable("name", name[:60])
            why = f"there is no provider {asked}{nearest(name, known)}; there are {', '.join(known)}"
            raise BadProvider(why=why)
        return self.known[name]

    def session_kinds(self) -> dict[str, SessionKind]:
        """Return what the sessions of each provider are like."""
        return {
            name: SessionKind(kind.own_session_ids and SESSION in kind.capabilities, kind.session_settings)
            for name, kind in self.known.items()
        }

    def starts_program(self, name: str) -> bool:
        """Tell whether each turn of a provider is taken by a program; False if it is not known any more."""
        return name in self.known and self.known[name].starts_program

    def takes_instructions(self, name: str) -> bool:
        """Tell whether a provider takes instructions and memory; False if it is not known any more."""
        return name in self.known and self.known[name].takes_instructions


def check(kind: Any) -> list[str]:
    """Return what is wrong with a provider class, for its author."""
    if not isinstance(kind, type) or not issubclass(kind, Provider):
        return ["it must be a class that inherits from Provider"]
    found = mistakes(kind.Settings, RESERVED)
    if kind.__abstractmethods__:
        found.append(f"it lacks {', '.join(sorted(kind.__abstractmethods__))}")
    methods = (
        ("take_turn", "turn", "run"),
        ("steer", "text"),
        ("interrupt",),
        ("find", "environment", "workspace"),
    )
    found += filter(None, [method_mistake(kind, *method) for method in methods])
    found += filter(None, [method_mistake(kind, "__init__", "settings", coroutine=False)])
    return found + _declared_mistakes(kind)


def _declared_mistakes(kind: type[Provider]) -> list[str]:
    """Return what is wrong with what a class declares: its capabilities, and its session settings."""
    declared = {"capabilities": kind.capabilities, "session_settings": kind.session_settings}
    found = [
        f"{name} must be a frozenset of texts, like frozenset({{'session'}})"
        for name, given in declared.items()
        if not isinstance(given, frozenset) or not all(isinstance(one, str) for one in given)
    ]
    if found:
        return found
    if unknown := sorted(kind.capabilities - set(CAPABILITIES)):
        found.append(f"there is no capability {unknown[0]}; there are {', '.join(CAPABILITIES)}")
    for word in (STEER, INTERRUPT):
        if word in kind.capabilities and getattr(kind, word) is getattr(Provider, word):
            found.append(f"for the capability {word} it needs a method {word} of its own")
    fields = set(getattr(kind.Settings, "model_fields", ()))
    if foreign := sorted(kind.session_settings - fields):
        found.append(f"session_settings names {foreign[0]}, which is no setting")
    return found
