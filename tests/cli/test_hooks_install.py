"""`hiboss hooks`: the settings of a harness get our hooks and lose them again, and nothing else changes; their status."""

from __future__ import annotations

import json
import os
import stat
import sys
from pathlib import Path
from typing import Any

import pytest

from hiboss.cli.commands.hooks import HARNESSES
from hiboss.cli.harness_settings import codex_trust
from hiboss.cli.harness_settings.codex_hooks import CODEX
from hiboss.cli.harness_settings.harness import HookCommand, entries_of
from hiboss.cli.harness_settings.settings_file import SettingsFile
from hiboss.core.errors import HarnessSettingsUnwritable
from hiboss.core.paths import Home
from tests.support.cli import HIBOSS, Office
from tests.support.hook_desks import Desk

MINIFIED = b'{"model":"opus","permissions":{"allow":["Bash(git:*)"],"deny":[]},"env":{"A":"1"}}'
FOREIGN_HOOKS = b"""{
  "model": "opus",
  "hooks": {
    "Stop": [
      {
        "hooks": [{ "type": "command", "command": "notify-send \\"done\\"" }]
      }
    ],
    "PreToolUse": [
      { "matcher": "Bash", "hooks": [{ "type": "command", "command": "~/bin/hiboss-guard hook claude" }] }
    ],
    "SessionStart": []
  },
  "statusLine": { "type": "command", "command": "~/.claude/status.sh" }
}
"""
UNICODE = """{
    "env": {
        "GREETING": "gr\\u00fc\\u00df dich, \\ud83d\\ude00 caf\u00e9 \u6771\u4eac",
        "EMPTY": ""
    },

    "permissions": { "allow": [ "Read(//srv/**)" ,"Bash(ls:*)" ], "deny": [] },
    "mcpServers": {
        "files": {"command": "npx", "args": ["-y", "x"], "n": 1.50e+3}
    },
    "hooks": { }
}
""".encode()
TABS = b'{\r\n\t"hooks": {\r\n\t\t"Stop": [\r\n\t\t\t{"hooks": []}\r\n\t\t]\r\n\t},\r\n\t"env": {}\r\n}\r\n'
MARKED = b'\xef\xbb\xbf{\n  "theme": "dark"\n}'  # a byte order mark, and no line end
FILES = {
    "minified": MINIFIED,
    "foreign hooks": FOREIGN_HOOKS,
    "unicode": UNICODE,
    "tabs": TABS,
    "byte order mark": MARKED,
    "empty object": b"{}\n",
    "empty hooks": b'{"hooks": {}}',
    "empty": b"",
    "blank": b"\n\n",
    "only a mark": b"\xef\xbb\xbf",
}


def written(file: Path) -> tuple[int, ...]:
    """What changes when somebody writes a file; reading changes only its time of access."""
    known = file.stat()
    return (known.st_ino, known.st_mtime_ns, known.st_ctime_ns)


def parsed(content: bytes) -> Any:
    return json.loads(content.decode("utf-8-sig").strip() or "{}")


def commands(file: Path) -> list[str]:
    events = parsed(file.read_bytes())["hooks"].values()
    return [hook["command"] for groups in events for group in groups for hook in group["hooks"]]


def merged(value: Any, client: str, home: str, asks: bool) -> Any:
    """The settings with a group of ours at the end of each event of the table."""
    command = HookCommand(program=HIBOSS, home=home)
    hooks = {**value.get("hooks", {})}
    for event, group in entries_of(HARNESSES[client], command, asks=asks).items():
        hooks[event] = [*hooks.get(event, []), group]
    return {**value, "hooks": hooks}


# Every kind of file for one program, and both programs in both ways for one file.
INSTALLED = [
    *((name, "claude", False) for name in FILES),
    *(
        ("foreign hooks", client, asks)
        for client, asks in (("claude", True), ("codex", False), ("codex", True))
    ),
]


@pytest.mark.parametrize(("name", "client", "asks"), INSTALLED)
def test_install_adds_ours_alone_and_remove_gives_the_file_back(
    desk: Desk, name: str, client: str, asks: bool
) -> None:
    file, content = desk.file(client), FILES[name]
    file.write_bytes(content)
    assert desk.install(client, *(["--asks"] if asks else []))["outcome"] == "installed"
    assert parsed(file.read_bytes()) == merged(parsed(content), client, desk.shell.home.path, asks)
    assert list(parsed(file.read_bytes()))[: len(parsed(content))] == list(parsed(content))
    assert desk.remove(client)["outcome"] == "removed"
    assert file.read_bytes() == content


