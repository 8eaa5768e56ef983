"""Facts that webhooks post: which ones, in which order, how they survive an outage, and that none causes another."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from hiboss.core.events import TOPICS
from hiboss.testing.running_daemon import RunningDaemon
from tests.support.fact_receivers import FactReceiver, fact_receiver
from tests.support.parties import Party, agent, agents, boss
from tests.support.waits import wait_until

_numbers = itertools.count(1)


@pytest.fixture
def server() -> Iterator[FactReceiver]:
    with fact_receiver() as made:
        yield made


class Followed(NamedTuple):
    """A webhook that posts the arrivals of what ada sends, most of it to bob."""

    name: str
    ada: Party
    bob: Party

    @property
    def lane(self) -> str:
        return f"channel:webhook:{self.name}"

    def retry(self) -> None:
        boss(self.ada.daemon).call("lane.retry", address=self.lane)


@pytest.fixture
def followed(daemon: RunningDaemon, subscribe: Callable[..., str]) -> Followed:
    ada, bob = agents(daemon, 2)
    return Followed(subscribe(addresses=[ada.address], topics=["envelope.arrived"]), ada, bob)


def posted(server: FactReceiver) -> list[str]:
    """Return the envelopes whose arrival was posted."""
    return [one["envelopes"][0]["id"] for one in server.facts()]


@pytest.fixture
def subscribe(daemon: RunningDaemon, server: FactReceiver) -> Iterator[Callable[..., str]]:
    """Subscribe a webhook of the server; it is deleted after the test."""
    names: list[str] = []

    def made(**params: Any) -> str:
        names.append(f"out-{next(_numbers)}")
        answer = boss(daemon).call("webhook.subscribe", **{"name": names[-1], "url": server.url, **params})
        server.secret = answer["secret"]
        return names[-1]

    yield made
    for name in names:
        if name in [one["name"] for one in boss(daemon).call("webhook.list")["webhooks"]]:
            boss(daemon).call("webhook.unsubscribe", name=name)


def shown(daemon: RunningDaemon, name: str) -> dict[str, Any]:
    return dict(boss(daemon).call("webhook.get", name=name)["webhook"])


def waiting(daemon: RunningDaemon, name: str) -> int:
    """Return how many facts wait for a webhook."""
    query = "SELECT count(*) FROM envelopes WHERE \"to\" = ? AND status = 'pending'"
    with daemon.database() as database:
        return int(database.execute(query, (f"channel:webhook:{name}",)).fetchone()[0])


def settled(daemon: RunningDaemon, name: str) -> None:
    wait_until(lambda: waiting(daemon, name) == 0)


# --- what is posted --------------------------------------------------------------------


def test_a_fact_is_posted_signed_in_the_form_of_standard_webhooks(
    daemon: RunningDaemon, server: FactReceiver, followed: Followed
) -> None:
    _, ada, bob = followed
    number = ada.tell(bob, text="a text that stays here")
    wait_until(lambda: server.taken)
    (post,) = server.taken
    assert server.forged == []
    one = ada.get(number)
    assert post.fact == {
        "type": "envelope.arrived",
        "timestamp": post.fact["data"]["at"],
        "data": {
            "topic": "envelope.arrived",
            "at": one["created_at"],
            "message": one["message"],
            "conversation": one["conversation"],
            "seq": 1,
            "from": ada.address,
            "envelopes": [
                {"id": number, "to": bob.address, "arrived": post.fact["data"]["envelopes"][0]["arrived"]}
            ],
        },
    }
    assert b"stays here" not in post.body


def test_each_post_is_measured_by_what_the_server_answered(
    daemon: RunningDaemon, server: FactReceiver, followed: Followed
) -> None:
    def measured(outcome: str) -> float:
        families = boss(daemon).call("daemon.metrics")["families"]
        wanted = "hiboss_webhook_latency_seconds_count", {"direction": "out", "outcome": outcome}
        samples = [one for family in families for one in family["samples"]]
        return sum(one["value"] for one in samples if (one["name"], one["labels"]) == wanted)

    before = [measured(one) for one in ("refused", "failed", "accepted")]
    server.answers = [404, 503, 204]  # rejected; then the next one, in two attempts
    name, ada, bob = followed
    ada.tell(bob)
    wait_until(lambda: len(server.posts) == 1)
    ada.tell(bob)
    wait_until(lambda: len(server.posts) == 2)
    followed.retry()
    settled(daemon, name)
    after = [measured(one) for one in ("refused", "failed", "accepted")]
    assert [late - early for early, late in zip(before, after, strict=True)] == [1, 1, 1]


def test_only_what_was_chosen_is_posted(
    daemon: RunningDaemon, server: FactReceiver, subscribe: Callable[..., str]
) -> None:
    ada, bob, eve = agents(daemon, 3)
    subscribe(addresses=[ada.name], topics=["envelope.arrived", "envelope.read"])
    eve.tell(bob)
    ada.call("envelope.read", ids=[eve.tell(ada)])
    bob.call("envelope.ack", ids=[ada.tell(bob)])
    wait_until(lambda: len(server.taken) == 3)
    assert [one["topic"] for one in server.facts()] == [
        "envelope.arrived",
        "envelope.read",
        "envelope.arrived",
    ]


def test_without_a_choice_every_fact_is_posted_but_what_lasts_a_moment(
    daemon: RunningDaemon, server: FactReceiver, subscribe: Callable[..., str]
) -> None:
    name = subscribe()
    assert set(TOPICS.values()) - set(shown(daemon, name)["topics"]) == {"run.progress", "presence.typing"}
    thinker = agent(daemon, provider="command", settings={"command": "echo Done."})
    boss(daemon).send(thinker, from_="user:boss")
    wait_until(lambda: "run.ended" in [one["topic"] for one in server.facts()])
    found = {one["topic"] for one in server.facts()}
    assert {"envelope.arrived", "run.started", "run.ended", "presence"} <= found
    assert "run.progress" not in found


def test_many_facts_come_in_order_and_each_once(
    daemon: RunningDaemon, server: FactReceiver, followed: Followed
) -> None:
    _, ada, bob = followed
    sent = ada.flood(bob, 600)
    wait_until(lambda: len(server.taken) == 600, 120)
    assert posted(server) == sent and len({one.id for one in server.posts}) == len(server.posts) == 600


# --- no loops, and nobody's views ------------------------------------------------------


def test_no_fact_about_a_webhook_is_posted(
    daemon: RunningDaemon, server: FactReceiver, subscribe: Callable[..., str]
) -> None:
    name = subscribe()
    other = subscribe(topics=["envelope.arrived"])
    ada, bob = agents(daemon, 2)
    server.answers = [500]  # the lane waits, and the boss gets a notice about it
    first = ada.tell(bob)
    wait_until(lambda: shown(daemon, name)["failing_since"] or shown(daemon, other)["failing_since"])
    for one in (name, other):
        boss(daemon).call("lane.retry", address=f"channel:webhook:{one}")
    for one in (name, other):
        settled(daemon, one)
    boss(daemon).call("webhook.unsubscribe", name=other)
    last = ada.tell(bob)
    wait_until(lambda: last in str(server.facts("envelope.arrived")))
    settled(daemon, name)
    about = str(server.facts())
    assert first in about
    for word in (name, other, "agent:system", "webhook"):
        assert word not in about
    assert "lane.waiting" not in [one["topic"] for one in server.facts()]


def test_facts_lie_in_nobodys_views(
    daemon: RunningDaemon, server: FactReceiver, subscribe: Callable[..., str]
) -> None:
    ada, bob = agents(daemon, 2)
    people = [ada, bob, boss(daemon), Party(daemon, "agent:nex", daemon.token("nex"))]
    name = subscribe(topics=["envelope.arrived"], addresses=[ada.address])
    before = [_views(one) for one in people]
    bob.call("envelope.ack", ids=[ada.tell(bob)])
    before[0]["conversations"] = before[1]["conversations"] = 1
    wait_until(lambda: server.taken)
    settled(daemon, name)
    assert [_views(one) for one in people] == before
    address = f"channel:webhook:{name}"
    assert len(boss(daemon).list(address=address)) == 1
    with daemon.database() as database:
        counted = "SELECT count(*) FROM unread u JOIN address a ON a.id = u.address WHERE a.name = ?"
        assert database.execute(counted, (f"webhook:{name}",)).fetchone()[0] == 0
        turns = "SELECT count(*) FROM run_envelope r JOIN envelope e ON e.id = r.envelope WHERE e.binding > 0"
        assert database.execute(turns).fetchone()[0] == 0


def _views(who: Party) -> dict[str, Any]:
    return {
        "unread": len(who.list(unread=True, page_size=100)),
        "poll": len(who.call("envelope.poll", session="views")["envelopes"]) if who.name != "boss" else 0,
        "conversations": len(who.call("conversation.list", page_size=100)["conversations"]),
        "threads": len(who.call("thread.list", page_size=100)["threads"]),
    }


# --- servers that say no ---------------------------------------------------------------


@pytest.mark.parametrize("answer", [500, 0, (307, {"location": "http://127.0.0.1:9/"})])
def test_a_server_that_fails_gets_all_in_order_when_it_is_back(
    daemon: RunningDaemon, server: FactReceiver, followed: Followed, answer: Any
) -> None:
    name, ada, bob = followed
    server.usual = answer
    sent = [ada.tell(bob) for _ in range(3)]
    wait_until(lambda: shown(daemon, name)["failing_since"])
    wait_until(lambda: waiting(daemon, name) == 3)
    server.usual = 200
    followed.retry()
    settled(daemon, name)
    assert posted(server) == sent
    assert shown(daemon, name)["failing_since"] is None


def test_a_time_that_the_server_names_is_waited_for(
    daemon: RunningDaemon, server: FactReceiver, followed: Followed
) -> None:
    name, ada, bob = followed
    server.answers = [(429, {"retry-after": "3600"})]
    ada.tell(bob)
    wait_until(lambda: shown(daemon, name)["next_try_at"])
    ada.tell(bob)
    wait_until(lambda: waiting(daemon, name) == 2)
    assert len(server.posts) == 1
    assert "429" in str(shown(daemon, name)["last_error"])


def test_what_the_server_will_never_take_fails_alone(
    daemon: RunningDaemon, server: FactReceiver, followed: Followed
) -> None:
    name, ada, bob = followed
    server.answers = [410]
    sent = [ada.tell(bob) for _ in range(2)]
    wait_until(lambda: server.taken)
    settled(daemon, name)
    assert posted(server) == sent[1:]
    failed = boss(daemon).list(address=f"channel:webhook:{name}", status="failed")
    assert len(failed) == 1 and "410" in failed[0]["last_error"]["text"]


def test_a_server_that_hangs_holds_up_no_other_webhook(
    daemon: RunningDaemon, server: FactReceiver, subscribe: Callable[..., str]
) -> None:
    ada, bob = agents(daemon, 2)
    with fact_receiver() as hanging:
        hanging.usual = -1
        stuck = subscribe(url=hanging.url, addresses=[ada.address], topics=["envelope.arrived"])
        name = subscribe(addresses=[ada.address], topics=["envelope.arrived"])
        ada.tell(bob)
        wait_until(lambda: hanging.posts)
        wait_until(lambda: server.taken)
        settled(daemon, name)
        assert waiting(daemon, stuck) == 1
        hanging.released.set()
        hanging.usual = 200
        wait_until(lambda: shown(daemon, stuck)["failing_since"])


# --- changes ---------------------------------------------------------------------------


def test_a_change_applies_to_what_comes_next(
    daemon: RunningDaemon, server: FactReceiver, followed: Followed
) -> None:
    name, ada, bob = followed
    first = ada.tell(bob)
    wait_until(lambda: server.taken)
    boss(daemon).call("webhook.set", name=name, topics=["envelope.read"], addresses=[bob.address])
    bob.call("envelope.read", ids=[first])
    wait_until(lambda: len(server.taken) == 2)
    with fact_receiver() as other:
        boss(daemon).call("webhook.set", name=name, url=other.url)
        bob.call("envelope.read", ids=[ada.tell(bob)])
        wait_until(lambda: other.taken)
        assert [one["topic"] for one in other.facts()] == ["envelope.read"]
    assert [one["topic"] for one in server.facts()] == ["envelope.arrived", "envelope.read"]


def test_a_new_secret_signs_what_comes_next(
    daemon: RunningDaemon, server: FactReceiver, followed: Followed
) -> None:
    name, ada, bob = followed
    server.secret = boss(daemon).call("webhook.rotate", name=name)["secret"]
    ada.tell(bob)
    wait_until(lambda: server.taken)
    assert server.forged == []


def test_what_waits_for_a_deleted_one_fails_and_nobody_is_told(
    daemon: RunningDaemon, server: FactReceiver, followed: Followed
) -> None:
    name, ada, bob = followed
    boss(daemon).call("lane.pause", address=f"channel:webhook:{name}")
    for _ in range(3):
        ada.tell(bob)
    wait_until(lambda: waiting(daemon, name) == 3)
    before = len(boss(daemon).list(page_size=100))
    assert boss(daemon).call("webhook.unsubscribe", name=name)["failed_envelopes"] == 3
    ada.tell(bob)
    assert len(boss(daemon).list(page_size=100)) == before
    assert server.posts == []
    assert boss(daemon).refusal("webhook.get", name=name) == "unknown_webhook"


def test_the_breaker_holds_no_facts(
    daemon: RunningDaemon, server: FactReceiver, subscribe: Callable[..., str]
) -> None:
    subscribe(topics=["breaker.pulled", "breaker.released"])
    boss(daemon).call("breaker.pull")
    wait_until(lambda: server.facts("breaker.pulled"))
    boss(daemon).call("breaker.release")
    wait_until(lambda: server.facts("breaker.released"))


def test_an_archived_conversation_of_facts_stops_none(
    daemon: RunningDaemon, server: FactReceiver, followed: Followed
) -> None:
    name, ada, bob = followed
    ada.tell(bob)
    wait_until(lambda: server.taken)
    (one,) = boss(daemon).list(address=f"channel:webhook:{name}")
    boss(daemon).call("conversation.archive", conversation=one["conversation"], archived=True)
    ada.tell(bob)
    wait_until(lambda: len(server.taken) == 2)


def test_a_deleted_agent_is_followed_no_more_and_its_namesake_neither(
    daemon: RunningDaemon, server: FactReceiver, subscribe: Callable[..., str], followed: Followed
) -> None:
    name, ada, bob = followed
    boss(daemon).call("agent.delete", name=ada.name)
    agent(daemon, ada.name).tell(bob)
    follows = subscribe(addresses=[bob.address], topics=["envelope.arrived"])
    bob.tell(bob)
    wait_until(lambda: server.taken)
    settled(daemon, follows)
    assert len(server.taken) == 1
    assert shown(daemon, name)["addresses"] == [ada.address]


def test_only_the_boss_has_webhooks(daemon: RunningDaemon, server: FactReceiver, tmp_path: Path) -> None:
    ada = agent(daemon)
    boss(daemon).call("agent.permission.set", name=ada.name, level="privileged")
    assert ada.refusal("webhook.list") == "forbidden"
    assert ada.refusal("webhook.subscribe", name="mine", url=server.url) == "forbidden"
    assert ada.refusal("webhook.create", name="mine", to=ada.name) == "forbidden"
