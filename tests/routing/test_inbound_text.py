"""Texts that a platform gives us, as they are stored."""

from __future__ import annotations

import pytest

from hiboss.core.contracts.inbound import Author, Inbound
from hiboss.core.settings import Settings
from hiboss.routing.inbound_text import LONGEST_ID, clean_id, tidy


def test_ids_that_can_be_stored_stay_and_others_differ_as_before() -> None:
    assert clean_id("7") == "7"
    assert clean_id("m" * LONGEST_ID) == "m" * LONGEST_ID
    odd = ["m" * 501, "m" * 501 + "n", "a\x00b", "a\x01b\x00", "a?b", "\ud800", "\ud801", "?"]
    stored = [clean_id(one) for one in odd]
    assert len(set(stored)) == len(odd)
    assert all(len(one) <= LONGEST_ID and "\x00" not in one and one.encode() for one in stored)
    assert stored == [clean_id(one) for one in odd]


def test_an_id_that_is_no_text_is_a_defect_of_the_adapter() -> None:
    with pytest.raises(TypeError, match="not int"):
        clean_id(7)


def test_names_are_cut_at_a_character_and_texts_keep_their_length() -> None:
    limits = Settings(word_bytes=16)
    found = tidy(Inbound(chat="c", author=Author(name="ä" * 20), title="short", text="x" * 5000), limits)
    assert found.author.name == "ä" * 6 + "…"
    assert (found.title, len(found.text), found.subject) == ("short", 5000, None)