@pytest.mark.parametrize("client", ["claude", "codex"])
def test_a_file_that_was_not_there_is_made_private_and_goes_again(desk: Desk, client: str) -> None:
    file = desk.file(client)
    file.parent.rmdir()
    assert "backup" not in {key for key, value in desk.install(client).items() if value}
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert parsed(file.read_bytes()) == merged({}, client, desk.shell.home.path, asks=False)
    desk.install(client, "--asks")
    desk.remove(client)
    assert not file.exists()


def test_the_hooks_have_the_form_that_both_programs_read(desk: Desk) -> None:
    desk.install("claude", "--asks")
    desk.install("codex", "--asks")
    home = f"--home {desk.shell.home.path}"
    claude, codex = (parsed(file.read_bytes())["hooks"] for file in (desk.claude, desk.codex))
    for event in ("SessionStart", "UserPromptSubmit", "Stop"):
        (group,) = claude[event]
        hook, waiter = group["hooks"]
        assert list(hook) == ["type", "command", "timeout"] and hook["type"] == waiter["type"] == "command"
        assert hook["command"] == f"{HIBOSS} hook claude {home} || true"
        assert waiter["command"] == f"{HIBOSS} watch --hook claude {home}"
        assert waiter["asyncRewake"] is True and waiter["rewakeMessage"] and waiter["rewakeSummary"]
        (group,) = codex[event]
        assert [one["command"] for one in group["hooks"]] == [f"{HIBOSS} hook codex {home} || true"]
    for hooks in (claude, codex):
        assert hooks["PostToolUse"][0]["matcher"] == hooks["PermissionRequest"][0]["matcher"] == "*"
    assert claude["PermissionRequest"][0]["hooks"][0]["onFailure"] == "block"
    assert "onFailure" not in codex["PermissionRequest"][0]["hooks"][0]


def test_a_second_install_changes_nothing_not_even_the_time_of_the_file(desk: Desk) -> None:
    desk.claude.write_bytes(FOREIGN_HOOKS)
    desk.install()
    before = (written(desk.claude), desk.backups())
    assert desk("install", "--client", "claude").record == {
        "client": "claude",
        "settings-file": str(desk.claude),
        "outcome": "already installed",
    }
    assert (written(desk.claude), desk.backups()) == before


def test_other_options_update_the_hooks_in_place(desk: Desk) -> None:
    desk.claude.write_bytes(FOREIGN_HOOKS)
    desk.install()
    added = parsed(desk.claude.read_bytes())
    added["hooks"]["Stop"].append({"hooks": [{"type": "command", "command": "mine"}]})
    desk.claude.write_text(json.dumps(added, indent=2))
    assert desk.install("claude", "--asks")["outcome"] == "updated"
    changed = parsed(desk.claude.read_bytes())
    assert changed["hooks"].pop("PermissionRequest") and changed == added
    assert desk.install()["outcome"] == "updated" and parsed(desk.claude.read_bytes()) == added
    desk.claude.write_text(json.dumps(added, indent=2).replace(HIBOSS, "/opt/old/bin/hiboss"))
    assert desk.install()["outcome"] == "updated" and desk.claude.read_text() == json.dumps(added, indent=2)


def test_what_is_there_twice_or_for_one_tool_only_is_put_right(desk: Desk) -> None:
    desk.install()
    right = parsed(desk.claude.read_bytes())
    wrong = json.loads(json.dumps(right))
    wrong["hooks"]["Stop"] *= 2
    del wrong["hooks"]["SessionStart"][0]["hooks"][1]
    wrong["hooks"]["PostToolUse"][0]["matcher"] = "Bash"
    wrong["hooks"]["PreCompact"] = wrong["hooks"]["SessionEnd"]
    desk.claude.write_text(json.dumps(wrong))
    found = desk.status()
    assert found["installed"] == "partly" and found["missing"] == ["SessionStart"]
    assert found["differing"] == ["PostToolUse", "Stop", "PreCompact"]
    desk.install()
    assert parsed(desk.claude.read_bytes()) == right and desk.status()["installed"] == "yes"


def test_a_foreign_hook_in_our_group_stays_when_ours_go(desk: Desk) -> None:
    desk.install()
    mixed = parsed(desk.claude.read_bytes())
    mixed["hooks"]["Stop"][0]["hooks"].insert(0, {"type": "command", "command": "echo hiboss hook claude"})
    desk.claude.write_text(json.dumps(mixed))
    desk.remove()
    assert commands(desk.claude) == ["echo hiboss hook claude"]


