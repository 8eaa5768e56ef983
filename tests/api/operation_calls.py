"""A right request for every operation, for test_operations.py."""

from __future__ import annotations

from typing import Any

from tests.api.operation_asks import CALLS_OF_ASKS, CALLS_OF_RULES
from tests.api.operation_groups import CALLS_OF_GROUPS
from tests.api.operation_messages import CALLS_OF_CHATS, CALLS_OF_MESSAGES
from tests.api.operation_runs import CALLS_OF_RUNS, Answers, Case, provided
from tests.api.operation_sessions import CALLS_OF_BROWSERS, CALLS_OF_SESSIONS, CALLS_OF_WEBHOOKS
from tests.support.parties import agent


def marks(verb: str) -> Answers:
    return lambda case: [case.bob.call(f"envelope.{verb}", ids=case.numbers[:2])] * 2


def reads(case: Case) -> list[Any]:
    """By their ids, and all that is unread, up to one of them and without an end."""
    found = marks("read")(case)
    asked = ({"all": True, "up_to": case.numbers[0]}, {"all": True, "session": "s"}, {"all": True})
    found += [case.bob.call("envelope.read", **words) for words in asked]
    assert found[0]["envelopes"] and found[3]["changed"] and not found[4]["changed"]
    return found


def snoozes(verb: str) -> Answers:
    """Hide two twice, the second time until later; bring one back twice. Return the answers of one operation."""

    def asked(case: Case) -> list[Any]:
        numbers, whose = case.numbers[:2], {"address": case.bob.address}
        found = {
            "snooze": [
                case.bob.call("envelope.snooze", ids=numbers, until="+1h"),
                case.boss.call("envelope.snooze", ids=numbers, until="+2h", **whose),
            ]
        }
        assert case.bob.call("envelope.list", box="snoozed")["envelopes"][0]["snoozed_until"]
        found["unsnooze"] = [case.bob.call("envelope.unsnooze", ids=numbers[:1]) for _ in range(2)]
        assert [one["changed"] for one in found["snooze"] + found["unsnooze"]] == [2, 2, 1, 0]
        return found[verb]

    return asked


def sends(case: Case) -> list[Any]:
    """To one and to several, now and later, with little and with much; replies to one and to all."""
    tag = {"type": "module", "value": "auth"}
    found = [
        case.ada.send(case.bob),
        case.ada.send(case.bob, case.ada, deliver_at="+2h"),
        case.ada.send(case.bob, **case.full),
        case.ada.send(case.bob, ack_by="30m", scopes=[tag], refs=[tag], session="s"),
        case.ada.send(case.bob, case.boss),
    ]
    answered = found[4]["message"]
    found += [case.bob.send(reply_to=answered), case.bob.send(reply_to=answered, to_sender=True)]
    case.ada.call("conversation.create", name=f"{case.ada.name}-team", participants=[case.bob.address])
    found += [case.bob.send(f"group:{case.ada.name}-team")]
    assert [len(one["ids"]) for one in found] == [1, 2, 1, 1, 2, 2, 1, 1]
    return found


def lists(case: Case) -> list[Any]:
    found = [
        case.bob.call("envelope.list", box=box, count=True)
        for box in ("inbox", "outbox", "archived", "trash")
    ]
    found += [case.ada.call("envelope.list", box="outbox"), case.bob.call("envelope.list", page_size=1)]
    found += [case.boss.call("envelope.list", address=case.bob.address)]
    assert {one["status"] for one in found[4]["envelopes"]} == {"pending", "failed"} and found[5]["next"]
    return found


def binds(case: Case) -> list[Any]:
    found = [case.bind(case.ada), case.bind(case.ada), case.bind(case.bob)]
    assert [one["created"] for one in found] == [True, False, False]
    assert len({one["binding"] for one in found}) == 1
    return found


