"""What comes in and cannot be accepted, and secrets of bindings."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from hiboss.testing.running_daemon import RunningDaemon
from tests.channels.stored_updates import digests, outcomes, received, rows, updates
from tests.support.parties import agent, boss
from tests.support.scripted_channels import Place, lane_error, notices
from tests.support.waits import wait_until

NOW = {"retry_after": 0}


# --- what fails ------------------------------------------------------------------------


def test_a_digestion_that_fails_is_tried_again_and_the_chat_goes_on_in_order(
    daemon: RunningDaemon, tmp_path: Path
) -> None:
    place = Place(tmp_path).bound(daemon)
    digests(place, lane_error(**NOW), lane_error(**NOW))
    place.put_in_inbox("u1", text="first")
    place.put_in_inbox("u2", text="second")
    wait_until(lambda: len(received(place)) == 2)
    assert [one["text"] for one in received(place)] == ["first", "second"]
    assert [one["attempts"] for one in updates(place)] == [2, 0]


def test_after_the_last_try_an_update_is_given_up_and_the_boss_is_told(
    daemon: RunningDaemon, tmp_path: Path
) -> None:
    place = Place(tmp_path).bound(daemon)
    digests(place, *[lane_error(text="the file is gone", **NOW)] * 3)
    place.put_in_inbox("u1", text="lost")
    place.comes_in("u2", text="goes on")
    assert [one["text"] for one in received(place)] == ["goes on"]
    assert outcomes(place) == {"u1": "failed", "u2": "accepted"}
    assert place.digested() == {"u1": "the file is gone", "u2": None}
    told = [one["text"] for one in notices(boss(daemon)) if place.address in one["text"]]
    assert len(told) == 1 and "the file is gone" in told[0]


def test_an_account_that_cannot_be_reached_costs_no_tries(daemon: RunningDaemon, tmp_path: Path) -> None:
    place = Place(tmp_path).bound(daemon)
    digests(place, *[{"do": "account_error", **NOW}] * 5)
    place.comes_in("u1", text="late but whole")
    assert [one["text"] for one in received(place)] == ["late but whole"]
    assert [one["attempts"] for one in updates(place)] == [0]


def test_what_a_stranger_can_send_at_will_is_refused_without_a_notice(
    daemon: RunningDaemon, tmp_path: Path
) -> None:
    place = Place(tmp_path).bound(daemon)
    before = len(notices(boss(daemon)))
    digests(place, {"do": "refused"})
    place.comes_in("u1", text="refused")
    place.comes_in("u2", text=" \n ")
    place.comes_in("u3", text="x", files=[daemon.home.database])
    assert set(outcomes(place).values()) == {"failed"}
    assert len(notices(boss(daemon))) == before
    assert received(place) == []


def test_long_names_are_cut_and_what_cannot_be_stored_is_replaced(
    daemon: RunningDaemon, tmp_path: Path
) -> None:
    place = Place(tmp_path).bound(daemon)
    author = {"id": "7" * 900, "name": "😀" * 65, "username": "u" * 300}
    more = {"group": "щ" * 129, "forwarded": "ä" * 200, "subject": "s" * 2000}
    place.comes_in("u1", text="a\x00b\ud83d", message="m" * 900, author=author, **more)
    place.comes_in("u2", text="an answer", reply_to="m" * 900, **more)
    first, answer = received(place)
    assert (first["text"], first["from_name"]) == ("a\ufffdb?", "😀" * 63 + "…")
    assert (first["channel"]["chat"]["title"], len(first["subject"].encode())) == ("щ" * 126 + "…", 1024)
    assert answer["reply_to"] == first["message"]


FILES = [{"name": f"{number}.txt", "content": "x"} for number in range(21)]


@pytest.mark.parametrize(
    ("facts", "words"),
    [({"downloads": FILES}, "21 files"), ({"note": "n" * 1_100_000}, "limit is 1048576")],
    ids=["files", "the update"],
)
def test_what_is_larger_than_a_limit_is_told_to_the_boss_and_holds_up_nothing(
    daemon: RunningDaemon, tmp_path: Path, facts: dict[str, Any], words: str
) -> None:
    place = Place(tmp_path).bound(daemon)
    place.put_in_inbox("u1", text="large", **facts)
    place.comes_in("u2", text="fine")
    assert outcomes(place) == {"u1": "failed", "u2": "accepted"}
    told = [one["text"] for one in notices(boss(daemon)) if place.address in one["text"]]
    assert len(told) == 1 and words in told[0]


RENAMED = {"kind": "membership", "act": True, "membership": "renamed"}


@pytest.mark.parametrize(
    "facts",
    [
        *({"text": "hello", "place": name} for name in ("with blank", "with:colon", "a/b/c", "x" * 200)),
        *(RENAMED | {"renamed_to": name} for name in ("a/b", "with blank")),
    ],
    ids=lambda facts: str(facts)[:40],
)
def test_a_chat_that_cannot_be_an_address_is_refused(
    daemon: RunningDaemon, tmp_path: Path, facts: dict[str, Any]
) -> None:
    place = Place(tmp_path).bound(daemon)
    place.comes_in("u1", **facts)
    place.comes_in("u2", text="still here")
    assert outcomes(place) == {"u1": "failed", "u2": "accepted"}
    assert [one["from"] for one in received(place)] == [place.address]


def test_an_album_that_names_no_time_to_wait_waits_all_the_same(
    daemon: RunningDaemon, tmp_path: Path
) -> None:
    place = Place(tmp_path).settings(album_seconds=float("nan")).bound(daemon)
    place.put_in_inbox("u1", text="one", album="a")
    wait_until(lambda: updates(place))
    place.comes_in("u2", text="elsewhere", place="another")
    assert outcomes(place) == {"u1": None, "u2": "accepted"}
    place.unbind()


def test_an_adapter_that_removes_its_directory_for_downloads_holds_up_nothing(
    daemon: RunningDaemon, tmp_path: Path
) -> None:
    place = Place(tmp_path, kind="tidy").bound(daemon)
    for number in ("u1", "u2"):
        place.put_in_inbox(number, text=number)
    wait_until(lambda: len(place.digested()) == 2)
    assert [one["text"] for one in received(place)] == ["u1", "u2"]
    assert "Updates were not digested" not in Path(daemon.home.log_file).read_text()


# --- secrets ---------------------------------------------------------------------------


def test_secrets_lie_in_a_file_of_their_own_and_go_with_the_binding(
    daemon: RunningDaemon, tmp_path: Path
) -> None:
    place = Place(tmp_path)
    owner, other = agent(daemon), agent(daemon)
    before = set(os.listdir(daemon.home.secrets))

    def bind(name: str, password: str) -> dict[str, Any]:
        settings = {"path": str(place.root), "password": password}
        answer = boss(daemon).call("agent.bind", name=name, adapter_type="scripted", settings=settings)
        place.owner, place.binding = owner, int(answer["binding"][1:])
        return dict(answer)

    def files() -> list[Path]:
        return [Path(daemon.home.secrets) / name for name in set(os.listdir(daemon.home.secrets)) - before]

    bind(owner.name, "first-secret")
    (first,) = files()
    assert json.loads(first.read_text()) == {"password": "first-secret"}
    assert first.stat().st_mode & 0o777 == 0o600
    (row,) = rows(place, "SELECT settings, secrets FROM binding WHERE id = ?", place.binding)
    assert "first-secret" not in json.dumps(row)
    assert bind(other.name, "second-secret")["created"] is False
    (second,) = files()
    assert json.loads(second.read_text()) == {"password": "second-secret"}
    place.wait_for_state("running")
    place.bind(agent(daemon))  # without it: the secret stays
    assert files() == [second]
    place.unbind()
    place.unbind(other)
    assert files() == [second]
    place.unbind(owner)
    assert files() == []


def test_an_account_whose_secrets_are_lost_does_not_run_without_them(
    daemon: RunningDaemon, tmp_path: Path
) -> None:
    place = Place(tmp_path).settings(fail_listens=1000)
    place.owner = agent(daemon)
    settings = {"path": str(place.root), "password": "a-secret"}
    bind = {"name": place.owner.name, "adapter_type": "scripted", "settings": settings}
    place.binding = int(boss(daemon).call("agent.bind", **bind)["binding"][1:])
    (row,) = rows(place, "SELECT secrets FROM binding WHERE id = ?", place.binding)
    os.unlink(os.path.join(daemon.home.secrets, row["secrets"]))
    place.wait_for_state("failed")

    def is_told() -> bool:
        place.steer("retry")
        return "its secrets cannot be read" in (place.shown()["last_error"] or "")

    wait_until(is_told)
    assert "hiboss agent bind AGENT --adapter-type scripted" in place.shown()["last_error"]
    place.settings()  # the adapter itself can run now
    boss(daemon).call("agent.bind", **bind)
    place.wait_for_state("running")
    place.unbind()


def test_who_binds_an_account_once_more_need_not_repeat_its_secrets(
    daemon: RunningDaemon, tmp_path: Path
) -> None:
    place = Place(tmp_path, kind="keyed")

    def bind(**secrets: str) -> list[str]:
        settings = {"path": str(place.root), **secrets}
        place.owner = agent(daemon)
        params = {"name": place.owner.name, "adapter_type": "keyed", "settings": settings}
        place.binding = int(boss(daemon).call("agent.bind", **params)["binding"][1:])
        place.wait_for_state("running")
        return place.life()

    first = ['["word-one","key-one"]', "start"]
    assert bind(password="word-one", key="key-one") == first
    assert bind() == first  # it goes on as it was
    assert bind(key="key-one") == first
    assert bind(key="key-two") == [*first, "stop", '["word-one","key-two"]', "start"]
    nowhere = {"name": "nex", "adapter_type": "keyed", "settings": {"path": str(tmp_path)}}
    assert boss(daemon).refusal("agent.bind", **nowhere) == "invalid_params"  # another account: it needs one


def test_what_the_platform_does_not_accept_is_an_error_of_the_account(
    daemon: RunningDaemon, tmp_path: Path
) -> None:
    place = Place(tmp_path).settings(refuses="401 Unauthorized")
    settings = {"path": str(place.root), "password": "wrong"}
    before = os.listdir(daemon.home.secrets)
    code = boss(daemon).refusal("agent.bind", name="nex", adapter_type="scripted", settings=settings)
    assert code == "account_refused"
    assert os.listdir(daemon.home.secrets) == before