def test_remove_without_hooks_says_so_and_changes_nothing(desk: Desk) -> None:
    assert desk.remove()["outcome"] == "not installed" and not desk.claude.exists()
    desk.claude.write_bytes(FOREIGN_HOOKS)
    before = written(desk.claude)
    assert desk.remove()["outcome"] == "not installed"
    assert written(desk.claude) == before and desk.backups() == []


WRONG = {
    "no json": ('{"a": 1,}', "line 1, column 9"),
    "comment": ("{ // mine\n}", "line 1, column 3"),
    "twice": ('{\n "hooks": {},\n "hooks": {}\n}', 'line 3, column 2: the key "hooks" is given twice'),
    "array": ("[]", 'it is an array, and must be an object: {"hooks": {…}}'),
    "hooks": ('{"hooks": []}', '"hooks" is an array, and must be an object'),
    "null": ('{"hooks": null}', '"hooks" is null, and must be an object'),
    "no utf-8": (b'{"a": "\xff"}', "byte 7 is no UTF-8 text"),
}


@pytest.mark.parametrize(("content", "says"), WRONG.values(), ids=list(WRONG))
def test_settings_of_another_form_are_refused_and_left_alone(
    desk: Desk, content: str | bytes, says: str
) -> None:
    desk.claude.write_bytes(content if isinstance(content, bytes) else content.encode())
    before = written(desk.claude)
    for verb in ("install", "remove"):
        done = desk(verb, "--client", "claude")
        assert done.rc == 1 and done.stdout == "" and "Traceback" not in done.stderr
        assert says in done.stderr and str(desk.claude) in done.stderr
    assert written(desk.claude) == before and desk.backups() == []
    found = desk.status()
    assert found["installed"] == "unknown" and says in found["problem"]


def test_an_event_of_another_form_is_refused(desk: Desk) -> None:
    desk.claude.write_text('{"hooks": {"Stop": {}}}')
    done = desk("install", "--client", "claude")
    assert done.rc == 1 and '"hooks" has an object for Stop, and must have an array' in done.stderr


def test_a_file_that_cannot_be_read_is_refused(desk: Desk) -> None:
    desk.claude.mkdir()
    done = desk("install", "--client", "claude", "--json")
    assert done.rc == 2 and done.error["code"] == "unreadable_file"
    desk.claude.rmdir()
    os.mkfifo(desk.claude)
    assert "no regular file" in desk("install", "--client", "claude").stderr


def test_a_link_stays_and_the_file_behind_it_is_changed(desk: Desk, tmp_path: Path) -> None:
    real = tmp_path / "dotfiles.json"
    real.write_bytes(MINIFIED)
    desk.claude.symlink_to(real)
    desk.install()
    assert desk.claude.is_symlink() and "hooks" in parsed(real.read_bytes())
    desk.remove()
    assert desk.claude.is_symlink() and real.read_bytes() == MINIFIED
    assert len(desk.backups()) == 2


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o664])
def test_the_file_and_its_backup_keep_the_mode(desk: Desk, mode: int) -> None:
    desk.claude.write_bytes(MINIFIED)
    desk.claude.chmod(mode)
    backup = Path(desk.install()["backup"])
    assert backup.read_bytes() == MINIFIED
    assert {stat.S_IMODE(one.stat().st_mode) for one in (desk.claude, backup)} == {mode}
    assert sorted(desk.claude.parent.iterdir()) == sorted([desk.claude, backup])


def test_the_newest_five_backups_stay_and_other_files_too(desk: Desk) -> None:
    desk.claude.write_bytes(MINIFIED)
    other = desk.claude.with_name("settings.json.hiboss-backup-mine")
    other.write_text("mine")
    made = [desk.install("claude", *more)["backup"] for more in ([], ["--asks"]) * 3]
    made.append(desk.remove()["backup"])
    assert [str(one) for one in desk.backups() if one != other] == made[-5:]
    assert other.read_text() == "mine"


@pytest.mark.parametrize("step", ["os.fsync", "os.replace", "os.fchmod"])
def test_a_command_killed_in_the_middle_leaves_the_old_file(desk: Desk, step: str) -> None:
    desk.claude.write_bytes(MINIFIED)
    killed = f"""
import os, sys
from hiboss.cli.harness_settings import settings_file
whole = settings_file.SettingsFile._back_up
def back_up(self):
    made = whole(self)
    {step} = lambda *_: os._exit(9)
    return made
settings_file.SettingsFile._back_up = back_up
from hiboss.cli.entry import main
sys.argv = [{HIBOSS!r}, "hooks", "install", "--client", "claude"]
main()
"""
    done = desk.shell.run([sys.executable, "-c", killed], env={"HOME": str(desk.home)})
    assert done.rc == 9 and desk.claude.read_bytes() == MINIFIED
    desk.install()
    desk.remove()
    assert desk.claude.read_bytes() == MINIFIED


