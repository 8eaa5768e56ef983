"""The hooks of Claude Code, in settings.json."""

from __future__ import annotations

from .harness import EventHooks, Harness

WAITER_SECONDS = 2_000_000  # 23 days: as long as a session is open
WAITER = {
    "asyncRewake": True,
    "timeout": WAITER_SECONDS,
    "rewakeMessage": "New mail in hiboss:",
    "rewakeSummary": "hiboss: new mail",
}

CLAUDE = Harness(
    name="claude",
    title="Claude Code",
    variable="CLAUDE_CONFIG_DIR",
    directory="~/.claude",
    file="settings.json",
    events=(
        EventHooks(event="SessionStart", timeout=10, waiter=WAITER),
        # A turn that is ended by Esc fires no Stop, so the next prompt starts the waiter too.
        EventHooks(event="UserPromptSubmit", timeout=10, waiter=WAITER),
        EventHooks(event="PostToolUse", timeout=10, matcher="*"),
        EventHooks(event="Stop", timeout=15, waiter=WAITER),
        EventHooks(event="StopFailure", timeout=10),  # the model failed: there is no Stop then
        EventHooks(event="SessionEnd", timeout=10),
        EventHooks(
            event="PermissionRequest", timeout=600, matcher="*", more={"onFailure": "block"}, asks=True
        ),
    ),
    # Seen with 2.1.326: an open session reads its settings again when they change.
    after_install="Sessions that are open now take the hooks at their next prompt, new ones at their start.",
)
