"""How the posts of a message become those of its new wording: which chunk each of them is to show."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import Any, NamedTuple


class Alignment(NamedTuple):
    """How posts become other chunks, by their places in the two lists."""

    kept: dict[int, int]  # posts, with the chunk that each is to show; some show it already
    surplus: list[int]  # posts that are to go
    added: list[int]  # chunks that are posted in addition, behind all others


def align(shown: Sequence[str | None], wanted: Sequence[str]) -> Alignment:
    """Return how to get from what is shown to what is wanted, with few changes and the order kept.

    None: nobody knows what this post shows. A chunk that did not change stays where it is, like a file.
    """
    keys: list[Any] = [object() if one is None else one for one in shown]
    kept: dict[int, int] = {}
    surplus: list[int] = []
    added: list[int] = []
    for _, old, old_end, new, new_end in SequenceMatcher(
        None, keys, list(wanted), autojunk=False
    ).get_opcodes():
        both = min(old_end - old, new_end - new)
        kept |= {old + number: new + number for number in range(both)}
        surplus += range(old + both, old_end)
        added += range(new + both, new_end)
    # What is posted in addition comes last. A surplus post that is last already can become it.
    last = max(kept, default=-1)
    for post in [one for one in surplus if one > last][: len(added)]:
        surplus.remove(post)
        kept[post] = added.pop(0)
    return Alignment(kept, surplus, added)
