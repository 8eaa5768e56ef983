"""Settings read again while the daemon runs: what is right takes effect at once, what is wrong changes nothing."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hiboss.testing.running_daemon import Answered, RunningDaemon
from tests.support.daemons import answers, ask, code, line
from tests.support.parties import Party, agent, boss, flat
from tests.support.waits import wait_until

Settings = dict[str, Any]


@pytest.fixture(autouse=True)
def without_settings(daemon: RunningDaemon) -> Iterator[None]:
    yield
    Path(daemon.home.config).unlink(missing_ok=True)
    boss(daemon).call("config.reload")


def write(daemon: RunningDaemon, text: str) -> None:
    Path(daemon.home.config).write_text(text)


def by_operation(daemon: RunningDaemon) -> None:
    boss(daemon).call("config.reload")


def by_signal(daemon: RunningDaemon) -> None:
    before = log(daemon).count("[reload]")
    os.kill(daemon.pid, signal.SIGHUP)
    wait_until(lambda: log(daemon).count("[reload]") > before)


WAYS: list[Callable[[RunningDaemon], None]] = [by_operation, by_signal]


def log(daemon: RunningDaemon) -> str:
    return Path(daemon.home.log_file).read_text()


def setting(daemon: RunningDaemon, name: str) -> dict[str, Any]:
    found: dict[str, dict[str, Any]] = {one["setting"]: one for one in daemon.call("config.show")["settings"]}
    return found[name]


# --- what is right -------------------------------------------------------------------


@pytest.mark.parametrize("reload", WAYS)
def test_a_good_file_takes_effect_at_once_and_its_end_too(
    daemon: RunningDaemon, reload: Callable[[RunningDaemon], None], tmp_path: Path, ada: Party
) -> None:
    ada.flood(ada, 12)
    file = tmp_path / "file"
    file.write_bytes(b"12345")
    private = tmp_path / "private"
    private.mkdir()
    (private / "key").write_text("k")
    mine = [ada.address]

    def tried() -> list[str | int]:
        tries: list[Settings] = [
            {"to": mine, "text": "123456"},
            {"to": mine, "text": "1", "subject": "12345"},
            {"to": mine, "text": "1", "metadata": {"a": "12345"}},
            {"to": mine, "text": "1", "key": f"key-{os.urandom(4).hex()}"},
            {"to": mine * 2, "text": "1"},
            {"to": mine, "attachments": [str(file)]},
            {"to": mine, "attachments": [str(private / "key")]},
            {"to": mine, "text": "1", "attachments": [str(private / "key")] * 2},
        ]
        with daemon.connect() as connection:
            connection.sendall(
                b"".join(line("envelope.send", token=ada.token, **one) for one in tries)
                + line("envelope.list", token=ada.token, page_size=5)
            )
            found: list[str | int] = [code(answer) for answer in answers(connection, len(tries) + 1)]
        counted = ada.call("envelope.list", count=True)
        return [*found, len(ada.list()), f"{counted['total']}{'+' if counted['total_capped'] else ''}"]

    total = 12
    assert tried() == ["ok"] * 9 + [10, str(total + 8)]
    write(
        daemon,
        f"""
        [limits]
        text_bytes = 5
        subject_bytes = 4
        metadata_bytes = "10 B"
        word_bytes = 6
        recipients = 1
        attachment_bytes = 4
        attachments = 1
        page_size = 3
        page_size_limit = 4
        count_exact_to = 2
        [attachments]
        forbidden_paths = ["{private}"]
        """,
    )
    reload(daemon)
    refused = ["too_large"] * 6 + ["attachment_private", "too_large", "invalid_params", 3, "2+"]
    assert tried() == refused
    Path(daemon.home.config).unlink()
    reload(daemon)
    assert tried() == ["ok"] * 9 + [10, str(total + 16)]


def test_the_answer_names_what_has_changed_and_what_waits_for_a_start(
    daemon: RunningDaemon, chief: Party
) -> None:
    assert chief.call("config.reload") == {"changed": [], "next_start": []}
    write(daemon, "[limits]\npage_size = 20\n[store]\nlock_wait_seconds = 7\n")
    assert chief.call("config.reload") == {
        "changed": ["limits.page_size"],
        "next_start": ["store.lock_wait_seconds"],
    }
    assert chief.call("config.reload") == {"changed": [], "next_start": ["store.lock_wait_seconds"]}
    waiting = setting(daemon, "store.lock_wait_seconds")
    assert (waiting["value"], waiting["source"], waiting["next_start"]) == (5.0, "default", True)
    now = setting(daemon, "limits.page_size")
    assert (now["value"], now["source"]) == (20, f"{daemon.home.config} [limits] page_size")
    assert "store.lock_wait_seconds takes effect at the next start" in log(daemon)
    daemon.stop()
    daemon.start()
    waited = setting(daemon, "store.lock_wait_seconds")
    assert (waited["value"], waited["next_start"]) == (7.0, False)


def test_the_log_follows_its_settings(daemon: RunningDaemon) -> None:
    write(daemon, "[log]\nlevel = 'error'\n")
    before = log(daemon).count("Settings read again")
    boss(daemon).call("config.reload")
    assert log(daemon).count("Settings read again") == before  # already too little to be worth a line
    write(daemon, "[log]\nlevel = 'debug'\nbytes = 1024\nfiles = 1\n")
    for _ in range(30):
        boss(daemon).call("config.reload")
    directory = Path(daemon.home.log_file).parent
    assert sorted(one.name for one in directory.iterdir()) == ["daemon.log", "daemon.log.1"]
    assert all(one.stat().st_size <= 1024 for one in directory.iterdir())
    (directory / "daemon.log.1").unlink()


def test_open_connections_stay_and_new_ones_have_the_new_limits(daemon: RunningDaemon) -> None:
    text = "x" * 3_000
    with daemon.connect() as old:
        old.sendall(line("daemon.ping"))
        assert code(answers(old, 1)[0]) == "ok"
        write(daemon, "[limits]\nframe_bytes = '2 KiB'\nconnections = 2\n")
        by_operation(daemon)
        wait_until(lambda: ask(old, "daemon.status")["result"]["connections"] == 1)
        with daemon.connect() as new:
            new.sendall(line("daemon.ping", pad=text))
            assert code(answers(new, 1)[0]) == "frame_too_large"
            with daemon.connect() as third:
                assert code(answers(third, 1)[0]) == "busy"
        old.sendall(line("daemon.ping", pad=text))
        assert code(answers(old, 1)[0]) == "invalid_params"  # read whole, as when it was made
        Path(daemon.home.config).unlink()
        assert code(ask(old, "config.reload", token=daemon.token("boss"))) == "ok"


# --- what is wrong -------------------------------------------------------------------

WRONG = {
    "[limits]\npage_size = 0\n": ("bad_setting", "page_size is 0"),
    "[limits]\npage_size = 25\nrecipients = 'many'\n": ("bad_setting", "recipients is 'many'"),
    "[limits]\npage_sizes = 25\n": ("unknown_setting", "did you mean limits.page_size"),
    "[limits]\npage_size = 25\n[": ("bad_config", "cannot be read"),
    "[limits]\npage_size = " + "9" * 5000: ("bad_config", "cannot be read"),
}


@pytest.mark.parametrize("text", sorted(WRONG))
def test_a_wrong_file_is_refused_and_the_last_good_one_stays(daemon: RunningDaemon, text: str) -> None:
    write(daemon, "[limits]\npage_size = 20\n")
    by_operation(daemon)
    good = daemon.call("config.show")
    expected, says = WRONG[text]
    write(daemon, text)
    with pytest.raises(Answered) as caught:
        boss(daemon).call("config.reload")
    assert caught.value.stable_code == expected
    assert says in caught.value.message and daemon.home.config in caught.value.message
    by_signal(daemon)
    last = log(daemon).splitlines()[-1]
    assert "error [reload] The settings were not changed: " in last and says in last
    assert daemon.call("config.show") == good and agent(daemon).call("envelope.list")["envelopes"] == []


def test_a_file_that_became_a_directory_changes_nothing(daemon: RunningDaemon) -> None:
    os.mkdir(daemon.home.config)
    try:
        assert boss(daemon).refusal("config.reload") == "bad_config"
        by_signal(daemon)
        assert setting(daemon, "limits.page_size")["value"] == 10
    finally:
        os.rmdir(daemon.home.config)


def test_only_the_boss_reloads_unless_the_policy_says_otherwise(daemon: RunningDaemon, ada: Party) -> None:
    assert ada.refusal("config.reload") == "forbidden"
    boss(daemon).call("permission.policy.set", policy={"config.reload": "standard"})
    assert ada.call("config.reload")["changed"] == []
    boss(daemon).call("permission.policy.set", policy={})


# --- under load ----------------------------------------------------------------------


@pytest.mark.slow
def test_reloads_under_load_lose_nothing(daemon: RunningDaemon) -> None:
    senders = [agent(daemon) for _ in range(4)]
    to = agent(daemon)
    sent: dict[str, list[str]] = {}

    def work(one: Party) -> None:
        sent[one.name] = one.flood(to, 400)

    threads = [threading.Thread(target=work, args=(one,)) for one in senders]
    for thread in threads:
        thread.start()
    rounds = 0
    while any(thread.is_alive() for thread in threads) or rounds < 6:
        write(
            daemon,
            ("[store]\ngroup_operations = 1\n", "[store]\ngroup_operations = 3\n", "[", "")[rounds % 4],
        )
        os.kill(daemon.pid, signal.SIGHUP)
        daemon.call("daemon.ping")
        rounds += 1
    for thread in threads:
        thread.join()
    expected = sorted(number for numbers in sent.values() for number in numbers)
    assert len(expected) == 1_600
    assert sorted(flat(to.walk(page_size=100, oldest_first=True))) == expected
    daemon.check()
