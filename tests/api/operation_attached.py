"""Calls of the operations of open sessions, for the test that every answer has its declared shape."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from tests.api.operation_runs import Answers, Case
from tests.support.attached_sessions import Session
from tests.support.daemons import wait_until


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


def lists(case: Case, session: Session) -> list[Any]:
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
    "attached.list": opened(lists),
    "attached.prompt": opened(reports("prompt", event="1", prompt="hello")),
    "attached.step": opened(reports("step", tool="Bash")),
    "attached.stop": opened(reports("stop", event="1", text="hello")),
    "attached.break": opened(reports("break", event="1")),
    "attached.end": opened(reports("end", event="1")),
    "attached.wait": opened(waits),
    "attached.permit": opened(permits),
    "agent.detach": opened(detaches),
}
