"""Reads the command line of a plain command by its table. None where Typer must read it.

What it takes, it takes as Typer does. It leaves the rest: help, mistakes, the old flags of arguments, and a short
option that is written together with its value.
"""

from __future__ import annotations

from .arguments import VERBS

TYPE_CHECKING = False  # importing typing would cost every command 3 ms
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from .arguments import Arguments, Kind, Options

    Values = dict[str, Any]

MOST_DIGITS = 9


class _Unknown(Exception):
    """Something that is not in the table as it is written."""


def read(words: list[str]) -> tuple[str, str, Values] | None:
    """Return the module and the function that these words call, and its parameters; None: ask Typer."""
    for depth in (1, 2):
        verb = VERBS.get(" ".join(words[:depth]))
        if verb is not None and " " not in words[0]:  # "run list" as one word is no command
            module, function, arguments, options = verb
            try:
                values, others = _options(iter(words[depth:]), options)
                return module, function, values | _arguments(others, arguments)
            except _Unknown:
                return None
    return None


def _options(rest: Iterator[str], options: Options) -> tuple[Values, list[str]]:
    """Return the values of all options, and the words that are none."""
    values: Values = {parameter: default for parameter, _, default in options.values()}
    others: list[str] = []
    for word in rest:
        if word == "--":
            others += rest
        elif word[:1] != "-" or word == "-":
            others.append(word)
        else:
            name, sign, value = word.partition("=")
            if name not in options or (sign and name[:2] != "--"):
                raise _Unknown
            parameter, kind, _ = options[name]
            found = _value(kind, sign, value, rest)
            values[parameter] = [*(values[parameter] or ()), found] if kind == "texts" else found
    return values, others


def _value(kind: Kind, sign: str, value: str, rest: Iterator[str]) -> Any:
    """Return the value of an option: behind its `=`, or the next word, whatever that is."""
    if kind == "switch":
        if sign:
            raise _Unknown
        return True
    if not sign:
        try:
            value = next(rest)
        except StopIteration:
            raise _Unknown from None
    if kind == "number":
        if not (value.isascii() and value.isdigit() and len(value) <= MOST_DIGITS):
            raise _Unknown
        return int(value)
    if isinstance(kind, tuple) and value not in kind:
        raise _Unknown
    return value


def _arguments(words: list[str], arguments: Arguments) -> Values:
    """Give each argument its word; the last one can take all that are left."""
    values: Values = {}
    for name, kind in arguments:
        if kind == "texts" or kind == "some texts":
            values[name], words = list(words) or None, []
        else:
            values[name], words = (words[0], words[1:]) if words else (None, [])
        if values[name] is None and kind in ("text", "texts"):
            raise _Unknown  # it is missing
    if words:
        raise _Unknown
    return values
