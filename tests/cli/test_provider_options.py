"""Options of providers on the command line: flags that the daemon describes; and runs that are steered and ask."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.cli import Office, open_office
from tests.support.live_providers import staged
from tests.support.waits import wait_until

KEY = "the-key-of-an-account"


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Office]:
    modules = "tests.support.extra_providers,tests.support.live_providers"
    with open_office(tmp_path_factory.mktemp("d"), HIBOSS_PROVIDERS_MODULES=modules) as running:
        yield running


@pytest.fixture
def key(tmp_path: Path) -> str:
    file = tmp_path / "key"
    file.write_text(f"{KEY}\n")
    return f"@{file}"


def settings(office: Office, name: str) -> dict[str, object]:
    """The settings of an agent's provider, as it gets them."""
    sent = office("send", name, "what do you have?", "--as", "boss").record["id"]
    wait_until(lambda: office.envelope(sent)["status"] == "done")
    [last] = office("inbox", "--from", name, "-n", "1", "--peek", "--json", "--as", "boss").json["envelopes"]
    return json.loads(last["text"])


def test_providers_are_listed_with_their_options(office: Office) -> None:
    shown = {one["provider"]: one for one in office("agent", "providers", "--as", "boss").blocks}
    assert {"command", "webhook", "demo", "choosy"} <= set(shown)
    assert shown["choosy"]["--key"] == "the key of an account (required; secret)"
    assert shown["choosy"]["--speed"] == "how fast (one of slow, fast; default slow)"
    assert "steer" in shown["command"]["can"] and "can" not in shown["demo"]


def test_flags_of_every_type_become_settings(office: Office, key: str, tmp_path: Path) -> None:
    name = office.agent()
    given = (
        "--key",
        key,
        "--where",
        ".",
        "--size",
        "7",
        "--loud",
        "--words",
        "a",
        "--words=--b",
        "--speed",
        "fast",
    )
    done = office.ok("agent", "set", name, "--as", "boss", "--provider", "choosy", *given, cwd=str(tmp_path))
    assert KEY not in done.stdout and done.record["size"] == "7"
    assert settings(office, name) == {
        "key": KEY,
        "where": str(tmp_path),
        "size": 7,
        "loud": True,
        "words": ["a", "--b"],
        "speed": "fast",
    }
    # One option alone changes nothing else; an empty one goes back to its default.
    assert office("agent", "set", name, "--as", "boss", "--speed", "", "--loud", "no").rc == 0
    found = settings(office, name)
    assert (found["speed"], found["loud"], found["size"], found["key"]) == ("slow", False, 7, KEY)
    assert KEY not in office("agent", "list", "--as", "boss", "--json").stdout


def test_a_secret_may_come_from_standard_input_or_the_environment_and_warns_as_a_word(office: Office) -> None:
    words = ("agent", "set", office.agent(), "--as", "boss", "--provider", "choosy")
    assert office(*words, "--key", "-", stdin=f"{KEY}\n").rc == 0
    assert office(*words, env={"HIBOSS_KEY": KEY}).rc == 0
    warned = office(*words, "--key", KEY)
    assert warned.rc == 0 and "--key on the command line shows in the process list" in warned.stderr
    assert office(*words).rc == 0  # it has one: the same provider keeps it
    missing = office(*words[:2], office.agent(), *words[3:])
    assert missing.rc == 2 and "--key is missing: the key of an account" in missing.stderr


@pytest.mark.parametrize("words", [("set", "nex"), ("register", "new")])
@pytest.mark.parametrize(
    ("value", "more"),
    [
        ("--add-dir /srv/data", ()),
        ('--setting-sources ""', ()),
        ("--mcp-config={} --x", ("--json",)),
        ("--strict-mcp-config", ()),
        ("--strict-mcp-config", ("--json",)),
        ("--strict-mcp-config", ("--effort", "low")),
        ("--tools=Bash", ("--effort", "low")),
    ],
)
def test_a_value_may_look_like_an_option(
    office: Office, words: tuple[str, str], value: str, more: tuple[str, ...]
) -> None:
    verb, name = words
    chosen = ("--as", "boss", "--provider", "claude", "--program", "/no/claude")
    done = office("agent", verb, name, *chosen, "--arguments", value, *more)
    assert done.rc == 0, done.stderr
    found = {one["name"]: one for one in office("agent", "list", "--as", "boss", "--json").json["agents"]}
    assert found[name]["settings"]["arguments"] == value
    assert found[name]["settings"]["effort"] == ("low" if "--effort" in more else None)
    if verb == "register":
        assert office("agent", "delete", name, "--yes", "--as", "boss").rc == 0
    else:
        assert office("agent", "set", name, "--provider", "none", "--as", "boss").rc == 0


