"""Following by facts: what `hiboss chat` and `hiboss run tail` know after a lost connection, a restart, a gap."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from hiboss.cli.chat.conversation import ConversationClient
from hiboss.cli.chat.edited_messages import EditedMessages
from hiboss.cli.chat.other_mail import OtherMail
from hiboss.cli.client import Answered, FactStream, is_away
from hiboss.core.errors import HibossError
from tests.support.cli import HIBOSS, SECONDS, Office, open_office
from tests.support.parties import Party
from tests.support.scripted_channels import SCRIPTED, Place
from tests.support.talk import gated, said, talking
from tests.support.waits import wait_until

if TYPE_CHECKING:
    from hiboss.cli.client import Fact

FEW_KEPT = {"HIBOSS_EVENTS_KEPT_FACTS": "50", **SCRIPTED}  # a gap comes soon
Opens = Callable[..., ConversationClient]


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Office]:
    with open_office(tmp_path_factory.mktemp("d"), **FEW_KEPT) as running:
        yield running


def tell_boss(office: Office, name: str, text: str) -> None:
    office.daemon.call("envelope.send", token=office.token(name), to="user:boss", text=text)


def ask(office: Office, name: str, text: str) -> str:
    """A message of the boss to an agent; its id."""
    params = {"from_": "user:boss", "to": f"agent:{name}", "text": text}
    return str(office.daemon.call("envelope.send", token=office.token("boss"), **params)["ids"][0])


def start_again(office: Office) -> None:
    office.daemon.start(**FEW_KEPT)


@pytest.fixture
def conversation() -> Iterator[Opens]:
    """Opens conversations with an agent, from their present end on."""
    with ExitStack() as stack:

        def opened(office: Office, name: str, *, as_: str = "boss") -> ConversationClient:
            client = ConversationClient(office.home, office.token(as_))
            client.open(name)
            client.history()
            stack.callback(lambda: client.facts.close())
            return client

        yield opened


def follow(client: ConversationClient, condition: Callable[[list[str]], Any]) -> list[str]:
    """Follow until something is so of the texts that came; they are returned."""
    texts: list[str] = []
    for _ in range(1_000):
        if condition(texts):
            return texts
        texts += [one["text"] for one in client.follow(SECONDS)]
    raise AssertionError(f"it never came: {texts}")


def lose_connection(client: ConversationClient) -> None:
    client.facts.close()


# --- a conversation ------------------------------------------------------------------


def test_a_conversation_is_followed_with_what_the_other_says_meanwhile(
    office: Office, tmp_path: Path, conversation: Opens
) -> None:
    with gated(office, tmp_path) as (name, gate):
        client = conversation(office, name)
        client.send("is it so?", [], "k1")
        live = lambda texts: client.live is not None and client.live.text  # noqa: E731
        assert follow(client, live) == ["is it so?"] and client.live is not None and client.state == "running"
        assert (client.live.text, client.live.tool) == (
            "thinking aloud about is it so?",
            "look into the files",
        )
        gate.touch()
        assert follow(client, lambda texts: texts) == ["answer to is it so?"]
        follow(client, lambda texts: client.live is None and client.state == "idle")


def test_who_follows_hears_that_the_other_has_stopped_without_a_word(
    office: Office, conversation: Opens
) -> None:
    name = office.agent(provider="command", settings={"command": "sh -c 'echo NO_REPLY'"})
    client = conversation(office, name)
    client.send("hello", [], "k2")
    assert follow(client, lambda texts: texts) == ["hello"]
    follow(client, lambda texts: said(office, name)[0]["status"] == "done" and client.live is None)
    assert client.state == "idle"


def test_the_state_of_the_other_is_told_to_everybody_who_talks_with_it(
    office: Office, conversation: Opens
) -> None:
    name, other = office.agent(provider="demo"), office.agent()
    boss = office.token("boss")
    clients = [conversation(office, name), conversation(office, name, as_=other)]
    for client in clients:
        follow(client, lambda texts, client=client: client.state == "idle")
    office.daemon.call("agent.pause", token=boss, name=name, reason="lunch")
    for client in clients:
        client.follow(SECONDS)  # one fact, and no waiting for the time to be over
        assert client.state == "paused"
    assert [client.why for client in clients] == ["lunch", None]  # the reason is not for others


def test_while_nothing_happens_nothing_is_asked(
    office: Office, conversation: Opens, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = conversation(office, office.agent())
    client.follow(SECONDS)
    asked: list[str] = []
    monkeypatch.setattr(client, "call", lambda method, **params: asked.append(method))
    for _ in range(3):
        assert client.follow(0.01) == []
    assert asked == []


def bound(office: Office, directory: Path) -> Place:
    """A channel of a new agent."""
    name = office.agent()
    return Place(directory).bound(office.daemon, Party(office.daemon, f"agent:{name}", office.token(name)))


@pytest.fixture
def phone(office: Office, tmp_path: Path) -> Iterator[Place]:
    """The boss's chat with a new agent."""
    place = bound(office, tmp_path)
    office.daemon.call("boss.set", token=office.token("boss"), reach=place.address)
    yield place
    place.unbind()


