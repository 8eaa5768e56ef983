"""Attachments: copied under the hash of their content; which files are refused; nothing hangs."""

from __future__ import annotations

import functools
import hashlib
import io
import os
import socket
import stat
import threading
from pathlib import Path
from typing import Any

import pytest

from hiboss.core.errors import TooLarge
from hiboss.routing import attachments
from hiboss.testing.running_daemon import Answered, RunningDaemon
from tests.support.daemons import daemon_with
from tests.support.parties import Party, agents, at_once, boss, checked_daemon, stored
from tests.support.sweeps import sweep

MIB = 1024 * 1024


def attach(two: tuple[Party, Party], *paths: Path | str) -> list[dict[str, Any]]:
    """Send these files and return what the recipient sees."""
    ada, bob = two
    seen: list[dict[str, Any]] = bob.get(ada.tell(bob, attachments=[str(path) for path in paths]))[
        "attachments"
    ]
    return seen


def refusal(two: tuple[Party, Party], *paths: Path | str) -> str:
    """Return the code of the error; assert that nothing is stored and no copy is left."""
    ada, bob = two
    before, files = stored(ada.daemon), media(ada.daemon)
    code = ada.refusal("envelope.send", to=bob.address, text="x", attachments=[str(path) for path in paths])
    assert stored(ada.daemon) == before and media(ada.daemon) == files
    return code


def media(daemon: RunningDaemon) -> set[str]:
    """Return everything in media/ that is a file: copies, partial copies and marks."""
    top = Path(daemon.home.media)
    return {str(file.relative_to(top)) for file in top.rglob("*") if file.is_file()}


def new_file(directory: Path, name: str = "new.bin") -> Path:
    """Make a file with a content that was never sent before."""
    (directory / name).write_bytes(os.urandom(100))
    return directory / name


def test_a_file_is_copied_under_its_hash_and_described(two: tuple[Party, Party], tmp_path: Path) -> None:
    content = os.urandom(3 * MIB + 17)
    (tmp_path / "Bild.PNG").write_bytes(content)
    (one,) = attach(two, tmp_path / "Bild.PNG")
    digest = hashlib.sha256(content).hexdigest()
    assert (one["name"], one["size"], one["mime"], one["sha256"]) == (
        "Bild.PNG",
        len(content),
        "image/png",
        digest,
    )
    kept = Path(one["path"])
    assert kept.read_bytes() == content and digest in kept.name
    assert Path(two[0].daemon.home.media) in kept.parents


def test_the_copy_stays_when_its_source_is_changed_and_deleted(
    two: tuple[Party, Party], tmp_path: Path
) -> None:
    source = tmp_path / "note.txt"
    source.write_text("first")
    (one,) = attach(two, source)
    source.write_text("second")
    (other,) = attach(two, source)
    source.unlink()
    assert Path(one["path"]).read_text() == "first" and Path(other["path"]).read_text() == "second"
    assert one["path"] != other["path"]


def test_the_same_content_is_kept_once(two: tuple[Party, Party], tmp_path: Path) -> None:
    content = os.urandom(1000)
    for name in ("a.bin", "b.bin"):
        (tmp_path / name).write_bytes(content)
    one, other, again = attach(two, tmp_path / "a.bin", tmp_path / "b.bin", tmp_path / "a.bin")
    assert one["path"] == other["path"] == again["path"] and (one["name"], other["name"]) == (
        "a.bin",
        "b.bin",
    )
    assert len(list(Path(two[0].daemon.home.media).rglob(f"{one['sha256']}*"))) == 1


def test_a_file_alone_is_a_message(two: tuple[Party, Party], tmp_path: Path) -> None:
    (tmp_path / "f").write_text("x")
    ada, bob = two
    got = bob.get(ada.tell(bob, text="", attachments=[str(tmp_path / "f")]))
    assert got["text"] == "" and len(got["attachments"]) == 1


