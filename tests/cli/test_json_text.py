"""Edits of JSON text: what is not edited keeps every byte, and the way back is exact."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as tries
from hypothesis import strategies as st

from hiboss.cli.harness_settings import hook_entries, json_text, mcp_toml
from hiboss.cli.harness_settings.claude_hooks import CLAUDE
from hiboss.cli.harness_settings.codex_hooks import CODEX
from hiboss.cli.harness_settings.harness import Harness, HookCommand, entries_of
from tests.support import bulk

BLANK = st.text(" \t\n\r", max_size=3)
KEYS = st.sampled_from(["hooks", "env", "é", 'a"b', "", "Stop", "\u2028"])
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=5),
)
FOREIGN = {"hooks": [{"type": "command", "command": "notify-send done"}]}
GROUPS = st.lists(st.just(FOREIGN), max_size=2)
EVENTS = st.dictionaries(st.sampled_from(["Stop", "SessionStart", "PreToolUse", "PostToolUse"]), GROUPS)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3)
)
ONE = HookCommand(program="/usr/bin/hiboss")
OTHER = HookCommand(program="/home/zoé/my programs/hiboss", agent="nex", home="/srv/hi boss")


@st.composite
def layouts(draw: st.DrawFn, value: Any) -> str:
    """A value as JSON text with any white space between its parts, and any way to write its texts."""
    style = draw(st.sampled_from(["any", "minified", 2, 4, "\t", 0]))
    ascii_ = draw(st.booleans())
    if style == "any":
        return draw(BLANK) + _laid_out(draw, value, ascii_) + draw(BLANK)
    indent = None if style == "minified" else style
    separators = (",", ":") if style == "minified" else None
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_, separators=separators)
    text += draw(st.sampled_from(["", "\n"]))
    return text.replace("\n", "\r\n") if draw(st.booleans()) else text


def _laid_out(draw: st.DrawFn, value: Any, ascii_: bool) -> str:
    if isinstance(value, dict):
        members = [
            draw(BLANK)
            + json.dumps(key, ensure_ascii=ascii_)
            + draw(BLANK)
            + ":"
            + draw(BLANK)
            + _laid_out(draw, one, ascii_)
            + draw(BLANK)
            for key, one in value.items()
        ]
        return "{" + (",".join(members) or draw(BLANK)) + "}"
    if isinstance(value, list):
        parts = [draw(BLANK) + _laid_out(draw, one, ascii_) + draw(BLANK) for one in value]
        return "[" + (",".join(parts) or draw(BLANK)) + "]"
    return json.dumps(value, ensure_ascii=ascii_)


@st.composite
def settings(draw: st.DrawFn) -> str:
    value = draw(st.dictionaries(KEYS, VALUES, max_size=3))
    value.pop("hooks", None)
    if draw(st.booleans()):
        value["hooks"] = draw(EVENTS)
    return draw(layouts(value))


@given(st.data(), VALUES)
def test_a_text_is_read_as_the_library_reads_it(data: st.DataObject, value: Any) -> None:
    assert json_text.parse(data.draw(layouts(value))).value == value


@given(st.text('{}[]":,\\ \n\tau01e-.', max_size=12))
def test_what_the_library_refuses_is_refused(text: str) -> None:
    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(dict(pairs)) != len(pairs):
            raise ValueError("twice")
        return dict(pairs)

    try:
        expected = json.loads(text, object_pairs_hook=once)
    except ValueError:
        with pytest.raises(json.JSONDecodeError):
            json_text.parse(text)
    else:
        assert json_text.parse(text).value == expected


@given(st.data(), st.dictionaries(KEYS, VALUES, max_size=3), VALUES)
def test_a_member_that_is_appended_and_taken_out_leaves_no_trace(
    data: st.DataObject, value: dict[str, Any], more: Any
) -> None:
    text = data.draw(layouts(value))
    longer = json_text.appended(text, (), more, "new")
    assert json.loads(longer) == {**value, "new": more}
    if value or "{  " in longer:
        assert json_text.without(longer, ("new",)) == text


@tries(max_examples=bulk.number(40, 200))
@given(settings(), st.sampled_from([CLAUDE, CODEX]), st.booleans(), st.booleans())
def test_install_update_and_remove_give_any_file_back(
    text: str, harness: Harness, asks: bool, then: bool
) -> None:
    wanted = entries_of(harness, ONE, asks=asks)
    first = hook_entries.installed(text, harness, wanted)
    assert json.loads(first) == _merged(json.loads(text), wanted)
    assert hook_entries.installed(first, harness, wanted) == first
    assert hook_entries.removed(first, harness) == text
    other = entries_of(harness, OTHER, asks=then)
    second = hook_entries.installed(first, harness, other)
    assert json.loads(second) == _merged(json.loads(text), other)
    assert hook_entries.removed(second, harness) == text


def _merged(value: dict[str, Any], wanted: dict[str, Any]) -> dict[str, Any]:
    """The settings with a group of ours at the end of each event."""
    hooks = value.get("hooks", {})
    ours = {event: [*hooks.get(event, []), group] for event, group in wanted.items()}
    return {**value, "hooks": {**hooks, **ours}}


@given(BLANK, st.sampled_from([CLAUDE, CODEX]))
def test_a_blank_file_stays_and_a_new_one_goes(text: str, harness: Harness) -> None:
    wanted = entries_of(harness, ONE, asks=True)
    assert hook_entries.removed(hook_entries.installed(text, harness, wanted), harness) == text
    new = hook_entries.installed(None, harness, wanted)
    assert hook_entries.removed(new, harness) is None
    assert json.loads(new) == {"hooks": {event: [group] for event, group in wanted.items()}}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"a": 1, "a": 2}', 'the key "a" is given twice'),
        ('{"a": 1,}', "a key in double quotes is missing"),
        ("[1 2]", "a ',' is missing"),
        ('{"a" 1}', "a ':' is missing"),
        ("{} x", "something stands behind the end"),
        ('{"a": NaN}', "NaN is no JSON"),
        ("// a comment\n{}", "Expecting value"),
        ("[" * 100_000, "it is nested too deeply"),
        ('{"a": "b', "Unterminated string"),
        ("9" * 5000, "Exceeds the limit"),
    ],
    ids=lambda text: text[:20],
)
def test_a_text_that_is_no_json_is_refused_with_the_reason(text: str, says: str) -> None:
    with pytest.raises(json.JSONDecodeError, match=says):
        json_text.parse(text)


def test_an_entry_is_laid_out_like_its_neighbours() -> None:
    more = json_text.appended('{\n\t"Stop": [\n\t\t{"a": 1},\n\t\t{"b": 2}\n\t]\n}\n', ("Stop",), {"c": [3]})
    assert (
        more
        == '{\n\t"Stop": [\n\t\t{"a": 1},\n\t\t{"b": 2},\n\t\t{\n\t\t\t"c": [\n\t\t\t\t3\n\t\t\t]\n\t\t}\n\t]\n}\n'
    )
    assert json_text.appended('{"a":[1]}', ("a",), {"b": 2}) == '{"a":[1,{"b":2}]}'
    assert json_text.appended('{"a": [1]}', ("a",), {"b": 2}) == '{"a": [1, {"b": 2}]}'


def _costs(work: Callable[[str], object], text: str) -> float:
    begin = time.process_time()
    work(text)
    return time.process_time() - begin


def _remove_from_toml(text: str) -> object:
    return mcp_toml.removed(mcp_toml.installed(text, "x", {"command": "y"}), "x")


@pytest.mark.parametrize(
    ("work", "made"),
    [
        (json_text.parse, lambda number: json.dumps({str(one): one for one in range(number)})),
        (_remove_from_toml, lambda number: "".join(f'[a."{one}"]\nb = 1\n' for one in range(number))),
    ],
)
def test_large_settings_cost_in_proportion_to_their_size(
    work: Callable[[str], object], made: Callable[[int], str]
) -> None:
    few, many = 100, 3_200
    least = min(_costs(work, made(few)) for _ in range(5))
    assert _costs(work, made(many)) < 5 * least * many / few


def test_a_server_in_an_inline_table_is_said_to_be_not_editable() -> None:
    with pytest.raises(ValueError, match="cannot edit safely"):
        mcp_toml.removed('mcp_servers.x = { command = "y" }\n', "x")
