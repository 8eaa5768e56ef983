"""The parts of the bench, each a module with `measure(directory, size)`, and about how long each takes."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from .figures import Figure
from .rounds import Size

# Seconds to get ready, and of one round, of one tree on a quiet machine.
PARTS = {
    "sends": (1.0, 1.6),
    "callers": (1.0, 0.4),
    "rests": (6.0, 4.0),
    "boxes": (1.0, 1.0),
    "commands": (3.0, 1.2),
    "mailboxes": (20.0, 3.0),
    "deferred": (8.0, 6.0),
    "delivery": (2.0, 4.5),
    "waiters": (8.0, 1.6),
    "followers": (2.0, 2.2),
    "turns": (1.0, 1.2),
    "claude_turns": (2.0, 3.0),
    "telegram": (2.0, 0.5),
    "telegram_out": (6.0, 3.2),
    "stops": (5.0, 4.0),
    "breaker": (3.0, 3.6),
    "web": (1.0, 2.8),
    "mcp": (3.0, 0.7),
}


def seconds(part: str, size: Size) -> float:
    ready, each = PARTS[part]
    return ready + each * size.rounds


def measure(part: str, directory: Path, size: Size) -> list[Figure]:
    """Imported here: another tree may lack what one part needs."""
    figures: list[Figure] = import_module(f".{part}", __package__).measure(directory / part, size)
    return figures
