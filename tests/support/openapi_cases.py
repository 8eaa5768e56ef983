"""Requests that schemathesis makes of /openapi.json, to a daemon with some mail, and what is checked of the answers.

Random texts are hardly ever the id of something. So in half of the right requests, parameters are replaced by
what there is, and some of them begin as the recorded example of the operation.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable
from schemathesis import checks
from schemathesis.core.failures import FailureGroup
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from hiboss.api.discovery import examples
from tests.support.parties import Party, agent, boss
from tests.support.web_daemons import WebDaemon, web_daemon

CHECKS = [
    checks.not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    negative_data_rejection,
]
MODES = (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)
# What is left out, and why.
ENDS = {"daemon.stop", "breaker.pull", "breaker.release"}  # the daemon, or all work
TOKENS = {"boss.token.rotate", "agent.token.rotate", "agent.token.revoke", "user.token.rotate"}  # ours
OUTSIDE = {"agent.bind"}  # it makes directories on this machine, and asks platforms
ENDLESS = {"/api/events", "/mcp"}  # streams, and another protocol; they have tests of their own
# Parameters that let an agent or a webhook do something on this machine: only random texts are tried.
ACTING = {"provider", "settings", "workspace", "url", "profile", "mode", "kind", "token"}
SHORT = {"timeout": "10ms", "wait": "10ms"}  # of operations that wait: how long


class Explored:
    """A daemon with HTTP and some mail, its document, and the names and ids that are in it."""

    def __init__(self, daemon: WebDaemon) -> None:
        self.url = daemon.url
        self.boss, self.agent = boss(daemon), agent(daemon, "ada")
        self.session = requests.Session()
        self.answers: Counter[int] = Counter()  # by status
        self.known = _filled(self.boss, self.agent, agent(daemon, "bob"))
        self.believe(httpx.get(f"{self.url}/openapi.json", timeout=60).json())

    def believe(self, document: dict[str, Any]) -> None:
        """Take this document for what the daemon says."""
        schema = schemathesis.openapi.from_dict(document)
        schema.config.update(base_url=self.url)
        schema.config.checks.negative_data_rejection.expected_statuses = ["4xx"]  # 413 too
        self.document = document
        self.nouns = [one["name"] for one in document["tags"]]
        self._operations = [one.ok() for one in schema.get_all_operations()]

    def operations(self, noun: str) -> list[Any]:
        """Return what schemathesis knows of each request of a noun, without those that are left out."""
        return [one for one in self._operations if noun in one.tags and not left_out(one)]

    def explore(self, operation: Any, mode: GenerationMode, cases: int, number: int) -> list[str]:
        """Make some requests, each as the agent and as the boss; return what is wrong with the answers."""
        wrong: list[str] = []

        @seed(number)
        @settings(
            max_examples=cases,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operation.as_strategy(generation_mode=mode), luck=st.integers(0, 2**32))
        def run(case: Any, luck: int) -> None:
            self._prepare(case, mode, random.Random(luck))
            for who in (self.agent, self.boss):
                wrong.extend(f"{operation.label} as {who.name}: {one}" for one in self._call(case, who))

        try:
            run()
        except Unsatisfiable:
            assert mode is GenerationMode.NEGATIVE, operation.label  # it takes nothing that could be wrong
        for who in (self.agent, self.boss):  # else all that follows would be about bad tokens
            who.call("presence.list")
        return wrong

    def _call(self, case: Any, who: Party) -> Iterator[str]:
        headers = {"Authorization": f"Bearer {who.token}"}
        response = case.call(session=self.session, headers=headers, timeout=60)
        self.answers[response.status_code] += 1
        try:
            case.validate_response(response, checks=CHECKS, headers=headers)
        except (FailureGroup, checks.Failure) as found:
            sent = f"{response.request.method} {response.request.url} {response.request.body!r}"
            yield f"{_told(found)}\n{sent[:2000]}"

    def _prepare(self, case: Any, mode: GenerationMode, luck: random.Random) -> None:
        """Replace some parameters by what there is, and all waits by short ones."""
        name = case.operation.definition.raw.get("x-operation", "")
        right = mode is GenerationMode.POSITIVE
        if right and isinstance(case.body, dict) and luck.random() < 0.5 and name in examples():
            taken = _properties(self.document, case.operation.definition.raw)
            recorded = examples()[name]["params"]
            if not ACTING & recorded.keys():
                case.body = {key: value for key, value in recorded.items() if key in taken}
        for place in (case.body, case.query, case.path_parameters):
            if not isinstance(place, dict):
                continue
            for key in list(place):
                if right and key in self.known and luck.random() < 0.6:
                    place[key] = self._known(key, name, luck, isinstance(place[key], list))
        _shorten(case, name)

    def _known(self, key: str, name: str, luck: random.Random, listed: bool) -> Any:
        noun = name.partition(".")[0]
        found = self.known.get(f"{noun}.{key}") or self.known[key]
        found = [one for one in found if name != "agent.delete" or one != self.agent.name]
        one = luck.choice(found)
        return [one] if listed or key in ("ids", "message_ids") else one


def _shorten(case: Any, name: str) -> None:
    """Let an operation wait for a moment only, also where the request says nothing of it."""
    waits = {"envelope.wait": "timeout", "envelope.watch": "timeout", "ask.wait": "timeout"}
    word = waits.get(name) or ("wait" if name == "envelope.poll" else None)
    if word is None:
        return
    if not isinstance(case.body, dict):
        case.body = {}
    if isinstance(case.body.get(word, ""), str):
        case.body[word] = SHORT[word]


def left_out(operation: Any) -> bool:
    return operation.definition.raw.get("x-operation") in ENDS | TOKENS | OUTSIDE or operation.path in ENDLESS


@contextmanager
def explored_daemon(directory: Path) -> Iterator[Explored]:
    """Start a daemon for this; at the end, check that its store is as it must be."""
    with web_daemon(directory) as daemon:
        yield Explored(daemon)
        daemon.check()


def _told(found: BaseException) -> str:
    return "\n".join(f"{one}" for one in (found.exceptions if isinstance(found, FailureGroup) else [found]))


def _properties(document: dict[str, Any], raw: dict[str, Any]) -> set[str]:
    schema = raw["requestBody"]["content"]["application/json"]["schema"]
    if "$ref" in schema:
        schema = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return set(schema["properties"])


def _filled(ruler: Party, ada: Party, bob: Party) -> dict[str, list[Any]]:
    """Make something of most kinds; return what there is, by the names of parameters."""
    group = ruler.call("conversation.create", name="team", participants=[ada.address, bob.address])
    sent = [
        ada.send(bob),
        bob.send(ada, ruler, subject="plan", metadata={"a": 1}),
        ruler.send(ada, deliver_at="+2h"),
        ruler.send("group:team", text="hello **all**", type="markdown"),
    ]
    ask = ada.call("ask.create", question="Now?", options=["yes", "no"])
    schedule = ada.call("cron.create", to=bob.address, text="x", cron="0 9 * * *")
    envelopes = [one for found in sent for one in found["ids"]]
    messages = [found["message"] for found in sent]
    addresses = [ada.address, bob.address, ruler.address, "group:team"]
    names = ["ada", "bob", "carl"]
    conversations = [*(found["conversation"] for found in sent), group["conversation"]["id"], "group:team"]
    return {
        "id": [*envelopes[:2], *messages[:2]],
        "ask.id": [ask["ask"]["id"]],
        "cron.id": [schedule["id"]],
        "run.id": ["r1"],
        "ids": [*envelopes, messages[0]],
        "message_id": messages,
        "message_ids": messages,
        "up_to": envelopes,
        "thread_id": [sent[0]["thread"], messages[0]],
        "thread": [sent[0]["thread"]],
        "conversation": conversations,
        "conversation_id": conversations,
        "reply_to": messages,
        "to": addresses,
        "from": addresses,
        "with": addresses,
        "address": addresses,
        "author_id": addresses,
        "participants": addresses,
        "name": names,
        "agent": [*names, ada.address],
        "page_size": [1, 3, 100],
        "page": [1, 2],
        "limit": [1, 5],
        "until": ["+1h"],
        "deliver_at": ["+1h", "-1h"],
        "created_after": ["-1h"],
        "created_before": ["+1h"],
        "cron": ["0 9 * * *", "* * * * *"],
        "timezone": ["Europe/Berlin", "UTC"],
        "text": ["hello", "€ 😀", ""],
        "choice": ["yes", "no"],
        "emoji": ["👍"],
        "after_seq": [0, 1],
        "template": ["{{ body }}", "{text}"],
        "topics": ["envelope.arrived"],
    }
