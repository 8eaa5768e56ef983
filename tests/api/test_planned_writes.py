"""An operation that plans its one write: its errors are told and counted alike, wherever they come from."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from hiboss.core.envelope import Accepted
from hiboss.core.errors import HibossError, InternalError
from tests.support.daemons import answers, line
from tests.support.in_process_connections import connected
from tests.support.in_process_daemon import InProcessDaemon, frozen
from tests.support.parties import Party, agent, boss, stored
from tests.support.web_daemons import WebDaemon, web_fixture

DOORS = ("socket", "batch", "batch of one", "websocket", "rest")
Error = dict[str, Any]


daemon = web_fixture(lock_wait_seconds=0.05)


def refused(daemon: WebDaemon, door: str, party: Party, **params: Any) -> Error:
    """Send through a door, and return the error that it answers with."""
    if door == "rest":
        reply = daemon.rest(party.token).operation("envelope.send", params)
        found: Error = reply.json["error"]
        assert reply.status >= 400
        return found
    if door == "websocket":
        with daemon.websocket(party.token) as client:
            found = client.ask("envelope.send", **params)["error"]
            return found
    one = json.loads(line("envelope.send", 1, token=party.token, **params))
    asked: Any = one if door == "socket" else [one] if door == "batch of one" else [one, {**one, "id": 2}]
    with daemon.connect() as connection:
        connection.sendall(json.dumps(asked).encode() + b"\n")
        (answer,) = answers(connection, 1)
    every = answer if isinstance(answer, list) else [answer]
    assert all(other["error"] == every[0]["error"] for other in every)
    found = every[0]["error"]
    return found


def counted(daemon: WebDaemon, code: str) -> dict[str, float]:
    """Return how many requests were answered with an error of this code, by door."""
    samples = [one for family in boss(daemon).call("daemon.metrics")["families"] for one in family["samples"]]
    return {
        one["labels"]["door"]: one["value"]
        for one in samples
        if one["name"] == "hiboss_request_errors_total" and one["labels"]["code"] == code
    }


@contextmanager
def locked(daemon: WebDaemon) -> Iterator[None]:
    with daemon.database() as other:
        other.execute("BEGIN IMMEDIATE")
        try:
            yield
        finally:
            other.execute("ROLLBACK")


def told_alike(daemon: WebDaemon, ada: Party, code: str, **params: Any) -> None:
    """Assert that every door tells the same error, counts it once for each request, and stores nothing."""
    before, rows = counted(daemon, code), stored(daemon)
    errors = [refused(daemon, door, ada, **params) for door in DOORS]
    assert [one["data"]["code"] for one in errors] == [code] * len(DOORS)
    assert all(one == errors[0] for one in errors)
    grown = {door: value - before.get(door, 0) for door, value in counted(daemon, code).items()}
    assert grown == {"socket": 4, "web": 2}
    assert stored(daemon) == rows


def test_an_error_of_the_check_before_it(daemon: WebDaemon, ada: Party) -> None:
    told_alike(daemon, ada, "bad_address", to="nobody at all", text="x")
    told_alike(daemon, ada, "empty_message", to="agent:nex", text="")


def test_an_error_inside_the_transaction(daemon: WebDaemon, ada: Party) -> None:
    ada.send("agent:nex", text="once", key="k")
    told_alike(daemon, ada, "key_reused", to="agent:nex", text="another", key="k")
    told_alike(daemon, ada, "not_found", reply_to="m900000", text="x")


def test_an_error_of_the_parameters(daemon: WebDaemon, ada: Party) -> None:
    told_alike(daemon, ada, "invalid_params", to="agent:nex", text=5)


def test_a_store_that_is_locked(daemon: WebDaemon, ada: Party) -> None:
    before = counted(daemon, "store_locked")
    with locked(daemon):
        errors = [refused(daemon, door, ada, to="agent:nex", text="x") for door in DOORS]
    assert [one["data"]["code"] for one in errors] == ["store_locked"] * len(DOORS)
    assert all(one == errors[0] for one in errors)
    grown = {door: value - before.get(door, 0) for door, value in counted(daemon, "store_locked").items()}
    assert grown == {"socket": 4, "web": 2}
    assert ada.send("agent:nex")["ids"]


# --- what follows the write, in this process ------------------------------------------------------


async def _answers(daemon: InProcessDaemon, *asked: Any) -> list[Any]:
    async with connected(daemon.daemon.dispatcher) as (reader, writer):
        writer.write(b"".join(json.dumps(one).encode() + b"\n" for one in asked))
        return [json.loads(await reader.readline()) for _ in asked]


def request(daemon: InProcessDaemon, number: int, text: str) -> dict[str, Any]:
    return json.loads(  # type: ignore[no-any-return]
        line("envelope.send", number, token=daemon.token("nex"), to="agent:nex", text=text)
    )


@frozen(at=None, quiet=False)
async def test_an_error_after_the_write_is_a_defect_that_is_told_logged_and_counted(
    daemon: InProcessDaemon,
) -> None:
    dispatcher = daemon.daemon.dispatcher
    context = dispatcher._context
    accepted = context.router.accepted

    def fails(what: Accepted) -> None:
        raise ZeroDivisionError("after the write")

    context.router.accepted = fails
    alone, batch = await _answers(
        daemon, request(daemon, 1, "alone"), [request(daemon, 2, "b"), request(daemon, 3, "c")]
    )
    assert [one["error"]["data"]["code"] for one in (alone, *batch)] == ["internal_error"] * 3
    with pytest.raises(InternalError):
        await dispatcher.call(
            "envelope.send", {"to": "agent:nex", "text": "web"}, daemon.token("nex"), door="web"
        )
    errors = context.measurements.errors
    assert {door: errors[door, InternalError.code] for door in ("socket", "web")} == {"socket": 3, "web": 1}
    assert sum("ZeroDivisionError: after the write" in one for one in daemon.warnings()) == 4
    context.router.accepted = accepted
    # What was written stays: only the answer is lost.
    assert await daemon.inbox() == ["alone", "b", "c", "web"]
    (after,) = await _answers(daemon, request(daemon, 4, "after"))
    assert after["result"]["message"] == "m5"


@frozen(at=None)
async def test_a_plain_send_needs_no_task_and_one_with_files_does(daemon: InProcessDaemon) -> None:
    start, token = daemon.daemon.dispatcher.start, daemon.token("nex")
    told: list[tuple[Any, BaseException | None]] = []

    def done(result: Any, error: BaseException | None) -> None:
        told.append((result, error))

    file = Path(daemon.home.workspace("nex"), "note.txt")
    file.parent.mkdir(parents=True)
    file.write_text("a note")
    params = {"to": "agent:nex", "text": "x"}
    assert start("envelope.send", params, token, "socket", None, done) is None
    await daemon.until(lambda: told)
    rest = start("envelope.send", {**params, "attachments": [str(file)]}, token, "socket", None, done)
    assert rest is not None
    result = await rest
    ((plain, error),) = told
    assert error is None and plain.keys() == result.keys()
    refusal = start("envelope.send", {**params, "to": "no address"}, token, "socket", None, done)
    assert refusal is None and isinstance(told[-1][1], HibossError)


# --- the two ways of a send -----------------------------------------------------------------------

# What is of its own in every row; a time of arrival is there or is not.
OWN = {"id", "seq", "created_at", "arrived_at", "done_at", "attachments", "message", "arrived"}


def rows(daemon: WebDaemon, message: str) -> list[dict[str, Any]]:
    """Return the message, its envelopes and its tags, as they are stored."""
    found = []
    with daemon.database() as database:
        for query in ("message WHERE id = ?", "envelope WHERE message = ?", "tag WHERE message = ?"):
            cursor = database.execute(f"SELECT * FROM {query} ORDER BY 1, 2", (int(message[1:]),))
            names = [one[0] for one in cursor.description]
            found += [dict(zip(names, row, strict=True)) for row in cursor]
    return [{key: value if key not in OWN else value is None for key, value in one.items()} for one in found]


def test_a_send_with_files_and_a_plain_one_have_the_same_answer_and_the_same_rows(
    daemon: WebDaemon, ada: Party, tmp_path: Path
) -> None:
    file = tmp_path / "note.txt"
    file.write_text("a note")
    bob = agent(daemon)
    plain = ada.send(bob, "user:boss", text="see @nex")
    whole = ada.send(bob, "user:boss", text="see @nex", attachments=[str(file)])
    shapes = [{key: type(value) for key, value in one.items()} for one in (plain, whole)]
    assert shapes[0] == shapes[1]
    assert plain["conversation"] == whole["conversation"] and len(plain["ids"]) == len(whole["ids"]) == 2
    for one in (plain, whole):
        assert one["thread"] == one["message"].replace("m", "t")
    first, second = rows(daemon, plain["message"]), rows(daemon, whole["message"])
    assert (first[0].pop("attachments"), second[0].pop("attachments")) == (True, False)  # whether it has none
    assert first == second and len(first) == 4
