"""The one module that prints: records as `key: value`, tables, JSON, errors, and a progress bar.

Output into a pipe or a file is plain; tables, colour and the bar are for a person at a terminal.
What each noun looks like is in `views`.
"""

from __future__ import annotations

import io
import json
import os
import sys
import time

from ..core.errors import HibossError, WrongUsage
from ..core.escaping import BREAKS, MARK, mark_lines, quote
from .client import Answered

TYPE_CHECKING = False  # importing typing would cost every command 3 ms
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

KEY, HEAD, NEW, WRONG = "36", "2", "1", "1;31"  # cyan, faint, bold, bold red
BAR_DELAY = 1.0  # seconds until the progress bar is shown
BAR = 12


class Mode:
    """How this command was asked to print."""

    json = False
    within_line = False  # a piece was printed that did not end its line


def on_terminal(stream: Any) -> bool:
    return stream is not None and bool(stream.isatty())


def _dumb() -> bool:
    """Whether the terminal knows no escape sequences, or does not say."""
    return os.environ.get("TERM", "dumb") == "dumb"


def painted(text: str, style: str, stream: Any) -> str:
    """The text in a colour, where colours are wanted (https://no-color.org)."""
    if os.environ.get("NO_COLOR") or not on_terminal(stream) or _dumb():
        return text
    return f"\x1b[{style}m{text}\x1b[0m"


def columns(stream: Any) -> int:
    """The width of the terminal; COLUMNS comes before what the terminal says."""
    try:
        wanted = int(os.environ.get("COLUMNS", ""))
    except ValueError:
        wanted = 0
    try:
        return wanted if wanted > 0 else os.get_terminal_size(stream.fileno()).columns or 80
    except OSError:
        return 80


def prepare() -> None:
    """Escape what the terminal cannot show, instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def line(text: str = "") -> None:
    print(text)


def lines(texts: list[str]) -> None:
    """Print at once, also into a pipe: somebody may follow it."""
    for text in texts:
        print(shown(text))
    sys.stdout.flush()


def piece(text: str) -> None:
    """Print a part of a text that somebody else writes at once; each of its lines begins with `>`."""
    if not text:
        return
    marked = mark_lines(text)
    if Mode.within_line:
        marked = marked.removeprefix(MARK).removeprefix(" " if text[0] not in BREAKS else "")
    if text[-1] in BREAKS:
        marked = marked.removesuffix(MARK)  # the next line is marked when there is something in it
    print(shown(marked), end="", flush=True)
    Mode.within_line = text[-1] not in BREAKS


def fresh_line() -> None:
    """End the line that a piece left open."""
    if Mode.within_line:
        print(flush=True)
        Mode.within_line = False


def note(text: str) -> None:
    """Print a note for a person, on standard error; a program that asked for JSON gets only JSON."""
    if not Mode.json:
        print(text, file=sys.stderr)


def document(value: Any) -> None:
    print(json.dumps(value, ensure_ascii=False, indent=2))


def record(facts: dict[str, Any]) -> None:
    """Print one block of `kebab-key: value`; None is left out."""
    for text in record_lines(facts):
        print(text)


def record_lines(facts: dict[str, Any]) -> list[str]:
    return [
        line
        for key, value in facts.items()
        if value is not None
        for line in _titled(key.replace("_", "-") + ":", word(value), KEY, sys.stdout)
    ]


def _titled(title: str, text: str, style: str, stream: Any) -> list[str]:
    """`title text`: one line for a pipe, broken between words for a terminal; a path stays beside it."""
    first, *rest = [f"{title} {text}"]
    if on_terminal(stream):
        from .text_layout import hanging, may_stay_whole

        if not may_stay_whole(text):
            first, *rest = hanging(first, columns(stream))
    return [painted(title, style, stream) + first.removeprefix(title), *rest]


def rendered(text: str) -> None:
    """Print envelopes as `core/rendering.py` renders them; no row of a terminal begins with a sender's text."""
    if not on_terminal(sys.stdout):
        print(text)
        return
    from .text_layout import hanging, wrapped

    cells = columns(sys.stdout)
    for whole in text.splitlines():
        if whole.startswith(MARK):
            rows = wrapped(whole[2:], cells - len(MARK) - 1) or [""]
            print("\n".join(f"{MARK} {row}".rstrip() for row in rows))
        else:
            print("\n".join(hanging(whole, cells)))


def records(blocks: Iterable[dict[str, Any]], *, empty: str, sentence: str) -> None:
    """Print blocks with a blank line between them; without any, what `nothing` prints."""
    first = True
    for block in blocks:
        if not first:
            print()
        first = False
        record(block)
    if first:
        nothing(empty, sentence)


def nothing(empty: str, sentence: str) -> None:
    """Print that a list is empty: a sentence on a terminal, else `no-things: true`."""
    if on_terminal(sys.stdout):
        print(sentence)
    else:
        record({empty: True})


