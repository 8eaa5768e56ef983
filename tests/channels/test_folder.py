"""The folder adapter in a running daemon: files out, files in, and files that cannot be messages."""

from __future__ import annotations

import json
import os
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hiboss.testing.running_daemon import RunningDaemon
from tests.channels.bound_folder import Folder
from tests.support.parties import boss
from tests.support.scripted_channels import daemon_with_channels
from tests.support.waits import wait_until


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDaemon]:
    env = {"HIBOSS_LIMITS_TEXT_BYTES": "2000", "HIBOSS_LIMITS_ATTACHMENT_BYTES": "5000"}
    with daemon_with_channels(tmp_path_factory.mktemp("d"), **env) as running:
        yield running


@pytest.fixture
def folder(daemon: RunningDaemon, tmp_path: Path) -> Folder:
    return Folder(daemon, tmp_path / f"folder-{tmp_path.name.replace('_', '-')}")


# --- out -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("type_", "ending", "text"),
    [
        ("text", ".txt", "ä\r\nb\n"),
        ("markdown", ".md", "# t"),
        ("json", ".json", '{"a": 1}'),
        ("html", ".html", "<p>"),
    ],
)
def test_a_post_becomes_a_file_named_after_its_envelope(
    folder: Folder, type_: str, ending: str, text: str
) -> None:
    number = folder.send(text, type=type_)
    assert folder.out() == {f"{number}{ending}": text.encode()}


def test_json_with_the_name_of_its_sender_in_front_is_a_text(folder: Folder) -> None:
    chief = boss(folder.daemon)
    chief.call("boss.set", reach=folder.address)
    try:
        number = folder.send('{"a": 1}', type="json")
        assert folder.out() == {f"{number}.txt": f'{folder.owner.name}:\n{{"a": 1}}'.encode()}
    finally:
        chief.call("boss.set", reach="")


def test_attachments_lie_beside_the_text_and_keep_their_names(folder: Folder, tmp_path: Path) -> None:
    names = ["a b.pdf", ".hidden", "ü" * 120 + ".png", "x" * 250, "no-ending"]
    for name in names:
        (tmp_path / name).write_bytes(name.encode())
    again = tmp_path / "again"
    again.mkdir()
    (again / "a b.pdf").write_bytes(b"another of the same name")
    number = folder.send(
        "see", attachments=[*[str(tmp_path / name) for name in names], str(again / "a b.pdf")]
    )
    found = folder.out()
    assert found.pop(f"{number}.txt") == b"see"
    assert (found[f"{number}-a b.pdf"], found[f"{number}-.hidden"]) == (b"a b.pdf", b".hidden")
    assert sorted(found.values()) == sorted([*[name.encode() for name in names], b"another of the same name"])
    assert any(name.endswith(".png") for name in found)
    assert all(name.startswith(f"{number}-") for name in found)


def test_an_attachment_that_is_gone_fails_that_envelope_only(folder: Folder, tmp_path: Path) -> None:
    file = tmp_path / "soon-gone.bin"
    file.write_bytes(tmp_path.name.encode())
    boss(folder.daemon).call("lane.pause", address=folder.address)
    (lost,) = folder.owner.send(folder.address, text="x", attachments=[str(file)])["ids"]
    copy = Path(folder.owner.get(lost)["attachments"][0]["path"])
    copy.unlink()
    boss(folder.daemon).call("lane.resume", address=folder.address)
    wait_until(lambda: folder.owner.get(lost)["status"] == "failed")
    assert folder.owner.get(lost)["last_error"]["kind"] == "file_missing"
    folder.send("next")
    shutil.copy(file, copy)  # for the checks at the end


# --- in ------------------------------------------------------------------------------


