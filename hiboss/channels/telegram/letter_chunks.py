"""Which posts a letter becomes: its text, its files in albums, and what is said of a file that is too big."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...core.contracts.adapter import File, Letter
from . import file_kinds, rendering
from .chunk_form import Chunk, encode


def chunks(letter: Letter) -> list[str]:
    """Return the posts of a letter, as they are stored; at least one."""
    return [encode(one) for one in _planned(letter)]


def _planned(letter: Letter) -> list[Chunk]:
    texts = _texts(letter)
    if not texts and not letter.files:
        texts = _texts(replace(letter, type="text"))  # markup that shows nothing: its source says something
    files = [Chunk(files=one) for one in _albums(letter.files, last_alone=bool(letter.buttons and not texts))]
    left_out = [_in_place_of(one) for one in letter.files if file_kinds.too_big(one.size)]
    caption = rendering.caption(letter) if texts and files else None
    if caption is not None and not (letter.buttons and len(files[0].files) > 1):  # no album can have buttons
        files[0] = caption._replace(files=files[0].files)
        texts = []
    found = [*texts, *files, *left_out] or [Chunk()]
    if letter.buttons:
        under = _with_buttons(texts, files, left_out)
        found[under] = found[under]._replace(buttons=True)
    return found


def _texts(letter: Letter) -> list[Chunk]:
    return [one for one in rendering.render(letter) if one.text.strip()]


def _with_buttons(texts: list[Chunk], files: list[Chunk], left_out: list[Chunk]) -> int:
    """Return which post has the buttons: the last with text, or else the last file."""
    if texts:
        return len(texts) - 1
    if not files:
        return max(0, len(left_out) - 1)
    return 0 if files[0].text else len(files) - 1


def _albums(files: Sequence[File], *, last_alone: bool) -> list[tuple[int, ...]]:
    """Return the numbers of the files that can be posted, each album together, all in order."""
    found: list[list[int]] = []
    numbers = [number for number, one in enumerate(files) if not file_kinds.too_big(one.size)]
    for number in numbers:
        alone = last_alone and number == numbers[-1]
        if found and not alone and _fit([files[one] for one in (*found[-1], number)]):
            found[-1].append(number)
        else:
            found.append([number])
    return [tuple(one) for one in found]


def _fit(files: list[File]) -> bool:
    """Tell whether these files can be one album. All of it is one upload, which has the limit of one file."""
    return (
        len(files) <= file_kinds.MOST_OF_ALBUM
        and sum(one.size for one in files) <= file_kinds.MOST_BYTES
        and file_kinds.can_be_together([file_kinds.kind_of(one) for one in files])
    )


def _in_place_of(file: File) -> Chunk:
    text = file_kinds.not_posted(file.name, file_kinds.too_big(file.size) or "")
    return Chunk(text, problem=text)
