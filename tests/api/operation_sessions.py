"""Right requests for the operations of programs outside: open sessions, webhooks, and people with a browser."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from tests.api.operation_runs import Answers, Case
from tests.support.attached_sessions import Session
from tests.support.waits import wait_until
from tests.support.web_clients import RestClient


def opened(asks: Callable[[Case, Session], list[Any]]) -> Answers:
    """Make calls with an open session of Ada's."""

    def asked(case: Case) -> list[Any]:
        session = Session(case.ada.daemon, case.ada.name)
        try:
            return asks(case, session)
        finally:
            session.close()

    return asked


def starts(case: Case, session: Session) -> list[Any]:
    return [session.start()]


def lists_sessions(case: Case, session: Session) -> list[Any]:
    found = [one.call("attached.list") for one in (case.boss, session)]
    assert found[1]["sessions"][0]["session"] == session.session
    return found


def reports(verb: str, **params: Any) -> Callable[[Case, Session], list[Any]]:
    """Report something as a session that has mail."""

    def asked(case: Case, session: Session) -> list[Any]:
        case.bob.tell(case.ada)
        session.takes()
        return [session.call(f"attached.{verb}", **params)]

    return asked


def waits(case: Case, session: Session) -> list[Any]:
    case.bob.tell(case.ada)
    told, replaced = session.arm().answer()["result"], session.arm()
    session.arm()
    return [told, replaced.answer()["result"]]


def permits(case: Case, session: Session) -> list[Any]:
    """One that the boss allows, one that he denies."""
    found: list[Any] = []
    for choice in ("allow", "deny"):
        call = threading.Thread(
            target=lambda: found.append(
                session.call("attached.permit", tool="Bash", input='{"command": "ls"}')
            )
        )
        call.start()

        def asks() -> list[Any]:
            mine = case.boss.call("ask.list", state="open", page_size=100)["asks"]
            return [one for one in mine if one["asker"] == session.address]

        wait_until(asks)
        case.boss.call("ask.answer", id=asks()[0]["id"], choice=choice)
        call.join(30)
    assert [one["decision"] for one in found] == ["allow", "deny"]
    return found


def detaches(case: Case, session: Session) -> list[Any]:
    return [case.boss.call("agent.detach", name=session.name) for _ in range(2)]


CALLS_OF_SESSIONS: dict[str, Answers] = {
    "attached.start": opened(starts),
    "attached.list": opened(lists_sessions),
    "attached.prompt": opened(reports("prompt", event="1", prompt="hello")),
    "attached.step": opened(reports("step", tool="Bash")),
    "attached.stop": opened(reports("stop", event="1", text="hello")),
    "attached.break": opened(reports("break", event="1")),
    "attached.end": opened(reports("end", event="1")),
    "attached.wait": opened(waits),
    "attached.permit": opened(permits),
    "agent.detach": opened(detaches),
}

URL = "http://127.0.0.1:9/facts"  # nobody listens there, and none of these facts happens


def _in(case: Case) -> str:
    name = f"in-{case.ada.name}"
    case.boss.call("webhook.create", name=name, to=case.ada.address)
    return name


def _out(case: Case) -> str:
    name = f"out-{case.ada.name}"
    case.boss.call("webhook.subscribe", name=name, url=URL, topics=["breaker.pulled"])
    return name


def creates(case: Case) -> list[Any]:
    full = {"template": "{a.b} {{ {@body}", "subject": "{@headers.x-github-event}"}
    found = [
        case.boss.call("webhook.create", name=f"x-{case.ada.name}", to=case.ada.name),
        case.boss.call("webhook.create", name=f"y-{case.ada.name}", to=case.bob.address, **full),
    ]
    assert found[0]["webhook"]["to"] == case.ada.address and found[1]["webhook"]["template"]
    assert found[0]["secret"] != found[1]["secret"]
    return found


def subscribes(case: Case) -> list[Any]:
    chosen = {"topics": ["breaker.pulled"], "addresses": [case.ada.name, case.bob.address]}
    found = [case.boss.call("webhook.subscribe", name=f"x-{case.ada.name}", url=URL, **chosen)]
    assert found[0]["webhook"]["addresses"] == [case.ada.address, case.bob.address]
    case.boss.call("webhook.unsubscribe", name=f"x-{case.ada.name}")
    return found


def lists(case: Case) -> list[Any]:
    names = _in(case), _out(case)
    found = [case.boss.call("webhook.list")]
    listed = {one["name"]: one["direction"] for one in found[0]["webhooks"]}
    assert [listed[name] for name in names] == ["in", "out"]
    return found


def gets(case: Case) -> list[Any]:
    return [case.boss.call("webhook.get", name=name) for name in (_in(case), _out(case))]


def changes(case: Case) -> list[Any]:
    name, out = _in(case), _out(case)
    found = [
        case.boss.call("webhook.set", name=name, to=case.bob.name, template="{a}", subject="s"),
        case.boss.call("webhook.set", name=name, template="", subject=""),
        case.boss.call("webhook.set", name=out, url=f"{URL}/x", topics=["breaker.released"]),
        case.boss.call("webhook.set", name=out, addresses=[case.ada.address]),
    ]
    assert found[1]["webhook"]["to"] == case.bob.address and found[1]["webhook"]["template"] is None
    assert found[3]["webhook"]["topics"] == ["breaker.released"]
    return found


def rotates(case: Case) -> list[Any]:
    name = _in(case)
    found = [case.boss.call("webhook.rotate", name=name) for _ in range(2)]
    assert found[0]["secret"] != found[1]["secret"]
    return found


CALLS_OF_WEBHOOKS: dict[str, Answers] = {
    "webhook.create": creates,
    "webhook.subscribe": subscribes,
    "webhook.list": lists,
    "webhook.get": gets,
    "webhook.set": changes,
    "webhook.rotate": rotates,
    "webhook.delete": lambda case: [case.boss.call("webhook.delete", name=_in(case))],
    "webhook.unsubscribe": lambda case: [case.boss.call("webhook.unsubscribe", name=_out(case))],
}


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
