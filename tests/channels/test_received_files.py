"""Files that come in with what their platform says of them, and with plain paths."""

from __future__ import annotations

from pathlib import Path

import pytest

from hiboss.core.envelope import Attachment
from hiboss.testing.running_daemon import RunningDaemon
from tests.channels.stored_updates import received
from tests.support.scripted_channels import Place


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
    for one in (plain, full):
        assert Attachment.of(one.facts()) == one


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
