"""Secrets are taken out of texts before these are cut, also out of texts that come in pieces."""

from __future__ import annotations

import pytest

from hiboss.core.quoting import LONGEST_SECRET, Pieces, beginning, hide, shortened, storable

SECRET = "sk-ant-api03-QuotedQuotedQuoted0123456789"
TOKEN = "hba_" + "abcdefghij" * 3
hide([SECRET])


@pytest.mark.parametrize("cut", range(1, len(SECRET) + 2))
def test_no_beginning_of_a_secret_stays_where_a_text_is_cut(cut: int) -> None:
    text = "x" * (100 - cut) + SECRET + "y" * 50
    assert "sk-" not in beginning(text, 100) + shortened(text, 100) + storable(text, 100)
    assert shortened(text, 100).startswith("x" * (99 - cut)) and len(shortened(text, 100)) <= 100


def test_many_secrets_bring_no_part_of_one_to_the_front() -> None:
    assert "sk-" not in beginning(SECRET * (LONGEST_SECRET // len(SECRET) + 30) + "z", 100)
    assert beginning(SECRET * 2_000 + "the end", 3_000) == "…" * 2_000 + "the end"


def test_a_text_is_shortened_only_if_it_is_too_long() -> None:
    assert (shortened("abcd", 4), shortened("abcde", 4), shortened("", 4)) == ("abcd", "abc…", "")


@pytest.mark.parametrize(("given", "shown"), [(SECRET, "…"), (TOKEN, "hba_…")])
@pytest.mark.parametrize("size", [1, 3, 7, 20])
def test_pieces_show_no_part_of_a_secret(given: str, shown: str, size: int) -> None:
    pieces, text = Pieces(), f"so: {given} and {given}, sk- or hb"
    taken = "".join(pieces.take(text[at : at + size]) for at in range(0, len(text), size))
    assert taken + pieces.rest() == f"so: {shown} and {shown}, sk- or hb"
    assert pieces.rest() == ""


def test_pieces_without_a_secret_come_at_once() -> None:
    assert [Pieces().take(one) for one in ("hello ", "you", "\n\n")] == ["hello ", "you", "\n\n"]


def test_the_beginning_of_a_secret_that_ends_there_is_not_shown() -> None:
    pieces = Pieces()
    assert pieces.take(f"it is {SECRET[:20]}") + pieces.rest() == "it is …"


def test_pieces_hold_back_no_more_than_the_longest_secret() -> None:
    assert Pieces().take("hba_" + "a" * 2 * LONGEST_SECRET) == "hba_…"