def unbinds(case: Case) -> list[Any]:
    case.bind(case.ada)
    case.bind(case.bob)
    case.lane("pause")
    address = f"channel:folder:{case.ada.name}"
    case.ada.send(address)
    found = [case.unbind(case.bob), case.unbind(case.ada, account=case.ada.name)]
    assert [(one["ended"], one["failed_envelopes"]) for one in found] == [(False, 0), (True, 1)]
    assert case.ada.refusal("envelope.send", to=address, text="x") == "not_bound"
    return found


def bindings(case: Case) -> list[Any]:
    case.bind(case.ada)
    found = [case.ada.call("agent.bindings")]
    assert case.ada.name in [one["account"] for one in found[0]["bindings"]]
    return found


def contacts(case: Case) -> list[Any]:
    case.bind(case.ada)
    found = [
        case.boss.call("contact.list", **words) for words in ({}, {"state": "blocked"}, {"after": 10**6})
    ]
    assert f"channel:folder:{case.ada.name}" in [one["address"] for one in found[0]["contacts"]]
    assert found[2]["contacts"] == []
    return found


def decides(*verbs: str) -> Answers:
    """One after the other; what a repetition finds is as it should be."""

    def asked(case: Case) -> list[Any]:
        given = {"contact": f"channel:folder:{case.ada.name}", "binding": case.bind(case.ada)["binding"]}
        found = [case.boss.call(f"contact.{verb}", **given) for verb in verbs]
        assert [one["changed"] for one in found] == [True, False, True, False]
        return found

    return asked


def routes(case: Case) -> list[Any]:
    case.bind(case.ada)
    case.bind(case.bob)
    contact = f"channel:folder:{case.ada.name}"
    agents = (case.bob.name, case.bob.name.upper(), "")
    found = [case.boss.call("contact.route", contact=contact, agent=name) for name in agents]
    told = [(one["changed"], one["contact"]["agent"]) for one in found]
    assert told == [(True, case.bob.name), (False, case.bob.name), (True, None)]
    return found


def lanes(case: Case) -> list[Any]:
    """A lane that is paused, and one in which nothing has ever been."""
    case.bind(case.ada)
    case.lane("pause")
    case.ada.send(f"channel:folder:{case.ada.name}")
    found = [case.lane("list")]
    (own,) = [one for one in found[0]["lanes"] if one["address"].endswith(f":{case.ada.name}")]
    assert (own["state"], own["due"]) == ("paused", 1)
    return found


def breaks(verb: str) -> Answers:
    """Pull the breaker and release it, each twice; return the answers of one operation."""

    def asked(case: Case) -> list[Any]:
        found = {
            "pull": [case.boss.call("breaker.pull", **words) for words in ({"reason": "lunch"}, {})],
            "status": [party.call("breaker.status") for party in (case.boss, case.ada)],
            "release": [case.boss.call("breaker.release") for _ in range(2)],
        }
        assert [one["changed"] for one in found["pull"] + found["release"]] == [True, False] * 2
        return found[verb]

    return asked


def steers(verb: str, *changed: int) -> Answers:
    """Once where it changes something, and once where it does not."""

    def asked(case: Case) -> list[Any]:
        case.bind(case.ada)
        if verb == "resume":
            case.lane("pause")
        found = [case.lane(verb) for _ in changed]
        assert tuple(one["changed"] for one in found) == changed
        return found

    return asked


def claims(case: Case) -> list[Any]:
    found = [
        case.bob.call("envelope.claim", limit=1),
        case.boss.call("envelope.claim", address=case.bob.address, lease="1h30m"),
        case.bob.call("envelope.claim"),
    ]
    assert [len(one["envelopes"]) for one in found] == [1, 2, 0]
    assert {one["waits"] for answer in found for one in answer["envelopes"]} == {"lease"}
    return found


def releases(case: Case) -> list[Any]:
    claimed = [one["id"] for one in case.bob.call("envelope.claim")["envelopes"]]
    found = [
        case.bob.call("envelope.release", ids=claimed[:1]),
        case.boss.call("envelope.release", ids=claimed[1:], address=case.bob.address),
    ]
    assert [one["changed"] for one in found] == [1, len(claimed) - 1]
    assert {case.ada.get(number)["waits"] for number in case.numbers[:2]} == {None}
    return found


