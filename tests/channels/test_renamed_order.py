"""Chats that get another id while something of them waits, or several times."""

from __future__ import annotations

import itertools
from pathlib import Path

from hiboss.testing.running_daemon import RunningDaemon
from tests.channels.stored_updates import outcomes, received
from tests.support.scripted_channels import Place
from tests.support.waits import wait_until


def rename(place: Place, old: str, new: str) -> None:
    facts = {"kind": "membership", "membership": "renamed", "renamed_to": new, "place": old}
    place.comes_in(f"{old}-to-{new}", act=True, **facts)


def test_what_comes_under_the_new_id_does_not_overtake_what_still_waits_under_the_old_ones(
    daemon: RunningDaemon, tmp_path: Path
) -> None:
    place = Place(tmp_path).bound(daemon)
    slow = {"name": "a.txt", "content": "x", "gate": str(tmp_path / "gate")}
    place.put_in_inbox("u1", text="first", message="1", downloads=[slow])
    place.put_in_inbox("u2", text="second", message="2")
    wait_until(lambda: len(outcomes(place)) == 2)
    for old, new in ((place.name, f"{place.name}-b"), (f"{place.name}-b", f"{place.name}-c")):
        rename(place, old, new)
        place.put_in_inbox(f"u-{new}", text=new, message="3", place=new)
        wait_until(lambda new=new: f"u-{new}" in outcomes(place))  # type: ignore[misc]
    place.comes_in("u9", text="of another chat", place="elsewhere")
    assert [one["text"] for one in received(place)] == ["of another chat"]
    (tmp_path / "gate").touch()
    wait_until(lambda: len(received(place)) == 5)
    in_order = ["first", "second", f"{place.name}-b", f"{place.name}-c"]
    assert [one["text"] for one in received(place)] == ["of another chat", *in_order]


def test_in_a_private_chat_ids_of_messages_stay_valid_after_several_new_ids_and_when_it_is_bound_again(
    daemon: RunningDaemon, tmp_path: Path
) -> None:
    place = Place(tmp_path).bound(daemon)
    ids = [f"{place.name}-{letter}" for letter in "abcd"]
    place.comes_in("u1", text="typo", message="m1", place=ids[0])
    (message,) = received(place)
    for old, new in itertools.pairwise(ids):
        rename(place, old, new)
    place.comes_in("u2", kind="edit", text="mended", message="m1", place=ids[-1])
    place.unbind()
    place.bound(daemon, place.owner)
    place.comes_in("u3", text="an answer", reply_to="m1", place=ids[-1])
    place.comes_in("u4", text="late", place=ids[0])
    first, answer, late = received(place)
    assert late["from"] == f"channel:scripted:{ids[-1]}"
    assert (first["text"], first["message"]) == ("mended", message["message"])
    assert answer["reply_to"] == message["message"]
