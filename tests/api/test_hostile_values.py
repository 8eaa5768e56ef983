"""No value of a caller makes the daemon work long, or becomes an error of the database.

Every operation is tried with values of 3 MB in the place of every parameter that takes a text, a list or
an object; work is counted as calls of Python functions, not as time. And with values that JSON's parsers
refuse (half a surrogate pair, numbers of any size): doors of other kinds may let them pass.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from hiboss.api import (
    dispatch,  # noqa: F401 - it declares the operations
    request_checks,
)
from hiboss.api.operation import REGISTRY, Level, Operation, Params, operation
from hiboss.core.errors import HibossError, InvalidParams
from tests.api.bad_input_mechanical import properties
from tests.api.bad_input_row import RIGHT
from tests.support.in_process_daemon import InProcessDaemon, frozen

pytestmark = pytest.mark.slow

MEGABYTES = 3_000_000
CALLS = 100_000  # of functions, at most: metadata can have 16,384 values; without a bound it is millions


def nested(depth: int) -> Any:
    value: Any = "x"
    for _ in range(depth):
        value = [value]
    return value


# Values of 3 MB; some are of a type that most parameters do not take, and must be refused as fast.
LARGE: dict[str, Callable[[], Any]] = {
    "a text": lambda: "x" * MEGABYTES,
    "a text of long characters": lambda: "😀" * (MEGABYTES // 4),
    "a list of short texts": lambda: ["x"] * (MEGABYTES // 4),
    "a list of numbers": lambda: [7] * (MEGABYTES // 2),
    "a list with a long text": lambda: ["x" * MEGABYTES],
    "lists in lists": lambda: [["x"] * 1_000] * (MEGABYTES // 4_000),
    "an object of many": lambda: {f"k{n}": 1 for n in range(MEGABYTES // 12)},
    "an object with a long key": lambda: {"x" * MEGABYTES: 1},
    "an object with a long text": lambda: {"x": "x" * MEGABYTES},
    "deep nesting": lambda: {"x": nested(900)},
}
NUMBERS = {"integer", "number", "boolean", "null"}


def sized(name: str) -> list[str]:
    """Return the parameters of an operation that take a text, a list or an object."""
    found = []
    for param, shape in properties(name).items():
        kinds = {one.get("type") for one in shape.get("anyOf", [shape])}
        if kinds - NUMBERS and "enum" not in shape:
            found.append(param)
    return found


def counted(work: Callable[[], Any]) -> int:
    """Return how many functions are called, in Python and in C."""
    number = 0

    def count(frame: Any, event: str, argument: Any) -> None:
        nonlocal number
        number += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
    return number


class Waiting(Exception):
    """A request was not refused, but waits for something."""


def finished(answering: Any) -> HibossError | None:
    """Run a coroutine that must not wait for anything; return the error it is refused with."""
    try:
        answering.send(None)
    except HibossError as error:
        return error
    except StopIteration:
        return None
    raise Waiting


def dump(daemon: InProcessDaemon) -> list[str]:
    tables = [row[0] for row in daemon.rows("SELECT name FROM sqlite_master WHERE type = 'table'")]
    return [str([tuple(row) for row in daemon.rows(f'SELECT * FROM "{table}"')]) for table in tables]


@frozen()
async def test_every_parameter_is_bounded_in_bytes(daemon: InProcessDaemon) -> None:
    values = {what: make() for what, make in LARGE.items()}
    before, wrong = dump(daemon), []
    for name in sorted(REGISTRY):
        token = daemon.token("nex" if REGISTRY[name].level is Level.STANDARD else "boss")
        for param in sized(name):
            for what, value in values.items():
                params = {**RIGHT.get(name, {}), param: value}
                wrong += [
                    f"{name}: {param} with {what}{why}" for why in tried(daemon, name, params, token, param)
                ]
    assert not wrong, "\n".join(wrong)
    assert dump(daemon) == before


def tried(
    daemon: InProcessDaemon, name: str, params: dict[str, Any], token: str, param: str
) -> Iterator[str]:
    """Yield what is wrong with the answer to a request that has one parameter too large."""
    found: list[HibossError | None] = []
    answering = daemon.daemon.dispatcher.call(name, params, token)
    try:
        work = counted(lambda: found.append(finished(answering)))
    except Waiting:
        yield " is worked on"
        return
    (error,) = found
    if error is None:
        yield " is taken"
    elif error.code not in ("too_large", "invalid_params"):
        yield f" is answered with {error.code}"
    elif param not in error.message or len(error.message) > 500:
        yield f" is explained as {error.message[:100]}"
    if work > CALLS:
        yield f" takes {work} calls"


@frozen()
async def test_many_unknown_parameters_are_refused_without_looking_at_all(daemon: InProcessDaemon) -> None:
    params = {f"k{n}": 1 for n in range(MEGABYTES // 12)}
    found: list[HibossError | None] = []
    call = daemon.daemon.dispatcher.call("daemon.ping", params, None)
    assert counted(lambda: found.append(finished(call))) < CALLS
    assert found[0] is not None and "k0 is not a parameter" in found[0].message


def test_a_new_parameter_is_bounded_by_default() -> None:
    class New(Params):
        words: list[str] | None = None
        things: dict[str, Any] | None = None
        word: str = ""

    @operation("test.new", level=Level.OPEN, params=New, result=dict)
    def new(context: Any, caller: Any, params: New) -> dict[str, Any]:
        """Do nothing."""
        return {}

    declared: Operation = REGISTRY.pop("test.new")
    for given in ({"word": "x" * 5_000}, {"words": ["x"] * 101}, {"things": {"x": "x" * 5_000}}):
        with pytest.raises(InvalidParams) as caught:
            request_checks.check(declared, given, None)  # type: ignore[arg-type]
        assert next(iter(given)) in caught.value.message
    request_checks.check(declared, {"word": "x" * 4_000, "words": ["x"] * 100, "things": {"x": [1]}}, None)  # type: ignore[arg-type]


# --- nasty values ------------------------------------------------------------------


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
