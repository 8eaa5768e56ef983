"""The error tree: stable codes, messages made of facts, and the status a command ends with."""

from __future__ import annotations

import string
from contextlib import nullcontext
from typing import Any

import pytest

from hiboss.cli.client import Answered
from hiboss.core import errors
from hiboss.core.errors import HibossError, tree
from hiboss.core.quoting import nearest
from tests.support.sweeps import sweep

# As `tree` finds them, without those that other modules add.
CLASSES = [cls for cls in tree() if cls.__module__.startswith(errors.__name__)]

USAGE = {
    "too_broad",
    "invalid_params",
    "bad_address",
    "bad_time",
    "bad_duration",
    "bad_time_of_day",
    "no_provider",
    "bad_provider",
    "lacks_capability",
    "bad_cron",
    "bad_timezone",
    "bad_id",
    "bad_name",
    "bad_text",
    "bad_choice",
    "bad_emoji",
    "bad_options",
    "emoji_refused",
} | {
    "empty_message",
    "no_recipient",
    "bad_cursor",
    "too_far",
    "unreadable_file",
    "not_utf8",
    "usage",
    "bad_config",
    "bad_setting",
    "unknown_setting",
}
SPECIFIED = {
    "parse_error": -32700,
    "invalid_request": -32600,
    "method_not_found": -32601,
    "invalid_params": -32602,
    "internal_error": -32603,
}


def _facts(cls: type[HibossError]) -> dict[str, Any]:
    """Return the facts that the docstring of a class needs; a number where it has a format."""
    parsed = string.Formatter().parse(cls.__doc__ or "")
    return {name: 7.5 if spec else f"<{name}>" for _, name, spec, _ in parsed if name is not None}


def test_the_tree_holds_every_class_of_the_module() -> None:
    declared = {c for c in vars(errors).values() if isinstance(c, type) and issubclass(c, HibossError)}
    assert set(CLASSES) == declared and len(CLASSES) > 40


def test_codes_are_unique() -> None:
    codes = [cls.code for cls in CLASSES]
    assert len(set(codes)) == len(codes)


def test_every_class_has_a_code_and_a_message_of_facts_that_stay_readable_and_travel() -> None:
    with sweep() as row:
        for cls in CLASSES:
            with row(cls.__name__):
                assert "code" in vars(cls) and cls.code.isidentifier() and cls.code.islower()
                assert "__doc__" in vars(cls) and (cls.__doc__ or "").strip()
                facts = _facts(cls)
                assert not [name for name in facts if hasattr(HibossError, name) or name in ("facts", "code")]
                error = cls(**facts)
                assert {name: getattr(error, name) for name in facts} == facts
                shown = [f"{fact:g}" if isinstance(fact, float) else fact for fact in facts.values()]
                assert [fact for fact in shown if fact not in error.message] == []
                assert "{" not in error.message and "\n" not in error.message and error.message == str(error)
                assert error.payload() == {"code": cls.code, **facts}


def test_a_forgotten_fact_shows_at_once() -> None:
    with sweep() as row:
        for cls in CLASSES:
            with row(cls.__name__), pytest.raises(KeyError) if _facts(cls) else nullcontext():
                cls()


def test_what_a_caller_wrote_is_never_taken_for_a_place_holder() -> None:
    assert "{why} {0}" in errors.BadName(value="{why} {0}", why="because").message


def test_an_unknown_attribute_is_no_fact() -> None:
    with pytest.raises(AttributeError):
        _ = errors.BadName(value="x", why="y").colour


# --- statuses for the doors ----------------------------------------------------------


def test_every_error_has_the_statuses_of_the_manual_and_of_the_specifications() -> None:
    special = {"daemon_unreachable": 3, "hung_up": 3, "timed_out": 4, "already_watched": 5, "stopping": 6}
    special |= dict.fromkeys(USAGE, 2)
    assert {cls.code for cls in CLASSES} >= set(special)
    with sweep() as row:
        for cls in CLASSES:
            with row(cls.__name__):
                assert cls.exit == errors.exit_status(cls.code) == special.get(cls.code, 1)
                assert cls.rpc == SPECIFIED.get(cls.code, cls.rpc)
                assert cls.rpc in SPECIFIED.values() or -32099 <= cls.rpc <= -32000
                assert 400 <= cls.http <= 599


def test_a_code_of_a_newer_daemon_ends_a_command_as_refused() -> None:
    assert errors.exit_status("not_invented_yet") == 1


def test_an_answered_error_keeps_the_daemons_code_message_and_exit_status() -> None:
    data = {"code": "bad_time", "value": "{x}", "why": "it is none"}
    answered = Answered({"code": -32602, "message": "{x} is not a valid time", "data": data})
    assert (answered.message, answered.stable_code) == ("{x} is not a valid time", "bad_time")
    assert (answered.exit_status, answered.rpc_code, answered.why) == (2, -32602, "it is none")


@pytest.mark.parametrize(
    "error", [{}, {"code": -1, "message": "odd"}, {"code": -1, "message": "odd", "data": None}]
)
def test_an_answered_error_without_data_is_an_error_all_the_same(error: dict[str, Any]) -> None:
    answered = Answered(error)
    assert (answered.stable_code, answered.exit_status) == ("error", 1) and answered.message


# --- hints ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("word", "known", "hint"),
    [
        ("agent:nxe", ["agent:nex", "user:boss"], " (did you mean agent:nex?)"),
        ("AGENT:NEX", ["agent:Nex"], " (did you mean agent:Nex?)"),
        ("envelope.sent", ["envelope.send", "envelope.list"], " (did you mean envelope.send?)"),
        ("zebra", ["agent:nex", "user:boss"], ""),
        ("", ["agent:nex"], ""),
        ("nex", [], ""),
    ],
)
def test_the_nearest_known_word_is_suggested_and_a_far_one_is_not(
    word: str, known: list[str], hint: str
) -> None:
    assert nearest(word, known) == nearest(word, iter(known)) == hint