def retries(case: Case) -> list[Any]:
    """Of what has failed: it waited for a place that was taken away, and given back."""
    case.bind(case.ada)
    case.lane("pause")
    (lost,) = case.ada.send(f"channel:folder:{case.ada.name}")["ids"]
    with case.daemon.database() as database:  # as when it was given up
        database.execute("UPDATE envelope SET status = 2, done_at = 1 WHERE id = ?", (int(lost[1:]),))
        database.commit()
    found = [case.ada.call("envelope.retry", ids=[lost])]
    assert found == [{"changed": 1}] and case.ada.get(lost)["status"] == "pending"
    return found


def _created(case: Case, **params: Any) -> Any:
    return case.ada.call("cron.create", **{"to": case.bob.address, "text": "x", "every": "2h", **params})


def creates(case: Case) -> list[Any]:
    """In each of the three ways, with little and with much."""
    full = {"subject": "s", "type": "markdown", "priority": "high", "attachments": case.full["attachments"]}
    manner = {"timezone": "Asia/Tokyo", "catch_up": "all", "overlap": "queue", "name": "n"}
    found = [
        _created(case),
        _created(case, every=None, cron="0 9 * * MON-FRI", **full, **manner),
        _created(case, every=None, at="+2h"),
        case.boss.call("cron.create", from_="user:boss", to=case.bob.address, text="x", cron="@daily"),
    ]
    assert [bool(one["cron"]) for one in found] == [False, True, False, True]
    assert found[1]["attachments"] == ["file.txt"] and all(one["next_at"] for one in found)
    return found


def with_schedule(verb: str, **params: Any) -> Answers:
    def asked(case: Case) -> list[Any]:
        return [case.ada.call(f"cron.{verb}", id=_created(case)["id"], **params)]

    return asked


def shows(case: Case) -> list[Any]:
    """One of which nothing has become yet, and one that was sent."""
    number = _created(case)["id"]
    found = [case.ada.call("cron.show", id=number)]
    case.ada.call("cron.run", id=number)
    found += [case.boss.call("cron.show", id=number)]
    assert [[slot["outcome"] for slot in one["slots"]] for one in found] == [[], ["fired"]]
    return found


def runs(case: Case) -> list[Any]:
    """Again and again, also within one millisecond."""
    number, token = _created(case)["id"], case.ada.token
    request = {"jsonrpc": "2.0", "method": "cron.run", "params": {"id": number, "token": token}, "id": 1}
    (answers,) = case.daemon.exchange([request] * 20, answers=1)
    found = [one["result"] for one in answers]
    assert all(one["fired"] for one in found) and len({one["ids"][0] for one in found}) == 20
    return found


def waits(verb: str) -> Answers:
    """With mail there, and with none in time."""

    def asked(case: Case) -> list[Any]:
        found = [case.bob.call(f"envelope.{verb}", timeout="30s")]
        found += [case.boss.call(f"envelope.{verb}", address=case.bob.address, timeout="30s")]
        found += [case.bob.call(f"envelope.{verb}", timeout="0.01s", after=found[0]["next"])]
        assert [one["timed_out"] for one in found] == [False, False, True] and found[0]["envelopes"]
        return found

    return asked


def polls(case: Case) -> list[Any]:
    """Each session is told once."""
    words: tuple[dict[str, str], ...] = ({}, {"wait": "0.01s"}, {"session": "other"})
    found = [case.bob.call("envelope.poll", **one) for one in words]
    assert [one["timed_out"] for one in found] == [False, True, False]
    return found


def edits(case: Case) -> list[Any]:
    number, *_ = case.ada.send(case.bob)["ids"]
    found = [case.ada.call("message.edit", id=number, text=text) for text in ("new", "new", "newer")]
    assert [one["changed"] for one in found] == [True, False, True]
    assert case.bob.get(number)["text"] == "newer"
    return found


