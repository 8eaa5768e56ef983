"""Pages and what they load: the files of page_files, by their paths. They are the same for everybody."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from starlette.requests import Request
from starlette.responses import Response

from .door import Door

PATHS = {
    "/": "status.html",
    "/login": "login.html",
    "/static/hiboss.css": "hiboss.css",
    "/static/status.js": "status.js",
    "/static/login.js": "login.js",
}
_TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript"}


@cache
def _content(name: str) -> bytes:
    return (files("hiboss.web") / "page_files" / name).read_bytes()


async def show(door: Door, request: Request, name: str) -> Response:
    return Response(_content(name), media_type=_TYPES[name.rpartition(".")[2]])
