"""`hiboss mcp install` and `remove`: our entry in the settings of MCP clients, and nothing else in them."""

from __future__ import annotations

import json
import os
import stat
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import HIBOSS, Done, Office, Shell

TOKEN = "hba_canary-0123456789abcdef"
FILES = {
    ("claude", "user"): "person/.claude.json",
    ("claude", "project"): "project/.mcp.json",
    ("codex", "user"): "person/.codex/config.toml",
    ("codex", "project"): "project/.codex/config.toml",
    ("cursor", "user"): "person/.cursor/mcp.json",
    ("cursor", "project"): "project/.cursor/mcp.json",
}
JSONS = {
    "minified": b'{"numStartups":34,"mcpServers":{"files":{"command":"npx","args":["-y","x"]}},"z":1.50e+3}',
    "no servers": b'{\n\t"theme": "dark",\n\t"projects": { "/srv": {"mcpServers": {}} }\n}\n',
    "empty servers": b'{"mcpServers": {}}',
    "byte order mark": b'\xef\xbb\xbf{\r\n  "mcpServers": {\r\n    "a": {"url": "https://x"}\r\n  }\r\n}',
    "unicode": '{\n    "name": "caf\u00e9 \\u00fc \u6771"\n}\n'.encode(),
    "empty": b"",
}
TOMLS = {
    "empty": b"",
    "plain": b'# my settings\nmodel = "o9"  # the best\n\n[mcp_servers.files]\ncommand = "npx"\nargs = [\n  "-y",\n]\n',
    "windows": b'model = "x"\r\n[tui]\r\ntheme = "dark"\r\n',
    "arrays": b'[[rules]]\nmatch = """\n[mcp_servers.hiboss]\n"""\n\n[a."b.c"]\nx = [ ["q"], ]\n',
    "inline": b'mcp_servers.files = { command = "x" }\n[tui]\n',
}


class Desk:
    """A person with settings and a project of its own, and a home of hiboss with a profile for nex."""

    def __init__(self, directory: Path, shell: Shell) -> None:
        self.directory, self.shell = directory, shell
        self.project = directory / "project"
        for one in ("person", "project"):
            (directory / one).mkdir()
        shell.home.create()
        Path(shell.home.profile("nex")).write_text(TOKEN)
        Path(shell.home.profile("boss")).write_text("hbb_canary-0123456789abcdef")

    def __call__(self, *words: str, **env: str) -> Done:
        own = {"HOME": str(self.directory / "person"), "PATH": "/usr/bin:/bin", **env}
        return self.shell("mcp", *words, env=own, cwd=self.project)

    def done(self, *words: str, **env: str) -> dict[str, Any]:
        done = self(*words, "--json", **env)
        assert (done.rc, done.stderr) == (0, ""), done.stderr
        return done.json

    def install(self, client: str, *more: str) -> dict[str, Any]:
        return self.done("install", "--client", client, "--agent", "nex", *more)

    def file(self, client: str, scope: str = "user") -> Path:
        return self.directory / FILES[client, scope]

    def write(self, client: str, content: bytes) -> Path:
        file = self.file(client)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
        return file

    def entry(self, client: str, scope: str = "user") -> Any:
        text = self.file(client, scope).read_text("utf-8-sig")
        if client == "codex":
            return tomllib.loads(text)["mcp_servers"]["hiboss"]
        return json.loads(text)["mcpServers"]["hiboss"]


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path, Shell(tmp_path / "home"))


# --- the entry -----------------------------------------------------------------------


@pytest.mark.parametrize(("client", "scope"), FILES)
def test_the_entry_starts_this_hiboss_as_the_agent_and_has_no_token(
    desk: Desk, client: str, scope: str
) -> None:
    result = desk.install(client, "--scope", scope)
    assert (result["outcome"], result["settings_file"]) == ("installed", str(desk.file(client, scope)))
    entry = desk.entry(client, scope)
    assert (entry["command"], entry["args"]) == (HIBOSS, ["mcp", "--or-as", "nex"])
    assert entry["env"] == {"HIBOSS_HOME": desk.shell.home.path}
    everything = [one.read_text() for one in desk.directory.glob("p*/**/*") if one.is_file()]
    assert everything and not any("canary" in one for one in everything)
    assert desk.done("remove", "--client", client, "--scope", scope)["outcome"] == "removed"
    assert not desk.file(client, scope).exists()


def test_the_entry_for_another_client_is_printed(desk: Desk) -> None:
    (entry,) = desk.done("install", "--client", "json", "--agent", "Nex")["mcpServers"].values()
    assert entry == {
        "type": "stdio",
        "command": HIBOSS,
        "args": ["mcp", "--or-as", "nex"],
        "env": {"HIBOSS_HOME": desk.shell.home.path},
    }


