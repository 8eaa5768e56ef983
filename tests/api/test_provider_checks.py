"""Choosing a provider: what it finds is told, what it cannot do is refused, and which one an option means."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import psutil
import pytest

from hiboss.agents import provider_finding
from hiboss.cli.client import Answered
from hiboss.core.contracts.provider import Finding
from hiboss.core.paths import Home
from hiboss.testing.running_daemon import RunningDaemon
from tests.support.daemons import daemon_fixture
from tests.support.live_providers import Seeker, SeekerSettings
from tests.support.parties import Party, agent
from tests.support.raising import raised
from tests.support.shell_agents import Boss, has_ended

MODULES = "tests.support.live_providers"
COMMAND = {"provider": "command", "settings": {"command": "true"}}
OPEN = {"provider": "command", "settings": {"command": "true", "input": "open"}}


daemon = daemon_fixture(provider_modules=MODULES)


@pytest.fixture(scope="module")
def boss(daemon: RunningDaemon) -> Boss:
    return Boss(daemon)


def change(boss: Boss, kai: Party, **fields: Any) -> Any:
    return boss.call("agent.set", name=kai.name, **fields)


def refusal(boss: Boss, kai: Party, **fields: Any) -> tuple[str, str]:
    error = raised(Answered, change, boss, kai, **fields)
    return error.stable_code, error.message


# --- what it finds -----------------------------------------------------------------------


def test_a_provider_that_is_chosen_says_what_it_found_as_a_run_would_have_it(
    boss: Boss, tmp_path: Path
) -> None:
    made = boss.call("agent.register", name="finds", provider="seeker", workspace=str(tmp_path))
    found = f"seeker 1.2 in {tmp_path}, HIBOSS_AGENT HIBOSS_HOME HIBOSS_RUN"
    assert made["found"] == {"found": found, "problem": None, "help": None}
    assert made["agent"]["provider"] == "seeker"


def test_what_is_missing_is_told_and_refuses_nothing(boss: Boss, kai: Party) -> None:
    told = change(boss, kai, provider="seeker", settings={"program": "none"})
    assert told["found"] == {
        "found": None,
        "problem": "there is no program none",
        "help": "npm install -g none",
    }
    assert (told["provider"], told["mode"]) == ("seeker", "run")
    assert change(boss, kai, settings={"program": "here"})["found"]["problem"] is None  # it looked again
    assert "found" not in change(boss, kai, description="finds things")
    assert "found" not in change(boss, kai, provider="none")


@pytest.mark.parametrize("program", ["broken", "exit"])
def test_a_provider_that_fails_to_look_is_chosen_all_the_same(boss: Boss, kai: Party, program: str) -> None:
    told = change(boss, kai, provider="seeker", settings={"program": program})
    assert "RuntimeError" in told["found"]["problem"] and told["provider"] == "seeker"


AWAY = """setsid sleep 1000 </dev/null >/dev/null 2>&1 &
echo $! >> "$D/pids"
env -i setsid sleep 1000 </dev/null >/dev/null 2>&1 &
echo $! >> "$D/pids"
"""


@pytest.mark.parametrize("provider", ["claude", "codex", "acp"])
def test_a_search_leaves_no_process_behind(boss: Boss, kai: Party, tmp_path: Path, provider: str) -> None:
    program = tmp_path / "agent"
    program.write_text(f"#!/bin/sh\nD={tmp_path}\n{AWAY}echo 99.1.2\n")
    program.chmod(0o700)
    settings = {"command": str(program)} if provider == "acp" else {"program": str(program)}
    assert change(boss, kai, provider=provider, settings=settings)["provider"] == provider
    pids = [int(one) for one in (tmp_path / "pids").read_text().split()]
    assert len(pids) >= 2 and not [pid for pid in pids if _lives(pid)]


def _lives(pid: int) -> bool:
    try:
        return not has_ended(psutil.Process(pid))
    except psutil.NoSuchProcess:
        return False


def test_a_search_without_an_end_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provider_finding, "FIND_SECONDS", 0.01)
    slow = Seeker(SeekerSettings(program="slow"))
    found = asyncio.run(provider_finding.find(slow, Home(str(tmp_path)), "kai", str(tmp_path), ()))
    assert found == Finding(problem="seeker could not be looked at in 0.01 seconds")


def test_providers_that_need_nothing_find_nothing(boss: Boss, kai: Party) -> None:
    assert change(boss, kai, provider="demo")["found"] is None


def test_the_boss_and_the_agent_itself_may_look_again_and_try_another(
    boss: Boss, kai: Party, daemon: RunningDaemon
) -> None:
    assert kai.refusal("agent.check", name=kai.name) == "no_provider"
    change(boss, kai, provider="seeker", settings={"program": "none"})
    assert boss.call("agent.check", name=kai.name)["found"]["help"] == "npm install -g none"
    tried = kai.call("agent.check", name=kai.name, provider="seeker")
    assert tried["found"]["found"].startswith("seeker 1.2") and tried["capabilities"] == ["cost"]
    assert boss.call("agent.check", name=kai.name, provider="demo")["found"] is None
    assert boss.refusal("agent.check", name=kai.name, provider="webhook") == "bad_provider"  # needs a URL
    assert agent(daemon).refusal("agent.check", name=kai.name) == "boss_only"


# --- what it cannot do -------------------------------------------------------------------


def test_to_be_steered_needs_a_provider_that_takes_words_whatever_is_chosen_first(
    boss: Boss, kai: Party
) -> None:
    code, why = refusal(boss, kai, busy="steer", **COMMAND)
    assert code == "lacks_capability" and "command" in why and "--busy" in why
    change(boss, kai, busy="steer")  # it has no provider yet
    assert refusal(boss, kai, provider="demo")[0] == refusal(boss, kai, **COMMAND)[0] == "lacks_capability"
    assert change(boss, kai, **OPEN)["busy"] == "steer"
    code, why = refusal(boss, kai, settings={"input": "turn"})
    assert code == "lacks_capability" and "takes no words" in why
    assert change(boss, kai, settings={"input": "turn"}, busy="interrupt")["busy"] == "interrupt"
    change(boss, kai, provider="none", busy="steer")


def test_a_limit_in_dollars_needs_a_provider_that_reports_them(boss: Boss, kai: Party) -> None:
    change(boss, kai, provider="demo")
    code, why = refusal(boss, kai, daily_cost=5)
    assert code == "lacks_capability" and "--daily-tokens" in why
    assert change(boss, kai, provider="seeker", daily_cost=5)["daily_cost"] == 5
    assert refusal(boss, kai, provider="demo")[0] == "lacks_capability"
    assert change(boss, kai, description="spends")["daily_cost"] == 5
    assert change(boss, kai, provider="demo", daily_cost=0, daily_tokens=9)["daily_tokens"] == 9


def test_nothing_is_stored_of_what_was_refused(boss: Boss, kai: Party, daemon: RunningDaemon) -> None:
    before = sorted(Path(daemon.home.secrets).iterdir())
    given = {"provider": "seeker", "settings": {"key": "a-key-of-some-length"}, "busy": "steer"}
    assert refusal(boss, kai, **given)[0] == "lacks_capability"
    assert boss.refusal("agent.register", name="never", **given) == "lacks_capability"
    assert sorted(Path(daemon.home.secrets).iterdir()) == before
    found = {one["name"]: one for one in boss.call("agent.list")["agents"]}
    assert found[kai.name]["provider"] is None and "never" not in found


# --- which provider an option means --------------------------------------------------------


def test_an_option_that_bears_the_name_of_a_provider_means_that_one(boss: Boss, kai: Party) -> None:
    assert change(boss, kai, settings={"command": "true"})["provider"] == "command"


def test_an_option_changes_the_providers_own_settings_first(boss: Boss, kai: Party) -> None:
    change(boss, kai, provider="talker")
    assert change(boss, kai, settings={"command": "hello"})["provider"] == "talker"
    assert change(boss, kai, settings={"model": "big"})["settings"] == {"command": "hello", "model": "big"}


def test_options_together_mean_the_only_one_that_has_them_all(boss: Boss, kai: Party) -> None:
    assert change(boss, kai, settings={"model": "big", "where": "here"})["provider"] == "finder"
    change(boss, kai, provider="none")
    assert change(boss, kai, settings={"program": "x", "key": "some key"})["provider"] == "seeker"


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"max_cost": 1}, "codex has no --max-cost; it takes --api-key, --arguments, --autonomy, "),
        ({"max_cost": 1}, "to change the provider give --provider claude"),
        ({"max_cost": ""}, "codex has no --max-cost; "),
        ({"max_cost": 1, "model": "m"}, "codex has no --max-cost; "),
        ({"max_cost": 1, "max_tokens": 9}, "codex has no --max-cost; it takes "),  # no provider has both
        ({"command": "true"}, "give --provider acp or --provider command or --provider talker"),
        ({"max_tokns": 9}, "codex has no --max-tokns (did you mean --max-tokens?); it takes "),
    ],
)
def test_an_option_that_the_agents_provider_lacks_never_changes_the_provider(
    boss: Boss, kai: Party, given: dict[str, Any], says: str
) -> None:
    change(boss, kai, provider="codex", settings={"program": "/no/codex", "model": "big"})
    code, why = refusal(boss, kai, settings=given)
    assert code == "bad_provider" and says in why
    listed = {one["name"]: one for one in boss.call("agent.list")["agents"]}
    assert (listed[kai.name]["provider"], listed[kai.name]["settings"]["model"]) == ("codex", "big")


def test_demo_which_has_no_options_makes_room_for_the_provider_that_an_option_means(
    boss: Boss, kai: Party
) -> None:
    change(boss, kai, provider="demo")
    assert change(boss, kai, settings={"command": "true"})["provider"] == "command"
    change(boss, kai, provider="demo")
    assert change(boss, kai, settings={"where": "here"})["provider"] == "finder"
    change(boss, kai, provider="staged")  # it has none either
    assert "staged has no --where; it takes no options" in refusal(boss, kai, settings={"where": "x"})[1]


# --- the same provider again ---------------------------------------------------------------


def test_a_provider_that_is_named_again_keeps_its_settings_and_secrets(
    boss: Boss, kai: Party, daemon: RunningDaemon
) -> None:
    before = set(Path(daemon.home.secrets).iterdir())
    change(boss, kai, provider="seeker", settings={"model": "big", "key": "a-key-of-some-length"})
    again = change(boss, kai, provider="seeker", settings={"program": "other"})
    assert (again["settings"]["model"], again["settings"]["program"]) == ("big", "other")
    change(boss, kai, provider="seeker")
    (kept,) = set(Path(daemon.home.secrets).iterdir()) - before
    assert daemon.home.secrets_of(kept.name) == {"key": "a-key-of-some-length"}
    gone = change(boss, kai, provider="seeker", settings={"model": "", "key": ""})["settings"]
    assert (gone["model"], gone["program"]) == ("", "other")
    assert set(Path(daemon.home.secrets).iterdir()) == before
    change(boss, kai, provider="demo")
    assert change(boss, kai, provider="seeker")["settings"]["program"] == "seeker"  # another one between


def test_settings_that_fit_no_longer_are_dropped_when_the_provider_is_named_again(
    boss: Boss, kai: Party
) -> None:
    change(boss, kai, provider="seeker", settings={"model": "big"})
    stored_settings(boss, kai, '{"model": "big", "of_an_older_version": 1}')
    assert "--of-an-older-version" in refusal(boss, kai, settings={"model": "other"})[1]
    assert change(boss, kai, provider="seeker")["settings"]["model"] == ""


def stored_settings(boss: Boss, kai: Party, stored: str) -> None:
    """Write settings as another version would have done."""
    with boss.daemon.database() as database:
        database.execute(
            "UPDATE agent SET provider_config = ? WHERE address = (SELECT id FROM address WHERE name = ?)",
            (stored, kai.name),
        )
        database.commit()


def test_an_option_of_several_providers_names_them_and_wants_one(boss: Boss, kai: Party) -> None:
    code, why = refusal(boss, kai, settings={"model": "big"})
    assert code == "bad_provider"
    assert "seeker" in why and "talker" in why and "--provider seeker" in why
    assert "finder" not in why  # it needs one more option, so it is not meant


# --- numbers that cannot be shown ----------------------------------------------------------


@pytest.mark.parametrize(
    ("provider", "settings", "says"),
    [
        ("claude", {"max_turns": "99999999999999999999999"}, "--max-turns must be less than or equal to"),
        ("claude", {"max_turns": 1e30}, "--max-turns"),
        ("claude", {"max_cost": "inf"}, "--max-cost"),
        ("claude", {"max_cost": "nan"}, "--max-cost"),
        ("claude", {"max_cost": "1e-320"}, "--max-cost"),
        ("codex", {"max_tokens": 2**64 - 1}, "--max-tokens"),
        ("counter", {"most": "99999999999999999999999"}, f"--most must be a number of at most {2**63 - 1}"),
        ("counter", {"most": 1e30}, "--most must be a number of at most"),
        ("counter", {"share": "-inf"}, "--share must be a finite number"),
        ("counter", {"more": '{"a": [1, {"b": 99999999999999999999999}]}'}, "--more must be a number"),
        ("counter", {"more": '{"a": NaN}'}, "--more must be a finite number"),
    ],
)
def test_a_number_that_could_never_be_shown_again_is_refused_and_stores_nothing(
    boss: Boss, kai: Party, provider: str, settings: dict[str, Any], says: str
) -> None:
    code, why = refusal(boss, kai, provider=provider, settings=settings)
    assert code == "bad_provider" and says in why
    with pytest.raises(Answered, match="--"):
        boss.call("agent.register", name="huge", provider=provider, settings=settings)
    listed = {one["name"]: one for one in boss.call("agent.list")["agents"]}
    assert "huge" not in listed and listed[kai.name]["provider"] is None


def test_a_number_that_was_stored_before_is_shown_as_a_text_and_can_be_removed(
    boss: Boss, kai: Party
) -> None:
    change(boss, kai, provider="claude", settings={"max_turns": 7})
    stored_settings(boss, kai, '{"max_turns": 99999999999999999999999, "max_cost": Infinity}')
    shown = {one["name"]: one for one in boss.call("agent.list")["agents"]}[kai.name]["settings"]
    assert (shown["max_turns"], shown["max_cost"]) == ("99999999999999999999999", "inf")
    assert "--max-turns" in refusal(boss, kai, settings={"model": "opus"})[1]
    told = change(boss, kai, settings={"max_turns": "", "max_cost": "", "model": "opus"})
    assert told["settings"]["max_turns"] is None and told["settings"]["model"] == "opus"
