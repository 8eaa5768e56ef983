"""Every operation by its own name: POST /api/op/envelope.send, with its parameters as a JSON object."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from ..api.operation import REGISTRY
from . import answers, requests
from .door import Door


async def call(door: Door, request: Request) -> Response:
    name = request.path_params["operation"]
    params = await door.params(request)
    operation = REGISTRY.get(name)
    takes_key = operation is not None and "key" in operation.param_names
    params = requests.with_key(request, params, takes_key)
    return answers.result(await door.call(request, name, params))
