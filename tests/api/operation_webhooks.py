"""Right requests for the operations about webhooks."""

from __future__ import annotations

from typing import Any

from tests.api.operation_runs import Answers, Case

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
