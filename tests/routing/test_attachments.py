"""Attachments: copied under the hash of their content; which files are refused; nothing hangs."""

from __future__ import annotations

import hashlib
import os
import socket
import stat
from pathlib import Path
from typing import Any

import pytest

from hiboss.testing.running_daemon import RunningDaemon
from tests.support.daemons import daemon_with
from tests.support.parties import Party, agents, at_once, checked_daemon, stored

MIB = 1024 * 1024


def attach(two: tuple[Party, Party], *paths: Path | str) -> list[dict[str, Any]]:
    """Send these files and return what the recipient sees."""
    ada, bob = two
    seen: list[dict[str, Any]] = bob.get(ada.tell(bob, attachments=[str(path) for path in paths]))[
        "attachments"
    ]
    return seen


def refusal(two: tuple[Party, Party], *paths: Path | str) -> str:
    """Return the code of the error; assert that nothing is stored and no partial copy is left."""
    ada, bob = two
    before = stored(ada.daemon)
    code = ada.refusal("envelope.send", to=bob.address, text="x", attachments=[str(path) for path in paths])
    assert stored(ada.daemon) == before
    assert not list(Path(ada.daemon.home.media).glob(".incoming-*"))
    return code


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
    media = Path(two[0].daemon.home.media)
    assert len(list(media.rglob(f"{one['sha256']}*"))) == 1


def test_several_files_keep_their_order(two: tuple[Party, Party], tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("z.txt", "a.txt", "m.txt")]
    for file in files:
        file.write_text(file.name)
    assert [one["name"] for one in attach(two, *files)] == ["z.txt", "a.txt", "m.txt"]


def test_a_file_alone_is_a_message(two: tuple[Party, Party], tmp_path: Path) -> None:
    (tmp_path / "f").write_text("x")
    ada, bob = two
    got = bob.get(ada.tell(bob, text="", attachments=[str(tmp_path / "f")]))
    assert got["text"] == "" and len(got["attachments"]) == 1


def test_an_empty_file_can_be_attached(two: tuple[Party, Party], tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    (one,) = attach(two, tmp_path / "empty")
    assert one["size"] == 0 and Path(one["path"]).read_bytes() == b""


@pytest.mark.parametrize(
    "name",
    [
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
    ],
    ids=ascii,
)
def test_a_name_with_odd_characters_is_kept_and_the_copy_has_a_plain_one(
    two: tuple[Party, Party], tmp_path: Path, name: str
) -> None:
    (tmp_path / name).write_text(name)
    (one,) = attach(two, tmp_path / name)
    assert one["name"] == name
    kept = Path(one["path"])
    assert kept.read_text() == name
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


@pytest.mark.parametrize(
    "inside",
    ["hiboss.db", "hiboss.db-wal", "tokens/boss", "logs/daemon.log", "daemon.pid", "media/../tokens/nex"],
)
def test_nothing_of_the_home_can_be_attached(two: tuple[Party, Party], inside: str) -> None:
    home = two[0].daemon.home
    assert os.path.exists(os.path.join(home.path, inside))
    assert refusal(two, f"{home.path}/{inside}") == "attachment_forbidden"


def test_a_way_around_into_the_home_is_refused(two: tuple[Party, Party], tmp_path: Path) -> None:
    home = two[0].daemon.home
    (tmp_path / "innocent.txt").symlink_to(home.profile("boss"))
    (tmp_path / "door").symlink_to(home.path)
    (tmp_path / "chain").symlink_to(tmp_path / "innocent.txt")
    ways = [tmp_path / "innocent.txt", tmp_path / "door" / "tokens" / "boss", tmp_path / "chain"]
    ways += [
        f"{tmp_path}/{os.path.relpath(home.profile('boss'), tmp_path)}",
        f"/proc/self/root{home.profile('boss')}",
    ]
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


def test_what_does_not_exist_in_the_home_is_forbidden_all_the_same(two: tuple[Party, Party]) -> None:
    assert refusal(two, f"{two[0].daemon.home.path}/tokens/somebody") == "attachment_forbidden"


def test_a_file_from_media_can_be_passed_on(two: tuple[Party, Party], tmp_path: Path) -> None:
    (tmp_path / "pass.txt").write_text("pass it on")
    (first,) = attach(two, tmp_path / "pass.txt")
    (second,) = attach((two[1], two[0]), first["path"])
    assert second["sha256"] == first["sha256"] and second["path"] == first["path"]
    assert Path(first["path"]).read_text() == "pass it on"


# --- not a regular file --------------------------------------------------------------


def test_a_missing_file_is_refused(two: tuple[Party, Party], tmp_path: Path) -> None:
    assert refusal(two, tmp_path / "missing") == "attachment_missing"
    (tmp_path / "dangling").symlink_to(tmp_path / "missing")
    assert refusal(two, tmp_path / "dangling") == "attachment_missing"


def test_one_missing_among_good_ones_sends_nothing(two: tuple[Party, Party], tmp_path: Path) -> None:
    (tmp_path / "good").write_text("x")
    assert refusal(two, tmp_path / "good", tmp_path / "missing") == "attachment_missing"
    assert two[1].list() == []


def test_what_is_no_ordinary_file_is_refused_and_hangs_nobody(
    two: tuple[Party, Party], tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "file").write_text("x")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "s"))
        listener.listen()
        for path in ("fifo", "s", "", "loop", "file/below"):
            assert refusal(two, tmp_path / path) == "attachment_unreadable", path
    for device in ("/dev/zero", "/dev/null", "/"):
        assert refusal(two, device) == "attachment_unreadable"