def deletes(case: Case) -> list[Any]:
    numbers = [case.ada.tell(case.bob) for _ in range(2)]
    case.bob.call("envelope.claim", limit=100)
    numbers.append(case.ada.tell(case.bob))
    found = [case.ada.call("message.delete", id=one, reason="a mistake") for one in numbers]
    found.append(case.boss.call("message.delete", id=found[0]["message"]))
    told = [(one["changed"], one["cancelled"], one["in_hand"]) for one in found]
    assert told == [(True, 0, 1), (True, 0, 1), (True, 1, 0), (False, 0, 0)]
    return found


def reacts(case: Case) -> list[Any]:
    number = case.ada.tell(case.bob)
    found = [case.bob.call("reaction.set", id=number, emoji=one) for one in ("👍", "👍", "🎉")]
    found += [case.boss.call("reaction.set", id=number, emoji="👍")]
    assert [one["changed"] for one in found] == [True, False, True, True]
    return found


def takes_back(case: Case) -> list[Any]:
    [message] = {one["message"] for one in reacts(case)}
    found = [case.bob.call("reaction.remove", id=message) for _ in range(2)]
    assert [one["changed"] for one in found] == [True, False]
    return found


def starts_mcp(case: Case) -> list[Any]:
    """Twice: the second one finds the worker of the first."""
    found = [case.daemon.call("mcp.start") for _ in range(2)]
    assert found[0] == found[1] and case.daemon.call("daemon.status")["mcp_pid"] == found[0]["pid"]
    return found


