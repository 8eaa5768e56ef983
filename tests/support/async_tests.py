"""Tests that are coroutines: each runs in an event loop of its own. A plugin that tests/conftest.py registers."""

from __future__ import annotations

import asyncio
import inspect
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import Any

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test that is a coroutine."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    asyncio.run(_run(pyfuncitem.obj, {name: pyfuncitem.funcargs[name] for name in names}))
    return True


async def _run(test: Any, given: dict[str, Any]) -> None:
    """Enter the arguments that are asynchronous contexts, and call the test with what they give."""
    async with AsyncExitStack() as stack:
        for name, value in given.items():
            if isinstance(value, AbstractAsyncContextManager):
                given[name] = await stack.enter_async_context(value)
        await test(**given)
