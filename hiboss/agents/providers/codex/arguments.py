"""How the program is called: its arguments, its environment, and what a thread is told."""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Mapping
from typing import Any

from .settings import CodexSettings

# autonomy: the sandbox of its commands, and when it asks. Not `untrusted` for low: that asks
# before `cat` too, and what was allowed runs in the sandbox all the same.
RIGHTS = {
    "low": ("read-only", "on-request"),
    "medium": ("workspace-write", "on-request"),
    "high": ("danger-full-access", "never"),
}
CONFIG = (
    # A login shell reads the profile, which sets PATH anew: `hiboss` would not be found any more.
    "allow_login_shell=false",
    # Without the network the sandbox forbids Unix sockets too: `hiboss` could not reach the daemon.
    "sandbox_workspace_write.network_access=true",
    "analytics.enabled=false",
    # Else it waits for the network without end; the lane waits and tries again itself.
    "features.unbounded_connection_retries=false",
    # Questions with options of its own. The warning about it is not for the boss.
    "features.default_mode_request_user_input=true",
    "suppress_unstable_features_warning=true",
)
# With a key of the agent: kept in the memory of this process only, and the user's login stays as it is.
OWN_LOGIN = "cli_auth_credentials_store=ephemeral"
# Of a codex that started this daemon: what is started here is not a part of its session.
NESTED = frozenset(("CODEX_THREAD_ID", "CODEX_SANDBOX", "CODEX_SANDBOX_NETWORK_DISABLED", "CODEX_CI"))


def arguments(program: str, settings: CodexSettings) -> list[str]:
    """Return the command line. What hiboss needs comes last, so that it counts."""
    own = [*CONFIG, OWN_LOGIN] if settings.api_key is not None else CONFIG
    given = [program, "app-server", *shlex.split(settings.arguments)]
    return given + [word for one in own for word in ("-c", one)]


def environment(given: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of the program."""
    return {name: value for name, value in given.items() if name not in NESTED}


def thread_name(agent: str, instructions: str) -> str:
    """Return the name of a thread, which says by which instructions it works."""
    mark = hashlib.sha256(instructions.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{agent} (hiboss {mark})"


def new_instructions(instructions: str) -> dict[str, Any]:
    """Return an item of the conversation with instructions that have changed."""
    said = "These instructions replace the earlier ones about who you are and how you work here:"
    content = {"type": "input_text", "text": f"{said}\n\n{instructions}"}
    return {"type": "message", "role": "developer", "content": [content]}


def thread(settings: CodexSettings, workspace: str, instructions: str) -> dict[str, Any]:
    """Return the parameters of a thread: the same for a new one, a resumed one and a fork."""
    sandbox, approvals = RIGHTS[settings.autonomy]
    found: dict[str, Any] = {
        "cwd": workspace,
        "sandbox": sandbox,
        "approvalPolicy": approvals,
        # The boss answers, whatever the user's own config says about automatic reviews.
        "approvalsReviewer": "user",
    }
    if settings.model is not None:
        found["model"] = settings.model
    if instructions:
        found["developerInstructions"] = instructions
    return found
