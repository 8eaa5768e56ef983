"""What the paths of /openapi.json refer to: types, errors, answers with errors, and recorded examples."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..api.discovery import examples, schema_of, text_of
from ..api.operation import Operation
from ..core import errors
from ..core.errors import HibossError

Json = dict[str, Any]
JSON = "application/json"
ERROR = "Error"  # the type that every error has
STATUSES = {
    400: "The request is wrong.",
    401: "Nobody is known by this token, or there is none.",
    403: "The caller may not do this.",
    404: "There is no such thing, or the caller may not see it.",
    405: "The path takes another method.",
    408: "The body came too slowly.",
    409: "It does not fit the state that something is in.",
    410: "It is gone.",
    413: "Something is too large.",
    415: "The body is of a wrong type.",
    416: "It has no such part.",
    421: "The request was made to a name that is not of this daemon.",
    422: "It cannot be done so.",
    429: "There were too many of them.",
    500: "The daemon failed.",
    502: "Somebody whom the daemon asked refused.",
    503: "It cannot be done now; try again.",
    504: "It took too long.",
    507: "The disk is full.",
}
# Any request can be answered with these, before anybody looks at what it asks for.
OF_ANY = (errors.WrongHost, errors.WrongOrigin, errors.NotHttp, errors.Busy)
OF_CHANGES = (errors.NoOrigin,)  # of methods that change something, from a browser
OF_BODIES = (errors.FrameTooLarge, errors.BodyTooSlow, errors.InvalidRequest)
OF_JSON = (*OF_BODIES, errors.ParseError, errors.WrongContentType)
OF_STORE = (errors.StoreError, errors.StoreLocked, errors.StoreDamaged, errors.InternalError)


class Components:
    """Collects the parts that are referred to. Each method returns the reference."""

    def __init__(self) -> None:
        self.schemas: Json = {ERROR: _ERROR}
        self.responses: Json = {}
        self.examples: Json = {}
        self._params: dict[str, Json] = {}  # by operation: several routes may call it

    def params(self, operation: Operation) -> Json:
        """Return the schema itself of what an operation takes through this door; its types are added."""
        if operation.name not in self._params:
            schema = schema_of(operation.params, self.schemas)
            taken = schema.get("properties", {})
            taken = {name: one for name, one in taken.items() if name not in operation.socket_only}
            self._params[operation.name] = {**schema, "properties": taken}
        return self._params[operation.name]

    def named(self, name: str, schema: Json) -> Json:
        """Add a type under a name of its own."""
        self.schemas[name] = schema
        return {"$ref": f"#/components/schemas/{name}"}

    def result(self, operation: Operation) -> Json:
        name = f"{operation.name}.result"
        if name in self.schemas:
            return {"$ref": f"#/components/schemas/{name}"}
        return self.named(name, schema_of(operation.result, self.schemas))

    def result_examples(self, operation: Operation) -> Json:
        """Return the examples of an answer, by name; none: nothing is recorded."""
        found = examples().get(operation.name)
        if found is None:
            return {}
        name = f"{operation.name}.result"
        self.examples[name] = {"summary": "recorded from a daemon", "value": found["result"]}
        return {"recorded": {"$ref": f"#/components/examples/{name}"}}

    def failures(self, classes: Iterable[type[HibossError]]) -> Json:
        """Return the answers with these errors, by status. All codes of one status are one answer."""
        by_status: dict[int, dict[str, type[HibossError]]] = {}
        for one in classes:
            by_status.setdefault(one.http, {})[one.code] = one
        return {
            str(status): self._failure(status, dict(sorted(found.items())))
            for status, found in sorted(by_status.items())
        }

    def _failure(self, status: int, found: dict[str, type[HibossError]]) -> Json:
        name = "-".join((str(status), *found))
        if name not in self.responses:
            schemas = [self.error(one) for one in found.values()]
            codes = ", ".join(f"`{code}`" for code in found)
            response: Json = {
                "description": f"{STATUSES[status]} Codes: {codes}.",
                "content": {JSON: {"schema": schemas[0] if len(schemas) == 1 else {"anyOf": schemas}}},
            }
            if headers := _headers(found.values()):
                response["headers"] = headers
            self.responses[name] = response
        return {"$ref": f"#/components/responses/{name}"}

    def error(self, cls: type[HibossError]) -> Json:
        """Add the type of one error."""
        data = {"type": "object", "properties": {"code": {"const": cls.code}}, "required": ["code"]}
        inner = {"type": "object", "properties": {"code": {"const": cls.rpc}, "data": data}}
        schema: Json = {
            "description": text_of(cls),
            "allOf": [{"$ref": f"#/components/schemas/{ERROR}"}],
            "type": "object",
            "properties": {"error": inner},
        }
        return self.named(f"error.{cls.code}", schema)


def _headers(classes: Iterable[type[HibossError]]) -> Json:
    """Return the headers that an answer with one of these errors may have."""
    found: Json = {}
    for one in classes:
        if one.http == 401:
            found["WWW-Authenticate"] = {"description": "how to prove who asks", "schema": {"type": "string"}}
        if one is errors.MethodNotAllowed:
            found["Allow"] = {"description": "the methods that it takes", "schema": {"type": "string"}}
        if one is errors.TooManyAttempts:
            found["Retry-After"] = {"description": "when to try again, in seconds", "schema": _SECONDS}
    return found


_SECONDS = {"type": "integer", "minimum": 1}
_ERROR: Json = {
    "description": "An error, as every door answers with it.",
    "type": "object",
    "properties": {
        "error": {
            "type": "object",
            "description": "what is wrong",
            "properties": {
                "code": {"type": "integer", "description": "the code of JSON-RPC"},
                "message": {"type": "string", "description": "what is wrong, and what would be right"},
                "data": {
                    "type": "object",
                    "description": "the stable code, and the facts in the message",
                    "properties": {"code": {"type": "string", "description": "never changes its meaning"}},
                    "required": ["code"],
                },
            },
            "required": ["code", "message", "data"],
        }
    },
    "required": ["error"],
}
