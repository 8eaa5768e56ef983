"""The story of the boss with a folder as his phone: one conversation, at the terminal and on the phone."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hiboss.core.crashpoint import (
    CLAIMED,
    DIGESTED,
    POSTED,
    RUN_ANSWERED,
    RUN_SETTLED,
    SETTLED,
    TAKEN,
)
from tests.support.cli import Office, open_office
from tests.support.talk import talking
from tests.support.waits import wait_until


class Phone:
    """A directory in place of a phone: what is written there goes to nex, what is posted is in `out/`."""

    def __init__(self, office: Office, root: Path) -> None:
        self.office = office
        self.root = root
        self.call("agent.bind", name="nex", adapter_type="folder", settings={"path": str(root)})
        wait_until(lambda: (root / "in").is_dir())

    def call(self, method: str, **params: Any) -> Any:
        return self.office.daemon.call(method, token=self.office.token("boss"), **params)

    def write(self, name: str, text: str, reply_to: str | None = None) -> None:
        content = {"text": text, "author": {"name": "Ada", "username": "ada"}}
        if reply_to is not None:
            content["reply_to"] = reply_to
        hidden = self.root / "in" / f".{name}.new"
        hidden.write_text(json.dumps(content))
        os.replace(hidden, self.root / "in" / f"{name}.json")

    def posts(self) -> dict[str, str]:
        """Return what is posted, by the name of the file."""
        out = self.root / "out"
        names = [
            name for name in os.listdir(out) if name.endswith((".txt", ".md")) and not name.startswith(".")
        ]
        return {name: (out / name).read_text().strip() for name in names}

    def post_of(self, text: str) -> str:
        """Wait until a text is posted; return the name of its file."""
        return str(wait_until(lambda: [name for name, post in self.posts().items() if post == text])[0])

    def history(self) -> list[dict[str, Any]]:
        """Return the conversation of the boss and nex, as the terminal shows it."""
        answer = self.call("conversation.messages", **{"with": "agent:nex"}, page_size=100)
        return list(answer["envelopes"])

    def texts(self) -> list[str]:
        return [one["text"] for one in self.history()]


@pytest.fixture(scope="module")
def phone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Phone]:
    directory = tmp_path_factory.mktemp("d")
    with open_office(directory) as office:
        office.daemon.call("agent.set", token=office.token("boss"), name="nex", provider="demo")
        (directory / "phone").mkdir()
        phone = Phone(office, directory / "phone")
        done = office("boss", "set", "--as", "boss", "--reach", "channel:folder:phone")
        assert done.rc == 0 and "channel:folder:phone" in done.stdout, done.stderr
        yield phone


def test_the_boss_is_one_person_at_the_terminal_and_on_the_phone(phone: Phone, tmp_path: Path) -> None:
    office = phone.office
    # What an agent writes to the boss by itself is on the phone, and so is the answer to what he asks there.
    office.daemon.register("kai")
    office("send", "boss", "--as", "kai", "the build is red")
    red = phone.post_of("kai:\nthe build is red")
    phone.write("ask", "hello from the phone")
    answer = phone.post_of("nex:\nYou said: hello from the phone")
    # A reply there is the boss's: to the agent of that post, wherever the account belongs.
    phone.write("reply", "mend it", reply_to=red)
    [mail] = wait_until(lambda: office("envelope", "list", "--as", "kai", "--json").json["envelopes"])
    assert (mail["text"], mail["from"], mail["sender"]) == ("mend it", "channel:folder:phone", "user:boss")
    shown = office("envelope", "list", "--as", "kai").stdout
    assert (
        "\nfrom: channel:folder:phone\nto: agent:kai\nfrom-boss: true\nfrom-name: Ada (@ada) [boss]\n"
        in shown
    )
    phone.write("again", "and again", reply_to=answer)
    phone.post_of("nex:\nYou said: and again")

    # The terminal shows the same conversation, and what is said there goes on in it.
    with talking(office, "nex") as terminal:
        terminal.see("hello from the phone", "You said: hello from the phone", "You said: and again")
        terminal.see_last(">")
        phone.write("live", "while you look")
        terminal.see("while you look", "You said: while you look")
        wait_until(lambda: phone.texts()[-1] == "You said: while you look")  # it is more than live output
        place = terminal.lines.index("  while you look")
        assert terminal.lines[place - 1].startswith("you (channel:folder:phone)  ")
        terminal.press("typed here\r")
        terminal.see("You said: typed here")
    phone.post_of("nex:\nYou said: typed here")

    # A notice of hiboss is on the phone too.
    other = tmp_path / "other"
    other.mkdir()
    phone.call("agent.bind", name="kai", adapter_type="folder", settings={"path": str(other)})
    phone.call("lane.pause", address="channel:folder:other")
    phone.call("envelope.send", to="channel:folder:other", text="never posted")
    phone.call("agent.unbind", name="kai", adapter_type="folder", account="other")
    wait_until(lambda: any("folder:other is no longer bound" in post for post in phone.posts().values()))

    said = ["hello from the phone", "and again", "while you look", "typed here"]
    assert phone.texts() == [text for one in said for text in (one, f"You said: {one}")]
    assert len({one["conversation"] for one in phone.history()}) == 1
    own = [one for one in phone.history() if one["sender"] == "user:boss"]
    assert [one["from"] for one in own] == ["channel:folder:phone"] * 3 + ["user:boss"]
    assert all(one["from_boss"] for one in own)
    office.daemon.check()


@pytest.mark.slow
def test_it_goes_on_after_a_restart_and_wherever_the_daemon_dies(phone: Phone, tmp_path: Path) -> None:
    daemon = phone.office.daemon
    before, posted = len(phone.texts()), set(phone.posts())
    daemon.stop()
    points = (TAKEN, DIGESTED, RUN_ANSWERED, RUN_SETTLED, CLAIMED, POSTED, SETTLED)
    for number, point in enumerate(points):
        armed = tmp_path / f"armed-{number}"
        daemon.start(HIBOSS_CRASH_AT=f"{point}@{armed}")
        if number:
            phone.post_of(f"nex:\nYou said: question {number - 1}")
        armed.touch()
        phone.write(f"q{number}", f"question {number}")
        daemon.wait_for_death()
    daemon.start()
    phone.post_of(f"nex:\nYou said: question {len(points) - 1}")
    daemon.check()
    expected = [text for n in range(len(points)) for text in (f"question {n}", f"You said: question {n}")]
    assert phone.texts()[before:] == expected  # each once, in one history
    new = sorted(text for name, text in phone.posts().items() if name not in posted)
    told = [new.pop(new.index(text)) for text in [*new] if text.startswith("system:")]
    assert len(told) == 1 and "hiboss was restarted while nex worked on this" in told[0]  # at RUN_ANSWERED
    assert new == sorted(
        f"nex:\n{text}" for text in expected[1::2]
    )  # each answer is posted, and nothing is left of live posts
