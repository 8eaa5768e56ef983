"""A call that must raise: the error of it, in one line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest


def raised(kind: Any, call: Callable[..., Any], *given: Any, says: str | None = None, **named: Any) -> Any:
    """Call something; return the error of this kind that it raises, whose text has a match of `says`."""
    with pytest.raises(kind, match=says) as caught:
        call(*given, **named)
    return caught.value
