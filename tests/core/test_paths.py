"""The home: where it is, who may read it, and where its socket is when its path is too long."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from hiboss.core.errors import HomeUnusable
from hiboss.core.paths import SOCKET_PATH_LIMIT, Home, replacing
from hiboss.testing.running_daemon import RunningDaemon, running_daemon
from tests.support.raising import raised
from tests.support.waits import wait_until


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory with a short path, and the platform's runtime directory in it."""
    with tempfile.TemporaryDirectory(prefix="hb", dir="/tmp") as directory:
        runtime = Path(directory, "run")
        runtime.mkdir(mode=0o700)
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
        yield Path(directory)


@pytest.fixture
def open_umask() -> Iterator[None]:
    """Use a umask that makes nothing private, so that private files were made private on purpose."""
    old = os.umask(0)
    yield
    os.umask(old)


def _mode(path: str | Path) -> int:
    return stat.S_IMODE(os.stat(path).st_mode)


def _modes(top: str | Path) -> dict[str, int]:
    """Return the mode of everything below, by path."""
    found = {str(top): _mode(top)}
    for directory, directories, files in os.walk(top):
        found |= {
            path: _mode(path) for name in directories + files if (path := os.path.join(directory, name))
        }
    return found


def _keep(home: Home, name: str, token: str) -> str:
    """Store a token as after a successful change; return its path."""
    with home.keeping(name, token) as path:
        pass
    return path


def _deep(directory: Path) -> Path:
    """A directory so deep that a socket in it could not be bound."""
    deep = directory.joinpath(*["a-directory-with-a-long-name"] * 4)
    deep.mkdir(parents=True)
    return deep


# --- where it is ---------------------------------------------------------------------


def test_the_home_is_that_of_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HIBOSS_HOME", str(tmp_path / "elsewhere"))
    assert Home().path == str(tmp_path / "elsewhere")
    assert Home(str(tmp_path / "given")).path == str(tmp_path / "given")


