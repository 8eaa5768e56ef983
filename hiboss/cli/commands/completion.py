"""`hiboss completion …`"""

from __future__ import annotations

import os
from typing import Annotated, Literal

from ...core.errors import WrongUsage
from .. import output
from ..options import Json, flag, noun

app = noun("Complete commands, names and ids with the tab key.")

SHELLS = ("bash", "zsh", "fish")
Shell = Annotated[
    Literal["bash", "zsh", "fish"] | None,
    flag("--shell", None, "Which shell; by default the one you call this from."),
]

# Typer's own script for bash gets `agent:nex` as three words and cannot join them.
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
    """Print the completion script for a shell.

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
    """Install the completion script for your shell.

    It prints what was changed. Run it again to update the script.
    """
    chosen = shell or _called_from()
    script, start, line = _places(chosen)
    os.makedirs(os.path.dirname(script), exist_ok=True)
    with open(script, "w", encoding="utf-8") as file:
        file.write(_script(chosen) + "\n")
    changed = start if start and _add_line(start, line) else None
    output.answer({"shell": chosen, "script": script, "changed": changed})
    output.note("Completion works in the next shell that you open.")


def _script(shell: str) -> str:
    if shell == "bash":
        return BASH
    from typer._completion_shared import get_completion_script

    return get_completion_script(prog_name="hiboss", complete_var="_HIBOSS_COMPLETE", shell=shell)


def _places(shell: str) -> tuple[str, str | None, str]:
    """The path of the script, and the file and line that make a new shell read it."""
    if shell == "bash":
        script = os.path.expanduser("~/.bash_completions/hiboss.sh")
        return script, os.path.expanduser("~/.bashrc"), f"source '{script}'"
    if shell == "zsh":
        directory = os.environ.get("ZDOTDIR") or os.path.expanduser("~")
        return os.path.expanduser("~/.zfunc/_hiboss"), os.path.join(directory, ".zshrc"), ZSH_START
    config = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    return os.path.join(config, "fish", "completions", "hiboss.fish"), None, ""


def _add_line(path: str, line: str) -> bool:
    """Add a line to the end of a person's file, once; returns whether it was added."""
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
        seen = f"hiboss has no completion for {found}" if found else "your shell could not be detected"
        raise WrongUsage(detail=f"{seen}; give --shell bash, zsh or fish", help="hiboss completion --help")
    return found