CALLS: dict[str, Answers] = {
    "message.edit": edits,
    "message.delete": deletes,
    "reaction.set": reacts,
    "reaction.remove": takes_back,
    "adapter.list": lambda case: [case.ada.call("adapter.list")],
    "setup.check": lambda case: [case.daemon.call("setup.check")],
    "setup.execute": lambda case: [case.daemon.call("setup.execute")],
    "daemon.ping": lambda case: [case.daemon.call("daemon.ping")],
    "daemon.time": lambda case: [case.daemon.call("daemon.time")],
    "daemon.status": lambda case: [case.daemon.call("daemon.status")],
    "mcp.start": starts_mcp,
    "daemon.metrics": lambda case: [case.boss.call("daemon.metrics")],
    "rpc.discover": lambda case: [case.daemon.call("rpc.discover")],
    "auth.login": lambda case: [one.call("auth.login") for one in (case.ada, case.boss)],
    "agent.register": lambda case: [
        case.boss.call("agent.register", name=f"{case.ada.name}x"),
        case.boss.call("agent.register", name=f"{case.ada.name}y", profile=True, role="r", workspace="/w"),
        case.boss.call(
            "agent.register",
            name=f"{case.ada.name}z",
            provider="webhook",
            settings={"url": "http://127.0.0.1:1/"},
        ),
    ],
    "agent.list": lambda case: [case.ada.call("agent.list"), case.ada.call("agent.list", role="none")],
    "agent.set": lambda case: [
        case.boss.call("agent.set", name=case.ada.name, description="d"),
        *provided(case),
    ],
    "agent.delete": lambda case: [case.boss.call("agent.delete", name=agent(case.daemon).name)],
    "agent.self": lambda case: [one.call("agent.self") for one in (case.ada, case.boss)],
    "envelope.send": sends,
    "envelope.list": lists,
    "envelope.trace": lambda case: [
        case.ada.call("envelope.trace", id=n) for n in (*case.numbers, case.deferred, case.failed)
    ],
    "envelope.get": lambda case: [
        case.ada.call("envelope.get", id=n) for n in (*case.numbers, case.deferred, case.failed)
    ],
    "envelope.read": reads,
    "envelope.snooze": snoozes("snooze"),
    "envelope.unsnooze": snoozes("unsnooze"),
    "envelope.ack": lambda case: [*marks("ack")(case), case.bob.call("envelope.ack", all=True)],
    "envelope.archive": marks("archive"),
    "envelope.trash": marks("trash"),
    "envelope.restore": marks("restore"),
    "envelope.cancel": lambda case: [case.ada.call("envelope.cancel", ids=case.numbers[:2])],
    "envelope.claim": claims,
    "envelope.release": releases,
    "envelope.retry": retries,
    "agent.bind": binds,
    "agent.unbind": unbinds,
    "agent.bindings": bindings,
    **{f"breaker.{verb}": breaks(verb) for verb in ("pull", "status", "release")},
    "lane.list": lanes,
    "lane.retry": steers("retry", 0),
    "lane.pause": steers("pause", 1, 0),
    "lane.resume": steers("resume", 1, 0),
    "turn.preview": lambda case: [
        case.bob.call("turn.preview"),
        case.boss.call("turn.preview", address=case.ada.address),
    ],
    "permission.policy.get": lambda case: [case.ada.call("permission.policy.get")],
    "permission.policy.set": lambda case: [
        case.boss.call("permission.policy.set", policy=policy)
        for policy in ({"observe": "boss", "agent.list": "standard"}, {})
    ],
    "agent.permission.get": lambda case: [case.bob.call("agent.permission.get", name=case.ada.name)],
    "agent.permission.set": lambda case: [
        case.boss.call("agent.permission.set", name=case.ada.name, level=level)
        for level in ("privileged", "restricted")
    ],
    "agent.token.rotate": lambda case: [
        case.boss.call("agent.token.rotate", name=case.ada.name, **more) for more in ({}, {"profile": True})
    ],
    "agent.token.revoke": lambda case: [case.boss.call("agent.token.revoke", name=case.ada.name)] * 2,
    "boss.get": lambda case: [case.ada.call("boss.get")],
    "boss.set": lambda case: [
        case.boss.call("boss.set", timezone="Asia/Tokyo"),
        case.boss.call("boss.set", name="Ada", timezone="UTC"),
        *[case.boss.call("boss.set", ids={"telegram": person}) for person in ("777", "")],
    ],
    "boss.pair": lambda case: [case.boss.call("boss.pair")],
    "contact.list": contacts,
    "contact.approve": decides("block", "block", "approve", "approve"),
    "contact.block": decides("block", "block", "approve", "approve"),
    "contact.route": routes,
    "boss.token.rotate": lambda case: [case.boss.call("boss.token.rotate")],
    "config.show": lambda case: [case.daemon.call("config.show")],
    "cron.create": creates,
    "cron.set": with_schedule("set", every="3h", name="n", timezone=""),
    "cron.list": lambda case: [_created(case) and one.call("cron.list") for one in (case.ada, case.boss)],
    "cron.show": shows,
    "cron.enable": with_schedule("enable"),
    "cron.disable": with_schedule("disable"),
    "cron.delete": with_schedule("delete"),
    "cron.run": runs,
    "cron.explain": lambda case: [
        case.daemon.call("cron.explain", cron="@daily"),
        case.daemon.call("cron.explain", cron="30 2 * * *", timezone="Europe/Berlin", count=1),
    ],
    "envelope.wait": waits("wait"),
    "envelope.watch": waits("watch"),
    "envelope.poll": polls,
    "agent.heartbeat": lambda case: [one.call("agent.heartbeat") for one in (case.ada, case.boss)],
    "config.reload": lambda case: [case.boss.call("config.reload")],
    **CALLS_OF_MESSAGES,
    **CALLS_OF_CHATS,
    **CALLS_OF_RUNS,
    **CALLS_OF_RULES,
    **CALLS_OF_GROUPS,
    **CALLS_OF_ASKS,
    **CALLS_OF_SESSIONS,
    **CALLS_OF_WEBHOOKS,
    **CALLS_OF_BROWSERS,
}