def test_a_value_that_looks_like_an_option_may_stand_before_the_name(office: Office) -> None:
    name = office.agent()
    value = "--add-dir /srv/data"
    given = ("--provider", "claude", "--program", "/no/claude", "--arguments", value)
    assert office("agent", "set", "--as", "boss", *given, name).record["arguments"] == value


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (("--model", "--json"), "--model needs a value: "),
        (("--model", "--effort", "low"), "--model needs a value: "),
        (("--model", "--effort=low"), "write one that begins with -- as --model=--…"),
        (("--arguments", "--strict-mcp-config", "--bare"), "there is no option --bare"),
        (("--arguments", "--", "nex"), "--arguments needs a value: "),
        (("--arguments", "--add-dir", "/srv"), "--arguments takes one word: put its whole value in quotes"),
    ],
)
def test_a_forgotten_value_is_not_taken_from_the_next_option(
    office: Office, given: tuple[str, ...], told: str
) -> None:
    name = () if "nex" in given else ("nex",)
    done = office("agent", "set", *name, "--as", "boss", "--provider", "claude", *given)
    assert done.rc == 2 and told in done.stderr + done.stdout


def test_a_switch_or_a_secret_takes_no_option_for_its_value(office: Office) -> None:
    words = ("agent", "set", office.agent(), "--as", "boss", "--provider", "seeker")
    assert office(*words, "--loud", "--model", "big").record["loud"] == "true"
    done = office(*words, "--key", "--model", "big", stdin=f"{KEY}\n")
    assert (done.rc, done.record["model"]) == (0, "big")
    assert "there is no option --bare" in office(*words, "--loud", "--bare").stderr


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (("--comand", "true"), "there is no option --comand (did you mean --command?)"),
        (("--desription", "x"), "there is no option --desription (did you mean --description?)"),
        (("--provider", "choosy", "--key", "k", "--size", "many"), "--size must be a valid integer"),
        (("--provider", "choosy", "--key", "k", "--speed", "fastt"), "(did you mean fast?)"),
        (("--provider", "choosy", "--key", "k", "--size", "1", "--size", "2"), "--size is given twice"),
        (("--provider", "choosy", "--key", "k", "--size"), "--size needs a value: how much"),
        (("--provider", "demo", "--size", "3"), "--size is not an option of demo"),
    ],
)
def test_a_wrong_option_is_explained(office: Office, given: tuple[str, ...], told: str) -> None:
    done = office("agent", "set", "nex", "--as", "boss", *given)
    assert done.rc == 2 and told in done.stderr


def test_an_option_of_several_providers_is_read_as_the_one_that_is_meant(office: Office) -> None:
    """--loud is a switch of choosy and of seeker, and a text of finder."""
    words = ("agent", "set", office.agent(), "--as", "boss")
    unclear = office(*words, "--loud")
    assert (
        unclear.rc == 2
        and "--loud is not the same for choosy, finder, seeker; give --provider" in unclear.stderr
    )
    assert office(*words, "--provider", "seeker", "--loud").record["loud"] == "true"
    assert office(*words, "--loud=no").record["loud"] == "false"  # of its own provider
    assert office(*words, "--provider", "finder", "--where", "x", "--loud", "very").record["loud"] == "very"
    valueless = office(*words, "--model")
    assert "--model needs a value: " in valueless.stderr and "finder, seeker, talker)" in valueless.stderr
    alone = office("agent", "set", office.agent(), "--as", "boss", "--model", "big")
    assert alone.rc == 2 and "--provider seeker" in alone.stderr and "take --model" in alone.stderr