def test_an_empty_file_can_be_attached(two: tuple[Party, Party], tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    (one,) = attach(two, tmp_path / "empty")
    assert one["size"] == 0 and Path(one["path"]).read_bytes() == b""


NAMES = [
    "with space.txt",
    "ünï\U0001f600.txt",
    "new\nline.txt",
    "quote\"'.txt",
    "-rf",
    ".hidden",
    "no-ending",
    "dots...",
    "a.b.tar.gz",
    "x.averyveryverylongending",
    "%s{}\\.txt",
    "n" * 250 + ".txt",
    "e\u0301.jpg",
    "evil.\u202egnp",
    "a.p h",
]


def test_a_name_with_odd_characters_is_kept_and_the_copy_has_a_plain_one(
    two: tuple[Party, Party], tmp_path: Path
) -> None:
    with sweep() as row:
        for name in NAMES:
            with row(ascii(name)):
                (tmp_path / name).write_text(name)
                (one,) = attach(two, tmp_path / name)
                kept = Path(one["path"])
                assert (one["name"], kept.read_text()) == (name, name)
                assert kept.name.isascii() and kept.name.isprintable() and " " not in kept.name
                assert kept.name.startswith(one["sha256"])


def test_copies_are_readable_for_their_owner_alone(two: tuple[Party, Party], tmp_path: Path) -> None:
    file = tmp_path / "open.txt"
    file.write_text("x")
    file.chmod(0o777)
    kept = Path(attach(two, file)[0]["path"])
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert (
        stat.S_IMODE(kept.parent.stat().st_mode) == stat.S_IMODE(kept.parent.parent.stat().st_mode) == 0o700
    )


def test_a_symlink_is_followed_and_lends_its_name(two: tuple[Party, Party], tmp_path: Path) -> None:
    (tmp_path / "real.txt").write_text("real")
    (tmp_path / "link.txt").symlink_to(tmp_path / "real.txt")
    (one,) = attach(two, tmp_path / "link.txt")
    assert one["name"] == "link.txt" and Path(one["path"]).read_text() == "real"


def test_the_same_file_from_many_at_once_is_whole(daemon: RunningDaemon, tmp_path: Path) -> None:
    ada, bob = agents(daemon, 2)
    (tmp_path / "shared").write_bytes(os.urandom(MIB))
    at_once([lambda: ada.send(bob, attachments=[str(tmp_path / "shared")])] * 8)
    (path,) = {one["attachments"][0]["path"] for one in bob.list()}
    assert len(bob.list()) == 8 and Path(path).read_bytes() == (tmp_path / "shared").read_bytes()


# --- the home ------------------------------------------------------------------------


def test_nothing_of_the_home_can_be_attached_whatever_the_way_to_it(
    two: tuple[Party, Party], tmp_path: Path
) -> None:
    home = two[0].daemon.home
    secret = home.profile("boss")
    (tmp_path / "innocent.txt").symlink_to(secret)
    (tmp_path / "door").symlink_to(home.path)
    (tmp_path / "chain").symlink_to(tmp_path / "innocent.txt")
    inside = (
        "hiboss.db",
        "hiboss.db-wal",
        "tokens/boss",
        "logs/daemon.log",
        "daemon.pid",
        "media/../tokens/nex",
    )
    assert all(os.path.exists(os.path.join(home.path, one)) for one in inside)
    ways = [tmp_path / "innocent.txt", tmp_path / "door" / "tokens" / "boss", tmp_path / "chain"]
    ways += [f"{tmp_path}/{os.path.relpath(secret, tmp_path)}", f"/proc/self/root{secret}"]
    ways += [f"{home.path}/{one}" for one in (*inside, "tokens/somebody")]  # also what does not exist
    for way in ways:
        assert refusal(two, way) == "attachment_forbidden", way


def test_a_hard_link_to_a_file_of_the_home_is_refused_and_not_even_opened(tmp_path: Path) -> None:
    with checked_daemon(tmp_path) as daemon:
        ada, bob = agents(daemon, 2)
        for inside in ("tokens/boss", "hiboss.db"):
            link = tmp_path / os.path.basename(inside)
            os.link(os.path.join(daemon.home.path, inside), link)
            assert refusal((ada, bob), link) == "attachment_forbidden"
        # If the daemon opens and closes its own database file, it loses its locks; the next reader would
        # then delete the WAL.
        stored(daemon)
        number = ada.tell(bob)
        daemon.kill()
        daemon.start()
        assert bob.ids() == [number]


def test_a_file_exchanged_for_the_database_after_the_check_costs_no_stored_mail(tmp_path: Path) -> None:
    """Links on the way are resolved once; what lies at the end is checked when it is open."""
    with checked_daemon(tmp_path) as daemon:
        ada, (bob,) = boss(daemon), agents(daemon, 1)  # of an agent no file with a second name is taken
        (tmp_path / "plain").write_text("plain")
        over = threading.Event()

        def exchange() -> None:
            while not over.is_set():
                for source in (daemon.home.database, tmp_path / "plain"):
                    os.link(source, tmp_path / "next")
                    os.replace(tmp_path / "next", tmp_path / "file")
                    (tmp_path / "next").unlink(missing_ok=True)

        (tmp_path / "file").write_text("plain")
        thread = threading.Thread(target=exchange)
        thread.start()
        sends = [lambda: ada.send(bob, attachments=[str(tmp_path / "file")])] * 4
        answers = [answer for _ in range(10) for answer in at_once(sends)]
        over.set()
        thread.join()
        refused = [one for one in answers if isinstance(one, Answered)]
        assert {one.stable_code for one in refused} <= {"attachment_forbidden"}
        stored(daemon)  # another reader: it would delete the WAL if the locks were lost
        number = ada.tell(bob)
        daemon.kill()
        daemon.start()
        assert number in bob.ids() and len(bob.ids(page_size=100)) == len(answers) - len(refused) + 1


def test_a_file_from_media_can_be_passed_on(two: tuple[Party, Party], tmp_path: Path) -> None:
    (tmp_path / "pass.txt").write_text("pass it on")
    (first,) = attach(two, tmp_path / "pass.txt")
    (second,) = attach((two[1], two[0]), first["path"])
    assert second["sha256"] == first["sha256"] and second["path"] == first["path"]
    assert Path(first["path"]).read_text() == "pass it on"


def test_media_may_be_a_link_to_another_disk_but_not_to_another_place_of_the_home(tmp_path: Path) -> None:
    with checked_daemon(tmp_path) as daemon:
        ada, bob = agents(daemon, 2)
        kept = Path(daemon.home.media)
        kept.rename(tmp_path / "disk")
        kept.symlink_to(tmp_path / "disk")
        (first,) = attach((ada, bob), new_file(tmp_path))
        assert Path(first["path"]).is_file()
        kept.unlink()
        kept.symlink_to(daemon.home.tokens)
        before = sorted(os.listdir(daemon.home.tokens))
        code = ada.refusal("envelope.send", to=bob.address, attachments=[str(new_file(tmp_path))])
        assert code == "home_unusable"
        assert ada.refusal("envelope.send", to=bob.address, attachments=[daemon.home.profile("boss")]) != "ok"
        assert sorted(os.listdir(daemon.home.tokens)) == before
        kept.unlink()
        (tmp_path / "disk").rename(kept)


# --- nothing is left over ------------------------------------------------------------


def test_a_refused_send_leaves_no_copy_in_media(two: tuple[Party, Party], tmp_path: Path) -> None:
    ada, bob = two
    before = media(ada.daemon)
    file = str(new_file(tmp_path))
    refused = [
        ada.refusal("envelope.send", attachments=[file], **draft)
        for draft in (
            {"to": "agent:nobody"},
            {"to": [bob.address, "agent:nobody"]},
            {"to": "channel:folder:nowhere"},
            {"reply_to": "e999999"},
            {"to": bob.address, "text": "x" * 2_000_000},
        )
    ]
    assert refused == ["unknown_recipient", "unknown_recipient", "not_bound", "not_found", "too_large"]
    assert refusal(two, file, tmp_path / "missing") == "attachment_missing"
    assert ada.refusal("cron.create", at="+1h", to="agent:nobody", attachments=[file]) == "unknown_recipient"
    schedule = ada.call("cron.create", at="+1h", to=bob.address, text="x")["id"]
    assert ada.refusal("cron.set", id=schedule, to="agent:nobody", attachments=[file]) == "unknown_recipient"
    assert media(ada.daemon) == before
    (one,) = attach(two, file)
    assert media(ada.daemon) - before == {os.path.relpath(one["path"], ada.daemon.home.media)}


def test_of_sends_that_exclude_each_other_only_the_files_of_the_stored_one_stay(
    two: tuple[Party, Party], tmp_path: Path
) -> None:
    """With one key for different content, the refusal comes when the files are copied already."""
    ada, bob = two
    for round_ in range(5):
        before = media(ada.daemon)
        files = [new_file(tmp_path, f"{round_}-{n}.bin") for n in range(4)]
        shared = new_file(tmp_path, f"{round_}-shared.bin")

        key = f"only-{round_}-{tmp_path.name}"
        drafts = [{"text": file.name, "key": key, "attachments": [str(file), str(shared)]} for file in files]
        found = at_once([functools.partial(ada.send, bob, **draft) for draft in drafts])
        (sent,) = [one for one in found if not isinstance(one, Answered)]
        assert {one.stable_code for one in found if isinstance(one, Answered)} == {"key_reused"}
        paths = [one["path"] for one in bob.get(sent["ids"][0])["attachments"]]
        assert media(ada.daemon) - before == {os.path.relpath(one, ada.daemon.home.media) for one in paths}


def test_a_refused_send_takes_no_file_from_a_message_with_the_same_content(
    two: tuple[Party, Party], tmp_path: Path
) -> None:
    ada, bob = two
    for round_ in range(5):
        file = new_file(tmp_path, f"{round_}.bin")
        key = f"same-{round_}-{tmp_path.name}"
        drafts = [{"text": f"{n}", "key": key} for n in range(3)] + [{}] * 2 + [{"key": f"{key}-again"}] * 3
        at_once([functools.partial(ada.send, bob, attachments=[str(file)], **draft) for draft in drafts])
        paths = {one["attachments"][0]["path"] for one in bob.list(page_size=4)}
        assert len(paths) == 1 and all(Path(path).read_bytes() == file.read_bytes() for path in paths)
    ada.daemon.check()


def test_the_files_of_a_schedule_stay_for_it(two: tuple[Party, Party], tmp_path: Path) -> None:
    ada, bob = two
    files = [new_file(tmp_path, name) for name in ("first.bin", "second.bin")]
    before = media(ada.daemon)
    made = ada.call("cron.create", at="+1h", to=bob.address, attachments=[str(files[0])])
    ada.call("cron.set", id=made["id"], attachments=[str(files[1])])
    assert ada.refusal("envelope.send", to="agent:nobody", attachments=[str(files[1])]) == "unknown_recipient"
    assert not [name for name in media(ada.daemon) - before if name.startswith(".")]
    (number,) = ada.call("cron.run", id=made["id"])["ids"]
    (one,) = bob.get(number)["attachments"]
    assert Path(one["path"]).read_bytes() == files[1].read_bytes()


# --- not a regular file --------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "code"),
    [
        *[
            (one, "attachment_unreadable")
            for one in ("file.txt", "./file.txt", "../file.txt", "~/file.txt", "")
        ],
        ("/" + "a" * 300, "attachment_unreadable"),
        ("/a" * 5000, "invalid_params"),
        ("/etc/host\x00name", "bad_text"),
        ("/nowhere/at/all", "attachment_missing"),
    ],
    ids=lambda one: ascii(one)[:30],
)
def test_a_path_that_leads_to_no_file_is_refused(two: tuple[Party, Party], path: str, code: str) -> None:
    assert refusal((boss(two[0].daemon), two[1]), path) == code


