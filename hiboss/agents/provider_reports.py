"""Check what a provider reports during a turn. The daemon and hiboss/testing/recorded_run.py check the same.

What is of a wrong type is a mistake of the provider, and raises. What has the right type and cannot be
stored may come from a program behind the provider: it is left out or replaced, with a note.
"""

from __future__ import annotations

from typing import NamedTuple

from ..core.contracts.provider import KINDS, Progress, Usage, is_session, storable_text
from ..core.quoting import beginning, redact
from .run_outcome import valid_usage

SHOWN_CHARACTERS = {"tool": 300, "tool_result": 2_000}
NO_SESSION = "its session id is not a text that can be stored and was left out"
NO_NUMBER = "some of its usage was not a number and was left out"


class Checked(NamedTuple):
    """A report that can be used, and a note about what was left out."""

    progress: Progress
    note: str = ""


def check_progress(part: object) -> Checked:
    """Return the progress as it can be shown and stored."""
    if not isinstance(part, Progress):
        raise TypeError(f"run.progress takes a Progress, like Progress('delta', text), not {_kind(part)}")
    if part.kind not in KINDS:
        raise ValueError(f"there is no progress {part.kind!r:.60}; there are {', '.join(KINDS)}")
    if not isinstance(part.text, str):
        raise TypeError(f"the text of a Progress is a str, not {_kind(part.text)}")
    if part.usage is None:
        return Checked(part._replace(text=storable_text(part.text)))
    if not isinstance(part.usage, Usage):
        raise TypeError(
            f"the usage of a Progress is a Usage(tokens_in, tokens_out, cost), not {_kind(part.usage)}"
        )
    usage = valid_usage(part.usage)
    checked = part._replace(text=storable_text(part.text), usage=usage)
    return Checked(checked, "" if usage == part.usage else NO_NUMBER)


def shown_part(part: Progress) -> Progress:
    """Return live output as people see it: a tool in one line, a result shortened, and no secrets in these.

    What is a piece of the answer stays as it is: the answer is what the agent wants to say.
    """
    if part.kind == "delta":
        return part
    text = part.text
    if part.kind in SHOWN_CHARACTERS:
        limit = SHOWN_CHARACTERS[part.kind]
        text = beginning(" ".join(text.split()) if part.kind == "tool" else text.strip("\n"), limit + 1)
        return part._replace(text=f"{text[:limit]}…" if len(text) > limit else text)
    return part._replace(text=redact(text))


def check_session(session: object) -> str:
    """Return a note if the id of a session cannot be stored, or an empty text."""
    if not isinstance(session, str):
        raise TypeError(f"a session id is a str, not {_kind(session)}")
    return "" if is_session(session) else NO_SESSION


def check_pid(pid: object) -> None:
    if not isinstance(pid, int) or isinstance(pid, bool) or pid <= 1:
        raise ValueError(f"{pid!r:.60} is not the pid of a program")


def _kind(given: object) -> str:
    return f"a {type(given).__name__}"
