"""What belongs to others: nobody reads, follows or marks it through HTTP, whatever they name."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from websockets.sync.client import connect

from tests.support.parties import Party, agents, boss, person
from tests.support.web_clients import bearer
from tests.support.web_daemons import Browser, WebDaemon, web_daemon

WORD = "heron-and-otter"  # said between ann and ada, and never to be seen by anybody else


class Scene(NamedTuple):
    web: WebDaemon
    ann: Party  # a person
    ada: Party  # an agent
    tom: Party  # another person
    bob: Party  # another agent
    envelope: str
    message: str
    conversation: str
    page: Browser  # of tom


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    with web_daemon(tmp_path_factory.mktemp("d")) as web:
        ann, tom = (person(web, name) for name in ("ann", "tom"))
        ada, bob = agents(web, 2)
        envelope = ann.tell(ada, text=f"{WORD} said in private")
        found = ada.get(envelope)
        bob.tell(ada, text="unrelated")
        page = web.log_in("tom")
        yield Scene(web, ann, ada, tom, bob, envelope, found["message"], found["conversation"], page)


def proofs(scene: Scene) -> list[list[tuple[str, str]]]:
    """Of everybody who is no party: another person, with a token and with a page, and another agent."""
    return [bearer(scene.tom.token), scene.page.headers(scene.web.url), bearer(scene.bob.token)]


def paths(scene: Scene) -> list[tuple[str, str, Any]]:
    e, m, c, ann, ada = scene.envelope, scene.message, scene.conversation, scene.ann, scene.ada
    t = m.replace("m", "t")
    found: list[tuple[str, str, Any]] = [
        *(("GET", f"/api/messages/{one}", None) for one in (e, m)),
        *(("GET", f"/api/thread/{one}", None) for one in (e, m, t)),
        ("GET", f"/api/conversations/{c}", None),
        ("GET", f"/api/conversations/{c}/messages", None),
        ("GET", f"/api/conversations/{c}/messages?after_seq=0", None),
        ("PATCH", f"/api/conversations/{c}", {"title": "mine"}),
        ("DELETE", f"/api/conversations/{c}", None),
        ("POST", f"/api/conversations/{c}/messages", {"text": "hello"}),
        ("POST", f"/api/conversations/{c}/archive", {}),
        ("POST", f"/api/conversations/{c}/read", {}),
        ("POST", f"/api/conversations/{c}/typing", {}),
        ("POST", f"/api/conversations/{c}/participants", {"address": "user:tom"}),
        ("POST", f"/api/conversations/{c}/control", {"event": "agent.pause"}),
        *(
            ("POST", f"/api/messages/{e}/{verb}", {})
            for verb in ("read", "ack", "archive", "trash", "restore")
        ),
        ("POST", f"/api/messages/{e}/snooze", {"until": "+1h"}),
        ("POST", f"/api/messages/{e}/reply", {"text": "hello"}),
        ("PATCH", f"/api/messages/{m}", {"text": "changed"}),
        ("DELETE", f"/api/messages/{m}", None),
        *(
            ("GET", f"/api/{what}?agent={one.address}", None)
            for what in ("messages", "threads", "events", "conversations", "asks")
            for one in (ann, ada)
        ),
        *(
            ("GET", f"/api/messages?agent={ann.address}&box={box}", None)
            for box in ("outbox", "archived", "trash")
        ),
        ("GET", f"/api/messages?agent={ann.address.upper()}", None),
        ("GET", f"/api/messages?agent=user:boss&agent={ann.address}", None),
        ("GET", f"/api/messages?address={ann.address}", None),
        ("GET", f"/api/events?addresses={ann.address}", None),
        ("GET", f"/api/events?addresses={scene.tom.address},{ann.address}", None),
        ("GET", f"/api/events?conversations={c}", None),
        ("POST", "/api/messages", {"from": ann.address, "to": ada.address, "text": "as ann"}),
        ("POST", f"/api/messages/{e}/ack", {"agent": ada.address}),
    ]
    return found


def test_nobody_reads_or_changes_what_others_say_to_each_other(scene: Scene) -> None:
    before = scene.ada.get(scene.envelope)
    for method, path, body in paths(scene):
        for headers in proofs(scene):
            answer = scene.web.request(method, path, headers, body)
            assert 400 <= answer.status < 500, (method, path, answer)
            assert WORD.encode() not in answer.body
    assert scene.ada.get(scene.envelope) == before
    assert {one["text"] for one in scene.ada.list()} == {f"{WORD} said in private", "unrelated"}


def test_what_others_have_is_as_if_it_were_not_there(scene: Scene) -> None:
    """So nobody learns which numbers there are."""
    for there, missing in (
        (f"/api/messages/{scene.message}", "/api/messages/m999999"),
        (f"/api/messages/{scene.envelope}", "/api/messages/e999999"),
        (f"/api/conversations/{scene.conversation}", "/api/conversations/c999999"),
        (f"/api/events?conversations={scene.conversation}", "/api/events?conversations=c999999"),
    ):
        for headers in proofs(scene):
            found = [scene.web.request("GET", path, headers) for path in (there, missing)]
            assert {(one.status, one.code) for one in found} == {(404, "not_found")}


def test_lists_of_others_show_only_their_own(scene: Scene) -> None:
    for headers in proofs(scene):
        for path in (
            "/api/messages",
            "/api/messages?box=outbox",
            f"/api/messages?search={WORD}",
            f"/api/messages?text={WORD}",
            "/api/threads",
            "/api/conversations",
            "/api/asks",
            "/api/runs",
            "/api/schedules",
        ):
            answer = scene.web.request("GET", path, headers)
            assert answer.status in (200, 400, 403), (path, answer)
            assert WORD.encode() not in answer.body


def test_the_parties_and_the_boss_do_read_it(scene: Scene) -> None:
    everybody = (scene.ann.token, scene.ada.token, boss(scene.web).token)
    for token in everybody:
        answer = scene.web.request("GET", f"/api/messages/{scene.message}", bearer(token))
        assert WORD.encode() in answer.body
    found = scene.web.request("GET", f"/api/messages?agent={scene.ada.address}", bearer(everybody[2]))
    assert WORD.encode() in found.body


def test_a_stream_tells_nothing_of_others(scene: Scene) -> None:
    """Neither as events nor over a WebSocket, where one names nothing and so follows all that one may see."""
    web = scene.web
    url = f"ws{web.url.removeprefix('http')}/ws"
    with connect(url, additional_headers=dict(bearer(scene.tom.token)), proxy=None) as socket:
        ask = {"jsonrpc": "2.0", "id": 1, "method": "event.subscribe", "params": {}}
        for params in (
            {"addresses": [scene.ann.address]},
            {"addresses": [scene.tom.address, scene.ada.address]},
            {"conversations": [scene.conversation]},
        ):
            socket.send(json.dumps({**ask, "params": params}))
            assert "error" in json.loads(socket.recv(30))
        socket.send(json.dumps(ask))
        assert "result" in json.loads(socket.recv(30))
        with web.connected() as stream:
            stream.write(web.text("GET", "/api/events", scene.page.headers(web.url)))
            assert stream.answer(without_body=True).status == 200
            scene.ann.tell(scene.ada, text=f"{WORD} again")
            scene.ann.tell(scene.tom, text="the end")
            told = ""
            while '"envelope.arrived"' not in told:
                told += socket.recv(30)  # type: ignore[operator]
            while "new-message" not in stream._read.decode():
                stream._more()
        for text in (told, stream._read.decode()):
            assert WORD not in text and scene.ada.address not in text and scene.conversation not in text


def test_what_others_missed_is_not_told_to_those_who_come_with_their_place(scene: Scene) -> None:
    """The id of an event is no proof: it only says where to go on in one's own box."""
    web = scene.web
    with web.connected() as stream:
        stream.write(web.text("GET", "/api/events", bearer(scene.ada.token)))
        assert stream.answer(without_body=True).status == 200
        while "id: " not in stream._read.decode():
            stream._more()
        place = stream._read.decode().partition("id: ")[2].partition("\n")[0]
    scene.ann.tell(scene.ada, text=f"{WORD} while ada was away")
    for last in (place, ".".join(["0"] * len(place.split("."))), "0", "x" * 5_000):
        with web.connected() as stream:
            stream.write(web.text("GET", "/api/events", [*bearer(scene.bob.token), ("Last-Event-ID", last)]))
            assert stream.answer(without_body=True).status == 200
            while "unread-count" not in stream._read.decode():
                stream._more()
            assert scene.ann.address not in stream._read.decode() and WORD not in stream._read.decode()


