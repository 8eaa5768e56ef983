"""Bad input of the operations about asks (`bad_input.py`)."""

from __future__ import annotations

from tests.api.bad_input_row import (
    BAD_ADDRESSES,
    BAD_IDS,
    BAD_LENGTHS,
    LONG,
    NUL,
    row,
    shown,
)

ASK = {"question": "x"}

ASK_WORDS = "ask create x"

NO_ASKS = (*[one for one in BAD_IDS if one != "q1"], "e1", "r1")

ONE = {"ask.get": {}, "ask.wait": {}, "ask.cancel": {}, "ask.answer": {"choice": "yes"}}

ASK_OPTIONS = [
    *[
        row("ask.create", {**ASK, "options": options}, "bad_options", f"{says}|1 to 20|200")
        for options, says in (
            ([], "there are 0"),
            ([""], "one is empty"),
            (["a", " \n"], "one is empty"),
            (["a", "\u200b"], "one shows nothing"),
            (["Yes", "yes"], "two are the same"),
            (["a b", "A  B"], "two are the same"),
            (["x" * 201], "one has 201 characters"),
            ([str(number) for number in range(21)], "there are 21"),
        )
    ],
    row(
        "ask.create",
        {**ASK, "options": ["yes", "YES"]},
        "bad_options",
        "two are the same",
        f"{ASK_WORDS} --option yes --option YES",
    ),
    row("ask.create", {**ASK, "options": [NUL]}, "bad_text", "options|NUL"),
    row(
        "ask.create",
        {**ASK, "default": "yes"},
        "invalid_params",
        "--default|--timeout",
        f"{ASK_WORDS} --default yes",
    ),
    row("ask.create", {**ASK, "timeout": "1h", "default": NUL}, "bad_text", "default|NUL"),
    *[
        row("ask.create", {**ASK, "timeout": "1h", "default": value}, "bad_choice", "yes, no")
        for value in ("maybe", "", "0", "3", LONG)
    ],
    row(
        "ask.create",
        {**ASK, "timeout": "1h", "default": "maybe"},
        "bad_choice",
        "maybe|yes, no",
        f"{ASK_WORDS} --timeout 1h --default maybe",
    ),
]

QUESTIONS = [
    *[row("ask.create", {"question": value}, "empty_message") for value in ("", " \n", "\u2003")],
    row("ask.create", {"question": " "}, "empty_message", "", "ask create ' '"),
    *[
        row(
            "ask.create", {**ASK, "timeout": value}, "bad_duration", f"{shown(value)} is not a valid duration"
        )
        for value in BAD_LENGTHS
    ],
    row("ask.create", {**ASK, "timeout": "soon"}, "bad_duration", "soon|10m", f"{ASK_WORDS} --timeout soon"),
    *[
        row("ask.create", {**ASK, "to": value}, "bad_address", "is not a valid address|agent:nex")
        for value in BAD_ADDRESSES
    ],
    *[
        row("ask.create", {**ASK, "to": value}, "unknown_recipient", value)
        for value in ("agent:gone", "user:parted", "agent:system", "agent:background", "group:none")
    ],
    row("ask.create", {**ASK, "to": "adda"}, "unknown_recipient", "adda|ada?", f"{ASK_WORDS} --to adda"),
    row("ask.create", {**ASK, "to": "channel:telegram:1"}, "unknown_recipient", "channel:telegram:1"),
    row(
        "ask.create",
        {**ASK, "to": "agent:nex"},
        "invalid_params",
        "who asks never answers|--to|--as",
        f"{ASK_WORDS} --to nex",
    ),
    row("ask.create", ASK, "invalid_params", "who asks never answers|--to|--as", ASK_WORDS, by="boss"),
]

ASK_IDS = [
    *[
        each
        for name, more in ONE.items()
        for each in [
            *[
                row(name, {"id": value, **more}, "bad_id", f"{shown(value)} is not a valid ask|q81")
                for value in NO_ASKS
            ],
            *[
                row(name, {"id": value, **more}, "not_found", "no ask|hiboss ask list")
                for value in ("q999999", 2**63 - 1)
            ],
            # of two others
            row(name, {"id": "%ask", **more}, "not_found", "%ask", by="ann"),
            row(
                name,
                {"id": "q999999", **more},
                "not_found",
                "q999999|ask list",
                f"{name.replace('.', ' ')} q999999{(' --choice yes' if more else '')}",
            ),
        ]
    ],
    *[
        row(
            "ask.wait",
            {"id": "%ask", "timeout": value},
            "bad_duration",
            f"{shown(value)} is not a valid duration",
        )
        for value in BAD_LENGTHS
    ],
    row("ask.wait", {"id": "%ask", "timeout": "2h"}, "bad_duration", "2h|1h", "ask wait %ask --timeout 2h"),
]

ANSWERS = [
    *[
        row("ask.answer", {"id": "%asked", "choice": value}, "bad_choice", "%asked|yes, no")
        for value in ("maybe", "", "0", "3", "yes no", LONG)
    ],
    row(
        "ask.answer",
        {"id": "%asked", "choice": "maybe"},
        "bad_choice",
        "maybe|yes, no",
        "ask answer %asked --choice maybe",
    ),
    row(
        "ask.answer",
        {"id": "%ask", "choice": "yes"},
        "own_ask",
        "agent:nex|never answers",
        "ask answer %ask --choice yes",
    ),
    row(
        "ask.answer",
        {"id": "%settled", "choice": "yes"},
        "ask_settled",
        "agent:nex cancelled it",
        "ask answer %settled --choice yes",
        by="boss",
    ),
    row("ask.cancel", {"id": "%settled"}, "ask_settled", "cancelled", "ask cancel %settled"),
    row("ask.cancel", {"id": "%asked"}, "not_asker", "agent:ada", "ask cancel %asked"),
    *[
        row(
            "ask.answer",
            {"id": "%asked", "choice": "yes", "scope": scope},
            "cannot_remember",
            "%asked|only the answer to a permission",
        )
        for scope in ("session", "rule")
    ],
    row(
        "ask.answer",
        {"id": "%asked", "choice": "yes", "scope": "rule"},
        "cannot_remember",
        "%asked",
        "ask answer %asked --choice yes --scope rule",
    ),
]

# What is asked and answered stays as it was sent.
MAIL = [
    row(
        "message.edit",
        {"id": "%question", "text": "other"},
        "ask_fixed",
        "the question of|ask again: hiboss ask cancel|%ask",
        "message edit %question other",
    ),
    row("message.edit", {"id": "%answer", "text": "no"}, "ask_fixed", "hiboss ask get"),
    row("message.delete", {"id": "%answer"}, "ask_fixed", "counts as it was given", "message delete %answer"),
    row(
        "envelope.cancel",
        {"ids": ["%question_mail"]},
        "ask_fixed",
        "hiboss ask cancel|%ask",
        "envelope cancel --id %question_mail",
    ),
]

ASK_LISTS = [
    *[row("ask.list", {"state": value}, "invalid_params", "state|open") for value in ("none", "OPEN", "")],
    *[
        row("ask.list", {"page_size": number}, "invalid_params", "page_size", f"ask list -n {number}")
        for number in (0, 101, -1)
    ],
    *[row("ask.list", {"after": number}, "invalid_params", "after") for number in (0, -1, 2**63)],
]

ROWS = [*ASK_OPTIONS, *QUESTIONS, *ASK_IDS, *ANSWERS, *MAIL, *ASK_LISTS]