def test_the_boss_is_in_an_entry_only_where_that_is_said(desk: Desk) -> None:
    desk.done("install", "--client", "cursor", "--as-boss", "--agent", "nex")
    assert desk.entry("cursor")["args"] == ["mcp", "--as-boss", "--agent", "nex"]
    for words in (("--client", "cursor"), ("--client", "json"), ("--client", "cursor", "--agent", "boss")):
        done = desk("install", *words)
        assert done.rc == 2 and "--as-boss" in done.stderr


@pytest.mark.parametrize("client", ["claude", "codex"])
def test_without_an_agent_the_open_session_is_meant_and_needs_hooks(desk: Desk, client: str) -> None:
    result = desk.done("install", "--client", client)
    assert desk.entry(client)["args"] == ["mcp"]
    assert f"hiboss hooks install --client {client}" in result["advice"]
    assert (
        desk.shell("hooks", "install", "--client", client, env={"HOME": str(desk.directory / "person")}).rc
        == 0
    )
    again = desk.done("install", "--client", client)
    assert again["outcome"] == "already installed" and "advice" not in again


def test_the_directories_that_the_environment_names_are_used(desk: Desk) -> None:
    for client, name, file in (
        ("claude", "CLAUDE_CONFIG_DIR", ".claude.json"),
        ("codex", "CODEX_HOME", "config.toml"),
    ):
        directory = desk.directory / f"own-{client}"
        result = desk.done("install", "--client", client, "--agent", "nex", **{name: str(directory)})
        assert result["settings_file"] == str(directory / file) and (directory / file).exists()


# --- what else is in the file --------------------------------------------------------


@pytest.mark.parametrize("name", JSONS)
@pytest.mark.parametrize("client", ["claude", "cursor"])
def test_all_else_in_json_stays_to_the_byte(desk: Desk, client: str, name: str) -> None:
    file = desk.write(client, JSONS[name])
    desk.install(client)
    assert desk.entry(client)["command"] == HIBOSS
    desk.done("remove", "--client", client)
    assert file.read_bytes() == JSONS[name]


@pytest.mark.parametrize("name", [name for name in TOMLS if TOMLS[name]])
def test_all_else_in_toml_stays_to_the_byte(desk: Desk, name: str) -> None:
    file = desk.write("codex", TOMLS[name])
    desk.install("codex")
    assert file.read_bytes().startswith(TOMLS[name])
    assert desk.entry("codex")["startup_timeout_sec"] == 30
    desk.done("remove", "--client", "codex")
    assert file.read_bytes() == TOMLS[name]


def test_what_others_wrote_behind_and_into_our_table_stays(desk: Desk) -> None:
    file = desk.write("codex", b'model = "x"\n')
    desk.install("codex")
    more = 'tool_timeout_sec = 90\n\n# for work\n[mcp_servers.hiboss.tools.send]\napproval_mode = "prompt"\n\n[tui]\nx = 1\n'
    file.write_text(file.read_text() + more)
    assert desk.install("codex")["outcome"] == "already installed"
    desk.done("install", "--client", "codex", "--as-boss")
    entry = desk.entry("codex")
    assert (entry["args"], entry["tool_timeout_sec"]) == (["mcp", "--as-boss"], 90)
    assert file.read_text().endswith(more)
    desk.done("remove", "--client", "codex")
    assert tomllib.loads(file.read_text()) == {"model": "x", "tui": {"x": 1}}


def test_an_entry_is_updated_and_keeps_what_others_added(desk: Desk) -> None:
    desk.install("cursor")
    file = desk.file("cursor")
    settings = json.loads(file.read_text())
    settings["mcpServers"]["hiboss"] |= {"disabled": True, "args": ["mcp"]}
    settings["mcpServers"]["hiboss"]["env"] = {"LANG": "C", "HIBOSS_HOME": "/old"}
    file.write_text(json.dumps(settings))
    assert desk.install("cursor")["outcome"] == "updated"
    entry = desk.entry("cursor")
    assert (entry["disabled"], entry["args"]) == (True, ["mcp", "--or-as", "nex"])
    assert entry["env"] == {"LANG": "C", "HIBOSS_HOME": desk.shell.home.path}


def test_a_table_of_variables_is_updated_too(desk: Desk) -> None:
    desk.write(
        "codex",
        f'[mcp_servers.hiboss]\ncommand = "{HIBOSS}"\nargs = ["mcp"]\n\n[mcp_servers.hiboss.env]\nA = "1"\n'.encode(),
    )
    assert desk.install("codex")["outcome"] == "updated"
    assert desk.entry("codex")["env"] == {"A": "1", "HIBOSS_HOME": desk.shell.home.path}


