"""Ids for people and agents: one letter and an integer (`e81`), so that kinds cannot be mixed up."""

from __future__ import annotations

from .errors import BadId

KINDS = {
    "e": "envelope",
    "m": "message",
    "t": "thread",
    "c": "conversation",
    "r": "run",
    "s": "schedule",
    "q": "ask",
    "b": "binding",
    "k": "claim",
    "u": "upload",
}
LETTERS = {kind: letter for letter, kind in KINDS.items()}
LARGEST = 2**63 - 1  # what SQLite can hold


def parse(value: str | int, *kinds: str) -> tuple[str, int]:
    """Return ('envelope', 81) for 'e81'. A bare integer means the first of the allowed kinds."""
    text = str(value).strip()
    letter, digits = (text[:1], text[1:]) if text[:1].isalpha() else (LETTERS[kinds[0]], text)
    kind = KINDS.get(letter, "")
    # isascii: str.isdigit is also true for ² and for the digits of other scripts.
    plain = digits.isascii() and digits.isdigit() and len(digits) < 20
    if kind not in kinds or not plain or not 0 < int(digits) <= LARGEST:
        raise BadId(
            value=text[:40],
            kind=" or ".join(kinds),
            example=" or ".join(f"{LETTERS[k]}81" for k in kinds),
        )
    return kind, int(digits)


def number(value: str | int, kind: str) -> int:
    """Return 81 for 'e81' or 81, where only one kind is allowed."""
    return parse(value, kind)[1]
