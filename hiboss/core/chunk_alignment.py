"""How the posts of a message become those of its new wording: which chunk each of them is to show."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple


class Alignment(NamedTuple):
    """How posts become other chunks, by their places in the two lists."""

    kept: dict[int, int]  # posts, with the chunk that each is to show
    surplus: list[int]  # posts that are to go
    added: list[int]  # chunks that are posted in addition, behind all others


def align(shown: Sequence[str], wanted: Sequence[str], can_become: Callable[[str, str], bool]) -> Alignment:
    """Return how to get from what is shown to what is wanted.

    Each chunk takes the first free post that can become it: so texts stay in order, and a file stays what it
    is. Only what no post can become is posted in addition, and comes last.
    """
    free = list(range(len(shown)))
    kept: dict[int, int] = {}
    added: list[int] = []
    for number, chunk in enumerate(wanted):
        post = next((one for one in free if shown[one] == chunk or can_become(shown[one], chunk)), None)
        if post is None:
            added.append(number)
        else:
            free.remove(post)
            kept[post] = number
    return Alignment(kept, free, added)
