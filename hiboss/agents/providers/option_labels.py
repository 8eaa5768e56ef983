"""The options of a model's own question, as people see them: one line each, all of them different."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

from ...core.contracts.provider import MOST_OPTIONS, OPTION_CHARACTERS
from ...core.escaping import shows, visible
from ...core.quoting import beginning

T = TypeVar("T")


def distinct(options: Iterable[tuple[str, T]], taken: Sequence[str] = ()) -> dict[str, T]:
    """Return what each label stands for, by the option that people see. What shows nothing is left out.

    An option that looks like another one, or like one of `taken` (options of ours that follow), has its
    number behind it: the model must get back the one that was chosen.
    """
    found: dict[str, T] = {}
    used = {one.casefold() for one in taken}
    for number, (label, meant) in enumerate(options, 1):
        shown = beginning(visible(label.strip()), OPTION_CHARACTERS).strip()
        mark = ""
        while shown and f"{shown}{mark}".casefold() in used:
            mark += f" ({number})"
            shown = shown[: OPTION_CHARACTERS - len(mark)]
        if shows(shown) and len(found) < MOST_OPTIONS - len(taken):
            used.add(f"{shown}{mark}".casefold())
            found[f"{shown}{mark}"] = meant
    return found
