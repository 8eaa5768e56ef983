"""Find an adapter class by type: the built-in ones, and those of the modules in `adapters.modules`."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

from ..core.contracts.adapter import CAPABILITIES, METHOD_OF, AdapterSettings
from ..core.errors import BadSetting, UnknownAdapter
from ..core.option_models import mistakes
from ..core.plugins import load, method_mistake
from ..core.quoting import nearest
from .folder import FolderAdapter
from .telegram.adapter import TelegramAdapter
from .webhook.adapter import WebhookAdapter

BUILT_IN: dict[str, Any] = {one.type: one for one in (FolderAdapter, TelegramAdapter, WebhookAdapter)}
RESERVED = ("name", "adapter_type", "token", "as", "json", "help")  # flags of `hiboss agent bind` itself
# The arguments of each method, as the daemon gives them; a name that ends with = is given by name.
_METHODS = {
    "check": ("given", "home"),
    "start": (),
    "listen": ("take",),
    "digest": ("updates", "downloads", "waited=", "last_try="),
    "stop": (),
    "chunks": ("letter",),
    "post": ("letter", "number", "chunk"),
}
_DECLARED = {
    "edit": ("place", "platform_id", "chunk", "key"),
    "delete": ("place", "platform_id"),
    "remove_buttons": ("place", "platform_id"),
    "react": ("place", "platform_id", "emoji"),
    "typing": ("place",),
    "draft": ("place", "number", "chunk"),
    "create_topic": ("chat", "name"),
    "show_commands": ("chat", "commands"),
}


class Registry:
    """The known adapter classes, by type."""

    def __init__(self, modules: Sequence[str]) -> None:
        self.kinds = dict(BUILT_IN)
        for name in modules:
            found = load(name, "ADAPTERS", "type", self.kinds, "adapters.modules")
            for kind in found.values():
                if wrong := what_is_wrong(kind):
                    where = f"{name}: {kind.__name__}"
                    raise BadSetting(
                        where="adapters.modules",
                        value=where,
                        wants=f"adapters as in docs/adapters.md: {'; '.join(wrong)}"[:900],
                    )
            self.kinds |= found

    def kind(self, name: str) -> Any:
        """Return the adapter class of this type."""
        if name not in self.kinds:
            known = sorted(self.kinds)
            raise UnknownAdapter(name=name[:60], hint=nearest(name, known), known=", ".join(known))
        return self.kinds[name]


def what_is_wrong(kind: Any) -> list[str]:
    """Return what an adapter class lacks, for its author."""
    if not isinstance(kind, type):
        return ["it must be a class"]
    found = [_mistake(kind, name, arguments) for name, arguments in _METHODS.items()]
    if not found[0] and not inspect.ismethod(kind.check):  # type: ignore[attr-defined]
        found.append("check must be a class method: @classmethod")
    if hasattr(kind, "digested"):
        found.append(_mistake(kind, "digested", ("update", "problem")))
    if hasattr(kind, "can_become"):
        found.append(_mistake(kind, "can_become", ("shown", "chunk")))
    found += mistakes(getattr(kind, "Settings", AdapterSettings), RESERVED)
    return [*filter(None, found), *_capability_mistakes(kind)]


def _capability_mistakes(kind: type) -> list[str]:
    declared: object = getattr(kind, "capabilities", frozenset())
    if not isinstance(declared, frozenset):
        return [f"capabilities must be a frozenset, not {type(declared).__name__}: frozenset({{'edit', …}})"]
    found = []
    for word in sorted(declared, key=str):
        method = METHOD_OF.get(word, word)
        if word not in CAPABILITIES:
            found.append(f"{word} is no capability; they are {', '.join(sorted(CAPABILITIES))}")
        elif method is not None and not hasattr(kind, method):
            found.append(f"for the capability {word} it needs the method {method}")
        elif method is not None:
            found.append(_mistake(kind, method, _DECLARED[method]))
    return [one for one in found if one]


def _mistake(kind: type, name: str, arguments: tuple[str, ...]) -> str:
    return method_mistake(
        kind, name, *arguments, coroutine=name not in ("chunks", "can_become"), of_class=name == "check"
    )
