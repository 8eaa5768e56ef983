"""What `make bench` measures keeps up with the code."""

from __future__ import annotations

from importlib import import_module

from bench import mailboxes
from bench.parts import PARTS
from hiboss.api import dispatch  # noqa: F401 - it declares the operations
from hiboss.api.operation import REGISTRY
from hiboss.store.list_query import FLAT


def test_every_flat_set_of_filters_is_measured() -> None:
    measured = {name for look in mailboxes.flat_looks() for name in look.params}
    assert measured == {"box", *(name for names in FLAT.values() for name in names)}
    alone = {f"messages_{name}" for name, names in FLAT.items() if not names}
    assert alone <= {look.key for look in mailboxes.flat_looks()}


def test_every_look_into_a_mailbox_is_an_operation_with_a_figure_of_its_own() -> None:
    looks = mailboxes.looks()
    assert {look.method for look in looks} <= set(REGISTRY)
    assert len({look.key for look in looks}) == len(looks)


def test_every_part_can_be_measured() -> None:
    assert all(callable(import_module(f"bench.{part}").measure) for part in PARTS)
