"""Everything in the reference of operations is there and true: descriptions, effects and examples."""

import asyncio
import hashlib
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, TypeAdapter
from typing_extensions import TypedDict

from docs.example_calls import tell
from docs.record_examples import Recorder, example_daemon, text
from hiboss.api import dispatch  # noqa: F401 - it declares the operations
from hiboss.api.discovery import EXAMPLES, examples
from hiboss.api.operation import REGISTRY, Operation, Params
from tests.support.sweeps import sweep

HINT = "run: python -m docs.record_examples (and then python -m docs.generate)"
FLEETING = {"last_seen_at"}  # columns that every call changes
NUMBERS = {"counter", "sqlite_sequence"}  # tables in which a number may be left out: nobody sees it


def undescribed(operation: Operation) -> Iterator[str]:
    """The parameters and the fields of the result, at every depth, that have no description."""
    yield from _undescribed("parameter", operation.params.model_json_schema())
    schema = TypeAdapter(operation.result).json_schema()
    yield from _undescribed("field", schema)
    for name, shape in schema.get("$defs", {}).items():
        yield from _undescribed(f"field {name} ·", shape)


def _undescribed(what: str, schema: dict[str, Any]) -> Iterator[str]:
    for name, field in schema.get("properties", {}).items():
        said = field.get("description", "").strip()
        if not said or said.replace(" ", "_") == name:
            yield f"{what} {name}"


def test_every_parameter_and_every_field_of_a_result_is_described() -> None:
    assert [f"{name}: {one}" for name in sorted(REGISTRY) for one in undescribed(REGISTRY[name])] == []


def test_the_check_itself_finds_a_parameter_and_a_field_without_a_description() -> None:
    class Asked(Params):
        page_size: int
        said: int = Field(description="how many")

    class Inner(TypedDict):
        deep: str

    class Answered(TypedDict):
        inner: Annotated[list[Inner], Field(description="some")]
        empty: Annotated[str, Field(description=" ")]
        full_name: Annotated[str, Field(description="full name")]

    assert sorted(undescribed(replace(REGISTRY["daemon.ping"], params=Asked, result=Answered))) == [
        "field Inner · deep",
        "field empty",
        "field full_name",
        "parameter page_size",
    ]


def test_every_operation_and_nothing_else_has_an_example_that_fits_its_declaration() -> None:
    missing = set(REGISTRY) - set(examples())
    assert not missing, f"call {missing} in docs/example_calls.py, then {HINT}"
    assert set(examples()) == set(REGISTRY)
    with sweep() as row:
        for name, operation in REGISTRY.items():
            with row(name):
                example = examples()[name]
                params = {key: value for key, value in example["params"].items() if key != "token"}
                assert ("token" in example["params"]) == (name == "auth.login")
                operation.params.model_validate(params)
                checked = TypeAdapter(operation.result).validate_python(example["result"], strict=True)
                assert checked == example["result"], f"fields that are not declared; {HINT}"


class Checked(Recorder):
    """Makes the calls of the story, and checks that each does to the store what its effect says."""

    async def __call__(self, method: str, who: str | None = "boss", **params: Any) -> Any:
        effect = REGISTRY[method].effect
        before = self.stored() if effect == "read" else {}
        result = await super().__call__(method, who, **params)
        after = self.stored() if effect in ("read", "idempotent") else {}
        if effect == "read":
            assert after == before, f"{method} says that it only reads, and changed {_changed(before, after)}"
        if effect == "idempotent":
            given = {name.removesuffix("_"): value for name, value in params.items()}
            await self.raw(method, who, given)  # it may be refused, as what was done before
            again = self.stored()
            assert again == after, f"a second {method} changed {_changed(after, again)}"
        return result

    def stored(self) -> dict[str, str]:
        """A digest of each table."""
        with closing(sqlite3.connect(self._daemon.home.database)) as connection:
            connection.row_factory = sqlite3.Row
            found = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
            tables = {row["name"] for row in found} - NUMBERS
            return {table: _digest(connection, table) for table in sorted(tables)}


def _digest(connection: sqlite3.Connection, table: str) -> str:
    rows = connection.execute(f"SELECT * FROM {table}").fetchall()
    kept = [[row[key] for key in row.keys() if key not in FLEETING] for row in rows]  # noqa: SIM118
    return hashlib.sha256(repr(sorted(map(repr, kept))).encode()).hexdigest()


def _changed(before: dict[str, str], after: dict[str, str]) -> list[str]:
    return sorted(table for table in after if after[table] != before.get(table))


def test_the_examples_are_what_a_daemon_answers_and_effects_are_as_declared(tmp_path: Path) -> None:
    async def told() -> dict[str, Any]:
        async with example_daemon(tmp_path, Checked) as recorder:
            await tell(recorder)
            return recorder.examples

    found = asyncio.run(told())
    with sweep() as row:
        for name in sorted(found):
            with row(name):
                assert json.dumps(found[name], indent=1) == json.dumps(examples().get(name), indent=1), HINT
    assert text(found) == EXAMPLES.read_text(encoding="utf-8"), HINT
