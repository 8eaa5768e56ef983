"""The tables of docs/providers.md, from the providers: what each can do, and which options they take."""

from __future__ import annotations

import re
from collections.abc import Callable

from hiboss.agents import provider_finding
from hiboss.agents.providers.registry import BUILT_IN
from hiboss.core.contracts.provider import CAPABILITIES, Provider
from hiboss.core.option_models import Option, Options, describe, validate

from .markdown import code, refreshed, table

YES, DEPENDS, NO = "yes", "by a setting", "–"
EXAMPLE = re.compile(r"""(['"])([^'"`]*--[^'"`]*)\1""")  # a command line in quotes
SAMPLES = ("https://example.org/", "true")  # for an option that must be given: any that is accepted


def make(page: str) -> str:
    """Return the page with its tables made anew."""
    return refreshed(page, PARTS)


def capabilities() -> str:
    """One line for each provider, one column for each capability."""
    rows = [
        [code(name), *(_can(kind, word, by_default(kind)) for word in CAPABILITIES)]
        for name, kind in sorted(BUILT_IN.items())
    ]
    return table(["provider", *map(code, CAPABILITIES)], rows)


def _can(kind: type[Provider], word: str, default: frozenset[str]) -> str:
    return (YES if word in default else DEPENDS) if word in kind.capabilities else NO


def by_default(kind: type[Provider]) -> frozenset[str]:
    """What a provider can do with as few settings as possible."""
    needed = [one.name for one in describe(kind.Settings) if one.required]
    for sample in SAMPLES:
        try:
            checked = validate(kind.Settings, dict.fromkeys(needed, sample), kind.name)
        except Exception:  # noqa: BLE001 - the next one may do
            continue
        made = provider_finding.made(kind, checked.settings, checked.secrets)
        assert made is not None, kind
        return made.capabilities
    raise AssertionError(f"none of {SAMPLES} is accepted by {kind.name}")


def options() -> str:
    """One line for each flag, with the providers that take it."""
    found: dict[str, list[tuple[str, Option]]] = {}
    for name, kind in sorted(BUILT_IN.items()):
        for one in describe(kind.Settings if issubclass(kind.Settings, Options) else Options):
            found.setdefault(one.flag, []).append((name, one))
    rows = [
        [code(flag), ", ".join(code(name) for name, _ in taken), _meaning(taken)]
        for flag, taken in sorted(found.items())
    ]
    return table(["option", "of", "what"], rows)


def _meaning(taken: list[tuple[str, Option]]) -> str:
    """What an option is; of each provider, where that differs."""
    said = {name: _described(one, name) for name, one in taken}
    if len(set(said.values())) == 1:
        return next(iter(said.values()))
    return "; ".join(f"{code(name)}: {what}" for name, what in said.items())


def _described(one: Option, of: str) -> str:
    default = one.default if one.default not in (None, "", [], ()) else None
    remarks = [
        "required" if one.required else "",
        "secret" if one.secret else "",
        f"{', '.join(one.choices)}" if one.choices else "",
        f"default {default}" if default is not None else "",
    ]
    told = "; ".join(filter(None, remarks))
    # Flags alone would look like those of hiboss.
    says = EXAMPLE.sub(
        lambda found: code(f"{of} {found[2]}" if found[2][0] == "-" else found[2]), one.description
    )
    return f"{says} ({told})" if told else says


PARTS: dict[str, Callable[[], str]] = {"capabilities": capabilities, "options": options}