def test_an_edit_of_a_message_is_shown_on_an_open_screen_and_that_of_another_conversation_is_not(
    office: Office, phone: Place, tmp_path: Path
) -> None:
    other = bound(office, tmp_path)
    phone.comes_in("u1", text="teh first", message="m1")
    other.comes_in("u1", text="elsewhere", message="m1")
    with talking(office, phone.owner.name, columns=120) as terminal:
        terminal.see("  teh first")
        other.comes_in("u2", kind="edit", text="edited elsewhere", message="m1")
        phone.comes_in("u2", kind="edit", text="the first", message="m1")
        terminal.see(f"you ({phone.address})  ", "  (edited)", "  the first")
        assert terminal.text.count("(edited)") == 1 and "elsewhere" not in terminal.text


def test_a_message_that_is_deleted_is_shown_so_on_an_open_screen(office: Office) -> None:
    name = office.agent()
    number = ask(office, name, "forget this")
    boss = office.token("boss")
    with talking(office, name, columns=120) as terminal:
        terminal.see("  forget this")
        office.daemon.call("message.delete", token=boss, id=number, reason="said twice")
        terminal.see("you  ", "  (deleted)", '(deleted: "said twice")')
        assert terminal.text.count("forget this") == 1


def test_edits_while_the_connection_is_lost_are_found_each_once(
    office: Office, phone: Place, conversation: Opens
) -> None:
    third = office.agent()
    phone.comes_in("u0", text="never edited", message="m0")
    phone.comes_in("u1", text="first", message="m1")
    client = conversation(office, phone.owner.name)
    edits = EditedMessages(client)
    edits.note(client.history())

    def edit(number: int) -> None:
        phone.comes_in(f"e{number}", kind="edit", text=f"wording {number}", message="m1")

    def found() -> list[str]:
        client.follow(SECONDS)
        return [one["text"] for one in edits.new()]

    edit(1)  # between the reading and the subscription
    assert found() == ["wording 1"]
    edit(2)
    assert found() == ["wording 2"]
    lose_connection(client)
    edit(3)
    assert found() == ["wording 3"]
    assert edits.new() == []
    lose_connection(client)
    edit(4)
    for number in range(60):  # more than the daemon keeps
        ask(office, third, str(number))
    assert found() == ["wording 4"]


def test_what_comes_while_the_connection_is_lost_is_neither_missed_nor_told_twice(
    office: Office, conversation: Opens
) -> None:
    name, third = office.agent(), office.agent()
    client = conversation(office, name)
    mail = OtherMail(client)
    found: list[str] = []
    for number in range(4):
        tell_boss(office, name, f"{number} before")
        found += follow(client, lambda texts: texts)
        told = [one["text"] for page in mail.new() for one in page]
        assert told == ([f"{number - 1} of another"] if number else [])
        lose_connection(client)
        tell_boss(office, name, f"{number} meanwhile")
        tell_boss(office, third, f"{number} of another")
        found += follow(client, lambda texts: texts)
    assert found == [one["text"] for one in said(office, name)]
    assert found == [f"{number} {when}" for number in range(4) for when in ("before", "meanwhile")]


