"""Where callers may attach files from: the daemon reads with its own rights, and they may have fewer."""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hiboss.testing.running_daemon import Answered, RunningDaemon
from tests.support.attached_sessions import room
from tests.support.daemons import daemon_with
from tests.support.parties import Party, agent, at_once, boss, person, stored
from tests.support.shell_agents import Worker

_numbers = itertools.count(1)


class Desk:
    """An agent with a workspace, a directory that the setting allows, and a private file outside of both."""

    def __init__(self, daemon: RunningDaemon, shared: Path, directory: Path) -> None:
        self.daemon, self.shared, self.directory = daemon, shared, directory
        self.workspace = directory / "workspace"
        self.workspace.mkdir()
        self.private = self.file("auth.json")
        self.agent = agent(daemon, workspace=str(self.workspace))

    def file(self, name: str, directory: Path | None = None) -> Path:
        path = (directory or self.directory) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"content of {path}")
        return path

    def sent(self, path: Path | str, sender: Party | None = None) -> str:
        """Send a file to its own agent, and return what was stored."""
        sender = sender or self.agent
        number = sender.tell(self.agent, attachments=[str(path)])
        return Path(self.agent.get(number)["attachments"][0]["path"]).read_text()

    def refused(self, path: Path | str, sender: Party | None = None) -> Answered:
        """Return the error of an attempt; nothing is stored by it."""
        before = stored(self.daemon)
        with pytest.raises(Answered) as caught:
            (sender or self.agent).send(self.agent, attachments=[str(path)])
        assert stored(self.daemon) == before
        return caught.value


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("shared")


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory, shared: Path) -> Iterator[RunningDaemon]:
    """A daemon whose agents attach from the directory `shared` only, and from their workspaces."""
    with daemon_with(tmp_path_factory.mktemp("c"), attachment_roots=str(shared)) as running:
        yield running
        running.check()


@pytest.fixture
def desk(closed: RunningDaemon, shared: Path, tmp_path: Path) -> Desk:
    return Desk(closed, shared, tmp_path)


def test_an_agent_attaches_files_of_its_workspace_and_of_the_setting_and_no_others(desk: Desk) -> None:
    inside = desk.file("deep/plan.txt", desk.workspace)
    shared = desk.file(f"{next(_numbers)}.txt", desk.shared)
    assert desk.sent(inside) == f"content of {inside}" and desk.sent(shared) == f"content of {shared}"
    assert desk.sent(desk.private, boss(desk.daemon)) == f"content of {desk.private}"
    error = desk.refused(desk.private)
    assert error.stable_code == "attachment_outside"
    for word in (str(desk.workspace), str(desk.shared), "attachments.roots", "copy it"):
        assert word in error.message
    ann = person(desk.daemon)
    assert desk.sent(shared, ann) == f"content of {shared}"
    assert desk.refused(inside, ann).stable_code == "attachment_outside"


def test_no_link_leads_out_of_a_workspace(desk: Desk, tmp_path: Path) -> None:
    (desk.workspace / "inner").symlink_to(desk.file("real.txt", desk.workspace))
    assert desk.sent(desk.workspace / "inner") == f"content of {desk.workspace / 'real.txt'}"
    (tmp_path / "alias").symlink_to(desk.workspace)
    assert desk.sent(tmp_path / "alias" / "real.txt") == f"content of {desk.workspace / 'real.txt'}"

    (desk.workspace / "file").symlink_to(desk.private)
    (desk.workspace / "door").symlink_to(tmp_path)
    for way in ("file", "door/auth.json", "../auth.json", "inner/../../auth.json"):
        assert desk.refused(f"{desk.workspace}/{way}").stable_code == "attachment_outside", way
    os.link(desk.private, desk.workspace / "hard")
    error = desk.refused(desk.workspace / "hard")
    assert error.stable_code == "attachment_unreadable" and "copy it, and attach the copy" in error.message
    assert desk.sent(desk.workspace / "hard", boss(desk.daemon)) == f"content of {desk.private}"


def test_a_directory_exchanged_for_a_link_while_it_is_read_gives_nothing_private(desk: Desk) -> None:
    desk.file("turn/auth.json", desk.workspace)
    place, aside, over = desk.workspace / "turn", desk.workspace / "aside", threading.Event()

    def exchange() -> None:
        while not over.is_set():
            place.rename(aside)
            place.symlink_to(desk.directory)
            place.unlink()
            aside.rename(place)

    thread = threading.Thread(target=exchange)
    thread.start()
    try:
        send = lambda: desk.sent(place / "auth.json")  # noqa: E731
        answers = [answer for _ in range(50) for answer in at_once([send] * 4)]
    finally:
        over.set()
        thread.join()
    assert desk.sent(place / "auth.json") == f"content of {place / 'auth.json'}"
    assert {one for one in answers if isinstance(one, str)} <= {f"content of {place / 'auth.json'}"}


