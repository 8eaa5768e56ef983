"""The everyday words: send, inbox, read, reply, team, run; agents that take turns; people beside the boss."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from wcwidth import wcswidth

from tests.support.cli import Done, Office, open_office
from tests.support.talk import gated
from tests.support.terminal import on_terminal
from tests.support.waits import wait_until

PLAIN = {"NO_COLOR": "1"}


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Office]:
    """nex thinks with the demo provider, kai with a program that fails, ann is a person."""
    with open_office(tmp_path_factory.mktemp("d")) as running:
        running.daemon.call("agent.set", token=running.token("boss"), name="nex", provider="demo")
        running.daemon.register("kai", provider="command", settings={"command": "false"})
        assert running("user", "register", "--as", "boss", "--name", "Ann", "--display", "Ann A.").rc == 0
        yield running


def settled(office: Office, id_: str) -> dict[str, Any]:
    """An envelope to an agent, once its turn is over."""
    return wait_until(lambda: (one := office.envelope(id_))["status"] != "pending" and one)


def ask(office: Office, text: str, *words: str) -> str:
    """Something said to nex and answered; the id of the answer."""
    settled(office, office.ok("send", "nex", text, *words).record["id"])
    box = office("inbox", "--peek", "--json", *words).json["envelopes"]
    return str(next(one["id"] for one in box if f"You said: {text}" == one["text"]))


def unread(office: Office, *words: str) -> list[str]:
    done = office("inbox", "--unread", *words)
    assert done.rc == 0
    return done.values("envelope-id")


# --- speaking ------------------------------------------------------------------------


def test_several_are_written_to_at_once_and_a_text_may_come_from_a_pipe(office: Office) -> None:
    sent = office(
        "send", "nex, user:ann", "-", stdin="two\nlines\n", env={"HIBOSS_TOKEN": office.token("boss")}
    )
    assert sent.rc == 0
    first, second = (office.envelope(id_) for id_ in sent.values("id"))
    assert [first["to"], second["to"]] == ["agent:nex", "user:Ann"] and first["text"] == "two\nlines\n"


def test_files_go_along_and_a_time_may_be_given(office: Office, tmp_path: Path) -> None:
    (tmp_path / "plan.txt").write_text("x")
    sent = office("send", "nex", "--attachment", "plan.txt", "--deliver-at", "+1D", cwd=tmp_path)
    assert sent.rc == 0 and "deliver-at" in sent.record
    stored = office.envelope(sent.record["id"])
    assert [file["name"] for file in stored["attachments"]] == ["plan.txt"] and stored["waits"] == "deferred"


# --- reading -------------------------------------------------------------------------


def test_an_inbox_that_is_shown_is_read_unless_one_only_peeks(office: Office) -> None:
    answer = ask(office, "is this read?")
    assert answer in unread(office) and answer in office("inbox", "--peek").values("envelope-id")
    assert answer in unread(office)
    shown = office("inbox", "--from", "nex")
    assert answer in shown.values("envelope-id") and answer not in unread(office)


def test_looking_into_the_box_of_another_marks_nothing(office: Office) -> None:
    answer = ask(office, "mine alone?", "--as", "ann")
    assert answer in office("inbox", "--address", "user:ann").values("envelope-id")
    assert answer in unread(office, "--as", "ann")
    refused = office("inbox", "--as", "ann", "--address", "user:boss")
    assert refused.rc == 1 and "code: boss_only" in refused.stderr


def test_reading_shows_it_whole_and_replying_goes_to_who_wrote_it(office: Office) -> None:
    answer = ask(office, "read me")
    shown = office("read", answer)
    assert shown.rc == 0 and shown.stdout.endswith("text:\n> You said: read me\n")
    assert answer not in unread(office)
    stored = office.envelope(office("reply", answer, "thank you").record["id"])
    assert stored["to"] == "agent:nex" and stored["thread"] == office.envelope(answer)["thread"]


def test_replying_marks_what_it_answers_and_the_operation_alone_marks_nothing(office: Office) -> None:
    asked, other = (office("send", "ann", text).record["id"] for text in ("first", "second"))
    office.daemon.call("envelope.send", token=office.token("ann"), reply_to=asked, text="by a program")
    assert office.envelope(asked)["read_at"] is None
    assert office("reply", asked, "by hand", "--as", "ann").rc == 0
    assert office.envelope(asked)["read_at"] is not None
    assert other in unread(office, "--as", "ann") and asked not in unread(office, "--as", "ann")


def test_a_reply_by_the_envelope_of_another_recipient_is_sent_and_marks_ones_own(office: Office) -> None:
    assert office("user", "register", "--as", "boss", "--name", "lou").rc == 0
    to_lou, to_ann = office("send", "lou,ann", "for both").values("id")
    office.ok("reply", to_lou, "seen", "--as", "ann")
    assert to_ann not in unread(office, "--as", "ann")
    assert office.envelope(to_lou)["read_at"] is None


# --- runs and agents that take turns -------------------------------------------------


def runs(office: Office, *words: str) -> Done:
    return office.ok("run", "list", *words)


def test_a_run_is_listed_and_shown_with_its_answer(office: Office) -> None:
    answer = ask(office, "which run is this?")
    run = office.envelope(answer)["run"]
    assert run in runs(office, "--agent", "nex", "-n", "100").values("id")
    shown = office("run", "get", "--id", run)
    assert (
        "status: completed\n" in shown.stdout
        and f"answer: {office.envelope(answer)['message']}\n" in shown.stdout
    )
    assert shown.stdout.endswith("text:\n> You said: which run is this?\n")
    tail = office("run", "tail", "--id", run)
    assert tail.rc == 0 and tail.stdout == shown.stdout
    assert office("run", "get", "--as", "kai", "--id", run).rc == 1


def test_tail_without_an_id_follows_the_newest_run(tmp_path: Path) -> None:
    for name in ("home", "first", "second"):
        (tmp_path / name).mkdir()
    with (
        open_office(tmp_path / "home") as office,
        gated(office, tmp_path / "first") as (older, _),
        gated(office, tmp_path / "second") as (newer, gate),
    ):
        none = office("run", "tail")
        assert (none.rc, none.stdout) == (1, "") and "code: nothing_running" in none.stderr
        first, second = running(office, older), running(office, newer)
        with office.open("run", "tail") as tail:
            assert tail.stdout is not None and tail.stderr is not None
            note = tail.stderr.readline()
            gate.touch()
            shown = tail.stdout.read()
        assert note == f"note: following {second} ({newer}); also running: {first} ({older})\n"
        assert f"id: {second}\n" in shown and "status: completed\n" in shown


def running(office: Office, name: str) -> str:
    """The run that a message has started."""
    assert office("send", name, "start").rc == 0
    listed = ("run", "list", "--agent", name, "--status", "running")
    return str(wait_until(lambda: office(*listed).values("id"))[0])


def test_a_turn_that_fails_says_why_in_run_and_status(office: Office) -> None:
    sent = office("send", "kai", "can you?")
    wait_until(lambda: office.envelope(sent.record["id"])["last_error"])
    (failed, *_) = runs(office, "--agent", "kai", "--status", "failed").blocks
    assert failed["status"] == "failed" and "exit" in failed["error"]

    def standing() -> dict[str, str]:
        return office("agent", "status", "--as", "boss", "--name", "kai").record

    wait_until(lambda: standing()["state"] == "retrying")  # not just being tried again
    assert standing()["last-error"] == failed["error"]


def test_a_paused_agent_says_why_and_goes_on_when_it_may(office: Office) -> None:
    words = ("--as", "boss", "--name", "nex")

    def due() -> str:
        return next(one.get("due", "0") for one in office("team").blocks if one.get("name") == "nex")

    wait_until(lambda: due() == "0")  # mail of other tests is done
    assert office("agent", "pause", *words, "--reason", "holidays").record["changed"] == "true"
    status = office("agent", "status", *words).record
    assert (status["state"], status["why"]) == ("paused", "holidays")
    for command in (("agent", "status", "nex"), ("team",)):
        assert on_terminal(office, *command).stderr == "To resume nex: hiboss agent resume nex\n"
    sent = office("send", "nex", "when you are back")
    assert due() == "1"
    assert office("agent", "resume", *words).record == {"name": "nex", "changed": "true"}
    assert settled(office, sent.record["id"])["status"] == "done"
    assert office("agent", "resume", *words).record["changed"] == "false"


def test_a_task_in_the_background_comes_back_in_its_thread(office: Office) -> None:
    given = office.ok("agent", "background", "--as", "nex", "--task", "-", stdin="count the words")
    settled(office, given.record["id"])
    listed = office("envelope", "list", "--as", "nex", "--thread", given.record["thread"], "--json").json
    assert {one["from"] for one in listed["envelopes"]} == {"agent:nex", "agent:background"}


def test_what_is_said_of_how_an_agent_thinks_is_kept_and_shown(office: Office, tmp_path: Path) -> None:
    words = (
        "agent",
        "register",
        "--as",
        "boss",
        "--name",
        "max",
        "--provider",
        "command",
        "--command",
        "cat -u",
    )
    limits = ("--reply", "explicit", "--busy", "followup", "--daily-tokens", "1000", "--daily-cost", "0.5")
    assert office(*words, *limits, "--workspace", str(tmp_path)).rc == 0
    (shown,) = [one for one in office("agent", "list", "--as", "boss").blocks if one["name"] == "max"]
    expected = {"mode": "run", "provider": "command", "command": "cat -u", "reply": "explicit"}
    expected |= {"busy": "followup", "daily-tokens": "1000", "daily-cost": "0.5", "workspace": str(tmp_path)}
    assert expected.items() <= shown.items()
    changed = office(
        "agent", "set", "--as", "boss", "--name", "max", "--provider", "none", "--daily-tokens", "0"
    )
    assert changed.record["mode"] == "pull" and not {"provider", "command", "daily-tokens"} & set(
        changed.record
    )
    secret = office(
        "agent", "set", "--as", "boss", "--name", "max", "--provider", "webhook", "--url", "https://x.invalid"
    )
    assert secret.record["secret"].startswith("whsec_") and "shown only now" in secret.stderr
    assert office("agent", "delete", "--as", "boss", "--name", "max", "--yes").rc == 0


# --- on a terminal -------------------------------------------------------------------


def test_an_inbox_on_a_terminal_marks_only_what_it_showed_in_full(office: Office, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x")
    texts = {"short": "a short line", "lines": "two\nshort lines", "long": "long " * 40}

    def write(**params: Any) -> str:
        sent = office.daemon.call("envelope.send", token=office.token("kai"), to="ann", **params)
        return str(sent["ids"][0])

    office.daemon.call("envelope.read", token=office.token("ann"), all=True)  # what other tests sent
    ids = {name: write(text=text) for name, text in texts.items()}
    ids["subject"] = write(text="this is not shown", subject="a subject")
    ids["file"] = write(text="see the file", attachments=[str(tmp_path / "a.txt")])
    shown = on_terminal(office, "inbox", "--as", "ann", env=PLAIN)
    assert shown.rc == 0 and "a short line\n" in shown.stdout
    cut = [ids[name] for name in ("file", "subject", "long")]
    assert unread(office, "--as", "ann") == cut
    assert shown.stderr == f"Not shown in full, still unread: hiboss read {' '.join(cut)}\n"
    assert office("inbox", "--as", "ann").rc == 0  # into a pipe, everything is shown in full
    assert unread(office, "--as", "ann") == []


def test_runs_and_the_team_are_tables(office: Office) -> None:
    ask(office, "for the table")
    head, *rows = on_terminal(office, "run", "list", "--agent", "nex", env=PLAIN).stdout.splitlines()
    assert re.sub(" +", " ", head).strip() == "id agent status started took trace answer or error"
    assert any(re.match(r"r\d+ +nex +completed .*You said: for", row) for row in rows)
    head, *rows = on_terminal(office, "team", columns=120, env=PLAIN).stdout.splitlines()
    assert head.split()[:3] == ["agent", "state", "due"]
    assert [row.split()[0] for row in rows] == ["kai", "nex"]


@pytest.mark.parametrize("columns", [1, 25, 40, 80, 200])
def test_no_row_is_wider_than_any_terminal(office: Office, columns: int) -> None:
    ask(office, "漢字かな한국어漢字かな한국어漢字かな한국어漢字かな한국어")
    for words in (("run", "list"), ("team",), ("inbox", "--peek")):
        rows = on_terminal(office, *words, columns=columns, env=PLAIN).stdout.splitlines()
        rows = [row for row in rows if not row.startswith("next-cursor: ")]
        assert len(rows) >= 2 and [row for row in rows if wcswidth(row) > columns] == []


# --- people --------------------------------------------------------------------------


def test_a_person_has_a_box_and_a_token_until_they_leave(office: Office) -> None:
    made = office("user", "register", "--as", "boss", "--name", "bea", "--no-profile")
    assert made.record["address"] == "user:bea" and re.fullmatch(r"hbu_[\w-]{43}", made.record["token"])
    listed = {one["name"]: one for one in office("user", "list", "--as", "nex").blocks}
    assert listed["bea"]["display"] == "bea" and listed["Ann"]["display"] == "Ann A."
    env = {"HIBOSS_TOKEN": made.record["token"]}
    assert office("send", "user:boss", "hello boss", env=env).rc == 0
    new = office("user", "token", "rotate", "--as", "boss", "--name", "BEA").record["token"]
    assert office("inbox", env=env).rc == 1
    env = {"HIBOSS_TOKEN": new}
    assert office("inbox", env=env).stdout == "no-envelopes: true\n"
    asked = office("user", "delete", "--as", "boss", "--name", "bea")
    assert asked.rc == 2 and "--yes" in asked.stderr
    assert office("user", "delete", "--as", "boss", "--name", "bea", "--yes").record["deleted"] == "true"
    gone = office("inbox", env=env)
    assert gone.rc == 1 and "code: bad_token" in gone.stderr
    assert office("send", "user:bea", "hello?").rc == 1
