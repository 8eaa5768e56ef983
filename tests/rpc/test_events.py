"""Facts over the socket: who gets which, in which order, and what ends a subscription."""

from __future__ import annotations

import json
import shutil
import socket
from pathlib import Path
from typing import Any

import pytest

from hiboss.core.events import TOPICS
from hiboss.testing.running_daemon import RunningDaemon
from tests.rpc.test_socket_fuzz import EDGES, LIMITS
from tests.support.daemons import code, daemon_with, line
from tests.support.followers import Event, Follower, following
from tests.support.parties import Party, agent, boss
from tests.support.python_agents import Boss, Team, wait_until_idle
from tests.support.waits import wait_until

MAIL = [topic for topic in TOPICS.values() if topic.startswith("envelope.")]  # not the state of other agents


def parts(event: Event, *keys: str) -> tuple[Any, ...]:
    return tuple(event[key] for key in keys)


def rest(follower: Follower, token: str, to: str) -> list[str]:
    """Return the topics of what came until now: a message to `to` is the end of it."""
    return [event["topic"] for event in follower.until("that is all", token, to)]


def test_mail_that_arrives_is_told_with_everything_but_its_text(
    daemon: RunningDaemon, two: tuple[Party, Party]
) -> None:
    ada, bob = two
    with following(daemon) as follower:
        begun = follower.subscribe(bob.token, topics=MAIL)
        sent = ada.send(bob.address, text="the secret word")
        event = follower.next()
    assert parts(event, "subscription", "topic", "boot", "from", "message", "seq") == (
        begun["subscription"],
        "envelope.arrived",
        begun["boot"],
        ada.address,
        sent["message"],
        1,
    )
    [envelope] = event["envelopes"]
    assert parts(envelope, "id", "to") == (sent["ids"][0], bob.address)
    assert envelope["arrived"] > begun["arrived"]
    assert event["number"] > begun["number"] and "secret" not in str(event)


def test_sender_and_recipient_hear_of_every_change_of_an_envelope(
    daemon: RunningDaemon, two: tuple[Party, Party]
) -> None:
    ada, bob = two
    with following(daemon) as senders, following(daemon) as recipients:
        senders.subscribe(ada.token, topics=MAIL)
        recipients.subscribe(bob.token, topics=MAIL)
        number = ada.tell(bob)
        bob.call("envelope.read", ids=[number])
        bob.call("envelope.read", ids=[number])  # it was read already: no second fact
        bob.call("envelope.release", ids=[number], claim=bob.call("envelope.claim")["claim"])
        bob.call("envelope.ack", ids=[number])
        bob.call("envelope.archive", ids=[number])
        later = ada.tell(bob, deliver_at="+1h")
        ada.call("envelope.cancel", ids=[later])
        told = ["arrived", "read", "claimed", "due", "acknowledged", "moved"]
        of_envelope = [f"envelope.{word}" for word in told]
        assert rest(recipients, bob.token, ada.address) == of_envelope
        # Only its sender knows of mail that has not arrived.
        heard = senders.until("that is all", ada.token, ada.address)
    assert [event["topic"] for event in heard[:-1]] == [
        *of_envelope,
        "envelope.deferred",
        "envelope.cancelled",
    ]
    assert {event["envelope"] for event in heard[1:6]} == {number}
    assert parts(heard[1], "from", "to", "message") == (ada.address, bob.address, bob.get(number)["message"])
    assert (heard[5]["box"], heard[6]["envelopes"]) == ("archived", [{"id": later}])


def test_who_is_no_party_hears_nothing_and_the_boss_hears_all(
    daemon: RunningDaemon, two: tuple[Party, Party]
) -> None:
    ada, bob = two
    eve = agent(daemon)
    with following(daemon) as stranger, following(daemon) as ruler:
        stranger.subscribe(eve.token)
        ruler.subscribe(daemon.token("boss"), topics=MAIL, addresses=[bob.address])
        number = ada.tell(bob)
        bob.call("envelope.read", ids=[number])
        ada.tell(eve)
        assert stranger.next("envelope.arrived", "envelope.read")["envelopes"][0]["to"] == eve.address
        assert ruler.next()["envelopes"][0]["id"] == number
        assert parts(ruler.next(), "topic", "envelope") == ("envelope.read", number)


def test_only_the_topics_and_conversations_that_were_named_come(
    daemon: RunningDaemon, two: tuple[Party, Party]
) -> None:
    ada, bob = two
    kai = agent(daemon)
    number = ada.tell(bob)
    conversation = ada.get(number)["conversation"]
    with following(daemon) as follower:
        follower.subscribe(
            ada.token, conversations=[conversation], topics=["envelope.arrived", "envelope.read"]
        )
        ada.tell(kai)
        bob.call("envelope.ack", ids=[number])
        bob.call("envelope.read", ids=[ada.tell(bob)])
        first, second = follower.next(), follower.next()
    assert (first["topic"], second["topic"]) == ("envelope.arrived", "envelope.read")
    assert first["conversation"] == second["conversation"] == conversation


