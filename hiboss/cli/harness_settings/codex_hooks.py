"""The hooks of Codex, in hooks.json."""

from __future__ import annotations

from .harness import EventHooks, Harness

REVIEW = "Open codex and type /hooks: review the hooks of hiboss there and trust them."

CODEX = Harness(
    name="codex",
    title="Codex",
    variable="CODEX_HOME",
    directory="~/.codex",
    file="hooks.json",
    events=(
        EventHooks(event="SessionStart", timeout=10),
        EventHooks(event="UserPromptSubmit", timeout=10),
        EventHooks(event="PostToolUse", timeout=10, matcher="*"),
        EventHooks(event="Stop", timeout=15),
        # Codex gives these two at most three seconds.
        EventHooks(event="Interrupt", timeout=3),
        EventHooks(event="SessionEnd", timeout=3),
        EventHooks(event="PermissionRequest", timeout=600, matcher="*", asks=True),
    ),
    after_install=f"Codex runs no hook that you have not trusted. {REVIEW}",
)
