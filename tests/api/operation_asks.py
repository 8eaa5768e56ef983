"""Right requests for the operations about asks."""

from __future__ import annotations

from typing import Any

from tests.api.operation_runs import Answers, Case

QUESTION = {"question": "Deploy?"}
FULL = {**QUESTION, "options": ["now", "later"], "timeout": "1h", "default": "later"}


def creates(case: Case) -> list[Any]:
    found = [
        case.ada.call("ask.create", **QUESTION),
        case.ada.call("ask.create", **FULL, to=case.bob.address),
    ]
    assert [one["ask"]["options"] for one in found] == [["yes", "no"], ["now", "later"]]
    assert not any(one["duplicate"] for one in found)
    return found


def _asked(case: Case) -> str:
    """Let ada ask bob; return the id of the ask."""
    return str(case.ada.call("ask.create", **FULL, to=case.bob.address)["ask"]["id"])


def answers(case: Case) -> list[Any]:
    found = [
        case.bob.call("ask.answer", id=_asked(case), choice="now"),
        case.boss.call("ask.answer", id=_asked(case), choice="2", comment="it rains", scope="once"),
    ]
    assert [one["ask"]["answer"] for one in found] == ["now", "later"]
    return found


def cancels(case: Case) -> list[Any]:
    found = [
        case.ada.call("ask.cancel", id=_asked(case)),
        case.boss.call("ask.cancel", id=_asked(case), reason="enough"),
    ]
    assert [one["ask"]["state"] for one in found] == ["cancelled"] * 2
    return found


def shows(case: Case) -> list[Any]:
    number = _asked(case)
    found = [one.call("ask.get", id=number) for one in (case.ada, case.bob, case.boss)]
    assert found[0]["ask"] == found[1]["ask"] == found[2]["ask"]
    return found


def lists(case: Case) -> list[Any]:
    numbers = [_asked(case) for _ in range(3)]
    found = [case.ada.call("ask.list", page_size=2), case.bob.call("ask.list", after=int(numbers[1][1:]))]
    found.append(case.boss.call("ask.list", state="all", page_size=1))
    assert [[one["id"] for one in page["asks"]] for page in found] == [
        numbers[:0:-1],
        numbers[:1],
        numbers[2:],
    ]
    return found


def waits(case: Case) -> list[Any]:
    number = _asked(case)
    found = [case.ada.call("ask.wait", id=number, timeout="0.01s")]
    case.boss.call("ask.answer", id=number, choice="now")
    found += [one.call("ask.wait", id=number) for one in (case.ada, case.bob)]
    assert [one["timed_out"] for one in found] == [True, False, False]
    return found


CALLS_OF_ASKS: dict[str, Answers] = {
    "ask.create": creates,
    "ask.answer": answers,
    "ask.cancel": cancels,
    "ask.get": shows,
    "ask.list": lists,
    "ask.wait": waits,
}