def test_what_a_provider_finds_is_told_with_what_helps(office: Office, tmp_path: Path) -> None:
    chosen = ("agent", "register", "--as", "boss", "--workspace", str(tmp_path), "--provider", "seeker")
    made = office(*chosen, "--name", "seeks")
    assert made.record["found"].startswith("seeker 1.2 in ") and "problem" not in made.record
    missing = office("agent", "set", "seeks", "--as", "boss", "--program", "none")
    assert (missing.rc, missing.record["problem"]) == (0, "there is no program none")
    assert missing.record["try"] == "npm install -g none" and "found" not in missing.record
    assert office("agent", "check", "seeks", "--as", "seeks").record == {
        "name": "seeks",
        "provider": "seeker",
        "can": "cost",
        "problem": "there is no program none",
        "try": "npm install -g none",
    }
    tried = office("agent", "check", "seeks", "--provider", "demo", "--as", "boss").record
    assert tried == {"name": "seeks", "provider": "demo"}


def test_a_run_is_steered_and_answered_by_commands(office: Office, tmp_path: Path) -> None:
    program = tmp_path / "asks.sh"
    question = '{"hiboss": "ask", "text": "Now?", "options": ["yes", "no"]}'
    program.write_text(f"read turn\necho '{question}'\nread first\nread second\necho \"$first $second\"\n")
    name = office.agent()
    change = ("agent", "set", name, "--as", "boss", "--command", f"sh {program}", "--input", "open")
    assert office(*change).rc == 0
    office("send", name, "work", "--as", "boss")
    [run] = wait_until(lambda: office("run", "list", "--agent", name, "--as", "boss", "--json").json["runs"])
    shown = wait_until(
        lambda: "> Now?" in (one := office("run", "get", run["id"], "--as", "boss")).stdout and one
    )
    [ask] = office("ask", "list", "--as", "boss", "--json").json["asks"]
    assert f"answer-with: hiboss ask answer {ask['id']} --choice yes" in shown.stdout
    assert office("run", "steer", run["id"], "faster", "--as", "boss").record["taken"] == "true"
    answer = office("ask", "answer", ask["id"], "--choice", "yes", "--comment", "please", "--as", "boss")
    assert answer.record["answer"] == "yes"
    done = wait_until(
        lambda: (one := office("run", "get", run["id"], "--as", "boss", "--json").json["run"])["text"] and one
    )
    lines = [json.loads(line) for line in done["text"].replace("} {", "}\n{").splitlines()]
    assert [one["hiboss"] for one in lines] == ["steer", "answer"] and lines[1]["by"] == "user:boss"


def test_a_tail_shows_thoughts_in_lines_and_tools_beside_the_answer(office: Office, tmp_path: Path) -> None:
    words = [("thinking", f"{word} ") for word in ("First", "this,\nthen", "that.")]
    tools = [("tool", "Bash ls -l"), ("tool_result", "a\n" * 900), ("thinking", "fine")]
    staged(tmp_path, *words, *tools, ("delta", "It is "), ("delta", "a."), ("wait", "go"), ("final", "a"))
    name = office.agent()
    chosen = ("--provider", "staged", "--workspace", str(tmp_path))
    assert office("agent", "set", name, "--as", "boss", *chosen).rc == 0
    office("send", name, "look", "--as", "boss")
    [run] = wait_until(lambda: office("run", "list", "--agent", name, "--as", "boss", "--json").json["runs"])
    with office.open("run", "tail", run["id"], "--as", "boss") as tail:
        assert tail.stdout is not None and tail.stderr is not None
        lines = [tail.stderr.readline().rstrip("\n") for _ in range(5)]
        (tmp_path / "go").touch()
        answer = tail.stdout.read()
    assert lines[:3] == ["[thinking] First this,", "[thinking] then that. ", "[tool] Bash ls -l"]
    assert lines[3].startswith("[tool_result] a a a") and lines[3].endswith("…") and len(lines[3]) < 400
    assert lines[4] == "[thinking] fine"
    assert answer.startswith("> It is a.\n") and "fine" not in answer


def test_no_secret_is_left_when_its_agent_is_deleted(office: Office, key: str) -> None:
    name, before = office.agent(), set(os.listdir(office.daemon.home.secrets))
    office("agent", "set", name, "--as", "boss", "--provider", "choosy", "--key", key)
    [made] = set(os.listdir(office.daemon.home.secrets)) - before
    office("agent", "delete", name, "--yes", "--as", "boss")
    assert made not in os.listdir(office.daemon.home.secrets)