def test_text_markdown_and_other_files_become_messages(folder: Folder) -> None:
    folder.put("a.txt", "plain\n", at=1)
    folder.put("b.MD", "# heading\r\n\r\n", at=2)
    folder.put("c.txt", b"\xef\xbb\xbfwith a mark", at=3)
    folder.put("d.png", b"\x89PNG", at=4)
    folder.put("no-ending", b"\xff\x00", at=5)
    found = folder.heard(5)
    assert [one["text"] for one in found] == ["plain", "# heading", "with a mark", "", ""]
    assert {one["from"] for one in found} == {folder.address}
    assert {one["to"] for one in found} == {folder.owner.address}
    assert [
        (one["attachments"][0]["name"], Path(one["attachments"][0]["path"]).read_bytes()) for one in found[3:]
    ] == [("d.png", b"\x89PNG"), ("no-ending", b"\xff\x00")]
    wait_until(lambda: not os.listdir(folder.root / ".taken"))
    assert folder.waiting() == []


def test_json_describes_a_message_with_its_author_and_group(folder: Folder) -> None:
    facts = {
        "text": "hi",
        "subject": "greeting",
        "author": {"name": "Zoë", "username": "zoe", "id": "7"},
        "group": "Team",
    }
    folder.put("m.json", json.dumps(facts))
    (found,) = folder.heard(1)
    assert (found["text"], found["subject"], found["from_name"]) == ("hi", "greeting", "Zoë")
    assert found["channel"]["author"] == facts["author"]
    assert (found["channel"]["chat"]["kind"], found["channel"]["chat"]["title"]) == ("group", "Team")


def test_answers_tie_a_reply_to_the_file_it_answers(folder: Folder) -> None:
    number = folder.send("question")
    folder.put("a.json", json.dumps({"text": "to ours", "reply_to": f"{number}.txt"}), at=1)
    folder.put("b.json", json.dumps({"text": "to theirs", "reply_to": "a.json"}), at=2)
    folder.put("c.json", json.dumps({"text": "to nothing", "reply_to": "unheard-of.txt"}), at=3)
    ours, theirs, nothing = folder.heard(3)
    assert ours["reply_to"] == folder.owner.get(number)["message"]
    assert theirs["reply_to"] == ours["message"]
    assert nothing["reply_to"] is None


def test_several_files_come_in_the_order_of_their_times(folder: Folder) -> None:
    times = {"z.txt": 10, "a.txt": 30, "m.txt": 20, "k.txt": 5}
    staged = folder.root / "staged"
    staged.mkdir()
    for name, at in times.items():
        (staged / name).write_text(name)
        os.utime(staged / name, (at, at))
    (folder.root / "in").rmdir()
    staged.rename(folder.root / "in")  # all with the same time
    assert [one["text"] for one in folder.heard(4)] == ["k.txt", "z.txt", "m.txt", "a.txt"]


def test_the_same_name_may_come_again(folder: Folder) -> None:
    for text in ("first", "second"):
        folder.put("same.txt", text)
        wait_until(lambda: folder.waiting() == [])
    assert [one["text"] for one in folder.heard(2)] == ["first", "second"]


def test_what_is_no_finished_plain_file_is_left_alone(folder: Folder, tmp_path: Path) -> None:
    inbox = folder.root / "in"
    (inbox / "directory").mkdir()
    (inbox / "directory" / "inside.txt").write_text("x")
    (tmp_path / "elsewhere.txt").write_text("secret")
    (inbox / "link.txt").symlink_to(tmp_path / "elsewhere.txt")
    (inbox / "dangling.txt").symlink_to(tmp_path / "nowhere")
    os.mkfifo(inbox / "pipe.txt")
    with socket.socket(socket.AF_UNIX) as listener:
        here = os.getcwd()
        os.chdir(inbox)  # the path of a socket must be short
        try:
            listener.bind("socket.txt")
        finally:
            os.chdir(here)
        for name in ("a.part", "b.tmp", "c.crdownload", "d.txt~", ".e.txt", "f.PART"):
            (inbox / name).write_text("not yet")
        before = folder.waiting()
        folder.put("last.txt", "after all of them")
        assert [one["text"] for one in folder.heard(1)] == ["after all of them"]
        assert folder.waiting() == before
    assert (folder.refused(), folder.shown()["state"]) == ({}, "running")