def test_after_a_gap_everything_is_read_again(office: Office, conversation: Opens) -> None:
    name = office.agent()
    client = conversation(office, name)
    tell_boss(office, name, "first")
    assert follow(client, lambda texts: texts) == ["first"]
    lose_connection(client)
    for number in range(110):  # more than the daemon keeps, and more than one page
        tell_boss(office, name, str(number))
    assert follow(client, lambda texts: len(texts) >= 110) == [str(number) for number in range(110)]
    tell_boss(office, name, "last")
    assert follow(client, lambda texts: texts) == ["last"]


def test_a_restart_of_the_daemon_loses_and_doubles_nothing(office: Office, conversation: Opens) -> None:
    name = office.agent()
    client = conversation(office, name)
    found: list[str] = []
    for number in range(2):
        tell_boss(office, name, f"{number} read")
        found += follow(client, lambda texts: texts)
        tell_boss(office, name, f"{number} not read")
        office.daemon.kill()
        with pytest.raises(HibossError) as lost:
            while True:  # what was written before it died may come first
                found += [one["text"] for one in client.follow(SECONDS)]
        assert is_away(lost.value)
        start_again(office)
        tell_boss(office, name, f"{number} after")
        found += follow(client, lambda texts, number=number: f"{number} after" in texts)
    assert found == [one["text"] for one in said(office, name)] and len(found) == 6


def test_a_name_that_belongs_to_a_new_agent_is_a_new_conversation(
    office: Office, conversation: Opens
) -> None:
    name, boss = office.agent(), office.token("boss")
    client = conversation(office, name)
    tell_boss(office, name, "from the first")
    assert follow(client, lambda texts: texts) == ["from the first"]
    office.daemon.call("agent.delete", token=boss, name=name)
    office.daemon.register(name)
    tell_boss(office, name, "from the second")
    assert follow(client, lambda texts: texts) == ["from the second"]
    tell_boss(office, name, "again")
    assert follow(client, lambda texts: texts) == ["again"]


# --- the stream of facts -------------------------------------------------------------


def facts_of(stream: FactStream, last: Callable[[Fact], bool]) -> list[Fact]:
    """The next facts, up to one of which something is so."""
    found: list[Fact] = []
    while not any(last(one) for one in found):
        news = stream.wait(SECONDS)
        assert news, f"it never came: {found}"
        found += news
    return found


def test_a_stream_that_is_opened_again_continues_after_its_last_fact(office: Office, tmp_path: Path) -> None:
    with gated(office, tmp_path) as (name, gate):
        wanted = {"addresses": [f"agent:{name}"], "topics": ["run.started", "run.progress", "run.ended"]}
        stream = FactStream(office.home, wanted | {"token": office.token("boss")})
        stream.open()
        sent = ask(office, name, "go")
        found = facts_of(stream, lambda one: one["topic"] == "run.progress" and one["kind"] == "delta")
        stream.close()
        gate.touch()
        wait_until(lambda: office.envelope(sent)["status"] == "done")
        stream.open()  # the run is over; what it said is told all the same
        found += facts_of(stream, lambda one: one["topic"] == "run.ended")
        stream.close()
        numbers = [one["number"] for one in found]
        assert numbers == sorted(set(numbers))
        parts = [one for one in found if one["topic"] == "run.progress"]
        assert [one["part"] for one in parts] == list(range(1, len(parts) + 1))
        assert [one["topic"] for one in found][:: len(found) - 1] == ["run.started", "run.ended"]


def test_a_stream_whose_token_ended_is_told_so_and_no_more(office: Office, tmp_path: Path) -> None:
    with gated(office, tmp_path) as (name, gate):
        stream = FactStream(office.home, {"token": office.token(name), "topics": ["run.progress"]})
        stream.open()
        ask(office, name, "go")
        facts_of(stream, lambda one: one["kind"] == "delta")
        office.daemon.call("agent.token.rotate", token=office.token("boss"), name=name)
        gate.touch()
        with pytest.raises(Answered) as refused:
            stream.wait(SECONDS)
        assert refused.value.stable_code == "bad_token" and not stream.is_open


# --- hiboss run tail -----------------------------------------------------------------

