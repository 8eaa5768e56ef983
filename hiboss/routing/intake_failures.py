"""What is said of an update that could not be digested, and how long to wait before the next try."""

from __future__ import annotations

from ..core import bounded_calls
from ..core.contracts.failures import ERROR_CHARACTERS, LaneError, Refused
from ..core.errors import Busy, HibossError, HomeUnusable, StoreError
from ..core.quoting import storable


def is_of_the_store(error: HibossError) -> bool:
    """Tell whether an error is about the store or the home, and not about what came in."""
    return isinstance(error, (Busy, StoreError, HomeUnusable))


def problem_of(error: BaseException) -> str:
    if isinstance(error, Refused):
        return storable(error.why, ERROR_CHARACTERS)
    if isinstance(error, (LaneError, HibossError)):
        return storable(error, ERROR_CHARACTERS)
    if isinstance(error, bounded_calls.TookTooLong):
        return "it took too long"
    return f"{type(error).__name__}: {storable(error, ERROR_CHARACTERS)}"


def seconds_to_wait(given: object, usual: float) -> float:
    """Return how long to wait: what the platform said, if that can be meant, else the usual time."""
    if isinstance(given, (int, float)) and 0 <= given <= 86_400:
        return float(given)
    return usual