@pytest.mark.parametrize(
    "operation",
    [
        "daemon.stop",
        "boss.token.rotate",
        "user.register",
        "user.delete",
        "webhook.create",
        "config.show",
        "breaker.stop",
    ],
)
def test_what_is_the_boss_s_is_not_done_for_others(scene: Scene, operation: str) -> None:
    for headers in [*proofs(scene), bearer(scene.ada.token), []]:
        answer = scene.web.request(
            "POST", f"/api/op/{operation}", headers, {"name": "ann", "to": "agent:nex"}
        )
        assert answer.status in (401, 403, 404), answer
    assert scene.web.still_works()


def test_files_of_the_machine_are_not_sent_through_http(scene: Scene) -> None:
    for attachment in ("/etc/passwd", {"path": "/etc/passwd"}, {"source": "/etc/passwd"}):
        sent = {"to": "user:boss", "text": "look", "attachments": [attachment]}
        for token in (scene.tom.token, boss(scene.web).token):
            answer = scene.web.request("POST", "/api/messages", bearer(token), sent)
            assert 400 <= answer.status < 500, answer


@pytest.mark.parametrize("operation", ["setup.check", "setup.execute"])
def test_set_up_is_not_done_through_http(scene: Scene, operation: str) -> None:
    for token in (None, boss(scene.web).token):
        answer = scene.web.operation(operation, token, boss_name="Eve", timezone="UTC", agent_name="eve")
        assert answer.code in ("door_refused", "no_token")
