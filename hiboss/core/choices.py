"""Which option of an ask is meant by what somebody wrote. One rule for chats and terminals."""

from __future__ import annotations

from collections.abc import Sequence


def chosen(options: Sequence[str], given: str) -> str | None:
    """Return the option that is meant: by its words, upper or lower case, or by its number from 1."""
    if given in options:  # those of a provider may differ only in upper and lower case
        return given
    wanted = _folded(given)
    for option in options:
        if _folded(option) == wanted:
            return option
    if len(wanted) < 5 and wanted.isascii() and wanted.isdigit() and 1 <= int(wanted) <= len(options):
        return options[int(wanted) - 1]
    return None


def first_option(options: Sequence[str], words: str) -> tuple[str | None, str]:
    """Split what was written behind an ask: the option that it begins with, and the comment after it.

    The longest option counts: one may have several words, and begin like another one.
    """
    said = " ".join(words.split())
    for option in sorted(options, key=len, reverse=True):
        length = len(" ".join(option.split()))
        if _folded(said[:length]) == _folded(option) and said[length : length + 1] in ("", " "):
            return option, said[length:].strip()
    first, _, rest = said.partition(" ")
    return chosen(options, first), rest.strip()


def _folded(text: str) -> str:
    return " ".join(text.split()).casefold()
