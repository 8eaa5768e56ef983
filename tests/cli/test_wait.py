"""`hiboss envelope wait`, `poll` and `watch` by hand: what they print, and how they end."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from hiboss.testing.running_daemon import Answered, running_daemon
from tests.support.cli import HIBOSS, SECONDS, Done, Office, Shell
from tests.support.waits import wait_until

WAIT = ("envelope", "wait")
NEVER = "1h"  # what must end before its time limit
MAIL, REFUSED, USAGE, UNREACHABLE, TIMED_OUT, WATCHED, STOPPED, INTERRUPTED = 0, 1, 2, 3, 4, 5, 6, 130


@pytest.fixture
def bob(office: Office) -> str:
    return office.agent()


@pytest.fixture
def passing(tmp_path: Path) -> Iterator[Office]:
    """An office of the test's own, whose daemon may be stopped or killed."""
    Shell(tmp_path / "home").set_up()
    with running_daemon(tmp_path, set_up=False) as daemon:
        yield Office(daemon)


def is_watched(office: Office, name: str) -> bool:
    """Asked with a wrong cursor, so that the look is never the watcher itself."""
    with pytest.raises(Answered) as caught:
        office.daemon.call("envelope.watch", token=office.token(name), after="none")
    return caught.value.stable_code == "already_watched"


def was_seen(office: Office, name: str) -> bool:
    """Whether an agent has called: of a new one, whether its command waits by now."""
    agents = office.daemon.call("agent.list", token=office.token("boss"))["agents"]
    return any(one["last_seen_at"] for one in agents if one["name"] == name)


@contextmanager
def watching(office: Office, name: str, *words: str) -> Iterator[subprocess.Popen[str]]:
    """`hiboss watch` of an agent, known to wait."""
    with office.open("watch", "--as", name, "--timeout", NEVER, *words) as process:
        wait_until(lambda: is_watched(office, name))
        yield process


def ended(process: subprocess.Popen[str]) -> Done:
    stdout, stderr = process.communicate(timeout=SECONDS)
    return Done(rc=process.returncode, stdout=stdout, stderr=stderr)


# --- envelope wait -------------------------------------------------------------------


def test_wait_shows_what_a_list_shows_and_a_cursor_to_go_on_with(office: Office, bob: str) -> None:
    number = office.send("nex", bob, "first")
    done = office(*WAIT, "--as", bob, "--timeout", NEVER)
    assert (done.rc, done.stderr) == (MAIL, "")
    shown = office("envelope", "list", "--as", bob).stdout
    assert done.stdout.startswith(shown) and done.values("envelope-id") == [number]
    (cursor,) = done.values("next-cursor")
    nothing = office(*WAIT, "--as", bob, "--timeout", "0.01s", "--after", cursor)
    assert (nothing.rc, nothing.values("next-cursor")) == (TIMED_OUT, [cursor])
    assert nothing.values("no-envelopes") == ["true"]
    office.send("nex", bob, "second")
    later = office(*WAIT, "--as", bob, "--after", cursor, "--json")
    assert [one["text"] for one in later.json["envelopes"]] == ["second"]
    assert office("watch", "--as", bob, "--after", later.json["next"], "--timeout", "0.01s").rc == TIMED_OUT
    assert office.envelope(number)["read_at"] is None


def test_wait_ends_with_the_mail_that_comes(office: Office, bob: str) -> None:
    with office.open(*WAIT, "--as", bob, "--timeout", NEVER) as process:
        number = office.send("nex", bob, "here")
        done = ended(process)
    assert (done.rc, done.values("envelope-id")) == (MAIL, [number])


def test_the_boss_waits_for_another(office: Office, bob: str) -> None:
    office.send("nex", bob, "for bob")
    done = office(*WAIT, "--as", "boss", "--address", f"agent:{bob}")
    assert done.rc == MAIL and "for bob" in done.stdout


# --- watch ---------------------------------------------------------------------------


