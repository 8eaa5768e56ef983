"""Options of a command that the daemon describes: those of a provider, or of an adapter.

A command declared with `@app.command(described=True)` takes flags that it does not know itself. Here they
become `settings`, by the options that `provider.list` (or `adapter.list`) shows. The daemon checks them.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from getpass import getpass
from typing import Any

from ..core.errors import WrongUsage
from ..core.quoting import nearest
from . import output
from .positional import DESCRIBED, Given
from .text_input import absolute, read_file

Kind = dict[str, Any]  # of a provider or an adapter: its name and its options
Option = dict[str, Any]


def are_given(context: Any) -> bool:
    """Tell whether the command line has options that the command does not know itself."""
    return bool(context.meta.get(DESCRIBED))


def settings(
    context: Any, kinds: list[Kind], chosen: str | None, own: Callable[[], str | None] = lambda: None
) -> dict[str, Any]:
    """Return the settings that the command line gives. `chosen`: the kind it names, if it does.

    `own`: returns the kind that is changed if none is named; asked only where it makes a difference.
    """
    options = _options(kinds, chosen)
    found: dict[str, Any] = {}
    given: list[Given] = list(context.meta.get(DESCRIBED, []))
    while given:
        one = given.pop(0)
        flag = one.flag
        option = _meant(context, flag, options, own)
        text = one.value if one.value is not None else _following(context, one, option, given, options)
        value = _value(context, option, text, one.following)
        if option["repeated"]:
            found.setdefault(option["name"], []).append(value)
        elif option["name"] in found:
            raise _wrong(context, f"{flag} is given twice; give it once")
        else:
            found[option["name"]] = value
    for option in _of(kinds, chosen):
        if option["secret"] and option["required"] and option["name"] not in found:
            # The kind that is changed has its secret: it is named again, and keeps it.
            found |= _missing_secret(option, asks=own() != chosen)
    return found


def _following(
    context: Any, one: Given, option: Option, rest: list[Given], options: dict[str, list[Option]]
) -> str | None:
    """Take the next word as the value of an option that needs one, unless it is itself an option."""
    if _stands_alone(option) or not rest or rest[0].word != one.following or rest[0].flag in options:
        return None
    value = rest.pop(0)
    if value.value is not None and value.word == value.flag:  # one more word, which the parser took
        raise _wrong(context, f"{one.flag} takes one word: put its whole value in quotes")
    return value.word


def _stands_alone(option: Option) -> bool:
    return bool(option["type"] == "boolean" or option["secret"])


def _of(kinds: list[Kind], chosen: str | None) -> list[Option]:
    return [option for kind in kinds if kind["name"] == chosen for option in kind["options"]]


def _options(kinds: list[Kind], chosen: str | None) -> dict[str, list[Option]]:
    """Return every option by its flag, each with the names of the kinds that have it; only that of the chosen one.

    Several kinds can have an option of the same name.
    """
    found: dict[str, list[Option]] = {}
    for kind in kinds:
        for option in kind["options"]:
            found.setdefault(option["flag"], []).append(option | {"of": kind["name"]})
    return found | {option["flag"]: [option | {"of": chosen}] for option in _of(kinds, chosen)}


def _meant(
    context: Any, flag: str, options: dict[str, list[Option]], own: Callable[[], str | None]
) -> Option:
    """Return the option of a flag. How its value is read must not depend on a kind that is not known."""
    if flag not in options:
        known = [name for param in context.command.params for name in param.opts]
        raise _wrong(context, f"there is no option {flag}{nearest(flag, [*options, *known])}")
    first, *others = options[flag]
    names = ", ".join(sorted(one["of"] for one in options[flag]))
    if any(one[fact] != first[fact] for one in others for fact in ("type", "secret", "repeated")):
        kind = own()
        if meant := [one for one in options[flag] if one["of"] == kind]:
            return meant[0]
        raise _wrong(context, f"{flag} is not the same for {names}; give --provider too")
    return first | {"of": names}


def _value(context: Any, option: Option, text: str | None, following: str | None) -> Any:
    if text is None and option["type"] == "boolean":
        return True
    if text is None and option["secret"]:
        text = "-" if not output.on_terminal(sys.stdin) else getpass(f"{option['flag'].lstrip('-')}: ")
    if text is None:
        flag = option["flag"]
        how = f"; write one that begins with -- as {flag}=--…" if following else ""
        raise _wrong(context, f"{flag} needs a value: {option['description']} ({option['of']}){how}")
    if option["secret"]:
        return _secret(option, text)
    return absolute(text) if option["type"] == "path" and text else text


def _secret(option: Option, text: str) -> str:
    """Return a secret: @FILE reads a file, - standard input."""
    if text == "-" or text.startswith("@"):
        return read_file(text if text == "-" else text[1:]).strip()
    if text:
        flag = option["flag"]
        output.note(f"warning: {flag} on the command line shows in the process list; use {flag} @FILE")
    return text


def _missing_secret(option: Option, *, asks: bool) -> dict[str, str]:
    """Return a secret from the environment or, if `asks`, from a prompt; none where nobody can be asked."""
    found = os.environ.get(f"HIBOSS_{option['name'].upper()}", "").strip()
    if not found and asks and output.on_terminal(sys.stdin) and not output.Mode.json:
        found = getpass(f"{option['description']}: ").strip()
    return {option["name"]: found} if found else {}


def _wrong(context: Any, detail: str) -> WrongUsage:
    return WrongUsage(detail=detail, help=f"{context.command_path} --help")
