"""Bad input of the operations about asks (`bad_input.py`)."""

from __future__ import annotations

from collections.abc import Iterator

from tests.api.bad_input_row import BAD_ADDRESSES, BAD_IDS, BAD_LENGTHS, LONG, NUL, Row, row, shown

ASK = {"question": "x"}
WORDS = "ask create x"
NO_ASKS = (*[one for one in BAD_IDS if one != "q1"], "e1", "r1")
ONE = {"ask.get": {}, "ask.wait": {}, "ask.cancel": {}, "ask.answer": {"choice": "yes"}}


def asks() -> Iterator[Row]:
    for part in (_options, _questions, _ids, _answers, _mail, _lists):
        yield from part()


def _options() -> Iterator[Row]:
    name = "ask.create"
    for options, says in (
        ([], "there are 0"),
        ([""], "one is empty"),
        (["a", " \n"], "one is empty"),
        (["a", "\u200b"], "one shows nothing"),
        (["Yes", "yes"], "two are the same"),
        (["a b", "A  B"], "two are the same"),
        (["x" * 201], "one has 201 characters"),
        ([str(number) for number in range(21)], "there are 21"),
    ):
        yield row(name, {**ASK, "options": options}, "bad_options", f"{says}|1 to 20|200")
    same = f"{WORDS} --option yes --option YES"
    yield row(name, {**ASK, "options": ["yes", "YES"]}, "bad_options", "two are the same", same)
    yield row(name, {**ASK, "options": [NUL]}, "bad_text", "options|NUL")
    needs = {**ASK, "default": "yes"}
    yield row(name, needs, "invalid_params", "--default|--timeout", f"{WORDS} --default yes")
    yield row(name, {**ASK, "timeout": "1h", "default": NUL}, "bad_text", "default|NUL")
    for value in ("maybe", "", "0", "3", LONG):
        yield row(name, {**ASK, "timeout": "1h", "default": value}, "bad_choice", "yes, no")
    maybe = {**ASK, "timeout": "1h", "default": "maybe"}
    yield row(name, maybe, "bad_choice", "maybe|yes, no", f"{WORDS} --timeout 1h --default maybe")


def _questions() -> Iterator[Row]:
    name = "ask.create"
    for value in ("", " \n", "\u2003"):
        yield row(name, {"question": value}, "empty_message")
    yield row(name, {"question": " "}, "empty_message", "", "ask create ' '")
    for value in BAD_LENGTHS:
        yield row(name, {**ASK, "timeout": value}, "bad_duration", f"{shown(value)} is not a valid duration")
    yield row(name, {**ASK, "timeout": "soon"}, "bad_duration", "soon|10m", f"{WORDS} --timeout soon")
    for value in BAD_ADDRESSES:
        yield row(name, {**ASK, "to": value}, "bad_address", "is not a valid address|agent:nex")
    for value in ("agent:gone", "user:parted", "agent:system", "agent:background", "group:none"):
        yield row(name, {**ASK, "to": value}, "unknown_recipient", value)
    yield row(name, {**ASK, "to": "adda"}, "unknown_recipient", "adda|ada?", f"{WORDS} --to adda")
    yield row(name, {**ASK, "to": "channel:telegram:1"}, "unknown_recipient", "channel:telegram:1")
    own = "who asks never answers|--to|--as"
    yield row(name, {**ASK, "to": "agent:nex"}, "invalid_params", own, f"{WORDS} --to nex")
    yield row(name, ASK, "invalid_params", own, WORDS, by="boss")


def _ids() -> Iterator[Row]:
    for name, more in ONE.items():
        for value in NO_ASKS:
            yield row(name, {"id": value, **more}, "bad_id", f"{shown(value)} is not a valid ask|q81")
        for value in ("q999999", 2**63 - 1):
            yield row(name, {"id": value, **more}, "not_found", "no ask|hiboss ask list")
        yield row(name, {"id": "%ask", **more}, "not_found", "%ask", by="ann")  # of two others
        command = f"{name.replace('.', ' ')} q999999{' --choice yes' if more else ''}"
        yield row(name, {"id": "q999999", **more}, "not_found", "q999999|ask list", command)
    for value in BAD_LENGTHS:
        wrong = {"id": "%ask", "timeout": value}
        yield row("ask.wait", wrong, "bad_duration", f"{shown(value)} is not a valid duration")
    yield row(
        "ask.wait", {"id": "%ask", "timeout": "2h"}, "bad_duration", "2h|1h", "ask wait %ask --timeout 2h"
    )


def _answers() -> Iterator[Row]:
    name = "ask.answer"
    for value in ("maybe", "", "0", "3", "yes no", LONG):
        yield row(name, {"id": "%asked", "choice": value}, "bad_choice", "%asked|yes, no")
    maybe = {"id": "%asked", "choice": "maybe"}
    yield row(name, maybe, "bad_choice", "maybe|yes, no", "ask answer %asked --choice maybe")
    own = {"id": "%ask", "choice": "yes"}
    yield row(name, own, "own_ask", "agent:nex|never answers", "ask answer %ask --choice yes")
    late = {"id": "%settled", "choice": "yes"}
    yield row(
        name, late, "ask_settled", "agent:nex cancelled it", "ask answer %settled --choice yes", by="boss"
    )
    yield row("ask.cancel", {"id": "%settled"}, "ask_settled", "cancelled", "ask cancel %settled")
    yield row("ask.cancel", {"id": "%asked"}, "not_asker", "agent:ada", "ask cancel %asked")
    for scope in ("session", "rule"):
        wrong = {"id": "%asked", "choice": "yes", "scope": scope}
        yield row(name, wrong, "cannot_remember", "%asked|only the answer to a permission")
    words = "ask answer %asked --choice yes --scope rule"
    yield row(name, {"id": "%asked", "choice": "yes", "scope": "rule"}, "cannot_remember", "%asked", words)


def _mail() -> Iterator[Row]:
    """What is asked and answered stays as it was sent."""
    edit, again = {"id": "%question", "text": "other"}, "the question of|ask again: hiboss ask cancel|%ask"
    yield row("message.edit", edit, "ask_fixed", again, "message edit %question other")
    yield row("message.edit", {"id": "%answer", "text": "no"}, "ask_fixed", "hiboss ask get")
    gone = "counts as it was given"
    yield row("message.delete", {"id": "%answer"}, "ask_fixed", gone, "message delete %answer")
    ends, words = "hiboss ask cancel|%ask", "envelope cancel --id %question_mail"
    yield row("envelope.cancel", {"ids": ["%question_mail"]}, "ask_fixed", ends, words)


def _lists() -> Iterator[Row]:
    name = "ask.list"
    for value in ("none", "OPEN", ""):
        yield row(name, {"state": value}, "invalid_params", "state|open")
    for number in (0, 101, -1):
        yield row(name, {"page_size": number}, "invalid_params", "page_size", f"ask list -n {number}")
    for number in (0, -1, 2**63):
        yield row(name, {"after": number}, "invalid_params", "after")