def test_watch_prints_the_digest_of_what_came_and_ends(office: Office, bob: str) -> None:
    with watching(office, bob) as process:
        number = office.send("nex", bob, "wake up")
        done = ended(process)
    assert (done.rc, done.stderr, done.values("envelope-id")) == (MAIL, "", [number])
    assert "wake up" in done.stdout
    (cursor,) = done.values("next-cursor")
    nothing = office("watch", "--as", bob, "--after", cursor, "--timeout", "0.01s")
    assert (nothing.rc, nothing.record) == (TIMED_OUT, {"timed-out": "true", "next-cursor": cursor})


def test_a_digest_holds_ten_messages_of_two_thousand_characters_each(office: Office, bob: str) -> None:
    numbers = [office.send("nex", bob, f"{i} " + "long " * 2_000) for i in range(12)]
    first = office("watch", "--as", bob)
    assert first.values("envelope-id") == numbers[:10]
    (cursor,) = first.values("next-cursor")
    messages = first.stdout.split("envelope-id: ")[1:]
    messages[-1] = messages[-1].partition("\n\nnext-cursor")[0]
    assert len(messages) == 10
    for number, text in zip(numbers, messages, strict=False):
        assert len("envelope-id: " + text.removesuffix("\n\n")) <= 2_000
        assert f"hiboss envelope get {number}" in text  # where the rest is
    assert office("watch", "--as", bob, "--after", cursor).values("envelope-id") == numbers[10:]


def test_a_second_watch_hears_that_one_is_armed(office: Office, bob: str) -> None:
    with watching(office, bob) as first:
        second = office("watch", "--as", bob)
        assert (second.rc, second.stdout) == (WATCHED, "") and "code: already_watched" in second.stderr
        as_json = office("watch", "--as", bob, "--json")
        assert (as_json.rc, as_json.stdout, as_json.error["code"]) == (WATCHED, "", "already_watched")
        first.kill()
    wait_until(lambda: not is_watched(office, bob))  # killed by force, nobody watches any more


@pytest.mark.parametrize("words", [("watch",), WAIT, ("poll", "--wait")], ids=["watch", "wait", "poll"])
def test_ctrl_c_ends_it_with_130_and_nothing_printed(
    office: Office, bob: str, words: tuple[str, ...]
) -> None:
    limit = (NEVER,) if words[-1] == "--wait" else ("--timeout", NEVER)
    with office.open(*words, *limit, "--as", bob) as process:
        wait_until(lambda: was_seen(office, bob))
        process.send_signal(signal.SIGINT)
        done = ended(process)
    assert (done.rc, done.stdout) == (INTERRUPTED, "") and "Traceback" not in done.stderr
    wait_until(lambda: not is_watched(office, bob))


# --- the end of the daemon -----------------------------------------------------------


def test_a_stop_ends_watch_and_wait_with_6(passing: Office) -> None:
    names = [passing.agent() for _ in range(3)]
    with (
        passing.open("watch", "--as", names[0], "--timeout", NEVER) as watch,
        passing.open(*WAIT, "--as", names[1], "--timeout", NEVER) as wait,
        passing.open("poll", "--as", names[2], "--wait", NEVER, "--format", "hook") as poll,
    ):
        wait_until(lambda: all(was_seen(passing, name) for name in names))
        assert passing.daemon.stop() == 0
        for process in (watch, wait):
            done = ended(process)
            assert (done.rc, done.stdout) == (STOPPED, ""), done
            assert "code: stopping" in done.stderr
        hook = ended(poll)
        assert hook.rc not in (MAIL, USAGE) and hook.stdout == ""


def test_a_daemon_killed_ends_a_watch_with_6_too_and_none_at_all_is_3(passing: Office) -> None:
    with watching(passing, "nex", "--json") as watch:
        passing.daemon.kill()
        done = ended(watch)
    assert (done.rc, done.stdout, done.error["code"]) == (STOPPED, "", "hung_up")
    for words in (("watch",), WAIT, ("poll",)):
        unreachable = passing(*words, "--as", "nex")
        assert (unreachable.rc, unreachable.stdout) == (UNREACHABLE, "")


# --- errors never look like mail -----------------------------------------------------


def test_a_wrong_token_is_no_mail_either(office: Office) -> None:
    for command in (("watch",), WAIT, ("poll", "--format", "hook", "--always-block")):
        done = office(*command, env={"HIBOSS_TOKEN": "hba_wrong"})
        assert (done.rc, done.stdout) == (REFUSED, "")


