"""`hiboss completion …`"""

from __future__ import annotations

import os
from typing import Annotated, Literal

import typer

from ...core.errors import WrongUsage
from .. import output
from ..session import Json, noun

app = noun("Let the tab key complete commands, names and ids.")

SHELLS = ("bash", "zsh", "fish")
Shell = Annotated[
    Literal["bash", "zsh", "fish"] | None,
    typer.Option("--shell", help="Which shell; by default the one this was called from."),
]

# Typer's own for bash gets `agent:nex` in three words, without a way to put them together again.
BASH = """\
_hiboss_completion() {
    local IFS=$'\\n'
    COMPREPLY=( $( env _TYPER_COMPLETE_ARGS="${COMP_LINE:0:COMP_POINT}" \\
                   COMP_WORDBREAKS="$COMP_WORDBREAKS" \\
                   _HIBOSS_COMPLETE=complete_bash "$1" 2>/dev/null ) )
    return 0
}

complete -o default -F _hiboss_completion hiboss"""
ZSH_START = "fpath+=~/.zfunc; autoload -Uz compinit; compinit"


@app.command()
def show(shell: Shell = None, json_: Json = False) -> None:
    """Print the script for a shell.

    Example: eval "$(hiboss completion show --shell bash)"
    """
    chosen = shell or _called_from()
    script = _script(chosen)
    if output.Mode.json:
        output.document({"shell": chosen, "script": script})
    else:
        output.line(script)


@app.command()
def install(shell: Shell = None, json_: Json = False) -> None:
    """Install the script for your shell, and say what was changed.

    Done again, it only brings the script up to date.
    """
    chosen = shell or _called_from()
    script, start, line = _queue(chosen)
    os.makedirs(os.path.dirname(script), exist_ok=True)
    with open(script, "w", encoding="utf-8") as file:
        file.write(_script(chosen) + "\n")
    changed = start if start and _add_line(start, line) else None
    output.answer({"shell": chosen, "script": script, "changed": changed})
    output.note("It works in the next shell you open.")


def _script(shell: str) -> str:
    if shell == "bash":
        return BASH
    from typer._completion_shared import get_completion_script

    return get_completion_script(prog_name="hiboss", complete_var="_HIBOSS_COMPLETE", shell=shell)


def _queue(shell: str) -> tuple[str, str | None, str]:
    """Where the script goes, and the file and line that make a new shell read it."""
    if shell == "bash":
        script = os.path.expanduser("~/.bash_completions/hiboss.sh")
        return script, os.path.expanduser("~/.bashrc"), f"source '{script}'"
    if shell == "zsh":
        directory = os.environ.get("ZDOTDIR") or os.path.expanduser("~")
        return os.path.expanduser("~/.zfunc/_hiboss"), os.path.join(directory, ".zshrc"), ZSH_START
    config = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    return os.path.join(config, "fish", "completions", "hiboss.fish"), None, ""


def _add_line(path: str, line: str) -> bool:
    """Add a line to the end of a person's file, once; nothing else in it is touched."""
    try:
        with open(path, "rb") as file:
            there = file.read()
    except FileNotFoundError:
        there = b""
    if line.encode() in there.splitlines():
        return False
    with open(path, "ab") as file:
        file.write((b"" if not there or there.endswith(b"\n") else b"\n") + line.encode() + b"\n")
    return True


def _called_from() -> str:
    from shellingham import ShellDetectionFailure, detect_shell

    try:
        found: str = detect_shell()[0]
    except ShellDetectionFailure:
        found = ""
    if found not in SHELLS:
        seen = f"{found} is a shell without completion here" if found else "your shell could not be found out"
        raise WrongUsage(detail=f"{seen}; give --shell bash, zsh or fish", help="hiboss completion --help")
    return found