def test_a_change_of_somebody_else_in_the_same_moment_is_not_lost(desk: Desk) -> None:
    desk.claude.write_bytes(MINIFIED)
    file = SettingsFile(str(desk.claude))
    desk.claude.write_bytes(FOREIGN_HOOKS)
    for text in ("{}", None):
        with pytest.raises(HarnessSettingsUnwritable, match="another program changed it"):
            file.change(text)
    assert desk.claude.read_bytes() == FOREIGN_HOOKS


def test_a_home_that_is_not_the_default_one_is_named(desk: Desk) -> None:
    desk.install()
    assert desk.status()["home"] == desk.shell.home.path
    desk.install("claude", HIBOSS_HOME=str(desk.home / ".hiboss"))
    assert desk.status()["home"] is None
    assert set(commands(desk.claude)) == {f"{HIBOSS} hook claude || true", f"{HIBOSS} watch --hook claude"}


def test_the_variables_of_the_programs_name_the_directory(desk: Desk, tmp_path: Path) -> None:
    for client, variable, file in (
        ("claude", "CLAUDE_CONFIG_DIR", "settings.json"),
        ("codex", "CODEX_HOME", "hooks.json"),
    ):
        there = tmp_path / "elsewhere" / file
        assert desk.install(client, **{variable: str(there.parent)})["settings_file"] == str(there)
        assert there.exists() and not desk.file(client).exists()


@pytest.mark.parametrize("variable", ["CLAUDECODE", "CODEX_THREAD_ID", "HIBOSS_AGENT"])
def test_an_agent_cannot_change_its_hooks_but_can_look(desk: Desk, variable: str) -> None:
    for verb in ("install", "remove"):
        done = desk(verb, "--client", "claude", "--json", **{variable: "1"})
        assert done.rc == 1 and done.error["code"] == "agent_changes_hooks"
        assert variable in done.error["message"] and "--as" not in done.error["message"]
    assert not desk.claude.exists() and desk.status(**{variable: "1"})["installed"] == "no"


# --- --agent -----------------------------------------------------------------------------


def test_an_agent_that_is_not_there_is_registered_and_named(office: Office, tmp_path: Path) -> None:
    desk = Desk(tmp_path, office)
    result = desk.install("claude", "--agent", "desk-1")
    assert result["agent_registered"] is True and "token" not in result
    assert office("agent", "status", "desk-1", "--as", "boss").rc == 0
    (listed,) = [one for one in office("agent", "list", "--json").json["agents"] if one["name"] == "desk-1"]
    assert listed["mode"] == "pull"
    assert stat.S_IMODE(os.stat(office.home.profile("desk-1")).st_mode) == 0o600
    again = desk.install("claude", "--agent", "desk-1")
    assert again["outcome"] == "already installed" and again["agent_registered"] is None
    assert desk.status()["agent"] == "desk-1"
    assert all(f" --agent desk-1 --home {office.home.path}" in one for one in commands(desk.claude))


def test_a_bad_name_is_refused_by_the_daemon_and_nothing_is_installed(office: Office, tmp_path: Path) -> None:
    desk = Desk(tmp_path, office)
    for name, code in (("no name", "bad_name"), ("boss", "bad_name")):
        done = desk("install", "--client", "claude", "--agent", name, "--json")
        assert (done.rc, done.error["code"]) == (2, code)
    assert not desk.claude.exists()


def test_without_a_daemon_an_agent_cannot_be_named(desk: Desk) -> None:
    done = desk("install", "--client", "claude", "--agent", "nex", "--json")
    assert done.rc == 3 and done.error["code"] == "daemon_unreachable"
    assert not desk.claude.exists()


# --- status ---------------------------------------------------------------------------


def test_status_shows_both_programs_and_what_a_hook_last_did(desk: Desk) -> None:
    desk.install()
    assert desk("status").blocks == [
        {
            "client": "claude",
            "settings-file": str(desk.claude),
            "installed": "yes",
            "program": HIBOSS,
            "program-exists": "true",
            "home": desk.shell.home.path,
            "asks": "false",
            "last": "no hook has run yet",
        },
        {
            "client": "codex",
            "settings-file": str(desk.codex),
            "installed": "no",
            "advice": "hiboss hooks install --client codex",
            "last": "no hook has run yet",
        },
    ]


