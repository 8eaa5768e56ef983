"""Shorten a text for a line that quotes it."""

from __future__ import annotations

import unicodedata

QUOTE_CHARACTERS = 60
_JOINER = "\u200d"


def shorten(text: str, limit: int = QUOTE_CHARACTERS) -> str:
    """Return the beginning of a text on one line; never cut inside what people see as one character."""
    flat = " ".join(text.split())
    if len(flat) <= limit:
        return flat
    end = limit - 1
    while end and _splits_a_character(flat, end):
        end -= 1
    return flat[:end].rstrip() + "…"


def _splits_a_character(text: str, end: int) -> bool:
    """Tell whether a cut before `text[end]` would split what people see as one character."""
    if text[end - 1] == _JOINER or _extends_the_character_before(text[end]):
        return True
    flags = end
    while flags and _half_a_flag(text[flags - 1]):
        flags -= 1
    return _half_a_flag(text[end]) and (end - flags) % 2 == 1


def _extends_the_character_before(character: str) -> bool:
    """Tell whether this is part of the character before it: accent, skin tone, later part of a syllable."""
    return (
        unicodedata.category(character) in ("Mn", "Me", "Mc", "Cf")
        or "\U0001f3fb" <= character <= "\U0001f3ff"
        or "\u1160" <= character <= "\u11ff"
    )


def _half_a_flag(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"