@pytest.mark.parametrize("value", [None, ""])
def test_without_the_variable_the_home_is_the_users(
    value: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    if value is None:
        monkeypatch.delenv("HIBOSS_HOME", raising=False)
    else:
        monkeypatch.setenv("HIBOSS_HOME", value)
    assert Home().path == str(Home()) == "/home/ada/.hiboss"


def test_a_relative_home_and_a_tilde_become_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    monkeypatch.chdir(tmp_path)
    assert Home("~/post").path == "/home/ada/post"
    assert Home("post").path == str(tmp_path / "post")


def test_everything_lies_in_the_home() -> None:
    home = Home("/h")
    assert (home.database, home.pid_file, home.log_file) == (
        "/h/hiboss.db",
        "/h/daemon.pid",
        "/h/logs/daemon.log",
    )
    assert (home.media, home.tokens, home.backups) == ("/h/media", "/h/tokens", "/h/backups")
    assert (home.secrets, home.programs) == ("/h/secrets", "/h/bin")
    assert home.workspace("Nex") == "/h/workspaces/nex"  # upper and lower case are the same name
    assert home.socket == "/h/daemon.sock"


# --- who may read it -----------------------------------------------------------------


def test_a_new_home_is_open_to_its_owner_only(tmp_path: Path, open_umask: None) -> None:
    home = Home(str(tmp_path / "home"))
    home.create()
    _keep(home, "nex", "hba_secret")
    modes = _modes(home.path)
    assert {
        path: mode for path, mode in modes.items() if mode != (0o700 if os.path.isdir(path) else 0o600)
    } == {}
    assert {os.path.basename(path) for path in modes} == {
        "home",
        "media",
        "tokens",
        "backups",
        "secrets",
        "logs",
        "nex",
    }


def test_an_open_home_is_closed(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    Home(str(tmp_path)).create()
    assert _mode(tmp_path) == 0o700


def test_creating_a_home_again_changes_nothing(tmp_path: Path) -> None:
    home = Home(str(tmp_path / "home"))
    home.create()
    _keep(home, "nex", "hba_secret")
    home.create()
    assert Path(home.profile("nex")).read_text() == "hba_secret\n"
    assert sorted(os.listdir(home.path)) == ["backups", "logs", "media", "secrets", "tokens"]


def test_secrets_that_this_store_does_not_name_are_put_aside_until_a_store_names_them_again(
    tmp_path: Path,
) -> None:
    home = Home(str(tmp_path / "home"))
    home.create()
    named, left, other = (home.keep_secrets({"key": epoch}, epoch) for epoch in ("8f3a", "8f3a", "8f3b"))
    home.settle_secrets("8f3a", {named}, 0)
    assert sorted(os.listdir(home.secrets)) == sorted([named, other, "aside"])
    assert home.secrets_of(left) == {} and home.known_secrets() == {"8f3a", "8f3b"}
    home.settle_secrets("8f3a", {left}, 5)  # the newer copy of the store is back
    assert home.secrets_of(left) == {"key": "8f3a"} and home.secrets_of(named) == {}
    assert _mode(os.path.join(home.secrets, "aside")) == 0o700
    for seconds, kept in ((30 * 86_400, [named]), (30 * 86_400 + 6, [])):
        home.settle_secrets("8f3a", {left}, seconds)
        assert os.listdir(os.path.join(home.secrets, "aside")) == kept
    assert sorted(os.listdir(home.secrets)) == sorted([left, other, "aside"])


def test_a_secret_is_kept_for_its_owner_alone_until_it_is_forgotten(tmp_path: Path, open_umask: None) -> None:
    home = Home(str(tmp_path / "home"))
    home.create()
    names = [home.keep_secrets({"secret": secret}, "8f3a") for secret in ("whsec_one", "whsec_two")]
    assert [home.secrets_of(name) for name in names] == [{"secret": "whsec_one"}, {"secret": "whsec_two"}]
    assert home.known_secrets() == {"whsec_one", "whsec_two"}
    assert sorted(os.listdir(home.secrets)) == sorted(names)
    assert {_mode(os.path.join(home.secrets, name)) for name in names} == {0o600}
    home.forget_secrets(names[0])
    home.forget_secrets(names[0])  # and nobody minds
    assert [home.secrets_of(name) for name in names] == [{}, {"secret": "whsec_two"}]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
def test_a_home_of_another_user_is_refused(tmp_path: Path) -> None:
    os.chown(tmp_path, 12345, 12345)
    assert "it belongs to another user" in raised(HomeUnusable, Home(str(tmp_path)).create).message
    assert os.listdir(tmp_path) == []


# --- profiles ------------------------------------------------------------------------


def test_a_profile_is_kept_under_its_name_whatever_the_case(tmp_path: Path) -> None:
    home = Home(str(tmp_path))
    home.create()
    path = _keep(home, "Nex", "hba_one")
    assert path == home.profile("nex")
    assert _keep(home, "nEX", "hba_two") == path
    assert Path(path).read_text() == "hba_two\n"
    assert home.profiles() == os.listdir(home.tokens) == ["nex"]
    assert home.has_profile("NEX") and not home.has_profile("kai")
    home.forget_profile("NEX")
    assert home.profiles() == [] and not home.has_profile("nex")
    home.forget_profile("nex")  # once more does no harm


def test_a_token_whose_storing_failed_is_not_kept_and_the_one_before_stays(tmp_path: Path) -> None:
    home = Home(str(tmp_path))
    home.create()
    _keep(home, "nex", "hba_one")
    for name in ("nex", "kai"):
        with pytest.raises(RuntimeError), home.keeping(name, "hba_two"):
            raise RuntimeError
    assert os.listdir(home.tokens) == ["nex"]
    assert Path(home.profile("nex")).read_text() == "hba_one\n"


@pytest.mark.parametrize("stored", [True, False])
def test_a_token_waiting_when_the_daemon_died_is_kept_if_it_was_stored(tmp_path: Path, stored: bool) -> None:
    home = Home(str(tmp_path))
    home.create()
    _keep(home, "nex", "hba_old")
    doomed = [home.keeping(name, f"hba_{name}") for name in ("nex", "kai", "kai")]  # who dies here …
    for one in doomed:
        one.__enter__()
    assert home.profiles() == ["nex"]  # … has kept nothing yet
    asked = []
    home.settle_profiles(lambda token: asked.append(token) or stored)  # type: ignore[func-returns-value]
    assert sorted(asked) == ["hba_kai", "hba_kai", "hba_nex"]
    kept = {name: Path(home.tokens, name).read_text() for name in os.listdir(home.tokens)}
    assert kept == ({"nex": "hba_nex\n", "kai": "hba_kai\n"} if stored else {"nex": "hba_old\n"})


def test_a_waiting_token_that_cannot_be_read_is_taken_away(tmp_path: Path) -> None:
    home = Home(str(tmp_path))
    home.create()
    Path(home.tokens, "nex.0.new").write_bytes(b"\xff\x00")
    Path(home.tokens, "kai.0.new").write_bytes(b"")
    home.settle_profiles(lambda token: token.startswith("hba_"))
    assert os.listdir(home.tokens) == []


def test_a_home_without_a_directory_of_tokens_has_no_profiles(tmp_path: Path) -> None:
    assert Home(str(tmp_path / "missing")).profiles() == []


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path: Path) -> None:
    target = tmp_path / "file"
    target.write_text("old")
    with pytest.raises(RuntimeError), replacing(str(target)) as temporary:
        Path(temporary).write_text("half")
        raise RuntimeError
    assert target.read_text() == "old"
    assert os.listdir(tmp_path) == ["file"]
    with replacing(str(target)) as temporary:
        Path(temporary).write_text("new")
    assert target.read_text() == "new"
    assert os.listdir(tmp_path) == ["file"]


# --- the socket ----------------------------------------------------------------------


def test_the_socket_lies_in_the_home_up_to_the_longest_path_a_socket_can_have(short: Path) -> None:
    fits = "/" + "h" * (SOCKET_PATH_LIMIT - len("//daemon.sock"))
    assert Home(fits).socket == f"{fits}/daemon.sock" and len(Home(fits).socket) == SOCKET_PATH_LIMIT
    assert Home(fits + "h").socket.startswith(f"{short}/run/hiboss/")


def test_the_length_of_a_path_is_counted_in_bytes(short: Path) -> None:
    assert Home("/" + "ü" * 60).socket.startswith(f"{short}/run/hiboss/")


def test_each_long_home_has_a_socket_of_its_own_and_always_the_same(short: Path) -> None:
    one, other = "/" + "a" * 120, "/" + "b" * 120
    assert Home(one).socket == Home(one).socket != Home(other).socket


def test_a_runtime_directory_that_cannot_be_used_is_no_reason_for_a_warning(short: Path) -> None:
    (short / "run").chmod(0o755)  # platformdirs warns of this, and warnings are errors here
    assert len(os.fsencode(Home("/" + "a" * 120).socket)) <= SOCKET_PATH_LIMIT


def test_a_socket_directory_that_others_could_write_to_is_closed(short: Path) -> None:
    (short / "run" / "hiboss").mkdir()
    (short / "run" / "hiboss").chmod(0o777)
    Home(str(_deep(short))).create()
    assert _mode(short / "run" / "hiboss") == 0o700


def test_a_home_whose_runtime_directory_is_too_long_as_well_is_refused_with_advice(
    short: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime = _deep(short / "run")
    runtime.chmod(0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    error = raised(HomeUnusable, Home(str(_deep(short))).create)
    assert "choose another one with HIBOSS_HOME" in error.message


def test_a_daemon_with_a_long_home_is_reached_in_the_runtime_directory(short: Path, open_umask: None) -> None:
    with running_daemon(_deep(short)) as daemon:
        assert daemon.home.socket.startswith(f"{short}/run/hiboss/")
        assert daemon.call("daemon.status")["socket"] == daemon.home.socket
        daemon.call("envelope.send", token=daemon.token("nex"), to=["agent:nex"], text="hello")
        assert daemon.call("envelope.list", token=daemon.token("nex"))["envelopes"][0]["text"] == "hello"
        assert _mode(daemon.home.socket) == 0o600
        assert _mode(os.path.dirname(daemon.home.socket)) == 0o700
        assert not os.path.exists(os.path.join(daemon.home.path, "daemon.sock"))
        daemon.stop()
        assert not os.path.exists(daemon.home.socket)


def _think(daemon: RunningDaemon) -> None:
    """Let a run write into its workspace, and store a secret."""
    boss = daemon.token("boss")
    program = {"provider": "command", "settings": {"command": "sh -c 'umask 077; echo x > written'"}}
    daemon.call("agent.register", token=boss, name="writer", **program)
    daemon.call(
        "agent.register",
        token=boss,
        name="hooked",
        provider="webhook",
        settings={"url": "http://127.0.0.1:1/"},
    )
    daemon.call("envelope.send", token=boss, from_="user:boss", to="agent:writer", text="write")
    wait_until(lambda: daemon.call("run.list", token=boss, status="completed")["runs"])


def test_everything_a_daemon_writes_is_open_to_its_owner_only(short: Path, open_umask: None) -> None:
    (short / "picture.png").write_bytes(b"\x89PNG")
    with running_daemon(short) as daemon:
        token = daemon.register("kai")
        daemon.call(
            "envelope.send", token=token, to=["agent:nex"], text="", attachments=[str(short / "picture.png")]
        )
        _think(daemon)
        modes = _modes(daemon.home.path)
    names = {os.path.basename(path) for path in modes}
    assert names >= {
        "hiboss.db",
        "hiboss.db-wal",
        "daemon.sock",
        "daemon.pid",
        "daemon.log",
        "boss",
        "nex",
        "kai",
        "workspaces",
        "written",
    }
    assert os.listdir(daemon.home.secrets)
    assert any(name.endswith(".png") for name in names)
    assert {path: oct(mode) for path, mode in modes.items() if mode & 0o077} == {}