def test_what_is_no_ordinary_file_is_refused_and_hangs_nobody(
    two: tuple[Party, Party], tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "file").write_text("x")
    (tmp_path / "dangling").symlink_to(tmp_path / "missing")
    assert refusal(two, tmp_path / "dangling") == "attachment_missing"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "s"))
        listener.listen()
        for path in ("fifo", "s", "", "loop", "file/below"):
            assert refusal(two, tmp_path / path) == "attachment_unreadable", path
    for device in ("/dev/zero", "/dev/null", "/", "/proc/self/environ"):
        assert refusal((boss(two[0].daemon), two[1]), device) == "attachment_unreadable"


@pytest.mark.parametrize("ending", ["/", "/.", "//"])
def test_a_file_written_like_a_directory_never_loses_its_name(
    two: tuple[Party, Party], tmp_path: Path, ending: str
) -> None:
    ada, bob = two
    (tmp_path / "f.txt").write_text("x")
    sent = at_once([lambda: ada.send(bob, attachments=[f"{tmp_path}/f.txt{ending}"])])
    assert [file["name"] for one in bob.list() for file in one["attachments"]] in ([], ["f.txt"]), sent


# --- sizes ---------------------------------------------------------------------------


def test_a_file_one_byte_over_50_mebibytes_is_refused(two: tuple[Party, Party], tmp_path: Path) -> None:
    with open(tmp_path / "sparse", "wb") as file:
        file.truncate(50 * MIB + 1)
    assert refusal(two, tmp_path / "sparse") == "too_large"


def test_a_file_of_exactly_the_limit_is_taken_and_one_that_grows_is_measured(tmp_path: Path) -> None:
    with daemon_with(tmp_path, attachment_bytes=1000) as daemon:
        ada, bob = agents(daemon, 2)
        (tmp_path / "whole").write_bytes(b"x" * 1000)
        (tmp_path / "over").write_bytes(b"x" * 1001)
        assert attach((ada, bob), tmp_path / "whole")[0]["size"] == 1000
        assert refusal((ada, bob), tmp_path / "over") == "too_large"
    with pytest.raises(TooLarge):  # whatever size it had when it was opened
        attachments._write(io.BytesIO(b"x" * 1001), str(tmp_path / "copy"), "grown", 1000)
