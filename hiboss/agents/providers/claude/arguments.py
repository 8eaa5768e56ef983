"""How the program is called: its arguments and its environment."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping

from .settings import ClaudeSettings

MODES = {"low": "default", "medium": "acceptEdits", "high": "bypassPermissions"}
# Of a claude that started this daemon: what is started here is not a part of its session.
NESTED = frozenset(
    (
        *("CLAUDECODE", "CLAUDE_CODE_CHILD_SESSION", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_EXECPATH"),
        *("CLAUDE_CODE_MESSAGING_SOCKET", "CLAUDE_CODE_MESSAGING_TOKEN", "CLAUDE_CODE_SESSION_ATTENDED"),
        *("CLAUDE_CODE_SESSION_ID", "CLAUDE_CODE_SSE_PORT", "CLAUDE_EFFORT", "CLAUDE_PID"),
    )
)
# They would count before the key of the agent.
OTHER_ACCOUNTS = frozenset(("ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"))
OWN_VARIABLES = {
    "CLAUDE_CODE_MAX_RETRIES": "2",  # else 10, for minutes; the lane waits and tries again itself
    "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1",  # they would end with the turn
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    # The turn is saved before the model gets it: a program that is killed early can be resumed.
    "CLAUDE_CODE_EAGER_FLUSH": "1",
    "DISABLE_AUTOUPDATER": "1",  # it would be replaced while turns run
    # Else it reads each file that a text names with an @, wherever it is, and asks nobody.
    "CLAUDE_CODE_DISABLE_FILE_MENTIONS": "1",
    # Each command begins in the workspace: so a rule about a command line is about one directory.
    "CLAUDE_BASH_MAINTAIN_PROJECT_WORKING_DIR": "1",
}
# They come due, or report, after the turn: then the process has ended, or the turn would not end for hours.
NEVER_DUE = "CronCreate,CronDelete,CronList,ScheduleWakeup,Monitor"


def may_bypass(environment: Mapping[str, str], is_root: bool | None = None) -> bool:
    """Tell whether claude takes bypassPermissions here: as root only in a sandbox, as its user says."""
    root = os.geteuid() == 0 if is_root is None else is_root
    return not root or environment.get("IS_SANDBOX") == "1"


def mode(settings: ClaudeSettings, *, bypass: bool) -> str:
    """Return the permission mode."""
    found = MODES[settings.autonomy]
    return "acceptEdits" if found == "bypassPermissions" and not bypass else found


def arguments(
    program: str, settings: ClaudeSettings, *, session: list[str], instructions: str | None, bypass: bool
) -> list[str]:
    """Return the command line. `session`: its arguments about the session; `instructions`: a file."""
    given = [program, "-p", "--output-format", "stream-json", "--input-format", "stream-json", "--verbose"]
    given += ["--include-partial-messages", "--replay-user-messages", "--permission-prompt-tool", "stdio"]
    given += ["--permission-mode", mode(settings, bypass=bypass), *session]
    options = {
        "--model": settings.model,
        "--effort": settings.effort,
        "--append-system-prompt-file": instructions,
        "--max-turns": settings.max_turns,
        "--max-budget-usd": settings.max_cost,
    }
    for name, value in options.items():
        if value is not None:
            given += [name, f"{value:f}" if isinstance(value, float) else str(value)]
    return [*given, f"--disallowedTools={NEVER_DUE}", *shlex.split(settings.arguments)]


def environment(settings: ClaudeSettings, given: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of the program: that of the run, with what hiboss needs to be so."""
    left_out = NESTED if settings.api_key is None else NESTED | OTHER_ACCOUNTS
    kept = {name: value for name, value in given.items() if name not in left_out}
    key = {} if settings.api_key is None else {"ANTHROPIC_API_KEY": settings.api_key.get_secret_value()}
    return {**kept, **OWN_VARIABLES, **key}
