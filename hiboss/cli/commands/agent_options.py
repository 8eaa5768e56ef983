"""The settings of an agent on the command line; the same for `agent register` and `agent set`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from .. import described_options
from ..call import call
from ..options import Text, argument, flag
from ..text_input import absolute

NewName = Annotated[str, argument("NAME", "Letters, digits and single dashes, like code-review.")]
Name = Annotated[str, argument("NAME", "The agent's name; hiboss agent list shows them.")]
Kind = Annotated[
    Literal["agent", "service", "bot"] | None,
    flag("--kind", None, "agent (the default), service or bot: only shown in lists; changes nothing else."),
]
Mode = Annotated[
    Literal["run", "pull"] | None,
    flag("--mode", None, "run: the daemon gives it turns; needs a provider. pull: it fetches its mail."),
]
IMPLIED = "An option of its own, like --command or --url, chooses it too."
NewProvider = Annotated[
    Text,
    flag(
        "--provider",
        "NAME",
        f"Who answers, like claude, codex or demo; by default nobody: the agent fetches its mail. {IMPLIED}",
    ),
]
Provider = Annotated[
    Text, flag("--provider", "NAME", f"Who answers, like claude, codex or demo; none: nobody. {IMPLIED}")
]
Reply = Annotated[
    Literal["auto", "explicit"] | None,
    flag("--reply", None, "auto: its final text is the answer. explicit: it sends its answers itself."),
]
Busy = Annotated[
    Literal["collect", "followup", "interrupt", "steer", "end-of-turn"] | None,
    flag(
        "--busy",
        None,
        "collect: all new mail in one turn; followup: one turn for each message. As collect, and: a person's "
        "new message in its conversation reaches the run or ends it (interrupt), or reaches it or waits (steer); "
        "no mail ends the run, not even critical (end-of-turn).",
    ),
]
SessionScope = Annotated[
    Literal["person", "conversation", "agent"] | None,
    flag(
        "--session-scope",
        None,
        "Who shares a session, the memory of its provider: all that one person says to it (person, the "
        "default), each conversation by itself, or everything (agent).",
    ),
]
SessionReset = Annotated[
    Text,
    flag("--session-reset", "HH:MM", "Begin new sessions each day at this time of the boss. '': never."),
]
SessionIdle = Annotated[
    Text,
    flag(
        "--session-idle", "DURATION", "Begin a new session after so long without a turn, like 6h. '': never."
    ),
]
SessionContext = Annotated[
    int | None,
    flag(
        "--session-context",
        "N",
        "Begin a new session when its last model call read more tokens than this. 0: never.",
    ),
]
DailyTokens = Annotated[
    int | None, flag("--daily-tokens", "N", "Model tokens a day; after that many it is paused. 0: no limit.")
]
DailyCost = Annotated[
    float | None, flag("--daily-cost", "DOLLARS", "Dollars a day; after that cost it is paused. 0: no limit.")
]
Description = Annotated[Text, flag("--description", "TEXT", "What it is for.")]
Role = Annotated[
    Text, flag("--role", "TEXT", "Its role, like reviewer: shown to others, and a filter of agent list.")
]
Module = Annotated[
    Text,
    flag("--module", "TEXT", "The part it works on, like auth: shown to others, and a filter of agent list."),
]
Workspace = Annotated[
    Text, flag("--workspace", "DIR", "The directory it works in; by default ~/.hiboss/workspaces/NAME.")
]

SETTINGS = [
    "kind",
    "mode",
    "description",
    "role",
    "module",
    "display",
    "workspace",
    "provider",
    "reply",
    "busy",
    "session_scope",
    "session_reset",
    "session_idle",
    "session_context",
    "daily_tokens",
    "daily_cost",
]


def settings_given(values: dict[str, Any]) -> dict[str, Any]:
    """Of a command's local variables, those that are settings of an agent; also those of its provider."""
    found = {name: values[name] for name in SETTINGS}
    if found["workspace"]:
        found["workspace"] = absolute(found["workspace"])
    if described_options.are_given(values["context"]) or found["provider"]:
        who = {"token": values["token"], "profile": values["as_"]}

        def own() -> str | None:
            agents = call("agent.list", {}, **who)["agents"]
            return next((one["provider"] for one in agents if one["name"] == values["name"]), None)

        kinds = call("provider.list", {}, **who)["providers"]
        found["settings"] = described_options.settings(values["context"], kinds, found["provider"], own)
    return found
