"""Who may do what, from the command line: policy, levels, tokens, and the boss."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.cli import Done, Office, Shell


@pytest.fixture(autouse=True)
def declared_again(office: Office) -> Iterator[None]:
    yield
    office.daemon.call("permission.policy.set", token=office.token("boss"), policy={})


def levels(office: Office) -> dict[str, str]:
    found: dict[str, str] = office.daemon.call("permission.policy.get", token=office.token("boss"))["policy"]
    return found


def decide(office: Office, text: str, *more: str) -> Done:
    return office("permission", "policy", "set", "--as", "boss", "--file", "-", *more, stdin=text)


# --- the policy ----------------------------------------------------------------------


@pytest.mark.parametrize("json_", [(), ("--json",)])
def test_what_get_prints_can_be_edited_and_set(
    office: Office, tmp_path: Path, json_: tuple[str, ...]
) -> None:
    file = tmp_path / "policy"
    assert decide(office, "envelope.send: privileged").rc == 0
    got = office("permission", "policy", "get", "--as", "nex", *json_)
    assert (got.rc, got.stderr) == (0, "")
    file.write_text(got.stdout)
    assert decide(office, "").rc == 2 and levels(office)["envelope.send"] == "privileged"
    assert decide(office, "{}").rc == 0 and levels(office)["envelope.send"] == "standard"
    again = office("permission", "policy", "set", "--as", "boss", "--file", str(file), *json_)
    assert again.stdout == got.stdout and levels(office)["envelope.send"] == "privileged"
    file.write_text(got.stdout.replace("privileged", "boss"))
    done = office("permission", "policy", "set", "--as", "boss", "--file", str(file), *json_)
    changed = levels(office)
    assert (changed["envelope.send"], changed["observe"]) == ("boss", "boss")
    assert (done.json["policy"] if json_ else done.record) == changed


def test_a_policy_file_may_have_comments_blank_lines_and_odd_spaces(office: Office, tmp_path: Path) -> None:
    file = tmp_path / "policy"
    file.write_bytes(
        b"# who may do what\r\n\r\n  envelope.send :privileged # for now\r\nobserve:boss\n\n   #\nobserve: boss\n"
    )
    before = levels(office)
    done = office("permission", "policy", "set", "--as", "boss", "--file", "policy", cwd=tmp_path)
    assert done.rc == 0
    assert levels(office) == before | {"envelope.send": "privileged", "observe": "boss"}
    inner = json.dumps({"policy": {"envelope.send": "boss"}, "changed": ["whatever"]})
    for text in (f"\n  {inner}", '{"envelope.send": "boss"}'):
        assert decide(office, text).rc == 0
        assert levels(office) == before | {"envelope.send": "boss"}
    assert decide(office, "{}").rc == 0 and levels(office) == before


@pytest.mark.parametrize(
    ("text", "rc", "says"),
    [
        ("agent.list: boss\nenvelope.snd: boss", 1, ("unknown_operation", "did you mean envelope.send?")),
        ("agent.list: boss\nboss.set: standard", 1, ("fixed_level", "boss.set always needs the level boss")),
        ("agent.list: boss\nenvelope.send: bos", 2, ("did you mean boss?", "restricted, standard")),
        ("agent.list: boss\nenvelope.send", 2, ("line 2", "envelope.send: standard")),
        ("agent.list: boss\n\n: boss", 2, ("line 3",)),
        ("agent.list: boss\nagent.list:", 2, ("line 2",)),
        ("agent.list: boss\nagent.list: standard", 2, ("line 2", "names agent.list again")),
        ('{"agent.list": "boss"', 2, ("no JSON",)),
        ('{"agent.list": "boss", "observe": 5}', 2, ("observe",)),
        ('{"policy": ["agent.list"]}', 2, ("policy",)),
        ('["agent.list"]', 2, ("line 1",)),
        ('{"a":' * 100_000, 2, ("JSON",)),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_file_with_a_mistake_changes_nothing(
    office: Office, text: str, rc: int, says: tuple[str, ...]
) -> None:
    before = levels(office)
    done = decide(office, text)
    assert done.rc == rc and done.stdout == "", done.stderr
    assert "Traceback" not in done.stderr and [word for word in says if word not in done.stderr] == []
    assert levels(office) == before


def test_a_file_that_cannot_be_read_is_said(office: Office, tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    for name in ("nowhere", "binary", "."):
        done = office("permission", "policy", "set", "--as", "boss", "--file", name, cwd=tmp_path)
        assert done.rc == 2 and done.stderr.startswith(f"error: {name} ")
        assert "attachment" not in done.stderr and "Traceback" not in done.stderr
    assert office("permission", "policy", "set", "--as", "boss").rc == 2


def test_only_the_boss_decides_and_an_error_is_json_when_asked(office: Office) -> None:
    done = office(
        "permission", "policy", "set", "--as", "nex", "--file", "-", "--json", stdin="observe: boss"
    )
    assert done.rc == 1 and done.error["code"] == "forbidden"
    assert done.error["data"]["operation"] == "permission.policy.set"


# --- levels --------------------------------------------------------------------------


def test_an_agents_level_is_shown_and_changed_and_in_force_at_once(office: Office) -> None:
    name = office.agent()
    send = ("envelope", "send", "--as", name, "--to", "agent:nex", "--text", "x")
    got = office("agent", "permission", "get", "--as", name, "--name", name)
    assert got.record["level"] == "standard" and "envelope.send" in got.record["may"].split(", ")
    done = office("agent", "permission", "set", "--as", "boss", "--name", name, "--level", "restricted")
    assert done.record["level"] == "restricted" and "envelope.send" not in done.record["may"].split(", ")
    refused = office(*send)
    assert refused.rc == 1 and "envelope.send needs the level standard" in refused.stderr
    assert decide(office, "envelope.send: restricted").rc == 0
    assert office(*send).rc == 0


# --- tokens --------------------------------------------------------------------------


def test_a_rotated_token_is_shown_once_and_kept_for_as(office: Office) -> None:
    name = office.agent()
    old = office.token(name)
    done = office("agent", "token", "rotate", "--as", "boss", "--name", name)
    assert done.record["token"] == office.token(name) != old
    assert done.record["profile"] == office.home.profile(name) and done.record["revoked"] == "1"
    assert office("agent", "self", "--as", name).rc == 0
    assert office("agent", "self", env={"HIBOSS_TOKEN": old}).rc == 1
    done = office("agent", "token", "rotate", "--as", "boss", "--name", name, "--no-profile", "--json")
    assert done.json["profile"] is None and not office.home.has_profile(name)
    assert office("agent", "self", env={"HIBOSS_TOKEN": done.json["token"]}).rc == 0
    done = office("agent", "token", "rotate", "--as", "boss", "--name", name, "--profile")
    assert done.record["token"] == office.token(name)


def test_a_revoked_token_is_refused_and_its_profile_is_gone(office: Office) -> None:
    name = office.agent()
    old = office.token(name)
    done = office("agent", "token", "revoke", "--as", "boss", "--name", name)
    assert done.record == {"name": name, "revoked": "1"}
    assert "code: unknown_profile" in office("agent", "self", "--as", name).stderr
    assert "code: bad_token" in office("agent", "self", env={"HIBOSS_TOKEN": old}).stderr


def test_an_agent_may_not_touch_anothers_token(office: Office) -> None:
    assert decide(office, "agent.token.rotate: standard\nagent.token.revoke: standard").rc == 0
    for verb in ("rotate", "revoke"):
        done = office("agent", "token", verb, "--as", "nex", "--name", "boss", "--json")
        assert done.rc == 1 and done.error["code"] == "boss_only"


# --- the boss ------------------------------------------------------------------------


def test_the_boss_is_shown_and_changed_and_times_follow(office: Office) -> None:
    name = office.agent()
    office.send("nex", name)
    assert office("boss", "get", "--as", "nex").record == {
        "name": "Ada",
        "address": "user:boss",
        "timezone": "UTC",
    }
    done = office("boss", "set", "--as", "boss", "--name", "Grace", "--timezone", "Asia/Tokyo")
    assert done.record == {
        "name": "Grace",
        "address": "user:boss",
        "timezone": "Asia/Tokyo",
        "forward": "all",
    }
    try:
        listed = office("envelope", "list", "--as", name)
        assert [time[-6:] for time in listed.values("created-at")] == ["+09:00"]
        turn = office("envelope", "list", "--as", name, "--as-turn")
        assert {time[-6:] for time in turn.values("created-at") + turn.values("now")} == {"+09:00"}
        assert office("daemon", "time").record["local"].endswith("+09:00")
        assert office("agent", "list", "--as", "nex").values("created-at")[0].endswith("+09:00")
    finally:
        assert office("boss", "set", "--as", "boss", "--name", "Ada", "--timezone", "UTC").rc == 0


def test_what_the_boss_cannot_be_is_said(office: Office) -> None:
    nothing = office("boss", "set", "--as", "boss")
    assert nothing.rc == 2 and "--name" in nothing.stderr and "--timezone" in nothing.stderr
    zone = office("boss", "set", "--as", "boss", "--timezone", "Asia/Tokio")
    assert zone.rc == 2 and "did you mean Asia/Tokyo?" in zone.stderr
    assert office("boss", "set", "--as", "nex", "--name", "Eve").rc == 1


def test_the_boss_rotates_by_the_daemon_while_one_runs(office: Office) -> None:
    old = office.token("boss")
    offline = office("boss", "token", "rotate", "--offline", "--json")
    assert offline.rc == 1 and offline.error["code"] == "daemon_running"
    assert "code: forbidden" in office("boss", "token", "rotate", "--as", "nex").stderr
    assert office.token("boss") == old
    done = office("boss", "token", "rotate")
    assert done.record["token"] == office.token("boss") != old
    assert "code: bad_token" in office("boss", "get", env={"HIBOSS_TOKEN": old}).stderr


def test_the_owner_of_the_home_rotates_without_a_daemon_and_without_a_token(tmp_path: Path) -> None:
    shell = Shell(tmp_path / "home")
    fresh = shell("boss", "token", "rotate", "--offline")
    assert fresh.rc == 1 and "run: hiboss up" in fresh.stderr
    shell = Shell(tmp_path / "other")
    shell.set_up()
    tokens = [shell.token("boss")]
    refused = shell("boss", "token", "rotate", "--offline", "--as", "nex")
    assert refused.rc == 2 and "takes no token" in refused.stderr
    assert shell("boss", "token", "rotate", "--as", "nex").rc == 3  # who gives a token is held to it
    for words in ((), ("--offline",)):
        done = shell("boss", "token", "rotate", *words)
        assert done.rc == 0, done.stderr
        tokens.append(done.record["token"])
        assert shell.token("boss") == tokens[-1]
    assert len(set(tokens)) == 3