BROKEN: dict[str, tuple[str | bytes, str]] = {
    "empty.txt": ("", "it is empty"),
    "blank.md": (" \n\t\n", "it is empty"),
    "empty.json": ("", "it is not JSON"),
    "latin.txt": ("grüße".encode("latin-1"), "it is not UTF-8 text"),
    "latin.json": ('{"text": "grüße"}'.encode("latin-1"), "it is not UTF-8 text"),
    "torn.json": ('{"text": ', "it is not JSON"),
    "list.json": ("[]", "it must be an object"),
    "deep.json": ("[" * 100_000, "it is"),
    "number.json": ('{"text": ' + "1" * 5000 + "}", "it is"),
    "near.json": ('{"txt": "x"}', "unknown key txt (did you mean text?)"),
    "far.json": ('{"priority": "x"}', "unknown key priority; a message can have: text"),
    "kind.json": ('{"text": 5}', "text must be a text"),
    "author.json": ('{"text": "x", "author": {"name": 5}}', "author must be an object with text values"),
    "notext.json": ('{"subject": "x"}', "it is empty"),
    "surrogate.json": (r'{"text": "\ud800"}', ""),
    "surrogate-author.json": (r'{"text": "x", "author": {"\ud800": "x"}}', ""),
    "surrogate-name.json": (r'{"text": "x", "author": {"name": "\ud800"}}', ""),
    "nul.txt": ("a\0b", ""),
    "long.txt": ("x" * 2001, "2000"),
    "large.bin": (b"x" * 5001, "5000"),
}


def test_what_cannot_be_a_message_is_set_aside_with_the_reason_and_holds_up_nothing(folder: Folder) -> None:
    for number, (name, (content, _)) in enumerate(BROKEN.items()):
        folder.put(name, content, at=number + 1)
    folder.put("good.txt", "behind them all", at=1000)
    assert [one["text"] for one in folder.heard(1)] == ["behind them all"]
    wait_until(lambda: not os.listdir(folder.root / ".taken"))
    refused = folder.refused()
    assert sorted(refused) == sorted(BROKEN)
    for name, (content, reason) in BROKEN.items():
        assert refused[name].strip() and reason in refused[name]
        data = content.encode() if isinstance(content, str) else content
        assert (folder.root / "broken" / name).read_bytes() == data
    assert folder.shown()["last_error"] is None


def test_names_of_all_kinds_come_in_and_go_aside(folder: Folder) -> None:
    names = ["ü" * 120 + ".json", "x" * 250 + ".json", "new\nline.json", "-rf.json", "a.b.c.json"]
    for number, name in enumerate([*names, os.fsdecode(b"latin-\xe4.json")]):
        folder.put(name, "[]", at=number + 1)
    folder.put(os.fsdecode(b"text-\xe4.txt"), "of a strange name", at=50)
    folder.put(os.fsdecode(b"file-\xe4.bin"), "a file of a strange name", at=52)
    folder.put(os.fsdecode(b"\xe4" * 250 + b".bin"), "a file of a long strange name", at=53)
    folder.put("line\nbreak.txt", "of two lines", at=51)
    folder.put("good.txt", "behind them all", at=100)
    wait_until(lambda: "behind them all" in [one["text"] for one in folder.owner.list()])
    wait_until(lambda: not os.listdir(folder.root / ".taken"))
    texts = [one["text"] for one in folder.owner.list(oldest_first=True)]
    broken = os.listdir(folder.root / "broken")
    assert "of two lines" in texts
    assert "of a strange name" in texts  # a name that is not UTF-8 is shown with replacement characters
    names_shown = [
        file["name"] for one in folder.owner.list(oldest_first=True) for file in one["attachments"]
    ]
    assert names_shown == ["file-\ufffd.bin", "\ufffd" * 72 + ".bin"]
    assert len([name for name in broken if not name.endswith(".reason.txt")]) >= len(names) + 1
    assert len(broken) % 2 == 0
    assert folder.shown()["last_error"] is None