def test_what_is_not_ones_own_needs_the_boss(daemon: RunningDaemon, two: tuple[Party, Party]) -> None:
    ada, bob = two
    eve = agent(daemon)
    conversation = ada.get(ada.tell(bob))["conversation"]
    with following(daemon) as follower:
        refused = {
            "boss_only": {"addresses": [bob.address]},
            "not_found": {"conversations": [conversation]},
            "unknown_address": {"token": daemon.token("boss"), "addresses": ["agent:nobody-here"]},
            "bad_id": {"conversations": ["e1"]},
            "invalid_params": {"topics": ["envelope.lost"]},
        }
        for expected, params in refused.items():
            assert code(follower.call("event.subscribe", **{"token": eve.token, **params})) == expected
        assert follower.subscribe(ada.token, conversations=[conversation])["subscription"] == 1
        missing = follower.call("event.subscribe", token=daemon.token("boss"), conversations=["c99999"])
        assert code(missing) == "not_found"


@pytest.mark.parametrize(
    ("ends", "expected"),
    [
        (lambda boss, one: boss.call("agent.token.revoke", name=one.name), "bad_token"),
        (lambda boss, one: boss.call("agent.token.rotate", name=one.name), "bad_token"),
        (lambda boss, one: boss.call("agent.delete", name=one.name), "bad_token"),
        (
            lambda boss, one: boss.call("permission.policy.set", policy={"event.subscribe": "privileged"}),
            "forbidden",
        ),
    ],
    ids=["revoked", "rotated", "deleted", "policy"],
)
def test_who_loses_the_right_is_told_so_and_hears_no_more(
    daemon: RunningDaemon, two: tuple[Party, Party], ends: Any, expected: str
) -> None:
    ada, bob = two
    other = agent(daemon)
    try:
        with following(daemon) as follower, following(daemon) as ruler:
            follower.subscribe(bob.token, topics=["envelope.arrived"])
            ruler.subscribe(daemon.token("boss"), topics=["envelope.arrived"])
            ends(boss(daemon), bob)
            event = follower.next()
            assert (event["topic"], event["error"]["data"]["code"]) == ("closed", expected)
            ada.tell(other)
            ruler.next("envelope.arrived")
            assert "result" in follower.call(
                "daemon.ping"
            )  # the connection lives, and nothing came before it
            assert follower.kept == []
    finally:
        boss(daemon).call("permission.policy.set", policy={})


def test_the_token_of_a_run_follows_no_longer_than_the_run(team: Team, ada: Boss) -> None:
    kai = team.hire('note(os.environ["HIBOSS_TOKEN"]); wait_for("go-on"); print("done")')
    ada.say(kai, text="begin")
    wait_until(kai.program.notes)
    with following(team.daemon) as follower:
        follower.subscribe(kai.program.notes()[0], topics=["envelope.arrived"])
        team.place("go-on").touch()
        assert follower.next("closed")["error"]["data"]["code"] == "bad_token"
    wait_until_idle(team.daemon)


def test_the_parties_of_a_conversation_follow_the_run_that_answers_there(team: Team, ada: Boss) -> None:
    lin, kai = team.hire(""), team.hire('print("my opinion")')
    eve = agent(team.daemon)
    with following(team.daemon) as party, following(team.daemon) as stranger:
        party.subscribe(lin.token, topics=["run.started", "run.progress", "run.ended"])
        stranger.subscribe(eve.token)
        lin.tell(kai)
        started, progress = party.next(), party.next()
        assert parts(started, "topic", "agent") == ("run.started", kai.address)
        assert parts(progress, "topic", "run", "kind", "text") == (
            "run.progress",
            started["run"],
            "delta",
            "my opinion\n",
        )
        assert parts(party.next("run.ended"), "run", "status") == (started["run"], "completed")
        wait_until_idle(team.daemon)
        states = [event for event in stranger.until("the end", eve.token, eve.address)]
    # What an agent does is not told to others; that it does something is, as agent.status tells it.
    assert {event["topic"] for event in states} == {"presence"}
    assert [event["state"] for event in states if event["agent"] == kai.address][-1] == "idle"


def test_output_that_is_never_sent_is_followed_by_the_boss_alone(team: Team, ada: Boss) -> None:
    lin, kai = team.hire(""), team.hire('print("my thoughts")', reply="explicit")
    with following(team.daemon) as party, following(team.daemon) as ruler:
        party.subscribe(lin.token, topics=["run.started", "run.progress", "run.ended", "envelope.arrived"])
        ruler.subscribe(ada.token, topics=["run.progress", "run.ended"], addresses=[kai.address])
        lin.tell(kai)
        assert parts(ruler.next(), "topic", "text") == ("run.progress", "my thoughts\n")
        assert ruler.next()["topic"] == "run.ended"
        assert [event["topic"] for event in party.until("the end", lin.token, lin.address)] == [
            "envelope.arrived"
        ]


