"""A limit that a parameter declares is enforced by the declaration, whatever the handler does."""

from __future__ import annotations

import pytest

from hiboss.api.operation import REGISTRY
from hiboss.api.param_sizes import DEFAULT, check_sizes
from hiboss.core.errors import InvalidParams, TooLarge
from hiboss.core.settings import Settings
from tests.support.sweeps import sweep


def test_each_text_is_refused_that_is_one_byte_longer_than_its_parameter_says() -> None:
    limits = Settings()
    with sweep() as row:
        for operation in REGISTRY.values():
            for name in operation.param_names:
                size = operation.sizes.get(name, DEFAULT)
                most = size.text if isinstance(size.text, int) else getattr(limits, size.text)
                with row(f"{operation.name} {name}"):
                    check_sizes(operation.name, operation.sizes, {name: "x" * most}, limits)
                    with pytest.raises((InvalidParams, TooLarge)):
                        check_sizes(operation.name, operation.sizes, {name: "x" * (most + 1)}, limits)