LAST = [
    ({"event": "Stop", "at": "2026-01-28T12:08:45Z", "agent": "nex", "outcome": "2 new"}, "Stop for nex at 2026-01-28T12:08:45Z: 2 new"),
    ({"event": "Stop", "error": "no daemon"}, "Stop (error: no daemon)"),
    ({}, "a hook"),
    ([], "no hook has run yet"),
    ("{", "no hook has run yet"),
]  # fmt: skip


@pytest.mark.parametrize(("noted", "shown"), LAST, ids=lambda value: str(value)[:20])
def test_the_note_of_the_last_hook_may_be_incomplete(desk: Desk, noted: Any, shown: str) -> None:
    note = Path(Home(desk.shell.home.path).path, "sessions", "last-hook-claude.json")
    note.parent.mkdir(parents=True)
    note.write_text(noted if isinstance(noted, str) else json.dumps(noted))
    assert desk("status", "--client", "claude").record["last"] == shown


def test_status_tells_that_the_program_is_gone_and_that_hooks_are_switched_off(desk: Desk) -> None:
    desk.claude.write_text('{"disableAllHooks": true}')
    desk.install()
    desk.claude.write_text(desk.claude.read_text().replace(HIBOSS, "/gone/hiboss"))
    found = desk.status()
    assert found["program"] == "/gone/hiboss" and found["program_exists"] is False
    assert found["installed"] == "yes" and "disableAllHooks" in found["problem"]


# --- the trust of Codex --------------------------------------------------------------------

ANSWERING = """#!/bin/sh
read initialize; echo '{{"id":1,"result":{{}}}}'; echo '{{"method":"configWarning"}}'
read initialized; read list
echo '{answer}'
exec sleep 60
"""


def listed(desk: Desk, **states: str) -> str:
    """What the app-server of Codex answers about our hooks and one of somebody else's."""
    ours = {"command": f"{HIBOSS} hook codex", "sourcePath": str(desk.codex), "enabled": True}
    hooks = [{**ours, "eventName": event, "trustStatus": state} for event, state in states.items()]
    foreign = {**ours, "command": "other", "eventName": "stop", "trustStatus": "untrusted"}
    return json.dumps({"id": 2, "result": {"data": [{"cwd": "/", "hooks": [*hooks, foreign]}]}})


def with_codex(desk: Desk, script: str) -> dict[str, Any]:
    program = desk.home / "bin" / "codex"
    program.parent.mkdir()
    program.write_text(script)
    program.chmod(0o700)
    desk.install("codex")
    return desk.status("codex", PATH=f"{program.parent}:/usr/bin:/bin")


def test_hooks_that_codex_does_not_trust_are_shown_with_what_to_do(desk: Desk) -> None:
    found = with_codex(desk, ANSWERING.format(answer=listed(desk, sessionStart="trusted", stop="untrusted")))
    assert (found["installed"], found["trust"]) == ("installed, not trusted", "not trusted")
    assert found["trust_reason"] == "not reviewed: stop" and "/hooks" in found["advice"]


def test_hooks_that_codex_trusts_are_installed(desk: Desk) -> None:
    found = with_codex(desk, ANSWERING.format(answer=listed(desk, sessionStart="trusted", stop="managed")))
    assert (found["installed"], found["trust"]) == ("yes", "trusted")


NO_ANSWER = {
    "ends": ("#!/bin/sh\nexit 1\n", "codex did not answer"),
    "refuses": (ANSWERING.format(answer='{"id":2,"error":{"message":"unknown method"}}'), "unknown method"),
    "talks": ("#!/bin/sh\necho hello\nsleep 60\n", "codex did not answer"),
    "lists nothing": (ANSWERING.format(answer='{"id":2,"result":{"data":[]}}'), "codex does not list"),
}


@pytest.mark.parametrize(("script", "says"), NO_ANSWER.values(), ids=list(NO_ANSWER))
def test_without_an_answer_of_codex_the_trust_is_unknown(desk: Desk, script: str, says: str) -> None:
    found = with_codex(desk, script)
    assert (found["installed"], found["trust"]) == ("yes", "unknown")
    assert says in found["trust_reason"]


def test_a_codex_that_is_silent_is_not_waited_for(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    program = desk.home / "codex"
    program.write_text("#!/bin/sh\nexec sleep 60\n")
    program.chmod(0o700)
    monkeypatch.setenv("PATH", f"{desk.home}:/usr/bin:/bin")
    trust = codex_trust.ask(CODEX, str(desk.codex), seconds=0.2)
    assert trust == codex_trust.Trust(state="unknown", why="codex did not answer within 0.2 seconds")


def test_without_codex_the_trust_is_unknown(desk: Desk) -> None:
    desk.install("codex")
    assert desk.status("codex")["trust_reason"] == "the program codex is not on the PATH"
