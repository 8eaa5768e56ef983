"""The settings from the command line: shown with where they come from, checked, and read again."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from hiboss.core.settings import TABLE
from tests.support.cli import Done, Office, Shell

OFF = {"web.enabled": ("off", "HIBOSS_WEB_ENABLED")}  # in tests
OF_TESTS = {str(one): one.variable for one in TABLE if one.variable in os.environ}  # for daemons
GOOD = "[limits]\npage_size = 7\n[log]\nlevel = 'debug'\n"


@pytest.fixture(autouse=True)
def without_settings(office: Office) -> Iterator[None]:
    yield
    Path(office.home.config).unlink(missing_ok=True)
    office.daemon.call("config.reload", token=office.token("boss"))


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    """A home that is set up, without a daemon."""
    one = Shell(tmp_path / "home")
    one.set_up()
    yield one
    one.end_daemon()


def sources(done: Done) -> dict[str, tuple[str, str]]:
    assert done.rc == 0, done.stderr
    return {block["setting"]: (block["value"], block["source"]) for block in done.blocks}


def test_every_setting_is_shown_with_its_value_its_source_and_its_variable(office: Office) -> None:
    done = office("config", "show")
    assert done.stderr == ""
    assert [block["setting"] for block in done.blocks] == [str(setting) for setting in TABLE]
    assert [block["variable"] for block in done.blocks] == [setting.variable for setting in TABLE]
    assert {name: found[1] for name, found in sources(done).items() if found[1] != "default"} == OF_TESTS
    found = office("config", "show", "--json").json
    assert found["file"] == office.home.config
    usual = [one for one in found["settings"] if one["setting"] not in OF_TESTS]
    assert [(one["setting"], one["value"], one["about"]) for one in usual] == [
        (
            str(setting),
            list(setting.default) if isinstance(setting.default, tuple) else setting.default,
            setting.help,
        )
        for setting in TABLE
        if str(setting) not in OF_TESTS
    ]


def test_with_a_daemon_show_says_what_is_in_force_there(office: Office) -> None:
    Path(office.home.config).write_text(GOOD)
    show = ("config", "show", "--changed")
    mine = {"HIBOSS_LIMITS_PAGE_SIZE": "9"}  # of this terminal, not of the daemon
    before = sources(office(*show, env=mine))
    assert set(before) == set(OF_TESTS)
    assert office("config", "reload", "--as", "boss").record == {"changed": "limits.page_size, log.level"}
    assert sources(office(*show, env=mine)) == {
        "limits.page_size": ("7", f"{office.home.config} [limits] page_size"),
        "log.level": ("debug", f"{office.home.config} [log] level"),
        **before,
    }


def test_a_reload_names_what_waits_for_a_start_and_show_marks_it(office: Office) -> None:
    Path(office.home.config).write_text("[store]\nlock_wait_seconds = 1.5\n")
    done = office("config", "reload", "--as", "boss")
    assert done.record == {"changed": "nothing", "next-start": "store.lock_wait_seconds"}
    marked = [block["setting"] for block in office("config", "show").blocks if "next-start" in block]
    assert marked == ["store.lock_wait_seconds"]


def test_without_a_daemon_show_says_what_a_start_would_use(shell: Shell) -> None:
    Path(shell.home.config).write_text(GOOD)
    done = shell("config", "show", "--changed", env={"HIBOSS_LIMITS_PAGE_SIZE": "9"})
    assert done.stderr.startswith("No daemon runs here")
    assert sources(done) == {
        "limits.page_size": ("9", "HIBOSS_LIMITS_PAGE_SIZE"),
        "log.level": ("debug", f"{shell.home.config} [log] level"),
        **OFF,
    }
    listed = shell("config", "show", "--json", env={"HIBOSS_ATTACHMENTS_FORBIDDEN_PATHS": "/a, /b"})
    values = {one["setting"]: one["value"] for one in listed.json["settings"]}
    assert listed.stderr == "" and values["attachments.forbidden_paths"] == ["/a", "/b"]


def test_check_says_whether_the_settings_are_good(shell: Shell) -> None:
    assert shell("config", "check", env={"HIBOSS_WEB_ENABLED": "on"}).record == {
        "file": shell.home.config,
        "good": "true",
    }
    Path(shell.home.config).write_text(GOOD)
    done = shell("config", "check")
    assert set(done.record["differing"].split(", ")) == {"limits.page_size", "log.level", *OFF}


WRONG = [
    ("[limits]\npage_size = 0\n", {}, "bad_setting", ("[limits] page_size is 0", "from 1 to 1000")),
    ("", {"HIBOSS_LOG_LEVEL": "loud"}, "bad_setting", ("HIBOSS_LOG_LEVEL is 'loud'", "one of debug, info")),
    ("[limit]\n", {}, "unknown_setting", ("[limit]", "did you mean limits?")),
    ("", {"HIBOSS_LOG_LEVLE": "x"}, "unknown_setting", ("did you mean HIBOSS_LOG_LEVEL?",)),
    ("page_size = 5\n", {}, "unknown_setting", ("limits.page_size",)),
    ("[limits\n", {}, "bad_config", ("cannot be read", "line 1")),
    ("[limits]\npage_size = " + "9" * 5_000, {}, "bad_config", ("cannot be read",)),
]


@pytest.mark.parametrize(("text", "environment", "expected", "says"), WRONG, ids=lambda v: str(v)[:30])
def test_check_says_what_is_wrong_where_and_what_would_be_right(
    shell: Shell, text: str, environment: dict[str, str], expected: str, says: tuple[str, ...]
) -> None:
    Path(shell.home.config).write_text(text)
    for words in (("config", "check"), ("config", "show")):
        done = shell(*words, env=environment)
        assert done.rc == 2 and done.stdout == "" and "Traceback" not in done.stderr
        assert f"code: {expected}" in done.stderr
        assert [word for word in says if word not in done.stderr] == []


def test_a_daemon_that_cannot_start_for_its_settings_says_so_at_the_command_line(shell: Shell) -> None:
    Path(shell.home.config).write_text("[limits]\npage_size = 0\n")
    done = shell("daemon", "start", "--json")
    assert done.rc == 2 and done.error["code"] == "bad_setting"
    assert f"{shell.home.config} [limits] page_size is 0" in done.error["message"]
    assert shell.pid is None and not os.path.exists(shell.home.socket)
    alone = shell("boss", "token", "rotate", "--offline")
    assert alone.rc == 2 and "page_size is 0" in alone.stderr


def test_a_daemon_starts_with_its_settings_from_file_and_environment(shell: Shell) -> None:
    Path(shell.home.config).write_text(GOOD)
    assert shell("daemon", "start", env={"HIBOSS_LIMITS_PAGE_SIZE": "9"}).rc == 0
    assert sources(shell("config", "show", "--changed")) == {
        "limits.page_size": ("9", "HIBOSS_LIMITS_PAGE_SIZE"),
        "log.level": ("debug", f"{shell.home.config} [log] level"),
        **OFF,
    }
    Path(shell.home.config).write_text("[limits]\npage_size = 3\n")
    assert shell("config", "reload", "--as", "boss").record == {"changed": "log.level"}
    pid = shell.pid
    Path(shell.home.config).write_text("[limits]\npage_size = 0\n")
    restart = shell("daemon", "restart")
    assert restart.rc == 2 and "page_size is 0" in restart.stderr
    assert shell.pid == pid is not None  # the good one goes on
    assert shell("daemon", "stop").rc == 0