@pytest.mark.parametrize("name", ["twice.json", "ü" * 125 + ".json"], ids=["short", "long"])
def test_of_two_broken_files_of_one_name_both_are_kept(folder: Folder, name: str) -> None:
    for content in ("[1]", "[2]"):
        folder.put(name, content)
        wait_until(lambda: folder.waiting() == [] and not os.listdir(folder.root / ".taken"))
    kept = [file for file in (folder.root / "broken").iterdir() if not file.name.endswith(".reason.txt")]
    assert sorted(file.read_text() for file in kept) == ["[1]", "[2]"]
    assert len(folder.refused()) == 2


def test_reasons_lie_in_broken_however_deep_the_folder_is(daemon: RunningDaemon, tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 100) / ("e" * 100) / "deep-folder"
    deep.mkdir(parents=True)
    folder = Folder(daemon, deep)
    folder.put("x.json", "[]")
    wait_until(lambda: folder.refused())
    assert list(folder.refused()) == ["x.json"]
    assert sorted(os.listdir(deep)) == [".taken", "broken", "in", "out"]


# --- the folder itself ---------------------------------------------------------------


def test_a_folder_that_is_away_is_waited_for_and_then_goes_on_both_ways(folder: Folder) -> None:
    folder.send("before")
    shutil.rmtree(folder.root)
    wait_until(lambda: folder.shown()["state"] == "failed")
    (number,) = folder.owner.send(folder.address, text="after")["ids"]
    wait_until(lambda: folder.owner.get(number)["attempts"] == 1)
    assert not folder.root.exists()  # nothing may be written below a mount point that is not mounted
    folder.root.mkdir()
    wait_until(lambda: folder.owner.get(number)["status"] == "done")
    assert folder.out() == {f"{number}.txt": b"after"}
    wait_until(lambda: folder.shown()["state"] == "running")
    folder.put("in.txt", "heard")
    assert [one["text"] for one in folder.heard(1)] == ["heard"]


def test_a_folder_that_cannot_be_written_makes_the_lane_wait_and_says_so(folder: Folder) -> None:
    out = folder.root / "out"
    out.rmdir()
    out.write_text("in the way")
    (number,) = folder.owner.send(folder.address, text="held up")["ids"]

    def lane() -> dict[str, Any]:
        lanes = boss(folder.daemon).call("lane.list")["lanes"]
        return next(one for one in lanes if one["address"] == folder.address)

    wait_until(lambda: lane()["failures"] == 1)
    assert str(folder.root) in lane()["last_error"]
    folder.put("in.txt", "coming in still works")
    folder.heard(1)
    out.unlink()
    out.mkdir()
    boss(folder.daemon).call("lane.retry", address=folder.address)
    wait_until(lambda: folder.owner.get(number)["status"] == "done")
    assert folder.out() == {f"{number}.txt": b"held up"}


def test_out_taken_away_alone_is_made_again(folder: Folder) -> None:
    """Somebody may delete the directories."""
    shutil.rmtree(folder.root / "out")
    (number,) = folder.owner.send(folder.address, text="x")["ids"]
    wait_until(
        lambda: folder.owner.get(number)["attempts"] == 1 or folder.owner.get(number)["status"] == "done"
    )
    boss(folder.daemon).call("lane.retry", address=folder.address)
    wait_until(lambda: folder.owner.get(number)["status"] == "done", 5)


@pytest.mark.parametrize("where", ["home", "inside", "around"])
def test_the_house_itself_is_no_channel(daemon: RunningDaemon, where: str) -> None:
    home = Path(daemon.home.path)
    path = {"home": home, "inside": home / "media", "around": home.parent}[where]
    before = sorted(os.listdir(home.parent))
    code = boss(daemon).refusal("agent.bind", name="nex", adapter_type="folder", settings={"path": str(path)})
    assert code == "invalid_params"
    assert sorted(os.listdir(home.parent)) == before


def test_two_links_to_one_folder_are_one_binding(folder: Folder, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(folder.root)
    answer = boss(folder.daemon).call(
        "agent.bind", name=folder.owner.name, adapter_type="folder", settings={"path": str(link)}
    )
    assert (answer["binding"], answer["created"]) == (folder.binding, False)