def test_a_pause_of_an_agent_is_told_as_its_state(daemon: RunningDaemon, two: tuple[Party, Party]) -> None:
    ada, bob = two
    with following(daemon) as follower:
        follower.subscribe(ada.token, topics=["presence"])
        boss(daemon).call("agent.pause", name=bob.name)
        assert state_of(bob, follower) == "paused"
        boss(daemon).call("agent.resume", name=bob.name)
        assert state_of(bob, follower) == "fetches"


def state_of(party: Party, follower: Follower) -> str:
    """Return the next state of an agent that is told; runs of other tests may end meanwhile."""
    while (event := follower.next("presence"))["agent"] != party.address:
        pass
    return str(event["state"])


def test_who_comes_back_gets_what_it_missed_in_order_and_once(
    daemon: RunningDaemon, two: tuple[Party, Party]
) -> None:
    ada, bob = two
    with following(daemon) as first:
        first.subscribe(bob.token, topics=MAIL)
        sent = [ada.tell(bob) for _ in range(3)]
        seen = first.next()
    with following(daemon) as second:
        sent += [ada.tell(bob) for _ in range(3)]
        begun = second.subscribe(bob.token, topics=MAIL, boot=seen["boot"], after=seen["number"])
        assert begun["gap"] is False
        sent.append(ada.tell(bob))
        heard = [second.next() for _ in range(6)]
    assert [event["envelopes"][0]["id"] for event in heard] == sent[1:]
    numbers = [event["number"] for event in heard]
    assert numbers == sorted(set(numbers)) and numbers[0] > seen["number"]


def test_numbers_of_another_boot_or_from_the_future_are_a_gap(daemon: RunningDaemon) -> None:
    token = daemon.token("nex")
    with following(daemon) as follower:
        begun = follower.subscribe(token)
        boot, number = begun["boot"], begun["number"]
        for given in (
            {"boot": boot - 1, "after": number},
            {"boot": boot, "after": number + 999},
            {"after": 1},
        ):
            assert follower.subscribe(token, **given)["gap"] is True
        assert follower.subscribe(token, boot=boot, after=number)["gap"] is False


def test_a_subscription_that_was_ended_is_silent_and_the_others_go_on(
    daemon: RunningDaemon, two: tuple[Party, Party]
) -> None:
    ada, bob = two
    with following(daemon) as follower:
        first = follower.subscribe(bob.token, topics=MAIL)["subscription"]
        second = follower.subscribe(bob.token, topics=MAIL)["subscription"]
        for changed in (True, False):
            answer = follower.call("event.unsubscribe", token=bob.token, subscription=first)
            assert answer["result"] == {"changed": changed}
        ada.tell(bob)
        ada.tell(bob)
        assert [follower.next()["subscription"] for _ in range(2)] == [second] * 2


def test_a_connection_has_a_limited_number_of_subscriptions(daemon: RunningDaemon) -> None:
    token = daemon.token("nex")
    with following(daemon) as follower:
        numbers = [follower.subscribe(token)["subscription"] for _ in range(16)]
        assert len(set(numbers)) == 16
        refused = follower.call("event.subscribe", token=token)
        words = "hiboss cannot take more now: this connection has 16 subscriptions, end one first; nothing was stored"
        assert (code(refused), refused["error"]["message"]) == ("busy", words)
        follower.call("event.unsubscribe", token=token, subscription=numbers[0])
        assert follower.subscribe(token)["subscription"] not in numbers


def test_the_answer_comes_before_the_first_notification_also_behind_other_requests(
    daemon: RunningDaemon, two: tuple[Party, Party]
) -> None:
    ada, bob = two
    requests = [line("envelope.send", n, token=ada.token, to=bob.address, text=f"{n}") for n in range(200)]
    requests.insert(100, line("event.subscribe", "subscribed", token=bob.token))
    with daemon.connect() as connection, connection.makefile("rb") as stream:
        connection.sendall(b"".join(requests))
        answered: list[Any] = []
        while len(answered) < 201:
            answer = json.loads(stream.readline())
            if "id" in answer:
                answered.append(answer["id"])
            else:
                assert "subscribed" in answered
    assert answered == [*range(100), "subscribed", *range(100, 200)]


