"""What a table of hooks is made of, and the command line that each hook runs."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from ...core.errors import InvalidParams
from ...core.paths import Home

PROGRAM = "hiboss"
HOOK = "hook"  # a hook that the harness waits for
QUIETLY = " || true"
WAITER = "watch"  # a hook that waits for mail in the background, and wakes the session

Entry = dict[str, Any]  # one hook, as the settings have it


@dataclass(frozen=True, kw_only=True)
class EventHooks:
    """What is installed for one event of a harness."""

    event: str
    timeout: int  # seconds
    matcher: str | None = None  # for events of tools: which tools
    more: Mapping[str, Any] = field(default_factory=dict)  # further fields of the hook
    waiter: Mapping[str, Any] | None = None  # the fields of the waiter, where there is one
    asks: bool = False  # only with --asks


@dataclass(frozen=True, kw_only=True)
class Harness:
    """A program whose sessions hiboss can reach by hooks."""

    name: str
    title: str
    variable: str  # names the directory of its settings
    directory: str  # where they are without that variable
    file: str
    events: tuple[EventHooks, ...]
    after_install: str  # what the person must do then

    def settings_path(self, directory: str = "") -> str:
        """Return the file of its settings. `directory`: what the variable says elsewhere, if not here."""
        chosen = os.environ.get(self.variable) or directory or self.directory
        return os.path.join(os.path.abspath(os.path.expanduser(chosen)), self.file)


@dataclass(frozen=True, kw_only=True)
class HookCommand:
    """What the command line of a hook names."""

    program: str  # its absolute path
    agent: str | None = None
    home: str | None = None  # None: the default one

    def line(self, kind: str, harness: str) -> str:
        words = [HOOK, harness] if kind == HOOK else [WAITER, "--hook", harness]
        options = [("--agent", self.agent), ("--home", self.home)]
        named = [word for flag, value in options if value is not None for word in (flag, value)]
        return shlex.join([self.program, *words, *named])


def kind_of(entry: Any, harness: str) -> str | None:
    """Return which of our hooks for this harness an entry of the settings is; None: it is foreign."""
    words = _words(entry)
    if not words or os.path.basename(words[0]) != PROGRAM:
        return None
    if words[1:3] == [HOOK, harness]:
        return HOOK
    return WAITER if words[1:4] == [WAITER, "--hook", harness] else None


def named_in(entry: Entry) -> HookCommand:
    """Return what the command line of one of our hooks names."""
    words = _words(entry)
    options = {flag: value for flag, value in pairwise(words) if flag.startswith("--")}
    return HookCommand(program=words[0], agent=options.get("--agent"), home=options.get("--home"))


def _words(entry: Any) -> list[str]:
    command = entry.get("command") if isinstance(entry, dict) else None
    try:
        return shlex.split(command) if isinstance(command, str) else []
    except ValueError:  # a quote that is not closed
        return []


def command_of_this_program(agent: str | None) -> HookCommand:
    """Return the command for the hiboss that runs now and its home."""
    home = Home().path
    default = os.path.abspath(os.path.expanduser("~/.hiboss"))
    found = HookCommand(program=_program(), agent=agent, home=None if home == default else home)
    try:
        found.line(HOOK, "").encode()
    except UnicodeEncodeError:
        detail = "the path of hiboss or of its home is no UTF-8 text, and settings in JSON cannot have it"
        raise InvalidParams(detail=detail) from None
    return found


def _program() -> str:
    # Links are kept: ~/.local/bin/hiboss stays the same when hiboss is upgraded, its target may not.
    beside = os.path.join(os.path.dirname(sys.executable), PROGRAM)
    for one in (os.path.abspath(sys.argv[0]), shutil.which(PROGRAM), beside):
        if one and os.path.basename(one) == PROGRAM and os.access(one, os.X_OK) and os.path.isfile(one):
            return os.path.abspath(one)
    raise InvalidParams(detail="the program hiboss is not on the PATH, so no hook could run it; install it")


def entries_of(harness: Harness, command: HookCommand, *, asks: bool) -> dict[str, Entry]:
    """Return the group of hooks for each event, as the settings have it."""
    return {one.event: _group(harness.name, one, command) for one in harness.events if asks or not one.asks}


def _group(harness: str, one: EventHooks, command: HookCommand) -> Entry:
    # If hiboss was uninstalled, the harness must not show that at every step. A permission must not pass so.
    line = command.line(HOOK, harness) + ("" if one.asks else QUIETLY)
    hooks = [{"type": "command", "command": line, "timeout": one.timeout, **one.more}]
    if one.waiter is not None:
        hooks.append({"type": "command", "command": command.line(WAITER, harness), **one.waiter})
    matcher = {} if one.matcher is None else {"matcher": one.matcher}
    return {**matcher, "hooks": hooks}
