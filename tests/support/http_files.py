"""Files over HTTP in tests: upload them, send them, and download them."""

from __future__ import annotations

from typing import Any

from hiboss.web.tickets import LIVES_MS
from tests.support.web_clients import Reply, RestClient

CONTENT = bytes(range(256)) * 40


def upload(client: RestClient, content: Any = CONTENT, name: str = "plan.bin", **headers: str) -> Reply:
    given = {key.replace("_", "-"): value for key, value in headers.items()}
    return client.request("POST", "/api/attachments", content, given, name=name)


def stored(client: RestClient, content: Any = CONTENT, name: str = "plan.bin", **headers: str) -> str:
    reply = upload(client, content, name, **headers)
    assert reply.status == 201, reply
    return str(reply.json["id"])


def sent(client: RestClient, content: bytes = CONTENT, name: str = "plan.bin", **more: Any) -> str:
    """Send a message with a file; return where the file is. `mime`: of the file."""
    headers = {"content_type": more.pop("mime")} if "mime" in more else {}
    given = {"to": "agent:nex", "uploads": [stored(client, content, name, **headers)], **more}
    reply = client.request("POST", "/api/messages", given)
    assert reply.status == 201, reply
    return f"/api/attachments/{reply.json['ids'][0]}/1"


def get(client: RestClient, path: str, method: str = "GET", **headers: str) -> Reply:
    return client.request(
        method, path, None, {key.replace("_", "-"): value for key, value in headers.items()}
    )


def ticket(client: RestClient, path: str) -> str:
    reply = client.request("POST", f"{path}/ticket")
    assert reply.status == 201, reply
    assert reply.json["expires_in"] * 1000 == LIVES_MS
    assert reply.json["url"].startswith(f"{path}?ticket=")
    return str(reply.json["url"])