def answer(result: Any, facts: dict[str, Any] | None = None) -> None:
    """Print a result as JSON when that was asked for, else the facts that a person needs."""
    if Mode.json:
        document(result)
    else:
        record(result if facts is None else facts)


def word(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return ", ".join(_item(str(one)) for one in value)
    return " ".join(str(value).splitlines())  # one record, one line


def _item(text: str) -> str:
    """One of a list; in quotes if it could look like several, or like more than a line."""
    return text if text.isprintable() and not set(text) & {",", '"'} else quote(text)


def table(headed: list[Any], rows: list[list[str]], *, bold: Iterable[int] = ()) -> list[bool]:
    """Print a table as wide as the terminal; rows numbered in `bold` stand out.

    Returns for each row whether its last column shows the whole text.
    """
    printed, whole = table_lines(headed, rows, bold=bold)
    for text in printed:
        print(text)
    return whole


def table_lines(
    headed: list[Any], rows: list[list[str]], *, bold: Iterable[int] = ()
) -> tuple[list[str], list[bool]]:
    from .table_layout import fit

    encoding = sys.stdout.encoding or "utf-8"
    if "utf" not in encoding.lower():  # counted as it will be printed
        rows = [[cell.encode(encoding, "backslashreplace").decode(encoding) for cell in row] for row in rows]
    fitted = fit(headed, rows, columns(sys.stdout))
    printed = [one.text for one in fitted]
    if "utf" not in encoding.lower():
        printed = [text.replace("…", ".") for text in printed]
    head, *body = printed
    shown_rows = [painted(text, NEW, sys.stdout) if n in bold else text for n, text in enumerate(body)]
    return [painted(head, HEAD, sys.stdout), *shown_rows], [one.whole for one in fitted[1:]]


class ProgressBar:
    """A bar on a terminal's standard error, once something takes longer than a second.

    Call it again and again while you wait; at the end it is removed.
    """

    def __init__(self, what: str) -> None:
        self.what = what
        self.begun = time.monotonic()
        self.drawn = False

    def __call__(self) -> None:
        lasted = time.monotonic() - self.begun
        if lasted < BAR_DELAY or Mode.json or not on_terminal(sys.stderr) or _dumb():
            return
        place = int(lasted * 10) % (2 * BAR - 6)
        before = min(place, 2 * BAR - 6 - place)
        bar = f"[{' ' * before}==={' ' * (BAR - 3 - before)}]"
        text = f"{bar} {self.what}, {int(lasted)} s"[: columns(sys.stderr) - 1]
        self.drawn = True  # before printing: an interrupt can come in between
        print(f"\r{text}\x1b[K", end="", file=sys.stderr, flush=True)

    def __enter__(self) -> ProgressBar:
        return self

    def __exit__(self, *_: object) -> None:
        if self.drawn:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def shown(text: str, stream: Any = None) -> str:
    """The text; on a terminal without what could control it (escape sequences, bells, bidi overrides)."""
    if not on_terminal(stream or sys.stdout):
        return text
    from .text_layout import tame

    return tame(text)


# --- errors --------------------------------------------------------------------------


def fail(error: HibossError) -> int:
    """Print an error on standard error; returns its exit status."""
    answered = isinstance(error, Answered)
    if Mode.json:
        # The facts of a daemon hold the code a second time.
        facts = {name: value for name, value in error.facts.items() if name != "code"}
        _error_document(_code(error), error.message, facts)
    else:
        print("\n".join(error_lines(error)), file=sys.stderr)
    return error.exit_status if answered else error.exit


def _code(error: HibossError) -> str:
    return error.stable_code if isinstance(error, Answered) else error.code


def error_lines(error: HibossError) -> list[str]:
    lines = [*message_lines(error.message), f"code: {_code(error)}"]
    return [*lines, f"help: {error.help}"] if _code(error) == WrongUsage.code else lines


def message_lines(text: str) -> list[str]:
    """`error: …`: one line for a pipe, broken between words for a terminal."""
    return _titled("error:", word(text), WRONG, sys.stderr)


def error_message(text: str) -> None:
    """Print an error that has no code of its own; a program that asked for JSON gets it from `ended`."""
    if not Mode.json:
        print("\n".join(message_lines(text)), file=sys.stderr)


def ended(why: str, status: int) -> int:
    """Tell a program that asked for JSON why the command ended; a person has seen it. Returns the status."""
    if Mode.json:
        _error_document(HibossError.code, why, {})
    return status


def _error_document(code: str, message: str, facts: dict[str, Any]) -> None:
    body = {"code": code, "message": message, "data": facts}
    print(json.dumps({"error": body}, ensure_ascii=False, default=str), file=sys.stderr)


def misused(error: Any) -> int:
    """Print wrong usage that Typer found; returns the exit status."""
    from .usage_errors import asks_for_help, explained

    if asks_for_help(error) and not Mode.json:
        error.show()
        return WrongUsage.exit
    return fail(explained(error))