def test_a_path_longer_than_any_file_has_is_refused(two: tuple[Party, Party]) -> None:
    assert refusal(two, "/" + "a" * 300) == "attachment_unreadable"
    assert refusal(two, "/a" * 5000) == "attachment_unreadable"


@pytest.mark.parametrize("path", ["file.txt", "./file.txt", "../file.txt", "~/file.txt", ""])
def test_a_relative_path_is_refused(two: tuple[Party, Party], path: str) -> None:
    assert refusal(two, path) == "attachment_unreadable"


def test_a_path_with_a_nul_character_is_refused(two: tuple[Party, Party]) -> None:
    assert refusal(two, "/etc/host\x00name") == "bad_text"


@pytest.mark.parametrize("ending", ["/", "/.", "//"])
def test_a_file_written_like_a_directory_never_loses_its_name(
    two: tuple[Party, Party], tmp_path: Path, ending: str
) -> None:
    ada, bob = two
    (tmp_path / "f.txt").write_text("x")
    sent = at_once([lambda: ada.send(bob, attachments=[f"{tmp_path}/f.txt{ending}"])])
    names = [file["name"] for one in bob.list() for file in one["attachments"]]
    assert names in ([], ["f.txt"]), sent


# --- sizes ---------------------------------------------------------------------------


def test_a_file_one_byte_over_50_mebibytes_is_refused(two: tuple[Party, Party], tmp_path: Path) -> None:
    with open(tmp_path / "sparse", "wb") as file:
        file.truncate(50 * MIB + 1)
    assert refusal(two, tmp_path / "sparse") == "too_large"


def test_a_file_of_exactly_the_limit_is_taken_and_one_that_hides_its_size_is_measured(tmp_path: Path) -> None:
    with daemon_with(tmp_path, attachment_bytes=1000) as daemon:
        ada, bob = agents(daemon, 2)
        (tmp_path / "whole").write_bytes(b"x" * 1000)
        (tmp_path / "over").write_bytes(b"x" * 1001)
        assert attach((ada, bob), tmp_path / "whole")[0]["size"] == 1000
        assert refusal((ada, bob), tmp_path / "over") == "too_large"
        assert os.stat("/proc/cpuinfo").st_size == 0 and len(Path("/proc/cpuinfo").read_bytes()) > 1000
        assert refusal((ada, bob), "/proc/cpuinfo") == "too_large"
