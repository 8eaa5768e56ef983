"""Server-sent events: names, ids and headers, whose box, and how a stream ends."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest

from hiboss.testing.running_daemon import Answered
from tests.support.parties import agent, agents, boss, person
from tests.support.waits import wait_until
from tests.support.web_clients import Event
from tests.support.web_daemons import WebDaemon, web_daemon, web_fixture

daemon = web_fixture({"web.event_stream.COMMENT_SECONDS": 0.2})


def arrival(event: Event) -> str:
    """The envelope that a new-message is about."""
    return str(event.data["envelopes"][0]["id"])


def refusal(daemon: WebDaemon, by: str | None, **query: Any) -> str:
    with pytest.raises(Answered) as caught, daemon.events(by, None, **query):
        pass
    return caught.value.stable_code


# --- the form -----------------------------------------------------------------------------


def test_the_headers_keep_everybody_on_the_way_from_holding_it_back(daemon: WebDaemon) -> None:
    with daemon.events(daemon.token("nex")) as events:
        assert events.headers["content-type"] == "text/event-stream; charset=utf-8"
        assert events.headers["cache-control"] == "no-store, no-transform"
        assert events.headers["x-accel-buffering"] == "no"
        assert events.next().name == "open" and events.retry == 2_000
        assert events.next().name == "unread-count"


def test_a_comment_comes_while_nothing_happens(daemon: WebDaemon) -> None:
    with daemon.events(agent(daemon).token) as events:
        for _ in range(3):
            events.wait_for_comment()


def test_the_first_event_says_where_it_begins(daemon: WebDaemon) -> None:
    ada, bob = agents(daemon, 2)
    ada.tell(bob)
    with daemon.events(bob.token) as events:
        begun = events.next()
        assert begun.name == "open" and begun.data["box"] == bob.address and begun.data["gap"] is False
        position = [begun.data[name] for name in ("boot", "number", "epoch", "arrived")]
        assert begun.id == "-".join(str(one) for one in position)
        count = events.next()
        assert count.name == "unread-count"
        assert count.data == {"box": bob.address, "unread": 1, "capped": False}


# --- the names ----------------------------------------------------------------------------


def test_mail_is_a_new_message_and_another_count(daemon: WebDaemon) -> None:
    ada, bob = agents(daemon, 2)
    with daemon.events(bob.token) as events:
        assert events.next("unread-count").data["unread"] == 0
        number = ada.tell(bob)
        message, count = events.next("new-message"), events.next()
        assert arrival(message) == number
        assert message.data["from"] == ada.address and "subscription" not in message.data
        assert message.id == events.last and message.id is not None
        assert message.id.split("-")[3] == str(message.data["envelopes"][0]["arrived"])
        assert (count.name, count.data["unread"]) == ("unread-count", 1)
        for verb, unread in (("read", 0), ("archive", None), ("restore", None)):
            bob.call(f"envelope.{verb}", ids=[number])
            if unread is not None:
                assert events.next("unread-count").data["unread"] == unread
        ada.tell(bob)  # who is told of what came before it may be told its count first
        assert {events.next("new-message", "unread-count").name for _ in range(2)} == {
            "new-message",
            "unread-count",
        }


def test_what_a_run_says_its_question_and_an_order_about_it_are_events(daemon: WebDaemon) -> None:
    chief = boss(daemon)
    thinker = agent(daemon, provider="command", settings={"command": "sh -c 'echo one; exec sleep 1000'"})
    with daemon.events(chief.token, agent=thinker.address) as events:
        chief.send(thinker, from_="user:boss", text="think")
        delta = events.next("run-delta")
        assert delta.data["text"] == "one\n" and delta.data["part"] == 1
        chief.call("run.cancel", id=delta.data["run"])
        order = events.next("control")
        assert (order.data["event"], order.data["run"]) == ("stream.cancel", delta.data["run"])
        made = thinker.call("ask.create", question="now?")["ask"]["id"]
        asked = events.next("ask")
        assert (asked.data["topic"], asked.data["ask"]) == ("ask.created", made)
        chief.call("ask.answer", id=made, choice="yes")
        settled = events.next("ask")
        assert (settled.data["topic"], settled.data["state"]) == ("ask.settled", "answered")


def test_presence_and_typing_are_events(daemon: WebDaemon) -> None:
    ada, bob = agents(daemon, 2)
    number = ada.send(bob)["conversation"]
    zoe = person(daemon, "zoe").token
    with daemon.events(bob.token) as events:
        ada.call("presence.typing", conversation=number)
        typing = events.until(lambda one: one.data.get("who") == ada.address)[-1]
        assert typing.name == "presence" and typing.data["on"] is True
        with daemon.events(zoe) as theirs:
            theirs.next("open")
            here = events.until(lambda one: one.data.get("user") == "user:zoe")[-1]
            assert (here.name, here.data["presence"]) == ("presence", "online")
        assert events.until(lambda one: one.data.get("user") == "user:zoe")[-1].data["presence"] == "offline"


def test_topics_can_be_chosen_in_both_ways_of_a_list(daemon: WebDaemon) -> None:
    ada, bob = agents(daemon, 2)
    for topics in (["envelope.arrived", "ask.created"], "envelope.arrived,ask.created"):
        with daemon.events(bob.token, topics=topics) as events:
            events.next("unread-count")
            ada.call("ask.create", question="now?", to=bob.address)
            assert {events.next("new-message", "ask").name for _ in range(2)} == {"new-message", "ask"}


# --- whose box ----------------------------------------------------------------------------


def test_the_boss_chooses_whose_events_and_others_have_only_their_own(daemon: WebDaemon) -> None:
    ada, bob = agents(daemon, 2)
    chief = boss(daemon)
    with (
        daemon.events(chief.token, agent=bob.name) as chosen,
        daemon.events(bob.token, agent=bob.name) as own,
    ):
        for events in (chosen, own):
            assert events.next("open").data["box"] == bob.address
            events.next("unread-count")
        chief.send(ada, from_="user:boss")
        number = ada.tell(bob)
        assert [arrival(one.next("new-message")) for one in (chosen, own)] == [number, number]
        assert [one.next("unread-count").data["box"] for one in (chosen, own)] == [bob.address] * 2
    assert refusal(daemon, ada.token, agent=bob.name) == "boss_only"
    assert refusal(daemon, ada.token, agent="user:boss") == "boss_only"
    assert refusal(daemon, chief.token, agent="nobody-here") == "unknown_address"
    assert refusal(daemon, chief.token, agent="x:y") == "bad_address"
    assert refusal(daemon, ada.token, topics="nothing") == "invalid_params"
    assert refusal(daemon, ada.token, unknown="1") == "invalid_params"
    assert (refusal(daemon, "hba_wrong"), refusal(daemon, None)) == ("bad_token", "no_token")
    reply = daemon.rest().request("GET", "/api/events", token=ada.token)
    assert (reply.status, reply.code) == (400, "token_in_url")


def test_nobody_hears_of_mail_between_others(daemon: WebDaemon) -> None:
    ada, bob, eve = agents(daemon, 3)
    with daemon.events(eve.token) as events:
        ada.tell(bob)
        last = ada.tell(eve)
        assert arrival(events.next("new-message")) == last


# --- the end ------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["agent.token.revoke", "agent.token.rotate", "agent.delete"])
def test_a_right_that_ends_closes_the_stream(daemon: WebDaemon, how: str) -> None:
    bob = agent(daemon)
    with daemon.events(bob.token) as events:
        events.next("open")
        boss(daemon).call(how, name=bob.name)
        *_, last = events.rest()
        assert last.name == "closed" and last.data["error"]["data"]["code"] == "bad_token"
    assert refusal(daemon, bob.token) == "bad_token"
    check_log(daemon)


def check_log(daemon: WebDaemon) -> None:
    log = Path(daemon.home.log_file).read_text()
    assert " error [" not in log and "Traceback" not in log, log[-2000:]


def flood(daemon: WebDaemon) -> None:
    """Let runs say so much that it does not go into the buffers of a connection, a megabyte each."""
    says = 'a=$(head -c 8000 /dev/zero | tr "\\0" x); for i in $(seq 120); do echo $a; done'
    settings = {"command": shlex.join(["sh", "-c", says])}
    talkers = [agent(daemon, provider="command", settings=settings) for _ in range(6)]
    for one in talkers:
        boss(daemon).send(one, from_="user:boss", text="talk")
    wait_until(lambda: all(one.call("run.list", status="completed")["runs"] for one in talkers))


def test_a_stop_ends_the_streams_at_once_also_of_those_who_do_not_read(tmp_path: Path) -> None:
    with web_daemon(tmp_path, stop_seconds=600) as daemon:
        token = daemon.token("boss")
        with daemon.events(token) as events, daemon.events(token, small=True):
            events.next("open")
            flood(daemon)
            assert daemon.stop() == 0
            assert "closed" not in [one.name for one in events.rest()]
        check_log(daemon)


def test_a_reader_that_takes_nothing_is_disconnected(tmp_path: Path) -> None:
    with web_daemon(tmp_path, {"web.event_stream.SLOW_SECONDS": 0.3}) as daemon:
        with daemon.events(daemon.token("boss"), small=True) as events:
            flood(daemon)
            wait_until(lambda: followers(daemon) == 0)
            assert events.rest()  # what was on the way, and then the end
        check_log(daemon)


def followers(daemon: WebDaemon) -> float:
    samples = [one for family in boss(daemon).call("daemon.metrics")["families"] for one in family["samples"]]
    return sum(one["value"] for one in samples if one["name"] == "hiboss_subscriptions")


def test_a_late_reader_has_its_mail_once_and_then_what_comes_also_after_a_gap(tmp_path: Path) -> None:
    with web_daemon(tmp_path, kept_facts=50) as daemon:
        ada, chief = agent(daemon), boss(daemon)
        with daemon.events(chief.token, small=True) as events:
            flood(daemon)
            sent = ada.flood(chief, 300)
            # Mostly there is a gap; if the buffers took it all, there is none.
            found = events.until(lambda one: one.name == "new-message" and arrival(one) == sent[-1])
            sent.append(ada.tell(chief))
            found += events.until(lambda one: one.name == "new-message" and arrival(one) == sent[-1])
            mail = [arrival(one) for one in found if one.name == "new-message"]
            assert [one for one in mail if one in set(sent)] == sent
        check_log(daemon)
