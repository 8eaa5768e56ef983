"""Webhooks that are forged, replayed, or for nobody: all have the same answer, to the letter."""

from __future__ import annotations

import hashlib
import hmac
import json
import time
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from hiboss.core.webhook_signatures import TOLERANCE_SECONDS, key_of, new_secret, signed
from tests.support.waits import wait_until
from tests.support.web_daemons import Answer, WebDaemon, web_daemon

BODY = json.dumps({"build": 7, "state": "failed"}).encode()


class Hook(NamedTuple):
    web: WebDaemon
    secret: str

    def post(self, headers: dict[str, str], body: bytes = BODY, name: str = "ci") -> Answer:
        given = [("Content-Type", "application/json"), *headers.items()]
        return self.web.request("POST", f"/hooks/{name}", given, body)

    def stored(self) -> int:
        """Return the number of messages, when all that was answered has become one: the answer comes before that."""
        waiting = "SELECT 1 FROM platform_update WHERE outcome IS NULL"
        with self.web.database() as database:
            wait_until(lambda: database.execute(waiting).fetchone() is None)
            return int(database.execute("SELECT count(*) FROM message").fetchone()[0])


def standard(secret: str, delivery: str, body: bytes = BODY, *, late: int = 0) -> dict[str, str]:
    key = key_of(secret)
    assert key is not None
    return signed(key, delivery, int(time.time()) - late, body)


def github(secret: str, delivery: str, body: bytes = BODY) -> dict[str, str]:
    digest = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    return {
        "X-GitHub-Delivery": delivery,
        "X-GitHub-Event": "push",
        "X-Hub-Signature-256": f"sha256={digest}",
    }


@pytest.fixture(scope="module")
def hook(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hook]:
    with web_daemon(tmp_path_factory.mktemp("d")) as web:
        found = web.call("webhook.create", token=web.token("boss"), name="ci", to="agent:nex")
        web.call("webhook.create", token=web.token("boss"), name="other", to="agent:nex")
        url = "http://127.0.0.1:9/facts"
        web.call("webhook.subscribe", token=web.token("boss"), name="out", url=url, topics=["run.ended"])
        yield Hook(web, found["secret"])
        assert found["secret"] not in web.logged() and "Traceback" not in web.logged()


def refusals(hook: Hook) -> dict[str, Answer]:
    """What comes back for everything that can be wrong."""
    secret, good = hook.secret, standard(hook.secret, "d1")
    mine = new_secret()
    late = TOLERANCE_SECONDS + 60
    forged = {
        "no signature": {},
        "an empty signature": {**good, "webhook-signature": ""},
        "a signature of another secret": standard(mine, "d1"),
        "one of another version": {
            **good,
            "webhook-signature": good["webhook-signature"].replace("v1", "v2"),
        },
        "one without its version": {**good, "webhook-signature": good["webhook-signature"][3:]},
        "half a signature": {**good, "webhook-signature": good["webhook-signature"][:-4]},
        "one of another id": {**good, "webhook-id": "d2"},
        "one without an id": {name: value for name, value in good.items() if name != "webhook-id"},
        "one of another time": {**good, "webhook-timestamp": str(int(good["webhook-timestamp"]) + 1)},
        "one that is too old": standard(secret, "d1", late=late),
        "one that is too early": standard(secret, "d1", late=-late),
        "a time that is no number": {**good, "webhook-timestamp": "now"},
        "a thousand signatures": {**good, "webhook-signature": "v1,x " * 1_000 + good["webhook-signature"]},
        "GitHub's of another secret": github(mine, "g1"),
        "GitHub's with the key instead of the secret": github(secret.removeprefix("whsec_"), "g1"),
        "GitHub's old kind": {"X-GitHub-Delivery": "g1", "X-Hub-Signature": "sha1=" + "0" * 40},
        "GitHub's without an id": {"X-Hub-Signature-256": github(secret, "g1")["X-Hub-Signature-256"]},
    }
    found = {what: hook.post(headers) for what, headers in forged.items()}
    found["another body"] = hook.post(good, BODY + b" ")
    found["another body for GitHub"] = hook.post(github(secret, "g1"), BODY + b" ")
    for name in ("other", "nobody", "out", "CI", "ci%00", "c%69i", "-", "%F0%9F%98%80", "x" * 1_000):
        found[f"for {name}"] = hook.post(good, name=name)
    return found


def test_whatever_is_wrong_has_the_same_answer(hook: Hook) -> None:
    before = hook.stored()
    found = refusals(hook)
    assert {(one.status, tuple(one.headers), one.body) for one in found.values()} == {
        (401, tuple(found["for nobody"].headers), found["for nobody"].body)
    }
    assert found["for nobody"].code == "webhook_refused"
    assert hook.stored() == before


def test_a_good_one_is_stored_and_a_replayed_one_is_not_stored_again(hook: Hook) -> None:
    for headers in (standard(hook.secret, "d7"), github(hook.secret, "g7")):
        before = hook.stored()
        found = [hook.post(headers) for _ in range(5)]
        assert [one.json["duplicate"] for one in found] == [False, True, True, True, True]
        assert hook.stored() == before + 1


def test_a_replay_with_a_new_time_is_forged(hook: Hook) -> None:
    headers = standard(hook.secret, "d8")
    assert hook.post(headers).status == 200
    later = {**headers, "webhook-timestamp": str(int(headers["webhook-timestamp"]) + 5)}
    assert hook.post(later).code == "webhook_refused"


def test_an_old_secret_is_worth_nothing_after_the_change(hook: Hook) -> None:
    boss = hook.web.token("boss")
    old = hook.web.call("webhook.create", token=boss, name="changing", to="agent:nex")["secret"]
    hook.web.call("webhook.rotate", token=boss, name="changing")
    assert hook.post(standard(old, "d1"), name="changing").code == "webhook_refused"


def test_a_body_that_is_too_large_is_refused_for_everybody_alike(hook: Hook) -> None:
    large = b" " * (760 * 1024 + 1)
    found = [hook.post(standard(hook.secret, "d9", large), large, name=name) for name in ("ci", "nobody")]
    assert {one.status for one in found} == {413} and found[0].body == found[1].body


def test_a_token_opens_no_webhook_and_a_secret_opens_nothing_else(hook: Hook) -> None:
    assert hook.post({"Authorization": f"Bearer {hook.web.token('boss')}"}).code == "webhook_refused"
    bearer = [("Authorization", f"Bearer {hook.secret}")]
    assert hook.web.request("GET", "/api/agents", bearer).code == "bad_token"
