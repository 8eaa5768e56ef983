"""The boss: name and zone, which everything that is shown follows at once."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest

from hiboss.testing.running_daemon import Answered, RunningDaemon
from tests.support.daemons import ask, code, line
from tests.support.parties import Party, agent, boss

TOKYO = timedelta(hours=9)
ADA: dict[str, Any] = {"name": "Ada", "address": "user:boss", "timezone": "UTC"}
NOWHERE = {"reach": None, "reach_binding": None, "forward": "all", "ids": {}}  # is the boss reached
HIDDEN = {"reach": None, "reach_binding": None, "forward": None, "ids": {}}  # of those who ask, but the boss


@pytest.fixture(autouse=True)
def as_before(daemon: RunningDaemon) -> Iterator[None]:
    yield
    boss(daemon).call("boss.set", name="Ada", timezone="UTC")


def offset(text: str) -> timedelta | None:
    return datetime.fromisoformat(text).utcoffset()


def test_everybody_with_a_token_may_know_who_the_boss_is(daemon: RunningDaemon) -> None:
    assert agent(daemon).call("boss.get") == {**ADA, **HIDDEN}  # where is not theirs to know
    assert boss(daemon).call("boss.get") == {**ADA, **NOWHERE}
    with pytest.raises(Answered) as caught:
        daemon.call("boss.get")
    assert caught.value.stable_code == "no_token"


def test_the_boss_alone_changes_the_boss(daemon: RunningDaemon) -> None:
    one = agent(daemon)
    boss(daemon).call("agent.permission.set", name=one.name, level="privileged")
    assert one.refusal("boss.set", name="Eve") == "forbidden"
    assert one.refusal("boss.token.rotate") == "forbidden"
    assert boss(daemon).call("boss.get")["name"] == "Ada"


@pytest.mark.parametrize(
    ("given", "changed"),
    [
        ({"name": "Grace"}, {"name": "Grace"}),
        ({"name": "  Grace Hopper \n"}, {"name": "Grace Hopper"}),
        ({"name": "Åda 🦉 עדה"}, {"name": "Åda 🦉 עדה"}),
        ({"name": "n" * 256}, {"name": "n" * 256}),
        ({"timezone": "Asia/Tokyo"}, {"timezone": "Asia/Tokyo"}),
        ({"name": "G", "timezone": "Europe/Berlin"}, {"name": "G", "timezone": "Europe/Berlin"}),
    ],
)
def test_what_is_given_changes_and_the_rest_stays(
    daemon: RunningDaemon, given: dict[str, Any], changed: dict[str, Any]
) -> None:
    expected = {**ADA, **NOWHERE, **changed}
    assert boss(daemon).call("boss.set", **given) == expected
    assert boss(daemon).call("boss.get") == expected
    check = daemon.call("setup.check")
    assert (check["boss_name"], check["timezone"]) == (expected["name"], expected["timezone"])


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, "invalid_params"),
        ({"name": None, "timezone": None}, "invalid_params"),
        ({"name": ""}, "invalid_params"),
        ({"name": " \n"}, "invalid_params"),
        ({"name": "n" * 257}, "too_large"),
        ({"name": "é" * 129}, "too_large"),
        ({"name": "a\x00b"}, "bad_text"),
        ({"name": 5}, "invalid_params"),
        ({"timezone": ""}, "bad_timezone"),
        ({"timezone": "Asia/Tokio"}, "bad_timezone"),
        ({"timezone": "../../etc/passwd"}, "bad_timezone"),
        ({"timezone": "/etc/localtime"}, "bad_timezone"),
        ({"timezone": "Asia\x00"}, "bad_timezone"),
        ({"timezone": "Asia"}, "bad_timezone"),
        ({"name": "Eve", "timezone": "Nowhere"}, "bad_timezone"),
        ({"name": "\x00", "timezone": "Asia/Tokyo"}, "bad_text"),
    ],
)
def test_what_is_wrong_changes_nothing(daemon: RunningDaemon, given: dict[str, Any], expected: str) -> None:
    assert boss(daemon).refusal("boss.set", **given) == expected
    assert boss(daemon).call("boss.get") == {**ADA, **NOWHERE}


def test_a_name_that_is_no_text_at_all_changes_nothing(daemon: RunningDaemon) -> None:
    raw = line("boss.set", token=daemon.token("boss"), name="NAME").replace(b"NAME", b"\\ud800")
    (answer,) = daemon.exchange(raw.rstrip(b"\n"), answers=1)
    assert code(answer) in ("parse_error", "bad_text")
    assert boss(daemon).call("boss.get")["name"] == "Ada"


def test_every_time_that_is_shown_or_read_follows_the_new_zone_at_once(daemon: RunningDaemon) -> None:
    ada = agent(daemon)
    number = ada.tell(ada)
    with daemon.connect() as connection:
        assert code(ask(connection, "auth.login", token=ada.token)) == "ok"
        boss(daemon).call("boss.set", timezone="Asia/Tokyo")
        assert ask(connection, "daemon.time")["result"]["timezone"] == "Asia/Tokyo"
        preview = ask(connection, "turn.preview")["result"]
    assert offset(daemon.call("daemon.time")["local"]) == TOKYO
    for method, params in (
        ("envelope.list", {}),
        ("envelope.get", {"id": number}),
        ("envelope.read", {"ids": [number]}),
        ("agent.list", {}),
        ("agent.self", {}),
        ("turn.preview", {}),
        ("daemon.status", {}),
    ):
        assert ada.call(method, **params)["timezone"] == "Asia/Tokyo", method
    shown = [text for text in preview["text"].splitlines() if text.startswith(("now: ", "created-at: "))]
    assert len(shown) == 2
    assert {offset(text.partition(": ")[2]) for text in shown} == {TOKYO}
    # A time without a zone is meant in the boss's.
    sent = ada.send(ada, deliver_at="2090-01-27 16:30")
    assert (sent["deliver_at"], sent["timezone"]) == ("2090-01-27T07:30:00.000Z", "Asia/Tokyo")


def test_the_new_name_and_zone_are_there_after_a_restart(daemon: RunningDaemon) -> None:
    boss(daemon).call("boss.set", name="Grace", timezone="Asia/Tokyo")
    daemon.stop()
    daemon.start()
    assert boss(daemon).call("boss.get") == {**ADA, **NOWHERE, "name": "Grace", "timezone": "Asia/Tokyo"}
    assert daemon.call("daemon.time")["timezone"] == "Asia/Tokyo"


def test_mail_of_the_boss_carries_the_name_of_now(daemon: RunningDaemon) -> None:
    ada, chief = agent(daemon), boss(daemon)
    chief.call("boss.set", name="Grace")
    chief.send(ada, from_="user:boss")
    assert [(one["from"], one["from_boss"], one["from_name"]) for one in ada.list()] == [
        ("user:boss", True, "Grace")
    ]


def test_the_boss_gets_a_new_token_from_the_daemon(daemon: RunningDaemon) -> None:
    old = boss(daemon)
    with daemon.connect() as connection:
        assert code(ask(connection, "auth.login", token=old.token)) == "ok"
        answer = ask(connection, "boss.token.rotate")["result"]
        assert code(ask(connection, "boss.get")) == "bad_token"
    assert answer["revoked"] == 1 and answer["token"].startswith("hbb_")
    assert answer["profile"] == daemon.home.profile("boss") and daemon.token("boss") == answer["token"]
    assert old.refusal("boss.get") == "bad_token"
    assert boss(daemon).call("boss.get")["name"] == "Ada"
    assert Party(daemon, "agent:nex", daemon.token("nex")).call("agent.self")["address"] == "agent:nex"
