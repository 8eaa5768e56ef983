"""What was typed in a conversation: a text to send, a command, or a mistake. Nothing here prints."""

from __future__ import annotations

import io
import os
import re
import shlex
from dataclasses import dataclass

from ...core.quoting import nearest

COMMANDS = {
    "help": "show this help",
    "status": "show the state of the agent",
    "agents": "show the state of every agent",
    "file": "PATH [text]: send a file; without a text it goes with the next message",
    "answer": "ASK OPTION [comment]: answer an ask, like /answer q2 yes",
    "new": "begin a new session: the agent forgets what was said here",
    "pause": "halt what the agent is doing for this conversation",
    "resume": "let it go on",
    "cancel": "cancel what the agent is doing for this conversation",
    "stop": "all: end what every agent is doing; nobody gets a turn",
    "go": "let everybody work again after /stop all",
    "quit": "end the conversation (also Ctrl-D)",
}
# What must be written behind a command, and what to say if it is not.
_NEEDS = {
    "answer": (
        re.compile("q[0-9]{1,15} .+"),
        "/answer: name the ask and one of its options, like /answer q2 yes (a comment may follow)",
    ),
    "stop": (
        re.compile("all", re.IGNORECASE),
        "/stop all ends what every agent is doing; /cancel cancels what this one is doing here",
    ),
}
HELP = "\n".join(
    [
        "Enter sends. Alt-Enter, Ctrl-J, or \\ at the end of the line starts a new line.",
        "Ctrl-C clears the line; on an empty line it ends the chat.",
        "//text sends a text that starts with /.",
        *(f"/{name:<7} {what}" for name, what in COMMANDS.items()),
    ]
)


@dataclass(frozen=True, kw_only=True)
class TypedInput:
    """What to do: send `text` with `files`, run a command, or only keep the files."""

    files: list[str]
    text: str = ""
    sends: bool = False
    command: str = ""
    words: str = ""  # behind the command
    error: str = ""


def parse_input(typed: str, gathered: list[str]) -> TypedInput:
    """`gathered`: the files for the next message. With files, an empty text is a message too."""
    text = typed.strip()
    if not text.startswith("/"):
        return TypedInput(text=typed.rstrip(), files=gathered, sends=bool(text or gathered))
    if text.startswith("//"):
        return TypedInput(text=text[1:], files=gathered, sends=True)
    name, *rest = text[1:].split(None, 1) or [""]
    if name not in COMMANDS:
        known = ", ".join(f"/{one}" for one in COMMANDS)
        hint = nearest(name, list(COMMANDS), before="/")
        return TypedInput(
            files=gathered,
            error=f"there is no command /{name}{hint}; there are {known}. Edit it, or Ctrl-C; write // to send a text that starts with /",
        )
    if name == "file":
        return _file("".join(rest), gathered)
    if name in _NEEDS:
        form, teaches = _NEEDS[name]
        words = " ".join("".join(rest).split())
        found = form.fullmatch(words) is not None
        return TypedInput(
            command=name if found else "", words=words, files=gathered, error="" if found else teaches
        )
    if rest:
        return TypedInput(
            files=gathered,
            error=f"/{name} takes no text; write only /{name}, or // to send a text that starts with /",
        )
    return TypedInput(command=name, files=gathered)


def _file(rest: str, gathered: list[str]) -> TypedInput:
    stream = io.StringIO(rest)
    words = shlex.shlex(stream, posix=True)
    words.whitespace_split, words.commenters = True, ""
    try:
        word = words.get_token()
    except ValueError:
        return TypedInput(files=gathered, error="/file: a quote is not closed")
    if not word:
        return TypedInput(files=gathered, error="/file: the path is missing; write /file PATH [text]")
    path = os.path.abspath(os.path.expanduser(word))
    if not os.path.isfile(path):
        return TypedInput(files=gathered, error=f"/file: there is no file {path}")
    text = stream.read().strip()
    return TypedInput(text=text, files=[*gathered, path], sends=bool(text))
