"""KEY=VALUE options: a value that is JSON becomes that value, any other one stays a text."""

from __future__ import annotations

from ..core.errors import InvalidParams

TYPE_CHECKING = False  # importing typing would cost every command 3 ms
if TYPE_CHECKING:
    from typing import Any


def key_values(given: list[str] | None) -> dict[str, Any]:
    """Return the pairs of a `--meta` that may be repeated."""
    return dict(_pair(one) for one in given or [])


def _pair(text: str) -> tuple[str, Any]:
    import json

    key, sign, value = text.partition("=")
    if not sign or not key:
        raise InvalidParams(detail=f"--meta {text} is not KEY=VALUE")
    try:
        found = json.loads(value)
        json.dumps(found, allow_nan=False)  # NaN and Infinity are JSON only for Python
        too_large = isinstance(found, int) and abs(found) >= 2**63  # it would come back rounded
        return key, value if too_large else found
    except ValueError:
        return key, value
    except RecursionError:
        raise InvalidParams(detail=f"--meta {key[:60]} is nested too deep to be stored") from None
