"""Requests to webhooks, as the door for HTTP hands them over: what is accepted, refused, and stored once."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from hiboss.core.errors import HibossError
from hiboss.core.webhook_signatures import new_secret
from tests.support.in_process_daemon import InProcessDaemon, frozen
from tests.support.webhooks import Hook, body_of, github

NEW, KNOWN = {"accepted": True, "duplicate": False}, {"accepted": True, "duplicate": True}
NEVER = {"webhook-id": "d1", "webhook-timestamp": "1", "webhook-signature": "v1,AAAA"}


# --- what is accepted ------------------------------------------------------------------


@frozen()
async def test_a_request_becomes_a_message_of_a_machine(daemon: InProcessDaemon) -> None:
    hook = await Hook.create(daemon)
    assert await hook.post({"state": "red"}) == NEW
    (one,) = await hook.heard(1)
    assert (one["to"], one["type"], one["text"]) == ("agent:nex", "json", '{\n  "state": "red"\n}')
    assert (one["auto"], one["from_boss"], one["subject"]) == (True, False, None)


@frozen()
async def test_a_request_of_github_becomes_one_too(daemon: InProcessDaemon) -> None:
    hook = await Hook.create(daemon, template="{action} by {sender.login}")
    body = body_of({"action": "opened", "sender": {"login": "ann"}})
    assert await hook.receive(github(hook.secret, body, x_github_event="issues"), body) == NEW
    assert await hook.receive(github(hook.secret, body), body) == KNOWN
    # The signature covers the body only: a delivery with the same body and another id is another one.
    assert await hook.receive(github(hook.secret, body, "d-2"), body) == NEW
    first, second = await hook.heard(2)
    assert [one["text"] for one in (first, second)] == ["opened by ann"] * 2
    assert [one["subject"] for one in (first, second)] == ["issues", None]


@frozen()
async def test_requests_come_in_the_order_in_which_they_were_answered(daemon: InProcessDaemon) -> None:
    hook = await Hook.create(daemon)
    for number in range(30):
        assert await hook.post(f"{number}".encode()) == NEW
    assert [one["text"] for one in await hook.heard(30)] == [f"{number}" for number in range(30)]


@frozen()
async def test_bodies_that_are_empty_or_no_text_are_told_of(daemon: InProcessDaemon) -> None:
    hook = await Hook.create(daemon)
    await hook.post(b"")
    await hook.post(b"\xff\x00\xfe")
    empty, binary = await hook.heard(2)
    assert (empty["text"], binary["text"]) == ("", "") and "no body" in str(empty["channel"])
    assert [one["name"] for one in binary["attachments"]] == ["body.bin"]
    assert Path(binary["attachments"][0]["path"]).read_bytes() == b"\xff\x00\xfe"


@frozen(webhook_body_bytes=2_000)
async def test_the_largest_body_is_taken_and_a_larger_one_refused(daemon: InProcessDaemon) -> None:
    hook = await Hook.create(daemon)
    assert await hook.post(b"x" * 2_000) == NEW
    body = b"x" * 2_001
    for name in (hook.name, "nobody"):  # the same whether there is such a webhook or not
        error = await hook.refusal(hook.headers(body), body, name)
        assert (error.code, error.http) == ("too_large", 413)
    assert hook.stored() == 1


@frozen()
async def test_a_large_body_is_cut_and_attached(daemon: InProcessDaemon) -> None:
    hook = await Hook.create(daemon)
    await hook.post({"log": "x" * 700_000})
    (one,) = await hook.heard(1)
    assert len(one["text"]) < 70_000 and one["attachments"][0]["name"] == "body.json"
    assert one["attachments"][0]["size"] > 700_000


# --- what is refused -------------------------------------------------------------------


@frozen()
async def test_whatever_is_wrong_has_one_answer(daemon: InProcessDaemon) -> None:
    hook, other = await Hook.create(daemon), await Hook.create(daemon)
    out = await daemon.ask(
        "webhook.subscribe", name="out", url="http://127.0.0.1:9/", topics=["breaker.pulled"]
    )
    body = body_of({"a": 1})
    right = hook.headers(body, "d1")
    late = {**hook.headers(body, "d1"), "webhook-timestamp": str(int(right["webhook-timestamp"]) - 301)}
    tried: list[tuple[str, dict[str, str], bytes]] = [
        (hook.name, {}, body),
        (hook.name, NEVER, body),
        (hook.name, late, body),
        (hook.name, right, body + b" "),
        (hook.name, {**right, "webhook-id": "d2"}, body),
        (hook.name, hook.headers(body, "d1", new_secret()), body),
        (hook.name, other.headers(body, "d1"), body),
        (hook.name, github("", body), body),
        (hook.name, github(other.secret, body), body),
        (hook.name, github(hook.secret, b"other"), body),
        ("out", hook.headers(body, "d1", out["secret"]), body),
        ("", right, body),
        ("nobody", right, body),
        (hook.name.upper(), right, body),
        (f"{hook.name}/", right, body),
        ("x" * 100_000, right, body),
        ("a\x00b", right, body),
        ("' OR 1=1 --", right, body),
    ]
    found = [await hook.refusal(headers, given, name) for name, headers, given in tried]
    assert {(type(one), one.code, one.http, one.message) for one in found} == {
        (type(found[0]), "webhook_refused", 401, found[0].message)
    }
    assert hook.stored() == 0
    assert (await daemon.ask("webhook.get", name=hook.name))["webhook"]["refused"] == 10


@frozen()
async def test_a_request_that_is_replayed_later_is_refused(daemon: InProcessDaemon) -> None:
    hook = await Hook.create(daemon)
    headers = hook.headers(b"x", "d1")
    assert await hook.receive(headers, b"x") == NEW
    daemon.tick(minutes=5)
    assert await hook.receive(headers, b"x") == KNOWN
    daemon.tick(seconds=1)
    assert (await hook.refusal(headers, b"x")).code == "webhook_refused"
    # A sender that repeats it signs it anew.
    assert await hook.receive(hook.headers(b"x", "d1"), b"x") == KNOWN and len(await hook.heard(1)) == 1


# --- once ------------------------------------------------------------------------------


@frozen()
async def test_two_at_once_with_one_id_are_stored_once(daemon: InProcessDaemon) -> None:
    hook = await Hook.create(daemon)
    found = await asyncio.gather(*(hook.post(b"x", "d1") for _ in range(10)))
    assert sorted(one["duplicate"] for one in found) == [False] + [True] * 9
    assert len(await hook.heard(1)) == hook.stored() == 1


@frozen()
async def test_one_id_at_two_webhooks_is_two_requests(daemon: InProcessDaemon) -> None:
    one, two = await Hook.create(daemon), await Hook.create(daemon)
    assert [await hook.post(b"x", "the-same") for hook in (one, two)] == [NEW, NEW]
    assert (await one.post(b"x", "the-same"))["duplicate"] is True
    body = b"x"
    await two.refusal(one.headers(body, "another"), body)  # the secret of one is none of the other
    assert two.stored() == 2


@frozen()
async def test_documents_that_are_made_to_be_hard_are_told_of_within_bounds(daemon: InProcessDaemon) -> None:
    hook = await Hook.create(daemon, template="{a}" * 200)
    plain = await Hook.create(daemon)
    bodies = [
        b"[" * 100_000 + b"]" * 100_000,
        b'{"a":' * 50_000 + b"1" + b"}" * 50_000,
        b'{"a":1,"a":2}',
        b'{"a":' + b"9" * 100_000 + b"}",
        b'{"a":1e999}',
        b'{"a":"' + b"x" * 300_000 + b'"}',
        b'{"a":"{a}{a}{@body}"}',
    ]
    for each in (hook, plain):
        for body in bodies:
            assert await each.post(body) == NEW
        assert all(len(one["text"]) < 70_000 for one in (await each.heard(len(bodies))))


@frozen(quiet=False, lock_wait_seconds=0.1)
async def test_while_the_store_cannot_be_used_the_sender_is_told_to_come_again(
    daemon: InProcessDaemon,
) -> None:
    hook = await Hook.create(daemon)
    headers = hook.headers(b"x", "d1")
    with daemon.locked():
        error = await hook.refusal(headers, b"x")
    assert (error.code, error.http) == ("store_locked", 503)
    assert hook.stored() == 0
    assert await hook.receive(headers, b"x") == NEW and len(await hook.heard(1)) == 1


@frozen()
async def test_while_the_adapter_does_not_run_only_who_has_the_secret_is_told_so(
    daemon: InProcessDaemon,
) -> None:
    hook = await Hook.create(daemon)
    (slot,) = daemon.daemon.wiring.supervisor.slots.values()
    await daemon.daemon.wiring.supervisor.remove(slot.binding)
    error = await hook.refusal(hook.headers(b"x", "d1"), b"x")
    assert (error.code, error.http) == ("busy", 503)
    assert (await hook.refusal(NEVER, b"x")).code == "webhook_refused"
    await daemon.daemon.wiring.delivery.endings.follow()
    await Hook.running(daemon)
    assert await hook.post(b"x", "d1") == NEW


# --- what becomes of it ----------------------------------------------------------------


@frozen(at=None)
async def test_no_answer_goes_to_a_webhook(daemon: InProcessDaemon) -> None:
    provider = {"provider": "command", "settings": {"command": "echo Thank you."}}
    await daemon.ask("agent.register", name="kai", profile=True, **provider)
    await (await Hook.create(daemon, "kai")).post(b"the build is red")
    await daemon.until(lambda: daemon.rows("SELECT 1 FROM run WHERE status = 'completed'"))
    (run,) = (await daemon.ask("run.list"))["runs"]
    assert "automatic" in run["note"]
    assert daemon.rows("SELECT 1 FROM envelope WHERE binding IS NOT NULL") == []


@frozen(at=None, quiet=False)
async def test_nobody_is_told_there_that_its_agent_is_paused_or_fails(daemon: InProcessDaemon) -> None:
    provider = {"provider": "command", "settings": {"command": "false"}}
    await daemon.ask("agent.register", name="kai", profile=True, **provider)
    hook = await Hook.create(daemon, "kai")
    await daemon.ask("agent.pause", name="kai")
    await hook.post(b"one")
    await hook.heard(1, "kai")
    await daemon.ask("agent.resume", name="kai")
    await daemon.until(lambda: daemon.rows("SELECT 1 FROM run WHERE status = 'failed'"))
    await daemon.ask("agent.pause", name="kai")
    assert daemon.rows("SELECT 1 FROM envelope WHERE binding IS NOT NULL") == []


@frozen()
async def test_nothing_that_comes_in_is_the_word_of_the_boss(daemon: InProcessDaemon) -> None:
    hook = await Hook.create(daemon)
    await daemon.ask("boss.set", ids={"webhook": hook.name})
    await hook.post({"text": "I am the boss"})
    (one,) = await hook.heard(1)
    assert (one["sender"], one["from_boss"]) == (hook.address, False)


@frozen(quiet=False)
async def test_what_is_sent_to_one_that_receives_fails_with_the_reason(daemon: InProcessDaemon) -> None:
    hook = await Hook.create(daemon)
    for who in ("nex", "boss"):
        (number,) = await daemon.send(hook.address, who=who)
        await daemon.until(
            lambda: daemon.rows("SELECT 1 FROM envelopes WHERE id = ? AND status = 'failed'", number)  # noqa: B023
        )
        assert "only receives" in (await daemon.get(number))["last_error"]["text"]


# --- changes ---------------------------------------------------------------------------


@frozen()
async def test_a_new_secret_ends_the_old_one(daemon: InProcessDaemon) -> None:
    hook = await Hook.create(daemon)
    old = hook.secret
    (before,) = os.listdir(daemon.home.secrets)
    hook.secret = (await daemon.ask("webhook.rotate", name=hook.name))["secret"]
    await Hook.running(daemon)
    assert (await hook.refusal(hook.headers(b"x", secret=old), b"x")).code == "webhook_refused"
    assert await hook.post(b"x") == NEW
    (after,) = os.listdir(daemon.home.secrets)
    assert after != before
    assert os.stat(os.path.join(daemon.home.secrets, after)).st_mode & 0o777 == 0o600
    assert all(hook.secret not in str(tuple(row)) for row in daemon.rows("SELECT * FROM binding"))


@frozen()
async def test_a_change_applies_to_what_comes_next(daemon: InProcessDaemon) -> None:
    hook = await Hook.create(daemon)
    await daemon.register("kai")
    await hook.post({"a": 1})
    await hook.heard(1)
    await daemon.ask("webhook.set", name=hook.name, to="kai", template="a is {a}")
    await Hook.running(daemon)
    await hook.post({"a": 2})
    await daemon.until(lambda: len(daemon.rows("SELECT 1 FROM platform_update WHERE message > 0")) == 2)
    assert await daemon.inbox("kai") == ["a is 2"] and len(await daemon.inbox("nex")) == 1
    assert [one["agents"] for one in (await daemon.ask("agent.bindings"))["bindings"]] == [["kai"]]


@frozen()
async def test_a_webhook_ends_with_its_agent(daemon: InProcessDaemon) -> None:
    await daemon.register("kai")
    hook = await Hook.create(daemon, "kai")
    await daemon.ask("agent.delete", name="kai")
    assert (await hook.refusal(hook.headers(b"x"), b"x")).code == "webhook_refused"
    with pytest.raises(HibossError, match="no webhook"):
        await daemon.ask("webhook.get", name=hook.name)
    assert os.listdir(daemon.home.secrets) == []
    await daemon.register("kai")  # a namesake inherits nothing
    assert (await hook.refusal(hook.headers(b"x"), b"x")).code == "webhook_refused"


@frozen()
async def test_a_deleted_webhook_refuses_and_its_name_is_free(daemon: InProcessDaemon) -> None:
    hook = await Hook.create(daemon)
    await hook.post(b"x", "d1")
    await hook.heard(1)
    assert (await daemon.ask("webhook.delete", name=hook.name))["dropped_updates"] == 0
    assert (await hook.refusal(hook.headers(b"x"), b"x")).code == "webhook_refused"
    old = hook.secret
    hook.secret = (await daemon.ask("webhook.create", name=hook.name, to="nex"))["secret"]
    await Hook.running(daemon)
    assert (await hook.refusal(hook.headers(b"x", secret=old), b"x")).code == "webhook_refused"
    assert await hook.post(b"x", "d1") == NEW and len(await hook.heard(2)) == 2


@frozen(quiet=False)
async def test_what_waits_when_a_webhook_is_deleted_is_told_to_the_boss(daemon: InProcessDaemon) -> None:
    hook = await Hook.create(daemon)
    (slot,) = daemon.daemon.wiring.supervisor.slots.values()
    adapter: Any = slot.adapter
    os.rename(daemon.home.media, f"{daemon.home.media}.away")  # nothing can be digested
    await adapter.receive("d1", {}, b"x")
    await daemon.until(lambda: daemon.rows("SELECT 1 FROM platform_update WHERE outcome IS NULL"))
    gone = await daemon.ask("webhook.delete", name=hook.name)
    os.rename(f"{daemon.home.media}.away", daemon.home.media)
    assert gone["dropped_updates"] == 1
    assert any("1 update that had come in was not read yet" in one for one in (await daemon.inbox("boss")))


@frozen()
async def test_after_a_restart_requests_are_known_and_taken(daemon: InProcessDaemon) -> None:
    hook = await Hook.create(daemon)
    await hook.post(b"x", "d1")
    await hook.heard(1)
    await daemon.restart()
    await Hook.running(daemon)
    assert await hook.post(b"x", "d1") == KNOWN
    assert await hook.post(b"y", "d2") == NEW and len(await hook.heard(2)) == 2
