"""Options of lists that filter by what a message is about: shared by inbox, envelope, message and thread."""

from __future__ import annotations

from typing import Annotated

from ..options import Text, flag

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
