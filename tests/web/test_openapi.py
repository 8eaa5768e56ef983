"""/openapi.json: everything that the HTTP door serves is in it, and everything in it is true."""

from __future__ import annotations

import getpass
import json
import re
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.routing import Route

from hiboss.api import dispatch  # noqa: F401 - it declares the operations
from hiboss.api.discovery import examples
from hiboss.api.operation import REGISTRY
from hiboss.core.errors.base import tree
from hiboss.core.settings import Settings
from hiboss.web import app, openapi, pages
from hiboss.web.door import Door
from hiboss.web.routes import ROUTES
from tests.support.openapi_document import described, document, served
from tests.support.sweeps import sweep

OFFERED = sorted(name for name, one in REGISTRY.items() if "web" in one.doors and not one.follows)


def body_schema(one: dict[str, Any]) -> dict[str, Any]:
    return described().resolved(one["requestBody"]["content"]["application/json"]["schema"])


@pytest.mark.slow
def test_it_is_a_valid_document_of_openapi_3_1() -> None:
    from openapi_spec_validator import OpenAPIV31SpecValidator  # it takes half a second

    assert document()["openapi"].startswith("3.1.")
    assert [str(one)[:300] for one in OpenAPIV31SpecValidator(document()).iter_errors()] == []


def test_every_operation_that_this_door_offers_is_in_it_and_no_other() -> None:
    found = sorted(
        path.removeprefix("/api/op/") for path in document()["paths"] if path.startswith("/api/op/")
    )
    assert found == OFFERED
    assert not {"attached.start", "mcp.start", "setup.execute", "event.subscribe"} & set(found)


def test_every_friendly_route_is_in_it_with_the_operation_that_it_calls() -> None:
    for route in ROUTES:
        found = document()["paths"][route.path][route.method.lower()]
        assert found["x-operation"] == route.operation
        assert str(route.status) in found["responses"]


def test_every_path_of_the_app_is_in_it_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []
    monkeypatch.setattr(app, "_Paths", made.append)
    app.main_app(Door(None, Settings(), None, None))  # type: ignore[arg-type] # who answers is not asked here
    found = {
        (one.path, method)
        for one in made[0]
        if isinstance(one, Route)
        and one.path != "/api/op/{operation}"
        and not one.path.startswith("/static/")
        for method in one.methods or ()
        if method != "HEAD"
    }
    told = {(path, method.upper()) for path, method, _ in served() if not path.startswith("/api/op/")}
    assert told == found
    assert all(path.startswith("/static/") or path in document()["paths"] for path in pages.PATHS)


def test_every_operation_is_described_with_all_that_is_declared() -> None:
    with sweep() as row:
        for name in OFFERED:
            with row(name):
                check_described(name)


def check_described(name: str) -> None:
    operation, found = REGISTRY[name], document()["paths"][f"/api/op/{name}"]["post"]
    taken = set(operation.param_names) - operation.socket_only
    schema = body_schema(found)
    assert set(schema["properties"]) == taken
    assert all(one.get("description") for one in schema["properties"].values())
    assert found["summary"] == operation.summary and found["x-effect"] == operation.effect
    assert found["x-level"] == (operation.elsewhere or operation.level).word
    codes = {
        status: set(answer["$ref"].rpartition("/")[2].split("-")[1:])
        for status, answer in found["responses"].items()
        if "$ref" in answer
    }
    for one in (*operation.errors, *operation.dispatch_errors):
        assert one.code in codes[str(one.http)], one


def test_an_error_has_its_codes_and_its_message() -> None:
    by_code = {one.code: one for one in tree()}
    for name, schema in document()["components"]["schemas"].items():
        if name.startswith("error."):
            cls = by_code[name.removeprefix("error.")]
            assert schema["description"] == " ".join((cls.__doc__ or "").split())
            right = {"error": {"code": cls.rpc, "message": "x", "data": {"code": cls.code, "value": 1}}}
            assert described().wrong(schema, right) == []
            right["error"]["data"]["code"] = "other"  # type: ignore[index]
            assert described().wrong(schema, right) != []
    for name, answer in document()["components"]["responses"].items():
        status, *codes = name.split("-")
        assert {str(by_code[code].http) for code in codes} == {status}
        assert all(f"`{code}`" in answer["description"] for code in codes)


@pytest.mark.slow
def test_every_example_fits_its_schema() -> None:
    for path, method, found in served():
        assert (path, method, list(unfit(found))) == (path, method, [])


def unfit(found: dict[str, Any]) -> Iterator[str]:
    """What is wrong with the examples of one request."""
    contents = list(found.get("requestBody", {}).get("content", {}).values())
    for answer in found["responses"].values():
        contents += described().resolved(answer)["content"].values()
    for content in contents:
        for one in content.get("examples", {}).values():
            yield from described().wrong(content["schema"], described().resolved(one)["value"])
    for one in found.get("parameters", ()):
        if "example" in one:
            yield from described().wrong(one["schema"], one["example"])


def test_every_operation_has_the_recorded_example_of_its_parameters_and_its_result() -> None:
    for name in OFFERED:
        found = document()["paths"][f"/api/op/{name}"]["post"]
        asked = found["requestBody"]["content"]["application/json"]["examples"]["recorded"]["value"]
        answer = found["responses"]["200"]["content"]["application/json"]["examples"]["recorded"]
        left_out = {"token", *REGISTRY[name].socket_only}
        assert asked == {key: one for key, one in examples()[name]["params"].items() if key not in left_out}
        assert described().resolved(answer)["value"] == examples()[name]["result"]


def test_a_route_takes_its_place_from_the_path_and_the_rest_from_the_query_or_the_body() -> None:
    snooze = document()["paths"]["/api/messages/{id}/snooze"]["post"]
    assert [(one["name"], one["in"]) for one in snooze["parameters"]] == [("id", "path")]
    assert set(body_schema(snooze)["properties"]) == {"until", "agent"}
    words = {one["name"]: one for one in document()["paths"]["/api/messages"]["get"]["parameters"]}
    assert {one["in"] for one in words.values()} == {"query"} and "address" not in words
    assert (words["page_size"]["schema"], words["scope"]["schema"]["type"]) == ({"type": "integer"}, "string")
    assert list(words["meta"]["content"]) == ["application/json"]
    sent = document()["paths"]["/api/messages"]["post"]
    assert [one["name"] for one in sent["parameters"]] == ["Idempotency-Key"]
    assert "attachments" not in body_schema(sent)["properties"]  # it names files of this machine


def test_who_needs_a_token_is_said() -> None:
    assert document()["security"] == [{"bearer": []}]
    without = {(path, method) for path, method, one in served() if one.get("security") == []}
    pages_shown = {("/", "get"), ("/login", "get"), ("/api", "get")}
    others = {("/openapi.json", "get"), ("/health", "get"), ("/login", "post"), ("/hooks/{name}", "post")}
    assert without == pages_shown | others


def test_no_token_and_no_path_or_name_of_this_machine_is_in_it(tmp_path: Path) -> None:
    text = json.dumps(document(), ensure_ascii=False)
    assert re.findall(r"hb[a-z]_[A-Za-z0-9]", text) == []
    for own in (str(Path.home()), str(Path(__file__).parents[2]), str(tmp_path), socket.gethostname()):
        assert own in ("/", "localhost") or own not in text
    assert re.findall(r"/(?:root|tmp|work|usr|private)/[^\"\s]*", text) == []
    assert getpass.getuser() == "root" or f"/home/{getpass.getuser()}/" not in text


def test_it_is_made_once() -> None:
    assert openapi.written() is openapi.written()
