"""Sessions in time: a daily reset, a pause, a full one, a restart, another provider, a clock that is set.

A daemon whose clock stands still, and a provider that says all that its session knows.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from hiboss.agents import left_processes, run_execution, survivors
from hiboss.core.errors import HibossError
from tests.support.in_process_daemon import InProcessDaemon, frozen
from tests.support.python_agents import idle_after, idle_after_ask, idle_after_send, runs_of

MODULES: dict[str, Any] = {"provider_modules": "tests.support.session_providers"}


async def hire(
    daemon: InProcessDaemon, name: str = "kai", provider: str = "remembering", **fields: Any
) -> None:
    await daemon.ask("agent.register", name=name, profile=True, provider=provider, **fields)


async def told(daemon: InProcessDaemon, text: str, *, who: str = "boss", to: str = "kai") -> str:
    """Tell an agent something; return what it answers when everything is done."""
    await send(daemon, text, who=who, to=to)
    await idle_after(daemon)
    return str((await runs_of(daemon, to))[-1]["text"])


async def send(daemon: InProcessDaemon, text: str, *, who: str = "boss", to: str = "kai") -> None:
    sender = {"from_": "user:boss"} if who == "boss" else {}
    await daemon.send(f"agent:{to}", who=who, text=text, **sender)


async def change(daemon: InProcessDaemon, **fields: Any) -> dict[str, Any]:
    return await daemon.ask("agent.set", name="kai", **fields)


async def sessions(daemon: InProcessDaemon) -> list[tuple[str, str | None]]:
    found = await daemon.ask("agent.sessions", name="kai")
    return [(one["scope"], one["why"]) for one in found["sessions"]]


def workspace(daemon: InProcessDaemon, name: str = "kai") -> Path:
    return Path(daemon.home.workspace(name))


async def under_way(daemon: InProcessDaemon, number: int = 1) -> None:
    """Wait until a session has been told so many texts: a turn works on the last one."""

    def there() -> bool:
        files = list(workspace(daemon).glob("session-*"))
        return any(len(one.read_text().split()) >= number for one in files)

    await daemon.until(there)


def given(daemon: InProcessDaemon) -> str:
    """The text of the last turn."""
    return (workspace(daemon) / "turn").read_text()


# --- the policy --------------------------------------------------------------------------


@frozen(at=datetime(2030, 6, 1, 12, tzinfo=UTC), **MODULES)
async def test_each_day_at_a_time_of_the_boss_a_new_session_begins(daemon: InProcessDaemon) -> None:
    await daemon.ask("boss.set", timezone="Europe/Berlin")  # 04:00 is 02:00 UTC
    await hire(daemon, session_reset="4:00")
    assert await told(daemon, "a") == "I know: a"
    daemon.tick(hours=13, minutes=59)
    assert await told(daemon, "b") == "I know: a b"
    daemon.tick(minutes=1)
    assert await sessions(daemon) == [("user:boss", "reset")]
    assert await told(daemon, "c") == "I know: c" and "(new session: one begins each day)" in given(daemon)
    assert await told(daemon, "d") == "I know: c d" and "new session" not in given(daemon)
    await change(daemon, session_reset="")
    daemon.tick(days=3)
    assert await told(daemon, "e") == "I know: c d e"


@frozen(at=datetime(2030, 6, 1, 12, tzinfo=UTC), **MODULES)
async def test_a_turn_over_the_time_of_the_reset_goes_on_and_the_next_one_is_new(
    daemon: InProcessDaemon,
) -> None:
    await hire(daemon, session_reset="13:00")
    assert await told(daemon, "a") == "I know: a"
    await send(daemon, "hang")
    await under_way(daemon, 2)
    daemon.tick(hours=2)
    (workspace(daemon) / "go").touch()
    await idle_after(daemon)
    assert (await runs_of(daemon, "kai"))[-1]["text"] == "I know: a hang"
    assert await told(daemon, "b") == "I know: b"


@frozen(**MODULES)
async def test_after_a_pause_a_new_session_begins(daemon: InProcessDaemon) -> None:
    await hire(daemon, session_idle="1h30m")
    assert (await daemon.ask("agent.list"))["agents"][0]["session_idle"] == "1h30m"
    assert await told(daemon, "a") == "I know: a"
    daemon.tick(minutes=90)
    assert await told(daemon, "b") == "I know: a b"
    daemon.tick(minutes=91)
    assert await told(daemon, "c") == "I know: c"
    assert "(new session: the one before was not used for long)" in given(daemon)


@frozen(**MODULES)
async def test_a_full_session_is_followed_by_a_new_one(daemon: InProcessDaemon) -> None:
    await hire(daemon, session_context=2000)  # each text that it knows is worth 1000
    assert [await told(daemon, one) for one in "abc"] == ["I know: a", "I know: a b", "I know: a b c"]
    assert await sessions(daemon) == [("user:boss", "full")]
    assert await told(daemon, "d") == "I know: d"
    assert "(new session: the one before was full)" in given(daemon)
    await change(daemon, session_context=0)
    assert [await told(daemon, one) for one in "efg"][-1] == "I know: d e f g"


@pytest.mark.parametrize("provider", ["remembering", "reporting"])
def test_a_restart_resumes_and_counts_the_time_between(tmp_path: Path, provider: str) -> None:
    @frozen(**MODULES)
    async def story(daemon: InProcessDaemon) -> None:
        await hire(daemon, provider=provider, session_idle="6h")
        assert await told(daemon, "a") == "I know: a"
        await daemon.restart(hours=5)
        assert await told(daemon, "b") == "I know: a b"
        await daemon.restart(hours=7)
        assert await told(daemon, "c") == "I know: c"

    story(tmp_path)


@frozen(quiet=False, finish_seconds=0.05, **MODULES)
async def test_a_turn_that_a_restart_interrupted_goes_on_in_its_session_after_a_long_night(
    daemon: InProcessDaemon,
) -> None:
    await hire(daemon, session_idle="1h", session_reset="04:00")
    assert await told(daemon, "a") == "I know: a"
    await send(daemon, "hang")
    await under_way(daemon, 2)
    await daemon.close()
    daemon.tick(hours=20)
    (workspace(daemon) / "go").touch()
    await daemon.open()
    await idle_after(daemon)
    assert (await runs_of(daemon, "kai"))[-1]["text"] == "I know: a hang hang"
    daemon.tick(hours=20)
    assert await told(daemon, "b") == "I know: b"


@frozen(quiet=False, finish_seconds=0.05, **MODULES)
async def test_a_first_turn_that_was_killed_before_it_said_anything_is_resumed(
    daemon: InProcessDaemon,
) -> None:
    await hire(daemon)
    await send(daemon, "early")
    await under_way(daemon)
    await daemon.close()
    (workspace(daemon) / "go").touch()
    await daemon.open()
    await idle_after(daemon)
    assert (await runs_of(daemon, "kai"))[-1]["text"] == "I know: early early"
    assert await told(daemon, "b") == "I know: early early b"


@frozen(**MODULES)
async def test_another_provider_knows_nothing_and_the_way_back_knows_all_but_with_other_settings(
    daemon: InProcessDaemon,
) -> None:
    await hire(daemon, settings={"world": "one"})
    assert await told(daemon, "a") == "I know: a"
    await change(daemon, provider="reporting")
    assert await told(daemon, "b") == "I know: b"
    assert sorted(await sessions(daemon), key=str) == [("user:boss", "provider"), ("user:boss", None)]
    await change(daemon, provider="remembering", settings={"world": "one", "color": "blue"})
    assert await told(daemon, "c") == "I know: a c"
    await change(daemon, provider="reporting")
    await change(daemon, provider="remembering", settings={"world": "two"})
    assert ("user:boss", "changed") in await sessions(daemon)
    assert await told(daemon, "d") == "I know: d"
    assert "(new session: your settings have changed)" in given(daemon)


@frozen(**MODULES)
async def test_a_clock_that_is_set_ends_no_session(daemon: InProcessDaemon) -> None:
    await hire(daemon, session_idle="1h")
    assert await told(daemon, "a") == "I know: a"
    for hours in (-48, 72):
        daemon.set_clock(hours=hours)
        daemon.scheduler.wakeup()
        await daemon.settle()
        assert await told(daemon, "b") == f"I know: a{' b' * (1 if hours < 0 else 2)}"
    daemon.tick(minutes=61)
    assert await told(daemon, "c") == "I know: c"


# --- whose it is -------------------------------------------------------------------------


@frozen(**MODULES)
async def test_people_agents_and_notes_to_itself_share_as_the_scope_says(daemon: InProcessDaemon) -> None:
    await hire(daemon)
    await daemon.ask("agent.set", name="nex", mode="pull")
    assert await told(daemon, "a") == "I know: a"
    assert await told(daemon, "b", who="nex") == "I know: b"
    assert await told(daemon, "c", who="kai") == "I know: c"
    await change(daemon, session_scope="agent")
    assert set(await sessions(daemon)) >= {("user:boss", "changed")}
    assert await told(daemon, "d") == "I know: d"
    assert "(new session: your settings" not in given(daemon)  # of this scope it is the first one
    assert await told(daemon, "e", who="nex") == "I know: d e"
    assert await told(daemon, "f", who="kai") == "I know: d e f"
    assert ("all", None) in await sessions(daemon)


@frozen(**MODULES)
async def test_a_task_beside_the_turns_knows_nothing_and_leaves_nothing(daemon: InProcessDaemon) -> None:
    await hire(daemon)
    assert await told(daemon, "a") == "I know: a"
    await idle_after_ask(daemon, "agent.background", agent="kai", task="task")
    found = {run["kind"]: (run["text"], run["session"]) for run in await runs_of(daemon, "kai")}
    assert found["background"][0] == "I know: task" and found["background"][1].startswith("own-")
    assert await told(daemon, "b") == "I know: a b"


# --- ended by hand -----------------------------------------------------------------------


@pytest.mark.parametrize("provider", ["remembering", "reporting"])
def test_a_refresh_during_a_run_counts_for_the_next_turn(tmp_path: Path, provider: str) -> None:
    @frozen(**MODULES)
    async def story(daemon: InProcessDaemon) -> None:
        await hire(daemon, provider=provider)
        await send(daemon, "hang")
        await under_way(daemon)
        assert (await daemon.ask("agent.refresh", name="kai"))["ended"] == 1
        (workspace(daemon) / "go").touch()
        await idle_after(daemon)
        assert await told(daemon, "b") == "I know: b"
        assert "(new session: you are to begin anew)" in given(daemon)
        assert await told(daemon, "c") == "I know: b c"

    story(tmp_path)


@frozen(**MODULES)
async def test_a_refresh_of_one_conversation_leaves_the_others(daemon: InProcessDaemon) -> None:
    await hire(daemon)
    await told(daemon, "a")
    await told(daemon, "b", who="nex")
    [number] = await idle_after_send(daemon, "agent:kai", who="nex", text="c")
    with_nex = (await daemon.get(number))["conversation"]
    assert await daemon.ask("agent.refresh", name="kai", conversation=with_nex) == {"name": "kai", "ended": 1}
    assert await told(daemon, "d", who="nex") == "I know: d"
    assert await told(daemon, "e") == "I know: a e"
    with pytest.raises(HibossError) as refused:
        await daemon.ask("agent.refresh", name="nex", conversation="c999")
    assert refused.value.code == "not_found"


# --- a lost session ----------------------------------------------------------------------


@pytest.mark.parametrize("provider", ["remembering", "reporting"])
def test_a_lost_session_is_followed_by_a_new_one_that_is_told_what_was_said(
    tmp_path: Path, provider: str
) -> None:
    @frozen(quiet=False, **MODULES)
    async def story(daemon: InProcessDaemon) -> None:
        await hire(daemon, provider=provider)
        await told(daemon, "apples")
        await told(daemon, "pears")
        for one in workspace(daemon).glob("session-*"):
            one.unlink()
        assert await told(daemon, "plums") == "I know: plums"
        assert "could not be resumed: no conversation" in (await runs_of(daemon, "kai"))[-1]["note"]
        text = given(daemon)
        assert "(new session: the one before cannot be resumed, so you do not remember it)" in text
        history = text[text.index("The last messages") :]
        assert history.index('"apples"') < history.index("I know: apples") < history.index('"pears"')
        assert text.count("plums") == 1  # what is new is not among what was said
        assert await told(daemon, "figs") == "I know: plums figs" and "new session" not in given(daemon)

    story(tmp_path)


@frozen(quiet=False, **MODULES)
async def test_a_session_lost_twice_in_a_turn_fails_it(daemon: InProcessDaemon) -> None:
    await hire(daemon)
    await told(daemon, "a")
    await send(daemon, "forget")
    await idle_after(daemon)
    last = (await runs_of(daemon, "kai"))[-1]
    assert (last["status"], last["error_kind"]) == ("failed", "session_lost")
    assert len(list(workspace(daemon).glob("session-*"))) == 0  # it was tried twice, and not again at once


# --- two turns never use one session -----------------------------------------------------


@frozen(quiet=False, **MODULES)
async def test_a_provider_that_goes_on_after_its_run_keeps_its_session_for_itself(
    daemon: InProcessDaemon,
) -> None:
    await hire(daemon)
    await told(daemon, "a")
    await send(daemon, "deaf")
    await under_way(daemon, 2)
    [run] = [one for one in await runs_of(daemon, "kai") if one["status"] == "running"]
    before, run_execution.END_SECONDS = run_execution.END_SECONDS, 0.05
    try:
        await idle_after_ask(daemon, "run.cancel", id=run["id"])
    finally:
        run_execution.END_SECONDS = before
    assert await told(daemon, "b") == "I know: b"  # and it is told what was said
    assert '"a"' in given(daemon)
    (workspace(daemon) / "go").touch()


@frozen(quiet=False, **MODULES)
async def test_a_session_that_processes_of_its_run_may_still_use_is_not_resumed(
    daemon: InProcessDaemon,
) -> None:
    await hire(daemon)
    await told(daemon, "a")
    survivors.note(mark(daemon, 2))  # as whoever ends the processes of a run does
    assert await told(daemon, "b") == "I know: a b"
    assert await told(daemon, "c") == "I know: c"
    assert await told(daemon, "d") == "I know: c d"


@frozen(quiet=False, finish_seconds=0.05, **MODULES)
async def test_nor_after_a_crash_of_the_daemon(daemon: InProcessDaemon) -> None:
    await hire(daemon)
    await told(daemon, "a")
    await send(daemon, "hang")
    await under_way(daemon, 2)
    await daemon.close()
    (workspace(daemon) / "go").touch()
    # As if it had been killed: the run is stored as running, in an earlier boot.
    left = "UPDATE run SET status = 'running', ended_at = NULL, error = NULL, error_kind = NULL WHERE id = 2"
    assert daemon.change(left) == 1
    survivors.note(mark(daemon, 2))
    await daemon.open()
    await idle_after(daemon)
    assert (await runs_of(daemon, "kai"))[-1]["text"] == "I know: hang" and '"a"' in given(daemon)


def mark(daemon: InProcessDaemon, run: int) -> str:
    return left_processes.mark(daemon.daemon.wiring.runner._store.run_marks, run)
