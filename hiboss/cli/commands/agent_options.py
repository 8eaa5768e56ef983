"""The settings of an agent on the command line; the same for `agent register` and `agent set`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from ..options import Text, argument, flag
from ..text_input import absolute

NewName = Annotated[str, argument("NAME", "Letters, digits and single dashes, like code-review.")]
Name = Annotated[str, argument("NAME", "The agent's name; hiboss agent list shows them.")]
Kind = Annotated[
    Literal["agent", "service", "bot"] | None,
    flag("--kind", None, "What it is: agent (the default), service or bot."),
]
Mode = Annotated[
    Literal["run", "pull"] | None,
    flag("--mode", None, "run: the daemon gives it turns; needs a provider. pull: it fetches its mail."),
]
Provider = Annotated[
    Text,
    flag("--provider", "NAME", "What gives its answers: command, webhook or demo; none removes it."),
]
Command = Annotated[
    Text,
    flag("--command", "WORDS", 'The program that answers, like "python agent.py"; it runs without a shell.'),
]
Url = Annotated[Text, flag("--url", "URL", "The webhook that answers: https, or http on this machine.")]
Reply = Annotated[
    Literal["auto", "explicit"] | None,
    flag("--reply", None, "auto: its final text is the answer. explicit: it sends its answers itself."),
]
Busy = Annotated[
    Literal["collect", "followup"] | None,
    flag("--busy", None, "Mail that comes during a turn: collect it into one turn, or followup one by one."),
]
DailyTokens = Annotated[
    int | None, flag("--daily-tokens", "N", "Pause it after this many tokens in a day; 0: no limit.")
]
DailyCost = Annotated[
    float | None, flag("--daily-cost", "DOLLARS", "Pause it after this cost in a day; 0: no limit.")
]
Description = Annotated[Text, flag("--description", "TEXT", "What it is for.")]
Role = Annotated[Text, flag("--role", "TEXT", "Its role, like reviewer.")]
Module = Annotated[Text, flag("--module", "TEXT", "The part it is responsible for, like auth.")]
Workspace = Annotated[Text, flag("--workspace", "DIR", "The directory it works in.")]

SETTINGS = [
    "kind",
    "mode",
    "description",
    "role",
    "module",
    "display",
    "workspace",
    "provider",
    "command",
    "url",
    "reply",
    "busy",
    "daily_tokens",
    "daily_cost",
]


def settings_given(values: dict[str, Any]) -> dict[str, Any]:
    """Of a command's local variables, those that are settings of an agent."""
    found = {name: values[name] for name in SETTINGS}
    if found["workspace"]:
        found["workspace"] = absolute(found["workspace"])
    return found
