"""What comes in from a platform, in a real daemon: the two stages, albums and their waits, edits, presses, reactions."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from hiboss.core.contracts.inbound import Digested, Inbound, NotYet, Update
from hiboss.core.envelope import Attachment
from hiboss.testing.running_daemon import RunningDaemon
from tests.channels.stored_updates import outcomes, received, rows, updates
from tests.support.in_process_daemon import InProcessDaemon, frozen
from tests.support.parties import boss
from tests.support.scripted_channels import Place
from tests.support.waits import wait_until

# --- the two stages ------------------------------------------------------------------


def test_an_update_is_stored_as_it_came_and_stays_so_when_it_is_digested(
    daemon: RunningDaemon, tmp_path: Path
) -> None:
    place = Place(tmp_path).bound(daemon)
    gate = tmp_path / "gate"
    slow = {"name": "a.txt", "content": "a", "gate": str(gate)}
    place.put_in_inbox("u1", text="with a file", message="m1", downloads=[slow])
    wait_until(lambda: updates(place))
    (waiting,) = updates(place)
    assert (waiting["outcome"], waiting["platform_id"], waiting["chat"]) == (None, "m1", place.name)
    assert json.loads(waiting["raw"])["text"] == "with a file"
    assert received(place) == []
    gate.touch()
    wait_until(lambda: received(place))
    (stored,) = updates(place)
    assert (stored["outcome"], stored["raw"]) == ("accepted", waiting["raw"])
    (message,) = received(place)
    assert [one["name"] for one in message["attachments"]] == ["a.txt"]
    wait_until(lambda: os.listdir(Path(daemon.home.media) / ".downloads") == [])


def test_a_slow_file_of_one_chat_holds_up_no_other_chat_but_its_own(
    daemon: RunningDaemon, tmp_path: Path
) -> None:
    place = Place(tmp_path).settings(places=["fast"]).bound(daemon)
    gate = tmp_path / "gate"
    slow = {"name": "large.bin", "content": "x", "gate": str(gate)}
    place.put_in_inbox("u1", text="slow", downloads=[slow])
    place.put_in_inbox("u2", text="behind it")
    place.comes_in("u3", text="fast", place="fast")
    assert [one["text"] for one in received(place)] == ["fast"]
    assert outcomes(place) == {"u1": None, "u2": None, "u3": "accepted"}
    gate.touch()
    wait_until(lambda: len(received(place)) == 3)
    assert [one["text"] for one in received(place)] == ["fast", "slow", "behind it"]


def test_slow_files_in_as_many_chats_as_are_digested_at_once_hold_up_no_other_chat(
    daemon: RunningDaemon, tmp_path: Path
) -> None:
    slow_chats = [f"slow-{number}" for number in range(4)]  # HIBOSS_INTAKE_PARALLEL_CHATS
    place = Place(tmp_path).settings(places=slow_chats).bound(daemon)
    gate = tmp_path / "gate"
    for chat in slow_chats:
        slow = {"name": "a", "content": "x", "gate": str(gate)}
        place.put_in_inbox(chat, text="slow", place=chat, downloads=[slow])
    wait_until(lambda: len(updates(place)) == 4)
    place.comes_in("u9", text="fast")
    assert [one["text"] for one in received(place)] == ["fast"]
    gate.touch()
    wait_until(lambda: len(received(place)) == 5)


def test_a_place_that_is_unbound_while_it_digests_gets_nothing_any_more(
    daemon: RunningDaemon, tmp_path: Path
) -> None:
    place = Place(tmp_path).bound(daemon)
    gate = tmp_path / "gate"
    place.put_in_inbox("u1", text="too late", downloads=[{"name": "a", "content": "x", "gate": str(gate)}])
    wait_until(lambda: updates(place))
    place.unbind()
    gate.touch()
    assert [(one["outcome"], one["raw"]) for one in updates(place)] == [("unbound", None)]
    assert received(place) == []


def test_updates_that_the_platform_delivers_again_are_stored_once_and_the_position_is_given_back(
    daemon: RunningDaemon, tmp_path: Path
) -> None:
    place = Place(tmp_path).settings(keeps_updates=True, fail_listens=0).bound(daemon)
    for number in ("u1", "u2"):
        place.put_in_inbox(number, text=number)
    wait_until(lambda: len(received(place)) == 2)
    assert rows(place, "SELECT position FROM binding WHERE id = ?", place.binding) == [{"position": "u2"}]
    # A new instance begins behind the position: u2 itself comes no more, also if its file changes.
    boss(daemon).call("agent.bind", name=place.owner.name, adapter_type="scripted",
                      settings={"path": str(place.root), "password": "new"})  # fmt: skip
    place.wait_for_state("running")
    place.put_in_inbox("u2", text="again")
    place.put_in_inbox("u3", text="u3")
    wait_until(lambda: len(received(place)) == 3)
    assert [one["text"] for one in received(place)] == ["u1", "u2", "u3"]


def test_updates_whose_taking_was_cancelled_act_and_are_digested_when_they_are_given_again(
    daemon: RunningDaemon, tmp_path: Path
) -> None:
    place = Place(tmp_path, kind="impatient").settings(capabilities=[]).bound(daemon)
    place.put_in_inbox("u1", kind="membership", membership="joined", act=True, place="other")
    place.put_in_inbox("u2", text="hello")
    wait_until(lambda: outcomes(place) == {"u1": "joined", "u2": "accepted"})
    assert [one["text"] for one in received(place)] == ["hello"]


# --- what it becomes -------------------------------------------------------------------


def test_an_album_becomes_one_message_and_a_reply_to_each_of_its_parts_finds_it(
    daemon: RunningDaemon, tmp_path: Path
) -> None:
    place = Place(tmp_path).bound(daemon)
    parts = [
        {"text": "holidays", "message": "m1", "downloads": [{"name": "1.jpg", "content": "one"}]},
        {"text": "", "message": "m2", "downloads": [{"name": "2.jpg", "content": "two"}]},
    ]
    for number, part in enumerate(parts):
        place.put_in_inbox(f"u{number}", album="a", **part)
    wait_until(lambda: received(place))
    (album,) = received(place)
    assert album["text"] == "holidays"
    assert [one["name"] for one in album["attachments"]] == ["1.jpg", "2.jpg"]
    assert {one["message"] for one in updates(place)} == {int(album["message"][1:])}
    place.comes_in("u3", text="nice", reply_to="m2")
    assert received(place)[1]["reply_to"] == album["message"]


def test_two_albums_and_words_that_come_in_among_each_other_become_a_message_each(
    daemon: RunningDaemon, tmp_path: Path
) -> None:
    place = Place(tmp_path).bound(daemon)
    parts = [("a1", "a"), ("b1", "b"), ("words", None), ("a2", "a"), ("b2", "b")]
    for number, (text, album) in enumerate(parts):
        extra = {} if album is None else {"album": album}
        place.put_in_inbox(f"u{number}", text=text, message=f"m{number}", **extra)
    wait_until(lambda: len(received(place)) == 3)
    assert [one["text"] for one in received(place)] == ["a1\na2", "b1\nb2", "words"]
    found = {one["platform_id"]: f"m{one['message']}" for one in updates(place)}
    (first, second, words) = [one["message"] for one in received(place)]
    assert found == {"m0": first, "m1": second, "m2": words, "m3": first, "m4": second}


def test_an_answer_of_digest_that_uses_what_it_was_not_given_is_a_failure() -> None:
    given = [Update(id=number, chat="c", raw={}) for number in "123"]
    inbound = Inbound(chat="c")
    assert Digested(inbound).used(given) == given[:1]
    assert Digested(inbound, uses=[given[2], given[0]]).used(given) == [given[0], given[2]]
    foreign = Update(id="9", chat="c", raw={})
    for uses in ([given[1]], [given[0], foreign], [given[0], given[0]], ["1"]):
        with pytest.raises(ValueError, match="uses must be"):
            Digested(inbound, uses=uses).used(given)  # type: ignore[arg-type]


def test_an_edit_gives_the_message_another_wording_and_keeps_the_old_one(
    daemon: RunningDaemon, tmp_path: Path
) -> None:
    place = Place(tmp_path).bound(daemon)
    place.comes_in("u1", text="teh first", message="m1")
    place.comes_in("u2", kind="edit", text="the first", message="m1")
    place.comes_in("u3", kind="edit", text="the first", message="m1")  # nothing new
    (message,) = received(place)
    assert message["text"] == "the first" and message["edited_at"] >= message["created_at"]
    assert "\nedited-at: " in place.owner.call("turn.preview")["text"]
    assert outcomes(place) == {"u1": "accepted", "u2": "edited", "u3": "ignored"}
    number = int(message["message"][1:])
    (stored,) = rows(place, "SELECT edited_at FROM message WHERE id = ?", number)
    assert stored["edited_at"] is not None
    old = rows(place, "SELECT number, text FROM revision WHERE message = ?", number)
    assert old == [{"number": 1, "text": "teh first"}]


def test_an_edit_of_an_album_keeps_the_files_of_its_other_parts_and_a_revision_has_the_old_ones(
    daemon: RunningDaemon, tmp_path: Path
) -> None:
    place = Place(tmp_path).bound(daemon)

    def file(name: str) -> dict[str, Any]:
        return {"downloads": [{"name": name, "content": name}]}

    place.put_in_inbox("u1", album="a", text="caption", message="m1", **file("a.txt"))
    place.put_in_inbox("u2", album="a", text="", message="m2", **file("b.txt"))
    wait_until(lambda: received(place))
    place.comes_in("u3", text="alone", message="m3", **file("c.txt"))
    place.comes_in("u4", kind="edit", text="new caption", message="m1", **file("a.txt"))
    place.comes_in("u5", kind="edit", text="alone", message="m3", **file("d.txt"))
    album, alone = received(place)
    assert (album["text"], [one["name"] for one in album["attachments"]]) == (
        "new caption",
        ["a.txt", "b.txt"],
    )
    assert [one["name"] for one in alone["attachments"]] == ["d.txt"]
    (old,) = rows(place, "SELECT attachments FROM revision WHERE message = ?", int(alone["message"][1:]))
    assert [one["name"] for one in json.loads(old["attachments"])] == ["c.txt"]


def test_an_edit_of_something_that_never_came_in_is_a_message(daemon: RunningDaemon, tmp_path: Path) -> None:
    place = Place(tmp_path).bound(daemon)
    place.comes_in("u1", kind="edit", text="from before", message="m0")
    assert [one["text"] for one in received(place)] == ["from before"]
    place.comes_in("u2", kind="edit", text="from before!", message="m0")
    assert [one["text"] for one in received(place)] == ["from before!"]


def test_a_press_answers_the_post_that_has_the_button_before_slow_files_are_there(
    daemon: RunningDaemon, tmp_path: Path
) -> None:
    place = Place(tmp_path).bound(daemon)
    number = place.send("shall I?")
    place.wait_for_status(number, "done")
    gate = tmp_path / "gate"
    place.put_in_inbox("u1", text="slow", downloads=[{"name": "a.txt", "content": "x", "gate": str(gate)}])
    press = {"kind": "press", "act": True, "message": f"{number}.0", "author": {"name": "Ann", "id": "7"}}
    place.comes_in("u2", button="yes", **press)
    (answer,) = received(place)
    assert (answer["text"], answer["reply_to"]) == ("yes", place.owner.get(number)["message"])
    place.comes_in("u3", button="yes", **{**press, "message": "no such post"})
    assert outcomes(place) == {"u1": None, "u2": "pressed", "u3": "ignored"}
    ignored = f"b{place.binding}: a press on 'no such post' was ignored: "
    wait_until(lambda: ignored in Path(daemon.home.log_file).read_text())
    gate.touch()
    wait_until(lambda: len(received(place)) == 2)


def test_a_reaction_is_kept_with_its_update_and_makes_no_message(
    daemon: RunningDaemon, tmp_path: Path
) -> None:
    place = Place(tmp_path).bound(daemon)
    place.comes_in("u1", text="hello", message="m1")
    place.comes_in("u2", kind="reaction", emoji="👍", message="m1", author={"name": "Ann"})
    place.comes_in("u3", kind="reaction", emoji="👍", message="unknown")
    place.comes_in("u4", kind="ignored")
    (message,) = received(place)
    found = {one["update_id"]: one for one in updates(place)}
    assert (found["u2"]["outcome"], found["u2"]["message"]) == ("reacted", int(message["message"][1:]))
    assert json.loads(found["u2"]["raw"])["emoji"] == "👍"
    assert (found["u3"]["outcome"], found["u4"]["outcome"]) == ("ignored", "ignored")


def test_an_answer_to_a_post_that_somebody_reacted_to_is_still_linked(
    daemon: RunningDaemon, tmp_path: Path
) -> None:
    place = Place(tmp_path).settings(places=["other"]).bound(daemon)
    first = place.send("a post")
    place.wait_for_status(first, "done")
    place.comes_in("u1", kind="reaction", emoji="👍", message=f"{first}.0")
    place.comes_in("u2", text="a question", message="m2")
    (question,) = received(place)
    for text, number, to in (
        ("and more", first, place.address),
        ("an answer", question["id"], place.address),
        ("elsewhere", question["id"], "channel:scripted:other"),
    ):
        place.wait_for_status(place.owner.send(to, text=text, reply_to=number)["ids"][0], "done")
    links = {one["chunk"]: one["reply_to"] for one in place.posts()}
    assert links == {"a post": None, "and more": f"{first}.0", "an answer": "m2", "elsewhere": None}


def test_what_the_platform_reports_stands_with_the_message(daemon: RunningDaemon, tmp_path: Path) -> None:
    place = Place(tmp_path).bound(daemon)
    author = {"id": "7", "name": "Ann", "username": "ann", "bot": True}
    more = {
        "mentioned": True,
        "replied": True,
        "forwarded": "Bob",
        "sent_at": 1234,
        "note": "one file is missing",
    }
    where = {"place": f"{place.name}/trips", "group": "The team"}
    place.comes_in("u1", text="hi", message="m1", **where, author=author, **more)
    (message,) = received(place)
    assert message["channel"] == {
        "chat": {"id": place.name, "kind": "group", "topic": "trips", "title": "The team"},
        "author": author,
        "message": "m1",
        **more,
    }
    assert message["from"] == f"{place.address}/trips"


def test_the_agent_reads_what_is_missing_of_a_message(daemon: RunningDaemon, tmp_path: Path) -> None:
    place = Place(tmp_path).bound(daemon)
    place.comes_in("u1", text="see the photo", message="m1", note="the file a.jpg\nis too large")
    assert '\nnote: "the file a.jpg\\nis too large"\n' in place.owner.call("turn.preview")["text"]


# --- how long more parts of an album are waited for -----------------------------------


MODULES = {"adapter_modules": "hiboss.testing.scripted_adapter"}
SECONDS = 60.0  # nobody waits for so long here: the test moves the clock


class Group:
    """A group whose albums end a minute after their last part."""

    def __init__(self, daemon: InProcessDaemon) -> None:
        self.daemon = daemon
        self.root = Path(daemon.home.database).parents[1] / "group"

    async def open(self) -> None:
        self.root.mkdir()
        (self.root / "settings.json").write_text(json.dumps({"album_seconds": SECONDS}))
        settings = {"path": str(self.root)}
        await self.daemon.ask("agent.bind", name="nex", adapter_type="scripted", settings=settings)
        await self.daemon.until((self.root / "inbox").exists)

    async def comes_in(self, update: str, **facts: Any) -> None:
        """Let something come in; return when it is stored."""
        (self.root / f"{update}.part").write_text(json.dumps({"text": update, **facts}))
        (self.root / f"{update}.part").replace(self.root / "inbox" / f"{update}.json")
        await self.daemon.until(lambda: not (self.root / "inbox" / f"{update}.json").exists())

    async def received(self) -> list[str]:
        """Return what nex got when everything is digested."""
        waits = "SELECT 1 FROM platform_update WHERE outcome IS NULL"
        await self.daemon.until(lambda: not self.daemon.rows(waits))
        return await self.daemon.inbox()


@frozen(**MODULES)
async def test_an_album_comes_in_time_although_others_go_on_writing(daemon: InProcessDaemon) -> None:
    group = Group(daemon)
    await group.open()
    await group.comes_in("u1", album="a")
    daemon.tick(seconds=40)
    await group.comes_in("u2", album="a")
    daemon.tick(seconds=40)
    await group.comes_in("u3")  # somebody else; the album waits for 20 seconds more
    assert await daemon.inbox() == []
    daemon.tick(seconds=21)
    await group.comes_in("u4")
    assert await group.received() == ["u1\nu2", "u3", "u4"]


@frozen(**MODULES)
async def test_albums_that_were_stored_long_before_do_not_wait_after_a_start(daemon: InProcessDaemon) -> None:
    group = Group(daemon)
    await group.open()
    for update, album in (("u1", "a"), ("u2", "a"), ("u3", "b"), ("u4", "b")):
        await group.comes_in(update, album=album)
    assert await daemon.inbox() == []
    await daemon.restart(seconds=SECONDS + 1)
    assert await group.received() == ["u1\nu2", "u3\nu4"]


def test_the_time_counts_from_an_update_that_digest_was_given() -> None:
    given = [Update(id=number, chat="c", raw={}) for number in "123"]
    assert (NotYet(1).counts_from(given), NotYet(1, last=given[1]).counts_from(given)) == (0, 1)
    for last in (Update(id="9", chat="c", raw={}), "1"):
        with pytest.raises(ValueError, match="the last of NotYet must be an update that digest was given"):
            NotYet(1, last=last).counts_from(given)  # type: ignore[arg-type]


# --- files and quotes -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "safe"),
    [
        ("report.pdf", "report.pdf"),
        ("../../etc/pass\nwd", "pass_wd"),
        ("C:\\Users\\bob\\r\u202efdp.exe", "r_fdp.exe"),
        ("..", "file"),
    ],
)
def test_the_name_of_a_file_is_made_safe_and_what_the_platform_says_is_kept(
    daemon: RunningDaemon, tmp_path: Path, given: str, safe: str
) -> None:
    place = Place(tmp_path).bound(daemon)
    place.comes_in("u1", text="see", downloads=[{"name": given, "content": "x", "id": "AgAD7"}])
    [[file]] = [one["attachments"] for one in received(place)]
    assert (file["name"], file["filename"]) == (safe, given)
    assert (file["source"], file["scripted_file_id"]) == ("scripted", "AgAD7")
    assert Path(file["path"]).read_text() == "x"


def test_a_plain_path_says_nothing_more_than_its_name(daemon: RunningDaemon, tmp_path: Path) -> None:
    place = Place(tmp_path).bound(daemon)
    place.comes_in("u1", text="see", downloads=[{"name": "a.txt", "content": "x"}])
    [[file]] = [one["attachments"] for one in received(place)]
    assert set(file) == {"name", "path", "size", "mime", "sha256"} and file["mime"] == "text/plain"


def test_an_attachment_is_stored_and_read_back_as_it_was() -> None:
    plain = Attachment(name="a", sha256="ab", size=1, mime="text/plain", file="ab/ab")
    full = Attachment(
        name="a", sha256="ab", size=1, mime="text/plain", file="ab/ab",
        source="telegram", filename="../a", platform_id="AgAD7",
    )  # fmt: skip
    assert full.facts()["telegram_file_id"] == "AgAD7"
    assert [Attachment.of(one.facts()) for one in (plain, full)] == [plain, full]


def test_a_quote_is_shown_with_and_without_a_known_message(daemon: RunningDaemon, tmp_path: Path) -> None:
    place = Place(tmp_path).bound(daemon)
    place.comes_in("u1", text="lunch at noon, or at one?", message="m1")
    place.comes_in("u2", text="yes", reply_to="m1", quote="at one")
    place.comes_in("u3", text="no", reply_to="m0", quote="long ago")
    place.comes_in("u4", text="look", forwarded="Eve")
    shown = place.owner.call("turn.preview")["text"]
    first = received(place)[0]["message"]
    assert f'\nin-reply-to: {first} "at one"\n' in shown
    assert '\nquotes: "long ago"\n' in shown and '\nforwarded-from: "Eve"\n' in shown
