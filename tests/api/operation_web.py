"""Right requests for the operations by which people use the HTTP door with a browser."""

from __future__ import annotations

from typing import Any

from tests.api.operation_runs import Answers, Case
from tests.support.web_clients import RestClient


def links(case: Case) -> list[Any]:
    """Of the boss for himself and for another person, and of that person."""
    ann = f"ann-{case.ada.name}"
    token = case.boss.call("user.register", name=ann)["token"]
    found = [
        case.boss.call("web.link"),
        case.boss.call("web.link", name=ann.upper()),
        case.daemon.call("web.link", token=token),
        case.daemon.call("web.link", token=token, name=f"user:{ann}"),
    ]
    assert [one["address"] for one in found] == ["user:boss", *[f"user:{ann}"] * 3]
    assert len({one["url"] for one in found}) == len(found)
    return found


def logouts(case: Case) -> list[Any]:
    """Of a program, of one browser, and of all that are left."""
    token = case.boss.call("user.register", name=f"bea-{case.ada.name}")["token"]
    first, _ = (_browser(case.daemon.call("web.link", token=token)) for _ in range(2))
    found = [
        case.daemon.call("web.logout", token=token),
        case.daemon.call("web.logout", token=first),
        case.daemon.call("web.logout", token=token, all=True),
        case.daemon.call("web.logout", token=token, all=True),
    ]
    assert [one["changed"] for one in found] == [0, 1, 1, 0]
    return found


def _browser(link: Any) -> str:
    """Log in by a link, as its page does, and return the token that the two halves make."""
    place, _, code = link["url"].partition("/login#")
    client = RestClient(place)
    reply = client.request("POST", "/login", {"code": code})
    client.close()
    cookie = reply.headers["set-cookie"].partition(";")[0].partition("=")[2]
    return f"hbw_{cookie}.{reply.json['tab']}"


CALLS_OF_BROWSERS: dict[str, Answers] = {"web.link": links, "web.logout": logouts}
