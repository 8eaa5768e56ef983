"""Our hooks in the text of a settings file: found, put in, updated in place, taken out.

The text is `{"hooks": {EVENT: [{"matcher": …, "hooks": [HOOK, …]}, …], …}, …}`: each event has groups of
hooks. Ours stand in a group of their own at the end, because Codex remembers by its number which hook
the person has trusted. None stands for a file that does not exist.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from json import JSONDecodeError
from typing import Any

from ...core.errors import HarnessSettingsRefused
from . import json_text
from .harness import Entry, Harness, kind_of
from .json_text import KEPT, Node, Path

HOOKS = "hooks"
_ANY_TOOL = (None, "", "*")  # a harness takes each of these as every tool


@dataclass(frozen=True, kw_only=True)
class Found:
    """One of our hooks in a text."""

    event: str
    kind: str
    entry: Entry
    group: Path
    number: int  # in its group
    matcher: Any

    @property
    def path(self) -> Path:
        return (*self.group, HOOKS, self.number)


def find(text: str | None, harness: Harness) -> list[Found]:
    """Return our hooks, in the order of the text. Raises ValueError for a text that has another form."""
    if text is None or json_text.is_blank(text):
        return []
    hooks = _root(text).value.get(HOOKS, {})
    return [one for event, groups in hooks.items() for one in _in_event(event, groups, harness)]


def _in_event(event: str, groups: Any, harness: Harness) -> Iterator[Found]:
    for place, group in enumerate(groups if isinstance(groups, list) else []):
        entries = group.get(HOOKS) if isinstance(group, dict) else None
        for number, entry in enumerate(entries if isinstance(entries, list) else []):
            if (kind := kind_of(entry, harness.name)) is not None:
                yield Found(
                    event=event,
                    kind=kind,
                    entry=entry,
                    group=(HOOKS, event, place),
                    number=number,
                    matcher=group.get("matcher"),
                )


def _root(text: str) -> Node:
    root = json_text.parse(text)
    if not isinstance(root.value, dict):
        raise ValueError(f'it is {_kind(root.value)}, and must be an object: {{"hooks": {{…}}}}')
    if not isinstance(hooks := root.value.get(HOOKS, {}), dict):
        raise ValueError(f'"hooks" is {_kind(hooks)}, and must be an object: {{"Stop": [{{"hooks": […]}}]}}')
    return root


def _kind(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    names: dict[type, str] = {dict: "an object", list: "an array", str: "a text"}
    return names.get(type(value), "a number")


# --- putting in ----------------------------------------------------------------------


def installed(text: str | None, harness: Harness, wanted: dict[str, Entry]) -> str:
    """Return the text with exactly these hooks of ours; the same text if it has them."""
    events = {event: [group] for event, group in wanted.items()}
    if text is None or json_text.is_blank(text):
        body = json_text.Style().shown({HOOKS: events}, "")
        return f"{body}\n" if text is None else body + KEPT + text
    if HOOKS not in _root(text).value:
        return json_text.appended(text, (), events, HOOKS)
    for event, group in wanted.items():
        text = _with_event(text, harness, event, group)
    return _taken_out(text, [one for one in find(text, harness) if one.event not in wanted])


def _with_event(text: str, harness: Harness, event: str, wanted: Entry) -> str:
    if event not in (hooks := _root(text).value[HOOKS]):
        return json_text.appended(text, (HOOKS,), [wanted], event)
    if not isinstance(hooks[event], list):
        problem = f'"hooks" has {_kind(hooks[event])} for {event}, and must have an array: [{{"hooks": […]}}]'
        raise ValueError(problem)
    missing = {str(kind_of(one, harness.name)): one for one in wanted[HOOKS]}
    kept, strays = _sorted([one for one in find(text, harness) if one.event == event], wanted, set(missing))
    for one in kept:
        entry = missing.pop(one.kind)
        if one.entry != entry:
            text = json_text.replaced(text, one.path, entry)
    if not kept:
        text = json_text.appended(text, (HOOKS, event), wanted)
    else:
        for entry in missing.values():
            text = json_text.appended(text, (*kept[0].group, HOOKS), entry)
    return _taken_out(text, strays)  # last: the numbers of what was found are still true


def _sorted(found: list[Found], wanted: Entry, kinds: set[str]) -> tuple[list[Found], list[Found]]:
    """Return those that stay, and those that go: not wanted, there twice, or for other tools."""
    kept: list[Found] = []
    for one in found:
        if one.kind in kinds and same_tools(one.matcher, wanted.get("matcher")):
            kinds.remove(one.kind)
            kept.append(one)
    return kept, [one for one in found if one not in kept]


def same_tools(one: Any, other: Any) -> bool:
    return one == other or (one in _ANY_TOOL and other in _ANY_TOOL)


# --- taking out ----------------------------------------------------------------------


def removed(text: str | None, harness: Harness) -> str | None:
    """Return the text without our hooks; None: the file was made for them alone, and can go."""
    if text is None or not (found := find(text, harness)):
        return text
    text = _taken_out(text, found)
    if not json_text.is_blank(text):
        return text
    return text.removeprefix(KEPT) if text.startswith(KEPT) else None


def _taken_out(text: str, found: list[Found]) -> str:
    for one in reversed(found):  # so that the numbers of the others stay true
        group = json_text.parse(text).at((*one.group, HOOKS))
        text = json_text.without(text, one.path if len(group.children) > 1 else one.group)
    return text


@contextmanager
def refusing(path: str, form: str = "JSON with hooks") -> Iterator[None]:
    """Raise HarnessSettingsRefused where the block meets a text that has another form."""
    try:
        yield
    except JSONDecodeError as error:
        why = f"line {error.lineno}, column {error.colno}: {error.msg}"
        raise HarnessSettingsRefused(path=path, form=form, why=why) from None
    except ValueError as error:
        raise HarnessSettingsRefused(path=path, form=form, why=str(error)) from None
