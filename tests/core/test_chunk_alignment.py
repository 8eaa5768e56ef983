"""Posts become those of a new wording: texts in order, files where they are."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from hiboss.core.chunk_alignment import Alignment, align


def becomes(shown: Sequence[str], wanted: Sequence[str]) -> Alignment:
    """Align chunks of which those in capitals are files: each can only stay."""
    return align(shown, wanted, lambda one, other: one.islower() and other.islower())


def seen(shown: Sequence[str], wanted: Sequence[str]) -> list[str]:
    """Return what people see in the end."""
    found = becomes(shown, wanted)
    there = [wanted[found.kept[post]] for post in range(len(shown)) if post in found.kept]
    return [*there, *[wanted[chunk] for chunk in found.added]]


def test_what_is_too_much_goes_and_what_is_missing_comes_last() -> None:
    assert becomes(["a", "b", "c"], ["a"]) == ({0: 0}, [1, 2], [])
    assert becomes(["a"], ["a", "b", "c"]) == ({0: 0}, [], [1, 2])


def test_a_text_in_front_moves_all_texts_by_one() -> None:
    assert becomes(["b", "c"], ["a", "b", "c"]) == ({0: 0, 1: 1}, [], [2])
    assert becomes(["a", "b", "c"], ["b", "c"]) == ({0: 0, 1: 1}, [2], [])


def test_a_file_behind_the_text_keeps_its_post_whatever_the_text_becomes() -> None:
    assert becomes(["old", "FILE"], ["new", "next", "FILE"]) == ({0: 0, 1: 2}, [], [1])
    assert becomes(["old", "next", "FILE"], ["new", "FILE"]) == ({0: 0, 2: 1}, [1], [])
    assert becomes(["old", "FILE", "next"], ["a", "b", "FILE"]) == ({0: 0, 2: 1, 1: 2}, [], [])


_CHUNKS = st.lists(st.sampled_from("abcdABCD"), max_size=7)


@given(_CHUNKS, _CHUNKS)
def test_all_that_is_wanted_is_there_once_the_texts_in_order(shown: list[str], wanted: list[str]) -> None:
    found = becomes(shown, wanted)
    assert sorted([*found.kept, *found.surplus]) == list(range(len(shown)))
    assert sorted([*found.kept.values(), *found.added]) == list(range(len(wanted)))
    end = seen(shown, wanted)
    assert sorted(end) == sorted(wanted)
    assert [one for one in end if one.islower()] == [one for one in wanted if one.islower()]
    assert seen(end, wanted) == end  # it is in line: nothing more is done
