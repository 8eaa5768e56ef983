"""`hiboss agent …` by hand."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tests.support.cli import Office


def test_registering_prints_name_and_token_which_works_at_once(office: Office) -> None:
    done = office.ok("agent", "register", "--as", "boss", "--name", "Kai-2")
    assert list(done.record)[:2] == ["name", "token"]
    assert done.record["name"] == "Kai-2" and re.fullmatch(r"hba_[\w-]{43}", done.record["token"])
    me = office("agent", "self", env={"HIBOSS_TOKEN": done.record["token"]})
    assert me.record["address"] == "agent:Kai-2"
    assert office("agent", "self", "--as", "kai-2").stdout == me.stdout
    profile = Path(office.home.profile("kai-2"))
    assert done.record["profile"] == str(profile) and profile.stat().st_mode & 0o777 == 0o600


def test_a_new_agent_pulls_and_its_words_are_listed(office: Office, tmp_path: Path) -> None:
    office.ok(
        *("agent", "register", "--as", "boss", "--name", "wordy", "--kind", "bot", "--mode", "pull"),
        *(
            "--description",
            "reads",
            "--role",
            "reviewer",
            "--module",
            "auth",
            "--display",
            "W",
            "--workspace",
            ".",
        ),
        cwd=tmp_path,
    )
    listed = office("agent", "list", "--as", "nex", "--role", "reviewer", "--module", "auth")
    words = {"name": "wordy", "address": "agent:wordy", "kind": "bot", "mode": "pull", "description": "reads"}
    words |= {"role": "reviewer", "module": "auth", "display": "W", "workspace": str(tmp_path)}
    assert {key: listed.record[key] for key in words} == words
    assert office("agent", "list", "--as", "nex", "--role", "nothing").stdout == "no-agents: true\n"


def test_agents_are_listed_in_blocks_with_one_blank_line_between(office: Office) -> None:
    name = office.agent()
    done = office.ok("agent", "list", "--as", name)
    assert {"nex", name} <= {block["name"] for block in done.blocks}
    in_json = office("agent", "list", "--as", name, "--json").json["agents"]
    assert [agent["name"] for agent in in_json] == [block["name"] for block in done.blocks]


def test_a_profile_is_not_kept_when_that_was_asked_for(office: Office) -> None:
    done = office("agent", "register", "--as", "boss", "--name", "shy", "--no-profile")
    assert list(done.record) == ["name", "token"]
    assert not os.path.exists(office.home.profile("shy"))


def test_changing_an_agent_prints_what_the_list_says_of_it(office: Office) -> None:
    name = office.agent(role="reviewer")
    done = office.ok("agent", "set", "--as", "boss", "--name", name, "--role", "", "--display", "Näm")
    (listed,) = [one for one in office("agent", "list", "--as", "boss").blocks if one["name"] == name]
    assert done.record.items() <= listed.items()
    assert listed["display"] == "Näm" and "role" not in listed


def test_deleting_ends_token_profile_and_waiting_mail(office: Office) -> None:
    name = office.agent()
    token = office.token(name)
    waiting = office.send("nex", name)
    done = office.ok("agent", "delete", "--as", "boss", "--name", name, "--yes")
    assert done.record == {"name": name, "deleted": "true", "failed-envelopes": "1"}
    assert office.envelope(waiting)["status"] == "failed"
    assert not os.path.exists(office.home.profile(name))
    refused = office("agent", "self", env={"HIBOSS_TOKEN": token})
    assert refused.rc == 1 and "code: bad_token" in refused.stderr


def test_where_nobody_can_be_asked_deleting_needs_yes(office: Office) -> None:
    name = office.agent()
    words = ("agent", "delete", "--as", "boss", "--name", name)
    done = office(*words)
    assert (done.rc, done.stdout) == (2, "")
    assert "--yes" in done.stderr and "code: usage\nhelp: hiboss agent delete --help\n" in done.stderr
    assert office(*words, "--json").error["code"] == "usage"
    assert office("agent", "self", "--as", name).record["address"] == f"agent:{name}"


def test_self_says_who_a_token_is(office: Office) -> None:
    assert office("agent", "self", "--as", "nex").record == {
        "kind": "agent",
        "address": "agent:nex",
        "level": "standard",
        "timezone": "UTC",
    }
    boss = office("agent", "self", "--as", "boss", "--json").json
    assert (boss["kind"], boss["address"], boss["level"]) == ("boss", "user:boss", "boss")


@pytest.mark.parametrize("verb", ["status", "pause", "resume"])
def test_the_name_is_positional_and_the_old_flag_still_works(office: Office, verb: str) -> None:
    name = office.agent()
    for words in ((name,), ("--name", name), (f"--name={name}",)):
        done = office("agent", verb, *words)
        assert (done.rc, done.stderr) == (0, "") and done.record["name"] == name


def test_ids_may_be_given_one_after_the_other_and_by_the_old_flag(office: Office) -> None:
    name = office.agent()
    ids = [office.send("nex", name) for _ in range(4)]
    done = office("envelope", "ack", ids[0], "--id", ids[1], "--as", name, ids[2], f"--id={ids[3]}")
    assert (done.rc, done.record["changed"]) == (0, "4")


def test_a_positional_text_may_look_like_an_old_flag(office: Office) -> None:
    sent = office("send", "--", "nex", "--id")
    assert sent.rc == 0 and office.envelope(sent.record["id"])["text"] == "--id"


def test_what_does_not_exist_is_not_asked_about(office: Office) -> None:
    for words, code in ((("agent", "delete"), "unknown_agent"), (("user", "delete"), "unknown_user")):
        done = office(*words, "nobody")
        assert done.rc == 1 and f"code: {code}" in done.stderr
    assert "give --yes if you are sure" in office("agent", "delete", "nex").stderr