def test_the_workspace_that_an_agent_has_in_the_home_is_its_own_alone(closed: RunningDaemon) -> None:
    kai, lin = agent(closed), agent(closed)
    for one in (kai, lin):
        os.makedirs(closed.home.workspace(one.name))
        Path(closed.home.workspace(one.name), "note.txt").write_text(one.name)
    own, foreign = (f"{closed.home.workspace(one.name)}/note.txt" for one in (kai, lin))
    kept = kai.get(kai.tell(kai, attachments=[own]))["attachments"][0]["path"]
    assert Path(kept).read_text() == kai.name
    kai.send(lin, attachments=[kept])  # what is in media/ can be passed on
    assert kai.refusal("envelope.send", to="nex", text="x", attachments=[foreign]) == "attachment_forbidden"
    os.link(closed.home.profile("boss"), f"{closed.home.workspace(kai.name)}/boss")
    (Path(own).parent / "up").symlink_to(closed.home.tokens)
    for way in ("boss", "up/boss", "../../tokens/boss"):
        path = f"{closed.home.workspace(kai.name)}/{way}"
        assert kai.refusal("envelope.send", to="nex", text="x", attachments=[path]) == "attachment_forbidden"


def test_a_workspace_around_the_home_or_in_it_opens_nothing_of_the_home(closed: RunningDaemon) -> None:
    home = closed.home.path
    secret = [closed.home.profile("boss")]
    for workspace in (os.path.dirname(home), home, closed.home.tokens):
        wide = agent(closed, workspace=workspace)
        assert wide.refusal("envelope.send", to="nex", text="x", attachments=secret) == "attachment_forbidden"
    wide = agent(closed, workspace=os.path.dirname(home))
    Path(home).with_name("beside.txt").write_text("beside")
    wide.send("nex", attachments=[str(Path(home).with_name("beside.txt"))])


def test_an_open_session_attaches_from_the_directory_in_which_it_was_opened(desk: Desk) -> None:
    inside = desk.file("note.txt", desk.workspace)
    with room(desk.daemon) as opens:
        session = opens.unnamed(directory=str(desk.workspace))
        other = opens(desk.agent.name, directory=str(desk.directory / "other"))
        assert desk.sent(inside, session)
        assert desk.refused(desk.private, session).stable_code == "attachment_outside"
        assert desk.refused(inside, other).stable_code == "attachment_outside"
        assert desk.sent(desk.file("other/note.txt"), other)


def test_a_schedule_takes_files_from_where_its_maker_may_attach(desk: Desk) -> None:
    inside, other = desk.file("a.txt", desk.workspace), desk.file("b.txt", desk.workspace)
    given: dict[str, Any] = {"every": "100h", "to": desk.agent.address, "text": "x"}
    made = desk.agent.call("cron.create", attachments=[str(inside)], **given)
    assert made["attachments"] == ["a.txt"]
    assert desk.agent.call("cron.set", id=made["id"], attachments=[str(other)])["attachments"] == ["b.txt"]
    private = [str(desk.private)]
    assert desk.agent.refusal("cron.create", attachments=private, **given) == "attachment_outside"
    assert desk.agent.refusal("cron.set", id=made["id"], attachments=private) == "attachment_outside"
    assert desk.agent.call("cron.show", id=made["id"])["attachments"] == ["b.txt"]
    boss(desk.daemon).call("cron.set", id=made["id"], attachments=private)


def test_a_program_of_a_run_attaches_what_it_made_where_it_works(desk: Desk) -> None:
    worker = Worker(desk.daemon, desk.directory, workspace=str(desk.workspace))
    private = desk.private
    worker.program.does(
        f"""echo made > made.txt
hiboss send {desk.agent.name} "done" --attachment made.txt > "$D/sent" 2>&1
hiboss send {desk.agent.name} "more" --attachment {private} > "$D/refused" 2>&1
exit 0"""
    )
    assert worker.ran(boss(desk.daemon).tell(worker))["status"] == "completed"
    [got] = desk.agent.list()
    assert Path(got["attachments"][0]["path"]).read_text() == "made\n"
    said = (worker.program.directory / "refused").read_text()
    assert "may attach files" in said and str(desk.workspace) in said