@pytest.mark.parametrize("client", ["claude", "codex", "cursor"])
def test_twice_is_the_same_as_once(desk: Desk, client: str) -> None:
    desk.install(client)
    before = desk.file(client).stat()
    assert desk.install(client)["outcome"] == "already installed"
    assert desk.file(client).stat().st_mtime_ns == before.st_mtime_ns
    desk.done("remove", "--client", client)
    assert desk.done("remove", "--client", client)["outcome"] == "not installed"


def test_mode_and_links_stay_and_only_ones_own_settings_are_copied(desk: Desk) -> None:
    real = desk.directory / "dotfiles.json"
    real.write_text("{}\n")
    os.chmod(real, 0o640)
    desk.file("claude").symlink_to(real)
    result = desk.install("claude")
    assert desk.file("claude").is_symlink() and stat.S_IMODE(real.stat().st_mode) == 0o640
    assert Path(result["backup"]).read_text() == "{}\n"
    desk.file("claude", "project").write_text("{}\n")
    assert desk.install("claude", "--scope", "project")["backup"] is None
    assert [one.name for one in desk.project.iterdir()] == [".mcp.json"]


# --- what is refused -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("client", "content"),
    [
        ("claude", b"{broken"),
        ("claude", b"[]"),
        ("claude", b'{"mcpServers": []}'),
        ("cursor", b'{\n  // a comment\n  "mcpServers": {}\n}'),
        ("cursor", b"\xff\xfe"),
        ("codex", b"model = "),
        ("codex", b"mcp_servers = 3"),
        ("codex", b'mcp_servers = { files = { command = "x" } }\n'),
        ("codex", b'[mcp_servers]\nhiboss = { command = "/bin/hiboss", args = ["mcp"] }\n'),
    ],
)
def test_settings_that_cannot_be_edited_safely_stay_as_they_are(
    desk: Desk, client: str, content: bytes
) -> None:
    file = desk.write(client, content)
    done = desk("install", "--client", client, "--agent", "nex", "--json")
    assert (done.rc, done.error["code"]) == (1, "harness_settings_refused"), done.stderr
    assert file.read_bytes() == content
    assert [one.name for one in file.parent.iterdir() if "backup" in one.name] == []


@pytest.mark.parametrize("verb", ["install", "remove"])
def test_a_server_of_somebody_else_with_our_name_is_left_alone(desk: Desk, verb: str) -> None:
    content = b'{"mcpServers": {"hiboss": {"command": "npx", "args": ["mcp"]}}}'
    file = desk.write("cursor", content)
    more = ("--agent", "nex") if verb == "install" else ()
    done = desk(verb, "--client", "cursor", *more)
    assert done.rc == 2 and "another MCP server" in done.stderr
    assert file.read_bytes() == content


@pytest.mark.parametrize("verb", ["install", "remove"])
def test_an_agent_cannot_change_its_own_servers(desk: Desk, verb: str) -> None:
    done = desk(verb, "--client", "claude", "--json", CLAUDECODE="1")
    assert (done.rc, done.error["code"]) == (1, "agent_changes_mcp_servers")


def test_options_before_the_verb_are_not_lost_silently(desk: Desk) -> None:
    done = desk("--as", "nex", "install", "--client", "claude")
    assert done.rc == 2 and "behind install" in done.stderr


# --- a profile that is missing -------------------------------------------------------


def test_without_a_profile_it_says_which_command_makes_one(office: Office, tmp_path: Path) -> None:
    assert office("agent", "register", "bare", "--no-profile").rc == 0
    person = {"HOME": str(tmp_path)}
    for name, command in (
        ("nobody", "hiboss agent register nobody"),
        ("bare", "hiboss agent token rotate bare --profile"),
    ):
        done = office("mcp", "install", "--client", "claude", "--agent", name, "--json", env=person)
        assert (done.rc, done.error["code"]) == (1, "mcp_profile_missing")
        assert done.error["data"]["command"].startswith(command)
        assert office.sh(command, env=person).rc == 0
        done = office("mcp", "install", "--client", "claude", "--agent", name, "--json", env=person)
        assert done.rc == 0, done.stderr


def test_without_a_daemon_it_names_both_commands(desk: Desk) -> None:
    command = desk("install", "--client", "claude", "--agent", "kai", "--json").error["data"]["command"]
    assert "hiboss agent register kai" in command and "hiboss agent token rotate kai --profile" in command
