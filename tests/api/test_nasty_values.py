"""No value of a caller becomes an error of the database, or a defect: whatever it says, it is only a value.

The operations are called in the daemon, not through a door, so that also those values come which
JSON's parsers refuse: half a surrogate pair, and numbers of any size. Doors of other kinds may
let them pass.
"""

from __future__ import annotations

import asyncio
from typing import Any

from hiboss.api import dispatch  # noqa: F401 - it declares the operations
from hiboss.api.operation import REGISTRY
from hiboss.core.errors import HibossError
from tests.api.bad_input_mechanical import properties
from tests.api.bad_input_row import RIGHT
from tests.support.in_process_daemon import InProcessDaemon, frozen

NASTY: list[Any] = [
    "a\x00b",
    "\ud800",
    "a\udfffb",
    "' OR 1=1 --",
    "?1",
    ":x",
    "%" * 4_000,
    "[" * 4_000,
    'what is "this',
    "NEAR(",
    "\\",
    "\U0010ffff",
    2**63 - 1,
    2**63,
    -(2**63) - 1,
    10**400,
    1e308,
    float("inf"),
    float("nan"),
    True,
    b"bytes",
    ["\ud800"],
    {"\ud800": "\ud800"},
    {"a": float("nan")},
    {"a": 10**400},
    [2**63] * 100,
    ["e1"] * 100,
    list(range(1, 101)),
]
STOP = {"daemon.stop", "setup.execute"}  # they would do as told, or have done so
NEVER = ("internal_error", "home_unusable")


@frozen(at=None)
async def test_no_value_of_a_caller_becomes_an_error_of_the_database(daemon: InProcessDaemon) -> None:
    token, wrong = daemon.token("boss"), []
    for name in sorted(REGISTRY.keys() - STOP):
        right = {key: value for key, value in RIGHT.get(name, {}).items() if not str(value).startswith("%")}
        short = {"timeout": "0s"} if "timeout" in properties(name) else {}
        for param in properties(name):
            for value in NASTY:
                given = {**right, **short, param: value}
                try:
                    async with asyncio.timeout(30):
                        await daemon.daemon.dispatcher.call(name, given, token)
                except HibossError as error:
                    if error.code in NEVER or error.code.startswith("store_"):
                        wrong.append(f"{name} {param} {str(value)[:40]!r}: {error}")
    assert not wrong, "\n".join(wrong)
