"""Options of lists that filter by what a message is about: shared by inbox, envelope, message and thread."""

from __future__ import annotations

from typing import Annotated

from ..options import Text, flag
from ..tag_values import tag

Mentions = Annotated[bool, flag("--mentions", None, "Only mail that mentions you, by name or by role.")]
Scope = Annotated[Text, flag("--scope", "TYPE:VALUE", "Only mail about this, like module:auth.")]
Ref = Annotated[
    Text, flag("--ref", "TYPE:VALUE", "Only mail that refers to this, like issue:42 or mention:reviewer.")
]
Thread = Annotated[Text, flag("--thread", "ID", "Only this thread: t57, or any envelope in it.")]
Snoozed = Annotated[bool, flag("--snoozed", None, "Only mail that was put off, and has not come back.")]

CreatedAfter = Annotated[
    Text, flag("--created-after", "TIME", "Only mail written after this time: -1D, or an ISO time.")
]
CreatedBefore = Annotated[Text, flag("--created-before", "TIME", "Only mail written before this time.")]


def given(scope: str | None, ref: str | None, *, mentions: bool) -> dict[str, object]:
    """Return these filters as parameters; those that were not given are left out."""
    found = {"scope": tag(scope, "--scope"), "ref": tag(ref, "--ref"), "mentions": mentions or None}
    return {name: value for name, value in found.items() if value is not None}