def test_who_only_stopped_sending_still_hears_and_who_is_gone_is_forgotten(
    daemon: RunningDaemon, two: tuple[Party, Party]
) -> None:
    ada, bob = two
    with daemon.connect() as connection, connection.makefile("rb") as stream:
        connection.sendall(line("event.subscribe", token=bob.token, topics=MAIL))
        connection.shutdown(socket.SHUT_WR)
        assert json.loads(stream.readline())["result"]["subscription"] == 1
        number = ada.tell(bob)
        assert json.loads(stream.readline())["params"]["envelopes"][0]["id"] == number
        before = daemon.call("daemon.status", token=daemon.token("boss"))["connections"]
    wait_until(lambda: daemon.call("daemon.status", token=daemon.token("boss"))["connections"] < before)


def test_a_reader_that_stands_still_gets_one_gap_and_costs_the_others_nothing(tmp_path: Path) -> None:
    with daemon_with(tmp_path, kept_facts=50) as running, following(running) as slow:
        token = running.token("nex")
        slow.subscribe(token, topics=["envelope.arrived"])
        with following(running) as quick:
            quick.subscribe(token, topics=["envelope.arrived"])
            for sent in range(0, 2_400, 40):  # 600 kB: more than fits between the daemon and a reader
                one = line("envelope.send", "sent", token=token, to="agent:nex", text="hello")
                quick.connection.sendall(one * 40)  # fewer than are kept: the quick one misses none
                assert [quick.next()["seq"] for _ in range(40)] == list(range(sent + 1, sent + 41))
        before = [slow.next()]
        while before[-1]["topic"] != "gap":
            before.append(slow.next())
        gap = before.pop()
        assert [event["seq"] for event in before] == list(range(1, len(before) + 1))
        assert gap["number"] > before[-1]["number"]
        again = running.call("envelope.send", token=token, to="agent:nex", text="again")
        assert slow.next()["message"] == again["message"]


def test_a_restart_is_a_gap_and_so_is_a_store_that_was_put_back_and_counts_the_same_start_again(
    tmp_path: Path,
) -> None:
    copy = tmp_path / "copy"
    with daemon_with(tmp_path) as running:
        token = running.token("nex")
        home = running.home.path

        def starts() -> int:
            return int(running.call("daemon.status", token=token)["boot"])

        with following(running) as follower:
            begun = follower.subscribe(token)
            running.kill()
            with pytest.raises(EOFError):
                follower.next()
        shutil.copytree(home, copy, ignore=shutil.ignore_patterns("*.sock"))
        running.start()
        with following(running) as follower:
            again = follower.subscribe(token, boot=begun["boot"], after=begun["number"])
        number = starts()
        running.kill()
        shutil.rmtree(home)
        copy.rename(home)
        running.start()
        assert starts() == number
        with following(running) as follower:
            put_back = follower.subscribe(token, boot=again["boot"], after=0)
    assert (again["gap"], put_back["gap"]) == (True, True)
    assert begun["epoch"] == again["epoch"] == put_back["epoch"]


def test_nobody_takes_the_subscriptions_of_others_and_all_together_not_those_of_the_boss(
    tmp_path: Path,
) -> None:
    with daemon_with(tmp_path, subscriptions=3, subscriptions_per_caller=2) as running:
        ann, ben = agent(running), agent(running)
        with following(running) as follower:

            def subscribed(token: str) -> str:
                return code(follower.call("event.subscribe", token=token))

            assert [subscribed(ann.token) for _ in range(3)] == ["ok", "ok", "busy"]
            assert [subscribed(ben.token) for _ in range(2)] == ["ok", "busy"]
            chief = running.token("boss")
            assert [subscribed(chief) for _ in range(4)] == ["ok", "ok", "ok", "busy"]
            follower.call("event.unsubscribe", token=ann.token, subscription=1)
            assert [subscribed(ben.token), subscribed(ann.token)] == ["ok", "busy"]
            own = follower.call("event.subscribe", token=ben.token)["error"]["message"]
            assert "this caller has 2 subscriptions, end one first" in own  # and not: try again


def test_every_edge_in_the_place_of_every_parameter_is_answered_with_a_stable_code(
    daemon: RunningDaemon,
) -> None:
    with following(daemon) as follower:
        for edge in [*[one for one in EDGES if one != "\ud800"], *LIMITS, None, [], {}, [None], ["x"] * 200]:
            for name in ("topics", "addresses", "conversations", "boot", "after"):
                answer = follower.call("event.subscribe", **{"token": daemon.token("boss"), name: edge})
                if "result" in answer:
                    number = answer["result"]["subscription"]
                    follower.call("event.unsubscribe", token=daemon.token("boss"), subscription=number)
                else:
                    assert code(answer) in {
                        "invalid_params",
                        "bad_address",
                        "unknown_address",
                        "bad_id",
                        "not_found",
                    }


def test_every_topic_is_described_in_the_docs() -> None:
    page = (Path(__file__).parents[2] / "docs" / "events.md").read_text()
    assert [topic for topic in TOPICS.values() if f"`{topic}`" not in page] == []