# --- poll ----------------------------------------------------------------------------


def hook(done: Done) -> dict[str, Any]:
    assert (done.rc, done.stderr) == (0, "")
    return dict(json.loads(done.stdout))


def test_poll_tells_of_mail_once_as_text_and_as_json(office: Office, bob: str) -> None:
    assert office("poll", "--as", bob).record == {"no-envelopes": "true"}
    number = office.send("nex", bob, "news")
    told = office("poll", "--as", bob)
    assert (told.rc, told.values("envelope-id")) == (0, [number])
    assert office("poll", "--as", bob).record == {"no-envelopes": "true"}
    for words in (("--format", "json"), ("--json",)):
        again = office("poll", "--as", bob, "--session", words[0], *words)
        assert [one["id"] for one in again.json["envelopes"]] == [number]
        assert office("poll", "--as", bob, "--session", words[0], *words).json["envelopes"] == []
    assert office.envelope(number)["read_at"] is None


def test_the_hook_format_is_what_a_stop_hook_reads(office: Office, bob: str) -> None:
    command = ("poll", "--as", bob, "--format", "hook")
    nothing = office(*command)
    assert (nothing.rc, nothing.stdout, nothing.stderr) == (0, "", "")  # the agent may stop
    number = office.send("nex", bob, 'a "quoted" line\nand ünother')
    told = hook(office(*command))
    assert told.keys() == {"decision", "reason"} and told["decision"] == "block"
    assert number in told["reason"] and '> a "quoted" line\n> and ünother' in told["reason"]
    assert office(*command).stdout == ""  # announced once
    kept = hook(office(*command, "--always-block"))
    assert kept["decision"] == "block" and "No new mail" in kept["reason"]
    assert hook(office(*command, "--always-block", "--session", "new"))["reason"] == told["reason"]


def test_to_block_always_goes_with_the_hook_format_alone(office: Office, bob: str) -> None:
    done = office("poll", "--as", bob, "--always-block")
    assert (done.rc, done.stdout) == (USAGE, "") and "--format hook" in done.stderr


def test_a_failing_hook_lets_the_agent_stop(office: Office, bob: str) -> None:
    """A harness takes status 2 for "go on, the reason is on standard error"."""
    office.send("nex", bob, "mail")
    for words in (("--wait", "soon"), ("--wait", "9h"), ("--session", "x" * 5_000)):
        done = office("poll", "--as", bob, "--format", "hook", *words)
        assert (done.rc, done.stdout) == (REFUSED, "") and done.stderr.startswith("error: ")


def test_poll_waits_and_its_session_may_come_from_the_environment(office: Office, bob: str) -> None:
    environment = {"HIBOSS_SESSION": "left", "HIBOSS_TOKEN": office.token(bob)}
    with subprocess.Popen(
        [HIBOSS, "poll", "--wait", NEVER],
        env=office.environment(**environment),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        wait_until(lambda: was_seen(office, bob))
        number = office.send("nex", bob, "at last")
        assert ended(process).values("envelope-id") == [number]
    assert office("poll", env=environment).values("no-envelopes") == ["true"]
    assert office("poll", "--session", "left", "--as", bob).values("no-envelopes") == ["true"]
    assert office("poll", "--session", "right", env=environment).values("envelope-id") == [number]
    assert office("poll", "--as", bob).values("envelope-id") == [number]  # no session is one too


# --- presence ------------------------------------------------------------------------


def test_the_list_of_agents_says_role_module_and_when_each_was_seen(office: Office) -> None:
    name = office.agent(role="tester", module="post")
    fresh = {block["name"]: block for block in office("agent", "list", "--as", "boss").blocks}[name]
    assert (fresh["role"], fresh["module"]) == ("tester", "post") and "last-seen-at" not in fresh
    beat = office("agent", "heartbeat", "--as", name)
    assert (beat.rc, beat.record["address"]) == (0, f"agent:{name}")
    seen = {block["name"]: block for block in office("agent", "list", "--as", "boss").blocks}[name]
    assert seen["last-seen-at"] <= beat.record["seen-at"]  # both in the boss's zone