TALKER = """
import json, os, sys, time
def say(text): print(json.dumps({"hiboss": "delta", "text": text}), flush=True)
say("Once ")
while not os.path.exists(sys.argv[1]): time.sleep(0.02)
say("upon "); say("a "); say("time")
"""


def talker(office: Office, directory: Path) -> tuple[str, Path]:
    program, gate = directory / "talker.py", directory / "gate"
    program.write_text(TALKER)
    command = shlex.join([sys.executable, "-S", str(program), str(gate)])
    return office.agent(provider="command", settings={"command": command}), gate


def begun(office: Office, name: str) -> str:
    """The run that a message starts, when its program has said something."""
    ask(office, name, "go")
    call = lambda method, **params: office.daemon.call(method, token=office.token("boss"), **params)  # noqa: E731
    run = wait_until(lambda: call("run.list", agent=name)["runs"])[0]["id"]
    wait_until(lambda: call("run.tail", id=run)["parts"])
    return str(run)


@pytest.mark.parametrize("as_", ["boss", "agent"])
def test_tail_prints_everything_a_run_says_and_then_how_it_ended(
    office: Office, tmp_path: Path, as_: str
) -> None:
    name, gate = talker(office, tmp_path)
    run = begun(office, name)
    number = run.removeprefix("r")  # is good enough, too
    with office.open("run", "tail", number, "--as", name if as_ == "agent" else "boss") as tail:
        assert tail.stdout is not None and tail.stdout.read(7) == "> Once "
        gate.touch()
        rest = tail.stdout.read()
        assert tail.wait(SECONDS) == 0
    assert rest.startswith("upon a time\n\nid: " + run) and "status: completed\n" in rest
    assert "text:" not in rest  # it was shown already


def test_tail_as_json_is_a_line_for_each_part_and_one_for_the_run(office: Office, tmp_path: Path) -> None:
    name, gate = talker(office, tmp_path)
    run = begun(office, name)
    with office.open("run", "tail", run, "--json") as tail:
        assert tail.stdout is not None
        first = json.loads(tail.stdout.readline())
        gate.touch()
        rest = [json.loads(line) for line in tail.stdout]
    assert [first, *rest[:-1]] == [
        {"kind": "delta", "text": text} for text in ("Once ", "upon ", "a ", "time")
    ]
    assert rest[-1]["id"] == run and rest[-1]["status"] == "completed"


def test_tail_of_a_run_that_ends_while_the_daemon_is_away_shows_how_it_ended(
    office: Office, tmp_path: Path
) -> None:
    name, _ = talker(office, tmp_path)
    run = begun(office, name)
    office.daemon.call("agent.pause", token=office.token("boss"), name=name)  # or it begins again
    with office.open("run", "tail", run) as tail:
        assert tail.stdout is not None and tail.stderr is not None and tail.stdout.read(7) == "> Once "
        office.daemon.kill()
        note = tail.stderr.readline()
        start_again(office)
        rest = tail.stdout.read()
        assert tail.wait(SECONDS) == 0
    assert note.startswith("note: the daemon is away; hiboss tries again")
    assert f"\nid: {run}\n" in rest and "status: interrupted\n" in rest


# --- hiboss chat --once --------------------------------------------------------------


def test_a_question_needs_nothing_of_the_environment_but_the_home(office: Office, tmp_path: Path) -> None:
    with gated(office, tmp_path) as (name, gate):
        gate.touch()
        done = office.run(
            ["/usr/bin/env", "-i", f"HIBOSS_HOME={office.home.path}", HIBOSS, "chat", name, "--once", "hello"]
        )
        assert (done.rc, done.stdout, done.stderr) == (0, "answer to hello\n", "")
        asking = office.agent()
        token = {"HIBOSS_TOKEN": office.token(asking), "HIBOSS_AGENT": asking}
        stripped = [f"{key}={value}" for key, value in (token | {"HIBOSS_HOME": office.home.path}).items()]
        done = office.run(["/usr/bin/env", "-i", *stripped, HIBOSS, "chat", name, "--once", "and for me?"])
        assert (done.rc, done.stdout, done.stderr) == (0, "answer to and for me?\n", "")
    assert os.environ.get("HIBOSS_TOKEN") is None
