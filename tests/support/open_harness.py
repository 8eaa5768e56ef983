"""A harness of our own that obeys the rules of Claude Code, and runs the real hooks of hiboss.

It is a process called `claude` of its own. For each event it runs `hiboss hook claude` as its child, with
what the real program gives (version 2.1.326): JSON on standard input, its variables in the environment. Its waiter is
`hiboss watch --hook claude`: exit status 2 becomes a prompt. A Stop hook that blocks makes it go on.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.support.cli import HIBOSS, gone

_numbers = itertools.count(1)

# Runs what it is told to, as its children, and answers with a line of JSON for each order.
PROGRAM = """
import json, os, subprocess, sys, threading

waiters = {}


def say(what):
    sys.stdout.write(json.dumps(what) + "\\n")
    sys.stdout.flush()


def environment(order):
    return {**order["env"], "CLAUDE_PID": str(os.getpid())} if order.get("harness", True) else order["env"]


for line in sys.stdin:
    order = json.loads(line)
    if order["do"] == "run":
        given = order["stdin"].encode()
        done = subprocess.run(order["words"], input=given, capture_output=True, env=environment(order))
        say({"rc": done.returncode, "stdout": done.stdout.decode(), "stderr": done.stderr.decode()})
    elif order["do"] == "arm":
        waiter = subprocess.Popen(
            order["words"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env=environment(order), start_new_session=True,
        )
        waiter.stdin.write(order["stdin"].encode())
        waiter.stdin.close()
        waiters[waiter.pid] = waiter
        say({"pid": waiter.pid})
    elif order["do"] == "join":
        waiter = waiters.pop(order["pid"])
        said = waiter.stderr.read().decode()
        say({"rc": waiter.wait(), "stderr": said, "stdout": waiter.stdout.read().decode()})
"""


class Harness:
    """An open Claude Code, as far as its hooks see it."""

    def __init__(self, home: str, directory: Path, agent: str | None = None) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.home, self.directory, self.agent = home, directory, agent
        self.session = f"harness-{next(_numbers)}"
        self.waiter: int | None = None
        program = directory / "claude"
        program.symlink_to(os.path.realpath(sys.executable))
        (directory / "program.py").write_text(PROGRAM)
        self.process = subprocess.Popen(
            [str(program), "-I", "-S", str(directory / "program.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=self._variables(),
        )

    # --- what it runs ----------------------------------------------------------------

    def _variables(self) -> dict[str, str]:
        return {
            "PATH": f"{os.path.dirname(HIBOSS)}:/usr/bin:/bin",
            "HOME": str(self.directory),
            "LANG": "C.UTF-8",
            "HIBOSS_HOME": self.home,
        }

    def variables(self) -> dict[str, str]:
        """Return the environment of its hooks and tools, without CLAUDE_PID."""
        return {
            **self._variables(),
            "AI_AGENT": "claude-code_2-1-326_harness",
            "CLAUDECODE": "1",
            "CLAUDE_CODE_ENTRYPOINT": "cli",
            "CLAUDE_CODE_SESSION_ID": self.session,
            "CLAUDE_CONFIG_DIR": str(self.directory / "config"),
        }

    def order(self, **what: Any) -> dict[str, Any]:
        """Let the process of the harness do something; return its answer."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(json.dumps(what) + "\n")
        self.process.stdin.flush()
        return dict(json.loads(self.process.stdout.readline()))

    def run(
        self, *words: str, stdin: str = "", env: dict[str, str] | None = None, **more: Any
    ) -> dict[str, Any]:
        """Run a command as a tool of it would."""
        return self.order(do="run", words=list(words), stdin=stdin, env=env or self.variables(), **more)

    def event(self, name: str, **fields: Any) -> str:
        return json.dumps(
            {
                "session_id": self.session,
                "transcript_path": str(self.directory / "transcript.jsonl"),
                "cwd": str(self.directory),
                "hook_event_name": name,
                **fields,
            }
        )

    def _words(self, *words: str) -> list[str]:
        return [HIBOSS, *words, *(("--agent", self.agent) if self.agent else ())]

    def hook(self, name: str, **fields: Any) -> dict[str, Any]:
        """Run the hook for an event; return what it printed. It must never fail, nor say anything else."""
        done = self.run(*self._words("hook", "claude"), stdin=self.event(name, **fields))
        assert (done["rc"], done["stderr"]) == (0, ""), done
        return dict(json.loads(done["stdout"])) if done["stdout"] else {}

    # --- what a person sees ----------------------------------------------------------

    def start(self) -> str:
        """Start the session; return the briefing."""
        briefing = self.hook("SessionStart", source="startup", model="claude-opus-5-5")
        self.arm()
        return _added(briefing)

    def arm(self) -> int:
        """Start a waiter, as at the start and after each stop (asyncRewake); return its pid."""
        words = self._words("watch", "--hook", "claude")
        given = self.event("SessionStart", source="startup")
        self.waiter = int(self.order(do="arm", words=words, stdin=given, env=self.variables())["pid"])
        return self.waiter

    def join(self, pid: int | None = None) -> dict[str, Any]:
        """Wait until a waiter has ended."""
        return self.order(do="join", pid=pid or self.waiter)

    def woken(self) -> str:
        """Wait until the waiter wakes it, and make a prompt of that; return what the model gets."""
        ended, self.waiter = self.join(), None
        assert ended["rc"] == 2 and ended["stdout"] == "", ended
        told = f"<system-reminder>\nNew mail in hiboss: {ended['stderr']}\n</system-reminder>"
        return self.prompt(
            f"<task-notification>\n<summary>hiboss: new mail</summary>\n</task-notification>\n{told}"
        )

    def prompt(self, text: str) -> str:
        """Send a prompt to the model; return what the hook adds to it."""
        return _added(self.hook("UserPromptSubmit", prompt=text, permission_mode="default"))

    def step(self, tool: str = "Bash") -> str:
        return _added(self.hook("PostToolUse", tool_name=tool, tool_input={}, tool_use_id="toolu_1"))

    def stop(self, text: str, *, active: bool = False) -> str:
        """End the turn with a text; return why it goes on, or nothing. Then it has a waiter again."""
        found = self.hook("Stop", last_assistant_message=text, stop_hook_active=active, background_tasks=[])
        if found.get("decision") == "block":
            return str(found["reason"])
        before = self.waiter
        self.arm()
        if before is not None and not gone(before):  # by its lock there is one only
            assert self.join()["rc"] == 0
            self.waiter = before
        return ""

    def end(self, reason: str = "prompt_input_exit") -> None:
        self.hook("SessionEnd", reason=reason)

    def kill(self) -> None:
        """End it with kill -9."""
        self.process.kill()
        self.process.communicate()


def _added(found: dict[str, Any]) -> str:
    return str(found.get("hookSpecificOutput", {}).get("additionalContext", ""))
